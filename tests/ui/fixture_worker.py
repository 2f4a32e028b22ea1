"""A worker for the page alone: its files, and answers of a situation instead of a mirror."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.ui.situations import Json, Situation

UI = Path(__file__).parents[2] / "src" / "sparkmirror" / "ui"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain",
}
# The same as the worker's (rest, static files): no script or style may stand in the page itself.
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
WORST_FIRST = ("failed", "stuck", "unknown", "paused", "catching up", "live", "idle")
STATES_AFTER = {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}


class FixtureWorker:
    """What the page talks to. Failures are switched on while the page looks on."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.is_gone = False  # every connection is closed without an answer
        self.is_silent = False  # no stream, but answers
        self.broken: dict[str, tuple[int, str]] = {}  # endpoint -> status and message
        self.requests: list[tuple[str, str, Any]] = []  # what changes something
        self.asked: list[str] = []
        self.seconds = 0
        self.hold = threading.Event()

    def changes(self) -> list[tuple[str, str]]:
        """The requests that asked for a change."""
        return [(method, path) for method, path, _ in self.requests]

    def answer(self, endpoint: str, query: dict[str, str]) -> Json:
        """What `GET /sparkmirror/<endpoint>` answers."""
        whole = self.situation.answers[endpoint]
        answer = {**whole, "now_ms": self.situation.overview["now_ms"] + 1000 * self.seconds}
        if endpoint in ("topics", "groups", "unmirrored"):
            return {**answer, **self._listed(endpoint, whole, query)}
        if endpoint == "flow":
            name = query["flow"]
            answer["flow"] = next(f for f in self.situation.flows if f["flow"] == name)
        if endpoint == "connector":
            answer["connector"] = self.situation.connector(query["name"])
        if endpoint == "failover":
            answer.update(source=query["source"], target=query["target"])
        if endpoint == "events" and query.get("q"):
            answer["rows"] = [r for r in whole["rows"] if query["q"] in json.dumps(r)]
        if endpoint in ("connectors", "events") and query.get("flow"):
            answer["rows"] = [r for r in answer["rows"] if r["flow"] == query["flow"]]
        return answer

    def _listed(self, endpoint: str, whole: Json, query: dict[str, str]) -> Json:
        name = "group" if endpoint == "groups" else "topic"
        rows = [row for row in whole["rows"] if query.get("flow", row["flow"]) == row["flow"]]
        rows = [row for row in rows if query.get("q", "") in row[name]]
        state = query.get("state", "all")
        matching = [row for row in rows if self._is_in(row, state)]
        if endpoint == "topics":
            matching.sort(key=lambda row: WORST_FIRST.index(row["state"]))
            if query.get("sort") == "topic":
                matching.sort(key=lambda row: str(row["topic"]), reverse=query["dir"] == "desc")
        first, most = int(query.get("offset", "0")), int(query.get("limit", "200"))
        counts = dict(whole["counts"])
        if endpoint == "topics":
            counts = {state: sum(self._is_in(r, state) for r in rows) for state in counts}
        total = len(rows) if endpoint != "unmirrored" else whole["total"]
        part = {"rows": matching[first : first + most], "total": total, "matching": len(matching)}
        return {**part, "counts": counts, "offset": first, "limit": most}

    @staticmethod
    def _is_in(row: Json, state: str) -> bool:
        special = {
            "all": True,
            "problem": row.get("state") in ("failed", "stuck"),
            "drift": bool(row.get("differences")),
            "not synced": row.get("state") in ("not synced", "partly synced"),
            "reread": bool(row.get("reread_records")),
            "rule": row.get("translation") not in ("exact", None),
        }
        return special.get(state, state in (row.get("state"), row.get("verdict")))

    def change(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Connect's own REST, as far as the page uses it."""
        self.requests.append((method, path, body))
        name, _, action = unquote(urlsplit(path).path).removeprefix("/connectors/").partition("/")
        row = self.situation.connector(name)
        if action in STATES_AFTER:
            row["state"] = STATES_AFTER[action]
            for task in row["tasks"]:
                task["state"] = row["state"]
            if action == "stop":
                row["tasks"] = []
        elif action.endswith("restart"):
            for task in row["tasks"]:
                task.update(state="RUNNING", reason="", remedy=None, trace="")
        elif action == "offsets" and method == "PATCH":
            changed = {json.dumps(each["partition"]): each["offset"] for each in body["offsets"]}
            for each in self.situation.offsets:
                key = json.dumps(each["partition"])
                if key in changed:
                    each["offset"] = changed[key]
        elif action == "offsets":
            self.situation.offsets.clear()
        self.situation.bump("connectors")
        return (204, None) if action in STATES_AFTER else (200, {"message": "done"})


def _handler(worker: FixtureWorker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Requests of the page."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self._is_dropped():
                return
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            if parts.path.startswith("/ui/"):
                self._file(parts.path.removeprefix("/ui/") or "index.html")
            elif parts.path == "/sparkmirror/stream":
                self._stream()
            elif parts.path.endswith("/offsets"):
                self._json(200, {"offsets": worker.situation.offsets})
            else:
                self._view(parts.path.removeprefix("/sparkmirror/"), query)

        def _view(self, endpoint: str, query: dict[str, str]) -> None:
            worker.asked.append(self.path)
            if endpoint in worker.broken:
                status, message = worker.broken[endpoint]
                self._json(status, {"error_code": status, "message": message})
            elif endpoint in worker.situation.answers:
                self._json(200, worker.answer(endpoint, query))
            else:
                self._json(404, {"error_code": 404, "message": f"no {endpoint}"})

        def _change(self) -> None:
            if self._is_dropped():
                return
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            if "change" in worker.broken:
                status, message = worker.broken["change"]
                self._json(status, {"error_code": status, "message": message})
                return
            self._json(*worker.change(self.command, self.path, body))

        do_PUT = do_POST = do_PATCH = do_DELETE = _change

        def _is_dropped(self) -> bool:
            if worker.is_gone:
                self.close_connection = True
            return worker.is_gone

        def _json(self, status: int, data: Any) -> None:
            content = b"" if data is None else json.dumps(data).encode()
            self._send(status, "application/json", content)

        def _file(self, name: str) -> None:
            path = (UI / name).resolve()
            if not path.is_relative_to(UI) or not path.is_file():
                self._json(404, {"error_code": 404, "message": "no such file"})
                return
            self._send(200, TYPES[path.suffix], path.read_bytes())

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if status != 204:
                self.wfile.write(content)

        def _stream(self) -> None:
            if worker.is_silent:
                self._json(503, {"error_code": 503, "message": "too many streams"})
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.close_connection = True
            try:
                while not (worker.is_silent or worker.is_gone or worker.hold.is_set()):
                    data = json.dumps(worker.answer("overview", {}))
                    self.wfile.write(f"event: overview\ndata: {data}\n\n".encode())
                    time.sleep(0.25)
            except (BrokenPipeError, ConnectionResetError):
                return

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing: a page asks often."""

    return Handler


@contextmanager
def served(situation: Situation) -> Iterator[tuple[FixtureWorker, str]]:
    """A worker in that situation, and the address of its page."""
    worker = FixtureWorker(situation)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(worker))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield worker, f"http://127.0.0.1:{server.server_port}/ui/"
    finally:
        worker.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()


Serve = Callable[[Situation], tuple[FixtureWorker, str]]
