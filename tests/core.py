"""Select the tests that the promises rest on: ``python -m pytest -m core`` runs what ``core.toml`` lists."""

import tomllib
from pathlib import Path
from typing import TypedDict

LIST = Path(__file__).with_suffix(".toml")
MARK = "core"


class Proofs(TypedDict):
    """The rooms that a promise rests on, and its tests: files, or single tests of other files."""

    rooms: list[str]
    tests: list[str]


def promises() -> dict[str, Proofs]:
    """Return the proofs of each promise."""
    read: dict[str, Proofs] = tomllib.loads(LIST.read_text("utf-8"))
    return read


def nodes() -> frozenset[str]:
    """Return every listed file or test as pytest names it."""
    return frozenset(f"tests/{node}" for proofs in promises().values() for node in proofs["tests"])


def is_listed(node: str, listed: frozenset[str]) -> bool:
    """Return whether a test, with or without its parameters, or its file is listed."""
    node = node.partition("[")[0]
    return not listed.isdisjoint((node, node.partition("::")[0]))
