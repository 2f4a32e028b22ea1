"""A topic that a thread follows, passing on its records in order as they arrive.

Runs on: worker, on a thread of its own. For Connect's config and status topics, which are small,
compacted and read by all workers. Mirrors: org.apache.kafka.connect.util.KafkaBasedLog.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sparkmirror.batches.records import Record
from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.errors import DeniedError, KafkaError, MirrorError, TransportError, describe_error

log = logging.getLogger(__name__)

# The longest delay until workers see what another one wrote.
POLL_SECONDS = 0.5
READ_SECONDS = 60.0
# The pause between two reads while a caller waits.
LOOK_SECONDS = 0.02
RETRY_SECONDS = 1.0
STOP_SECONDS = 5.0


class Reader(Protocol):
    """Receives the records, on the thread that follows the topic."""

    def on_records(self, records: Sequence[Record], *, restarted: bool) -> None:
        """New records; `restarted`: the topic was recreated, forget all earlier ones."""


class KafkaBasedLog:
    """Follows one topic. `last_error`: why it cannot be read; empty while it can."""

    def __init__(
        self, config: ClientConfig, topic: str, partitions: int, reader: Reader, without: str
    ) -> None:
        """`without`: the consequence if this worker may not read the topic."""
        self.topic = topic
        self._without = without
        self.last_error = ""
        self._reader = reader
        self._follower = LogReader(config, topic, partitions, must_exist=True)
        self._changed = threading.Condition()
        # The number of reads that have begun, and of the last one that reached the end.
        self._begun = 0
        self._completed = 0
        self._waiters = 0
        self._poll_asked = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follow {topic}", daemon=True)

    def start(self) -> None:
        """Read the topic to its end, then keep following it on the thread.

        Raises:
            KafkaError: it cannot be read.
        """
        try:
            self._read()
        except DeniedError as error:
            self._follower.close()
            raise KafkaError(describe_error(error, self._without)) from error
        except BaseException:  # also Ctrl-C: `stop` is not called if `start` fails
            self._follower.close()
            raise
        self._thread.start()

    def refresh(self, seconds: float) -> None:
        """Return when everything that was in the topic at the time of the call has been read.

        Raises:
            TransportError: it takes too long.
        """
        with self._changed:
            wanted = self._begun + 1
        self.wait_for(lambda: self._completed >= wanted, seconds)

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        """Read at once, and return when the records have made `condition` true.

        Raises:
            TransportError: it takes too long.
        """
        with self._changed:
            self._waiters += 1
            self._changed.notify_all()
            try:
                came = self._changed.wait_for(
                    lambda: condition() or self._stopping.is_set(), seconds
                )
            finally:
                self._waiters -= 1
        if not came or self._stopping.is_set():
            why = self.last_error or "what was written has not come"
            raise TransportError(f"read '{self.topic}': not done in {seconds:g} s: {why}")

    def poll_soon(self) -> None:
        """Read soon: something was written."""
        with self._changed:
            self._poll_asked = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End the thread and close the connections; waiting callers get a TransportError."""
        self._stopping.set()
        self._follower.cancel()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._pause()
                self._read_safely()
        finally:
            self._follower.close()

    def _pause(self) -> None:
        with self._changed:
            if self._waiters:
                self._changed.wait_for(self._stopping.is_set, LOOK_SECONDS)
            else:
                self._changed.wait_for(self._is_called, POLL_SECONDS)
            self._poll_asked = False

    def _is_called(self) -> bool:
        return bool(self._waiters) or self._poll_asked or self._stopping.is_set()

    def _read_safely(self) -> None:
        try:
            self._read()
        except MirrorError as error:
            self._complain(str(error))
        except Exception as error:  # a record that cannot be handled must not end the thread
            log.exception("[%s] reading failed", self.topic)
            self._complain(f"{type(error).__name__}: {error}")

    def _complain(self, text: str) -> None:
        if text != self.last_error and not self._stopping.is_set():
            self.last_error = text
            log.warning("[%s] %s; trying again", self.topic, text)
        self._stopping.wait(RETRY_SECONDS)

    def _read(self) -> None:
        with self._changed:
            self._begun += 1
            number = self._begun
        records = self._follower.catch_up(READ_SECONDS)
        if records or self._follower.restarted:
            self._reader.on_records(records, restarted=self._follower.restarted)
        with self._changed:
            self.last_error = ""
            self._completed = number
            self._changed.notify_all()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
