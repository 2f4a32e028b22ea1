"""What genuine MirrorMaker 2 4.3.1 exports, served over HTTP as its JMX exporter would.

`genuine_mm2.metrics` is what a scrape of a running mirror `a->b` returned, without help texts and
reduced to the families that dashboards ask for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

GENUINE = Path(__file__).with_name("genuine_mm2.metrics")


class _Replay(BaseHTTPRequestHandler):
    """Gives `text` at every path."""

    text = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the standard library writes each request to stderr."""


@contextmanager
def replay(text: str) -> Iterator[str]:
    """An HTTP server; gives its address host:port."""
    handler = type("Handler", (_Replay,), {"text": text.encode()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, name="replay")
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
