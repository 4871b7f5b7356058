"""A plan that exists is a plan that holds; one that does not hold says why in one sentence."""

import dataclasses
import datetime
import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

import privstats as ps
from privstats.errors import PrivstatsError
from privstats.plan.feasibility import check_masking
from privstats.plan.settings import SETTINGS
from privstats.schema.public_values import Published
from tests.made import refused
from tests.plan.devices import sample_devices
from tests.plan.every_kind import PLANS

SCHEMA = ps.ClassSchema(classes=3, features=4, statistics="NAB", clip_norm=2.0)
COHORT = ps.Cohort(clients=6, min_survivors=5, max_records=500)
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)


def plan(**changes):
    return ps.Plan(**{"schema": SCHEMA, "cohort": COHORT, "privacy": PRIVACY, **changes})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tries = 1", "session has unknown keys 'tries'"),
        ("place = -1", "a position has a course's digest"),
        ('mu = "a"', "a position has a course's digest"),
        ("mu = -1.0", "a position has a course's digest"),
        ("spent = 1", "a position has a course's digest"),
        ('step = ""', "a position has a course's digest"),
    ],
)
def test_a_session_in_a_file_is_checked_and_is_in_no_digest(line, said):
    position = ps.release.Position("c0" * 32, "round", 1, math.inf, math.inf)
    text = plan().at(position).to_toml()
    again = ps.Plan.from_toml(text)
    assert (again.position, again, again.digest) == (position, plan(), plan().digest)
    assert plan().position is None
    key = line.partition(" ")[0]
    kept = "\n".join(each for each in text.splitlines() if not each.startswith(f"{key} = "))
    refused(ps.PlanError, said, ps.Plan.from_toml, f"{kept}\n{line}\n")


PANEL = tuple(character * 64 for character in "ab")
ROUND = ps.Newton.start(ps.ScoreSchema(4, 2.0, transform=(ps.transforms.ConstantFeature(1.0),)), COHORT, PRIVACY).first
PAIRS = {
    "schema": (plan(), plan(schema=ps.ClassSchema(3, 4, "NAB", 2.0, grid_bits=13))),
    "cohort": (plan(), plan(cohort=ps.Cohort(6, 5, 501))),
    "privacy": (plan(), plan(privacy=ps.NoPrivacy())),
    "published": (ROUND, dataclasses.replace(ROUND, published=Published("1" * 64))),
    "devices": tuple(
        plan(privacy=ps.NoPrivacy(), cohort=ps.Cohort(6, 5, 500, 1), protocol="split", panel=PANEL, **people)
        for people in ({}, {"devices": sample_devices(exact="the leader is trusted with the sum")})
    ),
}
"""For each part of a plan two plans, of which it is what differs; settings have them in their rows."""


def with_and_without_proofs() -> tuple[ps.Plan, ...]:
    return tuple(
        plan(schema=ps.ClassSchema(3, 4, "NAB", 2.0), privacy=ps.NoPrivacy(), protocol="split", panel=PANEL, **proofs)
        for proofs in ({}, {"validity": ps.plan.Validity("norm", 9)})
    )


@pytest.mark.parametrize(
    "field", [each.name for each in dataclasses.fields(ps.Plan) if each.name not in SETTINGS["aggregation"]]
)
def test_every_field_is_in_the_digest_and_in_the_file(field):
    """Parties hold a plan by its digest, and [aggregation] lists its fields: a server could change one it lacks."""
    one, other = with_and_without_proofs() if field == "validity" else PAIRS[field]
    assert getattr(one, field) != getattr(other, field)
    assert one.digest != other.digest
    assert ps.Plan.from_toml(other.to_toml()) == other


