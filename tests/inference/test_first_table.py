"""Curves and the first table of a paper as they are printed: time 0, number and share, standardised differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import privstats as ps
from privstats import inference as inf
from privstats import session
from privstats.errors import ReleaseError
from privstats.randomness import seeded
from tests import made
from tests.inference.test_counts import exact, noisy, people

CURVE = {"time": "months", "event": "died"}
MEANS = ps.ClassSchema(2, 2, "NAD", 3.0, class_names=("old", "new"), feature_names=("a", "b"))
COLUMNS = ["time", "n_risk", "n_event", "survival", "conf_low", "conf_high"]


def test_a_curve_is_printed_from_time_0_where_everybody_is_alive() -> None:
    data = people(400)
    curves = inf.kaplan_meier(exact(data), by="sex", **CURVE)
    for sex, curve in curves.items():
        first, second, *_ = curve.to_rows()
        assert first == {"time": 0, "n_risk": (data["sex"] == sex).sum(), "n_event": 0} | dict.fromkeys(COLUMNS[3:], 1)
        assert (second["time"], second["survival"]) == (curve.timeline[0], curve.survival_function_[0])
        assert len(curve.to_rows()) == len(curve.timeline) + 1
    rows = curves.summary().rows
    assert rows[0] == ("f", "0", f"{(data['sex'] == 'f').sum()}", "0", "1.000", "1.000", "1.000")
    assert [row[0] for row in rows] == [row["group"] for row in curves.to_rows()]
    hidden = inf.kaplan_meier(noisy(people(20), 0.1, 1), **CURVE)
    assert [row[1:5] for row in hidden.summary().rows] == [("0", "-", "0", "1.000")]
    whole = inf.kaplan_meier(exact(people(200) | {"died": np.zeros(200, bool)}), **CURVE)
    assert whole.summary().head == (("median", "not reached (12 to not reached)"),)


def test_curves_and_first_tables_are_frames_and_show_themselves() -> None:
    pytest.importorskip("pandas")
    release = noisy(people(3_000), 3.0, 1)
    curves, table = inf.kaplan_meier(release, by="sex", **CURVE), inf.table_one(release, by="sex")
    assert curves["f"].to_frame().columns.tolist() == COLUMNS
    assert curves.to_frame().columns.tolist() == ["group", *COLUMNS]
    assert len(table.to_frame()) == len(table.to_rows()) > 10
    for shown in (curves["f"], curves, table, inf.table_one(released(*groups()))):
        assert shown._repr_html_() == shown.summary().as_html()
        assert release.plan.digest[:16] in shown.summary().as_text() or shown.release is not release
        assert "TEST NOISE" not in shown.summary().as_text() or release.reproducible


def test_numbers_and_shares_are_those_of_the_records_and_their_difference_is_yang_and_dalton_s() -> None:
    data = people(600)
    table = inf.table_one(exact(data), by="sex")
    assert (table.by, table.groups, list(table.variables)) == ("sex", ("f", "m"), ["age", "months", "died"])
    women, men = data["sex"] == "f", data["sex"] == "m"
    died = table.variables["died"]
    assert died.counts.tolist() == [[(of & ~data["died"]).sum(), (of & data["died"]).sum()] for of in (women, men)]
    p, q = data["died"][women].mean(), data["died"][men].mean()
    assert died.shares[0][1].value == pytest.approx(p)
    wilson = scipy.stats.binomtest(int(data["died"][women].sum()), int(women.sum())).proportion_ci(method="wilson")
    assert died.shares[0][1][1:3] == pytest.approx((wilson.low, wilson.high), rel=1e-9)
    assert died.difference == pytest.approx(abs(p - q) / math.sqrt((p * (1 - p) + q * (1 - q)) / 2))
    months = table.variables["months"]
    shares = months.counts / months.counts.sum(axis=1, keepdims=True)
    covariance = sum((np.diag(each) - np.outer(each, each))[1:, 1:] for each in shares) / 2
    apart = (shares[0] - shares[1])[1:]
    kept = covariance.diagonal() > 0
    theirs = math.sqrt(apart[kept] @ np.linalg.solve(covariance[np.ix_(kept, kept)], apart[kept]))
    assert months.difference == pytest.approx(theirs)
    cells = table.summary().rows
    assert cells[[row[0] for row in cells].index("died") + 2][1].startswith(f"{(women & data['died']).sum()} (")


def test_shares_cover_under_noise_and_a_hidden_group_has_none() -> None:
    truth, missed = inf.table_one(exact(people(200_000, 9)), by="sex").variables["died"], []
    for run in range(60):
        found = inf.table_one(noisy(people(2_000, run), 1.0, run), by="sex").variables["died"]
        pairs = zip(
            (each for row in found.shares for each in row), (e for row in truth.shares for e in row), strict=True
        )
        missed.append([not share.low <= true.value <= share.high for share, true in pairs])
    assert np.mean(missed) < 0.08
    few = inf.table_one(noisy(people(30), 0.1, 2), by="sex")
    assert not few.told
    assert all(math.isnan(float(str(row[name]))) for row in few.to_rows() for name in ("proportion", "smd"))
    assert {cell for row in few.summary().rows for cell in row[1:]} <= {"", "-"}


def groups(seed: int = 0, records: int = 3_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, records)
    return rng.normal(size=(records, 2)) * [0.4, 0.6] + np.outer(y, [0.2, 0.0]), y


def released(X: Any, y: Any, epsilon: float | None = None, seed: int = 0) -> ps.Release:
    parts = [ps.measure(MEANS, X[k::2], np.array(["old", "new"])[y[k::2]]) for k in range(2)]
    if epsilon is None:
        return ps.Release.exact(MEANS, parts[0] + parts[1])
    plan = made.plan(MEANS, ps.Cohort(2, 2, 10_000), made.promise("central", epsilon=epsilon, delta=1e-6))
    return session.aggregate_unmasked(plan, parts, seeded(seed))


def test_standardised_differences_are_austin_s_and_hold_these_records_under_noise() -> None:
    X, y = groups()
    old, new = X[y == 0], X[y == 1]
    truth = (old.mean(axis=0) - new.mean(axis=0)) / np.sqrt((old.var(axis=0) + new.var(axis=0)) / 2)
    plain = inf.table_one(released(X, y))
    assert isinstance(plain, inf.GroupMeans)
    assert plain.differences is not None
    assert plain.differences[:, 0] == pytest.approx(truth, abs=2e-3)  # of the grid
    assert (plain.differences == plain.differences[:, :1]).all()  # of these records, and without noise
    missed, told = [], []
    for run in range(100):
        found = inf.table_one(released(X, y, 8.0, run))
        assert isinstance(found, inf.GroupMeans)
        if found.differences is None:
            continue
        value, low, high = found.differences.T
        told.append(~np.isnan(value))
        missed.append((low > plain.differences[:, 0]) | (high < plain.differences[:, 0]))
    assert np.mean(told) > 0.9
    assert np.mean(missed) < 0.1
    assert "SMD" in plain.summary().columns
    assert plain.summary().rows[0][-1] == f"{plain.differences[0, 0]:.2f}"
    assert any("Austin 2009" in sentence for sentence in plain.summary().foot)


def test_what_no_first_table_can_be_made_of_is_a_sentence() -> None:
    with pytest.raises(ReleaseError, match=r"by=.*--by\): sex, age"):
        inf.table_one(exact(people(50)))
    with pytest.raises(ReleaseError, match="no released table crosses 'ward'"):
        inf.table_one(exact(people(50)), by="ward")
    with pytest.raises(ReleaseError, match="the groups of class sums are the classes"):
        inf.table_one(released(*groups()), by="sex")
