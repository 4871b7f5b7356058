"""``privstats head show | verify``: a model file's sources, and so who may see it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import privstats as ps
from privstats.cli.parts.options import Json, SignedBy, argument, option
from privstats.cli.parts.terminal import say
from privstats.cli.parts.verifying import NO, in_words, show_verdicts, unasked
from privstats.files.text import json_text

app = typer.Typer(
    help="Show and verify a model's file: its plan, its releases and its promise.",
    no_args_is_help=True,
    rich_help_panel="Read",
)

HeadPath = Annotated[Path, argument("The head, as its save() wrote it.", "FILE")]


@app.command()
def show(path: HeadPath, as_json: Json = False) -> None:
    """Print a head's file: the head, the releases behind it, and the promise that covers it."""
    from privstats.cli.parts.head_files import HeadFile, facts_of

    facts = facts_of(HeadFile.of(path))
    if as_json:
        typer.echo(json_text(facts))
        return
    for name, value in facts.items():
        if name != "parameters":
            say(f"{name.replace('_', ' '):<14} {in_words(value)}")
    for name, value in facts["parameters"].items():
        say(f"  {name:<20} {value}")


@app.command()
def verify(
    path: HeadPath,
    plan: Annotated[Path | None, option("The plan, or the course, that it must come from.", "PLAN.TOML")] = None,
    release: Annotated[
        list[Path] | None, option("The release that it must come from; repeat for a course.", "FILE")
    ] = None,
    signed_by: SignedBy = None,
    as_json: Json = False,
) -> None:
    """Check that a promise covers a head, and verify it against its plan, its release and a signature.

    Exit code 1 if a check fails: an exact head, and one of unknown origin, must stay with the data holder.
    With --release the head is fitted again and must score the same.
    """
    from privstats.cli.parts import head_files
    from privstats.cli.parts.verifying import read_expected

    opened = head_files.HeadFile.of(path)
    promise = opened.provenance
    checks = {
        "checksum": "good",
        "promise": str(promise) if promise.covered else f"{NO}{promise}",
        **({"assumed public": promise.caveat} if promise.caveat else {}),
        "plan": "not checked: pass --plan" if plan is None else head_files.against_plan(promise, read_expected(plan)),
        "release": "not checked: pass --release",
        "signature": unasked(opened.signed) if signed_by is None else head_files.against_key(path, signed_by),
    }
    if release:
        checks["release"] = head_files.against_releases(opened, [ps.Release.load(each) for each in release])
    show_verdicts(checks, as_json, head=opened.name, promise=promise.tables())
