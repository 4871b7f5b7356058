"""``privstats report``: the page that a privacy officer reads, forwards and prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import privstats as ps
from privstats.cli.parts.options import Force, argument, expanded, flags_of, option
from privstats.cli.parts.terminal import say, writable
from privstats.cli.parts.verifying import PassphraseFile, identity_of
from privstats.errors import DataError, PlanError
from privstats.files.atomic import atomic_write
from privstats.plug_ins import of_contrib

if TYPE_CHECKING:
    from privstats.workflows import report as pages

app = typer.Typer(rich_help_panel="Plan")

PAGE, ETHICS, EVIDENCE, BILL = "report.html", "ethics.html", "evidence.html", "cbom.json"


@dataclass(frozen=True)
class Beside:
    """Files that the page covers in addition to the plan."""

    release: Annotated[Path | None, option("A release made under the plan.")] = None
    head: Annotated[Path | None, option("A model made from the release, as its save() wrote it.")] = None
    ledger: Annotated[Path | None, option("The data owner's ledger.", "LEDGER.DB")] = None


@dataclass(frozen=True)
class Search:
    """Choice of audits and attacks, with their length and seed."""

    audit: Annotated[bool, option("Run every audit of the plan (seconds).", flag="--audit")] = False
    attack: Annotated[bool, option("Run every attack on the plan (minutes).", flag="--attack")] = False
    seed: Annotated[int | None, option("Seed of audits and attacks, to reproduce them.")] = None
    trials: Annotated[int | None, option("Trials of audits and attacks; by default each chooses its own.", min=100)] = (
        None
    )


@app.command()
@expanded
def report(
    plan: Annotated[Path, argument("The plan document, or a course's.", "PLAN.TOML")],
    out: Annotated[Path, option("The folder for report.html.")],
    beside: Beside,
    search: Search,
    ethics: Annotated[
        bool, option("Write ethics.html instead: two printed pages for an ethics board.", flag="--ethics")
    ] = False,
    evidence: Annotated[
        bool, option("Write evidence.html and cbom.json instead: one table for an authority.", flag="--evidence")
    ] = False,
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
    _require_its_own(ethics, evidence, beside, search)
    page = out / (ETHICS if ethics else EVIDENCE if evidence else PAGE)
    writable([page, signature_path(page), *([out / BILL] if evidence else [])], force, makes=out)
    signer = None if sign is None else identity_of(sign, passphrase_file)
    release = None if beside.release is None else ps.Release.load(beside.release)
    accounts = None if beside.ledger is None else ps.dp.Ledger.open(beside.ledger).accounts()
    model = [] if beside.head is None else [pages.model_finding(ps.heads.load(beside.head), subject)]
    pages.Statement(subject, release, accounts, course=course)  # refuses before audits take their minutes
    finders = {name: pages.finder(name) for name in ("audit", "attack") if getattr(search, name)}
    prepare(out, "jinja2")
    tried = [finding for name, find in finders.items() for finding in _findings(name, find, subject, search)]
    statement = pages.Statement(subject, release, accounts, [*model, *tried], course=course)
    _write(statement, page, signer)
    if statement.violated:
        raise typer.Exit(1)


def _require_its_own(ethics: bool, evidence: bool, beside: Beside, search: Search) -> None:
    """An ethics board's page is of the plan alone, an authority's of the plan and attacks."""
    settings = vars(beside) if evidence else {**vars(beside), "audit": search.audit, "attack": search.attack}
    others = [name for name, value in settings.items() if value]
    if ethics and evidence:
        raise PlanError("--ethics and --evidence are two pages: pass one of them, and the other in a second call")
    if (ethics or evidence) and others:
        page, origin = ("--evidence", "the plan and what attacks it") if evidence else ("--ethics", "the plan alone")
        raise PlanError(
            f"{page} uses only {origin}: omit {flags_of(others)}, or omit {page} for the page that uses them"
        )


def _write(statement: pages.Statement, page: Path, signer: ps.secagg.Identity | None) -> None:
    from privstats.files.envelope import sign_beside, signature_path

    text = _writer(page.name)(statement)
    earlier = signature_path(page)
    if signer is None and earlier.exists():
        earlier.unlink()
        say(f"removed {earlier}, which signed the earlier file: privstats identity sign signs this one")
    atomic_write(page, text.encode(), shared=True)
    say(f"wrote {page.name} to {page.parent}")
    if page.name == EVIDENCE:
        bill = of_contrib("bill", "privstats report --evidence")(statement.plan, statement.course)
        atomic_write(page.parent / BILL, bill.encode(), shared=True)
        say(f"wrote {BILL} next to it: the bill of materials of the plan's cryptography, CycloneDX 1.6")
    if signer is not None:
        say(f"signed it in {sign_beside(page, text.encode(), signer, DataError)}")


def _writer(name: str) -> Callable[[pages.Statement], str]:
    from privstats.workflows import report as pages

    if name == EVIDENCE:
        return of_contrib("evidence", "privstats report --evidence")  # type: ignore[no-any-return]
    return pages.ethics_page if name == ETHICS else pages.page_of


def _findings(name: str, find: pages.Finder, plan: ps.Plan, search: Search) -> list[pages.Finding]:
    from privstats.progress import progress_bar
    from privstats.workflows import report as pages

    with progress_bar(name) as advance:
        return list(find(plan, pages.Search(search.seed, search.trials, lambda: advance(1))))
