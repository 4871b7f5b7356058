"""Registering the nodes of a folder of public keys at the SuperLink that serves here, by Flower's own command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from privstats.engines.flower.certificates import public_node_key
from privstats.engines.flower.replaced_names import check_version
from privstats.errors import PrivstatsError
from privstats.printable import printable
from privstats.progress import progress_bar

__all__ = ["Registered", "register"]

_FLWR = (sys.executable, "-c", "from flwr.cli.app import app; app()")
_SECONDS = 60.0
_KNOWN = "already in use"


@dataclass(frozen=True)
class Registered:
    """A node that the SuperLink knows.

    Attributes:
        name: the key's file without ``.pub``.
        new: whether it was not known before.
    """

    name: str
    new: bool


def register(home: Path, keys: Path) -> list[Registered]:
    """Register each ``NAME.pub`` of a folder under its name; keys that are registered stay as they are.

    Every file is read before the first is registered, so a wrong one changes nothing.

    Args:
        home: the host's folder, in which ``serve`` runs.
        keys: the folder of the public keys that parties sent.

    Raises:
        PrivstatsError: another version of Flower is installed, nobody has served in ``home``, there is no ``.pub``, one
            is no node's key or another's under a second name, or the SuperLink refuses or does not answer.
    """
    check_version()
    if not (home / ".flower" / "config.toml").is_file():
        raise PrivstatsError(f"nothing was served in {home} yet: start privstats flower serve {home} first")
    files = _read(keys)
    with progress_bar("registering", len(files)) as advance:
        found = []
        for path in files:
            found.append(Registered(path.stem, _register(home, path)))
            advance(1)
    return found


def _read(keys: Path) -> list[Path]:
    files = sorted(keys.glob("*.pub")) if keys.is_dir() else []
    if not files:
        raise PrivstatsError(f"there is no .pub file in {keys}: put the keys there that parties sent, as NAME.pub")
    seen: dict[bytes, Path] = {}
    for path in files:
        first = seen.setdefault(public_node_key(path), path)
        if first != path:
            raise PrivstatsError(f"{path} and {first} are one key: every node needs its own")
    return files


def _register(home: Path, path: Path) -> bool:
    """Whether the node is new."""
    words = (*_FLWR, "supernode", "register", str(path.resolve()), "--name", path.stem, "--format", "json")
    environment = {**os.environ, "FLWR_HOME": str((home / ".flower").resolve()), "FLWR_DISABLE_UPDATE_CHECK": "1"}
    try:
        ended = subprocess.run(  # noqa: S603 - this Python, a path that was read, and its own stem
            words, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise PrivstatsError(f"{path}: the SuperLink did not answer in {_SECONDS:g} s; does serve run?") from None
    said = _said(ended.stdout)
    if said.get("success") is True:
        return True
    why = str(said.get("error-message") or ended.stderr or ended.stdout).strip()
    if _KNOWN in why.lower():
        return False
    raise PrivstatsError(f"{path} was not registered; does serve run? Flower says: {printable(why)}")


def _said(text: str) -> dict[str, object]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
