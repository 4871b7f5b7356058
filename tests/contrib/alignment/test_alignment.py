"""Masked SLOT-Align comes to what it comes to in plaintext, ends where a client vanishes, and is priced as a whole."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats import heads
from privstats.contrib.alignment import barycentre, distance
from privstats.contrib.personal import with_local_transform
from privstats.course import Course, Single, spend, verify_next
from privstats.course.base import as_next
from privstats.encoding import flatten
from privstats.errors import DataError, HeadError, LedgerError, PlanError, ReleaseError, SchemaError
from privstats.kinds.gaussians import client_gaussian
from privstats.records.opened import Opened
from privstats.schema.public_values import Published, Values
from privstats.secagg.interactive.messages import size_limit
from privstats.secagg.interactive.state import STEPS
from privstats.workflows.simulate import run
from tests import made
from tests.contrib.alignment.cohort import CLASSES, CLIENTS, COHORT, PROMISE, PUBLIC, RADIUS, SCHEMA, D, first, shards


def plaintext(parts, steps, step="alvarez-esteban"):
    gaussians = [client_gaussian(SCHEMA, Opened(SCHEMA.reading, X, None)) for X, _ in parts]
    covariances = [each.covariance / SCHEMA.scale**2 for each in gaussians]
    return barycentre(covariances, [each.records for each in gaussians], steps, step)


@pytest.mark.parametrize("step", ["alvarez-esteban", "published"])
def test_masked_is_plaintext_up_to_the_grid(step):
    parts = shards()
    course = ps.Alignment(first(), step)
    assert isinstance(course, Course)
    releases = ps.simulate(course, parts, [{"mask": {5}}])
    assert [each.survivors for each in releases] == [tuple(k for k in range(CLIENTS) if k != 5)] * 3
    left = [part for k, part in enumerate(parts) if k != 5]
    for rounds in range(3):
        found = course.reference(releases[: rounds + 1]).covariance.real
        grid = CLIENTS / SCHEMA.scale**2 / sum(len(y) for _, y in left)
        assert np.abs(found - plaintext(left, rounds, step)).max() < 40 * grid
    mean = np.concatenate([X for X, _ in left]).mean(axis=0)
    np.testing.assert_allclose(course.reference(releases).mean.real, mean, atol=2 / SCHEMA.scale)


@pytest.mark.ci
def test_two_vanish_in_a_round_and_what_was_reached_is_used():
    course = ps.Alignment(first())
    releases = ps.simulate(course, shards(), [{}, {}, {"mask": {2, 9}}])
    assert releases[2] is None
    assert course.next(releases) is None
    found = course.reference(releases).covariance.real
    assert np.abs(found - plaintext(shards(), 1)).max() < 1e-4
    late = ps.simulate(course, shards(), [{}, {"agree": {2}, "unmask": {9}}])
    assert [len(each.survivors) for each in late] == [CLIENTS] * 3  # who has uploaded is in the sum, gone or not
    with pytest.raises(ReleaseError, match="once its first sum is released"):
        course.reference([None])


@pytest.mark.ci
def test_under_a_promise_two_vanish_and_the_weights_renormalise():
    course = ps.Alignment(first(PUBLIC, PROMISE, replace(COHORT, min_survivors=10)))
    releases = ps.simulate(course, shards(), [{}, {"mask": {2, 9}}, {"mask": {0}}])
    assert [len(each.survivors) for each in releases] == [13, 11, 12]
    assert course.mu == pytest.approx(math.sqrt(3) * course.first.noise.mu)
    lost = ps.simulate(course, shards(), [{}, {"mask": set(range(8))}])
    assert lost[1] is None
    assert lost[2] is not None
    found = course.reference(lost).covariance.real
    values = np.linalg.eigvalsh(found)
    assert values[0] >= -1e-9
    assert values[-1] <= RADIUS**2 * (1 + 1e-9)


def test_noise_takes_no_eigenvalue_of_the_reference_beyond_the_square_of_the_clip():
    """A client's covariance has eigenvalues of at most R^2, and a round refuses a reference outside."""
    radius = 0.5
    course = ps.Alignment(first(replace(PUBLIC, clip_norm=radius), replace(PROMISE, epsilon=0.01)))
    values = np.linalg.eigvalsh(course.reference(ps.simulate(course, shards())).covariance.real)
    assert values[-1] == pytest.approx(radius**2)
    assert values[0] > -1e-9 * radius**2