@pytest.mark.parametrize("name", PLANS)
def test_a_value_of_a_type_that_a_field_never_has_is_refused_in_a_sentence(name):
    """A field without a check accepted any value into the digest."""
    subject = PLANS[name]
    for table in (subject, subject.schema, subject.cohort, subject.privacy, subject.validity, subject.devices):
        for field in [each.name for each in dataclasses.fields(table) if each.init] if table else []:
            for value in (object(), datetime.date(2027, 1, 2), [[{}]], b"x"):
                with pytest.raises(PrivstatsError):
                    dataclasses.replace(table, **{field: value})


@given(records=st.integers(1, 10**6), bits=st.integers(8, 16), epsilon=st.sampled_from([0.1, 1.0, 10.0]))
def test_no_segment_can_wrap(records, bits, epsilon):
    """2^(bits-1) > n M + z sigma, with the tail z for a wrap probability of 2^-40 over all entries."""
    privacy = dataclasses.replace(PRIVACY, epsilon=epsilon)
    subject = plan(schema=ps.ClassSchema(3, 4, "NABD", 2.0, bits), cohort=ps.Cohort(6, 5, records), privacy=privacy)
    z = math.sqrt(2 * math.log(2 * subject.layout.size * 2**40))
    for room in subject.headroom:
        segment = room.segment
        noise = subject.noise.sigma[segment.statistic] * segment.scale * segment.noise_factor
        held = subject.limits.every if segment.name == "N" else subject.limits.admitted
        assert 2 ** (room.bits - 1) > held * segment.bound + z * noise
        assert room.factor > 1


@given(records=st.integers(1, 2**20 - 1), bits=st.integers(2, 20), schema=st.sampled_from(["classes", "ridge"]))
def test_the_width_is_enough_to_the_last_integer_where_floats_round(records, bits, schema):
    """Exactly n M fits, also where n M is a power of two that log2 in float64 rounds down."""
    measured = (
        ps.ClassSchema(3, 4, "NA", 2.0, bits)
        if schema == "classes"
        else ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0, grid_bits=bits)
    )
    subject = plan(schema=measured, cohort=ps.Cohort(2, 2, records), privacy=ps.NoPrivacy())
    for room in subject.headroom:
        held = subject.limits.every if room.segment.name in ("N", "q") else subject.limits.admitted
        assert held * room.segment.bound <= 2 ** (room.bits - 1) - 1
        assert held * room.segment.bound > 2 ** (room.bits - 2) - 1


def test_what_passes_the_count_check_fits_the_ring():
    """The noise can hide as many records as it can feign: twice its reach lies between the limit and the ring."""
    limits = plan(privacy=dataclasses.replace(PRIVACY, epsilon=1.0), cohort=ps.Cohort(50, 40, 100)).limits
    assert limits.admitted - 100 == 2 * (limits.refused_above - 100) > 0
    assert plan(cohort=ps.Cohort(2, 2, 100), privacy=dataclasses.replace(PRIVACY, epsilon=0.01)).limits.admitted == 200
    assert plan(privacy=ps.NoPrivacy()).limits.refused_above == 500


def test_the_budget_prints_one_row_per_statistic_and_the_whole():
    text = str(plan().budget())
    for expected in ("N", "A", "B", "sensitivity", "headroom", "epsilon 1 at delta 1e-06", "add-remove"):
        assert expected in text


def test_the_shares_of_the_budget_add_up():
    budget = plan().budget()
    assert sum(row.share for row in budget.rows) == pytest.approx(1)
    assert sum(row.mu**2 for row in budget.rows) == pytest.approx(budget.mu**2)
    assert (budget.epsilon, [row.statistic for row in budget]) == (pytest.approx(1.0), ["N", "A", "B"])


def test_without_dp_the_budget_prints_the_membership_advantage():
    budget = plan(privacy=ps.NoPrivacy()).budget()
    assert "membership advantage" in str(budget)
    assert all(0 < row.advantage < 1 for row in budget.rows)
    assert budget.rows[1].advantage > budget.rows[0].advantage
    assert math.isinf(budget.epsilon)


