"""One party alone fits a head: the promise is the one it asked for, and nothing is read off the records in silence."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats import heads
from privstats.errors import AssumedPublicWarning, DataError, HeadError, LedgerError, PlanError, SchemaError
from privstats.heads.private import OwnRecords, RowCount
from privstats.heads.registry import HEADS, named
from privstats.transforms import Centre, ConstantFeature, UnitNorm
from tests import made
from tests.heads.conftest import quick
from tests.made import refused

# twice this clip is noise above the class covariances, and QDA loses a class now and then (benchmarks/heads/numbers.md)
PROMISE = {"epsilon": 50.0, "delta": 1e-5, "clip_norm": 4.0, "adjacency": "add-remove", "ledger": "uncharged"}
NAMES = np.array(["ash", "beech", "elm"])


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    centres = 3 * np.eye(3, 5)
    y = np.arange(600) % 3
    return centres[y] + 0.3 * rng.normal(size=(600, 5)), y


def private(head, X, y=None, **changes):
    return head.fit_private(X, y, **{**PROMISE, "classes": [0, 1, 2]} | changes)


@pytest.mark.parametrize("name", named("classes"))
def test_every_classifier_learns_under_the_promise_that_it_was_given(name, records):
    if not HEADS[name].closed_form:
        pytest.importorskip("torch", reason="the torch extra is not installed")
    head = private(quick(name), *records, adjacency="replace-one")
    assert head.score(*records) > 0.95
    promise = head.release_.plan.privacy
    assert (promise.model, promise.unit, promise.adjacency) == ("central", "record", "replace-one")
    assert (head.release_.budget.epsilon, head.release_.budget.delta) == (50.0, 1e-5)
    assert set(head.entry.measured) >= set(head.release_.plan.schema.statistics)


def test_every_head_of_the_registry_has_it():
    assert all(callable(quick(name).fit_private) for name in HEADS)


def test_a_small_epsilon_is_felt(records):
    assert np.mean([private(heads.LDA(), *records, epsilon=0.001).score(*records) for _ in range(5)]) < 0.9


def test_the_head_of_a_private_fit_travels_as_any_other(records, tmp_path):
    X, y = records
    head = private(heads.LDA(), X, y, transform=(Centre((0.1,) * 5), UnitNorm()))
    head.save(tmp_path / "head")
    np.testing.assert_array_equal(heads.load(tmp_path / "head").predict(X), head.predict(X))


def test_labels_are_the_users_whatever_they_are(records):
    X, y = records
    for labels in (NAMES[y], NAMES[y].astype(object), y * 10 - 3, y == 1):
        with pytest.warns(AssumedPublicWarning, match="read off y"):
            head = heads.LDA().fit_private(X, labels, **PROMISE)
        assert head.classes_.tolist() == np.unique(labels.astype(str) if labels.dtype == "O" else labels).tolist()
        assert head.score(X, labels) > 0.95


def test_files_and_batches_are_measured_like_arrays(records, tmp_path):
    X, y = records
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    whole = private(heads.LDA(), X, y)
    parts = private(heads.LDA(), ((X[at : at + 100], y[at : at + 100]) for at in range(0, 700, 100)))  # one is empty
    for other in (parts, private(heads.LDA(), tmp_path / "X.npy", tmp_path / "y.npy")):
        np.testing.assert_array_equal(other.predict(X), whole.predict(X))
        assert abs(other.release_.moments.N - 200).max() < 5


def test_columns_of_a_frame_are_put_into_the_order_of_the_fit(records):
    pandas = pytest.importorskip("pandas")
    X, y = records
    frame = pandas.DataFrame(X, columns=list("abcde"))
    head = private(heads.LDA(), frame, y)
    np.testing.assert_array_equal(head.predict(frame[list("edcba")]), head.predict(X))


def test_attack_whether_a_class_occurs_is_not_shown_where_classes_are_given(records):
    """The classes of a head are public; read off the records, one patient's rare diagnosis is in the list."""
    X, y = records
    y = y % 2
    y[0] = 2
    with warnings.catch_warnings(action="ignore", category=AssumedPublicWarning):
        shown = [heads.LDA().fit_private(X[at:], y[at:], **PROMISE).release_.plan.digest for at in (0, 1)]
    assert shown[0] != shown[1]
    told = [private(heads.LDA(), X[at:], y[at:]).release_.plan.digest for at in (0, 1)]
    assert told[0] == told[1]


