"""One party's raw table: declared columns in place of a clip norm, with nothing else to choose."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import privstats as ps
from privstats.errors import DataError, PrivstatsError, RecordError, ReleaseError, UnreadableRecordsWarning
from privstats.heads.private import Labels
from tests.course.cases import CLOSED, TABLE, table

pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
TERMS: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "adjacency": "add-remove", "ledger": "uncharged"}
N = 2_000


def records() -> tuple[dict[str, list[object]], np.ndarray]:
    X, y = table(N)
    return X, np.where(y == 1, "ill", "well")


@pytest.mark.parametrize(
    ("head", "kinds"), [("LDA", ["mean", "classes"]), ("RefinedSoftmax", ["classes", "gradients"])]
)
@pytest.mark.parametrize("cells", [TABLE, CLOSED], ids=["open", "closed"])
def test_a_raw_table_is_fitted_under_the_whole_promise_and_predicts_from_one(head: str, kinds: Any, cells: Any) -> None:
    """Columns with a unit of their own, texts and gaps; the cut points of open ones are found first."""
    (X, y), terms = records(), {**TERMS, "columns": cells.columns, "expected_records": N}
    found = getattr(ps.heads, head)().fit_private(X, y, classes=["ill", "well"], **terms)
    tasks = [release.plan.schema.task for release in found.releases_]
    counts = tasks.count("counts")
    assert bool(counts) == bool(cells.open)
    assert tasks[counts : counts + 2] == kinds
    assert found.provenance_.epsilon == pytest.approx(8.0, rel=1e-6)
    assert len(found.provenance_.releases) == len(tasks)
    assert not found.provenance_.assumed_public
    if cells.open:
        assert found.score(X, y) > 0.6  # sodium is higher in those who are ill
    np.testing.assert_array_equal(found.predict(X), found.predict(dict(reversed(X.items()))))


def test_a_pipeline_takes_the_same_declaration() -> None:
    X, y = records()
    terms = {**TERMS, "columns": TABLE.columns, "expected_records": N, "classes": ("ill", "well")}
    assert ps.heads.Private(ps.heads.LDA(), **terms).fit(X, y).score(X, y) > 0.6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a private fit needs clip_norm=...: only the owner"),
        ({"columns": TABLE.columns}, "declared columns need expected_records=..., the number of records"),
        ({"columns": TABLE.columns, "expected_records": 9, "clip_norm": 2.0}, "leave clip_norm and transform out"),
        (
            {"columns": TABLE.columns, "expected_records": 9, "transform": (ps.transforms.UnitNorm(),)},
            "leave clip_norm and transform out",
        ),
        ({"clip_norm": None}, "clip_norm must be a number between"),
        ({"clip_norm": 1.0, "expected_records": 9}, "expected_records serves centred=True alone, and declared columns"),
    ],
)
def test_what_does_not_go_together_is_said(given: Any, said: str) -> None:
    with pytest.raises(PrivstatsError, match=said):
        ps.heads.LDA().fit_private([[0.0, 1.0], [1.0, 0.0]], [0, 1], **TERMS, **given)


ODD = (None, float("nan"), "zz", 7, object(), [1, 2], np.array([0, 1]), {"a": 1})


@pytest.mark.parametrize("head", ["LDA", "RefinedSoftmax"])
def test_a_record_of_no_class_is_left_out_and_refuses_no_fit(head: str) -> None:
    """Declared columns take any value, so they take any label; the sums are those of the other records."""
    (X, y), odd = table(N), ODD * 25
    terms = {**TERMS, "epsilon": 100.0, "columns": CLOSED.columns, "expected_records": N, "classes": (0, 1)}
    labels: list[Any] = [*odd, *y[len(odd) :].tolist()]
    with pytest.warns(UnreadableRecordsWarning, match=f"{len(odd)} of the records cannot be read and are excluded"):
        found = getattr(ps.heads, head)().fit_private(X, labels, **terms)
    (sums,) = (each for each in found.releases_ if each.plan.schema.task == "classes")
    np.testing.assert_allclose(sums.moments.N, np.bincount(y[len(odd) :]), atol=10)


def test_each_label_has_a_place_by_itself_or_none() -> None:
    labels = Labels(np.array(["a", "b"]))
    assert labels.places(["a", *ODD, "b", [" b"]]).tolist() == [0] + [-1] * len(ODD) + [1, 1]
    masked = np.ma.MaskedArray(np.array(["a", "b"]), [True, False])
    assert labels.places(masked).tolist() == [-1, 1]
    with pytest.raises(PrivstatsError, match=r"y must have shape \(records,\), got 2 dimensions"):
        labels.places(np.array([["a", "b"]]))


def test_rows_of_numbers_still_refuse_a_label_of_no_class() -> None:
    with pytest.raises(RecordError, match="position 1 that is not among classes"):
        ps.heads.LDA().fit_private([[0.0, 1.0]] * 2, [0, None], classes=(0, 1), clip_norm=1.0, **TERMS)


MEANS = {"age": 60.0, "Sodium": 140.0}


def targets(X: dict[str, list[object]]) -> np.ndarray:
    """Linear in two columns; a record with an odd value has the mean there."""
    age, sodium = ([each if isinstance(each, float) else mean for each in X[name]] for name, mean in MEANS.items())
    return 0.02 * (np.array(age) - 60) + 0.1 * (np.array(sodium) - 140)


@pytest.mark.ci
@pytest.mark.parametrize("head", [ps.heads.Ridge(), ps.heads.RefinedRidge(rounds=4)], ids=["Ridge", "RefinedRidge"])
@pytest.mark.parametrize("cells", [TABLE, CLOSED], ids=["open", "closed"])
def test_a_raw_table_is_regressed_on_under_the_whole_promise(head: Any, cells: Any, tmp_path: Any) -> None:
    X, _ = records()
    terms = {**TERMS, "columns": cells.columns, "expected_records": N, "target_bound": 2.0}
    found = clone(head).fit_private(X, targets(X), **terms)
    releases = found.releases_ if hasattr(found, "releases_") else [found.release_]
    assert {release.plan.schema.task for release in releases[:-1]} <= {"counts", "ridge", "gradients", "mean"}
    assert (releases[0].plan.schema.task == "counts") == bool(cells.open)
    assert found.provenance_.epsilon == pytest.approx(8.0, rel=1e-6)
    assert len(found.provenance_.releases) == len(releases)
    assert not found.provenance_.assumed_public
    assert found.score(X, targets(X)) > 0.6
    np.testing.assert_array_equal(found.predict(X), found.predict(dict(reversed(X.items()))))
    found.save(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(ps.heads.load(tmp_path / "head.safetensors").predict(X), found.predict(X))
    pipeline = ps.heads.Private(clone(head), **terms).fit(X, targets(X))
    assert pipeline.score(X, targets(X)) > 0.6


def test_a_record_without_a_target_is_left_out_and_refuses_no_regression() -> None:
    X, _ = records()
    odd: list[Any] = [None, float("nan"), "zz", object(), {"a": 1}, "12 mg", float("inf"), "n/a"] * 25
    y = [*odd, *targets(X)[len(odd) :].tolist()]
    terms = {**TERMS, "epsilon": 100.0, "columns": CLOSED.columns, "expected_records": N, "target_bound": 2.0}
    with pytest.warns(UnreadableRecordsWarning, match=f"{len(odd)} of the records cannot be read and are excluded"):
        found = ps.heads.Ridge(solver="aggregate").fit_private(X, y, **terms)
    sums = found.release_.moments
    assert sums.G[-1, -1] / 0.25 == pytest.approx(N - len(odd), abs=10)


def test_ridge_reads_all_releases_of_its_course_and_no_others() -> None:
    X, _ = records()
    terms = {**TERMS, "columns": TABLE.columns, "expected_records": N, "target_bound": 2.0}
    found = ps.heads.Ridge(solver="aggregate").fit_private(X, targets(X), **terms)
    *counts, last = found.releases_
    again = ps.heads.Ridge().fit_release([*counts, last])
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    other = ps.heads.Ridge(solver="aggregate").fit_private(X, targets(X), **terms).releases_
    with pytest.raises(ReleaseError, match="cut points of these sums do not follow from these counts"):
        ps.heads.Ridge().fit_release([*other[:-1], last])
    with pytest.raises(ReleaseError, match="release 1 is not the next of its course"):
        ps.heads.Ridge().fit_release([last, last])
    for wrong in ([], [last], counts, [*counts, None]):
        with pytest.raises(DataError, match="the releases of a Binned course over one plan"):
            ps.heads.Ridge().fit_release(wrong)


@pytest.mark.parametrize("declared", [True, False])
def test_one_party_alone_refines_its_ridge_by_rounds_at_the_same_charge(declared: bool) -> None:
    X: Any = records()[0]
    goals = targets(X)
    rows = {"columns": CLOSED.columns} if declared else {"clip_norm": 1.0}
    X = X if declared else np.random.default_rng(0).uniform(-0.5, 0.5, (len(goals), 3))
    terms = {**TERMS, **rows, "expected_records": N, "target_bound": 2.0}
    found, refined = (head.fit_private(X, goals, **terms) for head in (ps.heads.Ridge(), ps.heads.RefinedRidge()))
    assert (found.solver_, len(found.releases_)) == ("rounds", len(refined.releases_))
    assert found.provenance_.epsilon == refined.provenance_.epsilon
    again = ps.heads.RefinedRidge().fit_releases(found.releases_)
    np.testing.assert_array_equal(found.predict(X), again.predict(X))
    if not declared:  # a number that would be read off the records stands in no plan
        del terms["expected_records"]
        counted = ps.heads.Ridge().fit_private(X, goals, **terms)
        assert (counted.solver_, counted.provenance_.assumed_public) == ("rounds", ())
        assert counted.releases_[0].plan.schema.task == "counts"
        swapped = {**terms, "adjacency": "replace-one"}  # all data sets have the same number of records
        found = ps.heads.Ridge().fit_private(X, goals, **swapped)
        assert (found.solver_, found.provenance_.assumed_public) == ("rounds", ())
        assert ps.heads.Ridge().fit_private(X, goals, **swapped, max_records=N).solver_ == "aggregate"
    single = ps.heads.Ridge(solver="aggregate").fit_private(X, goals, **terms)
    assert single.release_.plan.schema.task == "ridge"
    assert single.provenance_.epsilon == pytest.approx(found.provenance_.epsilon, rel=1e-6)


@pytest.mark.parametrize("head", [ps.heads.Ridge(solver="plain"), ps.heads.RefinedRidge()])
def test_a_regression_says_what_does_not_go_together(head: Any) -> None:
    X, _ = records()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"target_bound": 2.0}, "a private fit needs clip_norm=...: only the owner"),
        ({"columns": TABLE.columns, "expected_records": N}, "a private fit needs target_bound=...: only the owner"),
        ({"columns": TABLE.columns, "target_bound": 2.0}, "declared columns need expected_records="),
        ({"columns": TABLE.columns, "expected_records": N, "clip_norm": 2.0, "target_bound": 2.0}, "leave clip_norm"),
    ]
    if isinstance(head, ps.heads.Ridge):
        wrong.append(({"clip_norm": 1.0, "target_bound": 2.0, "expected_records": N}, "serves declared columns, and"))
    for given, said in wrong:
        with pytest.raises(PrivstatsError, match=said):
            clone(head).fit_private(X, targets(X), **TERMS, **given)
