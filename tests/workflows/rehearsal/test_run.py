"""A rehearsal is the way of the data with real masks, beside what each party would have alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError, PlanError
from privstats.moments import RecordFile
from privstats.transforms import column_names
from privstats.workflows import rehearsal
from privstats.workflows.rehearsal.parties import auc
from privstats.workflows.rehearsal.shapes import decisive, drawn

WORDS = {"delta": 1e-5, "adjacency": "add-remove", "model": "central"}
ASKED = rehearsal.Asked("ill", 50.0, **WORDS)


def ward(path, seed, count=700, classes=("no", "yes")):
    """A file with gaps, texts, an id, a note, and an outcome that follows from a dose and a ward."""
    rng = np.random.default_rng(seed)
    dose, place = np.exp(rng.normal(3, 1, count)).round(2), rng.integers(0, 3, count)
    score = 2 * (np.log(dose) - 3) + place + 0.5 * rng.normal(size=count)
    ill = np.searchsorted([1.0, 2.5][: len(classes) - 1], score)
    rows = [
        f"id-{seed}-{row:04d},{'' if row % 9 == 0 else dose[row]},{('a', 'b', 'c')[place[row]]},{row % 2},note {row},"
        f"{'' if row == 5 else classes[ill[row]]}"
        for row in range(count)
    ]
    path.write_text("\n".join(["patient,dose,ward,even,note,ill", *rows, "broken"]))
    return RecordFile(path, "ill")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wards")
    return [ward(folder / f"{name}.csv", seed) for seed, name in enumerate(("north", "south"))]


@pytest.fixture(scope="module")
def found(files):
    ticks = []
    done = rehearsal.rehearsed(rehearsal.opened(files, ASKED), ticks.append)
    assert ticks == [1] * 5
    return done


def test_too_many_columns_are_refused_before_another_file_is_read(tmp_path, monkeypatch):
    """And each name is looked at a few times: a header of thousands took half a minute."""
    wide, seen = 2000, []
    for name in ("north", "south"):
        rows = [",".join([*(f"{row + place / 7:.3f}" for place in range(wide)), "ny"[row % 2]]) for row in range(6)]
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join([*(f"c{at}" for at in range(wide)), "ill"]), *rows]))
    looked, whole, read = [], column_names._key_of, RecordFile.table
    monkeypatch.setattr(column_names, "_key_of", lambda name: looked.append(name) or whole(name))
    monkeypatch.setattr(RecordFile, "table", lambda file, names: seen.append(file.path) or read(file, names))
    with pytest.raises(ps.SchemaError, match="at most 500 are allowed.*leave columns out of the rehearsal with --drop"):
        rehearsal.opened([RecordFile(tmp_path / f"{name}.csv", "ill") for name in ("north", "south")], ASKED)
    assert seen == [tmp_path / "north.csv"]
    assert len(looked) < 20 * wide


def test_with_little_noise_the_private_model_is_nearly_that_without(found):
    assert found.exact.value > 0.9
    assert abs(found.private.value - found.exact.value) < 0.03
    assert set(found.alone) == {"north", "south"}
    assert all(0.8 < each.value <= 1 for each in found.alone.values())


def test_the_card_is_of_the_private_model(found):
    assert [each.name for each in found.card.columns] == ["dose", "ward", "even"]
    dose = found.card.columns[0]
    points = dose.within(dose.points, np.mean)[0]
    assert points[-2] > points[0], "the larger the dose, the more are ill"
    assert dose.told.any()
    assert not found.card.columns[2].told.all()


def test_the_columns_that_decide_are_drawn(found):
    assert decisive(found.card) == [0, 1, 2]
    assert drawn(found.card).startswith(b"\x89PNG")


def test_every_record_is_summed_or_held_out_and_lines_that_are_none_are_counted(found):
    parties = found.opened.parties
    assert [len(party.y) for party in parties] == [699, 699]
    assert [(party.untold, party.broken) for party in parties] == [(1, 1), (1, 1)]
    summed = sum(len(party.shard[1]) for party in parties)
    assert summed == found.opened.public.records == 1398 - sum(party.test.sum() for party in parties)
    assert 0.15 < parties[0].test.mean() < 0.35


def test_the_sessions_keep_one_promise_and_are_those_of_the_course(found):
    what = found.opened
    course = what.course
    assert isinstance(course, ps.Binned)
    assert len(found.releases) == course.most
    assert course.epsilon(1e-5) <= 50.0
    assert found.upload_bytes == sum(each.plan.masking.upload_bytes for each in found.releases)
    assert [each.name for each in what.public.columns] == ["dose", "ward", "even"]


def test_stronger_noise_costs_more_than_half_of_what_is_learned(files, found):
    what = rehearsal.opened(files, replace(ASKED, epsilon=0.02))
    done = rehearsal.rehearsed(what, lambda _: None)
    assert done.private.value < 0.8
    remarks = [dict(rehearsal.costs(each)).get("how faintly cut points are seen") for each in (found, done)]
    assert remarks[0] is None
    assert "state the edges of some columns (dose)" in remarks[1]


def test_three_classes_are_rehearsed_too(tmp_path):
    files = [ward(tmp_path / f"{seed}.csv", seed, classes=("mild", "none so far", "severe")) for seed in (0, 1)]
    done = rehearsal.rehearsed(rehearsal.opened(files, ASKED), lambda _: None)
    assert done.opened.public.classes == ("mild", "none so far", "severe")
    assert min(done.private.value, done.exact.value) > 0.8
    assert done.private.error is None


def test_columns_with_two_values_alone_need_no_counts(tmp_path):
    files = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        smokes, old = rng.integers(0, 2, (2, 400))
        lines = [f"{a},{b},{int(a + b + rng.random() > 1.5)}" for a, b in zip(smokes, old, strict=True)]
        (tmp_path / f"{seed}.csv").write_text("\n".join(["smokes,old,ill", *lines]))
        files.append(RecordFile(tmp_path / f"{seed}.csv"))
    what = rehearsal.opened(files, ASKED)
    assert isinstance(what.course, ps.Rounds)
    assert rehearsal.rehearsed(what, lambda _: None).private.value > 0.7


def test_what_was_not_asked_for_is_a_word_that_is_said(files):
    bare = rehearsal.opened(files, rehearsal.Asked("ill", 3.0))
    said = {each.what: each.taken for each in rehearsal.taken(bare)}
    assert (said["unit"], said["adjacency"], said["delta"], said["model"]) == ("record", "add-remove", "1e-06", "local")
    assert (bare.privacy.delta, bare.privacy.model) == (1e-6, "local")
    asked = {each.what for each in rehearsal.taken(rehearsal.opened(files, ASKED))}
    assert asked & {"unit", "adjacency", "delta", "model"} == {"unit"}
    three = rehearsal.opened([*files, files[0]], rehearsal.Asked("ill", 3.0))
    assert (three.privacy.model, three.plan.cohort.colluders) == ("distributed", 1)
    assert [party.name for party in three.parties] == ["north 1", "south", "north 3"]


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"target": "sick"}, DataError, "has no column 'sick'"),
        ({"target": "patient"}, DataError, "patient has more than 20 different values"),
        ({"drop": ("age",)}, DataError, "has no column 'age'"),
        ({"drop": ("dose", "ward", "even")}, DataError, "no column beside the target"),
        ({"test": 1.5}, DataError, "test must lie between 0 and 1"),
        ({"test": 0.999}, DataError, "too few records of one class"),
        ({"epsilon": -1.0}, PlanError, "epsilon must lie"),
        ({"adjacency": "some"}, PlanError, "adjacency"),
    ],
)
def test_what_cannot_be_rehearsed_is_one_sentence(files, changes, error, told):
    with pytest.raises(error, match=told):
        rehearsal.opened(files, replace(ASKED, **changes))


def test_the_area_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 200), rng.random(200).round(1)
    pairs = score[y == 1][:, None] - score[y == 0]
    found = auc(y, np.column_stack([1 - score, score]))
    assert found.value == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())
    again = [auc(y, np.column_stack([1 - s, s])).value for s in rng.random((400, 200))]
    assert found.error == pytest.approx(np.std(again), rel=0.15), "a random score has this spread"
