"""Settings and waiting of the demo's confluent-kafka clients."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka.admin import AdminClient

RESPONSE_SECONDS = 20.0


def client_settings(bootstrap: str, **settings: object) -> dict[str, object]:
    """Settings of a client, with `_` for `.`."""
    options = {name.replace("_", "."): value for name, value in settings.items()}
    # librdkafka writes to stderr by itself; errors that matter here are also raised.
    return {"bootstrap.servers": bootstrap, "log_level": 2, **options}


def admin_client(bootstrap: str) -> AdminClient:
    """An admin client. Keep it until its futures are done: they are cancelled with it."""
    return AdminClient(client_settings(bootstrap))


def wait_for_all(futures: Mapping[Any, Future[Any]]) -> None:
    """Return when every request has a response; raises the first error."""
    for future in futures.values():
        future.result(RESPONSE_SECONDS)
