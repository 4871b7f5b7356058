"""Private keys in files, and the passphrases that lock them, for every command that signs or shows one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

import privstats as ps
from privstats.errors import LocalProtocolError

__all__ = ["PassphraseFile", "asked", "first_line", "identity_of"]

_MOST_CHARACTERS = 1 << 12

PassphraseFile: TypeAlias = Annotated[
    Path | None, typer.Option(help="A file whose first line is the passphrase, for programs; people are asked.")
]


def identity_of(path: Path, passphrase_file: Path | None) -> ps.secagg.Identity:
    """The identity in a file; prompts for the passphrase of a locked one.

    Raises:
        LocalProtocolError: no private key, or the passphrase is missing or wrong.
    """
    from privstats.files.signing import is_locked

    if passphrase_file is not None:
        return ps.secagg.Identity.load(path, first_line(passphrase_file))
    return ps.secagg.Identity.load(path, asked() if is_locked(path, LocalProtocolError) else None)


def asked(option: str = "--passphrase-file", *, twice: bool = False) -> str:
    """Prompt for a passphrase on the terminal; ``option`` is the remedy of who has none.

    Raises:
        LocalProtocolError: standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise LocalProtocolError(f"there is no terminal to ask for the passphrase; give {option}")
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def first_line(path: Path) -> str:
    """The passphrase in a file.

    Raises:
        LocalProtocolError: the file cannot be read, or begins with an empty line.
    """
    try:
        with path.open(encoding="utf-8") as file:
            line = file.readline(_MOST_CHARACTERS).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LocalProtocolError(f"cannot read {path}: {why}; name the file that holds the passphrase") from None
    if not line:
        raise LocalProtocolError(f"the first line of {path} is empty; write the passphrase there")
    return line
