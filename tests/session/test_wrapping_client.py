"""One malicious client, one entry at the edge: neither the centre lift nor an abort may betray its victim."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.cli import plan as plan_command
from privstats.dp import operating_point
from privstats.encoding import flatten
from privstats.plan import check_plausible
from privstats.randomness import seeded
from privstats.session import contribution, release
from tests import made

SCHEMA = ps.ClassSchema(classes=3, features=4, statistics="NAB", clip_norm=1.0)
VICTIM = (np.eye(4)[:1], np.array([0]))
ENTRY = 3  # the first entry of the sums of class 0: the victim alone adds to it
TRIALS = 200


def plan(model, epsilon=0.1):
    return made.plan(
        SCHEMA, ps.Cohort(clients=3, min_survivors=3, max_records=50), made.promise(model, epsilon=epsilon, delta=1e-6)
    )


def shares(subject, present, rng):
    """What the honest clients upload: one of them holds the victim, or nobody does."""
    rows = slice(0, 1 if present else 0)
    held = [ps.measure(SCHEMA, VICTIM[0][rows], VICTIM[1][rows]), ps.measure(SCHEMA, np.zeros((0, 4)), [])]
    return [contribution(subject, each, rng, allow_reproducible=True).take() for each in held]


def total(subject, present, placed, rng):
    """The unmasked sum when the malicious client puts ``placed`` into one entry and nothing else anywhere."""
    attack = np.zeros(subject.layout.size, np.int64)
    attack[ENTRY] = placed
    vector = subject.ring.encode(attack)
    for share in shares(subject, present, rng):
        vector.add(share)
    return vector


def outcome(subject, present, placed, seed):
    """The attacked entry of the release, or the code with which there is none."""
    rng = seeded(seed)
    unmasked = total(subject, present, placed, rng)
    try:
        return int(release(subject, unmasked, (0, 1, 2), rng, "uncharged", allow_reproducible=True).vector[ENTRY])
    except ps.AggregationError as abort:
        return abort.code


def edge_of(subject):
    """One below the wrap of the attacked entry's segment."""
    return 2 ** (subject.headroom[1].bits - 1) - 1


def in_both_worlds(subject, placed):
    return [[outcome(subject, present, placed, 2 * i + present) for i in range(TRIALS)] for present in (False, True)]


@pytest.mark.ci
@pytest.mark.parametrize("model", made.MODELS)
def test_an_entry_just_below_the_wrap_tells_nothing_about_the_victim(model):
    """Lifting before the noise, the sign of the entry told the worlds apart every time (TPR 1 at FPR 0)."""
    subject = plan(model)
    absent, present = in_both_worlds(subject, edge_of(subject))
    below = [sum(isinstance(value, int) and value < 0 for value in world) / TRIALS for world in (absent, present)]
    aborts = [world.count("implausible") / TRIALS for world in (absent, present)]
    most = operating_point(subject.budget().mu)[2] + 4 / TRIALS**0.5  # the ceiling, and sampling error
    assert abs(below[0] - below[1]) <= most
    assert abs(aborts[0] - aborts[1]) <= most


@pytest.mark.ci
@pytest.mark.parametrize("model", made.MODELS)
def test_an_abort_for_an_implausible_entry_tells_no_more_than_the_release(model):
    """On the exact sum the same check is an oracle; on the noisy one it is post-processing."""
    subject = plan(model)
    placed = subject.headroom[1].plausible
    if model == "central":
        exact = [[refuses(subject, total(subject, present, placed, seeded(0)).lift())] for present in (False, True)]
        assert exact == [[False], [True]]
    absent, present = in_both_worlds(subject, placed)
    rates = [world.count("implausible") / TRIALS for world in (absent, present)]
    assert 0.2 < min(rates) <= max(rates) < 0.8
    assert abs(rates[0] - rates[1]) <= operating_point(subject.budget().mu)[2] + 4 / TRIALS**0.5


def refuses(subject, vector):
    try:
        check_plausible(subject, vector)
    except ps.AggregationError:
        return True
    return False


def test_the_real_protocol_on_the_shipped_plan_does_not_betray_the_victim_by_a_sign():
    """The shipped plan set to central, masks and all: the sign used to be right 10 times of 10."""
    shipped = ps.Plan.read(Path(plan_command.__file__).parent / "plan.toml")
    subject = replace(shipped, privacy=replace(shipped.privacy, model="central"), cohort=ps.Cohort(4, 3, 50))
    seen = [protocol_outcome(subject, present, seed) for seed in range(10) for present in (False, True)]
    assert set(seen) == {"implausible"}


def protocol_outcome(subject, present, seed):
    from privstats import secagg
    from privstats.engines import loopback

    rng, classes = seeded(seed), subject.schema.classes
    X = np.zeros((1 if present else 0, subject.schema.features))
    X[:, 0] = 1.0
    victim = flatten(ps.measure(replace(subject.schema, transform=()), X, np.zeros(len(X), np.int64)))
    attack = np.zeros_like(victim)
    attack[classes] = edge_of(subject)
    identities = [secagg.Identity.generate(rng.bytes) for _ in range(4)]
    aggregator = secagg.Identity.generate(rng.bytes)
    roster = secagg.Roster(tuple(identity.public for identity in identities), server=aggregator.public)
    vectors = [subject.ring.encode(vector) for vector in (victim, attack, 0 * victim, 0 * victim)]
    clients = [
        secagg.Client(subject.masking, vector, index=i, identity=identity, roster=roster, entropy=rng.bytes)
        for i, (identity, vector) in enumerate(zip(identities, vectors, strict=True))
    ]
    server = secagg.Server(subject.masking, roster=roster, identity=aggregator, entropy=rng.bytes)
    done = loopback.run(server, clients)
    try:
        vector = release(subject, done.total, done.survivors, rng, "uncharged", allow_reproducible=True).vector
    except ps.AggregationError as abort:
        return abort.code
    return "negative" if vector[classes] < 0 else "positive"


def test_without_noise_a_sum_beyond_what_honest_clients_can_hold_is_refused():
    subject = made.plan(SCHEMA, ps.Cohort(3, 3, 50))
    most = 50 * SCHEMA.grid_steps
    assert outcome(subject, False, most, 0) == most
    assert outcome(subject, False, most + 1, 0) == "implausible"
    assert outcome(subject, False, -most - 1, 0) == "implausible"


def test_counts_that_cancel_in_their_sum_are_refused_one_by_one():
    subject = made.plan(SCHEMA, ps.Cohort(3, 3, 50))
    vector = np.zeros(subject.layout.size, np.int64)
    vector[:2] = 51 * 4096, -51 * 4096
    with pytest.raises(ps.AggregationError, match="implausible"):
        release(subject, subject.ring.encode(vector), (0, 1, 2))


@pytest.mark.parametrize("model", made.MODELS)
def test_an_honest_cohort_at_its_record_limit_is_never_refused(model):
    subject = plan(model)
    rng = seeded(5)
    held = ps.measure(SCHEMA, np.tile(VICTIM[0], (50, 1)), np.zeros(50, np.int64))
    empty = ps.measure(SCHEMA, np.zeros((0, 4)), [])
    for _ in range(20):
        ps.session.aggregate_unmasked(subject, [held, empty, empty], rng)
