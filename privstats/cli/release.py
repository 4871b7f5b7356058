"""``privstats release show | verify``.

A release that does not match the expected plan or signer is exit code 1, a damaged one is 2. The first contradicts a
claim; of the second nothing can be verified.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import Json, SignedBy
from privstats.cli.parts.terminal import new_table, terminal
from privstats.cli.parts.verifying import NO, in_words, is_signed, key_of, show_verdicts, unasked
from privstats.errors import ReleaseError
from privstats.files.jsonable import json_text

__all__ = ["app"]

app = typer.Typer(
    help="Show and verify a release, the file that an aggregation ends with.",
    no_args_is_help=True,
    rich_help_panel="Read",
)

_KNOWN = (
    f"{NO}its noise came from a generator that others may know, so it protects nothing; it is a test's or simulation's"
)

ReleaseFile = Annotated[Path, typer.Argument(help="The release.", metavar="FILE")]


@app.command()
def show(path: ReleaseFile, as_json: Json = False) -> None:
    """Print a release: its plan, the parties in it, and its noise."""
    release = ps.Release.load(path)
    facts = _facts(release, _signed(path))
    if as_json:
        typer.echo(json_text(facts))
        return
    console = terminal()
    for name, value in facts.items():
        if name != "sigma":
            console.print(f"{name.replace('_', ' '):<14} {in_words(value)}", highlight=False, markup=False)
    table = new_table()
    table.add_column("statistic")
    table.add_column("noise, standard deviation in real units", justify="right")
    for statistic, sigma in release.sigma.items():
        table.add_row(statistic, f"{sigma:.4g}")
    console.print(table)


@app.command()
def verify(
    path: ReleaseFile,
    plan: Annotated[
        Path | None, typer.Option(help="The plan that it must have been made under.", metavar="PLAN.TOML")
    ] = None,
    signed_by: SignedBy = None,
    as_json: Json = False,
) -> None:
    """Verify a release against its expected plan and signature; exit code 1 if one does not match.

    Checksum, budget and noise are checked in any case; a file that fails there is no release, and exit code 2. Noise of
    a test, which others could draw again, is exit code 1.
    """
    expected = None if plan is None else ps.Plan.read(plan)
    key = None if signed_by is None else key_of(signed_by, ReleaseError)
    release = ps.Release.load(path)
    checks = {"checksum": "good", "budget and noise": "follow from the plan in the file"}
    checks["generator"] = _KNOWN if release.reproducible else "good"
    checks["plan"] = "not asked: give --plan" if expected is None else _against(path, release, plan=expected)
    checks["signature"] = unasked(_signed(path)) if key is None else _against(path, release, signed_by=key)
    show_verdicts(checks, as_json, plan_digest=release.plan.digest)


def _against(path: Path, release: ps.Release, **expected: Any) -> str:
    """Whether the file matches the expectation, and still holds the release of the other checks."""
    try:
        same = ps.Release.load(path, **expected) == release
    except ReleaseError as refusal:
        return f"{NO}{refusal}"
    return "good" if same else f"{NO}{path} was changed while it was read; verify it again"


def _signed(path: Path) -> bool:
    return is_signed(path, ReleaseError, "Release.save")


def _facts(release: ps.Release, signed: bool) -> dict[str, Any]:
    plan, budget = release.plan, release.budget
    return {
        "plan_digest": plan.digest,
        "release_digest": release.digest,
        "statistics": plan.schema.statistics,
        "protocol": plan.protocol,
        "clients": plan.cohort.clients,
        "survivors": release.survivors,
        "suppressed": release.suppressed,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "promise": budget.promise,
        "signed": signed,
        "reproducible": release.reproducible,
        "sigma": dict(release.sigma),
    }
