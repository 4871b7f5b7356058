"""The two forms of a roster's file: TOML with keys in hex, and bytes for hundreds of thousands of clients.

The second is ``magic || u32 length of the head || head || keys || names || SHA-256 of all before``. The head is the
TOML with the number of clients in place of their tables; a key has 32 bytes; names are lines of UTF-8.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any

import tomli_w

from privstats import domains
from privstats.errors import LocalProtocolError
from privstats.files.atomic import atomic_write, read_bounded
from privstats.files.text import toml_tables
from privstats.secagg.wire import HASH_BYTES

FORMAT_VERSION = 1
_LONGEST_NAME = 64
# One client's table has at most a key in hex, a name of any characters, and their TOML.
_CLIENT_BYTES = 128 + 4 * _LONGEST_NAME
_MAX_BYTES = _CLIENT_BYTES << 24  # for the maximum number of clients of any protocol
_WRITER = "privstats roster make"
_KEY_BYTES, _LENGTH_BYTES, _MAX_HEAD = 32, 4, 4096


@dataclass(frozen=True)
class Listed:
    """A roster file's fields; ``label`` and ``counter`` only if the run is numbered."""

    publics: tuple[bytes, ...]
    server: bytes
    run: bytes
    names: tuple[str, ...]
    label: str
    counter: int | None


def written(listed: Listed) -> str:
    """Return a file's text."""
    tables = [_head(listed)]
    tables += [{"key": key.hex()} for key in listed.publics]
    for client, name in zip(tables[1:], listed.names, strict=False):
        client["name"] = name
    return "\n[[client]]\n".join(map(tomli_w.dumps, tables))


def parsed(text: str) -> Listed:
    """Parse a text, or raise ``LocalProtocolError``."""
    tables = _tables(text)
    _check_head(tables, "client")
    clients = tables["client"]
    if not isinstance(clients, list) or not all(isinstance(client, dict) for client in clients):
        raise LocalProtocolError("client must be a list of tables: write [[client]] over each client's key and name")
    named = any("name" in client for client in clients)
    for place, client in enumerate(clients):
        _check_keys(f"client {place}", client, {"name", "key"} if named else {"key"})
    keys = tuple(_hex(f"the key of client {place}", client["key"]) for place, client in enumerate(clients))
    return _listed(tables, keys, tuple(client["name"] for client in clients) if named else ())


def _listed(tables: Mapping[str, Any], publics: tuple[bytes, ...], names: tuple[str, ...]) -> Listed:
    numbered = _is_numbered(tables)
    counter = tables["counter"] if numbered else None
    if numbered and (isinstance(counter, bool) or not isinstance(counter, int)):
        raise LocalProtocolError(f"counter must be the integer number of earlier runs, got {type(counter).__name__}")
    run = b"" if numbered else _hex("run", tables["run"])
    return Listed(publics, _hex("server", tables["server"]), run, names, tables["label"] if numbered else "", counter)


def packed(listed: Listed) -> bytes:
    """Return a binary file's bytes."""
    head = tomli_w.dumps({**_head(listed), "clients": len(listed.publics)}).encode()
    names = "".join(f"{name}\n" for name in listed.names).encode()
    content = b"".join([domains.ROSTER_FILE, len(head).to_bytes(_LENGTH_BYTES, "big"), head, *listed.publics, names])
    return content + hashlib.sha256(content).digest()


def write(path: str | os.PathLike[str], listed: Listed) -> None:
    """Write a file, binary if named ``*.bin``."""
    binary = Path(path).suffix == ".bin"
    atomic_write(path, packed(listed) if binary else written(listed).encode())


def read(path: str | os.PathLike[str]) -> Listed:
    """Read a file of either form, or raise ``LocalProtocolError``."""
    data = _bytes_of(path)
    return _unpacked(data) if data.startswith(domains.ROSTER_FILE) else parsed(_text(path, data))


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a roster's UTF-8 text, without a byte-order mark, or raise ``LocalProtocolError``."""
    return _text(path, _bytes_of(path))


def _head(listed: Listed) -> dict[str, Any]:
    run: dict[str, Any] = {"run": listed.run.hex()}
    if listed.counter is not None:
        run = {"label": listed.label, "counter": listed.counter}
    return {"version": FORMAT_VERSION, **run, "server": listed.server.hex()}


def _unpacked(data: bytes) -> Listed:
    content, digest = data[:-HASH_BYTES], data[-HASH_BYTES:]
    start = len(domains.ROSTER_FILE) + _LENGTH_BYTES
    size = int.from_bytes(content[len(domains.ROSTER_FILE) : start], "big")
    if hashlib.sha256(content).digest() != digest or size > _MAX_HEAD:
        raise _damaged()
    try:
        tables = _tables(content[start : start + size].decode())
        _check_head(tables, "clients")
        clients, first = tables["clients"], start + size
        if type(clients) is not int or not 0 <= clients <= (len(content) - first) // _KEY_BYTES:
            raise _damaged()
        end = first + clients * _KEY_BYTES
        names = tuple(content[end:].decode().splitlines())
    except UnicodeDecodeError:
        raise _damaged() from None
    keys = tuple(content[at : at + _KEY_BYTES] for at in range(first, end, _KEY_BYTES))
    return _listed(tables, keys, names)


def _damaged() -> LocalProtocolError:
    return LocalProtocolError("the roster's file is damaged: request it from its owner again")


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    if not isinstance(path, str | os.PathLike):
        raise LocalProtocolError(f"Roster.load needs the path of a roster's file, got {type(path).__name__}")
    size = _size(path)
    if size > _MAX_BYTES:
        raise LocalProtocolError(f"{path} has {size} bytes, which no roster has; give a file of {_WRITER}")
    return read_bounded(path, LocalProtocolError, _WRITER)


def _text(path: str | os.PathLike[str], data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LocalProtocolError(f"{path} is not UTF-8 text; give a file written by {_WRITER}") from None


def _size(path: str | os.PathLike[str]) -> int:
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):  # the reader reports this error
        return 0


def _tables(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise LocalProtocolError(f"Roster.from_toml needs the text of a roster, got {type(text).__name__}")
    try:
        tables = toml_tables(text.removeprefix("\ufeff"))
    except TOMLDecodeError as error:
        raise LocalProtocolError(f"the roster is not TOML: {error}") from None
    version = tables.get("version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise LocalProtocolError(
            f"the roster's version must be {FORMAT_VERSION}, got {version!r:.20}; write it anew with `{_WRITER}`"
        )
    return tables


def _is_numbered(tables: Mapping[str, Any]) -> bool:
    return "label" in tables or "counter" in tables


def _check_head(tables: Mapping[str, Any], clients: str) -> None:
    run = {"label", "counter"} if _is_numbered(tables) else {"run"}
    _check_keys("the roster", tables, {"version", "server", clients} | run)


def _check_keys(where: str, table: Mapping[str, Any], wanted: set[str]) -> None:
    missing, unknown = sorted(wanted - set(table)), sorted(set(table) - wanted)
    if missing:
        raise LocalProtocolError(f"{where} lacks {', '.join(missing)}; `{_WRITER}` writes a complete roster")
    if unknown:
        raise LocalProtocolError(f"{where} has unknown keys {', '.join(map(repr, unknown))}; remove them")


def _hex(what: str, value: object) -> bytes:
    try:
        if isinstance(value, str):
            return bytes.fromhex(value)
    except ValueError:
        pass
    raise LocalProtocolError(f"{what} must be a text of hexadecimal digits; copy it from `privstats identity show`")
