"""``privstats score``: how good a head is, on one's own files, or by a plan over all parties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import TABLE, Dialect, Force, Json, Target, argument, expanded, flags_of, option
from privstats.cli.parts.questions import answers_in, options_of
from privstats.cli.parts.terminal import drawable, say
from privstats.cli.parts.thresholds import threshold_of
from privstats.errors import HeadError, PlanError
from privstats.files.text import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from privstats.heads.provenance import Provenance
    from privstats.inference import HeadScore
    from privstats.inference.own_scores import OwnRecords
    from privstats.moments import RecordFile

app = typer.Typer(rich_help_panel="Read")

_PLAN = "The plan of a score over all parties"
ANSWERS = partial(options_of, ("cohort", "privacy"), _PLAN)
_TERMS = ("clients", "max_records", "model", "unit", "adjacency", "epsilon", "delta")


@dataclass(frozen=True)
class Split:
    """Choice of the records that are scored."""

    split: Annotated[float | None, option("The share that was held out of the sums: score these records.")] = None
    seed: Annotated[
        int | None,
        option(
            "The seed of the split. By default the one that the note next to each file states; without a note 0, as in "
            "`course rehearse` of these files in this order."
        ),
    ] = None
    persons: Annotated[
        str | None,
        option("The column of patient ids: a split kept their rows together, and intervals are per patient.", "COLUMN"),
    ] = None

    def files(self, dialect: Dialect, paths: Sequence[Path], target: str | None, head: Provenance) -> list[RecordFile]:
        """Return files with this choice of records."""
        from privstats.intake.record_files import of_party
        from privstats.intake.split_notes import noted_seed

        how: dict[str, Any] = {"split": self.split, "kept_out": self.split is not None, "persons": self.persons}
        named = [dialect.file(path, target, seed=self.seed or 0, **how) for path in paths]
        seeds = [noted_seed(file, head.plan, head.course) if self.seed is None else None for file in named]
        return [
            of_party(file, place) if seed is None else replace(file, seed=seed)
            for place, (file, seed) in enumerate(zip(named, seeds, strict=True))
        ]


@dataclass(frozen=True)
class Bins:
    """Bins in which scores are counted."""

    bins: Annotated[int, option("The public number of bins of the score.")] = 20
    release: Annotated[
        list[Path] | None,
        option(
            "For an older head, whose file does not hold where its scores lie: the head's releases, or their folder. "
            "Bins of two classes then follow these, at no price.",
            "RELEASE",
        ),
    ] = None
    equal: Annotated[
        bool, option("Bins of equal width, even if the head holds where its scores lie.", flag="--equal-bins")
    ] = False
    margin: Annotated[float | None, option("Count margins up to this one instead of probabilities.", "REACH")] = None
    by_class: Annotated[
        bool, option("For more than two classes: a ROC curve for each, with more noise.", flag="--by-class")
    ] = False
    labels: Annotated[
        list[str] | None, option("Each label of the records, if the head lacks some; repeat.", "NAME", flag="--label")
    ] = None


@dataclass(frozen=True)
class Shown:
    """Options for showing the score of own files; a plan accepts none."""

    thresholds: Annotated[
        list[str] | None,
        option(
            "For own files and two classes: print sensitivity and specificity from this probability on, or from "
            "`prevalence` on, the second class's share among the head's records, which is the default; repeat.",
            "NUMBER|prevalence",
            flag="--threshold",
        ),
    ] = None
    figure: Annotated[
        Path | None, option("Also draw it (.svg, .png, .pdf): ROC curves, calibration, confusion.", "FILE")
    ] = None

    def require_none(self) -> None:
        """Refuse these options for a plan."""
        if self.thresholds:
            raise PlanError(
                "--threshold is for your own files: omit it; a plan's counts are read at the edge of a bin that is "
                "nearest to the second class's share"
            )
        if self.figure is not None:
            raise PlanError(
                "--figure draws a score, and a plan has none yet: privstats table RELEASE --figure draws its own"
            )


@app.command()
@expanded
def score(
    dialect: Dialect,
    split: Split,
    bins: Bins,
    shown: Shown,
    answers: Annotated[Any, ANSWERS],
    head: Annotated[Path, argument("The head's file, as `privstats head fit` wrote it.", "HEAD")],
    files: Annotated[list[Path] | None, argument(f"Your own records: {TABLE}; or npz with X and y.", "FILE...")] = None,
    target: Target = None,
    plan: Annotated[Path | None, option("Write the plan, and the head next to it.", "SCORE.TOML", panel=_PLAN)] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Score a head on records that it was not fitted on: your own files, exactly; or all parties', by a plan.

    For files it prints accuracy, recall, AUC and calibration, which stay on this screen. With --plan it writes a plan
    under which every party scores the records that it held out of the sums, and sends only noisy counts: `privstats
    flower new` runs it, and `privstats table RELEASE` reads the score.
    """
    drawable(shown.figure)
    scoring = _scoring(head, bins)
    if (plan is None) == (not files):
        raise PlanError("name files of your own records, or pass --plan SCORE.TOML for a plan over all parties")
    if plan is None:
        named = split.files(dialect, files or (), target, scoring.head.provenance_)
        _score_files(scoring, named, shown, as_json=as_json)
        return
    shown.require_none()
    _write_plan(plan, scoring, {"vanish": 0, "colluders": 0, **answers_in(answers)}, force=force)


