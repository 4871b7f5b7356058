"""A declared word such as ``none`` is a value in every place of a declaration, every container and every file."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.synthetic.columns import coded
from privstats.course.effect import propensity_schema
from privstats.errors import UnreadableRecordsWarning
from privstats.intake.meaning import MISSING
from privstats.records.from_file import records_in
from privstats.schema.public_values import Published, Values

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

WORDS = sorted(MISSING - {""})
SPELLINGS: tuple[Callable[[str], str], ...] = (str, str.upper, str.title)
PLAIN = "zz"

ARM, AGE, GOT = ["a", "b"] * 6, [float(age) for age in range(20, 80, 5)], ["no", "yes", "yes"] * 4
TIMES, ENDED = [float(month) for month in range(1, 13)], ["seen", "death", "death", "seen"] * 3


class Place(NamedTuple):
    """A declaration with the word in one place, and its records: columns of X, and the columns of y."""

    schema: Callable[[str], Any]
    columns: Callable[[str], dict[str, list[Any]]]
    target: str | None = None


def effect(**other: Any) -> ps.EffectSchema:
    said: dict[str, Any] = {"treatment": {"arm": ("a", "b")}, "outcome": {"got": ("no", "yes")}, "probability": 0.5}
    return ps.EffectSchema.of(other.pop("columns", {"age": (20, 80)}), **said | other)


def trial(**other: list[Any]) -> dict[str, list[Any]]:
    return dict[str, list[Any]](age=AGE, arm=ARM, got=GOT) | other


def hazard(*columns: ps.Categories, ended: tuple[str, ...] = ("seen", "death"), **other: Any) -> ps.HazardSchema:
    columns = columns or (ps.Categories("arm", ("a", "b")),)
    return ps.HazardSchema(
        len(columns) + 1,
        2.0,
        bins=ps.Bins("months", (0, 6, 12)),
        event="ended",
        feature_names=tuple(each.name for each in columns),
        transform=(
            ps.transforms.Levels(columns, (ps.Categories("ended", ended),)),
            ps.transforms.ConstantFeature(1.0),
        ),
        **other,
    )


def followed(**other: list[Any]) -> dict[str, list[Any]]:
    return dict[str, list[Any]](arm=ARM, months=TIMES, ended=ENDED) | other


def some(word: str, *others: str) -> list[Any]:
    """A word, the others, and a true gap."""
    return [*([word, *others] * 12)[:11], None]


def counts(variable: ps.Categories, **other: Any) -> ps.CountSchema:
    return ps.CountSchema((variable,), (("x",),), **other)


def three(word: str) -> ps.Cells:
    return ps.Cells((ps.Categories("x", (word, "one", "two")),))


def celled(column: ps.Categories | ps.Truth, letters: str = "NA", **other: Any) -> ps.ClassSchema:
    cells = ps.Cells((column,))
    return ps.ClassSchema(2, cells.width, letters, 1.0, transform=(cells,), **other)


def rounds(columns: int, **other: Any) -> ps.GradientSchema:
    return ps.GradientSchema(columns, 2, residual_norm=0.3, expected_records=12, course_mu=1.0, **other)


def scored(column: ps.Categories, names: tuple[str, str]) -> ps.Scoring:
    """A head of these classes that reads this column."""
    schema = celled(column, "NAB", class_names=names)
    X = {"x": [column.values[place % 3 % len(column.values)] for place in range(24)]}
    release = ps.Release.exact(schema, ps.measure(schema, X, [names[place // 5 % 2] for place in range(24)]))
    return ps.Scoring(ps.heads.LDA().fit_release(release), score_bins=4)


PLACES: Mapping[str, Place] = {
    "covariate": Place(
        lambda w: effect(columns={"age": (20, 80), "x": (w, "one")}),
        lambda w: {"age": AGE, "x": some(w, "one"), "arm": ARM, "got": GOT},
        "got",
    ),
    "covariate of three": Place(
        lambda w: effect(columns={"x": ("one", w, "two"), "age": (20, 80)}),
        lambda w: {"x": some(w, "one", "two"), "age": AGE, "arm": ARM, "got": GOT},
        "got",
    ),
    "arm": Place(lambda w: effect(treatment={"arm": (w, "b")}), lambda w: trial(arm=some(w, "b")), "got"),
    "outcome": Place(lambda w: effect(outcome={"got": (w, "yes")}), lambda w: trial(got=some("yes", w)), "got"),
    "first session": Place(
        lambda w: effect(outcome={"got": (w, "yes")}).rows, lambda w: trial(got=some(w, "yes")), "got"
    ),
    "subgroup": Place(
        lambda w: effect(columns={"age": (20, 80), "x": (w, "one")}, subgroups=(ps.Categories("x", (w, "one")),)),
        lambda w: {"age": AGE, "x": some(w, "one"), "arm": ARM, "got": GOT},
        "got",
    ),
    "propensity": Place(
        lambda w: propensity_schema(
            effect(columns={"age": (20, 80), "x": (w, "one")}, probability=None, estimand="overlap", trim=0.1)
        ),
        lambda w: {"age": AGE, "x": some("one", w), "arm": ARM, "got": GOT},
        "got",
    ),
    "column of hazards": Place(lambda w: hazard(ps.Categories("x", (w, "one"))), lambda w: followed(x=some(w, "one"))),
    "event": Place(lambda w: hazard(ended=(w, "death")), lambda w: followed(ended=some(w, "death"))),
    "cause": Place(lambda w: hazard(ended=("seen", "death", w)), lambda w: followed(ended=some(w, "death", "seen"))),
    "stratum": Place(lambda w: hazard(strata=ps.Categories("x", (w, "one"))), lambda w: followed(x=some(w, "one"))),
    "class": Place(
        lambda w: ps.ClassSchema(2, 2, "NA", 90.0, class_names=("one", w), feature_names=("age", "dose")),
        lambda w: {"age": AGE, "dose": TIMES, "y": some(w, "one")},
        "y",
    ),
    "class of a round": Place(
        lambda w: rounds(2, class_names=("one", w), feature_names=("age", "dose")),
        lambda w: {"age": AGE, "dose": TIMES, "y": some(w, "one")},
        "y",
    ),
    "cell of a round": Place(
        lambda w: rounds((cells := ps.Cells((ps.Categories("x", (w, "one", "two")),))).width, transform=(cells,)),
        lambda w: {"x": some(w, "one", "three"), "y": [0, 1, 1] * 4},
        "y",
    ),
    "class of a scored head": Place(
        lambda w: scored(ps.Categories("x", ("a", "b")), ("one", w)),
        lambda w: {"x": ["a", "b"] * 6, "y": some(w, "one")},
        "y",
    ),
    "cell of a scored head": Place(
        lambda w: scored(ps.Categories("x", (w, "one", "two")), ("no", "yes")),
        lambda w: {"x": some(w, "one", "three"), "y": ["no", "yes", "yes"] * 4},
        "y",
    ),
    "answer": Place(lambda w: counts(ps.Categories("x", (w, "one"))), lambda w: {"x": some(w, "one")}),
    "answer or nothing": Place(
        lambda w: counts(ps.Categories("x", (w, "one"), missing=True, other=True)), lambda w: {"x": some(w, "two")}
    ),
    "cell": Place(
        lambda w: celled(ps.Categories("x", (w, "one", "two"))),
        lambda w: {"x": some(w, "one", "three"), "y": [0, 1] * 6},
        "y",
    ),
    "cell of two": Place(
        lambda w: celled(ps.Categories("x", ("one", w))), lambda w: {"x": some(w, "one"), "y": [0, 1] * 6}, "y"
    ),
    "pair of a truth": Place(
        lambda w: celled(ps.Truth("x", values=("one", w))), lambda w: {"x": some("one", w), "y": [0, 1] * 6}, "y"
    ),
    "cell of a regression": Place(
        lambda w: ps.RidgeSchema((cells := three(w)).width, clip_norm=1.0, target_bound=1.0, transform=(cells,)),
        lambda w: {"x": some(w, "one", "three"), "y": [0.0, 0.5, 1.0] * 4},
        "y",
    ),
    "cell of a mean": Place(
        lambda w: ps.MeanSchema((cells := three(w)).width, 1.0, transform=(cells,)),
        lambda w: {"x": some(w, "one", "three"), "y": [0, 1] * 6},
        "y",
    ),
    "cell of a site": Place(
        lambda w: ps.SitesSchema((cells := three(w)).width + 1, 2.0, transform=(cells,)),
        lambda w: {"x": some(w, "one", "three"), "y": [0.0, 0.5, 1.0] * 4},
        "y",
    ),
    "step": Place(
        lambda w: celled(ps.Categories("x", ("one", w, "two"), ordered=True)),
        lambda w: {"x": some(w, "one", "two"), "y": [0, 1] * 6},
        "y",
    ),
}


def rows_of(columns: dict[str, list[Any]]) -> list[list[Any]]:
    return [list(row) for row in zip(*columns.values(), strict=True)]


def objects(columns: dict[str, list[Any]]) -> Any:
    return np.array(rows_of(columns), object)


CONTAINERS: Mapping[str, Callable[[dict[str, list[Any]]], Any]] = {
    "lists": rows_of,
    "objects": objects,
    "pandas": pandas.DataFrame,
    "polars": lambda columns: polars.DataFrame(columns),
    "arrow": arrow.table,
}
CSV, PARQUET = "csv", "parquet"
FILES = (CSV, PARQUET)


def constants(schema: Any, shape: tuple[int, ...]) -> Any:
    """Published values: of a gradient such that no two classes or columns are alike."""
    return np.sin(np.arange(np.prod(shape))).reshape(shape) if schema.task == "gradients" else np.full(shape, -1.0)


def sums(schema: Any, X: Any, y: Any) -> dict[str, Any]:
    published = None
    if isinstance(schema, ps.Scoring):
        published, schema = schema.published, schema.schema
    elif schema.needs:
        published = Published.of(
            {name: Values.rounded(constants(schema, shape)) for name, shape in schema.needs.items()}
        )
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        moments: Any = ps.measure(schema, X, y, published=published, unreadable="leave out")
    return {row.letter: np.asarray(moments.sums(row)).tolist() for row in schema.sent}


def in_container(place: Place, word: str, written: str, container: str, folder: Path) -> dict[str, Any]:
    """Measure records whose declared ``word`` is ``written`` so."""
    schema, columns = place.schema(word), place.columns(written)
    if container in FILES:
        path = folder / f"t.{container}"
        if container == CSV:
            lines = [columns, *rows_of(columns)]
            text = "".join(",".join("" if each is None else str(each) for each in line) + "\n" for line in lines)
            path.write_text(text, encoding="utf-8")
        else:
            parquet.write_table(arrow.table(columns), path)
        read_by = schema.schema if isinstance(schema, ps.Scoring) else schema
        return sums(schema, *records_in(ps.moments.RecordFile(path, place.target), read_by.reading, "leave out"))
    y = None if place.target is None else columns.pop(place.target)
    if place.target is None and container in ("lists", "objects") and schema.task == "hazard":
        return sums(schema, columns, None)
    if y is not None and container != "lists":
        y = {"pandas": pandas.Series, "polars": polars.Series, "arrow": arrow.array}.get(container, objects_of)(y)
    return sums(schema, CONTAINERS[container](columns), y)


def objects_of(values: list[Any]) -> Any:
    return np.array(values, object)


def test_some_records_differ_by_the_word(tmp_path: Path) -> None:
    """Else the comparison below could not fail: another word in the records must change the sums."""
    for place in PLACES.values():
        same, other = (in_container(place, PLAIN, word, "pandas", tmp_path) for word in (PLAIN, "qq"))
        assert same != other


def check(place: Place, word: str, container: str, folder: Path, spellings: Iterable[Any]) -> None:
    """Require that a word, declared and written in these ways, is the value that a plain text is."""
    plain = in_container(place, PLAIN, PLAIN, container, folder)
    for spelled, written in spellings:
        found = in_container(place, spelled(word), written(word), container, folder)
        assert found == plain, (spelled(word), written(word), container)


@pytest.mark.parametrize("name", PLACES)
def test_a_declared_word_is_a_value_in_every_container(name: str, tmp_path: Path) -> None:
    for container in (*CONTAINERS, *FILES):
        check(PLACES[name], "none", container, tmp_path, zip(SPELLINGS, (*SPELLINGS[1:], SPELLINGS[0]), strict=True))


@pytest.mark.parametrize("name", PLACES)
def test_every_word_is_a_value_where_it_is_declared(name: str, tmp_path: Path) -> None:
    plain = {each: in_container(PLACES[name], PLAIN, PLAIN, each, tmp_path) for each in (*CONTAINERS, *FILES)}
    for turn, word in enumerate(WORDS):
        container = list(plain)[turn % len(plain)]
        assert in_container(PLACES[name], word, word, container, tmp_path) == plain[container], (word, container)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "word"), list(product(PLACES, WORDS)))
def test_the_whole_matrix(name: str, word: str, tmp_path: Path) -> None:
    for container in (*CONTAINERS, *FILES):
        check(PLACES[name], word, container, tmp_path, product(SPELLINGS, SPELLINGS))


@pytest.mark.parametrize("word", WORDS)
def test_synthetic_columns_read_the_word(word: str) -> None:
    codes = coded((ps.Categories("x", (word, "one")),), {"x": [word.upper(), "one", None]})["x"]
    plain = coded((ps.Categories("x", (PLAIN, "one")),), {"x": [PLAIN, "one", None]})["x"]
    renamed = [PLAIN if each == word else each for each in codes.tolist()]
    assert [str(each) for each in renamed] == [str(each) for each in plain.tolist()]


def test_losses_are_named_by_column_with_public_words_alone() -> None:
    schema = effect(treatment={"arm": ("placebo", "drug")}).rows
    X = pandas.DataFrame({"age": [50.0] * 6, "arm": ["Placebo", "PLACEBO", "drug", "none", "placebo", "a secret"]})
    with pytest.warns(UnreadableRecordsWarning) as caught:
        ps.measure(schema, X, objects_of(["no", "yes", "no", "yes", "N/A", "no"]), unreadable="leave out")
    text = str(caught[0].message)
    assert (
        "'arm': 1 hold nothing, 3 hold none of the values that the plan declares, 2 hold 'placebo' in another" in text
    )
    assert "1 hold 'none', which means a gap where the plan does not declare it; 'got': 1 hold nothing" in text
    assert "1 hold 'n/a', which means a gap" in text
    assert "secret" not in text
    followers = followed(arm=["A", "A", "b", "none", *["b"] * 8])
    published = Published.of({name: Values.rounded(np.zeros(n)) for name, n in hazard().needs.items()})
    with pytest.warns(UnreadableRecordsWarning, match="2 hold 'a' in another case, 1 hold 'none', which means a gap"):
        ps.measure(hazard(), followers, published=published, unreadable="leave out")
    with pytest.warns(UnreadableRecordsWarning, match="1 hold 'one' in another case"):
        ps.measure(counts(ps.Categories("x", ("one", "two"))), {"x": ["One", "two"]}, unreadable="leave out")


def fitted_alone(word: str, written: str) -> dict[str, list[float]]:
    """By class, the number of its records and their sums, of one party's private fit with hardly any noise."""
    cells = ps.Cells((ps.Categories("x", (word, "one", "two")),))
    terms: Any = {"epsilon": 100, "delta": 1e-6, "adjacency": "add-remove", "max_records": 1200, "ledger": "uncharged"}
    X, y = {"x": some(written, "one", "three") * 100}, [written, "one", written] * 400
    head = ps.heads.LDA().fit_private(X, y, transform=(cells,), clip_norm=1.0, classes=(word, "one"), **terms)
    moments = head.release_.moments
    names = [PLAIN if name == word else name for name in head.classes_.tolist()]
    return {name: [n, *row] for name, n, row in zip(names, moments.N.tolist(), moments.A.tolist(), strict=True)}


@pytest.mark.parametrize("word", WORDS)
def test_a_private_fit_reads_the_word(word: str) -> None:
    plain, found = fitted_alone(PLAIN, PLAIN), fitted_alone(word, word.upper())
    assert found.keys() == plain.keys() == {PLAIN, "one"}
    for name, sums in plain.items():
        assert found[name] == pytest.approx(sums, abs=20)
    assert plain[PLAIN] == pytest.approx([800, *plain[PLAIN][1:]], abs=20)
    assert plain[PLAIN][1] > 200, "a word that is read as a gap moves this sum by more than the tolerance"