@pytest.mark.parametrize("name", ["RefinedSoftmax", "RefinedRidge"])
def test_attack_the_number_of_rows_is_not_read_in_silence_where_a_record_may_be_absent(name, records):
    """The recipe of a course follows from it and is in its plans, so two heads tell whether one patient was there."""
    X, y = records
    terms = {"target_bound": 3.0} if name == "RefinedRidge" else {"classes": [0, 1, 2]}
    terms = {**PROMISE, "clip_norm": 1.0, **terms}

    def plans(at=0, **changes):
        return fitted(X[at:], y[at:], **terms | changes).releases_[1].plan.schema

    def fitted(X, y, **terms):
        return getattr(heads, name)(rounds=1).fit_private(X, y, **terms)

    with pytest.warns(AssumedPublicWarning, match="number of rows was read off X"):
        shown = plans()
    assert shown.expected_records == 512, "a power of two, not 600"
    with pytest.warns(AssumedPublicWarning):
        assert plans(1) == shown
    with pytest.warns(AssumedPublicWarning):
        assert plans(300) != shown
    with warnings.catch_warnings(action="error", category=AssumedPublicWarning):
        assert plans(expected_records=600) == plans(1, expected_records=600)
        assert plans(max_records=900) == plans(1, max_records=900) == plans(expected_records=900)
        plans(adjacency="replace-one")  # which promises nothing about the number
        refused(PlanError, "expected_records", plans, expected_records=0)


@given(st.integers(1, 1 << 30))
def test_the_power_of_two_that_stands_for_the_rows_is_within_a_factor_of_the_root_of_two(n):
    with warnings.catch_warnings(action="ignore", category=AssumedPublicWarning):
        power = RowCount.of(
            OwnRecords(np.empty(0), None, (np.broadcast_to(0.0, (n, 1)), None)), None, None, "add-remove"
        ).n
    assert power & (power - 1) == 0
    assert n**2 <= 2 * power**2 <= 4 * n**2


@pytest.mark.parametrize(
    ("name", "terms", "assumed"),
    [
        ("LDA", {"classes": None}, ("classes",)),
        ("LDA", {}, ()),
        ("LDA", {"centred": True, "clip_norm": 1.0}, ("rows",)),
        ("LDA", {"centred": True, "clip_norm": 1.0, "classes": None, "max_records": 700}, ("classes",)),
        ("RefinedSoftmax", {"clip_norm": 1.0, "classes": None}, ("classes", "rows")),
        ("RefinedSoftmax", {"clip_norm": 1.0, "expected_records": 600}, ()),
        ("RefinedSoftmax", {"clip_norm": 1.0, "adjacency": "replace-one"}, ()),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::privstats.AssumedPublicWarning")
def test_a_head_says_which_of_its_public_values_were_read_off_the_records(name, terms, assumed, records, tmp_path):
    head = quick(name).set_params(**{"rounds": 1} if name == "RefinedSoftmax" else {})
    private(head, *records, **terms)
    found = head.provenance_
    assert found.assumed_public == assumed
    assert ("assumed public" in str(found)) is bool(assumed)
    assert found.tags().get("privstats.assumed_public") == (", ".join(assumed) or None)
    card = head.card()
    assert ("bounds everything else" in card) is bool(assumed)
    assert ("the list of classes" in card) is ("classes" in assumed)
    assert ("the number of rows to a power of two" in card) is ("rows" in assumed)
    head.save(tmp_path / "head")
    assert heads.load(tmp_path / "head").provenance_ == found
    assert type(head)(**head.get_params()).fit(*records).provenance_.assumed_public == ()


@pytest.mark.filterwarnings("ignore::privstats.AssumedPublicWarning")
def test_a_regression_says_that_its_rows_were_counted(records):
    X, _ = records
    refined = heads.RefinedRidge(rounds=1)
    assert ridge(X, X[:, 0], refined).provenance_.assumed_public == ("rows",)
    assert ridge(X, X[:, 0], refined, expected_records=600).provenance_.assumed_public == ()
    assert ridge(X, X[:, 0]).provenance_.assumed_public == ()


def test_nothing_warns_where_classes_are_given(records):
    with warnings.catch_warnings(action="error"):
        private(heads.LDA(), *records)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"classes": [0, 1]}, DataError, "position 2 that is not among classes; correct it"),
        ({"classes": ["a", "b", "c"]}, DataError, "position 0 that is not among classes; correct it"),
        ({"classes": ["7", "007", "8"]}, SchemaError, "'007' and '7', which are read as one value"),
        ({"classes": [0, 1, 1]}, DataError, "names each class once"),
        ({"classes": [0]}, DataError, "at least 2 classes, got 1"),
        ({"classes": 3}, DataError, "classes must be a list"),
        ({"epsilon": 0}, PlanError, "epsilon must be between"),
        ({"adjacency": "swap"}, PlanError, "adjacency must be one of"),
        ({"clip_norm": 0}, SchemaError, "clip_norm must be"),
        ({"transform": (Centre((1.0,)),)}, SchemaError, "centre"),
        ({"ledger": None}, LedgerError, "no ledger is given"),
        ({"max_records": 5}, DataError, "max_records=5"),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes, error, words, records):
    refused(error, words, private, heads.LDA(), *records, **changes)