def test_a_client_s_upload_is_clipped_in_every_node():
    promise = replace(PROMISE, client_clip=5.0)
    course = ps.Alignment(first(PUBLIC, promise))
    for plan in (course.first, course.next(_released(course))):
        moments = ps.measure(plan.schema, *shards()[0], published=plan.published)
        assert ps.dp.client_norm(plan.schema, promise, flatten(moments)) > 5.0, "the clip must shorten this client"
        clipped = ps.dp.clip_client(plan.schema, promise, flatten(moments))
        assert ps.dp.client_norm(plan.schema, promise, plan.ring.encode(clipped).lift()) <= 5.0


def _released(course):
    return [as_next(course, [], ps.simulate(course.first, shards()))]


@pytest.mark.parametrize("features", [3, 8, 24])
def test_what_is_published_is_symmetric_to_the_last_bit(features):
    """Clients ask for it: a product of matrices is not, and its 48th bit showed that for one cohort in some."""
    course, rng = (
        ps.Alignment(first(ps.GaussianSchema(features, 40.0, shrinkage=0.1, rounds=2))),
        np.random.default_rng(0),
    )
    for _ in range(50):
        shape = rng.standard_normal((features, features))
        found = course._admitted(shape @ shape.T)
        assert np.array_equal(found, found.T)


@pytest.mark.parametrize("reference", [0.0, 1.0, RADIUS**2])
def test_no_entry_and_no_norm_passes_what_the_ring_was_made_for(reference):
    """Whatever S is: the norm behind a client's clip and the entries behind the ring's width."""
    schema = replace(PUBLIC, reference=True)
    published = Published.of({"S": Values.rounded(reference * np.eye(D), 48)})
    for X in (shards()[0][0], np.full((30, D), 1e6), np.zeros((5, D)), np.zeros((0, D)), np.eye(D) * RADIUS):
        moments = ps.measure(schema, X, None, published=published)
        bound = moments.N * schema.grid_steps**2
        assert np.abs(np.diag(moments.M)).max(initial=0) <= bound
        assert np.abs(moments.M - np.diag(np.diag(moments.M))).max(initial=0) <= bound // 2
        assert np.linalg.norm(moments.M) <= bound * (1 + 1e-9)
        assert ps.dp.client_norm(schema, PROMISE, flatten(moments)) <= moments.N + 1e-6
        plain = ps.measure(PUBLIC, X, None)
        assert ps.dp.client_norm(PUBLIC, PROMISE, flatten(plain)) <= plain.N + 1e-6


def test_parties_come_to_the_same_plans_and_refuse_others():
    course = ps.Alignment(first())
    releases = ps.simulate(course, shards())
    second = course.next(releases[:1])
    assert verify_next(course, second, releases[:1]).place == 1
    other = ps.simulate(course, shards(seed=1))
    with pytest.raises(PlanError, match="not the one that follows"):
        verify_next(course, course.next(other[:1]), releases[:1])
    with pytest.raises(PlanError, match="release 0 is not of this course"):
        course.next([releases[1]])
    assert course.next(releases) is None
    assert ps.Plan.from_toml(second.to_toml()).with_values(second.published.read()) == second
    assert course.digest != ps.Alignment(first(), "published").digest
    assert course.mu == math.inf
    assert course.most == 3
    assert course.next([]) == course.first