def test_the_advantage_falls_with_records():
    few, many = (plan(privacy=ps.NoPrivacy(), cohort=ps.Cohort(6, 5, n)).budget() for n in (50, 50_000))
    assert few.rows[2].advantage > 10 * many.rows[2].advantage


def test_the_advantage_counts_the_records_of_a_fold_or_cell():
    folds, cells = 4, 12
    ridge = ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0, folds=folds)
    counts = ps.CountSchema((ps.Categories("month", tuple("abcdefghijkl")),), (("month",),))
    for schema, letter, separation in ((ridge, "h", 3 * folds), (counts, "T", cells)):
        expected = 2 * ndtr(math.sqrt(separation / 5_000) / 2) - 1
        rows = ps.Plan(schema=schema, cohort=ps.Cohort(6, 5, 5_000), privacy=ps.NoPrivacy()).budget().rows
        assert [row.advantage for row in rows if row.statistic == letter] == [pytest.approx(expected)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cohort": "six"}, "cohort must be a Cohort"),
        ({"privacy": None}, "privacy must be a Privacy or NoPrivacy"),
        ({"min_count": 2, "merge": {1: 9}}, "merge must map a class to another class in 0..2"),
        ({"min_count": 2, "merge": {1: 1}}, "merge must map a class to another class"),
        ({"min_count": 2, "merge": {1: 2, 2: 0}}, "itself merged"),
        ({"merge": {1: 2}}, "merge needs min_count above 0"),
        ({"schema": ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0), "min_count": 3}, "a ridge plan has none"),
        ({"schema": ps.ClassSchema(3, 4, "NAB", 2.0, 20), "cohort": ps.Cohort(6, 5, 10**9)}, "grid_bits is too fine"),
        ({"schema": ps.ClassSchema(3, 4, "NAB", 2.0, 2)}, "grid_bits"),
        (
            {"schema": ps.ClassSchema(3, 4, "NAB", 1.0, 20), "privacy": dataclasses.replace(PRIVACY, epsilon=0.03)},
            "at most 2..48 can be sampled: raise epsilon or lower grid_bits",
        ),
        ({"min_count": 501}, "min_count=501 exceeds cohort.max_records=500"),
        ({"cohort": ps.Cohort(6, 5, 2**51)}, "max_records is too large"),
    ],
)
def test_a_plan_that_cannot_hold_says_why(changes, message):
    refused(ps.PlanError, message, plan, **changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 6, 10), "min_survivors=6 exceeds"),
        ((5, 4, 10, 4), "colluders=4 must stay below"),
    ],
)
def test_a_cohort_that_contradicts_itself_is_refused(arguments, message):
    """Values out of range are refused by their rows: ``test_settings.py``."""
    refused(ps.PlanError, message, ps.Cohort, *arguments)


def test_a_course_in_place_of_a_plan_names_the_plan_beside_it(tmp_path):
    """As in ``roster make --plan course.toml``."""
    (tmp_path / "trial.toml").write_text('version = 1\n[course]\nfirst = "a"\n')
    for beside in (False, True):
        with pytest.raises(ps.PlanError, match="this is a course, not a plan") as refusal:
            ps.Plan.read(tmp_path / "trial.toml")
        assert str(refusal.value).endswith(f"; its plan is {tmp_path / 'trial.plan.toml'}") == beside
        (tmp_path / "trial.plan.toml").write_text("")


