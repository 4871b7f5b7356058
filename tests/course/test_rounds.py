"""Refinement rounds: one budget, divided before the first node; every later plan follows from what was released."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import Course, history, iter_rounds, verify_next
from privstats.course.read_recipe import recipe_of
from privstats.course.recipes import SoftmaxRounds, recipe_for, total_mu
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made
from tests.course.cases import HELPERS, RIDGE, SOFTMAX, C, D, N, plan_of, promise, rounds, shards
from tests.made import refused
from threat_models.audits.target import target_of


@pytest.mark.parametrize("schema", [SOFTMAX, RIDGE])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.3, 4.0, 30.0])
def test_the_nodes_of_a_course_spend_what_was_promised_and_no_more(schema: Any, adjacency: str, epsilon: float) -> None:
    whole = plan_of(schema, adjacency=adjacency, epsilon=epsilon)
    course = ps.Rounds.within(whole, 3, retries=1)
    assert isinstance(course, Course)
    assert whole.noise.mu * (1 - 1e-6) < course.mu <= whole.noise.mu
    assert course.most == len(course.priced) == 5
    assert course.epsilon(1e-5) == pytest.approx(epsilon, rel=1e-6)
    assert math.sqrt(sum(plan.noise.mu**2 for plan in course.priced)) == pytest.approx(course.mu)  # type: ignore[union-attr]


@pytest.mark.parametrize("schema", [SOFTMAX, RIDGE])
def test_the_first_plan_alone_says_what_the_whole_costs(schema: Any) -> None:
    """Given the first node, the recipe's share of it tells the whole; the same course as when the whole is divided."""
    inside = rounds(schema, epsilon=2.0)
    alone = ps.Rounds(inside.first, 2)
    assert alone.mu == pytest.approx(inside.mu, rel=1e-6)
    assert alone.recipe.mu == pytest.approx(inside.recipe.mu, rel=1e-6)
    assert alone.first is inside.first
    assert alone.next([]) == inside.first


@pytest.mark.parametrize("between", [0.02, 0.3, 0.5, 0.7, 0.98])
def test_of_two_courses_with_one_first_plan_the_cheaper_is_taken(between: float) -> None:
    """Where the share jumps, a first plan fits two courses: without a word it is the one that spends less."""
    constants = [SoftmaxRecipe(C, D, N, mu, 4) for mu in (0.999 * 10 * C * D**0.5 / N, 1.001 * 10 * C * D**0.5 / N)]
    assert [each.release_share for each in constants] == [0.2, 0.15]
    own = constants[1].release_mu + between * (constants[0].release_mu - constants[1].release_mu)
    privacy = promise(epsilon=ps.dp.gaussian_epsilon(own, 1e-5))
    plan = made.plan(SOFTMAX, plan_of().cohort, privacy)
    assert total_mu(plan, N, 4) == pytest.approx(own / math.sqrt(0.2), rel=1e-6)


@pytest.mark.parametrize("schema", [SOFTMAX, RIDGE])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0, 30.0])
def test_the_whole_that_a_first_plan_speaks_of_gives_it_its_share(schema: Any, epsilon: float) -> None:
    plan = plan_of(schema, epsilon=epsilon)
    mu = total_mu(plan, N, 4)
    share = recipe_for(plan, N, mu, 4).constants.release_share
    assert mu * math.sqrt(share) == pytest.approx(plan.noise.mu, rel=1e-6)


@pytest.mark.ci
@pytest.mark.parametrize(("certainty", "many"), [(5.7, 4), (10.8, 24), (17.3, 4), (20.3, 4)])
def test_of_a_first_plan_between_two_recipes_rounds_and_releases_say_the_same(certainty: float, many: int) -> None:
    """Too much for a first release of 1/64, too little for one of .08: no recipe gives it, and n mu is 40."""
    privacy = promise(epsilon=ps.dp.gaussian_epsilon(certainty / N, 1e-5))
    course = ps.Rounds(made.plan(RIDGE, plan_of().cohort, privacy), many, expected_records=N)
    assert course.recipe.mu == pytest.approx(40 / N, rel=1e-7)
    assert course.mu == pytest.approx(course.recipe.mu, rel=1e-6)
    releases = [release for release in ps.simulate(course, shards(RIDGE))[:3] if release is not None]
    assert (recipe_of(releases).rounds, recipe_of(releases).mu) == (many, course.recipe.mu)


