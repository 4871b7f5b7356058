"""``privstats identity new | show``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import privstats as ps
from privstats.errors import LocalProtocolError
from privstats.files.atomic import atomic_write
from privstats.files.jsonable import json_text

__all__ = ["app"]

app = typer.Typer(help="Make and show the key that a party, a helper or the server signs with.", no_args_is_help=True)

_MOST_CHARACTERS = 1 << 12

PassphraseFile = Annotated[
    Path | None, typer.Option(help="A file whose first line is the passphrase, for programs; people are asked.")
]


@app.command()
def new(
    path: Annotated[Path, typer.Argument(help="The file to write; it must not exist.", metavar="IDENTITY.PEM")] = Path(
        "identity.pem"
    ),
    locked: Annotated[bool, typer.Option("--locked", help="Ask for a passphrase and lock the file with it.")] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Draw a new identity, write it to a file that only you can read, and its public key beside it."""
    from privstats.files.signing import public_pem

    public_path = path.with_suffix(".pub")
    if public_path == path or public_path.exists():
        raise LocalProtocolError(f"the public key would go to {public_path}, which is taken; name another file")
    passphrase = None
    if passphrase_file is not None:
        passphrase = _first_line(passphrase_file)
    elif locked:
        passphrase = _asked(twice=True)
    identity = ps.secagg.Identity.generate(os.urandom)
    identity.save(path, passphrase)
    atomic_write(public_path, public_pem(identity.public).encode(), shared=True)
    typer.echo(f"wrote {path}: keep it, and never give it away", err=True)
    typer.echo(f"wrote {public_path}: this is the public key, for the roster or the plan:", err=True)
    typer.echo(identity.public.hex())


@app.command()
def show(
    path: Annotated[Path, typer.Argument(help="An identity, or a public key.", metavar="IDENTITY.PEM")],
    pem: Annotated[bool, typer.Option("--pem", help="Print the public key as PEM.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Print the public key of an identity, which is no secret."""
    from privstats.files.signing import public_pem

    public = _public(path, passphrase_file)
    if as_json:
        typer.echo(json_text({"public": public.hex(), "pem": public_pem(public)}))
        return
    typer.echo(public_pem(public) if pem else public.hex(), nl=not pem)


def _public(path: Path, passphrase_file: Path | None) -> bytes:
    """The public key in a file of any kind; prompts for the passphrase of a locked private key."""
    from privstats.files.signing import is_locked, read_public

    locked = is_locked(path, LocalProtocolError)
    if locked is None:
        return read_public(path, LocalProtocolError)
    if passphrase_file is not None:
        return ps.secagg.Identity.load(path, _first_line(passphrase_file)).public
    return ps.secagg.Identity.load(path, _asked() if locked else None).public


def _asked(*, twice: bool = False) -> str:
    if not sys.stdin.isatty():
        raise LocalProtocolError("there is no terminal to ask for the passphrase; give --passphrase-file")
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            line = file.readline(_MOST_CHARACTERS).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LocalProtocolError(f"cannot read {path}: {why}; name the file that holds the passphrase") from None
    if not line:
        raise LocalProtocolError(f"the first line of {path} is empty; write the passphrase there")
    return line
