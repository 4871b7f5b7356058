"""Too many pulls over too few sites give every site's means away; at the edge of the counting rule none comes out."""

import json
import math

import numpy as np
import pytest

import privstats as ps
from privstats.review.plan_facts import facts
from threat_models.attack import attacks_named
from threat_models.attacks.site_means import SiteMeans, _constant, _measured, _site, recovered_share, solve_sites
from threat_models.data import bundled
from threat_models.evaluate import Effort, evaluate


def schema(features, *pulls):
    return ps.SitesSchema(features, 4.0, pulls=pulls, transform=(ps.transforms.ConstantFeature(1.0),))


def rebuilt(features, pulls, sites, seed, plain=False, starts=20):
    """Share of sites whose means come out, from sums that no plan would release."""
    chosen, rng = schema(features, *pulls), ps.randomness.seeded(seed)
    world = [_site(chosen, rng) for _ in range(sites)]
    sums, levels = sum(_measured(chosen, rows) for rows in world).real(), pulls
    Q = sums.Q
    if plain:
        grid = [np.rint(rows * chosen.scale) / chosen.scale for rows in world]
        Q, levels = np.concatenate([Q, [sum(rows.T @ rows for rows in grid)]]), (*pulls, math.inf)
    found = solve_sites(Q, sums.N, levels, sites, _constant(chosen), rng, starts=starts)
    return recovered_share(np.array([rows.mean(axis=0) for rows in world]), found.means)


def refused(features, pulls, sites):
    with pytest.raises(ps.PlanError, match="for exact sums within sites"):
        ps.Plan(schema=schema(features, *pulls), cohort=ps.Cohort(sites, sites, 9_000), privacy=ps.NoPrivacy())


@pytest.mark.parametrize(("features", "pulls", "sites"), [(5, (0.4, 4.0, 30.0), 4), (5, (0.4, 4.0, 30.0, 400.0), 6)])
def test_every_site_s_means_come_out_of_a_plan_that_the_rule_refuses(features, pulls, sites):
    refused(features, pulls, sites)
    assert [rebuilt(features, pulls, sites, seed) for seed in range(2)] == [1.0] * 2


def test_plain_sums_beside_them_are_one_more_pull():
    """Two pulls leave four sites of five entries open; the exact second moments close them."""
    assert np.mean([rebuilt(5, (4.0, 30.0), 4, seed, starts=4) for seed in range(2)]) < 0.5
    assert [rebuilt(5, (4.0, 30.0), 4, seed, plain=True) for seed in range(2)] == [1.0] * 2


def test_counting_the_constant_s_row_matters():
    """Two entries, two pulls, three sites: differences of pulls alone are fewer than the unknowns."""
    refused(2, (4.0, 30.0), 3)
    assert max(rebuilt(2, (4.0, 30.0), 3, seed) for seed in range(2)) == 1.0


@pytest.mark.ci
@pytest.mark.parametrize(("features", "pulls", "sites"), [(5, (4.0, 30.0), 9)])
def test_at_the_edge_of_the_rule_they_do_not(features, pulls, sites):
    plan = ps.Plan(schema=schema(features, *pulls), cohort=ps.Cohort(sites, sites, 9_000), privacy=ps.NoPrivacy())
    refused(features, pulls, sites - 1)
    (row,) = evaluate(
        plan, attacks_named(["site-means"]), bundled(plan, ps.randomness.seeded(0))[0], Effort(trials=8, seed=1)
    ).rows
    assert row.metric == "site means rebuilt"
    assert row.measured < 0.35
    assert row.ceiling is None


def test_what_it_does_not_apply_to():
    noisy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    within = ps.SitesSchema(3, 1.0)
    cohort = ps.Cohort(9, 9, 900)
    assert "exact sums" in SiteMeans().refusal(ps.Plan(schema=within, cohort=cohort, privacy=noisy))
    assert "several pulls" in SiteMeans().refusal(ps.Plan(schema=within, cohort=cohort, privacy=ps.NoPrivacy()))
    plain = ps.Plan(schema=ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0), cohort=cohort, privacy=ps.NoPrivacy())
    assert SiteMeans().refusal(plain)


def test_the_command_and_what_a_reviewer_is_told(privstats, tmp_path):
    plan = ps.Plan(schema=schema(2, 4.0, 30.0), cohort=ps.Cohort(6, 6, 900), privacy=ps.NoPrivacy())
    assert any("one more pull" in fact for fact in facts(plan))
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    options = ("--attack", "site-means", "--attack", "informed", "--trials", "8", "--seed", "1", "--json")
    sites, informed = json.loads(privstats("attack", "run", "plan.toml", *options, cwd=tmp_path, code=0).stdout)["rows"]
    assert sites["measured"] < 0.35
    assert "plays over records" in informed["note"]
