"""Compare the SuperLink's clock with this machine's: Flower refuses a signed request that is too old or too new."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path

from privstats.engines.flower.addresses import host_and_port
from privstats.engines.flower.certificate_checks import trusting
from privstats.errors import PrivstatsError

_SECONDS = 5.0
_MOST_BYTES = 1 << 14
_SAME_SECONDS = 3.0
"""A date is in whole seconds, and a request may take one or two."""
_END = b"\r\n\r\n"


def clock_difference(superlink: str, authority: Path) -> float | None:
    """Return by how many seconds the server's clock is ahead of this machine's; None where it shows no date.

    The date is in the headers of any answer over TLS.
    """
    host, port = host_and_port(superlink)
    with (
        suppress(OSError, ValueError, OverflowError, PrivstatsError),
        socket.create_connection((host, port), _SECONDS) as plain,
        trusting(authority).wrap_socket(plain, server_hostname=host) as connection,
    ):
        connection.sendall(f"HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("ascii"))
        return _date_in(_headers(connection)) - time.time()
    return None


def _headers(connection: socket.socket) -> bytes:
    data, until = b"", time.monotonic() + _SECONDS
    while _END not in data and len(data) < _MOST_BYTES and time.monotonic() < until:
        piece = connection.recv(_MOST_BYTES)
        if not piece:
            break
        data += piece
    return data


def _date_in(headers: bytes) -> float:
    """Return the time in a ``Date`` header; ValueError without one."""
    fields = (line.partition(":") for line in headers.decode("latin-1").split("\r\n")[1:])
    value = next((value for name, _, value in fields if name.strip().lower() == "date"), "")
    return parsedate_to_datetime(value.strip()).timestamp()


def clock_sentence(superlink: str, difference: float | None) -> str:
    """Return the sentence for the operator of a node that the SuperLink turned away without a reason."""
    if difference is None or abs(difference) <= _SAME_SECONDS:
        agrees = "" if difference is None else ", and its clock agrees with this machine's"
        return f"{superlink} ended our connection without a reason{agrees}"
    which = "behind" if difference < 0 else "ahead of"
    return (
        f"{superlink} ended our connection, and its clock is {_span(abs(difference))} {which} this machine's: set this "
        "machine's clock if it is wrong, else ask the coordinator to set the server's"
    )


def _span(seconds: float) -> str:
    for name, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