@pytest.mark.parametrize("schema", [SOFTMAX, RIDGE])
@pytest.mark.parametrize(
    "terms",
    [
        {"model": "central"},
        {"model": "distributed", "adjacency": "replace-one"},
        {"model": "local", "epsilon": 20.0},
        {"model": "distributed", "unit": "client", "max_records_per_client": 150, "client_clip": 20.0, "epsilon": 90.0},
        {"model": "distributed", "protocol": "split", "panel": HELPERS},
    ],
    ids=lambda terms: f"{terms['model']}-{terms.get('unit', terms.get('protocol', 'record'))}",
)
def test_every_model_unit_and_protocol_runs_a_course(schema: Any, terms: dict[str, Any]) -> None:
    course = rounds(schema, **terms)
    gone = course.first.masking.upload_step
    releases = ps.simulate(course, shards(schema), dropouts=[{gone: {0}}, {gone: {3}}], rng=seeded(1))
    assert [release.survivors for release in releases] == [(1, 2, 3, 4), (0, 1, 2, 4), (0, 1, 2, 3, 4)]
    assert [release.plan.privacy.unit for release in releases] == [terms.get("unit", "record")] * 3
    head = (ps.heads.RefinedSoftmax if schema is SOFTMAX else ps.heads.RefinedRidge)().fit_releases(releases)
    assert head.rounds_ == 2


def test_a_recipe_that_is_asked_round_by_round_says_what_it_says_at_once() -> None:
    """It remembers what followed from releases that it has seen, and takes no other releases for those."""
    course, others = rounds(RIDGE, 3, epsilon=2.0), ps.simulate(rounds(RIDGE, 3), shards(RIDGE), rng=seeded(2))
    releases = ps.simulate(course, shards(RIDGE), rng=seeded(1))
    step, whole = course.recipe, rounds(RIDGE, 3, epsilon=2.0).recipe
    for seen in (releases[:1], releases[:3], [releases[0], others[1]], releases, others, releases[:2]):
        again = replace(whole, mu=whole.mu)  # which has seen nothing
        (_, *states), (_, *fresh) = step.states(seen)[1], again.states(seen)[1]
        assert len(states) == len(seen) - 1
        for one, two in zip(states, fresh, strict=True):
            np.testing.assert_array_equal(one.weights, two.weights)


def test_a_part_of_a_course_is_read_by_the_map_that_the_whole_published() -> None:
    """How far rows are shortened follows from the noise of a round, of which there may be fewer so far, or retried."""
    course = rounds(RIDGE, 12, epsilon=1.0, retries=2)
    releases = ps.simulate(course, shards(RIDGE), rng=seeded(1))
    for seen in (releases[:2], releases[:5], releases):
        own, read = course.recipe.states(seen)[0], recipe_of(seen).states(seen)[0]
        np.testing.assert_array_equal(read.matrix, own.matrix)
        assert read.mean_length < 1


@pytest.mark.parametrize(("schema", "epsilon", "T"), [(SOFTMAX, 1.0, 4), (SOFTMAX, 4.0, 6), (RIDGE, 4.0, 4)])
def test_where_nobody_says_how_many_rounds_the_budget_does(schema: Any, epsilon: float, T: int) -> None:
    assert ps.Rounds.within(plan_of(schema, epsilon=epsilon)).rounds == T
    assert ps.Rounds.within(plan_of(schema, epsilon=epsilon), 3).rounds == 3


CELLS = ps.Cells((ps.Numeric("age", (40, 65)), ps.Truth("smoker")), signs=2)


