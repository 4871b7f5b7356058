"""A declared word is a value: a level called ``none`` counts as any other, in each place, kind and container."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.encoding import flatten
from privstats.errors import PrivstatsError
from privstats.intake.meaning import MISSING
from privstats.moments.from_file import records_in
from privstats.randomness import seeded
from privstats.transforms import Centre, ConstantFeature, Levels
from tests import made

PLAIN = "zz"
WORDS = sorted(word for word in MISSING if word)
FORMS: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "title": str.title}
RECORDS = 60
Columns = dict[str, list[Any]]


def table(levels: dict[str, tuple[str, ...]], seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    texts = {name: [values[at] for at in rng.integers(0, len(values), RECORDS)] for name, values in levels.items()}
    return {"age": rng.integers(20, 70, RECORDS).tolist(), "months": rng.integers(0, 12, RECORDS).tolist(), **texts}


def effect(levels: dict[str, tuple[str, ...]]) -> Any:
    return ps.EffectSchema.of(
        {"age": (20, 70), "smoking": levels["smoking"]},
        treatment={"arm": levels["arm"]},
        outcome={"got": levels["got"]},
        probability=0.5,
    )


def counts(levels: dict[str, tuple[str, ...]]) -> Any:
    variables = tuple(ps.Categories(name, values) for name, values in levels.items())
    return ps.CountSchema(variables, (tuple(levels),))


def cells(levels: dict[str, tuple[str, ...]]) -> Any:
    columns = (ps.Numeric("age", (30, 50)), *(ps.Categories(name, levels[name]) for name in ("smoking", "arm")))
    declared = ps.Cells(columns)
    return ps.ClassSchema(2, declared.outputs(None), "NA", 2.0, class_names=("no", "yes"), transform=(declared,))


def hazard(levels: dict[str, tuple[str, ...]]) -> ps.Hazard:
    texts = Levels((ps.Categories("arm", levels["arm"]),), (ps.Categories("got", levels["got"]),))
    schema = ps.HazardSchema(
        3,
        clip_norm=2.0,
        bins=ps.Bins("months", (0, 6, 12)),
        event="got",
        feature_names=("arm", "age"),
        transform=(texts, Centre((0.5, 45.0)), ps.transforms.Scale((1.0, 0.02)), ConstantFeature(1.0)),
        times="continuous",
        strata=ps.Categories("stage", levels["stage"]),
    )
    return ps.Hazard.start(schema, ps.Cohort(2, 2, 1_000), made.promise(epsilon=8.0))


PLACES = {
    "effect": (effect, {"smoking": ("a", "light", "heavy"), "arm": ("a", "drug"), "got": ("a", "yes")}, ("got",)),
    "counts": (counts, {"smoking": ("a", "light", "heavy"), "got": ("a", "yes")}, ()),
    "cells": (cells, {"smoking": ("a", "light", "heavy"), "arm": ("a", "drug")}, ("ill",)),
}
HAZARD = {"arm": ("a", "drug"), "got": ("a", "death"), "stage": ("a", "two")}


def with_word(levels: dict[str, tuple[str, ...]], place: str, word: str) -> dict[str, tuple[str, ...]]:
    """Declare ``word`` as the first level of ``place``, and a plain one elsewhere."""
    return {name: (word if name == place else PLAIN, *values[1:]) for name, values in levels.items()}


def integers(sums: list[Any]) -> list[list[int]]:
    return [flatten(one).tolist() for one in sums]


def held(columns: Columns, targets: tuple[str, ...], container: str, folder: Path, words: str) -> tuple[Any, Any]:
    rest = {name: values for name, values in columns.items() if name not in targets}
    y = columns[targets[0]] if targets else None
    if container == "lists":  # rows need a frame; counts and declared columns accept columns by name
        return (list(map(list, zip(*rest.values(), strict=True))) if len(targets) and "ill" not in targets else rest), y
    pandas = pytest.importorskip("pandas")
    if container == "pandas":
        return pandas.DataFrame(rest), y if y is None else pandas.Series(y)
    if container == "polars":
        polars = pytest.importorskip("polars")
        return polars.DataFrame(rest), y if y is None else polars.Series(y)
    path = folder / f"{words}.{container}"
    frame = pandas.DataFrame(columns)
    if container == "csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    return ps.moments.RecordFile(path, targets[0] if targets else None), None


def _sums(schema: Any, X: Any, y: Any, **how: Any) -> Any:
    if isinstance(X, ps.moments.RecordFile):
        X, y = records_in(X, schema, "leave out")
    return ps.measure(schema, X, y, unreadable="leave out", **how)


def measured(kind: str, levels: dict[str, tuple[str, ...]], container: str, folder: Path, words: str) -> list[Any]:
    """Return the sums of each session of a plan or course of this kind."""
    build, _, targets = PLACES[kind]
    schema, columns = build(levels), table(levels)
    if kind == "cells":
        columns["ill"] = ["no", "yes"] * (RECORDS // 2)
    used = {"age", "smoking", "arm"} if kind == "cells" else {*(getattr(schema, "feature_names", None) or levels)}
    columns = {name: values for name, values in columns.items() if name in used or name in targets}
    X, y = held(columns, targets, container, folder, words)
    if kind != "effect":
        return [_sums(schema, X, y)]
    course, releases, found = ps.Effect.start(schema, ps.Cohort(2, 2, 1_000), made.promise(epsilon=8.0)), [], []
    while (plan := course.next(tuple(releases))) is not None:
        found.append(_sums(plan.schema, X, y, published=plan.published))
        releases.append(ps.session.aggregate_unmasked(plan, [found[-1]] * 2, seeded(1)))
    return found


CONTAINERS = ("lists", "pandas", "polars", "csv", "parquet")
CASES = [(kind, place) for kind, (_, levels, _) in PLACES.items() for place in levels]


def _same(kind: str, place: str, word: str, container: str, folder: Path) -> None:
    levels = PLACES[kind][1]
    expected = measured(kind, with_word(levels, place, PLAIN), container, folder, "plain")
    assert {each.records for each in expected} == {RECORDS}
    try:
        found = measured(kind, with_word(levels, place, word), container, folder, "word")
    except PrivstatsError as refusal:  # when the schema is built, in one sentence
        assert "write another text" in str(refusal)
        return
    assert integers(found) == integers(expected)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("word", ["None", "NA", "null", "n/a", "nan"])
@pytest.mark.parametrize(("kind", "place"), CASES)
def test_a_declared_gap_word_counts_as_any_other_level(
    kind: str, place: str, word: str, container: str, tmp_path: Path
) -> None:
    _same(kind, place, word, container, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", WORDS)
def test_every_gap_word_in_every_case_counts_as_any_other_level(
    word: str, form: str, container: str, tmp_path: Path
) -> None:
    for kind, place in CASES:
        _same(kind, place, FORMS[form](word), container, tmp_path)


@pytest.mark.parametrize("word", ["None", "NA", "n/a"])
@pytest.mark.parametrize("place", HAZARD)
def test_a_hazards_declared_gap_word_counts_in_every_session(place: str, word: str) -> None:
    def sums(levels: dict[str, tuple[str, ...]]) -> list[Any]:
        course, columns, releases, found = hazard(levels), table(levels), [], []
        parts = [{name: values[at::2] for name, values in columns.items()} for at in range(2)]
        for _ in range(2):  # the counts, and a round
            plan = course.next(tuple(releases))
            moments = [
                ps.measure(plan.schema, part, published=plan.published, unreadable="leave out") for part in parts
            ]
            found += moments
            releases.append(ps.session.aggregate_unmasked(plan, moments, seeded(1)))
        return found

    assert integers(sums(with_word(HAZARD, place, word))) == integers(sums(with_word(HAZARD, place, PLAIN)))


def test_an_undeclared_gap_word_is_a_gap_beside_a_declared_one() -> None:
    schema = cells({"smoking": ("none", "light", "heavy"), "arm": ("a", "drug")})
    smoking = ["none", "NA", "light", "heavy", None, "None"]
    codes = schema.transform[0].read({"age": [40] * 6, "smoking": smoking, "arm": ["a"] * 6}).codes[:, 1]
    assert np.array_equal(codes, [0, np.nan, 1, 2, np.nan, 0], equal_nan=True)
