"""Workers as users have them: processes of `sparkmirror worker`, asked over HTTP."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from sparkmirror.embedded.process import Child, log_tail, start_child
from tests.clusters import wait_for

START_SECONDS = 60.0
RUNNING_SECONDS = 60.0
STOP_SECONDS = 30.0
PROGRAM = (sys.executable, "-m", "sparkmirror.cli.main", "worker")
_REQUEST_SECONDS = 60.0
_READY = re.compile(r"is ready at http://(\S+):(\d+)/")
_LOG_LINES = 30


class WorkerProcess:
    """One worker; started at once, `wait_ready` before it is asked.

    `words` follow the command; `variables` are added to the environment of `program`.
    """

    def __init__(
        self,
        log_path: Path,
        *words: str | Path,
        variables: Mapping[str, str] | None = None,
        program: Sequence[str | Path] = PROGRAM,
    ) -> None:
        self.log_path = log_path
        self._child: Child = start_child([*program, *words], log_path, environment=variables)
        self.worker_id = ""
        self._http = httpx.Client(timeout=_REQUEST_SECONDS, trust_env=False)

    @property
    def url(self) -> str:
        """Where this machine reaches it."""
        return f"http://127.0.0.1:{self.worker_id.rpartition(':')[2]}"

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self._child.pid)

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait_ready(self) -> None:
        """Return once it says that it is ready, and is healthy."""
        wait_for(self._is_ready, within=START_SECONDS, describe=self._describe)
        wait_for(
            lambda: self.ask("GET", "/health").is_success,
            within=START_SECONDS,
            describe=self._describe,
        )

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """What curl does."""
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        return self._http.request(method, self.url + path, content=content, headers=headers)

    def get(self, path: str) -> Any:
        """The JSON at `path`."""
        response = self.ask("GET", path)
        assert response.status_code == 200, response.text
        return response.json()

    def wait_running(
        self, connector: str, tasks: int, on: WorkerProcess, others: Sequence[WorkerProcess] = ()
    ) -> dict[str, Any]:
        """Wait until the connector is RUNNING on that worker; its status.

        So many tasks shall be RUNNING, in equal shares on it and on the `others`.
        """
        sharing = {worker.worker_id for worker in (on, *others)}

        def is_shared() -> bool:
            first, *rest = self._states(connector) or [("", "")]
            counts = Counter(worker for _, worker in rest)
            return (
                first == ("RUNNING", on.worker_id)
                and [state for state, _ in rest] == ["RUNNING"] * tasks
                and counts.keys() <= sharing
                and len(counts) == min(tasks, len(sharing))
                and max(counts.values()) - min(counts.values()) <= 1
            )

        wait_for(
            is_shared,
            within=RUNNING_SECONDS,
            describe=lambda: f"{connector} {self._states(connector)}; {self._describe()}",
        )
        status: dict[str, Any] = self.get(f"/connectors/{connector}/status")
        return status

    def stop(self) -> None:
        """SIGTERM, and an orderly end."""
        self._http.close()
        if self._child.exit_code is None:
            self._child.stop(STOP_SECONDS)
            assert self._child.exit_code == 0, self._describe()

    def kill(self) -> None:
        """End it if it has not ended."""
        self._http.close()
        self._child.kill()

    def _states(self, connector: str) -> list[tuple[str, str]]:
        response = self.ask("GET", f"/connectors/{connector}/status")
        if response.status_code != 200:
            return []
        status = response.json()
        parts = (status["connector"], *status["tasks"])
        return [(part["state"], part["worker_id"]) for part in parts]

    def _is_ready(self) -> bool:
        assert self._child.exit_code is None, self._describe()
        if found := _READY.search(self.log):
            self.worker_id = f"{found[1]}:{found[2]}"
        return bool(found)

    def _describe(self) -> str:
        return f"the worker; its log ends:\n{log_tail(self.log_path, _LOG_LINES)}"


@contextmanager
def run_workers(folder: Path, files: Sequence[Path]) -> Iterator[list[WorkerProcess]]:
    """A worker for each of the files, started one after the other: the first leads."""
    with ExitStack() as stack:
        workers = []
        for at, file in enumerate(files):
            worker = WorkerProcess(folder / f"worker-{at}.log", file)
            stack.callback(worker.kill)
            worker.wait_ready()
            workers.append(worker)
        yield workers
        # Followers first: nobody has to take over.
        for worker in reversed(workers):
            worker.stop()


@contextmanager
def run_worker(folder: Path, variables: Mapping[str, str]) -> Iterator[WorkerProcess]:
    """A worker without a file."""
    worker = WorkerProcess(folder / "worker.log", variables=variables)
    try:
        worker.wait_ready()
        yield worker
        worker.stop()
    finally:
        worker.kill()