@pytest.mark.parametrize(
    ("certainty", "records", "clip"),
    [
        (9, 164, 0.3),
        (14, 256, 0.5),
        (40, 731, 0.7),
        (150, 2741, 1.0),
    ],
)
def test_residuals_of_cells_are_cut_less_the_clearer_they_are_and_a_written_course_keeps_its_cut(
    certainty: float, records: int, clip: float, tmp_path: Path
) -> None:
    whole = plan_of(ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,)), epsilon=1.0)
    whole = replace(whole, cohort=ps.Cohort(2, 2, 10_000))
    course = ps.Rounds.within(whole, expected_records=records)
    assert isinstance(course.recipe, SoftmaxRounds)
    assert course.recipe.constants.signal == pytest.approx(certainty, rel=0.01)
    assert course.clip == course.recipe.schema.residual_norm == clip
    noise = course.template.noise
    assert noise is not None
    assert noise.sigma["g"] == pytest.approx(clip / math.sqrt(0.99) / noise.mu)
    old = ps.Rounds(course.first, course.rounds, records, release_share=course.release_share)

    assert (course.digest == old.digest) is (clip == 0.3)
    ps.course.write(tmp_path / "study.toml", course)
    assert ps.course.read(tmp_path / "study.toml").digest == course.digest
    assert ("clip" in (tmp_path / "study.toml").read_text()) is (clip != 0.3)
    rng = np.random.default_rng(0)
    table = {"age": rng.integers(20, 90, records).tolist(), "smoker": rng.integers(0, 2, records).tolist()}
    sick = (np.array(table["age"]) > 50).astype(int)
    for each in (course, old):
        releases = [part for part in ps.private_releases(each, table, sick, ledger="uncharged") if part]
        recipe = recipe_of(releases)
        assert isinstance(recipe, SoftmaxRounds)
        assert recipe.clip == each.clip  # from the releases themselves


@pytest.mark.parametrize(
    ("classes", "records", "clip"), [(2, 300, 0.3), (2, 1_500, 0.7), (2, 20_000, 1.0), (3, 20_000, 0.3)]
)
def test_two_classes_of_any_rows_follow_the_rule_of_cells_and_more_classes_do_not(
    classes: int, records: int, clip: float
) -> None:
    whole = plan_of(
        ps.ClassSchema(classes, 16, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),)), epsilon=1.0
    )
    whole = replace(whole, cohort=ps.Cohort(2, 2, 20_000))
    course = ps.Rounds.within(whole, expected_records=records)
    old = ps.Rounds(course.first, course.rounds, records, release_share=course.release_share)
    assert (course.clip, old.clip) == (clip, 0.3)
    assert (course.digest == old.digest) is (clip == 0.3)
    assert course.mu == old.mu  # at no price


@pytest.mark.parametrize(
    ("first", "given"), [(SOFTMAX, {"clip": 0.4}), (SOFTMAX, {"clip": math.nan}), (RIDGE, {"clip": 0.5})]
)
def test_a_clip_that_no_rule_gives_is_refused(first: Any, given: dict[str, Any]) -> None:
    with pytest.raises(ps.PlanError, match="clip must be one of 0.3, 0.5, 0.7, 1.0"):
        ps.Rounds(plan_of(first, epsilon=1.0), expected_records=N, **given)


@pytest.mark.parametrize(
    ("records", "epsilon", "alike"), [(N, 0.01, True), (50, 0.1, True), (N, 0.1, False), (N, 8.0, False)]
)
def test_a_softmax_kept_its_recipe_where_noise_hides_how_classes_and_eigenvalues_differ(records, epsilon, alike):
    course = rounds(epsilon=epsilon, expected_records=records)
    constants = course.recipe.constants
    assert isinstance(constants, SoftmaxRecipe)
    assert (constants.least_curvature == constants.floor == 1) is alike
    whitening, states = course.recipe.states(ps.simulate(course, shards(), rng=seeded(1)))
    assert whitening.floor == pytest.approx(constants.floor, rel=0.2)
    assert {state.variance.ndim for state in states[1:]} == {1 if alike else 2}


