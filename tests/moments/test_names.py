"""Names of classes and columns: every party turns the same text into the same class, whatever it holds."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_digits

import privstats as ps
from privstats.errors import DataError
from privstats.intake.tables import ordered_columns
from privstats.transforms import ConstantFeature, UnitNorm
from tests.made import refused

NAMES = ("ash", "beech", "cedar")
X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [1.0, 1.0]])
Y = np.array([2, 0, 1, 2])
TEXTS = np.array(NAMES)[Y]


def schema(**changes):
    settings = {"classes": 3, "features": 2, "statistics": "NAB", "clip_norm": 5.0, "class_names": NAMES}
    return ps.ClassSchema(**settings | changes)


def same_integers(left, right):
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in "NAB")


@dataclass(frozen=True)
class Frame:
    """What pandas and polars have in common."""

    columns: list
    values: np.ndarray

    def __getitem__(self, name):
        return self.values[:, self.columns.index(name)]

    def __array__(self, dtype=None, copy=None):
        return self.values


@dataclass(frozen=True)
class Table:
    """What pyarrow has: `columns` are the data, and there may be no array form of the whole."""

    column_names: list
    columns: list

    def __getitem__(self, name):
        return self.columns[self.column_names.index(name)]


EXPECTED = ps.measure(schema(class_names=None), X, Y)


@pytest.mark.parametrize(
    "labels",
    [
        TEXTS,
        TEXTS.tolist(),
        TEXTS.astype(object),
        TEXTS.astype(np.dtypes.StringDType()),
        TEXTS.astype(bytes),
        np.array([f" {text} ".encode() for text in TEXTS.tolist()], object),
    ],
    ids=["unicode", "list", "objects", "strings", "bytes", "bytes with spaces"],
)
def test_texts_become_classes_by_the_plans_list(labels):
    assert same_integers(ps.measure(schema(), X, labels), EXPECTED)
    assert same_integers(ps.measure(schema(), iter([(X[:1], labels[:1]), (X[1:], labels[1:])])), EXPECTED)


@pytest.mark.parametrize("mapped", [False, True], ids=["path", "memory map"])
def test_texts_in_files_become_classes_piece_by_piece(tmp_path, mapped):
    np.save(tmp_path / "y.npy", np.tile(TEXTS, 50_000))
    labels = np.load(tmp_path / "y.npy", mmap_mode="r") if mapped else tmp_path / "y.npy"
    moments = ps.measure(schema(), np.tile(X, (50_000, 1)), labels)
    assert moments.N.tolist() == (EXPECTED.N * 50_000).tolist()
    np.save(tmp_path / "y.npy", np.append(np.tile(TEXTS, 50_000), "yew"))
    refused(DataError, "position 200000 ", ps.measure, schema(), np.zeros((200_001, 2)), tmp_path / "y.npy")


@pytest.mark.parametrize(
    "labels",
    [
        np.array([7, -3, 10]),
        np.array(["7", "-3", "10"]),
        np.array([7.0, -3.0, 10.0]),
        np.array(["007", "-3.0", "1e1"]),
        np.array([7, "-3", 10.0], object),
    ],
    ids=["numbers", "texts", "floats", "other texts", "objects"],
)
def test_names_that_are_numbers_take_numbers_and_their_texts(labels):
    named = schema(class_names=("-3", "7", "10"))
    assert (
        ps.measure(named, X[:3], labels).A.tolist() == ps.measure(schema(class_names=None), X[:3], [1, 0, 2]).A.tolist()
    )
    torch = pytest.importorskip("torch")
    assert ps.measure(named, torch.tensor(X[:3]), torch.tensor([7, -3, 10])) == ps.measure(named, X[:3], labels)


@pytest.mark.parametrize(
    ("names", "labels", "message"),
    [
        (NAMES, Y, "position 0 that is not among class_names; the classes are 'ash', 'beech', 'cedar'"),
        (NAMES, Y.astype(float), "at position 0 that is not among class_names"),
        (NAMES, Y == 0, "at position 0 that is not among class_names"),
        (NAMES, np.array(["ash", None, "ash", "ash"], object), "at position 1 that is not among class_names"),
        (NAMES, np.array(["ash", "ash", float("nan"), "ash"], object), "at position 2 .* misspelt or missing"),
        (NAMES, np.array(["ash", ["ash"], "ash", "ash"], object), "at position 1 that is not among class_names"),
        (NAMES, np.array(["ash", "oak", "ash", "elm"]), "at position 1 that is not among class_names; the classes are"),
        (NAMES, np.array(["ash", "Ash", "ash", "ash"]), "at position 1 "),
        (("0", "1", "x"), Y, "that is not among class_names"),
        (("1", "2", "3"), Y, "at position 1 that is not among class_names"),
        (("²", "1", "2"), Y, "at position 1 that is not among class_names"),
        (
            None,
            TEXTS,
            r"integers 0..2, and an entry is no integer; give class_names to the plan's schema, one list",
        ),
        (None, Y / 2, r"integers 0..2, and an entry is no integer; give class_names to the plan's schema"),
        (None, Y + 1, r"outside 0..2; give class_names to the plan's schema, one list for all parties, or raise"),
    ],
)
def test_labels_that_the_plan_does_not_name_are_refused_and_never_shown(names, labels, message):
    with pytest.raises(DataError, match=message) as caught:
        ps.measure(schema(class_names=names), X, labels)
    assert "oak" not in str(caught.value)
    assert "unique" not in str(caught.value)


def test_a_long_list_of_names_is_not_poured_into_the_message():
    many = ps.ClassSchema(1000, 2, "NA", 5.0, class_names=tuple(f"class {k}" for k in range(1000)))
    with pytest.raises(DataError, match="'class 7' and 992 more") as caught:
        ps.measure(many, X, TEXTS)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("frame", [Frame(["b", "a"], X[:, ::-1]), Table(["b", "a"], [X[:, 1], X[:, 0]])], ids=repr)
def test_columns_are_put_into_the_order_of_the_plan(frame):
    named = schema(feature_names=("a", "b"))
    assert ps.measure(named, frame, TEXTS) == ps.measure(named, X, TEXTS)
    assert np.array_equal(ps.moments.quantize(named, frame), ps.moments.quantize(named, X))
    ridge = ps.RidgeSchema(2, clip_norm=5.0, target_bound=1.0, feature_names=("a", "b"))
    assert ps.measure(ridge, frame, X[:, 0]) == ps.measure(ridge, X, X[:, 0])


@pytest.mark.parametrize("columns", [["a", "c"], ["a"], ["a", "b", "c"], ["a", "a"], [1, 0], ["a", 1]])
def test_columns_that_are_not_the_plans_are_refused(columns):
    with pytest.raises(DataError, match=r"X (lacks '|has further columns).*plan's feature_names, in any order"):
        ps.measure(schema(feature_names=("a", "b")), Frame(columns, np.ones((4, len(columns)))), TEXTS)


def test_arrays_and_unnamed_columns_are_taken_as_they_stand():
    named = schema(feature_names=("a", "b"))
    unnamed = Frame([0, 1], X)
    assert ordered_columns(X, ("a", "b")) is X
    assert np.array_equal(ordered_columns(unnamed, ("a", "b")), X)
    assert ps.measure(named, unnamed, TEXTS) == ps.measure(named, X, TEXTS)
    assert np.array_equal(ordered_columns(Frame(["b", "a"], X), None), X)


def test_names_stand_before_the_transform():
    named = schema(features=3, transform=(UnitNorm(), ConstantFeature(1.0)), feature_names=("a", "b"))
    assert ps.measure(named, Frame(["b", "a"], X[:, ::-1]), TEXTS) == ps.measure(named, X, TEXTS)


def digits_cohort():
    """Ten parties, each with four or five of ten classes, and the words for these."""
    images, digits = load_digits(return_X_y=True)
    names = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    owner = (digits + np.arange(len(digits)) % 4) % 10
    return images, digits, np.array(names), [np.flatnonzero(owner == party) for party in range(10)]


def accuracy(shards, **names):
    images, digits, *_ = digits_cohort()
    classes = ps.ClassSchema(10, 64, "NAB", 80.0, **names)
    plan = ps.Plan(schema=classes, cohort=ps.Cohort(10, 8, 2000), privacy=ps.NoPrivacy())
    release = ps.simulate(plan, shards)
    head = ps.heads.LDA().fit_release(release)
    truth = digits if classes.class_names is None else np.array(classes.class_names)[digits]
    return release, head.score(images, truth)


def test_class_skewed_parties_that_number_their_own_labels_ruin_the_model_and_names_mend_it():
    images, digits, names, parties = digits_cohort()
    sorted_numbers, right = accuracy([(images[rows], digits[rows]) for rows in parties])
    by_name, same = accuracy([(images[rows], names[digits[rows]]) for rows in parties], class_names=tuple(names))
    assert np.array_equal(by_name.vector, sorted_numbers.vector)
    assert same == right > 0.9
    by_party = [(images[rows], np.unique(names[digits[rows]], return_inverse=True)[1]) for rows in parties]
    _, wrong = accuracy(by_party)
    assert wrong < 0.6  # what the advice of old did: no error, and no model


def test_no_labels_at_all_are_no_wrong_ones():
    empty = ps.measure(schema(), X[:0], Y[:0])
    assert (empty, empty.N.sum()) == (ps.measure(schema(), X[:0], TEXTS[:0]), 0)


FRAMES = {
    "pandas' own floats": lambda frame: frame.astype("Float64"),
    "arrow's floats": lambda frame: frame.astype("double[pyarrow]"),
    "one column of integers": lambda frame: frame.astype({"a": "Int64"}),
    "one column of truth values": lambda frame: frame.astype({"a": bool}),
    "sparse": lambda frame: frame.astype("Sparse[float]"),
}


@pytest.mark.parametrize("form", FRAMES)
@pytest.mark.parametrize("columns", [["a", "b"], ["b", "a"]])
def test_numbers_of_every_type_that_a_frame_may_hold_are_measured(form, columns):
    frame = FRAMES[form](pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"]))
    plain = np.column_stack([frame["a"].to_numpy(np.float64), X[:, 1]])
    named = schema(feature_names=("a", "b"))
    assert same_integers(ps.measure(named, frame[columns], TEXTS), ps.measure(schema(), plain, TEXTS))
    assert same_integers(ps.measure(schema(), frame, TEXTS), ps.measure(schema(), plain, TEXTS))


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]", "float64"])
def test_a_missing_number_of_a_frame_is_named_as_one(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"]).where(lambda values: values < 3).astype(kind)
    refused(DataError, "X holds NaN, infinite or overflowing entries", ps.measure, schema(), frame, TEXTS)


@pytest.mark.parametrize("column", [["x"] * 4, np.array(["2020-01-01"] * 4, "M8[s]")], ids=["texts", "dates"])
def test_columns_that_are_no_numbers_are_refused(column):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="X holds values that are no numbers; code them"):
        ps.measure(schema(), pandas.DataFrame({"a": X[:, 0], "b": column}), TEXTS)


def test_a_column_of_texts_is_named_where_the_plan_names_it():
    frame = pytest.importorskip("pandas").DataFrame({"a": X[:, 0], "b": ["x"] * len(X)})
    with pytest.raises(DataError, match=r"X holds values that are no numbers in 'b' \(\d+\); code them as numbers"):
        ps.measure(schema(feature_names=("a", "b")), frame, TEXTS)