def test_the_bytes_of_a_client():
    """At 128 features: both uploads of the interactive protocol, all six messages of a client together."""
    cohort = ps.Cohort(16, 12, 20_000)
    schema = ps.GaussianSchema(128, 20.0, shrinkage=0.1, rounds=2)
    plan = first(schema, cohort=cohort)
    template = ps.Alignment(plan).template
    assert 40_000 < template.masking.upload_bytes < 55_000
    assert 40_000 < plan.masking.upload_bytes < 55_000
    small, masking = run(first(), shards()), first().masking
    assert small.exact
    besides = sum(size_limit(row.answers, masking) for row in STEPS.values()) - masking.upload_bytes
    assert max(small.bytes_sent) - masking.upload_bytes <= besides < 20_000


def second(course, releases, strength=1.0):
    reference = course.reference(releases)
    transport = reference.transport(strength)
    schema = ps.ClassSchema(CLASSES, D, "NAB", RADIUS, transform=(transport,))
    return reference, transport, made.plan(schema, COHORT)


def test_a_second_plan_names_the_transport_and_clients_measure_with_their_own():
    parts = shards()
    course = ps.Alignment(first())
    reference, transport, plan = second(course, ps.simulate(course, parts))
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    own = [reference.local(transport, X) for X, _ in parts]
    assert all(each == transport for each in own)
    moments = [
        ps.measure(replace(plan.schema, transform=(each,)), *part) for each, part in zip(own, parts, strict=True)
    ]
    release = ps.simulate(plan, moments)
    moved = [each.apply(X) for each, (X, _) in zip(own, parts, strict=True)]
    far = {"before": 0.0, "after": 0.0}
    for rows, (X, _) in zip(moved, parts, strict=True):
        np.testing.assert_allclose(rows.mean(axis=0), reference.mean.real, atol=1e-3)
        far["before"] += distance(np.cov(X.T), reference.covariance.real)
        far["after"] += distance(np.cov(rows.T), reference.covariance.real)
    assert far["after"] < 0.5 * far["before"]  # not 0: what is carried over exactly is the shrunk covariance
    everything = np.concatenate(moved)
    np.testing.assert_allclose(release.moments.B, everything.T @ everything, rtol=1e-3, atol=2.0)
    head = heads.LDA().fit_release(release)
    with pytest.raises(SchemaError, match="is the plan's and has no client"):
        head.predict(parts[0][0])
    mine = with_local_transform(head, own[0])
    assert np.array_equal(mine.predict(parts[0][0]), head.classes_[head.rule_.best(moved[0])])
    assert mine.preprocessing_.transform[0].of_a_client
    assert not head.preprocessing_.transform[0].of_a_client
    with pytest.raises(HeadError, match="has no such transform"):
        with_local_transform(head, reference.transport(0.5))
    with pytest.raises(HeadError, match="not fitted"):
        with_local_transform(heads.LDA(), own[0])


@pytest.mark.ci
def test_a_transport_is_refused_where_one_record_is_promised():
    course = ps.Alignment(first())
    _, transport, plan = second(course, ps.simulate(course, shards()))
    record = made.promise(epsilon=3.0)
    with pytest.raises(PlanError, match=r"'transport' is fitted on each client's own records.*no useful bound"):
        replace(plan, privacy=record)
    assert replace(plan, privacy=replace(PROMISE, client_clip=None)).schema.transform == (transport,)