@pytest.mark.parametrize(("records", "count"), [(N, 4), (N, 24), (12, 4), (12, 24)])
def test_a_regression_of_few_rounds_and_no_fixed_schedule_kept_its_recipe(records, count) -> None:
    course = rounds(RIDGE, count, expected_records=records)
    assert course.recipe.constants.descends is (records == 12)  # type: ignore[attr-defined]


def test_noise_of_a_round_is_the_papers() -> None:
    """sigma_G = c / sqrt(.99 mu_t^2), sigma_kappa = 1 / sqrt(.01 mu_t^2); replace-one twice the former at the most."""
    course = rounds(rounds=4)
    noise = course.template.noise
    assert noise.sigma["g"] == pytest.approx(0.3 / math.sqrt(0.99) / noise.mu)
    assert noise.sigma["k"] == pytest.approx(1 / math.sqrt(0.01) / noise.mu)
    assert 4 * noise.mu**2 == pytest.approx(course.mu**2 - course.first.noise.mu**2)
    other = rounds(rounds=4, adjacency="replace-one").template.noise
    assert other.sigma["g"] == pytest.approx(math.sqrt(4 * 0.99 + 0.01) * 0.3 / math.sqrt(0.99) / other.mu)


def test_a_round_without_a_sum_changes_nothing_but_the_count() -> None:
    course = rounds(rounds=2)
    step = course.first.masking.upload_step
    releases = ps.simulate(course, shards(), dropouts=[{}, {step: {0, 1}}])
    assert [release is None for release in releases] == [False, True, False]
    kept = [release for release in releases if release]
    values = kept[1].plan.published.read()  # at the weights that the lost round had
    lost = course.next(releases[:1])
    assert dict(values) == dict(lost.published.read())  # type: ignore[union-attr]
    assert kept[1].plan.digest != lost.digest  # type: ignore[union-attr]  # of another history
    assert ps.heads.RefinedSoftmax().fit_releases(releases).rounds_ == 1


def test_a_budgeted_retry_makes_up_for_a_lost_round_and_no_more() -> None:
    course = rounds(rounds=2, retries=1)
    step = course.first.masking.upload_step
    lost = [{}, {step: {0, 1}}, {}, {}]
    assert [each is None for each in ps.simulate(course, shards(), dropouts=lost)] == [False, True, False, False]
    assert [each is None for each in ps.simulate(course, shards())] == [False, False, False]
    twice = [{}, {step: {0, 1}}, {step: {0, 1}}, {}]
    assert [each is None for each in ps.simulate(course, shards(), dropouts=twice)] == [False, True, True, False]


def test_without_its_first_release_a_course_ends() -> None:
    course = rounds()
    assert ps.simulate(course, shards(), dropouts=[{course.first.masking.upload_step: {0, 1}}]) == [None]


def test_rounds_refine_what_the_class_release_says() -> None:
    """On easy records: the last weights are better than the first, and near those of exact sums."""
    course, data = rounds(rounds=4, epsilon=2.0), shards()
    X, y = (np.concatenate([shard[i] for shard in data]) for i in (0, 1))
    exact = ps.heads.RefinedSoftmax().fit(X, y).score(X, y)
    scores = np.array(
        [
            [ps.heads.RefinedSoftmax().fit_releases(releases[:k]).score(X, y) for k in (1, 5)]
            for releases in (ps.simulate(course, data, rng=seeded(seed)) for seed in range(4))
        ]
    )
    assert exact - 0.03 < scores[:, 1].mean()


def test_rows_that_have_norm_one_already_need_no_transform() -> None:
    unit = [(X / np.linalg.norm(X, axis=1, keepdims=True), y) for X, y in shards()]
    plain = ps.simulate(rounds(replace(SOFTMAX, transform=())), unit, rng=seeded(9))
    turned = ps.simulate(rounds(), shards(), rng=seeded(9))
    for one, other in zip(plain, turned, strict=True):  # the same noise, and records that differ by a rounding
        assert np.abs(one.vector - other.vector).max() <= N * 4096


