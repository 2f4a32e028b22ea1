"""What all confluent-kafka clients of the demo have in common."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka.admin import AdminClient

ANSWER_SECONDS = 20.0


def client_settings(bootstrap: str, **settings: object) -> dict[str, object]:
    """Settings of a client, with `_` for `.`."""
    options = {name.replace("_", "."): value for name, value in settings.items()}
    # librdkafka writes to stderr by itself; what concerns us comes as an exception anyway.
    return {"bootstrap.servers": bootstrap, "log_level": 2, **options}


def admin_client(bootstrap: str) -> AdminClient:
    """An admin client. Keep it until its futures are done: they are cancelled with it."""
    return AdminClient(client_settings(bootstrap))


def wait_for_all(futures: Mapping[Any, Future[Any]]) -> None:
    """Return when every request has a response; raises the first error."""
    for future in futures.values():
        future.result(ANSWER_SECONDS)
