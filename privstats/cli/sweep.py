"""``privstats sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privstats.cli.parts.options import Decimal, Encoding, Separator, Split, Target

__all__ = ["app"]

app = typer.Typer(rich_help_panel="Plan")


@app.command()
def sweep(
    plan: Annotated[Path, typer.Argument(help="The plan; the axes are varied.", metavar="PLAN.TOML")],
    data: Annotated[
        Path,
        typer.Argument(
            help="npz with X_train, y_train, X_test, y_test, or with X and y; or a CSV or Parquet file.", metavar="DATA"
        ),
    ],
    target: Target = None,
    split: Split = None,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    decimal: Decimal = ".",
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A budget; repeat for more, as for every axis. By default 8, 3, 1, 0.3.")
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help="A head, such as LDA; a name that is none lists them all. By default the closed forms."),
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="central, distributed, local or panel.")] = None,
    unit: Annotated[list[str] | None, typer.Option(help="record or client.")] = None,
    clients: Annotated[list[int] | None, typer.Option(help="Parties.")] = None,
    alpha: Annotated[list[float] | None, typer.Option(help="Dirichlet label skew: .05 is extreme, 100 even.")] = None,
    clip_norm: Annotated[list[float] | None, typer.Option(help="The norm that records are shortened to.")] = None,
    dimension: Annotated[list[int] | None, typer.Option(help="Features left by a public random projection.")] = None,
    statistics: Annotated[list[str] | None, typer.Option(help="What is summed, such as NAB.")] = None,
    records_per_client: Annotated[
        int | None, typer.Option(min=1, help="For unit client: most records of a party; more are left out at random.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Draws of noise and partition at every point.")] = 5,
    seed: Annotated[int, typer.Option(help="Fixes the draws.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="dp-sgd or dp-gd: what Opacus trains on the pooled records at each epsilon; needs torch. "
            "Or a rival of another package, by its word."
        ),
    ] = None,
    centred: Annotated[
        bool, typer.Option("--centred", help="Score each head of one release behind a noisy mean, too.")
    ] = False,
    baselines: Annotated[bool, typer.Option(help="Score scikit-learn's models on the pooled records, too.")] = True,
    out: Annotated[
        Path | None, typer.Option(help="A folder for JSON, CSV, figures and a page; a stopped sweep goes on in it.")
    ] = None,
) -> None:
    """Score heads over axes of plans on data that you may look at, to choose before a deployment, or for a paper."""
    from privstats.cli.parts import sweeping
    from privstats.moments import RecordFile
    from privstats.workflows.score import EPSILONS
    from privstats.workflows.sweep import Axes

    axes = Axes(
        model=model or (),
        unit=unit or (),
        clients=clients or (),
        alpha=alpha or (),
        clip_norm=clip_norm or (),
        dimension=dimension or (),
        statistics=statistics or (),
        epsilon=epsilon or EPSILONS,
        records_per_client=records_per_client,
    )
    records = RecordFile(data, target, split, seed, encoding, separator, decimal)
    sweeping.run(
        plan,
        records,
        head,
        axes,
        trained=baseline or (),
        centred=centred,
        repeats=repeats,
        seed=seed,
        jobs=jobs,
        with_baselines=baselines,
        out=out,
    )