def test_recipes_are_read_off_the_releases_again() -> None:
    course = rounds(expected_records=500)
    releases = ps.simulate(course, shards())
    recipe = recipe_of(releases)
    assert (recipe.records, recipe.mu) == (500, course.recipe.mu)
    assert isinstance(recipe, SoftmaxRounds)
    assert recipe_of(releases[:1]).records == N  # nothing says better
    other = ps.simulate(rounds(expected_records=400), shards())
    refused(ps.ReleaseError, "of its course", recipe_of, [*releases[:2], other[1]])
    refused(ps.ReleaseError, "of its course", recipe_of, [releases[0], releases[0]])
    refused(ps.ReleaseError, "GradientSchema", recipe_of, releases[1:])


def test_releases_of_another_course_lead_nowhere() -> None:
    course, other = rounds(), rounds(epsilon=4.1)
    releases = ps.simulate(other, shards())
    for wrong in (releases[:1], [ps.simulate(course, shards())[0], releases[1]]):
        refused(ps.PlanError, "not of this course", course.next, wrong)


def test_digests_tell_courses_apart() -> None:
    plan = rounds().first
    courses = [
        ps.Rounds(plan),
        ps.Rounds(plan, 3),
        ps.Rounds(plan, expected_records=9_999),
        ps.Rounds(plan, retries=1),
        ps.Rounds(plan, release_share=0.3),
    ]
    assert len({course.digest for course in courses}) == 5
    assert ps.Rounds(plan).digest == ps.Rounds(plan, 4).digest


NAB = SOFTMAX


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: ps.Rounds("plan"), "first must be a Plan"),
        (lambda: ps.Rounds(plan_of(), 0), "rounds must be"),
        (lambda: ps.Rounds(plan_of(), True), "rounds must be"),
        (lambda: ps.Rounds(plan_of(), 65), "rounds must be"),
        (lambda: ps.Rounds(plan_of(), retries=-1), "retries must be"),
        (lambda: ps.Rounds(plan_of(), expected_records=0), "expected_records must be"),
        (lambda: ps.Rounds(plan_of(), expected_records=2.5), "expected_records must be"),
        (lambda: ps.Rounds(plan_of(), release_share=0.99), "release_share must be"),
        (lambda: ps.Rounds(plan_of(), release_share=1), "release_share must be"),
        (lambda: ps.Rounds(replace(plan_of(), min_count=3)), "min_count"),
        (lambda: ps.Rounds(replace(plan_of(), privacy=ps.NoPrivacy())), "differential privacy"),
        (lambda: ps.Rounds(plan_of(replace(NAB, statistics="NA"))), "statistics='NAB'"),
        (lambda: ps.Rounds(plan_of(replace(NAB, clip_norm=2.0))), "clip_norm=1.0"),
        (lambda: ps.Rounds(plan_of(replace(RIDGE, targets=2))), "targets=1"),
        (lambda: ps.Rounds(plan_of(replace(RIDGE, folds=2))), "folds=1"),
        (lambda: ps.Rounds(plan_of(epsilon=0.001), 60), "no plan can promise"),
        (lambda: recipe_for(rounds().template, 9, 1.0, 2), "no recipe refines"),
    ],
)
def test_what_no_recipe_refines_is_refused_before_anything_is_spent(wrong: Any, said: str) -> None:
    refused(ps.PlanError, said, wrong)


# What a party makes of a plan that a server sends


@pytest.fixture(scope="module")
def released() -> tuple[ps.Rounds, list[ps.Release]]:
    course = rounds(rounds=3)
    return course, ps.simulate(course, shards(), rng=seeded(5))


def sent(release: ps.Release, **values: Values) -> ps.Plan:
    plan = release.plan
    return replace(
        plan, published=Published.of({**plan.published.read(), **values}, bytes.fromhex(plan.published.after))
    )