def test_shapes_that_do_not_fit_are_one_sentence(records):
    X, y = records
    for rows, labels, words in (
        (X[0], y, "X must have shape"),
        (X, np.stack([y, y], axis=1), "y must have shape"),
        (X, None, "y is missing"),
        ([], None, "yielded nothing"),
    ):
        refused(DataError, words, private, heads.LDA(), rows, labels)
    refused(ValueError, "Unknown label type", heads.LDA().fit_private, X, y + 0.5, **PROMISE)
    refused(DataError, "batches do not show which classes", heads.LDA().fit_private, [(X, y)], **PROMISE)
    refused(HeadError, "shrinkage", private, heads.LDA(shrinkage="bogus"), X, y)


def test_the_ledger_is_charged(records, tmp_path):
    ledger = made.ledger(tmp_path / "spent.db", epsilon=60.0)
    private(heads.LDA(), *records, ledger=ledger)
    assert len(ledger.account("ward").entries) == 1


def ridge(X, y, head=None, **changes):
    right = {**PROMISE, "epsilon": 80.0, "clip_norm": 5.0, "target_bound": 6.0}
    return (head or heads.Ridge()).fit_private(X, y, **right | changes)


def test_a_regression_has_its_intercept_and_rows_within_the_norm_are_not_cut(records):
    X, _ = records
    y = X @ np.array([1.0, -1.0, 0.5, 0.0, 0.2]) + 2.0
    head = ridge(X, y)
    assert head.score(X, y) > 0.95
    schema = head.release_.plan.schema
    assert schema.transform == (ConstantFeature(2.5),)
    assert (schema.clip_norm, head.predict(X[:3]).shape) == (pytest.approx(np.hypot(5.0, 2.5)), (3,))


def test_a_regression_takes_a_constant_of_its_own_several_targets_and_batches(records):
    X, _ = records
    Y = np.stack([X[:, 0], X[:, 1] - X[:, 2]], axis=1)
    own = ridge(X, Y, transform=(ConstantFeature(1.0),))
    assert own.release_.plan.schema.transform == (ConstantFeature(1.0),)
    assert own.score(X, Y) > 0.8
    flat = ridge([(X, Y)], None, heads.Ridge(fit_intercept=False))
    assert (flat.release_.plan.schema.transform, flat.predict(X).shape) == ((), (600, 2))


CLIPPED = "clip_norm shortens"


@pytest.mark.parametrize("scale", [100.0, 0.01])
def test_a_clip_that_shortens_nearly_every_row_is_told_to_the_holder_and_to_nobody_else(records, scale):
    X, y = records
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        head = heads.LDA().fit_private(X * scale, y, classes=range(3), **PROMISE)
    told = [str(each.message) for each in said if CLIPPED in str(each.message)]
    seen = ["shortens 100% of the rows" in each and "no privacy protects it" in each for each in told]
    assert seen == [True] * (scale > 1)
    assert not [name for name in vars(head) if "clip" in name], "a head may be shown, and the share is exact"


@pytest.mark.parametrize(
    ("head", "terms"),
    [(heads.Ridge(), {}), (heads.RefinedRidge(rounds=2), {"expected_records": 600})],
    ids=["release", "course"],
)
def test_a_clip_of_nearly_every_row_is_told_once(records, head, terms):
    X, _ = records
    with pytest.warns(UserWarning, match=CLIPPED) as said:
        head.fit_private(X * 100, X[:, 0], target_bound=9.0, **terms, **PROMISE)
    assert sum(CLIPPED in str(each.message) for each in said) == 1


@pytest.mark.parametrize("form", ["numbers", "texts", "floats", "objects"])
def test_a_score_reads_labels_as_the_fit_does(form):
    X, y = np.eye(4)[np.arange(80) % 4], np.arange(80) % 4
    mixed = np.array([str(label) if place % 2 else label for place, label in enumerate(y.tolist())], object)
    labels = {"numbers": y, "texts": y.astype(str), "floats": y.astype(float), "objects": mixed}[form]
    terms = {"epsilon": 100.0, "delta": 1e-5, "clip_norm": 1.0, "adjacency": "add-remove", "ledger": "uncharged"}
    head = heads.LDA().fit_private(X, labels, classes=range(4), **terms)
    assert [head.score(X, each) for each in (y, mixed, labels)] == [1.0, 1.0, 1.0]
    mixed[:20] = ["x", None, float("nan"), 9] * 5  # none of them a class
    assert head.score(X, mixed, sample_weight=np.ones(80)) == 0.75
    refused(DataError, "another kind than classes_", head.score, X, ["x"] * 80)
