"""A client's HTTP connection, with limits of time and size."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from privstats.errors import LocalProtocolError
from privstats.extend.support import from_json

_SECONDS = 60.0
_MOST_PROBLEM = 64 << 10
_MOST_AFTER, _MOST_DIGITS = 3600.0, 9
MOST_MANIFEST = 16 << 20
"""The most bytes that are read of a manifest."""


class UnreachableError(LocalProtocolError):
    """The address refused or broke a connection: retry later."""


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The code of a problem's document; empty without one."""
        return str(self._problem.get("code", ""))

    @property
    def retry(self) -> bool:
        """Whether a retry may succeed."""
        return bool(self._problem.get("retry", self.status in (429, 502, 503, 504)))

    @property
    def after(self) -> float:
        """Seconds of ``Retry-After``, at most an hour; 0 without one."""
        text = self.headers.get("retry-after", "")
        if not (text.isascii() and text.isdecimal()):
            return 0.0
        return min(float(text[:_MOST_DIGITS]), _MOST_AFTER)

    @property
    def _problem(self) -> Mapping[str, Any]:
        if not self.headers.get("content-type", "").startswith("application/problem+json"):
            return {}
        with suppress(msgspec.DecodeError):
            return from_json(self.body, dict)
        return {}


class Dial:
    """A connection to one address.

    Args:
        address: ``https://HOST[:PORT]``.
        root_certificates: a file; the system's when None.
        seconds: limit on every wait for the network.
    """

    def __init__(self, address: str, root_certificates: str | None = None, seconds: float = _SECONDS) -> None:
        parts = urlsplit(address)
        self._host = parts.netloc
        self._seconds = seconds
        secure = parts.scheme == "https"
        self._tls = ssl.create_default_context(cafile=root_certificates) if secure else None
        self._connection: HTTPConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        most: int = _MOST_PROBLEM,
    ) -> Reply:
        """Send a request, read at most ``most`` bytes; raises :class:`UnreachableError`."""
        named = headers or {}
        reused = self._connection is not None
        try:
            return self._exchanged(method, path, body, most, named)
        except (OSError, HTTPException) as error:
            self.close()
            if not reused:
                raise UnreachableError(f"{self._host} gave no answer ({_why(error)})") from None
        try:  # an idle connection may have ended
            return self._exchanged(method, path, body, most, named)
        except (OSError, HTTPException) as error:
            self.close()
            raise UnreachableError(f"{self._host} gave no answer ({_why(error)})") from None

    def _exchanged(self, method: str, path: str, body: bytes, most: int, headers: Mapping[str, str]) -> Reply:
        if self._connection is None:
            self._connection = self._opened()
        self._connection.request(method, path, body or None, dict(headers))
        response = self._connection.getresponse()
        data = response.read(max(most, _MOST_PROBLEM) + 1)
        if len(data) > max(most, _MOST_PROBLEM):
            raise HTTPException("the answer is larger than such an answer can be")
        if response.will_close:
            self.close()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, data)

    def _opened(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, timeout=self._seconds)
        return HTTPSConnection(self._host, timeout=self._seconds, context=self._tls)

    def close(self) -> None:
        """Close the connection until the next request."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