def test_a_party_admits_the_plan_that_follows_from_what_was_released(released: Any) -> None:
    course, releases = released
    for place in range(4):
        round_ = verify_next(course, releases[place].plan, releases[:place])
        assert (round_.place, round_.plan, round_.after) == (place, releases[place].plan, history(releases[:place]))


def test_a_party_admits_the_last_digits_of_another_machine(released: Any) -> None:
    """Eigenvectors that another BLAS gives: of other signs, and other in the last digits."""
    course, releases = released
    W = releases[2].plan.published.read()["W"]
    moved = Values(W.integers + np.sign(W.integers), W.exponent)
    assert verify_next(course, sent(releases[2], W=moved), releases[:2]).place == 2


def test_a_server_that_sends_another_map_or_other_weights_is_refused(released: Any) -> None:
    course, releases = released
    for name in "MW":
        value = releases[2].plan.published.read()[name]
        integers = value.integers.copy()
        integers.flat[0] += 64  # of 2^19: one entry, by 2^-13 of the largest
        with pytest.raises(ps.PlanError, match="not the one that follows"):
            verify_next(course, sent(releases[2], **{name: Values(integers, value.exponent)}), releases[:2])
        with pytest.raises(ps.PlanError, match="not the one that follows"):
            verify_next(course, sent(releases[2], **{name: Values.rounded(-value.real)}), releases[:2])


def test_a_server_that_claims_another_history_is_refused(released: Any) -> None:
    course, releases = released
    plan = releases[2].plan
    for wrong in (
        replace(plan, published=Published.of(plan.published.read(), b"\1" * 32)),
        replace(plan, cohort=ps.Cohort(5, 3, N)),
        replace(plan, privacy=replace(plan.privacy, epsilon=plan.privacy.epsilon * 1.5)),
        releases[1].plan,
        course.first,
    ):
        refused(ps.PlanError, "not the one that follows", verify_next, course, wrong, releases[:2])
    refused(ps.PlanError, "has ended", verify_next, course, plan, releases)


def test_parties_that_were_shown_different_releases_cannot_share_a_session(released: Any) -> None:
    """The releases are part of the plan's digest, and the digest is in every message."""
    course, releases = released
    other = ps.simulate(course, shards(), rng=seeded(6))
    mine, theirs = course.next(releases[:1]), course.next(other[:1])
    assert mine.digest != theirs.digest
    refused(ps.PlanError, "not the one that follows", verify_next, course, theirs, releases[:1])


def test_walking_a_course_gives_nodes_with_their_history(released: Any) -> None:
    course, releases = released
    found: list[ps.Release | None] = []
    for round_, release in zip(iter_rounds(course, found), releases, strict=True):
        assert round_.plan == release.plan
        found.append(release)


def test_the_budget_of_a_round_is_shown_like_any_other(released: Any) -> None:
    course, releases = released
    budget = releases[1].budget
    assert [row.statistic for row in budget.rows] == ["g", "k"]
    assert budget.mu == pytest.approx(course.template.noise.mu)
    assert isinstance(releases[1].plan.schema, ps.GradientSchema)
    assert releases[1].plan.schema.transform == (ps.transforms.UnitNorm(),)
    assert ps.dp.gaussian_mu(budget.epsilon, budget.delta) == pytest.approx(budget.mu)


@pytest.mark.parametrize("schema", [SOFTMAX, RIDGE])
def test_the_honest_survivors_alone_carry_the_noise_of_a_round(schema: Any) -> None:
    """Sized for all clients, shares would be too small as soon as one vanishes: drawn, against the claim as written."""
    course = rounds(schema, model="distributed", epsilon=2.0)
    target = target_of(course.next(ps.simulate(course, shards(schema), rng=seeded(1))[:1]))
    assert target.honest_shares == 4 < target.clients
    z = target.draw(600 // target.layout.size + 100, seeded(2)) / target.levels()
    assert z.std() == pytest.approx(1, abs=3.3 / math.sqrt(2 * z.size))
    assert 3.3 / math.sqrt(2 * z.size) < 1 - math.sqrt(4 / 5)
