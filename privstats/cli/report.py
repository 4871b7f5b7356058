"""``privstats report``: the page that a privacy officer reads, forwards and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import privstats as ps
from privstats.cli.parts.output import Force, writable
from privstats.cli.parts.passphrases import PassphraseFile, identity_of
from privstats.cli.parts.terminal import say
from privstats.errors import DataError, PlanError
from privstats.files.atomic import atomic_write
from privstats.files.jsonable import json_text

if TYPE_CHECKING:
    from privstats.workflows import report as pages

__all__ = ["app"]

app = typer.Typer(rich_help_panel="Plan")

PAGE, ETHICS = "report.html", "ethics.html"


@app.command()
def report(
    plan: Annotated[Path, typer.Argument(help="The plan document, or a course's.", metavar="PLAN.TOML")],
    out: Annotated[Path | None, typer.Option(help="The folder for report.html.")] = None,
    ethics: Annotated[
        bool, typer.Option("--ethics", help="Write ethics.html instead: two printed pages for an ethics board.")
    ] = False,
    registry: Annotated[
        Path | None,
        typer.Option(help="A draft for the Differential Privacy Deployments Registry.", metavar="FILE.json"),
    ] = None,
    release: Annotated[Path | None, typer.Option(help="A release that was made under the plan.")] = None,
    head: Annotated[Path | None, typer.Option(help="A model that was made from it, as its save() wrote it.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The data owner's ledger.", metavar="LEDGER.DB")] = None,
    sign: Annotated[Path | None, typer.Option(help="Sign what is written, beside it.", metavar="IDENTITY.PEM")] = None,
    passphrase_file: PassphraseFile = None,
    audit: Annotated[bool, typer.Option("--audit", help="Run every audit of the plan (seconds).")] = False,
    attack: Annotated[bool, typer.Option("--attack", help="Run every attack on the plan (minutes).")] = False,
    seed: Annotated[int | None, typer.Option(help="Reproduce audits and attacks.")] = None,
    trials: Annotated[
        int | None, typer.Option(min=100, help="How often audits and attacks try; by default each as it thinks right.")
    ] = None,
    force: Force = False,
) -> None:
    """Write one page in plain words: what is collected, promised and not promised, spent and tried.

    Exit code 1 when an audit or an attack contradicts a promise; the page is written and says so.
    """
    from privstats.cli.parts.output import prepare
    from privstats.course.document import is_course
    from privstats.files.detached import signature_path
    from privstats.workflows import report as pages

    course = ps.course.read(plan) if is_course(plan) else None
    subject = ps.Plan.read(plan) if course is None else course.first
    if out is None and registry is None:
        raise PlanError(
            "nothing says what to write: name the page's folder with --out, a file with --registry, or both"
        )
    beside = {"release": release, "head": head, "ledger": ledger, "audit": audit, "attack": attack}
    page = _page(out, ethics, [f"--{name}" for name, given in beside.items() if given])
    places = [place for place in (registry, page) if place is not None]
    writable([each for place in places for each in (place, signature_path(place))], force, makes=out)
    signer = None if sign is None else identity_of(sign, passphrase_file)
    made = None if release is None else ps.Release.load(release)
    accounts = None if ledger is None else ps.dp.Ledger.open(ledger).accounts()
    model = [] if head is None else [pages.model_finding(ps.heads.load(head), subject)]
    pages.Statement(subject, made, accounts, course=course)  # refuses before audits take their minutes
    names = [name for name, wanted in (("audit", audit), ("attack", attack)) if wanted]
    finders = {name: pages.finder(name) for name in names}
    if out is not None:
        prepare(out, "jinja2")
    found = [finding for name, find in finders.items() for finding in _found(name, find, subject, seed, trials)]
    statement = pages.Statement(subject, made, accounts, [*model, *found], course=course)
    _write(statement, page, registry, signer)
    if statement.violated:
        raise typer.Exit(1)


def _page(out: Path | None, ethics: bool, beside: list[str]) -> Path | None:
    """Where the page goes, if one is asked for; an ethics board's is of the plan, and of nothing beside it."""
    if ethics and out is None:
        raise PlanError("--ethics writes ethics.html, and nothing says where: name its folder with --out")
    if ethics and beside:
        raise PlanError(
            f"--ethics is what will be computed, from the plan alone: leave out {', '.join(beside)}, or leave out "
            "--ethics for the page that takes them"
        )
    return None if out is None else out / (ETHICS if ethics else PAGE)


def _write(
    statement: pages.Statement, page: Path | None, registry: Path | None, signer: ps.secagg.Identity | None
) -> None:
    """The page, and the entry of the registry, each where it is asked for, and signatures beside them."""
    from privstats.files.detached import sign_beside, signature_path
    from privstats.workflows.report import TO_WRITE, ethics_page, page_of, registry_entry

    texts: list[tuple[Path, str, str]] = []
    if registry is not None:
        said = f"wrote {registry}; complete what begins with {TO_WRITE!r}"
        texts.append((registry, json_text(registry_entry(statement)), said))
    if page is not None:
        text = ethics_page(statement) if page.name == ETHICS else page_of(statement)
        texts.append((page, text, f"wrote {page.name} to {page.parent}"))
    for path, text, said in texts:
        earlier = signature_path(path)
        if signer is None and earlier.exists():
            earlier.unlink()
            say(f"removed {earlier}, which signed the earlier file: privstats identity sign signs this one")
        atomic_write(path, text.encode(), shared=True)
        say(said)
        if signer is not None:
            place = sign_beside(path, text.encode(), signer, DataError)
            say(f"signed it in {place}")


def _found(name: str, find: pages.Finder, plan: ps.Plan, seed: int | None, trials: int | None) -> list[pages.Finding]:
    from privstats.progress import progress_bar
    from privstats.workflows.report import Search

    with progress_bar(name) as advance:
        return list(find(plan, Search(seed, trials, lambda: advance(1))))
