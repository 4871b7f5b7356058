"""Missing values by column and arm: the counts without noise, Wilson's intervals, and no number that is not there."""

import math
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

import privstats as ps
from benchmarks.inference import missing_values as bench
from privstats import inference as inf
from privstats.errors import ReleaseError
from tests import made
from tests.made import refused

SCHEMA = ps.CountSchema(
    (
        ps.Categories("arm", ("placebo", "drug"), missing=True),
        ps.Bins("bmi", (15, 30, 45), missing=True),
        ps.Categories("smoker", ("no", "yes"), missing=True),
        ps.Categories("sex", ("f", "m")),
    ),
    (("arm", "bmi"), ("smoker",), ("arm", "sex")),
)


def records(n: int = 900) -> dict[str, Any]:
    place = np.arange(n)
    return {
        "arm": np.where(place % 9 == 0, None, np.where(place % 2, "drug", "placebo")),
        "bmi": np.where(place % 5 == 1, np.nan, 20.0 + place % 20),
        "smoker": np.where(place % 10 == 3, None, "no"),
        "sex": np.where(place % 2, "f", "m"),
    }


def exact(n: int = 900) -> ps.Release:
    return ps.Release.exact(SCHEMA, ps.measure(SCHEMA, records(n)))


def test_counts_and_intervals_without_noise_are_those_of_the_records() -> None:
    table = records()
    found = inf.missing_values(exact(), by="arm")
    assert [(each.column, each.group) for each in found] == [
        ("bmi", "placebo"),
        ("bmi", "drug"),
        ("bmi", "missing"),
    ]
    for each in found:
        own = table["arm"] == (None if each.group == "missing" else each.group)
        gone = np.isnan(table["bmi"][own]).sum()
        assert (each.missing, each.records) == (gone, own.sum())
        np.testing.assert_allclose(each.share[1:3], proportion_confint(gone, own.sum(), method="wilson"), rtol=1e-6)


def test_without_groups_every_column_with_such_a_cell_is_listed() -> None:
    table = inf.missing_values(exact())
    assert [each.column for each in table] == ["arm", "bmi", "smoker"]
    assert [each.missing for each in table] == [100, 180, 90]
    text = " ".join(str(table.summary()).split())
    assert "Whether values are missing at random cannot be seen in these counts." in text
    assert table.to_rows()[2]["proportion"] == pytest.approx(0.1)
    assert len(table) == 3


def test_a_share_that_noise_hides_is_not_shown() -> None:
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 40), privacy=made.promise(epsilon=0.1))
    parts = [ps.measure(SCHEMA, {name: column[k::2] for name, column in records(10).items()}) for k in (0, 1)]
    table = inf.missing_values(ps.simulate(plan, parts), by="arm")
    assert not any(each.share.reported for each in table) or table.reported
    for row, each in zip(table.to_rows(), table, strict=True):
        if not each.share.reported:
            assert math.isnan(float(str(row["proportion"])))
            assert (row["conf_low"], row["conf_high"]) == (0.0, 1.0)


def test_what_no_table_holds_is_one_clear_sentence() -> None:
    refused(ReleaseError, "and is crossed with 'smoker'", inf.missing_values, exact(), by="smoker")
    plain = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
    release = ps.Release.exact(plain, ps.measure(plain, {"sex": ["f", "m"]}))
    refused(ReleaseError, "has a cell for missing values: declare missing=True", inf.missing_values, release)
    other = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
    moments = ps.Release.exact(other, ps.measure(other, [[0.1, 0.2]], [0]))
    refused(ReleaseError, "missing_values reads count tables", inf.missing_values, moments)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_intervals_of_shares_keep_their_level() -> None:
    row = bench.measured(1_000, 1.0, 400)
    assert row["worst row"] <= 0.09  # 36 of 400: with probability 5e-4 at a rate of .05
