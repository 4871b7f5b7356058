"""``http.toml``: the leader's address, the origins of browsers, the run's closing time, and the limits.

None of it is secret or in a digest; devices trust only their page's pinned values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any
from urllib.parse import urlsplit

import tomli_w

from privstats.errors import LocalProtocolError
from privstats.extend.support import read_bounded, toml_tables

FILE = "http.toml"
_VERSION = 1
GRACE = timedelta(days=14)
"""The least time between the close of a run and the end of its box keys: a helper may be away that long."""
_MOST = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Limits:
    """Limits on the cost of an unauthenticated host.

    Attributes:
        connections: per address without a good signature; a further one replaces one of them.
        bad_signatures: per second and address; a further one ends its connection.
        in_flight_mib: all bodies being received, in MiB.
        proxies: with a trusted ``Forwarded`` header.
    """

    connections: int = 2048
    bad_signatures: int = 20
    in_flight_mib: int = 256
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("connections", "bad_signatures", "in_flight_mib"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
                raise LocalProtocolError(f"{FILE}: limits.{name} must be an integer, 1 to {_MOST}")
        if not isinstance(self.proxies, tuple) or not all(map(_is_address, self.proxies)):
            raise LocalProtocolError(f'{FILE}: limits.proxies must be a list of addresses, like ["127.0.0.1"]')


@dataclass(frozen=True)
class Settings:
    """The contents of the file.

    Attributes:
        address: the leader's, ``https://HOST[:PORT]``; ``http://`` for a loopback address only.
        closes: when reports close.
        until: when the run's box keys end, at least 14 days after ``closes``.
        origins: of pages that browsers may send from; ``("*",)`` for all.
    """

    address: str
    closes: datetime
    until: datetime
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not isinstance(self.address, str) or not _is_origin(self.address):
            raise LocalProtocolError(
                f"{FILE}: address must be https://HOST[:PORT], without a path; http:// for a loopback address only"
            )
        for name in ("closes", "until"):
            value = getattr(self, name)
            if not isinstance(value, datetime) or value.tzinfo is None:
                raise LocalProtocolError(f"{FILE}: {name} must be a time with an offset, like 2027-03-01T12:00:00Z")
        if self.until - self.closes < GRACE:
            raise LocalProtocolError(
                f"{FILE}: until must be {GRACE.days} days after closes at least: when a box key ends before its helper "
                "has answered, every answer is lost"
            )
        named = isinstance(self.origins, tuple) and all(isinstance(each, str) for each in self.origins)
        if not named or not (self.origins == ("*",) or all(map(_is_origin, self.origins))):
            raise LocalProtocolError(f'{FILE}: origins must be a list of https://HOST[:PORT], or ["*"] for every page')
        if _normal(self.address) in map(_normal, self.origins):
            raise LocalProtocolError(
                f"{FILE}: the page has the leader's address, and the server of the page reads every answer: serve it "
                "from an address of another party"
            )

    @classmethod
    def read(cls, home: str | os.PathLike[str]) -> Settings:
        """Read a folder's file; raises ``LocalProtocolError``."""
        path = Path(home) / FILE
        data = read_bounded(path, LocalProtocolError, "privstats http new")
        try:
            tables = toml_tables(data.decode())
        except (TOMLDecodeError, UnicodeDecodeError) as error:
            raise LocalProtocolError(f"{path} is not TOML: {error}") from None
        version = tables.pop("version", None)
        if version != _VERSION or isinstance(version, bool):
            raise LocalProtocolError(f"{path}: version must be {_VERSION}, got {version!r:.20}")
        limits = _checked("limits", tables.pop("limits", {}), Limits)
        return cls(**_checked("the file", tables, cls), limits=Limits(**limits))

    def to_toml(self) -> str:
        """Return the text of the file."""
        table = {"version": _VERSION, "address": self.address, "closes": self.closes, "until": self.until}
        limits = {name: value for name, value in asdict(self.limits).items() if value != getattr(Limits(), name)}
        return tomli_w.dumps(
            table
            | ({"origins": list(self.origins)} if self.origins else {})
            | ({"limits": {**limits, **_listed(limits)}} if limits else {})
        )

    @property
    def box_keys_end(self) -> int:
        """:attr:`until` in seconds since 1970."""
        return int(self.until.astimezone(UTC).timestamp())


def _listed(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {"proxies": list(limits["proxies"])} if "proxies" in limits else {}


def _checked(where: str, table: object, kind: type[Any]) -> dict[str, Any]:
    known = {each.name: each for each in fields(kind) if each.name != "limits"}
    if not isinstance(table, dict):
        raise LocalProtocolError(f"{FILE}: {where} must be a table: write [{where}]")
    unknown = sorted(table.keys() - known.keys())
    if unknown:
        raise LocalProtocolError(f"{FILE}: {where} has unknown keys {', '.join(map(repr, unknown))}; remove them")
    missing = sorted({"address", "closes", "until"} & known.keys() - table.keys())
    if missing:
        raise LocalProtocolError(f"{FILE}: {where} lacks {', '.join(missing)}; `privstats http new` writes a whole one")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    bare = f"{parts.scheme}://{parts.netloc}" == text and "@" not in parts.netloc and text == text.lower()
    host = parts.netloc if port is None else parts.netloc.rpartition(":")[0]
    return bare and bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def _normal(origin: str) -> str:
    scheme, _, rest = origin.partition("://")
    return f"{scheme}://{rest.removesuffix({'https': ':443', 'http': ':80'}.get(scheme, ' '))}"


def _is_address(text: object) -> bool:
    try:
        ip_address(str(text))
    except ValueError:
        return False
    return isinstance(text, str)
