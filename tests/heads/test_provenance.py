"""A head says what it was made from, and its words never promise more than the releases do."""

import dataclasses
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load as load_tensors
from sklearn.base import clone

import privstats as ps
from privstats.contrib.personal import Personal
from privstats.course.alone import single_party_plan
from privstats.files.envelope import Content, safetensors_metadata
from privstats.heads.persistence import FORMAT
from privstats.heads.provenance import EXACT, UNKNOWN, Provenance
from privstats.heads.registry import HEADS
from tests.heads.conftest import class_release, quick
from tests.made import refused

X = np.eye(4)[np.arange(60) % 3] + 0.01
Y = np.arange(60) % 3
PROMISE = {"epsilon": 2.0, "delta": 1e-5, "adjacency": "add-remove"}
TERMS = {**PROMISE, "clip_norm": 2.0, "ledger": "uncharged"}
CLOSED = [name for name, entry in HEADS.items() if entry.closed_form and entry.task != "parties"]


def fitted(name, how):
    """A head of the registry, fitted on records or under a promise."""
    y = X[:, 0] if HEADS[name].task == "ridge" else Y
    head = quick(name).set_params(**{"rounds": 2} if HEADS[name].after_rounds else {})
    head = ps.heads.Ridge(solver="aggregate") if name == "Ridge" else head  # of one release, and not of rounds
    if how == "exact":
        return head.fit(X, y)
    terms = {"target_bound": 2.0} if HEADS[name].task == "ridge" else {"classes": range(3)}
    terms |= {"expected_records": 60} if HEADS[name].after_rounds else {}
    norm = 1.0 if name == "RefinedSoftmax" else 2.0
    return head.fit_private(X, y, **TERMS | {"clip_norm": norm} | terms)


def release(privacy, clients=2):
    plan = ps.Plan(schema=ps.ClassSchema(3, 4, "NAB", 2.0), cohort=ps.Cohort(clients, 2, 99), privacy=privacy)
    return ps.simulate(plan, [(X[k::clients], Y[k::clients]) for k in range(clients)])


@pytest.mark.parametrize("name", CLOSED)
def test_every_head_says_that_records_were_read_exactly(name, tmp_path):
    head = fitted(name, "exact")
    assert head.provenance_ == EXACT
    assert repr(head).endswith("[exact: no promise]")
    head.save(tmp_path / "head")
    assert ps.heads.load(tmp_path / "head").provenance_ == EXACT


@pytest.mark.parametrize("name", CLOSED)
def test_every_head_says_the_promise_that_it_was_fitted_under(name, tmp_path):
    head = fitted(name, "private")
    found = head.provenance_
    assert found.covered
    assert (found.exact, found.unit, found.adjacency, found.model) == (False, "record", "add-remove", "central")
    assert found.epsilon == pytest.approx(2.0, rel=1e-7)
    assert found.epsilon >= 2.0 * (1 - 1e-9)  # never less than was spent
    assert found.delta == 1e-5
    released = getattr(head, "releases_", None) or [head.release_]
    assert found.releases == tuple(each.digest for each in released)
    assert (found.course is not None) is (len(released) > 1)
    head.save(tmp_path / "head")
    assert ps.heads.load(tmp_path / "head").provenance_ == found


@given(st.integers(1, 6))
def test_part_of_a_course_is_said_to_cost_what_its_releases_cost(made):
    """mu of the releases that a head rests on, by their squares; Dong, Roth and Su 2022, corollary 2."""
    releases = COURSE[:made]
    found = ps.heads.RefinedSoftmax().fit_releases(releases).provenance_
    mu = math.sqrt(sum(each.plan.noise.mu**2 for each in releases))
    assert ps.dp.gaussian_delta(mu, found.epsilon) <= found.delta * (1 + 1e-9)
    assert ps.dp.gaussian_delta(mu, 0.999 * found.epsilon) > found.delta
    assert found.releases == tuple(each.digest for each in releases)


