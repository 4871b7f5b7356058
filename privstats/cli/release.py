"""``privstats release show | verify``.

Exit code 1: the release contradicts the expected plan or signer. Exit code 2: a damaged release, which verifies
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import Json, SignedBy, argument, option
from privstats.cli.parts.terminal import table_of, terminal
from privstats.cli.parts.verifying import (
    NO,
    in_words,
    is_signed,
    key_of,
    of_course,
    read_expected,
    show_verdicts,
    together,
    unasked,
)
from privstats.errors import PlanError, ReleaseError
from privstats.files.text import json_text

if TYPE_CHECKING:
    from privstats.course import Course

app = typer.Typer(
    help="Show and verify a release, the file that an aggregation ends with.",
    no_args_is_help=True,
    rich_help_panel="Read",
)

_KNOWN = f"{NO}its noise came from a reproducible generator (a test or a simulation), so it protects nothing"
_ALONE = {"epsilon": "epsilon alone"}
"""Labels shown in place of a fact's name."""

ReleaseFile = Annotated[Path, argument("The release.", "FILE")]


@app.command()
def show(
    path: ReleaseFile,
    plan: Annotated[Path | None, option("The course of the release, for its whole promise.", "COURSE.TOML")] = None,
    as_json: Json = False,
) -> None:
    """Print a release: its plan, the parties in it, its noise, and what it promises by itself.

    No release holds the promise of a course for all its sessions together; --plan COURSE.TOML adds it.
    """
    release = ps.Release.load(path)
    facts = _facts(release, _signed(path), "" if plan is None else together(read_expected(plan)))
    if as_json:
        typer.echo(json_text(facts))
        return
    console = terminal()
    for name, value in facts.items():
        if name != "sigma":
            console.print(f"{_ALONE.get(name, name).replace('_', ' '):<14} {in_words(value)}", markup=False)
    headings = ("statistic", "noise, standard deviation in real units")
    sigmas = [(statistic, f"{sigma:.4g}") for statistic, sigma in release.sigma.items()]
    console.print(table_of(headings, sigmas, left=headings[:1]))


@app.command()
def verify(
    path: ReleaseFile,
    plan: Annotated[
        Path | None, option("The plan, or the course, that it must have been made under.", "PLAN.TOML")
    ] = None,
    after: Annotated[
        list[str] | None,
        option("For a course: a release of an earlier session, in order; 'none' where there was no sum.", "RELEASE"),
    ] = None,
    signed_by: SignedBy = None,
    as_json: Json = False,
) -> None:
    """Verify a release against its expected plan and signature; exit code 1 if one does not match.

    For a course give the course's file: the first session's plan follows from it, and a later session's plan from it
    and the earlier releases, which --after names.
    Checksum, budget and noise are always checked: exit code 2 if one is wrong, because the file is then no release, and
    1 if the noise is a test's, which others could draw again.
    """
    expected = None if plan is None else read_expected(plan)
    if after and (expected is None or isinstance(expected, ps.Plan)):
        raise PlanError("--after names a course's earlier sessions, and a plan has none: pass --plan COURSE.TOML")
    key = None if signed_by is None else key_of(signed_by, ReleaseError)
    release = ps.Release.load(path)
    checks = {"checksum": "good", "budget and noise": "follow from the plan in the file"}
    checks["generator"] = _KNOWN if release.reproducible else "good"
    checks["plan"] = _plan_of(path, release, expected, after or ())
    checks["signature"] = unasked(_signed(path)) if key is None else _against(path, release, signed_by=key)
    show_verdicts(checks, as_json, plan_digest=release.plan.digest)


def _plan_of(path: Path, release: ps.Release, expected: ps.Plan | Course | None, after: Sequence[str]) -> str:
    if expected is None:
        return "not checked: pass --plan"
    if not isinstance(expected, ps.Plan):
        return of_course(release, expected, after)
    verdict = _against(path, release, plan=expected)
    if not verdict.startswith(NO):
        return verdict
    position = release.position
    earlier = "" if position is None or not position.place else ", with --after and all earlier releases, in order"
    return f"{verdict}; a release of a course is verified against the course's file{earlier}"


def _against(path: Path, release: ps.Release, **expected: Any) -> str:
    """The file may have changed since the other checks read it."""
    try:
        same = ps.Release.load(path, **expected) == release
    except ReleaseError as refusal:
        return f"{NO}{refusal}"
    return "good" if same else f"{NO}{path} was changed while it was read; verify it again"


def _signed(path: Path) -> bool:
    return is_signed(path, ReleaseError)


def _facts(release: ps.Release, signed: bool, course: str) -> dict[str, Any]:
    plan, budget = release.plan, release.budget
    return {
        "plan_digest": plan.digest,
        "release_digest": release.digest,
        "statistics": plan.schema.statistics,
        "protocol": plan.protocol,
        "clients": plan.cohort.clients,
        "survivors": release.survivors,
        "suppressed": release.suppressed,
        **({} if release.position is None else {"session_of": str(release.position)}),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "promise": f"{budget.promise}; this release alone: other releases of the same records add to it",
        **({"course": course} if course else {}),
        "signed": signed,
        "reproducible": release.reproducible,
        "sigma": dict(release.sigma),
    }
