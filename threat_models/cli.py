"""The ``privstats audit`` commands; plugged into the library's command line through an entry point.

Reads a plan, runs an audit, prints its report. No audit logic.

These commands are plug-ins: they belong to the attacker's package, which the library must not import, and the entry
point keeps the arrow pointing one way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import privstats as ps
from privstats.cli.parts.terminal import terminal
from privstats.printable.command_line import command_line

if TYPE_CHECKING:
    from privstats.randomness import Generator
    from threat_models.audits.accountants import Accountant
    from threat_models.audits.target import Target
    from threat_models.audits.verdict import Report

audit = typer.Typer(help="Compare what is measured with what is proved.", no_args_is_help=True, rich_help_panel="Audit")

PlanFile = Annotated[Path, typer.Argument(help="The plan document.", metavar="PLAN.TOML")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int | None, typer.Option(help="Reproduce a run; without it, system randomness.")]


@audit.callback()
def _audit() -> None:
    """Hold what is measured against what is proved; exit code 1 when a claim is contradicted."""


@audit.command()
def budget(
    path: PlanFile,
    client_records: Annotated[int | None, typer.Option(min=1, help="Records of the client to show rows for.")] = None,
    crosscheck: Annotated[
        list[str] | None,
        typer.Option(help="Also ask another accountant: opacus, opacus-rdp, dp-accounting, zcdp; repeat for more."),
    ] = None,
    json: Json = False,
) -> None:
    """Print what a plan promises, per statistic, unit and adjacency, and the most any attacker can gain from it."""
    from threat_models.audits.accountants import audit_accountants
    from threat_models.audits.budget import audit_budget, audit_dropouts
    from threat_models.audits.pure import audit_pure_budget

    target, asked = _target(path), cast("list[Accountant]", crosscheck or [])  # an unknown one is refused by name
    others = [audit_accountants(target, asked)] if asked else []
    if target.privacy.pure:
        _finish([audit_pure_budget(target, _rng(1), client_records)], json)
        return
    reports = [audit_budget(target, client_records)]
    if target.privacy.trust.divided:
        reports.append(audit_dropouts(target))
    _finish([*reports, *others], json)


@audit.command()
def sensitivity(
    path: PlanFile,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of each search.")] = 12,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Search for a pair of records that moves the release further than the plan claims."""
    from threat_models.audits.pure import audit_pure_sensitivity
    from threat_models.audits.searches import search_of

    target = _target(path)
    search = audit_pure_sensitivity if target.privacy.pure else search_of(target.schema)
    _finish([search(target, _rng(seed), starts=starts)], json)


