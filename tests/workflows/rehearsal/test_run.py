"""A rehearsal is the way of the data with real masks, beside what each party would have alone."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.heads.diagnostics import RANKS
from privstats.intake import column_names
from privstats.moments import RecordFile
from privstats.workflows import rehearsal
from privstats.workflows.rehearsal import parties as parties_module
from privstats.workflows.rehearsal import run, without_noise
from privstats.workflows.rehearsal.areas import Auc, Decided, Held, auc, gain
from privstats.workflows.rehearsal.shapes import _extent, _part, decisive, drawn
from privstats.workflows.rehearsal.sources import HeldTable, unusual

WORDS = {"delta": 1e-5, "adjacency": "add-remove", "model": "central"}
ASKED = rehearsal.RehearsalOptions("ill", 50.0, **WORDS)


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
    monkeypatch.setattr(RecordFile, "table", lambda file, *how: seen.append(file.path) or read(file, *how))
    with pytest.raises(ps.SchemaError, match="at most 500 are allowed.*omit columns from the rehearsal with --drop"):
        rehearsal.opened([RecordFile(tmp_path / f"{name}.csv", "ill") for name in ("north", "south")], ASKED)
    assert seen == [tmp_path / "north.csv"]
    assert len(looked) < 20 * wide


def test_with_little_noise_the_private_model_is_nearly_that_without(found):
    assert found.exact.value > 0.9
    assert abs(found.private.value - found.exact.value) < 0.03
    assert set(found.alone) == {"north", "south"}
    assert all(0.8 < each.value <= 1 for each in found.alone.values())


@pytest.mark.ci
def test_a_model_without_noise_is_made_of_all_records_however_many(found, monkeypatch):
    """At most 65,536 made it, and the joint model was made of all: the difference flattered the joint one."""
    north = found.opened.parties[0]
    many = {name: np.concatenate([getattr(north, name)] * 150) for name in ("codes", "y", "test")}
    table = {name: np.concatenate([np.asarray(values)] * 150) for name, values in north.table.items()}
    big, seen, whole = replace(north, table=table, **many), set(), without_noise.measured
    monkeypatch.setattr(
        without_noise, "measured", lambda plan, shards, *how: seen.add(len(shards[0][1])) or whole(plan, shards, *how)
    )
    alone, _ = run._without_noise(found.opened, (big,))
    assert seen == {int((~big.test).sum())}
    assert max(seen) > 1 << 16
    assert abs(auc(parties_module.tested((north,)), alone).value - found.own["north"].alone.value) < 0.01


def test_the_model_without_noise_has_the_sessions_of_the_private_one(found):
    """Another model without noise was beaten by the private one, in three of three runs."""
    what = found.opened
    shards = run._shards(what, what.parties)
    exact = without_noise.exact_sums(what.course, shards)
    assert [each.plan.schema for each in exact[:1]] == [each.plan.schema for each in found.releases[:1]]
    assert [type(each.plan.schema) for each in exact] == [type(each.plan.schema) for each in found.releases]
    assert [each.plan.noise.mu for each in exact] == [each.plan.noise.mu for each in found.releases]
    assert type(run.fitted(run._head(what), exact)) is type(run.fitted(run._head(what), found.releases))
    again = without_noise.exact_sums(what.course, shards)
    assert all(np.array_equal(one.vector, other.vector) for one, other in zip(exact, again, strict=True))


def test_the_card_is_of_the_private_model(found):
    assert [each.name for each in found.card.columns] == ["dose", "ward", "even"]
    dose = found.card.columns[0]
    points = dose.within(dose.points, np.mean)[0]
    assert points[-2] > points[0], "the larger the dose, the more are ill"
    assert dose.reported.any()
    assert not found.card.columns[2].reported.all()


def test_the_columns_that_decide_are_drawn(found):
    assert decisive(found.card) == [0, 1, 2]
    assert drawn(found.card).startswith(b"\x89PNG")


def test_an_empty_cell_sets_no_axis(found):
    """ "other" and "missing" of a ward that nobody lacks had bands of +-5, which flattened every curve."""
    card, ward_ = found.card, found.card.columns[1]
    empty = np.isin(ward_.intervals.of_codes, np.flatnonzero(~ward_.filled))
    assert empty.any()
    wide = replace(ward_, low=np.where(empty, -50.0, ward_.low), high=np.where(empty, 50.0, ward_.high))
    columns = (card.columns[0], wide, card.columns[2])
    low, high = _extent(columns, 0)
    assert -20 < low < 0 < high < 20
    assert _extent(card.columns, 0) == (low, high)
    assert drawn(replace(card, columns=columns)).startswith(b"\x89PNG")


def test_every_record_is_summed_or_held_out_and_lines_that_are_none_are_counted(found):
    parties = found.opened.parties
    assert [len(party.y) for party in parties] == [699, 699]
    assert [(party.unlabelled, party.broken) for party in parties] == [(1, 1), (1, 1)]
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
    assert {each.plan.key_agreement for each in found.releases} == {"mlkem768-x25519"}
    assert [each.name for each in what.public.columns] == ["dose", "ward", "even"]


def test_stronger_noise_costs_more_than_half_of_what_is_learned(files, found):
    done = rehearsal.rehearsed(rehearsal.opened(files, replace(ASKED, epsilon=0.02)), lambda _: None)
    assert done.private.value < 0.8
    remarks = [dict(rehearsal.costs(each)).get("how faintly cut points are seen") for each in (found, done)]
    assert remarks[0] is None
    assert "state the edges of some columns (dose)" in remarks[1]


def test_three_classes_are_rehearsed_too(tmp_path):
    files = [ward(tmp_path / f"{seed}.csv", seed, classes=("mild", "none so far", "severe")) for seed in (0, 1)]
    done = rehearsal.rehearsed(rehearsal.opened(files, ASKED), lambda _: None)
    assert done.opened.public.classes == ("mild", "none so far", "severe")
    assert RANKS in " ".join(str(done).split())  # of more than two classes the head is LDA
    assert rehearsal.facts(done)["probabilities_only_rank"]
    assert min(done.private.value, done.exact.value) > 0.8
    assert 0 < done.private.error < 0.05


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
    done = rehearsal.rehearsed(what, lambda _: None)
    assert done.private.value > 0.7
    assert RANKS not in " ".join(str(done).split())
    assert not rehearsal.facts(done)["probabilities_only_rank"]


def test_what_was_not_asked_for_is_a_word_that_is_said(files):
    bare = rehearsal.opened(files, rehearsal.RehearsalOptions("ill", 3.0))
    said = {each.what: each.assumed for each in rehearsal.assumptions(bare)}
    assert (said["unit"], said["adjacency"], said["delta"], said["model"]) == ("record", "add-remove", "1e-06", "local")
    assert (bare.privacy.delta, bare.privacy.model) == (1e-6, "local")
    asked = {each.what for each in rehearsal.assumptions(rehearsal.opened(files, ASKED))}
    assert asked & {"unit", "adjacency", "delta", "model"} == {"unit"}
    three = rehearsal.opened([*files, files[0]], rehearsal.RehearsalOptions("ill", 3.0))
    assert (three.privacy.model, three.plan.cohort.colluders) == ("distributed", 1)
    assert [party.name for party in three.parties] == ["north 1", "south", "north 3"]


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"target": "sick"}, ps.DataError, "has no column 'sick'"),
        ({"target": "patient"}, ps.DataError, "patient has more than 20 different values"),
        ({"drop": ("age",)}, ps.DataError, "has no column 'age'"),
        ({"drop": ("dose", "ward", "even")}, ps.DataError, "no column other than the target"),
        ({"test": 1.5}, ps.DataError, "test must be between 0 and 1"),
        ({"test": 0.999}, ps.DataError, r"too few records to fit and to score of the ill \w+ \([0-9,]+\)"),
        ({"gaps": ("9",)}, ps.DataError, "gaps without a column are words.*got 9.*as in --gaps patient=9"),
        (
            {"gaps": ("doze=-9",)},
            ps.DataError,
            "--gaps doze=-9 names no column of the tables; name one of patient, dose",
        ),
        ({"epsilon": -1.0}, ps.PlanError, "epsilon must be"),
        ({"adjacency": "some"}, ps.PlanError, "adjacency"),
    ],
)
def test_what_cannot_be_rehearsed_is_one_sentence(files, changes, error, told):
    with pytest.raises(error, match=told):
        rehearsal.opened(files, replace(ASKED, **changes))


@pytest.mark.ci
def test_what_is_odd_in_one_file_is_told_with_its_name_and_before_anything_is_computed(files, tmp_path, recwarn):
    """All wards of one file were "other" without a word, and a warning of dates named no file."""
    north, south = tmp_path / "north.csv", tmp_path / "south.csv"
    for place, path in enumerate((north, south)):
        lines = files[place].path.read_text().splitlines()[:-1]
        days = ("2024-{:02}-01", "01.{:02}.2024")[place]
        rows = [f"{line},{days.format(row % 12 + 1)}" for row, line in enumerate(lines[1:])]
        path.write_text("\n".join([f"{lines[0]},seen", *rows]) + "\n")
    text = south.read_text()
    for ward_ in "abc":
        text = text.replace(f",{ward_},", f",{ward_.upper()},")
    south.write_text(text)
    what = rehearsal.opened([RecordFile(path, "ill") for path in (north, south)], ASKED)
    ward_said, seen = rehearsal.oddities(what)
    assert ward_said.startswith("south.csv: ward: all 700 are not listed, such as ")
    assert ward_said.endswith("another spelling? By case alone differs " + ward_said.partition("differs ")[2])
    assert "A for a" in ward_said
    assert seen.startswith("south.csv: seen: 700 unreadable: dates not written as 2020-01-31? To read them, state ")
    done = rehearsal.rehearsed(what, lambda _: None)
    assert [str(e.message) for e in recwarn if issubclass(e.category, ps.errors.UnreadableRecordsWarning)] == []
    assert ward_said in str(done)
    assert rehearsal.facts(done)["odd"] == [ward_said, seen]
    rehearsal.write_page(done, tmp_path / "page.html")
    assert "south.csv: seen: 700 unreadable" in (tmp_path / "page.html").read_text()


def test_a_few_values_beside_the_list_are_no_oddity_but_a_line_that_is_no_record_is(files):
    odd = rehearsal.oddities(rehearsal.opened(files, ASKED))
    assert [remark.partition(": line ")[0] for remark in odd] == [
        f"{name}.csv: 1 line does not fit the table (a wrong number of fields, a stray quote, the header once more, or "
        "no JSON object) and is excluded, first"
        for name in ("north", "south")
    ]
    assert all(remark.endswith("has 1 field for 6 names") for remark in odd)


@pytest.mark.parametrize("rare", [1, 60])
def test_a_label_in_another_case_is_named_as_such(tmp_path, rare):
    """One was said to have too few records, with a remedy that makes it a gap; many were a class of their own."""
    files = [ward(tmp_path / "north.csv", 0), ward(tmp_path / "south.csv", 1)]
    for file in files:
        file.path.write_text(file.path.read_text().replace(",yes\n", ",Yes\n", rare))
    said = "'Yes' differs from 'yes' by case alone: correct it"
    if rare == 1:
        with pytest.raises(ps.DataError, match=rf"of the ill Yes \(2\); {said}, or pass files with more"):
            rehearsal.opened(files, ASKED)
    else:
        assert f"north.csv: ill: {said}" in rehearsal.oddities(rehearsal.opened(files, ASKED))


def test_classes_in_another_spelling_are_named_with_their_file(tmp_path):
    """They were counted as records without a class, and no text was named."""
    files = [ward(tmp_path / "north.csv", 0), ward(tmp_path / "south.csv", 1)]
    text = files[1].path.read_text().replace(",yes\n", ",Yes\n")
    files[1].path.write_text(text)
    many = text.count(",Yes\n")
    said = rf"south has no record of the ill yes \(ill: {many} records hold none of the classes no, yes"
    with pytest.raises(ps.DataError, match=rf"{said} .* 'Yes' \({many}\)\. By case alone .* yes\): correct it"):
        rehearsal.opened(files, ASKED)
    files[1].path.write_text(text.replace(",Yes\n", ",yes\n", 100))
    (found,) = [each for each in rehearsal.oddities(rehearsal.opened(files, ASKED)) if "ill" in each]
    assert found == (
        f"south.csv: ill: {many - 100} records hold none of the classes no, yes and are excluded, "
        f"most often 'Yes' ({many - 100}). By case alone differs Yes for yes"
    )


def test_each_party_is_told_what_the_joint_model_is_worth_to_its_own_records(found):
    """One model alone beside all, on what that party held out: on all records it stood beside records not its own."""
    assert list(found.own) == ["north", "south"]
    for party, own in zip(found.opened.parties, found.own.values(), strict=True):
        assert own.records == party.test.sum()
        assert own.gain.value == pytest.approx(own.private.value - own.alone.value)
        assert 0 < own.gain.error < 0.05
        assert own.alone.value != found.alone[party.name].value
    said = rehearsal.worths(found)[0]
    gain_ = found.own["north"].gain
    assert f"For north's own records the joint model is worth {gain_.value:+.3f} ± {gain_.error:.3f}" in said.conclusion
    text = str(found)
    assert text.index("north's own records") < text.index(said.conclusion) < text.index("north alone, no privacy")
    assert "the noise, sampled once" in text
    facts = rehearsal.facts(found)["own_records"]["south"]
    assert facts["gain"] == pytest.approx(facts["auc"] - facts["auc_alone"])


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        (0.004, 0.02, "worth +0.004 ± 0.020: its 9 records held out cannot distinguish that from 0."),
        (0.06, 0.02, "worth +0.060 ± 0.020."),
        (-0.06, 0.02, "worth -0.060 ± 0.020: its own model predicts them better."),
        (0.06, None, "worth +0.060: too few records of a class are held out to estimate its error."),
    ],
)
def test_a_worth_is_said_as_surely_as_it_is_known(found, value, error, told):
    own = replace(found.own["north"], records=9, gain=Auc(value, error))
    (said,) = rehearsal.worths(replace(found, own={"north": own}))
    assert said.conclusion == f"For north's own records the joint model is {told}"


def test_a_rare_class_that_is_never_predicted_is_told_with_what_to_do():
    """At one half nobody is ill, and records are ordered without a mistake."""
    y = np.repeat([0, 1], [90, 10])
    probabilities = np.linspace(0, 0.29, 100)
    found = Decided.of(("no", "yes"), y, y, np.column_stack([1 - probabilities, probabilities]))
    assert (found.balanced, found.one_class) == (0.5, True)
    assert found.by_shares == pytest.approx((1 + 35 / 90) / 2), "those above .1"
    assert "yes is 10.0% of the records summed and is predicted for 0.0% of those held out" in found.remark
    assert "priors='uniform'" in found.remark
    assert f"Flagging this way has a balanced accuracy of {found.by_shares:.1%} here" in found.remark
    assert Decided.of(("no", "yes"), y, y, np.column_stack([1 - y, y]).astype(float)).remark == ""
    three = np.column_stack([np.full(100, 0.8), probabilities / 2, 0.2 - probabilities / 2])
    assert "divided by the shares" in Decided.of(("a", "b", "c"), y, y, three).remark


def test_the_area_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 200), rng.random(200).round(1)
    pairs = score[y == 1][:, None] - score[y == 0]
    found = auc(Held(y), np.column_stack([1 - score, score]))
    assert found.value == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())
    again = [auc(Held(y), np.column_stack([1 - s, s])).value for s in rng.random((400, 200))]
    assert found.error == pytest.approx(np.std(again), rel=0.15), "a random score has this spread"


@pytest.mark.ci
def test_errors_are_the_spread_over_other_records_of_both_and_of_whole_persons():
    """Four rows of a person at a time; by the rows alone the error would be half of what it is."""
    rng, ids = np.random.default_rng(1), np.repeat(np.arange(200), 4).astype(object)
    values, gains, errors, rows = [], [], [], []
    for _ in range(300):
        y = np.repeat(rng.integers(0, 2, 200), 4)
        first, other = (np.repeat(y[::4] + 2 * rng.normal(size=200), 4) for _ in range(2))
        shares, than = (np.column_stack([-each, each]) for each in (first, first + other))
        values.append(auc(Held(y), shares).value)
        gains.append(gain(Held(y), shares, than).value)
        errors.append([auc(Held(y, ids), shares).error, gain(Held(y, ids), shares, than).error])
        rows.append(auc(Held(y), shares).error)
    assert np.mean(errors, axis=0) == pytest.approx([np.std(values), np.std(gains)], rel=0.1)
    assert np.mean(rows) == pytest.approx(np.std(values) / 2, rel=0.1)
    assert auc(Held(np.array([0, 0, 1])), np.eye(3)[:, :2]).error is None


def test_the_names_of_many_values_do_not_stand_on_one_another(found):
    """Of wards, and of cut points near one end; level names collide at the width of a phone, slanted ones do not."""
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(4.2, 3), layout="constrained")
    many, few = figure.subplots(2)
    wards = [
        "cardiology",
        "emergency",
        "gynaecology"[:10] + "...",
        "medicine",
        "neurology",
        "surgery",
        "other",
        "missing",
    ]
    many.set_xticks(range(len(wards)), wards)
    few.set_xticks(range(2), ["no", "yes"])
    _part(figure, (many, few))
    assert [axes.get_xticklabels()[0].get_rotation() for axes in (many, few)] == [40, 0]
    assert figure.get_figheight() == pytest.approx(3.4)


def test_a_format_is_printed_as_the_options_that_state_it():
    file = RecordFile("t.csv", "ill", separator="\t", decimal=",", thousands=".", quoted=True)
    assert unusual(file.dialect) == {"separator": "tab", "decimal": ",", "thousands": ".", "quoted": True}
    assert unusual(HeldTable("north", {}).dialect) == {}


def test_equal_records_of_many_files_have_coins_of_their_own():
    """One coin for all files held out lumps: of 100 equal files a record is held out about 25 times, not 0 or 100."""
    rng = np.random.default_rng(0)
    values = {"dose": (0.0, 1.0, 2.0), "ward": ("a", "b", "c"), "ill": ("no", "yes")}
    table = {name: rng.choice(each, 24).tolist() for name, each in values.items()}
    files = [HeldTable(f"site {place}", table) for place in range(100)]
    parties = rehearsal.opened(files, ASKED).parties
    held_out = np.array([party.test for party in parties])
    assert abs(held_out.mean() - 0.25) < 5 * np.sqrt(0.1875 / held_out.size)
    assert (abs(held_out.mean(axis=0) - 0.25) < 5 * np.sqrt(0.1875 / len(files))).all()
