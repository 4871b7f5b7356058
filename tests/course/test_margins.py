"""Margins that owners declare: in the digest and the file, and a false claim as rare as is stated."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import privstats as ps
from privstats.course import Analysis, Margin
from privstats.inference import FRAME_COLUMNS
from privstats.inference.inversion import holm
from privstats.workflows.tables.effects import effects
from tests import made
from tests.lengths import sized
from threat_models.audits import effect_worlds

SCHEMA = ps.EffectSchema.of(
    {"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1), "death": (0, 1)}, probability=0.5
)

RATIO = ps.EffectSchema.of(
    {"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1)}, probability=0.5, measure="ratio"
)
"""A ratio has one outcome."""


def course_of(*margins: Margin, alpha: float = 0.05, records: int = 4_000, measure: str | None = None) -> ps.Effect:
    schema = RATIO if measure else SCHEMA
    analysis = Analysis(("relapse",), () if measure else ("death",), margins=margins, alpha=alpha)
    return ps.Effect.start(schema, ps.Cohort(2, 2, records), made.promise(epsilon=8.0, delta=1e-6), analysis=analysis)


def played(course: ps.Effect, risks: tuple[float, float], n: int, seed: int) -> Any:
    """Rows of a trial in which both outcomes have these risks in the control arm and in the treated one.

    Parties are summed without masks, which take most of the time of a session.
    """
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    y = (rng.random((n, course.plan.schema.outcomes)) < np.array(risks)[arm][:, None]).astype(float)
    X = np.column_stack([rng.uniform(20, 90, n), arm])
    return ps.inference.effects(effect_worlds.played(course, X, y, ps.randomness.seeded(seed)), course)


@pytest.mark.parametrize(
    ("margin", "claim", "region"),
    [
        (Margin("relapse", high=0.05), "non-inferiority", "difference below 0.05"),
        (Margin("relapse", low=-0.05), "non-inferiority", "difference above -0.05"),
        (Margin("relapse", high=-0.02), "superiority by a margin", "difference below -0.02"),
        (Margin("relapse", -0.05, 0.05), "equivalence", "difference between -0.05 and 0.05"),
        (Margin("relapse", 0.8, 1.25, "ratio"), "equivalence", "ratio between 0.8 and 1.25"),
        (Margin("relapse", high=1.3, measure="ratio"), "non-inferiority", "ratio below 1.3"),
    ],
)
def test_the_ends_name_the_claim(margin: Margin, claim: str, region: str) -> None:
    assert (margin.claim, margin.region) == (claim, region)


def test_margins_are_in_the_digest_and_come_back_from_the_file(tmp_path: Path) -> None:
    plain, course = course_of(), course_of(Margin("relapse", high=0.05), Margin("death", -0.1, 0.1))
    assert plain.digest != course.digest
    ps.course.write(tmp_path / "course.toml", course)
    text = (tmp_path / "course.toml").read_text()
    assert text.count('measure = "difference"') == 2
    back = ps.course.read(tmp_path / "course.toml")
    assert (back, back.digest) == (course, course.digest)


def test_a_course_without_margins_keeps_its_table() -> None:
    assert Analysis(("relapse",)).table == {"primary": ["relapse"], "alpha": 0.05}


@pytest.mark.parametrize("measure", [None, "ratio"])
@pytest.mark.parametrize("claimed", ["below", "above", "both"])
def test_at_the_margin_a_false_claim_is_as_rare_as_the_level(measure: str | None, claimed: str) -> None:
    """The effect is exactly at an end, where a claim is false; estimates alone would claim half of them."""
    risks = (0.3, 0.36) if claimed != "above" else (0.36, 0.3)
    edge = risks[1] / risks[0] if measure else risks[1] - risks[0]
    away = (0.3 if measure else -0.9) if claimed == "both" else None
    ends = {"low": edge} if claimed == "above" else {"low": away, "high": edge}
    course = course_of(Margin("relapse", **ends, measure=measure or "difference"), measure=measure)
    runs, false = sized(40, 600), 0
    for seed in range(runs):
        false += played(course, risks, 2_000, seed).verdicts()[0].shown
    assert false <= binom.ppf(0.999, runs, 0.025)


def test_an_effect_well_inside_is_claimed_and_the_table_prints_it() -> None:
    course = course_of(Margin("relapse", high=0.1), Margin("death", -0.1, 0.1), Margin("death", high=-0.2))
    rows = played(course, (0.3, 0.3), 4_000, 3)
    inside, equal, better = rows.verdicts()
    assert (inside.shown, equal.shown, better.shown) == (True, True, False)
    low, high = rows["relapse"].conf_int()
    assert (inside.conf_low, inside.conf_high) == (low, high)
    text = " ".join(str(rows).split())
    assert "Non-inferiority of relapse (difference below 0.1): shown at the one-sided level 0.025, Holm's P" in text
    assert "Equivalence of death (difference between -0.1 and 0.1): shown" in text
    assert "Superiority by a margin of death (difference below -0.2): not shown" in text
    assert text.count("People who do not comply bring the arms closer, which favours non-inferiority") == 1
    superior = str(played(course_of(Margin("relapse", high=-0.1)), (0.3, 0.3), 4_000, 3))
    assert "Superiority by a margin of relapse" in " ".join(superior.split())
    assert "bring the arms closer" not in " ".join(superior.split())


def test_verdicts_are_rows_of_data_in_csv_and_json() -> None:
    rows = played(course_of(Margin("relapse", high=0.1), Margin("death", -0.1, 0.1)), (0.3, 0.3), 4_000, 3)
    result = effects(rows, 0.05)
    inside, equal = result.tests
    assert (inside["test"], inside["outcome"], inside["shown"]) == ("non-inferiority", "relapse", True)
    assert (inside["margin_low"], inside["margin_high"]) == (None, 0.1)
    assert (equal["test"], equal["margin_low"], equal["margin_high"]) == ("equivalence", -0.1, 0.1)
    assert {name for row in result.tests for name in row} <= set(FRAME_COLUMNS)
    table = list(csv.DictReader(result.csv.splitlines()))
    assert [row["test"] for row in table] == ["NA", "NA", "non-inferiority", "equivalence"]
    assert (table[2]["estimate"], table[2]["margin_low"], table[2]["shown"]) == ("NA", "NA", "TRUE")
    assert float(table[2]["p_value"]) == rows.verdicts()[0].p_value


def test_verdicts_are_adjusted_over_all_declared_margins() -> None:
    """The same releases under three declarations: the plans and their noise do not depend on margins."""
    several = (Margin("relapse", high=0.06), Margin("death", high=0.05))
    alone = [played(course_of(each), (0.3, 0.3), 2_000, 5).verdicts()[0].p_value for each in several]
    both = [each.p_value for each in played(course_of(*several), (0.3, 0.3), 2_000, 5).verdicts()]
    assert both == pytest.approx(holm(np.array(alone)).tolist())
    assert both > alone


def test_what_noise_hides_is_in_no_margin() -> None:
    rows = played(course_of(Margin("relapse", high=0.9), records=4_000), (0.3, 0.3), 2_000, 1)
    hidden = replace(rows, tables=tuple(replace(each, hidden="noise") for each in rows.tables))
    (verdict,) = hidden.verdicts()
    assert (verdict.p_value, verdict.shown) == (1.0, False)
    assert "its interval is not reported" in " ".join(str(hidden).split())


def test_no_margin_no_verdict() -> None:
    rows = played(course_of(), (0.3, 0.3), 2_000, 1)
    assert rows.verdicts() == ()
    assert replace(rows, course=None).verdicts() == ()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Margin("relapse"), "the margin of 'relapse' has no end"),
        (lambda: Margin("", high=0.1), "a margin's outcome must be the name of a declared outcome"),
        (lambda: Margin("relapse", high=float("nan")), "must be a finite number, got nan"),
        (lambda: Margin("relapse", high=0, measure="ratio"), "must be a ratio above 0, got 0"),
        (lambda: Margin("relapse", high=0.1, measure="odds"), "a margin's measure must be 'difference' or 'ratio'"),
        (lambda: Margin("relapse", 0.01, 0.1), "equivalence of 'relapse' needs low below 0 and high above it"),
        (lambda: Analysis(("relapse",), margins=(Margin("fall", high=0.1),)), "margins names 'fall', which is neither"),
        (lambda: Analysis(("relapse",), margins=("relapse",)), "analysis.margins must be different margins"),
        (lambda: Analysis(("relapse",), margins=(Margin("relapse", high=0.1),) * 2), "must be different margins"),
        (lambda: Analysis.of({"primary": ["a"], "margins": {"outcome": "a"}}), r"write \[\[analysis.margins\]\]"),
        (lambda: Analysis.of({"primary": ["a"], "margins": [{"high": 1}]}), "holds outcome, and beside it low, high"),
        (lambda: course_of(Margin("relapse", high=1.2, measure="ratio")), "the plan estimates the difference alone"),
    ],
)
def test_what_is_no_margin_is_one_clear_sentence(call: Any, words: str) -> None:
    with pytest.raises(ps.PlanError, match=words):
        call()
