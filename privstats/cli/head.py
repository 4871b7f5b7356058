"""``privstats head fit | predict | show | verify``: a model from releases, its predictions, and who may see it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import privstats as ps
from privstats.cli.parts.next_command import next_command
from privstats.cli.parts.options import TABLE, Dialect, Force, Json, SignedBy, argument, expanded, option
from privstats.cli.parts.terminal import say, writable
from privstats.cli.parts.thresholds import threshold_of
from privstats.cli.parts.verifying import NO, in_words, show_verdicts, unasked
from privstats.files.text import json_text

app = typer.Typer(
    help="Fit a model on releases, predict with it, show and verify its file: plan, releases and promise.",
    no_args_is_help=True,
    rich_help_panel="Read",
)

HeadPath = Annotated[Path, argument("The head's file, as `privstats head fit` wrote it.", "HEAD")]


@app.command()
def fit(
    studies: Annotated[
        list[Path],
        argument("The study's folder, its host's, or that of a rehearsal; or release files in order.", "STUDY..."),
    ],
    head: Annotated[
        str | None, option("The head to fit. Default: the usual one for these releases. docs/heads.md lists all.")
    ] = None,
    out: Annotated[Path, option("The model file to write.", "FILE")] = Path("model.head"),
    force: Force = False,
) -> None:
    """Fit a model on a session's or a course's releases, and write its file. It costs no privacy."""
    from privstats.cli.parts.options import heads_spelled
    from privstats.workflows.fitting import head_of, releases_at

    writable([out], force)
    (name,) = heads_spelled([head]) if head is not None else (None,)
    fitted = head_of(releases_at(studies), name)
    fitted.save(out)
    say(f"wrote {out}: {type(fitted).__name__}, {fitted.provenance_}")
    say(f"predict the records of a file: {next_command('head', 'predict', out, 'FILE', out='predictions.csv')}")


@app.command()
@expanded
def predict(
    path: HeadPath,
    dialect: Dialect,
    file: Annotated[Path, argument(f"The records to predict: {TABLE}; or npz with X.", "FILE")],
    out: Annotated[Path, option("The predictions to write, .csv or .parquet.", "FILE")] = Path("predictions.csv"),
    keep: Annotated[
        list[str] | None, option("A column of FILE to copy, such as the id; repeat for more.", "COLUMN")
    ] = None,
    threshold: Annotated[
        str | None,
        option(
            "For two classes: predict the second from this probability on, or from `prevalence` on, its share among "
            "the head's records.",
            "NUMBER|prevalence",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Predict every record of a file: the class or number, and each class's probability, one row per record.

    Values that the head's plan does not list are counted on this screen.
    """
    from privstats.workflows import predictions as predicting
    from privstats.workflows.simulate import begun_warnings

    writable([out], force)
    predicting.require_ending(out)
    head = ps.heads.load(path)
    least = None if threshold is None else threshold_of(threshold)
    with begun_warnings(file.name):
        made = predicting.predictions(head, dialect.file(file), keep or (), threshold=least)
    predicting.write(made, out)
    if made.broken:
        say(made.broken)
    if made.unread:
        say(f"{made.unread:,} of {len(made):,} records have no prediction: a column holds no number there")
    say(f"wrote {out}: {len(made) - made.unread:,} predictions of {file}")


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
