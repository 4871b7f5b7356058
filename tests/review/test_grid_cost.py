"""What a grid costs is what the plan on the coarser grid says itself, and grids that a plan refuses are not offered."""

from dataclasses import replace

import pytest

import privstats as ps
from privstats.review import grid_cost as cost_room
from privstats.review.grid_cost import grid_cost, grid_sentences
from tests.schema.samples import SCHEMAS

COHORT = ps.Cohort(20, 16, 100_000)


def plan_of(grid_bits=12, privacy=None, statistics="NAB", features=30):
    schema = ps.ClassSchema(3, features, statistics, 1.0, grid_bits)
    return ps.Plan(schema=schema, cohort=COHORT, privacy=privacy or ps.NoPrivacy())


def test_the_time_of_a_mask_is_its_bytes_at_the_pace_of_this_machine(monkeypatch):
    plan = plan_of()
    assert 0 < cost_room._seconds_per_byte() < 1e-6
    monkeypatch.setattr(cost_room, "_seconds_per_byte", lambda: 1e-6)
    own = grid_cost(plan).mask_bytes
    whole, _, narrow = grid_sentences(plan)
    saved = own - 4 * (plan.ring.size + plan.schema.classes)  # counts stay in lanes of 64 bits
    assert f"{own:,} bytes of keystream in a mask, which takes {own / 1e3:.2g} ms here" in whole
    assert f"of the keystream ({saved / 1e3:.2g} ms a mask)" in narrow


def test_one_bit_less_saves_bytes_and_time_and_rounds_more_coarsely():
    _, same_lanes, _ = grid_sentences(plan_of())
    assert same_lanes.endswith(
        "and no time of a mask, and rounds entries to 1/2,048 of the clip norm instead of 1/4,096"
    )
    widest = next(bits for bits in range(12, 2, -1) if grid_cost(plan_of(bits)).fits) + 1
    narrower = grid_sentences(plan_of(widest))[1]
    assert "of the keystream (" in narrower
    assert narrower.endswith(f"to 1/{2 ** (widest - 1):,} of the clip norm instead of 1/{2**widest:,}")


@pytest.mark.parametrize("statistics", ["NA", "NAB", "NAS"])
def test_what_a_bit_saves_is_what_the_two_plans_differ_by(statistics):
    plan, less = plan_of(12, statistics=statistics), plan_of(11, statistics=statistics)
    saved = plan.masking.upload_bytes - less.masking.upload_bytes
    assert any(f"one grid bit less saves {saved:,} bytes of an upload" in line for line in grid_sentences(plan))
    assert grid_cost(plan).upload_bytes == len(plan.ring.zeros().pack())


def test_the_finest_grid_of_32_bits_is_named_where_entries_are_wider():
    plan = plan_of()
    assert grid_cost(plan).most > 32
    (told,) = (line for line in grid_sentences(plan) if "every entry but counts fits 32 bits" in line)
    bits = int(told.split("grid_bits = ")[1].split()[0])
    assert grid_cost(plan_of(bits)).fits
    assert not grid_cost(plan_of(bits + 1)).fits
    wide = [size for size, each in plan_of(bits).ring.segments if each > 32]
    assert grid_cost(plan_of(bits)).mask_bytes == 4 * plan.ring.size + 4 * sum(wide)
    assert wide == [plan.schema.classes]
    assert not any("every entry but" in line for line in grid_sentences(plan_of(bits)))


def test_a_grid_that_the_noise_refuses_is_not_offered():
    weak = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=60.0, delta=1e-5)
    plan = plan_of(next(bits for bits in range(2, 21) if _admitted(weak, bits)), weak)
    assert len(grid_sentences(plan)) == 1
    assert any("one grid bit less" in line for line in grid_sentences(replace(plan, privacy=ps.NoPrivacy())))


def _admitted(privacy, bits):
    try:
        plan_of(bits, privacy)
    except (ps.PlanError, ps.SchemaError):
        return False
    return True


def test_sums_without_a_grid_say_nothing():
    schema = ps.CountSchema((ps.Categories("blood", ("A", "0")),), (("blood",),))
    assert grid_sentences(ps.Plan(schema=schema, cohort=COHORT, privacy=ps.NoPrivacy())) == []


def test_check_and_suggest_say_it(privstats, tmp_path):
    privstats("plan", "init", cwd=tmp_path)
    said = " ".join(privstats("plan", "check", "plan.toml", cwd=tmp_path).stdout.split())
    assert "every entry but counts fits 32 bits, which saves" in said


@pytest.mark.parametrize(
    "schema", [schema for schema in SCHEMAS if not schema.needs], ids=lambda schema: schema.task + schema.statistics
)
def test_every_kind_says_something_true_or_nothing(schema):
    said = grid_sentences(ps.Plan(schema=schema, cohort=COHORT, privacy=ps.NoPrivacy()))
    assert bool(said) == (schema.grid_bits > 0)
    assert not any("saves -" in line or "saves 0 " in line for line in said)
