"""Records of many sites: what each way shows of one site, and whether its intervals cover."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import numpy as np
from scipy.optimize import minimize_scalar

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, Peer, ends_at, plan_of, promise, ran
from privstats import course as courses
from privstats import inference as inf
from privstats.randomness import Generator
from privstats.transforms import ConstantFeature

__all__ = ["Sites", "logistic_peers", "site_peers"]

SLOPES = np.array([0.3, -0.2])
_SUM = "the sum over all sites"
_NAMES = ("a", "b")


@dataclass(frozen=True, eq=False)
class Sites:
    """Columns and outcomes of every site."""

    parts: Sequence[tuple[Array, Array]]

    @classmethod
    def draw(cls, sites: int, records: int, chance: np.random.Generator) -> Sites:
        """Sites that differ in level, and in columns along with it."""
        parts = []
        for level in chance.normal(scale=0.3, size=sites):
            X = np.clip(0.3 * level + chance.uniform(-0.8, 0.8, (records, 2)), -1, 1)
            parts.append((X, np.clip(level + X @ SLOPES + chance.normal(scale=0.3, size=records), -2, 2)))
        return cls(parts)

    @classmethod
    def draw_binary(cls, sites: int, records: int, chance: np.random.Generator) -> Sites:
        """Draw binary outcomes from the same model at all sites."""
        X = chance.uniform(-1, 1, (sites, records, 2))
        y = (chance.random((sites, records)) < 1 / (1 + np.exp(0.4 - X @ (2 * SLOPES)))).astype(int)
        return cls(list(zip(X, y, strict=True)))

    @property
    def pooled(self) -> tuple[Array, Array, Array]:
        """All columns, all outcomes, and the sites' numbers."""
        X, y = (np.concatenate(each) for each in zip(*self.parts, strict=True))
        return X, y, np.repeat(np.arange(len(self.parts)), [len(y) for _, y in self.parts])


def site_peers(sites: int, records: int, epsilons: Sequence[float]) -> list[Peer[Sites]]:
    """Two slopes, sites of ``records`` records."""
    within = ps.SitesSchema(3, clip_norm=math.sqrt(3), target_scale=2.0, feature_names=_NAMES)
    pulls = ps.SitesSchema(
        4, 2.0, target_scale=2.0, pulls=(0.4, 4.0, 30.0), transform=(ConstantFeature(1.0),), feature_names=_NAMES
    )
    exact, of_pulls = (plan_of(schema, sites, sites * records, None) for schema in (within, pulls))
    raw, sums = records * 3 * 8, 8 * (10 + 1)
    fixed = [plan_of(within, sites, sites * records, epsilon, "distributed") for epsilon in epsilons]
    return [
        Peer("statsmodels OLS, sites ignored", "statsmodels", None, raw, "every record", partial(_pooled, "none")),
        Peer("statsmodels OLS with dummies", "statsmodels", None, raw, "every record", partial(_pooled, "dummies")),
        Peer("statsmodels MixedLM", "statsmodels", None, raw, "every record", partial(_pooled, "mixed")),
        Peer("DerSimonian-Laird (1986)", "", None, 8 * 4, "every site's coefficients and errors", _dersimonian),
        Peer(
            "DLMM, as pda's authors published it (Luo 2022)",
            "",
            None,
            sums,
            "every site's X'X, X'y, y'y: its size, means and covariances",
            _dlmm,
        ),
        Peer("`mixed`, three pulls", "privstats", None, of_pulls.masking.upload_bytes, _SUM, partial(_mixed, of_pulls)),
        Peer("`fixed_effects`, no noise", "privstats", None, exact.masking.upload_bytes, _SUM, partial(_fixed, exact)),
        *(
            Peer(
                "`fixed_effects`",
                "privstats",
                epsilon,
                plan.masking.upload_bytes,
                "the noisy sum over all sites",
                partial(_fixed, plan),
            )
            for epsilon, plan in zip(epsilons, fixed, strict=True)
        ),
    ]


def logistic_peers(sites: int, records: int, epsilons: Sequence[float]) -> list[Peer[Sites]]:
    """Two slopes and an intercept of a logistic regression."""
    schema = ps.ScoreSchema(3, math.sqrt(3), transform=(ConstantFeature(1.0),), feature_names=_NAMES, errors="model")
    cohort = ps.Cohort(sites, sites, 2 * sites * records)
    started = [ps.Newton.start(schema, cohort, promise(epsilon, "distributed")) for epsilon in epsilons]
    return [
        Peer("statsmodels Logit", "statsmodels", None, records * 3 * 8, "every record", _logit),
        Peer(
            "ODAL, as pda's authors published it (Duan 2020)",
            "",
            None,
            8 * 3,
            "every site's score at the pilot's estimate, and that estimate",
            _odal,
        ),
        *(
            Peer(
                "`logit`, four rounds",
                "privstats",
                epsilon,
                4 * course.first.masking.upload_bytes,
                "four noisy sums over all sites",
                partial(_newton, course),
            )
            for epsilon, course in zip(epsilons, started, strict=True)
        ),
    ]


