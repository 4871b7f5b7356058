"""Servers on a port of this machine, which show a certificate as a SuperLink does, or something else."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.threads import join


@contextmanager
def answering(greet: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server that greets each connection, one after the other; the block's value is its ``HOST:PORT``."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):  # of a listener that was shut
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        greet(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            join(thread)


@contextmanager
def showing(certificates: Path) -> Iterator[str]:
    """A server that shows a folder's certificate to everybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")

    def greet(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as greeted:
            greeted.recv(1)

    with answering(greet) as address:
        yield address


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log no request."""


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False

    def handle_error(self, *_: object) -> None:
        """A spoiled record is no error of this server's."""


@contextmanager
def polled(certificates: Path) -> Iterator[int]:
    """A server over TLS that answers every POST with nothing; the block's value is its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    with _Server(("127.0.0.1", 0), _Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            join(thread)
