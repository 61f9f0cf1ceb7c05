"""Chromium without a window, and the server of its pages."""

from __future__ import annotations

import http.server
import json
import queue
import shutil
import subprocess
import tempfile
import threading
from typing import Any

from .waiting import PATIENCE

START_PATIENCE = 6 * PATIENCE
"""Seconds for a browser that starts on a busy machine."""


class Pages:
    """Serves one page at `/` on loopback, and collects what it posts to `/result` as JSON."""

    def __init__(self, page: str) -> None:
        self.results: queue.Queue[Any] = queue.Queue()
        results = self.results

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = page.encode() if self.path.split("?")[0] == "/" else b""
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204)
                self.end_headers()
                results.put(json.loads(body))

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def origin(self) -> str:
        return "http://127.0.0.1:{}".format(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def visit(pages: Pages, query: str) -> Any:
    """Opens the page in Chromium, and returns what it posts."""
    profile = tempfile.mkdtemp(prefix="hermes-browser-")
    process = subprocess.Popen(
        [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
            f"--user-data-dir={profile}", f"{pages.origin}/?{query}",
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        return pages.results.get(timeout=START_PATIENCE)
    except queue.Empty:
        process.kill()
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace")[-2_000:]
        raise AssertionError(f"the page posted nothing in {START_PATIENCE:g} s; {said}") from None
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(profile, ignore_errors=True)