@pytest.mark.ci
def test_an_account_of_records_takes_neither_an_alignment_nor_a_transport(tmp_path):
    """What one record moves is not known for either, so no conversion may name a price."""
    ledger = made.ledger(tmp_path / "spent.db", epsilon=50.0)
    ledger.set_cap("clients", unit="client", adjacency="add-remove", epsilon=50.0, delta=1e-5)
    course = ps.Alignment(first(PUBLIC, PROMISE))
    _, _, plan = second(course, _released(course))
    plan = replace(plan, privacy=replace(PROMISE, client_clip=None))
    for each, words in ((Single(plan), "fitted on each client's records"), (course, "clips whole clients")):
        with pytest.raises(LedgerError, match=words):
            spend(each, ledger, "ward", b"run")
        assert spend(each, ledger, "clients", b"run" + words.encode()).mu == pytest.approx(each.mu)
    with pytest.raises(PlanError, match="add-remove"):
        ps.dp.joint_mu(PUBLIC, {"N": 1.0}, "replace-one")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"privacy": replace(PROMISE, unit="record", max_records_per_client=None, client_clip=None)},
            "no useful bound",
        ),
        ({"privacy": replace(PROMISE, client_clip=None)}, "needs client_clip"),
        ({"privacy": PROMISE, "schema": SCHEMA}, "Ledoit and Wolf's weight"),
        ({"cohort": ps.Cohort(CLIENTS, 12, 3_000, colluders=1)}, r"at least 4 \(rounds \+ 1\) = 12"),
        ({"schema": replace(PUBLIC, rounds=3)}, r"at least 4 \(rounds \+ 1\) = 16"),
        ({"schema": replace(PUBLIC, reference=True, among=(0, 13))}, "reads published values"),
    ],
)
def test_plans_that_would_not_hold_are_refused(change, words):
    with pytest.raises(PlanError, match=words):
        replace(first(PUBLIC), **change)


def test_a_round_without_noise_says_whom_it_is_among():
    template = ps.Alignment(first()).template
    for among in (None, (0, CLIENTS)):
        with pytest.raises(PlanError, match="must name its clients in schema.among"):
            replace(template, schema=replace(template.schema, among=among))


def test_no_alignment_without_noise_where_clients_do_not_see_the_list():
    panel = tuple(ps.secagg.Identity.generate(np.random.default_rng(k).bytes).public.hex() for k in range(3))
    with pytest.raises(PlanError, match="clients see the survivors"):
        replace(first(PUBLIC), protocol="split", panel=panel)
    assert replace(first(PUBLIC, PROMISE), protocol="split", panel=panel).panel == panel


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rounds": 4}, "rounds must be at most 3"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"shrinkage": "oas"}, "shrinkage must be 'ledoit-wolf' or a number from 0 to 1"),
        ({"shrinkage": 1.5}, "shrinkage must be 'ledoit-wolf' or a number from 0 to 1"),
        ({"reference": 1}, "reference must be True or False"),
        ({"among": (0, 1)}, "among must list the clients"),
        ({"reference": True, "among": (1, 0)}, "among must list the clients"),
    ],
)
def test_wrong_schemas_are_one_sentence(wrong, words):
    with pytest.raises(SchemaError, match=words):
        replace(PUBLIC, **wrong)


def test_wrong_courses_are_one_sentence():
    plain = made.plan(ps.ClassSchema(3, D, "NA", 1.0), COHORT)
    for plan in (plain, "plan"):
        with pytest.raises(PlanError, match="Plan of a GaussianSchema"):
            ps.Alignment(plan)
    with pytest.raises(PlanError, match="omit reference in"):
        ps.Alignment(ps.Alignment(first()).template)
    with pytest.raises(PlanError, match="step must be one of"):
        ps.Alignment(first(), "newton")
    shared = replace(PROMISE, shares={"N": 0.2, "x": 0.4, "V": 0.4})
    with pytest.raises(PlanError, match="omit privacy.shares"):
        ps.Alignment(first(PUBLIC, shared))
    course = ps.Alignment(first())
    reference, transport, _ = second(course, ps.simulate(course, shards()))
    with pytest.raises(PlanError, match="another reference"):
        reference.local(replace(transport, reference="0" * 64), shards()[0][0])
    with pytest.raises(DataError, match="X"):
        reference.local(transport, np.zeros((3, D + 1)))
