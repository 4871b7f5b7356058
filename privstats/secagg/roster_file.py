"""The file form of a roster: TOML with keys in hex, and the digits that people read to each other.

Texts and plain values, no roster: what the values mean, and which of them fit together, ``roster`` judges. Under it.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import tomli_w

from privstats.errors import LocalProtocolError
from privstats.files import read_whole

__all__ = ["FORMAT_VERSION", "Listed", "check_names", "fingerprint", "parsed", "read_text", "written"]

FORMAT_VERSION = 1
_MOST_BYTES = 1 << 26
_LONGEST_NAME = 64
_DIGITS, _GROUP = 30, 5
_WRITER = "privstats roster make"


@dataclass(frozen=True)
class Listed:
    """What a roster's file says, with keys as bytes; ``label`` and ``counter`` only where the run is numbered."""

    publics: tuple[bytes, ...]
    server: bytes
    run: bytes
    names: tuple[str, ...]
    label: str
    counter: int | None


def written(listed: Listed) -> str:
    """The text of a roster's file."""
    run: dict[str, Any] = {"run": listed.run.hex()}
    if listed.counter is not None:
        run = {"label": listed.label, "counter": listed.counter}
    tables = [{"version": FORMAT_VERSION, **run, "server": listed.server.hex()}]
    tables += [{"key": key.hex()} for key in listed.publics]
    for client, name in zip(tables[1:], listed.names, strict=False):
        client["name"] = name
    return "\n[[client]]\n".join(map(tomli_w.dumps, tables))


def parsed(text: str) -> Listed:
    """What the text of a roster's file says.

    Raises:
        LocalProtocolError: not TOML, another version, or a key that is missing, unknown or of the wrong kind.
    """
    tables = _tables(text)
    numbered = "label" in tables or "counter" in tables
    wanted = {"version", "server", "client"} | ({"label", "counter"} if numbered else {"run"})
    _check_keys("the roster", tables, wanted)
    clients = tables["client"]
    if not isinstance(clients, list) or not all(isinstance(client, dict) for client in clients):
        raise LocalProtocolError("client must be a list of tables: write [[client]] over each client's key and name")
    named = any("name" in client for client in clients)
    for place, client in enumerate(clients):
        _check_keys(f"client {place}", client, {"name", "key"} if named else {"key"})
    counter = tables["counter"] if numbered else None
    if numbered and (isinstance(counter, bool) or not isinstance(counter, int)):
        raise LocalProtocolError(f"counter must be a whole number, got {type(counter).__name__}")
    return Listed(
        tuple(_hex(f"the key of client {place}", client["key"]) for place, client in enumerate(clients)),
        _hex("server", tables["server"]),
        b"" if numbered else _hex("run", tables["run"]),
        tuple(client["name"] for client in clients) if named else (),
        tables["label"] if numbered else "",
        counter,
    )


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a roster's file, UTF-8; a byte-order mark is left out.

    Raises:
        LocalProtocolError: the path is none, or the file cannot be read, is too long, or is no UTF-8 text.
    """
    if not isinstance(path, str | os.PathLike):
        raise LocalProtocolError(f"Roster.load takes the path of a roster's file, got {type(path).__name__}")
    data = read_whole(path, LocalProtocolError, _WRITER)
    if len(data) > _MOST_BYTES:
        raise LocalProtocolError(f"{path} has {len(data)} bytes, which no roster has; give a file of {_WRITER}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LocalProtocolError(f"{path} is not UTF-8 text; give a file written by {_WRITER}") from None


def check_names(names: Iterable[str], clients: int) -> tuple[str, ...]:
    """``names`` as a tuple, after all that people may be shown has been checked.

    Raises:
        LocalProtocolError: not one for each client (none at all will do), not 1 to 64 printable characters, or twice.
    """
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise LocalProtocolError(f"names must be a list of texts, one per client, got {type(names).__name__}")
    called = tuple(names)
    for name in called:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise LocalProtocolError(f"a client's name has 1 to {_LONGEST_NAME} printable characters; choose another")
    if called and len(called) != clients:
        raise LocalProtocolError(
            f"the roster has {clients} clients and {len(called)} names; give one name each, or none"
        )
    if len(set(called)) != len(called):
        raise LocalProtocolError("a roster must not give two clients one name: nobody could tell them apart")
    return called


def fingerprint(digest: bytes) -> str:
    """Six groups of five decimal digits that stand for 32 bytes: 32 bytes of scrypt's output, modulo 10^30.

    Guarantee: the digits keep 99 bits, so a person who chooses both of two rosters finds a pair with one fingerprint
    after about 2^50 attempts, and each attempt is one scrypt (N = 2^14, r = 8, p = 1; RFC 7914), which takes 16 MiB and
    tens of milliseconds; a roster that goes with a *given* fingerprint takes 2^99.
    """
    stretched = hashlib.scrypt(digest, salt=b"privstats roster fingerprint", n=1 << 14, r=8, p=1, dklen=32)
    digits = f"{int.from_bytes(stretched, 'big') % 10**_DIGITS:0{_DIGITS}}"
    return " ".join(digits[place : place + _GROUP] for place in range(0, _DIGITS, _GROUP))


def _tables(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise LocalProtocolError(f"Roster.from_toml takes the text of a roster, got {type(text).__name__}")
    try:
        tables = tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise LocalProtocolError(f"the roster is not TOML: {error}") from None
    version = tables.get("version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise LocalProtocolError(
            f"the roster's version must be {FORMAT_VERSION}, got {version!r:.20}; write it anew with `{_WRITER}`"
        )
    return tables


def _check_keys(where: str, table: Mapping[str, Any], wanted: set[str]) -> None:
    missing, unknown = sorted(wanted - set(table)), sorted(set(table) - wanted)
    if missing:
        raise LocalProtocolError(f"{where} lacks {', '.join(missing)}; `{_WRITER}` writes a whole one")
    if unknown:
        raise LocalProtocolError(f"{where} has unknown keys {', '.join(map(repr, unknown))}; remove them")


def _hex(what: str, value: object) -> bytes:
    try:
        if isinstance(value, str):
            return bytes.fromhex(value)
    except ValueError:
        pass
    raise LocalProtocolError(f"{what} must be a text of hexadecimal digits; copy what its owner's identity shows")
