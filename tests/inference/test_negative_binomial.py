"""Rounds with negative binomial weights: sums, bounds, statsmodels, refusals, and files."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats import inference as inf
from privstats.dp import joint_mu
from privstats.errors import ReleaseError, SchemaError
from privstats.kinds.score_sums import _weighed
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check
from privstats.schema.public_values import Values
from tests.inference import test_score
from tests.inference.person_time import BOUND, assert_bounded, at, drawn, exact, person_sums, played, rehearsed, world
from tests.inference.person_time import SCHEMA as POISSON
from tests.made import refused
from threat_models.audits.gradients import worst_attempt

ALPHA = 1.5
SCHEMA = replace(POISSON, negative_binomial=ALPHA)
ONE = 1 << 20
ALPHAS = (1e-3, 0.1, 1.0, 30.0, 1e3)


def test_sums_are_weighed_score_and_information_to_the_grid() -> None:
    X, y = world(3_000)
    w = np.array([0.3, -0.2, 0.1])
    moments: Any = ps.measure(SCHEMA, X, y, published=at(w))
    U = np.c_[X, np.ones(len(X))]
    m = np.minimum(np.exp(U @ Values.rounded(w).real), 12.0) * y[:, 1] / BOUND
    weight = 1 / (1 + ALPHA * m)
    r = (np.minimum(y[:, 0], 12.0) - m) * weight
    assert np.abs(moments.real().g - r @ U).max() < 2e-4 * len(X) * 12
    assert np.abs(moments.real().H - (U * (m * weight)[:, None]).T @ U).max() < 1e-3 * len(X) * 12
    wanted = (U * np.square(r)[:, None]).T @ U
    assert np.abs(moments.real().J - wanted).max() < 0.01 * wanted.max()
    halves: Any = [ps.measure(SCHEMA, X[k::2], y[k::2], published=at(w)) for k in range(2)]
    assert halves[0] + halves[1] == moments
    assert moments.records == 3_000


@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_mean_and_outcome_become_those_of_some_poisson_record(alpha: float) -> None:
    """All means of a coarse grid and the ends of the fine one, with the outcomes nearest to every bound."""
    schema = replace(SCHEMA, negative_binomial=alpha)
    means = np.unique(np.r_[0:64, 0 : ONE + 1 : 257, ONE - 64 : ONE + 1]).astype(np.float64)
    for outcome in (0, 1, ONE // 2, ONE - 1, ONE):
        y, m = _weighed(schema, np.full(len(means), float(outcome)), means)
        assert (y == np.rint(y)).all()
        assert (m == np.rint(m)).all()
        assert (y >= 0).all()
        assert (y <= outcome).all()
        assert (m >= 0).all()
        assert (m <= means).all()


@given(st.data())
def test_every_record_keeps_the_bounds_of_poisson_whatever_is_published_and_declared(data: Any) -> None:
    schema = replace(SCHEMA, negative_binomial=data.draw(st.floats(1e-3, 1e3)))
    parts, _ = drawn(data, schema)
    assert_bounded(data, schema, parts, POISSON)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("alpha", [1e-3, ALPHA])
def test_the_search_does_not_pass_the_bound_of_poisson(adjacency: Any, alpha: float) -> None:
    schema = replace(SCHEMA, negative_binomial=alpha, transform=(), feature_names=None, rate=None, grid_bits=16)
    sigma = {"g": 1.0, "H": 1.0, "J": 50.0}
    claimed = joint_mu(schema, sigma, adjacency)
    assert claimed == joint_mu(replace(schema, negative_binomial=None), sigma, adjacency)
    found = max(worst_attempt(schema, sigma, adjacency, seeded(start), 60)[0] for start in range(3))
    assert found <= claimed
    # Weights shrink H: y = Y and m = 0 have no information, m = Y has little. These records are admitted, so searched.
    size = 2.0 * 12 * np.array([1.0, 2.0, 2.0 * 12])  # g, H and J of the largest record, without weights
    g, H, J = np.square(size / [*sigma.values()])
    weight = 1 / (1 + alpha * 12)
    one = max(g + J, weight**2 * (g + H) + weight**4 * J)
    attained = one if adjacency == "add-remove" else max(4 * g, 2 * one)
    assert found > 0.55 * math.sqrt(attained)


def test_little_noise_gives_statsmodels_ratios_of_that_dispersion() -> None:
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = world(100_000, 0, ALPHA)
    table = exact(replace(SCHEMA, grid_bits=18), X, y)
    counts = np.minimum(y[:, 0], 12)
    family = sm.families.NegativeBinomial(alpha=ALPHA)
    theirs = sm.GLM(counts, sm.add_constant(X), family, exposure=y[:, 1]).fit(cov_type="HC0")
    sampling = np.sqrt(np.square(table.bse) - np.square(table.noise_bse))  # the sums are exact, the stated noise is not
    assert np.abs(table.params - theirs.params).max() < 0.1 * theirs.bse.min()
    assert np.allclose(sampling, theirs.bse, rtol=0.06)
    plain = sm.GLM(counts, sm.add_constant(X), sm.families.Poisson(), exposure=y[:, 1]).fit(cov_type="HC0")
    assert theirs.bse[1] < plain.bse[1]
    text = " ".join(str(table.summary()).split())
    assert "binomial model of dispersion 1.5" in text
    assert "variance over the model's" in text
    assert table.cov_type == "robust"


def test_persons_rows_are_weighed_and_clipped_together() -> None:
    X, y = world(40)
    ids, order = np.arange(40) // 2, np.random.default_rng(0).permutation(40)
    ours, plain = (person_sums(schema, X, y, ids) for schema in (SCHEMA, POISSON))
    theirs = person_sums(SCHEMA, X[order], y[order], ids[order])
    assert all((ours.arrays[s] == theirs.arrays[s]).all() for s in "gHJ")
    assert all((ours.arrays[s] != plain.arrays[s]).any() for s in "gHJ")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"errors": "model"}, "set family='poisson' and errors='robust'"),
    (
        {"family": "logistic", "target_bound": None, "rate": None, "exposure": None, "exposure_bound": None},
        "set family",
    ),
    ({"negative_binomial": 0.0}, "negative_binomial must be a number between"),
    ({"negative_binomial": -1.0}, "negative_binomial must be a number between"),
    ({"negative_binomial": math.nan}, "negative_binomial must be a number between"),
    ({"negative_binomial": "1"}, "remove the quotes"),
    ({"negative_binomial": True}, "negative_binomial must be a number between"),
    ({"negative_binomial": 1e-4}, "negative_binomial must be from 0.001 to 1000"),
    ({"negative_binomial": 1001}, "negative_binomial must be from 0.001 to 1000"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_what_is_no_dispersion_is_one_clear_sentence(changes: dict[str, Any], words: str) -> None:
    refused(SchemaError, words, replace, SCHEMA, **changes)


def test_quasi_poisson_errors_are_refused() -> None:
    releases = played(SCHEMA, 4_000, 30.0, rounds=8, frailty=1.0)
    refused(ReleaseError, "omit quasi_poisson", inf.poisson, releases, quasi_poisson=True)


def test_the_dispersion_is_in_the_digest_the_budget_and_the_certificate(tmp_path: Path) -> None:
    course = test_score.course_of(SCHEMA, 4_000, 8.0)
    ps.course.write(tmp_path / "course.toml", course)
    back = ps.course.read(tmp_path / "course.toml")
    assert (back, back.digest) == (course, course.digest)
    digests = {test_score.course_of(replace(SCHEMA, negative_binomial=a), 4_000, 8.0).digest for a in (None, *ALPHAS)}
    assert len(digests) == 1 + len(ALPHAS)
    text = course.first.to_toml()
    assert "negative_binomial = 1.5" in text
    assert any("(1 + 1.5 mean)" in fact for fact in ps.review.facts(course.first))
    certificate = certificate_text(course.first)
    assert check(text, certificate).startswith("holds")
    refused(Refused, "", check, text.replace("negative_binomial = 1.5\n", ""), certificate)
    refused(Refused, "", check, text.replace("negative_binomial = 1.5", "negative_binomial = 1.6"), certificate)


def test_two_csv_files_become_ratios(tmp_path: Path, privstats: Any) -> None:
    _, releases = rehearsed(tmp_path, privstats, SCHEMA, ALPHA)
    text = " ".join(privstats("table", *releases, "--exponentiate", cwd=tmp_path, code=0).stdout.split())
    assert "binomial model of dispersion 1.5" in text
    wrong = privstats("table", *releases, "--quasi-poisson", cwd=tmp_path, code=2)
    assert "omit quasi_poisson" in " ".join((wrong.stdout + wrong.stderr).split())
