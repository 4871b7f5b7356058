"""What a trial's table says of records that are left out: by arm and reason, and that the arms add up."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privstats as ps
from privstats.errors import UnreadableRecordsWarning
from privstats.inference.treatment_effects.arms import Total, excluded_records
from privstats.inference.treatment_effects.influence_sums import course_sums
from privstats.randomness import seeded
from tests import made

pytestmark = pytest.mark.filterwarnings(f"ignore::{UnreadableRecordsWarning.__module__}.UnreadableRecordsWarning")

SCHEMA = ps.EffectSchema.of(
    {"age": (20, 90), "sex": ("female", "male")},
    treatment={"arm": ("placebo", "drug")},
    outcome={"well": ("no", "yes")},
    probability=0.5,
    left_out="counted",
)
TRUE = {"drug": (90, 20), "placebo": (60, 30), "unknown": (0, 15)}
"""Records left out of each arm for the outcome, and for a column."""


def patients(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A trial in which so many have no outcome, no sex, or no arm."""
    rng = np.random.default_rng(seed)
    arm = np.where(np.arange(n) % 2, "drug", "placebo").astype(object)
    table = pd.DataFrame({"age": rng.uniform(20, 90, n), "sex": rng.choice(["female", "male"], n), "arm": arm})
    well = np.where(rng.random(n) < 0.3 + 0.2 * (arm == "drug"), "yes", "no").astype(object)
    for text in ("drug", "placebo"):
        places = iter(np.flatnonzero(arm == text).tolist())
        for _ in range(TRUE[text][0]):
            well[next(places)] = None
        for _ in range(TRUE[text][1]):
            table.loc[next(places), "sex"] = "not said"
    table.loc[n - 15 :, "arm"] = ""
    return table, well


def played(epsilon: float, seed: int, n: int = 2_000, schema: ps.EffectSchema = SCHEMA) -> list[Any]:
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=epsilon, delta=1e-6))
    X, y = patients(n, seed)
    return ps.simulate(course, [(X[k::2], y[k::2]) for k in (0, 1)], rng=seeded(seed))


def test_the_table_has_records_left_out_by_arm_and_reason_and_they_add_up() -> None:
    releases = played(60.0, 1)
    table = ps.inference.effects(releases).by_arm()
    found = {each.arm: (each.outcome.value, each.column.value) for each in table.left_out}
    for arm, numbers in TRUE.items():
        assert found[arm] == pytest.approx(numbers, abs=4), arm
    rows = {(row["group"], row["metric"]): row["n"] for row in table.to_rows()}
    assert rows["drug", "left out: no outcome"] == found["drug"][0]
    assert rows["unknown", "left out: a column unread"] == found["unknown"][1]
    every = {arm: sum(numbers) + (rows[arm, "risk"] if arm != "unknown" else 0) for arm, numbers in found.items()}
    assert every == pytest.approx({"drug": 1_000, "placebo": 1_000, "unknown": 15}, abs=15)
    text = " ".join(str(table.summary()).split())
    arms = ", ".join(f"{each.arm} {each.both.text}" for each in table.left_out)
    assert f"left out {sum(map(sum, found.values())):.0f} (SE " in text
    assert arms in text
    assert "none missing" not in text
    assert "whether a record is excluded as unreadable does not depend on its outcome" in text


def test_an_emptied_arm_is_named_with_its_declared_texts_and_no_negative_count() -> None:
    course = ps.Effect.start(
        replace(SCHEMA, left_out=None), ps.Cohort(2, 2, 2_000), made.promise(epsilon=4, delta=1e-6)
    )
    X, y = patients(1_000, 1)
    X.loc[X["arm"] == "placebo", "arm"] = "Placebo"
    for seed in range(3):
        hidden = ps.inference.effect(ps.simulate(course, [(X[k::2], y[k::2]) for k in (0, 1)], rng=seeded(seed))).hidden
        assert "arm holds 'placebo' and 'drug'" in hidden
        assert "-" not in hidden.partition("records")[2].partition("are not")[0]


@pytest.mark.ci
def test_counts_are_whole_and_never_below_zero_and_intervals_keep_their_level() -> None:
    """60 releases at epsilon 1: what noise moves each number by, and an arm's."""
    missed, releases = np.zeros(5), 60
    for seed in range(releases):
        several = excluded_records(course_sums(played(1.0, seed, 400)))
        numbers = [each for arm in several[:2] for each in (arm.outcome, arm.column)]
        numbers.append(several[0].both)
        assert all(n.value >= 0 and n.value == round(n.value) for n in numbers)
        true = [*TRUE["drug"], *TRUE["placebo"], sum(TRUE["drug"])]
        missed += [abs(n.value - t) > 1.96 * n.error for n, t in zip(numbers, true, strict=True)]
    assert (missed <= 9).all(), missed  # of 60 at 5 %, one in 10,000 has more
    assert missed.sum() > 0


def test_a_plan_that_does_not_count_them_says_nothing_of_them() -> None:
    table = ps.inference.effects(played(8.0, 3, schema=replace(SCHEMA, left_out=None))).by_arm()
    assert table.left_out == ()
    assert "left out" not in str(table.summary())
    assert not any(str(row["metric"]).startswith("left out") for row in table.to_rows())
    assert math.isfinite(table.arms[0].mean)


def test_no_negative_count_is_printed() -> None:
    """Noise moved an empty arm to -50."""
    assert Total(-50.0, 35.0).text == "0 (SE 35.0)"
    assert Total(-0.4, 0.0).text == "0"
    assert Total(2601.4, 7.0).text == "2,601 (SE 7.0)"
