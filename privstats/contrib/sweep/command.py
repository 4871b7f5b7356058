"""``privstats sweep``: its options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from privstats.cli.parts.options import TABLE, Dialect, Split, Target
from privstats.extend.commands import argument, expanded, option

app = typer.Typer(rich_help_panel="Plan")


@dataclass(frozen=True)
class Varied:
    """The values of every axis; the plan's own where empty."""

    epsilon: Annotated[
        list[float] | None, option("An epsilon; repeat for more, like every axis. Default: 8, 3, 1, 0.3.")
    ] = None
    model: Annotated[list[str] | None, option("central, distributed, local or panel.")] = None
    unit: Annotated[list[str] | None, option("record or client.")] = None
    clients: Annotated[list[int] | None, option("The number of parties.")] = None
    alpha: Annotated[list[float] | None, option("Dirichlet label skew: .05 is extreme, 100 even.")] = None
    clip_norm: Annotated[list[float] | None, option("The norm that records are clipped to.")] = None
    dimension: Annotated[list[int] | None, option("Features left by a public random projection.")] = None
    statistics: Annotated[list[str] | None, option("The statistics that are summed, such as NAB.")] = None
    records_per_client: Annotated[
        int | None, option("For unit client: most records of a party; others are left out at random.", min=1)
    ] = None


@dataclass(frozen=True)
class Scored:
    """Heads and baselines to score."""

    head: Annotated[
        list[str] | None, option("A head, such as LDA; an unknown name lists them all. Default: the closed forms.")
    ] = None
    baseline: Annotated[
        list[str] | None,
        option(
            "A rival such as dp-sgd, fedavg, fedprox or ensemble, on the same partitions and seeds; an unknown name "
            "lists them all."
        ),
    ] = None
    centred: Annotated[bool, option("Also score each head of one release after a noisy mean.", flag="--centred")] = (
        False
    )
    baselines: Annotated[bool, option("Score scikit-learn's models on the pooled records, too.")] = True


@dataclass(frozen=True)
class Draws:
    """Number of replicates and of processes, and the device."""

    repeats: Annotated[int, option("How often noise and partition are drawn at each point.")] = 5
    seed: Annotated[int, option("Fixes the draws.")] = 0
    jobs: Annotated[int, option("Processes.", min=1)] = 1
    device: Annotated[
        str | None, option("A device of torch, such as cuda, that fits the heads. Default: this machine's cores.")
    ] = None


@app.command()
@expanded
def sweep(
    plan: Annotated[Path, argument("The plan; the axes are varied.", "PLAN.TOML")],
    data: Annotated[
        Path,
        argument(
            f"npz with X_train, y_train, X_test, y_test, or with X and y; a folder of such files; or {TABLE}.", "DATA"
        ),
    ],
    dialect: Dialect,
    varied: Varied,
    scored: Scored,
    draws: Draws,
    target: Target = None,
    split: Split = None,
    out: Annotated[
        Path | None, option("A folder for JSON, CSV, LaTeX, figures and a page; a stopped sweep continues there.")
    ] = None,
) -> None:
    """Score heads over axes of plans on data that you may look at, to choose before a deployment, or for a paper."""
    from privstats.contrib.sweep import Axes, running
    from privstats.contrib.sweep.points import EPSILONS

    axes = Axes(**{"epsilon": EPSILONS, **{name: value for name, value in vars(varied).items() if value}})
    running.run(plan, dialect.file(data, target, split=split, seed=draws.seed), axes, scored, draws, out)
