"""``privstats score``: how good a head is, on files of one's own, or by a plan over all parties."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import Decimal, Encoding, Json, Separator, Target
from privstats.cli.parts.output import Force, drawable
from privstats.cli.parts.terminal import say
from privstats.errors import PlanError
from privstats.files.jsonable import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privstats.moments import RecordFile

__all__ = ["app"]

app = typer.Typer(rich_help_panel="Read")

_PLAN = "The plan of a score over all parties"
_TERMS = ("clients", "max_records", "model", "unit", "adjacency", "epsilon", "delta")


@app.command()
def score(
    head: Annotated[Path, typer.Argument(help="The head, as its save() wrote it.", metavar="HEAD")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Your own records: CSV, Parquet, or npz with X and y.", metavar="FILE..."),
    ] = None,
    target: Target = None,
    split: Annotated[
        float | None, typer.Option(help="Score what this split kept out of the sums, as it was given for them.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The split's.")] = 0,
    persons: Annotated[
        str | None,
        typer.Option(help="The split's: the column by which it kept a patient's rows together.", metavar="COLUMN"),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of the score, public.")] = 20,
    release: Annotated[
        list[Path] | None,
        typer.Option(
            help="Of two classes: a release that the head was made from, all in order. Bins then lie where its scores "
            "do, at no price; of a rare outcome they tell far more.",
            metavar="RELEASE",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="Count margins up to this one in place of probabilities.", metavar="REACH"),
    ] = None,
    by_class: Annotated[
        bool,
        typer.Option("--by-class", help="Of more than two classes: a ROC curve for each, at the price of its table."),
    ] = False,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", help="Every label, where the head lacks some; repeat.", metavar="NAME"),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw it too (.svg, .png, .pdf): ROC curves, calibration, confusion.", metavar="FILE"),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="Write the plan, and the head beside it.", metavar="SCORE.TOML", rich_help_panel=_PLAN),
    ] = None,
    clients: Annotated[int | None, typer.Option(help="Parties.", rich_help_panel=_PLAN)] = None,
    vanish: Annotated[int, typer.Option(help="How many parties may vanish.", rich_help_panel=_PLAN)] = 0,
    colluders: Annotated[
        int, typer.Option(help="How many parties may work with the server.", rich_help_panel=_PLAN)
    ] = 0,
    max_records: Annotated[
        int | None, typer.Option(help="Records to score at most, over all parties.", rich_help_panel=_PLAN)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Who adds noise: central, distributed or local.", rich_help_panel=_PLAN)
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Who is protected: record, person or client.", rich_help_panel=_PLAN)
    ] = None,
    person_clip: Annotated[
        str | None,
        typer.Option(
            help="With unit person: average, or how many rows a patient may weigh at most.", rich_help_panel=_PLAN
        ),
    ] = None,
    max_records_per_person: Annotated[
        int | None,
        typer.Option(help="With a number for --person-clip: rows of a patient that count.", rich_help_panel=_PLAN),
    ] = None,
    max_records_per_client: Annotated[
        int | None, typer.Option(help="With unit client: records of one party.", rich_help_panel=_PLAN)
    ] = None,
    adjacency: Annotated[str | None, typer.Option(help="add-remove or replace-one.", rich_help_panel=_PLAN)] = None,
    epsilon: Annotated[float | None, typer.Option(help="The promise.", rich_help_panel=_PLAN)] = None,
    delta: Annotated[float | None, typer.Option(help="The promise.", rich_help_panel=_PLAN)] = None,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    decimal: Decimal = ".",
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Score a head on records that it was not made from: your own files, exactly; or all parties', by a plan.

    Of files it prints accuracy, recall, AUC and calibration, which stay on this screen. With --plan it writes a plan
    under which every party scores what it kept out and only noisy counts leave it: `privstats flower new` runs it, and
    `privstats table RELEASE` reads the score.
    """
    from privstats.cli.parts.score_questions import person_clip_of, write_scored
    from privstats.moments import RecordFile
    from privstats.moments.split_notes import require_same_split

    drawable(figure)
    scale: dict[str, Any] = {} if margin is None else {"score": "margin", "reach": margin}
    made_from = None if release is None else [ps.Release.load(each) for each in release]
    scoring = ps.Scoring(ps.heads.load(head), bins, by_class=by_class, labels=labels, releases=made_from, **scale)
    if (plan is None) == (not files):
        raise PlanError("give files of your own records to score, or --plan SCORE.TOML for a plan over all parties")
    if plan is None:
        kept = split is not None
        if persons is not None and not kept:
            raise PlanError("--persons says by which column a split kept rows together: add --split, or leave it out")
        how = (split, seed, encoding, separator, decimal, kept, persons)
        named = [RecordFile(each, target, *how) for each in files or ()]
        origin = scoring.head.provenance_
        for each in named:
            require_same_split(each, origin.plan, origin.course)
        _print_local(scoring, named, figure, as_json=as_json)
        return
    if figure is not None:
        raise PlanError(
            "--figure draws a score, and a plan has none yet: privstats table RELEASE --figure draws its own"
        )
    terms: dict[str, Any] = {"clients": clients, "max_records": max_records, "model": model, "unit": unit}
    terms |= {"adjacency": adjacency, "epsilon": epsilon, "delta": delta}
    _require_terms(terms)
    privacy = {name: terms.pop(name) for name in ("model", "unit", "adjacency", "epsilon", "delta")}
    cohort = ps.Cohort(clients or 0, (clients or 0) - vanish, max_records or 0, colluders)
    of_unit: dict[str, Any] = {
        "max_records_per_client": max_records_per_client,
        "max_records_per_person": max_records_per_person,
        "person_clip": person_clip_of(person_clip),
    }
    _require_person_clip(unit, person_clip)
    promise = ps.Privacy(**privacy, **of_unit)
    made = scoring.plan(cohort=cohort, privacy=promise)
    write_scored(plan, made, made.to_toml(), force=force)