def course():
    schema = ps.ClassSchema(3, 4, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
    whole = single_party_plan(schema, ps.Privacy(model="central", unit="record", **PROMISE))
    return ps.private_releases(ps.Rounds.within(whole, 5, expected_records=60), X, Y, ledger="uncharged")


COURSE = course()
COURSE_PROVENANCE = Provenance.of(COURSE)


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        (ps.NoPrivacy(), "exact: no promise"),
        (ps.Privacy(model="distributed", unit="record", **PROMISE),
            "epsilon 2 at delta 1e-05: distributed noise, one record, add-remove"),
        (ps.Privacy(model="central", unit="client", max_records_per_client=50, **PROMISE),
            "epsilon 2 at delta 1e-05: central noise, one client, add-remove"),
    ],
    ids=["none", "distributed", "client"],
)  # fmt: skip
def test_the_words_are_those_of_the_plan(privacy, words):
    made = dataclasses.replace(release(privacy, clients=3), reproducible=False)
    found = ps.heads.LDA().fit_release(made).provenance_
    if found.covered:
        words += f", while {made.plan.condition}"
    assert (str(found), (found.plan, found.release)) == (words, (made.plan.digest, made.digest))
    assert (found.survivors, found.clients) == (3, 3)
    assert found.delta in (None, pytest.approx(1e-5 + made.plan.masking.failure))


def test_a_file_of_an_earlier_version_has_no_condition_and_says_so(tmp_path):
    head = ps.heads.LDA().fit_release(release(ps.Privacy(model="central", unit="record", **PROMISE)))
    head.provenance_ = msgspec.structs.replace(head.provenance_, reproducible=False, condition=None)
    head.save(tmp_path / "head")
    assert b"condition" not in (tmp_path / "head").read_bytes()  # the file is as an earlier version wrote it
    found = ps.heads.load(tmp_path / "head").provenance_
    assert str(found).endswith(", while the condition of its plan holds, which this file does not state")


def test_a_head_of_a_course_names_the_condition_of_each_session():
    assert ps.heads.RefinedSoftmax().fit_releases(COURSE).provenance_.condition == COURSE[0].plan.condition
    first = release(ps.Privacy(model="central", unit="record", **PROMISE), clients=2)
    helped = dataclasses.replace(first.plan, cohort=ps.Cohort(5, 4, 99, colluders=1))
    second = dataclasses.replace(first, plan=helped, survivors=(0, 1, 2, 3))
    assert Provenance.of([first, second]).condition == f"{first.plan.condition}; and {helped.condition}"


@pytest.mark.parametrize("condition", ["two\nlines", "a" * 10_001, "\x1b[2J"])
def test_a_condition_is_one_printable_clause(condition):
    with pytest.raises(ValueError, match="a printable clause"):
        msgspec.structs.replace(COURSE_PROVENANCE, condition=condition)
    with pytest.raises(ValueError, match="a printable clause"):
        msgspec.structs.replace(EXACT, condition="nobody lies")


def test_noise_that_others_may_know_is_no_promise():
    made = dataclasses.replace(release(ps.Privacy(model="central", unit="record", **PROMISE)), reproducible=True)
    found = ps.heads.LDA().fit_release(made).provenance_
    assert (found.exact, found.covered) == (False, False)
    assert str(found) == "no promise: its noise came from a generator that others may know"


def test_a_release_of_another_maker_says_nothing():
    assert ps.heads.LDA().fit_release(class_release(X, Y)).provenance_ == UNKNOWN
    assert not UNKNOWN.covered
    assert repr(ps.heads.LDA().fit_release(class_release(X, Y))).endswith(
        "[unknown: the file does not state whether a promise covers it]"
    )


def test_what_is_fitted_again_says_the_last_fit_and_a_clone_says_nothing():
    head = fitted("LDA", "private").fit(X, Y)
    assert head.provenance_ == EXACT
    assert not hasattr(clone(head), "provenance_")
    assert repr(clone(head)) == "LDA()"


@pytest.mark.parametrize("before", ["exact", "private"])
@pytest.mark.parametrize("name", CLOSED)
def test_attack_a_rule_that_a_refused_release_left_standing_has_no_promise_of_it(name, before, monkeypatch):
    head, other = fitted(name, before), fitted(name, "private")
    rule = head.rule_

    def failing(*_):
        raise ps.ReleaseError("no finite solution")

    monkeypatch.setattr(type(head), "_adopt", failing)
    with pytest.raises(ps.ReleaseError):
        head.fit_releases(other.releases_) if HEADS[name].after_rounds else head.fit_release(other.release_)
    assert head.rule_ is rule
    assert head.provenance_ == UNKNOWN


