"""Counts of persons who are followed for different times: schema, records, releases, and any two records' bounds."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import privstats as ps
from benchmarks.inference import references
from privstats import inference as inf
from privstats.dp import joint_mu, sensitivity
from privstats.kinds.score_sums import _mapped, own_scores
from privstats.moments import exact_moments
from privstats.schema.public_values import Published, Values
from privstats.transforms import ConstantFeature
from tests import made
from tests.inference import test_score

CONSTANT = (ConstantFeature(1.0),)
BOUND = 10.0
SCHEMA = ps.ScoreSchema(
    3,
    2.0,
    family="poisson",
    target_bound=12.0,
    rate=0.2,
    exposure="years",
    exposure_bound=BOUND,
    transform=CONSTANT,
    feature_names=("treated", "age"),
)
SLOPES = np.array([math.log(0.2), 0.5, 0.4])  # the intercept first: a rate per year
FILES = ("north.csv", "south.csv")


def world(n: int, seed: int = 0, frailty: float = 0.0) -> tuple[Any, Any]:
    """Persons followed for .1 to 10 years, the treated for a shorter time."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.integers(0, 2, n), rng.uniform(-1, 1, n)] * 1.0
    years = np.exp(rng.uniform(math.log(0.1), math.log(BOUND), n)) * np.where(X[:, 0] == 1, 0.5, 1.0)
    own = rng.gamma(1 / frailty, frailty, n) if frailty else 1.0
    return X, np.c_[rng.poisson(years * np.exp(SLOPES[0] + X @ SLOPES[1:]) * own), years]


def at(w: Any) -> Published:
    return Published.of({"w": Values.rounded(np.asarray(w))})


def played(schema: Any, n: int, epsilon: float, rounds: int = 6, frailty: float = 0.0) -> Any:
    """Releases of a course over this world, with noise."""
    return test_score.played(test_score.course_of(schema, n, epsilon, rounds), *world(n, 0, frailty), 0)


def exact(schema: Any, X: Any, y: Any) -> Any:
    """Return the table of eight rounds without noise."""
    return inf.poisson(references.released(ps.Newton.start(schema, *references.terms(len(X)), rounds=8), X, y))


def drawn(data: st.DataObject, schema: Any) -> Any:
    """Draw published weights and two records, finite or not; return their parts, and which records are finite."""
    whole = st.integers(-(1 << 19) + 1, (1 << 19) - 1)
    w = Values(np.array(data.draw(st.lists(whole, min_size=3, max_size=3)), np.int64), data.draw(st.integers(-8, 30)))
    number = st.floats(-9, 9) | st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0])
    rows = np.array(data.draw(st.lists(st.lists(number, min_size=2, max_size=2), min_size=2, max_size=2)))
    count = st.floats(-3, 40) | st.sampled_from([math.nan, math.inf, -math.inf, 1e308, 12.0, 0.0, -0.0])
    counts = data.draw(st.lists(count, min_size=2, max_size=2))
    shares = np.array(data.draw(st.lists(st.floats(0, 1, exclude_min=True), min_size=2, max_size=2)))
    with np.errstate(all="ignore"):
        return _mapped(schema, rows, np.column_stack([counts, np.maximum(shares * BOUND, 5e-324)]), w)


def assert_bounded(data: st.DataObject, schema: Any, parts: Any, claimed: Any, letters: str = "gHJ") -> None:
    """Fail where one of two records, or their difference, moves the sums by more than the bound of a schema.

    Args:
        data: draws the noise of each sum.
        schema: the schema of the records.
        parts: what ``drawn`` returns of each record.
        claimed: the schema whose bound is claimed.
        letters: the sums.
    """
    (unit, residuals, roots, fits), steps = parts, schema.grid_steps
    scores = own_scores(unit, residuals, steps)
    assert (np.abs(residuals) <= steps).all()
    assert (np.vecdot(roots, roots) <= steps**2).all()
    outer = {"H": roots, "J": scores}
    terms = {"g": unit * residuals[:, None], **{s: a[:, :, None] * a[:, None, :] for s, a in outer.items()}}
    if "Q" in letters:
        terms |= {"Q": np.square(fits[:, 0]), "V": np.square(fits[:, 1])}
    sigmas: dict[str, float] = {
        s: data.draw(st.floats(0.1, 10)) * sensitivity(claimed, s, "add-remove") for s in letters
    }

    def moved(change: Any) -> Any:
        return sum(np.square(change(terms[s])).sum() / (sigmas[s] * schema.scale_of(s)) ** 2 for s in letters)

    rounding = 1 + 8 / steps
    assert moved(lambda v: v[0]) <= joint_mu(claimed, sigmas, "add-remove") ** 2 * rounding
    assert moved(lambda v: v[0] - v[1]) <= joint_mu(claimed, sigmas, "replace-one") ** 2 * rounding


def person_sums(schema: Any, X: Any, y: Any, persons: Any, **how: Any) -> Any:
    """Return exact sums at fixed weights, where the rows of a person are clipped together."""
    promise = made.promise(unit="person", max_records_per_person=2, person_clip=2.0)
    clip = made.plan(schema, ps.Cohort(2, 2, 100), promise, published=Published("1" * 64)).person_clip
    return exact_moments(schema, X, y, persons=persons, published=at([0.3, -0.2, 0.1]), person_clip=clip, **how)


def rehearsed(folder: Path, privstats: Any, schema: Any, frailty: float = 0.0) -> tuple[Any, list[str]]:
    """Rehearse a course over ``FILES``; return what the command printed, and the names of its releases."""
    X, y = world(20_000, 0, frailty)
    frame = pd.DataFrame({"treated": X[:, 0], "age": X[:, 1], "falls": y[:, 0].astype(int), "years": y[:, 1]})
    for place, name in enumerate(FILES):
        frame[place::2].to_csv(folder / name, index=False)
    ps.course.write(folder / "course.toml", test_score.course_of(schema, 20_000, 30.0, 6))
    words = ("course", "rehearse", "course.toml", *FILES, "--target", "falls", "--out", "out")
    done = privstats(*words, cwd=folder, code=0)
    return done, sorted(f"out/{each.name}" for each in (folder / "out").glob("*.release"))