def _require_terms(terms: dict[str, Any]) -> None:
    lacking = [f"--{name.replace('_', '-')}" for name in _TERMS if terms[name] is None]
    if lacking:
        raise PlanError(f"a plan of a score needs {', '.join(lacking)}: no choice of privacy has a default")


def _require_person_clip(unit: str | None, person_clip: str | None) -> None:
    if unit == "person" and person_clip is None:
        raise PlanError(
            "--unit person needs --person-clip: average, and a patient counts once, or a number beside "
            "--max-records-per-person"
        )


def _print_local(scoring: ps.Scoring, named: Sequence[RecordFile], figure: Path | None, *, as_json: bool) -> None:
    from privstats import inference
    from privstats.encoding import flatten
    from privstats.moments import exact_moments
    from privstats.moments.from_file import records_in

    schema, published = scoring.schema, scoring.published
    measured = [exact_moments(schema, *records_in(file, schema, "refuse"), published=published) for file in named]
    total: Any = sum(measured[1:], measured[0])
    if not total.records:
        raise PlanError("no record is left to score; check --split, and that the columns are those of the head")
    plan = scoring.plan(cohort=ps.Cohort(2, 2, total.records), privacy=ps.NoPrivacy())
    found = inference.head_score(ps.Release(plan, flatten(total), (0, 1)))
    if figure is not None:
        found.plot(figure)
    if as_json:
        typer.echo(
            json_text(
                {"head": schema.head, "records": total.records, "rows": found.to_rows(), "remarks": found.remarks}
            )
        )
        return
    typer.echo(found.summary(own=True).as_text())
    if any(file.split is None for file in named):
        say(
            "these records must have had no part in the head: with --split those that a split kept out are scored alone"
        )
    say("exact numbers of your own records: they stay on this screen, and over all parties --plan asks for noise")
