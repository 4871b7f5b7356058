"""Heads know the names of classes and columns from their release."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.heads.registry import named
from tests.moments.test_names import Frame, Table

NAMES = ("ash", "beech", "cedar", "elm")
COLUMNS = ("a", "b", "c", "d", "e", "f")


def released(X, y, *, min_count=0, **changes):
    schema = ps.ClassSchema(4, 6, "NAS", 30.0, **changes)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=ps.NoPrivacy(), min_count=min_count)
    return ps.simulate(plan, [(X[k::2], y[k::2]) for k in range(2)])


@pytest.mark.parametrize("name", named("classes", trained=False))
def test_predictions_are_the_names_of_the_plan(name, blobs, tmp_path):
    X, y = blobs()
    texts = np.array(NAMES)[y]
    head = getattr(ps.heads, name)().fit_release(released(X, texts, class_names=NAMES, feature_names=COLUMNS))
    plain = getattr(ps.heads, name)().fit_release(released(X, y))
    assert head.classes_.tolist() == list(NAMES)
    np.testing.assert_array_equal(head.predict(X), np.array(NAMES)[plain.predict(X)])
    assert head.score(X, texts) == plain.score(X, y) > 0.5
    head.save(tmp_path / "head")
    loaded = ps.heads.load(tmp_path / "head")
    np.testing.assert_array_equal(loaded.predict(Frame(list(COLUMNS[::-1]), X[:, ::-1])), head.predict(X))
    with pytest.raises(ps.DataError, match=r"X lacks 'f'; pass exactly the columns of the plan's feature_names"):
        loaded.predict(Frame([*COLUMNS[:-1], "g"], X))


def test_names_of_suppressed_classes_are_absent(blobs):
    X, y = blobs()
    keep = (y != 1) | (np.arange(len(y)) < 8)
    release = released(X[keep], np.array(NAMES)[y[keep]], class_names=NAMES, min_count=20)
    assert release.suppressed == (1,)
    assert ps.heads.LDA().fit_release(release).classes_.tolist() == ["ash", "cedar", "elm"]


def test_labels_of_the_caller_stand_before_the_names_of_the_plan(blobs):
    X, y = blobs()
    release = released(X, np.array(NAMES)[y], class_names=NAMES)
    assert ps.heads.LDA().fit_release(release, labels=[7, 8, 9, 10]).classes_.tolist() == [7, 8, 9, 10]


def test_names_that_are_numbers_are_scored_with_numbers_too(blobs):
    X, y = blobs()
    numbers = np.array([30, 10, 20, -1])
    head = ps.heads.LDA().fit_release(released(X, numbers[y], class_names=tuple(map(str, numbers))))
    assert head.classes_.tolist() == ["30", "10", "20", "-1"]
    assert head.score(X, numbers[y]) == head.score(X, numbers[y].astype(str)) > 0.5
    assert head.score(X, numbers[y], sample_weight=np.ones(len(X))) == head.score(X, numbers[y])


def test_text_labels_of_local_records_stay_as_they_are(blobs):
    X, y = blobs()
    texts = np.array(["zebra", "ant", "bee", "cow"])[y]
    head = ps.heads.LDA().fit(X, texts)
    assert head.classes_.tolist() == ["ant", "bee", "cow", "zebra"]
    assert head.score(X, texts) == ps.heads.LDA().fit(X, y).score(X, y)


@pytest.mark.parametrize("transform", [(), (ps.transforms.CentreRows(),)], ids=["plain", "transform"])
def test_columns_are_put_into_the_order_of_the_plan(transform, blobs):
    X, y = blobs()
    head = ps.heads.LDA().fit_release(released(X, y, feature_names=COLUMNS, transform=transform))
    for rows in (
        Frame(list(COLUMNS[::-1]), X[:, ::-1]),
        Table(list(COLUMNS[::-1]), list(X.T[::-1])),
        Frame([*range(6)], X),
    ):
        np.testing.assert_array_equal(head.predict(rows), head.predict(X))
        np.testing.assert_array_equal(head.decision_function(rows), head.decision_function(X))
    schema = ps.RidgeSchema(6, clip_norm=30.0, target_bound=30.0, feature_names=COLUMNS, transform=transform)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=ps.NoPrivacy())
    release = ps.simulate(plan, [(Frame(list(COLUMNS[::-1]), X[k::2, ::-1]), X[k::2, 0]) for k in range(2)])
    ridge = ps.heads.Ridge(fit_intercept=False).fit_release(release)
    np.testing.assert_array_equal(ridge.predict(Frame(list(COLUMNS[::-1]), X[:, ::-1])), ridge.predict(X))


def test_a_head_file_without_names_is_written_as_ever(blobs, tmp_path):
    X, y = blobs()
    ps.heads.LDA().fit_release(released(X, y)).save(tmp_path / "head")
    assert b"feature_names" not in (tmp_path / "head").read_bytes()


def test_real_frames_are_put_into_order(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs()
    head = ps.heads.LDA().fit_release(released(X, y, feature_names=COLUMNS))
    frame = pandas.DataFrame(X[:, ::-1], columns=COLUMNS[::-1])
    np.testing.assert_array_equal(head.predict(frame), head.predict(X))


def test_names_are_part_of_what_the_moments_were_measured_under(blobs):
    X, y = blobs()
    named = ps.ClassSchema(4, 6, "NAS", 30.0, class_names=NAMES)
    with pytest.raises(ps.DataError, match="different schemas"):
        _ = ps.measure(named, X, np.array(NAMES)[y]) + ps.measure(replace(named, class_names=None), X, y)
