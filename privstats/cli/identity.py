"""``privstats identity new | show | lock | sign | verify``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

import privstats as ps
from privstats.cli.parts.next_command import next_command
from privstats.cli.parts.options import argument, option
from privstats.cli.parts.terminal import say
from privstats.cli.parts.verifying import PassphraseFile, first_line, identity_of, key_of, prompted
from privstats.errors import DataError, LocalProtocolError
from privstats.files.atomic import atomic_write
from privstats.files.text import json_text

app = typer.Typer(
    help="Make and show the key that a party, a helper or the server signs with.",
    no_args_is_help=True,
    rich_help_panel="Keep",
)


@app.command()
def new(
    path: Annotated[Path, argument("The file to write; it must not exist.", "IDENTITY.PEM")] = Path("identity.pem"),
    locked: Annotated[bool, option("Ask for a passphrase and lock the file with it.", flag="--locked")] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Generate an identity; write it to a file that only you can read, and its public key next to it."""
    from privstats.files.signing import public_pem

    public_path = path.with_suffix(".pub")
    if public_path == path or public_path.exists():
        raise LocalProtocolError(f"the public key would go to {public_path}, which exists; name another file")
    passphrase = None
    if passphrase_file is not None:
        passphrase = first_line(passphrase_file)
    elif locked:
        passphrase = prompted(twice=True)
    identity = ps.secagg.Identity.generate(os.urandom)
    identity.save(path, passphrase)
    atomic_write(public_path, public_pem(identity.public).encode(), shared=True)
    say(f"wrote {path}: keep it, and never give it away", err=True)
    say(f"wrote {public_path}: this is the public key, for the roster or the plan:", err=True)
    say(identity.public.hex())


@app.command()
def show(
    path: Annotated[Path, argument("An identity, or a public key.", "IDENTITY.PEM")],
    pem: Annotated[bool, option("Print the public key as PEM.", flag="--pem")] = False,
    as_json: Annotated[bool, option("Print JSON.", flag="--json")] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Print the public key of an identity, which is no secret."""
    from privstats.files.locked_key import is_weakly_locked
    from privstats.files.signing import public_pem

    public = _public(path, passphrase_file)
    if is_weakly_locked(path, LocalProtocolError):
        say(
            f"an older privstats locked {path}, fast to guess; lock it anew: {next_command('identity', 'lock', path)}",
            err=True,
        )
    if as_json:
        typer.echo(json_text({"public": public.hex(), "pem": public_pem(public)}))
        return
    typer.echo(public_pem(public) if pem else public.hex(), nl=not pem)


@app.command()
def lock(
    path: Annotated[Path, argument("An identity, locked or not.", "IDENTITY.PEM")],
    passphrase_file: PassphraseFile = None,
    new_passphrase_file: Annotated[
        Path | None, option("A file whose first line is the new passphrase; if omitted, the old one stays.")
    ] = None,
    new: Annotated[bool, option("Ask for a new passphrase.", flag="--new")] = False,
) -> None:
    """Lock an identity in its file, or lock it again with today's settings: scrypt, half a second per guess.

    Older copies of the file stay as they were. An identity that may be in other hands needs a new place on the roster.
    """
    from privstats.files.locked_key import is_locked

    locked = is_locked(path, LocalProtocolError)
    before = after = None
    if passphrase_file is not None:
        before = first_line(passphrase_file)
    elif locked:
        before = prompted()
    if new_passphrase_file is not None:
        after = first_line(new_passphrase_file)
    elif new or locked is False:  # None: no private key; refused below before any prompt
        after = prompted("--new-passphrase-file", twice=True)
    ps.secagg.Identity.relock(path, before, after)
    say(f"locked {path}; older copies are unchanged", err=True)


@app.command()
def sign(
    path: Annotated[Path, argument("A page, or any other file.", "FILE")],
    key: Annotated[Path, option("The identity that signs.", "IDENTITY.PEM")],
    passphrase_file: PassphraseFile = None,
) -> None:
    """Sign a document that was edited, as `report --sign` signs its own output: into FILE.sig next to it."""
    from privstats.files.atomic import MOST_SIGNED, read_bounded
    from privstats.files.envelope import sign_beside

    data = read_bounded(path, DataError, "privstats report", MOST_SIGNED)
    say(f"signed it in {sign_beside(path, data, identity_of(key, passphrase_file), DataError)}")


@app.command()
def verify(
    path: Annotated[Path, argument("A page or an entry that `report --sign` signed.", "FILE")],
    signed_by: Annotated[str, option("The public key of its maker: hex, or a file.", "KEY")],
) -> None:
    """Verify a document by the signature file next to it; exit code 1 if key or bytes do not match."""
    from privstats.files.envelope import is_signed_by

    key = key_of(signed_by, DataError)
    if not is_signed_by(path, key, DataError):
        say(f"NO: {path} does not match this key's signature: another key signed it, or it was changed since")
        raise typer.Exit(1)
    say(f"{path} is unchanged since {key.hex()} signed it")


def _public(path: Path, passphrase_file: Path | None) -> bytes:
    from privstats.files.locked_key import is_locked, read_public

    if is_locked(path, LocalProtocolError) is None:
        return read_public(path, LocalProtocolError)
    return identity_of(path, passphrase_file).public
