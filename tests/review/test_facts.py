"""What a reviewer is told follows from the plan and moves with it."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.printable import at_most
from privstats.secagg.masking_facts import masking_facts
from tests import made


def plan(model="distributed", **changes):
    cohort = ps.Cohort(20, 16, 1_000, colluders=2)
    usual = {"schema": ps.ClassSchema(3, 4, "NAB", clip_norm=1.0), "cohort": cohort, "privacy": made.promise(model)}
    return made.plan(**{**usual, **changes})


def told(subject, word):
    return next((line for line in ps.review.facts(subject) if word in line), None)


def test_the_thresholds_are_told():
    line = told(plan(), "may help the server")
    assert "everyone masks with everyone" in line
    assert "12 others together hold a client's keys" in line
    assert "a client opens its masks for a list of survivors that 12 clients signed" in line
    assert "4 clients may vanish and 2 may help the server" in line


def test_open_cut_points_are_told_with_the_course_that_finds_them():
    columns = (ps.Numeric("age"), ps.Numeric("dose", (1.0, 2.0)))
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(ps.Cells(columns),))
    line = told(plan(schema=schema), "cut points")
    assert line.startswith("the cut points of age are open, so this plan is not run alone: `privstats course init")
    closed = ps.Cells(columns).with_edges({"age": (40.0,)})
    assert told(plan(schema=replace(schema, transform=(closed,))), "cut points") is None


_ROUNDS = ps.ScoreSchema(2, 2.0, transform=(ps.transforms.ConstantFeature(1.0),))
_COUNTS = replace(_ROUNDS, family="poisson", target_bound=8.0)
_PERSONS = ps.HazardSchema(
    2,
    2.0,
    bins=ps.Bins("months", (0, 6, 12)),
    event="died",
    feature_names=("arm",),
    transform=(ps.transforms.ConstantFeature(1.0),),
)


def _assumed(kind, schema):
    subject = kind.full_plan(schema=schema, cohort=ps.Cohort(2, 2, 50_000), privacy=made.promise(epsilon=8.0))
    return told(subject, "intervals will assume")


@pytest.mark.parametrize(
    ("kind", "schema", "words"),
    [
        (ps.Newton, _COUNTS, "that the variance of counts with equal columns equals their mean"),
        (ps.Newton, _ROUNDS, "that log odds are linear in the columns"),
        (ps.Hazard, _PERSONS, "that hazards are proportional given the columns"),
    ],
    ids=["poisson", "logistic", "hazard"],
)
def test_what_standard_errors_assume_is_named_before_the_budget_is_spent(kind, schema, words):
    line = _assumed(kind, replace(schema, errors="model"))
    assert words in line
    assert 'set errors = "robust"' in line
    assert _assumed(kind, schema) is None


def test_rounds_of_a_propensity_name_no_standard_errors():
    assert _assumed(ps.Newton, ps.ScoreSchema(6, 1.0, missing="outcome")) is None
    assert _assumed(ps.Newton, ps.ScoreSchema(4, 1.0, transform=(ps.transforms.ByArm(1),))) is None


@pytest.mark.ci
def test_a_sparse_graph_tells_what_can_fail():
    subject = plan(cohort=ps.Cohort(1_000, 900, 3_000, colluders=100))
    line = told(subject, "over the random graph")
    powers = [int(power) for power in re.findall(r"2\^(-\d+)", line)]
    bounds = subject.masking.bounds
    assert powers == [math.ceil(b) for b in (bounds.connectivity, bounds.privacy, bounds.liveness, bounds.lying_server)]
    assert max(powers[0], powers[1], powers[3]) <= -40
    assert powers[2] <= -30
    assert told(subject, "follows the protocol") is told(subject, "masking trusts the") is None
    assert "enough colluders sign two lists of survivors: never" in line
    assert f"masks with {subject.masking.neighbours} others" in ps.review.facts(subject)[0]


@given(st.integers(300, 1000), st.integers(0, 60), st.integers(10, 60), st.data())
def test_no_power_of_two_is_stated_below_its_bound(clients: int, colluders: int, half: int, data: st.DataObject):
    """2^-42.72 was stated as at most 2^-43."""
    threshold = data.draw(st.integers(half + 1, 2 * half - 2))
    ring = ps.encoding.Ring(((4, 16),))
    masking = ps.secagg.Parameters(clients, threshold, clients * 9 // 10, colluders, 2 * half, ring, bytes(32))
    lines = [each for each in masking_facts(masking) if "over the random graph" in each]
    stated = re.findall(r": (no bound|never|2\^-\d+)", "".join(lines)) or ["never"] * len(vars(masking.bounds))
    for words, bound in zip(stated, vars(masking.bounds).values(), strict=True):
        power = {"no bound": math.inf, "never": -math.inf}.get(words)
        assert bound <= (float(words.removeprefix("2^")) if power is None else power)


def test_an_explicit_sparse_graph_is_told_to_hold_against_a_server_that_follows_the_protocol():
    subject = plan(cohort=ps.Cohort(300, 270, 3_000, colluders=30), graph="sparse")
    assert (
        "while the server follows the protocol, dropouts do not depend on the random graph, and"
        in subject.budget().promise
    )
    assert 'graph = "robust" bounds that' in told(subject, "against a server that follows the protocol only")
    assert told(subject, "masking trusts").startswith("masking trusts the server to follow the protocol (graph = ")


def test_a_bound_that_bounds_nothing_is_told_as_such():
    assert "the honest clients: no bound" in told(plan(cohort=ps.Cohort(60, 50, 3_000, 5), graph="sparse"), "splits")


def test_fewer_dropouts_leave_a_smaller_epsilon_and_the_fewest_survivors_the_promised_one():
    line = told(plan(), "epsilon after dropouts")
    epsilons = [float(value) for value in re.findall(r"([\d.]+) with", line)]
    assert (epsilons, epsilons[-1]) == (sorted(epsilons), pytest.approx(1.0, abs=1e-3))
    mu = plan().budget().mu * math.sqrt(14 / 18)
    assert epsilons[0] == pytest.approx(ps.dp.gaussian_epsilon(mu, 1e-5), abs=1e-3)
    assert line.endswith("1 with 4 gone, no release with 5 gone")
    assert "of 20 clients" in line


def test_where_the_longer_list_decides_the_drop_outs_are_counted_to_it():
    """A random graph needs more clients on a list than in a sum, and theirs alone is the noise."""
    subject = plan(cohort=ps.Cohort(300, 260, 3_000, colluders=5))
    most = 300 - subject.masking.min_listed
    assert 0 < most < 300 - 260
    line = told(subject, "epsilon after dropouts")
    assert line.endswith(f"1 with {most} gone, no release with {most + 1} gone")
    mu = subject.budget().mu * math.sqrt((260 - 5) / (260 - 5 + most))
    assert f"{ps.dp.gaussian_epsilon(mu, 1e-5):.4g} with none gone" in line
    assert told(subject, f"room for {most} of 300 clients to vanish") is not None


def test_a_client_that_sees_the_release_is_told_of_unless_colluders_cover_it():
    assert told(plan(), "a client that sees the release") is None
    line = told(plan(cohort=ps.Cohort(20, 16, 1_000)), "a client that sees the release")
    mu = plan().budget().mu * math.sqrt(16 / 15)
    assert f"epsilon {at_most(ps.dp.gaussian_epsilon(mu, 1e-5))}" in line


@pytest.mark.parametrize("model", ["central", "local"])
def test_dropouts_change_nothing_in_the_other_models(model):
    assert told(plan(model), "dropouts") is None


def test_a_minimum_count_tells_where_it_is_in_doubt():
    line = told(plan(min_count=200), "records stays")
    above, below = map(int, re.findall(r"at least (\d+) records .* fewer than (\d+)", line)[0])
    assert 100 < below < 200 < above < 300
    assert told(plan(min_count=200), "50 records per dimension")


def test_a_minimum_count_below_the_noise_is_told_to_be_of_no_use():
    assert "noise may keep any smaller one" in told(plan(min_count=20), "records stays")


def test_without_noise_there_is_no_doubt():
    line = told(plan(min_count=50, privacy=ps.NoPrivacy()), "records stays")
    assert line == "a class of at least 50 records stays and one of fewer than 50 is removed"


def test_a_plan_without_anything_special_tells_only_the_thresholds_and_whom_to_trust():
    named = plan("central", key_agreement="mlkem768-x25519")
    thresholds, server, poisoner, recorded, trust = ps.review.facts(named)
    assert "together hold a client's keys" in thresholds
    assert server.startswith("masking trusts no server;")
    assert poisoner.startswith("one client that sends false data")
    assert recorded.startswith("keys are agreed on by X25519 and ML-KEM-768 together")
    assert trust.startswith("trust in the central model: the server")


def test_without_a_promise_there_is_nobody_to_trust_for_it():
    assert told(plan(privacy=ps.NoPrivacy()), "trust in") is None


def test_promises_that_say_little_are_marked():
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=50, delta=0.01)
    first, second, *_ = ps.review.facts(plan(privacy=privacy))
    assert first.startswith("WARNING: delta 0.01 lets 10 of 1000 records be exposed outright; choose less than")
    assert second.startswith("WARNING: epsilon 50 promises almost nothing")


def test_two_clients_show_only_dropouts_that_lose_somebody():
    line = told(plan(cohort=ps.Cohort(2, 2, 1_000)), "epsilon after dropouts")
    assert line.count(" with ") == 2
    assert line.endswith("none gone, no release with 1 gone")


def test_what_cannot_fail_is_told_to_be_never():
    line = told(plan(cohort=ps.Cohort(300, 290, 3_000), graph="sparse"), "over the random graph")
    assert "colluders reconstruct both secrets of a client: never" in line


def test_outcomes_share_the_budget_and_subgroups_divide_the_records():
    schema = ps.EffectSchema.of(
        {"age": (20, 90), "sex": (0, 1)},
        treatment="arm",
        outcome={"relapse": (0, 1), "death": (0, 1)},
        probability=0.5,
        subgroups=(ps.Bins("age", (20, 40, 60, 90)), ps.Categories("sex", (0, 1))),
    )
    cohort = ps.Cohort(20, 16, 1_000, colluders=2)
    whole = ps.Effect.full_plan(schema=schema, cohort=cohort, privacy=made.promise("distributed"))
    assert "each has about sqrt(2) times the noise of one" in told(
        whole, "the outcomes relapse, death share the budget"
    )
    assert "all together sqrt(6) times as much" in told(whole, "divided into 6 subgroups by age, sex")
    one = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
    alone = ps.Effect.full_plan(schema=one, cohort=cohort, privacy=made.promise("distributed"))
    assert told(alone, "share the budget") is None
    assert told(alone, "divided") is None
    many = ps.Cohort(60, 50, 1_000, colluders=2)
    grouped = ps.Effect.full_plan(schema=replace(one, groups=6), cohort=many, privacy=made.promise("distributed"))
    assert told(grouped, "subgroups by") is None, "groups of sites divide no records of one"
    sigma, single = whole.noise.sigma, alone.noise.sigma
    assert sigma["e"] / single["e"] == pytest.approx(math.sqrt(2), rel=0.01)


def test_columns_of_0_and_1_without_declared_texts_are_named_when_the_plan_is_made():
    """Their texts were excluded when records were read, and nothing said so before."""
    cohort = ps.Cohort(20, 16, 1_000, colluders=2)

    def said(treatment, outcome):
        schema = ps.EffectSchema.of({"age": (20, 90)}, treatment=treatment, outcome=outcome, probability=0.5)
        return told(
            ps.Effect.full_plan(schema=schema, cohort=cohort, privacy=made.promise("distributed")), "hold numbers"
        )

    assert said("arm", {"died": (0, 1)}).startswith("arm and died must hold")
    assert "as in arm=no/yes" in said("arm", {"died": (0, 1)})
    assert said({"arm": ("a", "b")}, {"died": (0, 1)}).startswith("died must hold")
    assert said("arm", {"days": (0, 30)}).startswith("arm must hold")
    assert said({"arm": ("a", "b")}, {"died": ("no", "yes")}) is None
    hazard = ps.HazardSchema(
        2, 2.0, bins=ps.Bins("months", (0, 6, 12)), event="died", feature_names=("arm",),
        transform=(ps.transforms.ConstantFeature(1.0),),
    )  # fmt: skip
    assert hazard.column_facts[0].startswith("died must hold numbers")
    texts = ps.transforms.Levels((), (ps.Categories("died", ("no", "yes")),))
    assert not replace(hazard, transform=(texts, *hazard.transform)).column_facts


def test_a_plan_states_before_it_is_paid_for_what_gaps_do_to_its_table():
    columns = (ps.Truth("cause"), ps.Truth("drug"))

    def facts(columns, missing, kind=ps.RidgeSchema, **more):
        transform = (ps.Cells(columns, missing=missing), ps.transforms.ConstantFeature(1.0))
        return kind(clip_norm=2**0.5, transform=transform, **more).column_facts

    (complete,) = facts(columns, "left out", target_bound=5.0)
    assert complete.endswith("estimates are of complete records")
    assert facts(columns[:1], "left out", target_bound=5.0) == (complete,)
    (cells,) = facts(columns, None, target_bound=5.0)
    assert cells.startswith("gaps in declared columns count as cells of their own")
    assert facts(columns, None, ps.ScoreSchema) == (f"WARNING: {cells}",), "rounds end in a table and in no prediction"
    assert not facts(columns[:1], None, target_bound=5.0), "gaps of the only column bias no other"
    assert not ps.RidgeSchema(2, clip_norm=1.0, target_bound=5.0).column_facts
    assert complete in ps.review.facts(
        plan(
            schema=ps.RidgeSchema(
                clip_norm=2**0.5,
                target_bound=5.0,
                transform=(ps.Cells(columns, missing="left out"), ps.transforms.ConstantFeature(1.0)),
            )
        )
    )
