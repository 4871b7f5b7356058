"""Ratios in place of coefficients: the same numbers in every form, each called by what it is, and none of lines."""

import csv
import io
import math
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.errors import ReleaseError
from privstats.randomness import seeded
from privstats.workflows.tables.regressions import regression
from tests import made
from tests.inference.test_score import LOGISTIC, POISSON, course_of, played, world

NAMES = {"logistic": "odds ratio", "poisson": "rate ratio"}


@pytest.fixture(scope="module", params=["logistic", "poisson"])
def fit(request: Any) -> Any:
    family = request.param
    schema = LOGISTIC if family == "logistic" else POISSON
    releases = played(course_of(schema, 6_000, 8.0, 6), *world(6_000, 0, family), 1)
    return (inf.logit if family == "logistic" else inf.poisson)(releases)


def name_of(fit: Any) -> str:
    return NAMES["poisson" if fit.model.startswith("Poisson") else "logistic"]


def test_a_ratio_and_its_ends_are_the_exponentials_of_what_the_table_has(fit: Any) -> None:
    assert fit.reported[1:].all()
    name = name_of(fit)
    key, plain, frame = name.replace(" ", "_"), fit.to_frame(0.1), fit.to_frame(0.1, exponentiate=True)
    assert plain["term"][0] == "const"
    assert frame["term"].tolist() == plain["term"].tolist()[1:]
    plain = plain[1:]
    assert np.allclose(frame[key], np.exp(plain["estimate"]), rtol=1e-15)
    assert np.allclose(frame[["ratio_low", "ratio_high"]], np.exp(plain[["conf_low", "conf_high"]]), rtol=1e-15)
    rows = list(csv.reader(io.StringIO(fit.summary(0.1, exponentiate=True).as_csv())))
    assert rows[0][1] == name
    assert [float(row[1]) for row in rows[1:]] == [float(f"{value:.4g}") for value in frame[key]]
    assert [float(row[2]) for row in rows[1:]] == [float(f"{value:.4g}") for value in frame["ratio_low"]]
    told = regression(fit, 0.1, {}, exponentiate=True).rows
    assert [row["ratio_high"] for row in told] == frame["ratio_high"].tolist()


def test_every_form_says_what_the_number_is(fit: Any, tmp_path: Any) -> None:
    summary, name = fit.summary(exponentiate=True), name_of(fit)
    for text in (summary.as_text(), summary.as_latex(), summary.as_html(), summary.as_csv(), summary.methods):
        assert name in text
    assert "const" not in summary.as_csv()
    assert "coef" not in summary.columns
    figure = inf.plot_forest(fit, tmp_path / "forest.svg")
    numbers = figure.axes[-1].get_yticklabels()
    first = float(fit.to_frame(exponentiate=True)[name.replace(" ", "_")].iloc[0])
    assert numbers[0].get_text().startswith(f"{first:.2f}"[:4])


def test_what_noise_hides_is_no_ratio() -> None:
    fit = inf.logit(played(course_of(LOGISTIC, 300, 0.3), *world(300), 1))
    assert not fit.reported.any()
    frame = fit.to_frame(exponentiate=True)
    assert frame["odds_ratio"].isna().all()
    assert (frame["ratio_low"] == 0).all()
    assert np.isinf(frame["ratio_high"]).all()
    assert all(row[1:4] == ("-", "0", "inf") for row in fit.summary(exponentiate=True).rows)


def test_cells_are_ratios_to_their_reference() -> None:
    cells = ps.Cells((ps.Truth("smoker"), ps.Categories("ward", ("a", "b"))))
    schema = ps.ScoreSchema(cells.width + 1, 1.5, transform=(cells, ps.transforms.ConstantFeature(1.0)))
    rng, n = np.random.default_rng(0), 8_000
    table = {"smoker": rng.integers(0, 2, n), "ward": rng.choice(["a", "b"], n)}
    y = (rng.random(n) < 1 / (1 + np.exp(0.5 - table["smoker"]))) * 1
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=20.0, delta=1e-6))
    parts = [({name: column[place::2] for name, column in table.items()}, y[place::2]) for place in range(2)]
    found = inf.logit(ps.simulate(course, parts, rng=seeded(1))).cells()
    frame = found.to_frame(exponentiate=True)
    smokers = frame[(frame.variable == "smoker") & (frame.level == "true")].iloc[0]
    assert smokers.odds_ratio == pytest.approx(math.exp(smokers.estimate))
    assert smokers.ratio_low < math.e < smokers.ratio_high
    rows = {row[0].strip(): row for row in found.summary(exponentiate=True).rows}
    assert rows["false"][1] == "1 (reference)"
    assert float(rows["true"][1]) == float(f"{smokers.odds_ratio:.4g}")
    assert "odds ratio" in found.summary(exponentiate=True).as_latex()


def test_hazards_show_ratios_in_any_case() -> None:
    from tests.hazard import worlds

    people = worlds.world(2_000)
    course = ps.Hazard.start(
        worlds.schema(times="continuous"), ps.Cohort(2, 2, 4_000), made.promise(epsilon=8.0), by="arm"
    )
    halves = [({name: column[place::2] for name, column in people.items()}, None) for place in range(2)]
    table = inf.hazards(ps.simulate(course, halves, rng=seeded(1)))
    assert str(table.summary(exponentiate=True)) == str(table.summary())
    assert table.to_frame(exponentiate=True).equals(table.to_frame())
    assert np.allclose(table.to_frame()["ratio_low"], table.ratio_int()[:, 0], rtol=1e-15)


def test_a_line_has_no_ratios() -> None:
    schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
    fit = inf.ols(ps.Release.exact(schema, ps.measure(schema, [[0.1], [0.2], [0.4], [0.8]], [1.2, 1.5, 1.7, 2.7])))
    for shown in (fit.summary, fit.to_frame):
        with pytest.raises(ReleaseError, match="a linear regression has none"):
            shown(exponentiate=True)
