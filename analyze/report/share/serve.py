"""One file for one program in the browser of this machine: served on the loopback interface, once.

Source: Perfetto, docs/visualization/deep-linking-to-perfetto-ui.md and tools/open_trace_in_ui. Its page may ask port
9001 of this machine, and no other one.
"""

from __future__ import annotations

import shutil
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from msgspec import Struct

from analyze.errors import OutputError

VIEWER = "https://ui.perfetto.dev"
ADDRESS, PORT = "127.0.0.1", 9001
_HOSTS = (ADDRESS, "localhost")  # a name that leads here without being one of these is an attack
_IDLE_S = 30  # a connection on which nothing comes: browsers open some in advance
_WAIT_S = 0.5


class Offer(Struct, frozen=True):
    """What is served.

    Attributes:
        path: the file.
        name: its name in the address; letters, digits and the like.
        window: the time to show at first, in nanoseconds on the file's own clock; None for all.
    """

    path: Path
    name: str
    window: tuple[int, int] | None = None

    def link(self, port: int = PORT) -> str:
        """The address that opens the file in the viewer."""
        shown = ""
        if self.window is not None and self.window[0] >= 0:
            shown = f"&visStart={self.window[0]}&visEnd={self.window[1]}"
        return f"{VIEWER}/#!/?url=http://{ADDRESS}:{port}/{quote(self.name)}{shown}"


class OneFile:
    """A server that delivers one file and is done."""

    def __init__(self, offer: Offer, port: int = PORT) -> None:
        """Listen.

        Raises:
            OutputError: another program listens there.
        """
        self.done = threading.Event()
        try:
            self._server = ThreadingHTTPServer((ADDRESS, port), _handler(offer, self.done))
        except OSError as error:
            raise OutputError(
                f"Port {port} of this machine is not free: {error.strerror or error}.",
                "End the program that uses it (another `analyze open`, or trace_processor), or drop the file that "
                "`analyze export` writes on ui.perfetto.dev.",
            ) from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> OneFile:
        """Serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether the file was delivered whole, which is waited for."""
        waited = 0.0
        while not self.done.wait(_WAIT_S):  # in short stretches, so that Ctrl-C is heard everywhere
            waited += _WAIT_S
            if seconds is not None and waited >= seconds:
                return False
        return True


def _handler(offer: Offer, done: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _IDLE_S
        server_version, sys_version = "gpuledger", ""

        def do_GET(self) -> None:
            """Deliver the file."""
            if not self._begin():
                return
            with offer.path.open("rb") as file:
                shutil.copyfileobj(file, self.wfile, 1 << 20)
            self.wfile.flush()
            done.set()

        def do_HEAD(self) -> None:
            """Say how long it is."""
            self._begin()

        def _begin(self) -> bool:
            refused = self._refused()
            if refused is not None:
                self.send_error(refused)
                return False
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(offer.path.stat().st_size))
            self.send_header("Access-Control-Allow-Origin", VIEWER)
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            return True

        def _refused(self) -> HTTPStatus | None:
            if self.headers.get("Host") not in tuple(f"{host}:{self.connection.getsockname()[1]}" for host in _HOSTS):
                return HTTPStatus.FORBIDDEN
            if self.headers.get("Origin", VIEWER) != VIEWER:
                return HTTPStatus.FORBIDDEN
            return None if self.path == f"/{quote(offer.name)}" else HTTPStatus.NOT_FOUND

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Say nothing."""

    return Handler