def _scoring(head: Path, bins: Bins) -> ps.Scoring:
    from privstats.workflows.fitting import releases_at

    if head.suffix == ".toml":
        raise PlanError(
            f"{head} is a plan or a course, and a head is scored: fit one on its releases with `privstats head fit "
            f"STUDY`; `privstats plan check` and `privstats course check` read {head}"
        )
    sources = None if bins.release is None else releases_at(bins.release)
    scale: dict[str, Any] = {} if bins.margin is None else {"score": "margin", "reach": bins.margin}
    return ps.Scoring(
        ps.heads.load(head),
        bins.bins,
        by_class=bins.by_class,
        labels=bins.labels,
        releases=sources,
        equal_bins=bins.equal,
        **scale,
    )


def _write_plan(path: Path, scoring: ps.Scoring, given: Mapping[str, Any], *, force: bool) -> None:
    from privstats.cli.parts.wizard import cohort_of, privacy_of, write_scored
    from privstats.plan.settings import new_plans

    _require_terms(given)
    plan = scoring.plan(cohort=cohort_of(given), privacy=privacy_of(given), **new_plans())
    write_scored(path, plan, plan.to_toml(), force=force)


def _require_terms(given: Mapping[str, Any]) -> None:
    if lacking := [name for name in _TERMS if name not in given]:
        raise PlanError(f"a plan of a score needs {flags_of(lacking)}: no choice of privacy has a default")
    if given["unit"] == "person" and "person_clip" not in given:
        raise PlanError(
            "--unit person needs --person-clip average: each patient then counts once; every other clip biases shares"
        )


def _score_files(scoring: ps.Scoring, named: Sequence[RecordFile], shown: Shown, *, as_json: bool) -> None:
    from privstats.intake.split_notes import require_same_split

    sums = scoring.head.provenance_
    stated = [file for file in named if not require_same_split(file, sums.plan, sums.course) and file.split is not None]
    score, own = _own_score(scoring, named, _thresholds(scoring, shown.thresholds))
    if shown.figure is not None:
        score.plot(shown.figure)
    if as_json:
        head, rows = scoring.schema.head, score.to_rows()
        typer.echo(json_text({"head": head, "records": len(own.y), "rows": rows, "remarks": score.remarks}))
        return
    typer.echo(score.summary(own=True).as_text())
    if stated:
        paths = ", ".join(str(file.path) for file in stated)
        say(f"no note next to {paths} shows the split of the head's sums: share, seed and order of files are as stated")
    _say_whose(own, kept_out=all(file.split is not None for file in named))


def _thresholds(scoring: ps.Scoring, named: Sequence[str] | None) -> tuple[float, ...]:
    from privstats.heads.scoring import own_threshold

    if named is None:
        try:
            return (own_threshold(scoring, "prevalence"),)
        except HeadError:  # more than two classes, or a head that does not know their shares
            return ()
    return tuple(own_threshold(scoring, threshold_of(each)) for each in named)


def _say_whose(own: OwnRecords, *, kept_out: bool) -> None:
    if not kept_out:
        say("the head must not be fitted on these records: pass --split to score only those that the split held out")
    if own.persons is not None:
        say(f"intervals are of {len(set(own.persons.tolist())):,} patients, whose rows count together")
    say("exact numbers of your own records: do not share them; --plan scores the records of all parties with noise")


def _own_score(
    scoring: ps.Scoring, named: Sequence[RecordFile], thresholds: tuple[float, ...]
) -> tuple[HeadScore, OwnRecords]:
    import numpy as np

    from privstats import inference
    from privstats.encoding import flatten
    from privstats.inference.head_scores import score_of_own_records
    from privstats.inference.own_scores import OwnRecords

    measured, scored = zip(*(_own_sums(scoring, file) for file in named), strict=True)
    schema, total = scoring.schema, sum(measured[1:], measured[0])
    if not total.records:
        raise PlanError("no record remains to score; check --split, and that the columns are those of the head")
    plan = scoring.plan(cohort=ps.Cohort(2, 2, total.records), privacy=ps.NoPrivacy())
    score = inference.head_score(ps.Release(plan, flatten(total), (0, 1)))
    y, shares, ids = (np.concatenate(each) for each in zip(*scored, strict=True))
    persons = any(file.persons is not None for file in named)
    own = OwnRecords(y, shares, ids if persons else None, thresholds)
    return score_of_own_records(score, schema.labels, own), own


def _own_sums(scoring: ps.Scoring, file: RecordFile) -> tuple[Any, Any]:
    import numpy as np

    from privstats.heads.scoring import own_shares
    from privstats.moments import exact_moments
    from privstats.records.from_file import persons_in, records_in
    from privstats.workflows.simulate import begun_warnings

    ids: Any = None
    if file.persons is None:
        X, y = records_in(file, scoring.schema.reading, "leave out", at_once=True)
    else:
        X, y, ids = persons_in(file, scoring.schema.reading, "leave out")
    terms: Any = {"published": scoring.published, "unreadable": "leave out"}
    with begun_warnings(Path(file.path).name):
        moments = exact_moments(scoring.schema, X, y, **terms)
    places, shares, known = own_shares(scoring, X, y)
    whose = np.full(len(known), None, object) if ids is None else np.asarray(ids, object)
    return moments, (places, shares, whose[known])