def test_thresholds_that_contradict_each_other_are_refused():
    with pytest.raises(ps.PlanError, match="min_survivors"):
        plan(cohort=ps.Cohort(clients=10, min_survivors=5, max_records=100, colluders=3))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "version must be 1"),
        ("version = 1", 'version = 2\n[course]\nfirst = "a"\n', "this is a course, not a plan"),
        ("version = 1", "", "add the line: version = 1"),
        ('task = "classes"', "", "schema lacks task"),
        ("clip_norm = 2.0", "clipnorm = 2.0", "did you mean clip_norm"),
        ("[cohort]", "[cohort", "not valid TOML"),
        ("clients = 6", "klients = 6", "cohort has unknown keys 'klients'"),
        ("clients = 6", 'clients = 6\n"\\u001b[31m" = 1', r"unknown keys '\\x1b\[31m'"),
        ("clients = 6", "clients = 1" + "0" * 17, "'clients' holds a number beyond 2..53"),
        ("clients = 6", "clients = 1" + "0" * 400, "an integer has more than 64 bits"),
        ("clients = 6", "clients = 1" + "0" * 5000, "nests too deeply or holds an endless number"),
        ("clients = 6", "clients = " + "[" * 20_000, "nests too deeply|not valid TOML"),
        ("clients = 6", "clients = 6 #" + "-" * (1 << 20), "more than 1048576 characters"),
        ("epsilon = 1.0", "epsilon = 1.0\nshares = 3", "shares must be a table"),
        ("clients = 6", "", "cohort lacks clients"),
        ("epsilon = 1.0", "", "privacy lacks epsilon"),
        ("epsilon = 1.0", "epsilon = 0.0", "epsilon"),
        ("epsilon = 1.0", "epsilon = nan", "epsilon"),
        ("delta = 1e-06", "delta = 1.0", "delta"),
        ('adjacency = "add-remove"', 'adjacency = "neighbours"', "adjacency"),
        ('model = "central"', 'model = "none"', "means no differential privacy; delete 'unit', 'adjacency'"),
        ('task = "classes"', 'task = "clusters"', "schema.task must be one of"),
        ("[aggregation]", "[agregation]", "the plan has unknown keys 'agregation'"),
        ("[aggregation]", "[aggregation]\nminimum = 3", "aggregation has unknown keys 'minimum'"),
        ("[aggregation]", "[aggregation]\nmerge = 3", "aggregation.merge must be a table"),
        ("[aggregation]", "[aggregation]\nmerge = {1 = 0.0}", "aggregation.merge must be a table"),
        ("[aggregation]", "[aggregation]\nmerge = {1 = 0, 01 = 2}", "aggregation.merge must be a table"),
        ("[aggregation]", "[aggregation]\nmerge = {one = 0}", "aggregation.merge must be a table"),
        ("transform = []", "transform = [3]", "schema.transform must be a list of tables"),
        ("transform = []", 'transform = [{kind = "magic"}]', "transform kind 'magic' is unknown"),
        ("transform = []", 'transform = [{kind = "unit-norm", x = 1}]', "unknown keys"),
        ("transform = []", 'transform = [{kind = "constant-feature"}]', "'constant-feature' lacks value"),
    ],
)
def test_a_plan_file_with_a_fault_names_the_place(old, new, message):
    text = plan().to_toml()
    assert old in text
    refused(ps.PrivstatsError, message, ps.Plan.from_toml, text.replace(old, new))


@pytest.mark.parametrize(
    ("text", "message"), [("", "the plan is empty"), ("plan.toml", "looks like a path, so use Plan.read")]
)
def test_what_is_no_plan_at_all_is_told(text, message):
    refused(ps.PlanError, message, ps.Plan.from_toml, text)


def test_a_plan_file_without_a_table_is_refused():
    text = plan().to_toml()
    refused(ps.PlanError, r"lacks the table \[privacy\]", ps.Plan.from_toml, text[: text.index("[privacy]")])


def test_aggregation_that_is_no_table_is_refused():
    text = plan().to_toml()
    with pytest.raises(ps.PlanError, match="aggregation must be a table"):
        ps.Plan.from_toml("aggregation = 3\n" + text[: text.index("[aggregation]")])


def large(graph="auto", delta=1e-5, **changes):
    cohort = ps.Cohort(1000, 900, 10_000, colluders=100)
    return plan(cohort=cohort, graph=graph, **{"privacy": dataclasses.replace(PRIVACY, delta=delta), **changes})


