"""Servers on a port of this machine, which show a certificate as a SuperLink does, or something else."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
