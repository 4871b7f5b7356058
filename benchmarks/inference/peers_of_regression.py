"""Regression at one party's level of noise: ours, the textbook's formula on our noise, AdaSSP, OpenDP's Theil-Sen."""

from __future__ import annotations

import math
import warnings
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Peer, dealt, ends_at, plan_of, ran, textbook
from privstats import inference as inf
from privstats.randomness import Generator
from privstats.transforms import ConstantFeature
from threat_models.audits.inference import World

__all__ = ["line_peers", "regression_peers"]

CLIENTS = 4
_SUMS = "the noisy sum over all parties"


def schema_of(columns: int) -> ps.RidgeSchema:
    """Columns and a constant, rows of norm at most sqrt(columns + 1)."""
    return ps.RidgeSchema(
        columns + 1, clip_norm=math.sqrt(columns + 1), target_bound=2.0, transform=(ConstantFeature(1.0),)
    )


def regression_peers(schema: ps.RidgeSchema, records: int, epsilon: float) -> list[Peer[World]]:
    """Return the peers for worlds of the audit: correlated columns, an intercept, normal errors."""
    raw = records // CLIENTS * 8 * schema.features
    plan, exact = (plan_of(schema, CLIENTS, records, each, "distributed") for each in (epsilon, None))
    return [
        Peer("statsmodels OLS, pooled records", "statsmodels", None, raw, "every record", _statsmodels),
        Peer("`ols`, no noise", "privstats", None, exact.masking.upload_bytes, "the sum", partial(_ours, exact)),
        Peer("`ols`", "privstats", epsilon, plan.masking.upload_bytes, _SUMS, partial(_ours, plan)),
        Peer(
            "the textbook's formula on the same noisy sums",
            "privstats",
            epsilon,
            plan.masking.upload_bytes,
            _SUMS,
            partial(_naive, plan),
        ),
        Peer(
            "AdaSSP (Wang 2018), textbook's formula with the exact residual variance given",
            "",
            epsilon,
            raw,
            "every record, to one curator",
            partial(_adassp, schema, epsilon),
        ),
    ]


def line_peers(schema: ps.RidgeSchema, records: int, epsilon: float) -> list[Peer[World]]:
    """One feature and an intercept: the slope."""
    plan = plan_of(schema, CLIENTS, records, epsilon, "distributed")
    return [
        Peer("`ols`", "privstats", epsilon, plan.masking.upload_bytes, _SUMS, partial(_ours, plan, first=1)),
        Peer(
            "OpenDP's private Theil-Sen, pure epsilon; it has no intervals",
            "opendp",
            epsilon,
            records // CLIENTS * 16,
            "every record, to one curator",
            partial(_theil_sen, schema, epsilon),
        ),
    ]


def _statsmodels(world: World, _: Generator) -> Answer:
    sm = import_module("statsmodels.api")
    found = sm.OLS(world.y, sm.add_constant(world.X)).fit()
    return Answer.of(found.params, found.conf_int(), world.truth)


def _ours(plan: ps.Plan, world: World, rng: Generator, *, first: int = 0) -> Answer:
    table = inf.ols(ran(plan, dealt(world.X, world.y, CLIENTS), rng), cov_type="nonrobust")
    estimate = np.where(table.reported, table.params, np.nan)
    return Answer.of(estimate[first:], table.conf_int()[first:], world.truth[first:])


def _naive(plan: ps.Plan, world: World, rng: Generator) -> Answer:
    table = inf.ols(ran(plan, dealt(world.X, world.y, CLIENTS), rng), cov_type="nonrobust")
    return Answer(table.errors.estimate, *textbook(table), world.truth)


def _adassp(schema: ps.RidgeSchema, epsilon: float, world: World, rng: Generator, delta: float = 1e-6) -> Answer:
    """Algorithm 2 of Wang (2018), "Revisiting differentially private linear regression"."""
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    X, y, d = np.c_[np.ones(len(world.y)), world.X], world.y, schema.features
    R2, third, log6 = schema.clip_norm**2, epsilon / 3, math.log(6 / delta)
    noise = np.triu(chance.normal(size=(d, d)))
    G = X.T @ X
    least = float(np.linalg.eigvalsh(G)[0]) + math.sqrt(log6) / third * R2 * chance.normal() - log6 / third * R2
    penalty = max(0.0, math.sqrt(d * log6 * math.log(2 * d * d / 0.05)) * R2 / third - max(least, 0.0))
    shifted = G + math.sqrt(log6) / third * R2 * (noise + np.triu(noise, 1).T) + penalty * np.eye(d)
    bound = math.sqrt(R2) * schema.target_bound
    w = np.linalg.solve(shifted, X.T @ y + math.sqrt(log6) / third * bound * chance.normal(size=d))
    residual = float(np.square(y - X @ np.linalg.lstsq(X, y, rcond=None)[0]).sum()) / (len(y) - d)
    return ends_at(w, np.sqrt(residual * np.abs(np.diag(np.linalg.inv(shifted)))), world.truth)


def _theil_sen(schema: ps.RidgeSchema, epsilon: float, world: World, rng: Generator) -> Answer:
    """OpenDP's noise is the operating system's; its pairs are numpy's."""
    prelude: Any = import_module("opendp.prelude")
    prelude.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    np.random.seed(int.from_bytes(rng.bytes(4), "little"))
    room, bound = math.sqrt(schema.clip_norm**2 - 1), schema.target_bound

    def model(scale: float) -> Any:
        bounds = {"x_bounds": [(-room, room)], "y_bounds": (-bound, bound), "runs": 1}
        return prelude.sklearn.linear_model.LinearRegression(prelude.max_divergence(), scale=scale, **bounds)

    scale = model(1.0).measurement.map(1) / epsilon * (1 + 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model(scale).fit(X=world.X, y=world.y)
    return Answer(np.array([found.coef_[0]], np.float64), None, None, world.truth[1:])
