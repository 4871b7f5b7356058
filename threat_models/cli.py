"""The ``privstats audit`` commands; plugged into the library's command line through an entry point.

Reads a plan, runs an audit, prints its report. No audit logic.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from privstats.dp import Ledger
from privstats.moments import ClassMoments, RidgeMoments, measure
from privstats.plan import Plan
from privstats.randomness import Generator, secure, seeded
from privstats.schema import ClassSchema, Schema, bare
from privstats.workflows.simulate import run
from threat_models.audits.budget import audit_budget, audit_dropouts
from threat_models.audits.canary import audit_canary
from threat_models.audits.ledger import audit_history, audit_ledger
from threat_models.audits.noise import audit_noise
from threat_models.audits.sensitivity import audit_sensitivity
from threat_models.audits.target import target_of
from threat_models.audits.verdict import Report

__all__ = ["audit"]

audit = typer.Typer(help="Hold what is measured against what is proved.", no_args_is_help=True)

PlanFile = Annotated[Path, typer.Argument(help="The plan document.", metavar="PLAN.TOML")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int | None, typer.Option(help="Reproduce a run; without it, system randomness.")]

_RECORDS_PER_CLIENT = 8


@audit.callback()
def _audit() -> None:
    """Hold what is measured against what is proved; exit code 1 when a claim is contradicted."""


@audit.command()
def budget(
    path: PlanFile,
    client_records: Annotated[int | None, typer.Option(min=1, help="Records of the client to show rows for.")] = None,
    json: Json = False,
) -> None:
    """What a plan promises, per statistic, unit and adjacency, and the most any attacker can gain from it."""
    target = target_of(Plan.read(path))
    reports = [audit_budget(target, client_records)]
    if target.privacy.trust.divided:
        reports.append(audit_dropouts(target))
    _finish(reports, json)


@audit.command()
def sensitivity(
    path: PlanFile,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of each search.")] = 12,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Search for a pair of records that moves the release further than the plan claims."""
    _finish([audit_sensitivity(target_of(Plan.read(path)), _rng(seed), starts=starts)], json)


@audit.command()
def noise(path: PlanFile, seed: Seed = None, json: Json = False) -> None:
    """Run the plan once on known records and test whether the noise in the release is the claimed one."""
    plan = replace(Plan.read(path), min_count=0, merge={})
    target_of(plan)
    rng = _rng(seed)
    shards = _known_shards(plan, rng)
    release = run(plan, shards, rng=rng).release
    exact = shards[0]
    for shard in shards[1:]:
        exact = exact + shard  # type: ignore[operator]
    _finish([audit_noise(release, exact, rng)], json)


@audit.command()
def canary(
    path: PlanFile,
    trials: Annotated[int, typer.Option(min=100, help="Releases with, and as many without, the canaries.")] = 5000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the whole table.")] = 0.95,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Prove a lower bound on mu and epsilon from releases with and without a group of canaries."""
    target = target_of(Plan.read(path))
    _finish([audit_canary(target, _rng(seed), trials=trials, confidence=confidence)], json)


@audit.command()
def ledger(
    path: Annotated[Path, typer.Argument(help="The ledger file.", metavar="LEDGER.DB")],
    dataset: Annotated[str | None, typer.Option(help="Show this account only.")] = None,
    expected_head: Annotated[
        str | None, typer.Option(help="The head that an earlier audit printed: refuse an older copy.")
    ] = None,
    json: Json = False,
) -> None:
    """What was spent on each data set against its cap, and every cap change and spend in order."""
    book = Ledger(path, expected_head=expected_head)
    _finish([audit_ledger(book, dataset), audit_history(book, dataset)], json)


def _finish(reports: list[Report], json: bool) -> None:
    if json:
        typer.echo("[" + ",\n".join(report.to_json() for report in reports) + "]")
    else:
        console = Console()
        for report in reports:
            console.print(report, highlight=False)
    if any(report.violated for report in reports):
        raise typer.Exit(1)


def _rng(seed: int | None) -> Generator:
    return secure() if seed is None else seeded(seed)


def _known_shards(plan: Plan, rng: Generator) -> list[ClassMoments | RidgeMoments]:
    """A few made-up records per client: what they are does not matter, only that they are known."""
    each = max(1, min(_RECORDS_PER_CLIENT, plan.cohort.max_records // plan.cohort.clients))
    return [_known_moments(plan.schema, each, rng) for _ in range(plan.cohort.clients)]


def _known_moments(schema: Schema, records: int, rng: Generator) -> ClassMoments | RidgeMoments:
    """Vectors behind the public transform, so that no transform has to be fed."""
    X = _uniform(rng, records, schema.features) * schema.clip_norm
    if isinstance(schema, ClassSchema):
        labels = (rng.uint64(records) % np.uint64(schema.classes)).astype(np.int64)
        return replace(measure(bare(schema), X, labels), schema=schema)
    targets = _uniform(rng, records, schema.targets) * schema.target_bound
    return replace(measure(bare(schema), X, targets), schema=schema)


def _uniform(rng: Generator, rows: int, columns: int) -> NDArray[np.float64]:
    return (rng.uint64(rows * columns).astype(np.float64) * 2.0**-63 - 1).reshape(rows, columns)
