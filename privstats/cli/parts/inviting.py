"""``privstats http new | invite | renew``: what the registrar does."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import privstats as ps
from privstats.cli.parts.passphrases import PassphraseFile, identity_of
from privstats.cli.parts.terminal import say
from privstats.errors import LocalProtocolError

if TYPE_CHECKING:
    from privstats.engines.http.registrar import Run

__all__ = ["invite", "new", "renew"]

_KEYS_LAST = timedelta(days=30)

StudyFolder = Annotated[Path, typer.Argument(help="The registrar's folder.", metavar="STUDY")]
IdentityFile = Annotated[Path, typer.Option(help="The registrar's identity.", metavar="IDENTITY.PEM")]
Until = Annotated[
    str | None, typer.Option(help="When the box keys end; 30 days after --closes if left out.", metavar="TIME")
]


def new(
    plan: Annotated[Path, typer.Argument(help="The plan; its table devices says who may send.", metavar="PLAN.TOML")],
    study: Annotated[Path, typer.Argument(help="The folder to write; it must not exist.", metavar="STUDY")],
    address: Annotated[str, typer.Option(help="The leader's, as devices dial it.", metavar="https://HOST[:PORT]")],
    page: Annotated[str, typer.Option(help="The page's, on another party's host.", metavar="https://HOST/PATH")],
    closes: Annotated[str, typer.Option(help="When no more answers are taken: 2027-03-01T12:00:00Z.", metavar="TIME")],
    until: Until = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Of a page from which a browser may ask, if not that of --page.", metavar="https://HOST"),
    ] = None,
) -> None:
    """Make the registrar's folder for a plan: where devices dial, where the page lies, and when the run closes."""
    from privstats.engines.http.registrar import write_study
    from privstats.engines.http.settings import Settings

    ends = _time("--closes", closes)
    last = ends + _KEYS_LAST if until is None else _time("--until", until)
    origins = tuple(origin or [_origin(page)])
    write_study(study, ps.Plan.read(plan), Settings(address, ends, last, origins), page)
    say(f"wrote {study}; `privstats http invite {study} --identity IDENTITY.PEM` draws the codes, once")


def invite(
    study: StudyFolder,
    identity: IdentityFile,
    paper: Annotated[
        bool, typer.Option("--paper", help="Codes to be typed from a letter, which no mail filter reads.")
    ] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Draw a code for each person, write the links, sign the roster, and write a folder for every party: once."""
    from privstats.engines.http.registrar import LINKS, write_invitations

    run = write_invitations(study, identity_of(identity, passphrase_file), paper=paper)
    say(
        f"wrote {study}/{LINKS}: one line for each of {len(run.roster)} people. Whoever reads it can answer for all of "
        "them: send each line to one person, and destroy the file, and your list of names, when the mailing ends"
    )
    _handed_out(run)


def renew(
    study: StudyFolder,
    identity: IdentityFile,
    closes: Annotated[str | None, typer.Option(help="When the next run closes.", metavar="TIME")] = None,
    until: Until = None,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Write the next run for the same codes: after one that failed, or for the next question. Each of them counts."""
    from dataclasses import replace

    from privstats.engines.http.registrar import renew as next_run
    from privstats.engines.http.settings import Settings

    settings = Settings.read(study)
    if closes is not None:
        ends = _time("--closes", closes)
        settings = replace(settings, closes=ends, until=ends + _KEYS_LAST if until is None else _time("--until", until))
    elif until is not None:
        raise LocalProtocolError("--until without --closes: give both, or neither for the days of the folder")
    _handed_out(next_run(study, identity_of(identity, passphrase_file), settings))


def _handed_out(run: Run) -> None:
    folders = sorted(path.name for path in run.folder.iterdir() if path.is_dir() and path.name != "page")
    say(f"send {run.folder}/{{{','.join(folders)}}} to their owners, each of whom adds identity.pem")
    say(f"send {run.folder}/page/study.json to whoever serves the page, and print its digest where people compare it:")
    say(run.study)


def _time(option: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise LocalProtocolError(f"{option} must be a time with an offset, like 2027-03-01T12:00:00Z") from None


def _origin(page: str) -> str:
    """The scheme and host of an address."""
    return "/".join(page.split("/")[:3])
