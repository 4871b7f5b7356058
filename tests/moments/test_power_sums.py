"""Sums of third and fourth powers: exact through masks, and refused wherever a promise would have to cover them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from tests import made
from tests.made import refused

SCHEMA = ps.ClassSchema(3, 4, "NADTF", clip_norm=2.0, grid_bits=10)
COHORT = ps.Cohort(5, 4, 300)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(250, 4)), RNG.choice(3, 250, p=(0.6, 0.38, 0.02))
SHARDS = [(X[k::5], Y[k::5]) for k in range(5)]


def test_masked_sums_are_those_of_the_pooled_records_and_survive_their_file(tmp_path: Path) -> None:
    release = ps.simulate(made.plan(SCHEMA, COHORT), SHARDS, {"mask": {1}})
    stayed = np.arange(len(Y)) % 5 != 1
    pooled = ps.measure(SCHEMA, X[stayed], Y[stayed])
    assert np.array_equal(release.vector, ps.encoding.flatten(pooled))
    assert release.moments == pooled.real()
    release.save(tmp_path / "powers.release")
    assert ps.Release.load(tmp_path / "powers.release") == release


def test_a_rare_class_takes_its_powers_with_it() -> None:
    release = ps.simulate(made.plan(SCHEMA, COHORT, min_count=20, merge={2: 0}), SHARDS)
    assert release.suppressed == (2,)
    merged = ps.measure(SCHEMA, X, np.where(Y == 2, 0, Y)).real()
    assert all(np.array_equal(getattr(release.moments, letter), getattr(merged, letter)) for letter in "TF")


@pytest.mark.parametrize(("bits", "most"), [(12, 8_191), (11, 131_071), (10, 2_097_151)])
def test_powers_without_room_in_the_ring_are_refused(bits: int, most: int) -> None:
    """The numbers of docs/plan.md."""
    schema = replace(SCHEMA, grid_bits=bits)
    assert max(width for _, width in made.plan(schema, ps.Cohort(5, 4, most)).ring.segments) == 62
    with pytest.raises(ps.PlanError, match="segment F would need 63 ring bits, maximum 62; lower grid_bits"):
        made.plan(schema, ps.Cohort(5, 4, most + 1))


CLIENT = {"unit": "client", "max_records_per_client": 50}
PROMISES: dict[str, dict[str, Any]] = {
    **{model: {"model": model} for model in made.MODELS},
    "replace-one": {"adjacency": "replace-one"},
    "client": CLIENT,
    "clipped client": {**CLIENT, "client_clip": 20.0},
    "delta 0": {"delta": 0.0},
    "shares of the others": {"shares": {"N": 0.1, "A": 0.4, "D": 0.5}},
}


@pytest.mark.parametrize("promise", PROMISES)
def test_no_promise_covers_them(promise: str) -> None:
    """Not in a plan, not in one that is changed, as streams and rounds change them, and not in a file."""
    known = {name: value for name, value in PROMISES[promise].items() if name != "shares"}
    others = made.plan(replace(SCHEMA, statistics="NAD"), COHORT, made.promise(**known))
    for build in (
        lambda: made.plan(SCHEMA, COHORT, made.promise(**PROMISES[promise])),
        lambda: replace(others, schema=SCHEMA),
        lambda: ps.Plan.from_toml(others.to_toml().replace('"NAD"', '"NADTF"')),
    ):
        refused(ps.PlanError, r"proved for T and F, .* omit them from schema\.statistics, or set No", build)


@pytest.mark.parametrize("letter", ["T", "F"])
def test_no_formula_counts_them_as_free(letter: str) -> None:
    for adjacency in ("add-remove", "replace-one"):
        with pytest.raises(ps.PlanError, match=f"no sensitivity is proved for statistic {letter}"):
            ps.dp.joint_mu(SCHEMA, {"N": 1.0, letter: 1.0}, adjacency)
        with pytest.raises(ps.PlanError, match="delta = 0 is supported for the class statistics N, A and D"):
            ps.dp.l1_sensitivity(SCHEMA, letter, adjacency)
    refused(
        ps.PlanError,
        "no sensitivity is proved for statistic T",
        ps.dp.calibrate,
        SCHEMA,
        made.promise(),
        honest_shares=1,
    )
