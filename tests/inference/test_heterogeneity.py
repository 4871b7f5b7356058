"""Effects that may differ between sites: Q, I2, the spread of sites, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import privstats as ps
from privstats.errors import DataError, PlanError, ReleaseError, SchemaError
from privstats.inference.treatment_effects.heterogeneity import GroupSums, heterogeneity_of
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import check
from tests import made

RANGES = {"a": (-1.0, 1.0)}
SCHEMA = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=0.5, groups=6)
RNG = np.random.default_rng(5)


def sums(values: np.ndarray, each: int = 100, noise: float = 0.0, deviation: float = 0.0) -> GroupSums:
    """Groups whose records have a variance of 1 about these means."""
    n = np.full(len(values), float(each))
    return GroupSums(0.0, n * values, n, n * (1 + values**2), n, True, noise, deviation, 0.0)


def shards(sites: int, each: int, spread: float, seed: int = 1) -> list[tuple[np.ndarray, np.ndarray]]:
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(sites):
        a, arm = chance.uniform(-1, 1, each), chance.integers(0, 2, each)
        y = 0.2 * a + arm * (0.1 + spread * chance.normal()) + 0.2 * chance.normal(size=each)
        found.append((np.c_[a, arm], np.clip(y, -1, 1)))
    return found


def table(
    sites: int, spread: float, epsilon: float = 8.0, schema: ps.EffectSchema = SCHEMA
) -> ps.inference.EffectTable:
    privacy = made.promise(epsilon=epsilon, delta=1e-6)
    course = ps.Effect.start(schema, ps.Cohort(sites, sites, 500 * sites), privacy)
    return ps.inference.effect(ps.simulate(course, shards(sites, 300, spread), rng=seeded(2)))


def test_without_noise_it_is_one_way_welch() -> None:
    draws = [RNG.normal(0.1 * (k % 3), 1 + 0.5 * (k % 2), 50) for k in range(6)]
    means, n = np.array([each.mean() for each in draws]), np.full(6, 50.0)
    second = np.array([float(each @ each) for each in draws])
    found = heterogeneity_of(GroupSums(0.0, n * means, n, second, n, True, 0.0, 0.0, 0.0), sites=6)
    w = n / np.array([each.var(ddof=1) for each in draws])
    pooled = w @ means / w.sum()
    lost = ((1 - w / w.sum()) ** 2 / (n - 1)).sum()
    F = (w @ (means - pooled) ** 2 / 5) / (1 + 2 * 4 / 35 * lost)
    assert found.statistic == pytest.approx(F, rel=1e-10)
    assert found.p_value == pytest.approx(stats.f.sf(F, 5, 35 / (3 * lost)), rel=1e-8)
    assert found.q == pytest.approx(w @ (means - pooled) ** 2, rel=1e-10)
    assert found.pooled == pytest.approx(pooled, rel=1e-10)
    assert found.mean_bse == pytest.approx(means.std(ddof=1) / np.sqrt(6), rel=1e-10)
    assert 4 < found.mean_degrees < 5


def test_the_size_holds_where_noise_hides_the_groups_variances() -> None:
    """With variances of their own instead of shrunk ones it rejects 8.6 % here."""
    groups, each, deviation, noise = 8, 300, 110.0, 60.0
    rejected, chance = 0, np.random.default_rng(7)
    for _ in range(2_000):
        S = np.sqrt(each + noise) * chance.normal(size=groups)
        second = each + S**2 / each + deviation * chance.normal(size=groups)
        n = np.full(groups, float(each))
        found = heterogeneity_of(GroupSums(0.0, S, n, second, n, True, noise, deviation, 0.0), 24)
        rejected += found.p_value < 0.05
    assert 0.03 <= rejected / 2_000 <= 0.065


def test_a_spread_between_sites_is_found_in_their_own_units() -> None:
    """24 sites, 8 groups: a group's effect varies by sqrt(8 / 24) of what a site's does."""
    chance, found = np.random.default_rng(3), []
    for _ in range(300):
        values = 0.1 + (0.5 * chance.normal(size=(8, 3))).mean(axis=1) + 0.05 * chance.normal(size=8)
        found.append(heterogeneity_of(sums(values, 400), 24))
    assert np.mean([each.site_sd**2 for each in found]) ** 0.5 == pytest.approx(0.5, abs=0.04)
    assert np.mean([each.i_squared for each in found]) > 0.9


def test_no_spread_is_no_negative_one() -> None:
    found = heterogeneity_of(sums(np.full(6, 0.1)), 18)
    assert (found.i_squared, found.site_sd, found.p_value) == (0.0, 0.0, 1.0)
    assert found.pooled == pytest.approx(0.1)


def test_a_common_error_of_nuisances_widens_the_pooled_effect_and_is_no_spread() -> None:
    plain = heterogeneity_of(sums(RNG.normal(size=6)), 18)
    common = heterogeneity_of(replace(sums(RNG.normal(size=6)), common=600.0**2), 18)
    assert common.pooled_bse >= 1.0 > plain.pooled_bse


def test_groups_of_few_records_under_noise_are_not_told() -> None:
    one = sums(np.zeros(6))
    with pytest.raises(ReleaseError, match="noise hides how many records"):
        heterogeneity_of(replace(one, sigma_W=30.0), 18)
    with pytest.raises(ReleaseError, match="noise hides how many records"):
        heterogeneity_of(replace(one, records=np.full(6, 3.0)), 18)


def test_a_course_in_groups_reads_both_the_effect_and_its_spread() -> None:
    same, differing = table(18, 0.0), table(18, 0.2)
    assert same.heterogeneity().p_value > 0.01
    assert differing.heterogeneity().p_value < 0.001
    assert 0.1 < differing.heterogeneity().site_sd < 0.35
    low, high = same.conf_int()
    assert low < 0.1 < high
    said = str(differing.summary()).replace("\n  ", " ")
    assert "groups of 3 sites" in said
    assert "No estimate of a single site is released" in said


def test_one_sum_holds_no_spread() -> None:
    plain = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=0.5)
    with pytest.raises(ReleaseError, match="no estimate of a single"):
        table(4, 0.0, schema=plain).heterogeneity()


def test_sums_go_to_the_group_of_the_place_and_groups_add_up_to_all() -> None:
    plain = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=0.5)
    said = ps.Effect.start(plain, ps.Cohort(2, 2, 900), made.promise()).plan.published
    X, y = shards(1, 200, 0.0)[0]
    one, all_ = ps.measure(SCHEMA, X, y, published=said), ps.measure(plain, X, y, published=said)
    moved = one.for_client(8)
    assert moved.N.tolist() == [0, 0, 200, 0, 0, 0]
    assert moved.e[2].tolist() == all_.e.tolist()
    assert moved.records == 200
    with pytest.raises(DataError, match="in a group already"):
        moved.for_client(2)
    with pytest.raises(DataError, match="by roster index"):
        one.for_client(None)


@pytest.mark.parametrize(
    ("groups", "said"), [(2, "groups must be 1, or 6 to 64"), (65, "groups must be 1, or 6 to 64")]
)
def test_groups_out_of_range_are_refused(groups: int, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        replace(SCHEMA, groups=groups)


def test_groups_and_subgroups_are_refused_together() -> None:
    with pytest.raises(SchemaError, match="groups and subgroups"):
        replace(SCHEMA, subgroups=(ps.Bins("a", (-1.0, 0.0, 1.0)),))


def test_fewer_than_three_honest_sites_a_group_are_refused() -> None:
    with pytest.raises(PlanError, match="17 .* groups = 18"):
        ps.Effect.start(SCHEMA, ps.Cohort(20, 17, 9_000), made.promise())


@pytest.mark.parametrize("schema", [SCHEMA, replace(SCHEMA, probability=(0.5, 0.3) * 9, groups=None)])
def test_a_plan_in_groups_or_of_places_is_certified(schema: ps.EffectSchema) -> None:
    for adjacency in ("add-remove", "replace-one"):
        privacy = made.promise(adjacency=adjacency)
        plan = ps.Effect.start(schema, ps.Cohort(18, 18, 9_000), privacy).plan
        assert check(plan.to_toml(), certificate_text(plan)).startswith("holds")