def _pooled(levels: str, world: Sites, _: Generator) -> Answer:
    sm = import_module("statsmodels.api")
    X, y, site = world.pooled
    if levels == "mixed":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = sm.MixedLM(y, sm.add_constant(X), groups=site).fit()
        return Answer.of(found.fe_params[1:], found.conf_int()[1:3], SLOPES)
    beside = np.ones((len(y), 1)) if levels == "none" else np.eye(len(world.parts))[site]
    found = sm.OLS(y, np.c_[X, beside]).fit()
    return Answer.of(found.params[:2], found.conf_int()[:2], SLOPES)


def _dersimonian(world: Sites, _: Generator) -> Answer:
    """Every site fits; coefficients are averaged with the variance between sites by moments."""
    fits = [_least_squares(np.c_[np.ones(len(y)), X], y) for X, y in world.parts]
    b, v = np.array([fit[0][1:] for fit in fits]), np.array([fit[1][1:] for fit in fits])
    w = 1 / v
    mean = (w * b).sum(axis=0) / w.sum(axis=0)
    excess = (w * (b - mean) ** 2).sum(axis=0) - (len(b) - 1)
    between = np.maximum(excess / (w.sum(axis=0) - (w**2).sum(axis=0) / w.sum(axis=0)), 0.0)
    w = 1 / (v + between)
    return ends_at((w * b).sum(axis=0) / w.sum(axis=0), np.sqrt(1 / w.sum(axis=0)), SLOPES)


def _least_squares(X: Array, y: Array) -> tuple[Array, Array]:
    inverse = np.linalg.inv(X.T @ X)
    b = inverse @ X.T @ y
    return b, np.diag(inverse) * float(np.square(y - X @ b).sum()) / (len(y) - len(b))


def _dlmm(world: Sites, _: Generator) -> Answer:
    """REML of a random intercept from every site's products: nothing is lost beside the pooled records."""
    products = [Z.T @ Z for Z in (np.c_[np.ones(len(y)), X, y] for X, y in world.parts)]
    sizes = np.array([P[0, 0] for P in products])
    free = sizes.sum() - 3

    def at(ratio: float) -> tuple[Array, float]:
        T = sum(P - ratio / (1 + ratio * P[0, 0]) * np.outer(P[0], P[0]) for P in products)
        return T, float(T[-1, -1] - T[:-1, -1] @ np.linalg.solve(T[:-1, :-1], T[:-1, -1]))

    def deviance(log_ratio: float) -> float:
        T, left = at(math.exp(log_ratio))
        spread = float(np.log1p(math.exp(log_ratio) * sizes).sum())
        return float(free * math.log(left)) + spread + float(np.linalg.slogdet(T[:-1, :-1])[1])

    T, left = at(math.exp(minimize_scalar(deviance, bounds=(-10, 5), method="bounded").x))
    inverse = np.linalg.inv(T[:-1, :-1])
    return ends_at((inverse @ T[:-1, -1])[1:], np.sqrt(np.diag(inverse) * left / free)[1:], SLOPES)


def _fixed(plan: ps.Plan, world: Sites, rng: Generator) -> Answer:
    return _of_table(inf.fixed_effects(ran(plan, world.parts, rng)), SLOPES)


def _mixed(plan: ps.Plan, world: Sites, rng: Generator) -> Answer:
    table = inf.mixed(ran(plan, world.parts, rng), sizes=(100, 1_000))
    return Answer.of(table.params[1:], table.conf_int()[1:], SLOPES)


def _of_table(table: inf.Regression, truth: Array) -> Answer:
    return Answer.of(np.where(table.reported, table.params, np.nan), table.conf_int(), truth)


_LOGISTIC = np.array([-0.4, *(2 * SLOPES)])


def _logit(world: Sites, _: Generator) -> Answer:
    sm = import_module("statsmodels.api")
    X, y, _site = world.pooled
    found = sm.Logit(y, sm.add_constant(X)).fit(disp=0)
    return Answer.of(found.params, found.conf_int(), _LOGISTIC)


def _odal(world: Sites, _: Generator) -> Answer:
    """The first site's likelihood, tilted by the others' mean score at its estimate, and its own curvature."""
    parts = [(np.c_[np.ones(len(y)), X], y) for X, y in world.parts]
    (X0, y0), records = parts[0], sum(len(y) for _, y in parts)
    pilot = _maximum(X0, y0, np.zeros(3))
    means = [X.T @ (y - _mean(X @ pilot)) for X, y in parts]
    tilt = np.sum(means, axis=0) / records - means[0] / len(y0)
    found = _maximum(X0, y0, tilt)
    m = _mean(X0 @ found)
    information = (X0 * (m * (1 - m))[:, None]).T @ X0 / len(y0)
    return ends_at(found, np.sqrt(np.diag(np.linalg.inv(information)) / records), _LOGISTIC)


def _maximum(X: Array, y: Array, tilt: Array) -> Array:
    """Newton's method on the mean log-likelihood of a logistic model plus ``tilt @ b``."""
    b = np.zeros(X.shape[1])
    for _ in range(25):
        m = _mean(X @ b)
        b = b + np.linalg.solve((X * (m * (1 - m))[:, None]).T @ X / len(y), X.T @ (y - m) / len(y) + tilt)
    return b


def _mean(fitted: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-fitted)))


def _newton(course: ps.Newton, world: Sites, rng: Generator) -> Answer:
    releases = courses.run(course, lambda node: ran(node.plan, world.parts, rng))
    return _of_table(inf.logit(releases), _LOGISTIC)