def test_attack_an_exact_head_takes_no_promise_from_a_release_that_lacks_its_statistic(tmp_path):
    plan = single_party_plan(ps.ClassSchema(3, 4, "NA", 2.0), ps.Privacy(model="central", unit="record", **PROMISE))
    lacking = ps.private_release(plan.schema, plan.privacy, X, Y, ledger="uncharged")
    head = ps.heads.LDA().fit(X, Y)
    refused(ps.MissingStatisticError, "LDA needs statistic B", head.fit_release, lacking)
    head.save(tmp_path / "head")
    assert not ps.heads.load(tmp_path / "head").provenance_.covered


def test_one_clients_own_head_is_exact_and_the_release_inside_is_not(tmp_path):
    own = Personal(fitted("LDA", "private")).fit(X, Y)
    own.save(tmp_path / "own")
    again = Personal.load(tmp_path / "own")
    assert own.provenance_ == again.provenance_ == EXACT
    assert again.head.provenance_ == own.head.provenance_
    assert again.head.provenance_.covered


def test_a_digest_names_one_release():
    plan = ps.Plan(schema=ps.ClassSchema(3, 4, "NA", 2.0), cohort=ps.Cohort(3, 2, 99), privacy=ps.NoPrivacy())
    vector = np.arange(plan.layout.size, dtype=np.int64)
    one = ps.Release(plan, vector, (0, 1, 2))
    others = [
        ps.Release(plan, vector + 1, (0, 1, 2)),
        ps.Release(plan, vector, (0, 1)),
        ps.Release(plan, vector, (0, 1, 2), (1,)),
        ps.Release(plan, vector, (0, 1, 2), reproducible=True),
        ps.Release(dataclasses.replace(plan, min_count=3), vector, (0, 1, 2)),
    ]
    assert len({each.digest for each in (one, *others)}) == 6
    assert ps.Release(plan, vector.copy(), [0, 1, 2]).digest == one.digest


PRIVATE = {"exact": False, "model": "central", "unit": "record", **PROMISE}


@pytest.mark.parametrize(
    "said",
    [
        {**PRIVATE, "epsilon": None},
        {**PRIVATE, "epsilon": 0.0},
        {**PRIVATE, "epsilon": -1.0},
        {**PRIVATE, "epsilon": math.inf},  # in JSON it is null
        {**PRIVATE, "delta": 1.0},
        {**PRIVATE, "delta": -0.1},
        {**PRIVATE, "unit": None},
        {**PRIVATE, "exact": True},
        {"exact": True, "epsilon": 1.0},
        {"epsilon": 1.0},
        {"exact": False},
        {"exact": True, "assumed_public": ("classes",)},
        {"assumed_public": ("rows",)},
        {**PRIVATE, "assumed_public": ("rows", "rows")},
    ],
)
def test_attack_half_a_promise_is_none(said, tmp_path):
    refused(ValueError, "promise|exact", Provenance, **said)
    forged(tmp_path / "head", {name: value for name, value in said.items() if value is not None})
    refused(ps.errors.HeadError, "damaged", ps.heads.load, tmp_path / "head")


@pytest.mark.parametrize(
    "said",
    [{"adjacency": "swap"}, {"unit": "family"}, {"model": "trusted"}, {"boast": 1}, {"assumed_public": ("nothing",)}],
)
def test_attack_words_that_no_promise_has_are_refused(said, tmp_path):
    forged(tmp_path / "head", {**PRIVATE, **said})
    refused(ps.errors.HeadError, "damaged", ps.heads.load, tmp_path / "head")


def forged(path, said):
    """A head's file in which somebody wrote another provenance, with a checksum that fits."""
    fitted("LDA", "exact").save(path)
    data = path.read_bytes()
    manifest = msgspec.json.decode(safetensors_metadata(data)["manifest"]) | {"provenance": said}
    FORMAT.write(path, Content(msgspec.json.encode(manifest), load_tensors(data)))


@pytest.mark.parametrize("head", [ps.heads.LDA, ps.heads.Ridge])
def test_a_head_of_one_release_says_which_heads_read_those_of_a_course(head):
    refused(AttributeError, r"give them to fit_release; RefinedSoftmax and", lambda: head().fit_releases([]))
    assert not hasattr(head(), "fit_releases")
    assert hasattr(ps.heads.RefinedSoftmax(), "fit_releases")
    assert hasattr(ps.heads.RefinedRidge(), "fit_releases")
