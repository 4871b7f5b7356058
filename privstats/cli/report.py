"""``privstats report``: the page that a privacy officer reads, forwards and prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import Force, argument, expanded, flags_of, option, switched, switches
from privstats.cli.parts.terminal import say, writable
from privstats.cli.parts.verifying import PassphraseFile, identity_of
from privstats.errors import DataError, PlanError
from privstats.files.atomic import atomic_write
from privstats.row_options import RowOptions, given
from privstats.workflows.report.further import FINDERS, PAGES, REPORT, FurtherFindings, FurtherPage, finders

if TYPE_CHECKING:
    from privstats.workflows import report as pages

app = typer.Typer(rich_help_panel="Plan")


@dataclass(frozen=True)
class Beside:
    """Files that the page covers in addition to the plan."""

    release: Annotated[Path | None, option("A release made under the plan.")] = None
    head: Annotated[Path | None, option("A model made from the release, as its save() wrote it.")] = None
    ledger: Annotated[Path | None, option("The data owner's ledger.", "LEDGER.DB")] = None


@dataclass(frozen=True)
class Search:
    """Length and seed of audits and attacks."""

    seed: Annotated[int | None, option("Seed of audits and attacks, to reproduce them.")] = None
    trials: Annotated[int | None, option("Trials of audits and attacks; by default each chooses its own.", min=100)] = (
        None
    )


def _searches() -> RowOptions:
    return switches(FINDERS, finders())


def _pages() -> RowOptions:
    return switches(PAGES, PAGES.rows().values())


@app.command()
@expanded
def report(
    plan: Annotated[Path, argument("The plan document, or a course's.", "PLAN.TOML")],
    out: Annotated[Path, option("The folder for report.html.")],
    beside: Beside,
    searches: Annotated[Any, _searches],
    search: Search,
    further: Annotated[Any, _pages],
    sign: Annotated[Path | None, option("Sign each written file, in a .sig file next to it.", "IDENTITY.PEM")] = None,
    passphrase_file: PassphraseFile = None,
    force: Force = False,
) -> None:
    """Write one page in plain words: what is collected, promised and not promised, spent and tried.

    Exit code 1 when an audit or an attack contradicts a promise; the page is still written, and reports it.
    """
    from privstats.cli.parts.terminal import prepare
    from privstats.course.document import is_course
    from privstats.files.envelope import signature_path
    from privstats.workflows import report as pages

    course = ps.course.read(plan) if is_course(plan) else None
    subject = ps.Plan.read(plan) if course is None else course.first
    chosen, requested = _chosen(switched(further, PAGES.rows().values())), switched(searches, finders())
    _require_its_own(chosen, [*given(beside), *(row.name for row in requested)])
    page = out / chosen.file
    writable([page, signature_path(page), *(out / each.name for each in chosen.files)], force, makes=out)
    signer = None if sign is None else identity_of(sign, passphrase_file)
    release = None if beside.release is None else ps.Release.load(beside.release)
    accounts = None if beside.ledger is None else ps.dp.Ledger.open(beside.ledger).accounts()
    model = [] if beside.head is None else [pages.model_finding(ps.heads.load(beside.head), subject)]
    pages.Statement(subject, release, accounts, course=course)  # refuses before audits take their minutes
    prepare(out, "jinja2")
    tried = [finding for row in requested for finding in _findings(row, subject, search)]
    statement = pages.Statement(subject, release, accounts, [*model, *tried], course=course)
    _write(statement, page, chosen, signer)
    if statement.violated:
        raise typer.Exit(1)


def _chosen(requested: list[FurtherPage]) -> FurtherPage:
    if len(requested) > 1:
        one, other = (f"--{page.name}" for page in requested[:2])
        raise PlanError(f"{one} and {other} are two pages: pass one of them, and the other in a second call")
    return requested[0] if requested else REPORT


def _require_its_own(page: FurtherPage, options: list[str]) -> None:
    """Refuse what a further page does not show."""
    others = [name for name in options if not (page.finds and name in FINDERS)]
    if page is not REPORT and others:
        flag = f"--{page.name}"
        raise PlanError(
            f"{flag} uses only {page.reads}: omit {flags_of(others)}, or omit {flag} for the page that uses them"
        )


def _write(statement: pages.Statement, page: Path, chosen: FurtherPage, signer: ps.secagg.Identity | None) -> None:
    from privstats.files.envelope import sign_beside, signature_path

    with PAGES.using(chosen.name):
        encoded = chosen.page(statement).encode()
        others = [(each, each.text(statement).encode()) for each in chosen.files]
    earlier = signature_path(page)
    if signer is None and earlier.exists():
        earlier.unlink()
        say(f"removed {earlier}, which signed the earlier file: privstats identity sign signs this one")
    atomic_write(page, encoded, shared=True)
    say(f"wrote {page.name} to {page.parent}")
    for each, adjacent in others:
        atomic_write(page.parent / each.name, adjacent, shared=True)
        say(f"wrote {each.name} next to it: {each.what}")
    if signer is not None:
        say(f"signed it in {sign_beside(page, encoded, signer, DataError)}")


def _findings(row: FurtherFindings, plan: ps.Plan, search: Search) -> list[pages.Finding]:
    from privstats.progress import progress_bar
    from privstats.workflows import report as pages

    with progress_bar(row.name) as advance, FINDERS.using(row.name):
        return list(row.find(plan, pages.Search(search.seed, search.trials, lambda: advance(1))))