def test_the_privacy_failures_of_masking_are_part_of_the_promised_delta():
    """A plan for 1,000 clients printed a lying-server bound of 2^-14 beside delta 1e-5 and said that it holds."""
    subject = large()
    bounds = subject.masking.bounds
    failure = sum(2.0**bound for bound in (bounds.connectivity, bounds.privacy, bounds.lying_server))
    assert 0 < failure <= 3 * 2.0**-40
    assert subject.masking.failure == pytest.approx(failure)
    assert subject.budget().delta == 1e-5 + subject.masking.failure > 1e-5
    assert subject.noise.delta == 1e-5  # the noise stays where the plan's delta puts it
    assert "(1.7e-13 of it for the masking)" in str(subject.budget())
    assert subject.budget().masking_failure == subject.masking.failure


def test_a_complete_graph_adds_nothing_to_delta():
    assert (plan().masking.failure, plan().budget().delta) == (0.0, 1e-6)
    assert "for the masking" not in str(plan().budget())


def test_masking_that_fails_more_often_than_a_hundredth_of_delta_is_refused_with_the_remedy():
    with pytest.raises(ps.PlanError, match=r"delta / 100 = 1e-13: raise privacy.delta to at least 1.7e-11") as caught:
        large(delta=1e-11)
    assert "fewer colluders or dropouts" in str(caught.value)
    assert large(delta=1.7e-11).budget().delta == pytest.approx(1.7e-11, rel=0.01)


def test_without_dp_masking_may_fail_with_three_bounds_of_two_to_the_minus_forty():
    subject = large(privacy=ps.NoPrivacy())
    assert subject.masking.failure <= 2.0**-38
    assert subject.budget().delta == 1.0
    with pytest.raises(ps.PlanError, match=r"probability 4.6e-12, maximum 2\^-38: expect fewer"):
        check_masking(SimpleNamespace(failure=4.6e-12, remedy=subject.masking.remedy), None)
    check_masking(SimpleNamespace(failure=2.0**-38), None)


def test_an_explicit_sparse_graph_counts_no_lying_server_and_says_so():
    subject = large("sparse")
    bounds = subject.masking.bounds
    assert bounds.lying_server > -20
    assert subject.masking.failure == pytest.approx(2.0**bounds.connectivity + 2.0**bounds.privacy)
    assert (
        " while the server follows the protocol, dropouts do not depend on the random graph, and at most "
        in subject.budget().promise
    )
    without = large("sparse", privacy=ps.NoPrivacy())
    assert (
        " while the server follows the protocol, dropouts do not depend on the random graph, and at most "
        in without.budget().promise
    )
    for robust in (large(), large("robust")):
        assert "follows the protocol" not in robust.budget().promise


def test_the_digest_does_not_tell_which_graph_auto_became():
    """Frozen before auto became robust: parties that hold the same old plan file still agree on it."""
    assert large().digest == "b3c8bd0ccb775dc113c0c3870ec265b070f688884a48b7911b59a44ad7951fec"
    assert plan().digest == "37224242d913d8d74f4d41a3b368dda6a4c787495969e0ba7cd401b16c0bb7a2"
    assert large().masking.neighbours == 146


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (ps.ClassSchema(10**9, 2, "NA", 1.0), "24,000,000,000 bytes, maximum 4,294,967,296: A alone"),
        (ps.ClassSchema(2, 10**7, "NAB", 1.0), "B.off alone has 49,999,995,000,000 entries; .* or omit B and S"),
        (ps.RidgeSchema(10**7, clip_norm=1.0, target_bound=1.0), r"G.off alone .*features \(project first\) or folds"),
    ],
)
def test_a_plan_that_no_machine_can_run_is_not_built(schema, words):
    refused(ps.PlanError, words, plan, schema=schema)
