"""Shared by the ``show`` and ``verify`` of a file: keys, signatures, verdicts, values in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from privstats.cli.parts.terminal import say
from privstats.errors import PrivstatsError
from privstats.files.jsonable import json_text

__all__ = ["NO", "in_words", "is_signed", "key_of", "show_verdicts", "unasked"]

NO = "NO: "
"""Begins every verdict of a check that fails."""


def key_of(words: str, error: type[PrivstatsError]) -> bytes:
    """The public key that is written out, or in the file that is named.

    Raises:
        PrivstatsError: ``error``, where it is no key.
    """
    from privstats.files.signing import public_key, read_public

    if Path(words).exists():
        return read_public(words, error)
    return public_key(words, "--signed-by", error)


def is_signed(path: Path, error: type[PrivstatsError], writer: str) -> bool:
    """Whether the file carries a signature, by any key."""
    from privstats.files.atomic import read_whole
    from privstats.files.envelope import safetensors_metadata

    return "ed25519" in safetensors_metadata(read_whole(path, error, writer))


def unasked(signed: bool) -> str:
    """The verdict on a signature where no key was named."""
    return f"not asked: give --signed-by; the file has {'a' if signed else 'no'} signature"


def show_verdicts(checks: Mapping[str, str], as_json: bool, **facts: Any) -> None:
    """Print the verdicts, in JSON beside ``facts``.

    Raises:
        typer.Exit: with code 1, where one is no.
    """
    violated = any(found.startswith(NO) for found in checks.values())
    if as_json:
        typer.echo(json_text({"violated": violated, **facts, "checks": checks}))
    else:
        for name, found in checks.items():
            say(f"{name:<18} {found}")
    if violated:
        raise typer.Exit(1)


def in_words(value: Any) -> str:
    """A value of a table as people write it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case tuple() | list():
            return ", ".join(map(str, value)) or "none"
    return str(value)