@audit.command()
def noise(
    path: PlanFile,
    trials: Annotated[
        int, typer.Option(min=1, help="The largest number of sessions; the audit stops when every row has enough.")
    ] = 4000,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Run sessions of known records until it would show if their noise were not the one that the plan promises."""
    from threat_models.audits.noise import audit_noise

    _finish([audit_noise(_target(path), _rng(seed), trials=trials)], json)


@audit.command()
def lists(
    path: PlanFile,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions for each lie.")] = 2,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Show several survivor lists to the clients of a plan on a random graph, as a server that lies."""
    from threat_models.audits.lists import audit_lists

    _finish([audit_lists(ps.Plan.read(path), _rng(seed), sessions=sessions)], json)


@audit.command()
def release(
    path: Annotated[Path, typer.Argument(help="The release file.", metavar="RELEASE")],
    known: Annotated[Path, typer.Argument(help="X_0, y_0, X_1, ... or N_0, A_0, ... by client.", metavar="KNOWN.NPZ")],
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Test the noise of an existing release of known inputs, given as records or as moments of every survivor."""
    from threat_models.audits.known_inputs import known_inputs
    from threat_models.audits.release_file import audit_release

    existing = ps.Release.load(path)
    if existing.plan.person_clip is not None:
        raise ps.PlanError("known inputs are rows without ids, and this release is of persons: audit noise and canary")
    parties = known_inputs(known, existing.plan.schema)
    _finish([audit_release(existing, parties, _rng(seed))], json)


@audit.command()
def plant(
    path: PlanFile,
    canaries: Annotated[Path, typer.Argument(help="The file of canaries and coins to write.", metavar="CANARIES.NPZ")],
    entering: Annotated[
        Path, typer.Argument(help="The file to write of records that enter the run.", metavar="ENTERING.NPZ")
    ],
    count: Annotated[int, typer.Option(min=8, help="Number of canaries, each with a coin.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="Reproduce canaries and coins; omit it for a real run.")] = None,
) -> None:
    """Draw canaries and flip their coins, before a run that `audit run` judges.

    One party adds the records of ENTERING.NPZ (X and y) to its own. CANARIES.NPZ stays with the auditor. The canaries
    change the release, so run them where a wrong release does no harm, or on a budget of their own.
    """
    from threat_models.audits.planted import plant as planted
    from threat_models.audits.planted import write_arrays

    drawn = planted(_target(path), count, _rng(seed))
    drawn.save(canaries)
    X, y = drawn.entering
    write_arrays(entering, {"X": X, "y": y})
    typer.echo(f"{count:,} canaries in {canaries}; {len(X):,} records in {entering}: one party adds them to its own")


@audit.command()
def run(
    path: Annotated[Path, typer.Argument(help="The release file.", metavar="RELEASE")],
    known: Annotated[
        Path, typer.Argument(help="X_0, y_0, X_1, ... or N_0, A_0, ..., without canaries.", metavar="KNOWN.NPZ")
    ],
    canaries: Annotated[Path, typer.Argument(help="The file that `audit plant` wrote.", metavar="CANARIES.NPZ")],
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the bound.")] = 0.95,
    json: Json = False,
) -> None:
    """Prove a lower bound on mu from one real run, by guessing which canaries entered it."""
    from threat_models.audits.known_inputs import known_inputs
    from threat_models.audits.one_run import audit_one_run
    from threat_models.audits.planted import Canaries

    existing = ps.Release.load(path)
    parties = known_inputs(known, existing.plan.schema)
    _finish([audit_one_run(existing, parties, Canaries.load(canaries), confidence=confidence)], json)


@audit.command()
def canary(
    path: PlanFile,
    trials: Annotated[int, typer.Option(min=100, help="Releases, each seen with and without the canaries.")] = 5000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the whole table.")] = 0.95,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Prove a lower bound on mu and epsilon from releases with and without a group of canaries."""
    from privstats.kinds import PartySchema, of_records
    from threat_models.audits.canary import audit_canary
    from threat_models.audits.pure import audit_epsilon

    target, bounded = _target(path), audit_epsilon
    if not target.privacy.pure:
        if type(target.schema) is not PartySchema:
            of_records(target.schema)
        bounded = audit_canary
    _finish([bounded(target, _rng(seed), trials=trials, confidence=confidence)], json)


@audit.command()
def devices(
    path: PlanFile,
    runs: Annotated[int, typer.Option(min=80, help="Runs of the machines, half with an honest helper.")] = 10_000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the whole table.")] = 0.95,
    seed: Annotated[int | None, typer.Option(help="Reproduce the search; keys and noise are the system's.")] = None,
    json: Json = False,
) -> None:
    """Prove a lower bound on mu of one device where every other code, and all members but one, are an attacker's."""
    from threat_models.audits.devices import audit_devices

    _finish([audit_devices(_target(path), _rng(seed), runs=runs, confidence=confidence)], json)


@audit.command()
def course(
    path: Annotated[Path, typer.Argument(help="The course document.", metavar="COURSE.TOML")],
    asks: Annotated[int, typer.Option(min=1, max=64, help="How often the server asks for every node.")] = 4,
    trials: Annotated[int, typer.Option(min=100, help="Plays, each seen with and without the canary.")] = 2000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the bound.")] = 0.95,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Prove a lower bound on mu of a whole course against a server that lies wherever it can.

    For a stream whose parties keep a record registry, the noise of its epochs is tested as well.
    """
    from privstats.course import document
    from privstats.course.kinds import course_kind
    from threat_models.audits.course import audit_course
    from threat_models.audits.epochs import audit_epochs
    from threat_models.audits.stream import audit_stream

    if not document.is_course(path):
        raise ps.PlanError(f"{path} is no course; audit a plan by: {command_line('audit', 'budget', path)}")
    stated: tuple[Any, Any] = document.stated(path)  # a promise that the rounds do not keep is a finding here
    result, promise = stated
    rng = _rng(seed)
    terms: dict[str, Any] = {"asks": asks, "trials": trials, "confidence": confidence}
    audits: Mapping[str, Callable[[], list[Report]]] = {
        "course": lambda: [audit_course(result, rng, promise=promise, **terms)],
        "registry": lambda: [audit_stream(result, rng, **terms), audit_epochs(result, rng)],
    }
    _finish(audits[course_kind(result).charge](), json)


@audit.command()
def inference(
    path: PlanFile,
    runs: Annotated[int, typer.Option(min=20, help="Releases per number of records.")] = 500,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Count how often a reported interval misses, over records with known coefficients, effects or hazard ratios.

    Takes the plan of a regression, or the course of a treatment effect or of hazard ratios.
    """
    from privstats.course.document import is_course
    from threat_models.audits.effect_worlds import audit_effect_intervals
    from threat_models.audits.hazard_worlds import audit_hazard_intervals
    from threat_models.audits.inference import audit_inference

    if not is_course(path):
        _finish([audit_inference(ps.Plan.read(path), _rng(seed), runs=runs)], json)
        return
    match ps.course.read(path):
        case ps.Effect() as trial:
            _finish([audit_effect_intervals(trial, _rng(seed), runs=runs)], json)
        case ps.Hazard() as hazards:
            _finish([audit_hazard_intervals(hazards, _rng(seed), runs=runs)], json)
        case _:
            raise ps.errors.PlanError(
                "audit inference takes the plan of a regression, or a course of a treatment effect or of hazard ratios"
            )


@audit.command()
def ledger(
    path: Annotated[Path, typer.Argument(help="The ledger file.", metavar="LEDGER.DB")],
    dataset: Annotated[str | None, typer.Option(help="Show this account only.")] = None,
    expected_head: Annotated[
        str | None, typer.Option(help="The head that an earlier audit printed: refuse an older copy.")
    ] = None,
    json: Json = False,
) -> None:
    """Print what was spent on each data set against its cap, and every cap change and spend in order."""
    from threat_models.audits.ledger import audit_history, audit_ledger

    book = ps.dp.Ledger(path, expected_head=expected_head)
    _finish([audit_ledger(book, dataset), audit_history(book, dataset)], json)


def _target(path: Path) -> Target:
    from privstats.course.document import is_course
    from threat_models.audits.target import target_of

    if is_course(path):
        raise ps.PlanError(
            f"{path} is a course, whose sessions are audited together by: {command_line('audit', 'course', path)}"
        )
    return target_of(ps.Plan.read(path))


def _finish(reports: list[Report], json: bool) -> None:
    if json:
        typer.echo("[" + ",\n".join(report.to_json() for report in reports) + "]")
    else:
        console = terminal()
        for report in reports:
            console.print(report, highlight=False)
    if any(report.violated for report in reports):
        raise typer.Exit(1)


def _rng(seed: int | None) -> Generator:
    from privstats.randomness import secure, seeded

    return secure() if seed is None else seeded(seed)
