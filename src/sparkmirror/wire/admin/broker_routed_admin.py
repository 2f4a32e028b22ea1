"""Asks a cluster about many groups or partitions at once, each at its own broker.

Runs on: worker, on any thread, one at a time. Everything that decides how admin requests about
groups and partitions are routed and retried lives here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

import kafka.errors

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import BrokerError, KafkaError, RemoteProtocolError, TransportError
from sparkmirror.retry import Backoff
from sparkmirror.wire.admin.admin import Admin
from sparkmirror.wire.admin.admin_client import in_parts
from sparkmirror.wire.client.retry_policies import RetryPolicies
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Find = Callable[[Sequence[K]], Mapping[K, int | KafkaError]]
AskBroker = Callable[[int, Sequence[K]], Mapping[K, T | KafkaError]]


def may_pass(result: object) -> bool:
    """Whether a retry may help; not for a topic that does not exist: callers handle that."""
    if isinstance(result, BrokerError) and result.code == UNKNOWN_TOPIC_OR_PARTITION:
        return False
    return isinstance(result, KafkaError) and result.retriable


class BrokerRoutedAdmin(Admin):
    """Admin requests whose parts go to different brokers and fail one by one.

    `_owners` remembers the broker of a group (its coordinator) or a partition (its leader).
    """

    def __init__(self, config: ClientConfig, timeout_ms: int) -> None:
        super().__init__(config, timeout_ms)
        self._owners: dict[Hashable, int] = {}

    def _ask_until_settled(
        self, keys: Iterable[K], find: Find[K], ask: AskBroker[K, T], seconds: float | None = None
    ) -> dict[K, T | KafkaError]:
        """Ask for every key, again while its error is retriable, until the admin timeout."""
        most = self._timeout_ms / 1000 if seconds is None else seconds
        deadline = time.monotonic() + most
        left = list(dict.fromkeys(keys))
        results: dict[K, T | KafkaError] = {}
        backoff = Backoff(RetryPolicies.of(self._config).requests)
        while left:
            results |= self._round(left, find, ask)
            left = [key for key in left if may_pass(results[key])]
            wait = backoff.failed()
            if not left or time.monotonic() + wait > deadline:
                break
            time.sleep(wait)
        return results

    def _round(
        self, keys: Sequence[K], find: Find[K], ask: AskBroker[K, T]
    ) -> dict[K, T | KafkaError]:
        results: dict[K, T | KafkaError] = {}
        results |= self._find_owners([key for key in keys if key not in self._owners], find)
        found = [key for key in keys if key not in results]
        for owner, chunk in self._chunks(found):
            try:
                results |= ask(owner, chunk)
            except KafkaError as error:
                results |= dict.fromkeys(chunk, error)
        silence = RemoteProtocolError(f"a broker of '{self._alias}' left keys out of its response")
        results = {key: results.get(key, silence) for key in keys}
        self._forget(key for key, result in results.items() if isinstance(result, KafkaError))
        return results

    def _forget(self, keys: Iterable[Hashable]) -> None:
        """A broker that returned an error may no longer be the right one."""
        for key in keys:
            self._owners.pop(key, None)

    def _find_owners(self, keys: Sequence[K], find: Find[K]) -> dict[K, KafkaError]:
        """Fill `_owners`; the keys whose owner cannot be found, and why."""
        failed: dict[K, KafkaError] = {}
        for chunk in in_parts(keys):
            try:
                owners = find(chunk)
            except KafkaError as error:
                owners = dict.fromkeys(chunk, error)
            for key, owner in owners.items():
                if isinstance(owner, KafkaError):
                    failed[key] = owner
                else:
                    self._owners[key] = owner
        return failed

    def _chunks(self, keys: Iterable[K]) -> Iterator[tuple[int, Sequence[K]]]:
        owned = [(self._owners[key], key) for key in keys if key in self._owners]
        for owner, pairs in groupby(sorted(owned, key=_owner), key=_owner):
            for chunk in in_parts([key for _, key in pairs]):
                yield owner, chunk

    def _send(self, what: str, request: Any, node_id: int | None = None) -> Any:
        try:
            return super()._send(what, request, node_id)
        except KafkaError as error:
            if not isinstance(error.__cause__, kafka.errors.UnknownBrokerIdError):
                raise
            # A broker that joined after the metadata was read.
            self._manager.cluster.request_update()
            raise TransportError(str(error)) from error

    def _version(self, request: Any) -> int:
        with self._during(f"choose a version of {request.__name__}"):
            return int(self._manager.broker_version_data.api_version(request))


def _owner(pair: tuple[int, object]) -> int:
    return pair[0]
