"""Effects over sites: how often "the same at all sites" is rejected, and how intervals of pooled effects, of ratios and
of trials whose sites differ in probability cover.

    python -m benchmarks.inference.effects_by_site --save

Records through every session of the course and the public reader; a site is a client.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Array, promise
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Tables, command
from privstats.randomness import Generator, seeded
from threat_models.audits.effect_worlds import played

NAME = "inference.effects_by_site"
RANGES = dict.fromkeys(("a", "b"), (-1.0, 1.0))
SAME = (
    (24, 400, 8, 8.0, 0.0),
    (24, 400, 8, 3.0, 0.0),
    (24, 400, 8, 1.0, 0.0),
    (18, 300, 6, 3.0, 0.0),
    (48, 200, 16, 3.0, 0.0),
    (24, 400, 8, 3.0, 0.5),
)
DIFFERING = ((24, 400, 8, 3.0, 0.05), (24, 400, 8, 8.0, 0.1), (24, 400, 8, 1.0, 0.1))
RATIOS = (
    (0.3, 1.5, 0.5, 2_000, 1.0),
    (0.3, 1.5, 0.5, 2_000, 8.0),
    (0.1, 2.0, 0.5, 10_000, 1.0),
    (0.1, 0.5, 0.5, 2_000, 8.0),
    (0.1, 2.0, 0.3, 2_000, 3.0),
    (0.3, 2.0, 0.5, 500, 8.0),
    (0.3, 1.0, 0.5, 500, 1.0),
    (0.05, 3.0, 0.1, 10_000, 8.0),
)
PLACES = ((500, 1.0), (2_000, 1.0), (2_000, 8.0))
SLOPES = np.array([0.4, -0.2])


def tables(options: argparse.Namespace) -> Tables:
    """Effects that are the same, that differ; ratios; probabilities by place."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    groups: dict[str, Callable[[], list[Row]]] = {
        "the same effect at all sites": lambda: [between(*cell, 0.0, runs) for cell in SAME[:few]],
        "effects that differ between sites": lambda: [
            between(*cell[:4], 0.0, cell[4], runs) for cell in DIFFERING[:few]
        ],
        "ratios of risks": lambda: [ratio(*cell, runs) for cell in RATIOS[:few]],
        "probabilities by place": lambda: [places(*cell, runs) for cell in PLACES[:few]],
    }
    for title, rows in groups.items():
        if options.only in title:
            yield title, rows()


def between(sites: int, each: int, groups: int, epsilon: float, unequal: float, spread: float, runs: int) -> Row:
    """A trial whose groups of sites differ in the residual's standard deviation by exp(+-``unequal``), and whose sites'
    effects have a standard deviation ``spread``."""
    schema = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=0.5, groups=groups)
    course = ps.Effect.start(schema, ps.Cohort(sites, sites, 2 * sites * each), promise(epsilon))
    chance, rng = _chances("between", sites, each, groups, epsilon, unequal, spread)
    site, found = np.arange(sites * each) % sites, []
    deviations = 0.2 * np.exp(unequal * np.linspace(-1, 1, groups))[site % groups]
    for _ in range(runs):
        u, arm = chance.uniform(-1, 1, (len(site), 2)), chance.integers(0, 2, len(site))
        effects = 0.1 + spread * chance.normal(size=sites)[site]
        apart = deviations * chance.uniform(-(3**0.5), 3**0.5, len(site))  # within the range, so that none is cut
        y = np.clip(u @ SLOPES / 2 + arm * effects + apart, -1, 1)
        table = ps.inference.effect(played(course, np.c_[u, arm], y, rng))
        spread_found = table.heterogeneity()
        low, high = spread_found.pooled_int()
        least, most = spread_found.mean_int()
        missed = not low <= 0.1 <= high, not least <= 0.1 <= most
        found.append((spread_found.p_value < 0.05, spread_found.site_sd, spread_found.i_squared, *missed))
    rejected, *_ = shares = np.array(found, float).mean(axis=0)
    return {
        "sites": sites,
        "records each": each,
        "groups": groups,
        "epsilon": epsilon,
        "deviations differ by": math.exp(2 * unequal),
        "deviation between sites": spread,
        "runs": runs,
        "rejected": float(rejected),
        **ends(round(rejected * runs), runs),
        "site sd": float(np.median([row[1] for row in found])),
        "I2": float(np.median([row[2] for row in found])),
        "pooled missed": float(shares[3]),
        "mean missed": float(shares[4]),
    }


def ratio(risk: float, truth: float, pi: float, records: int, epsilon: float, runs: int) -> Row:
    """A trial of a 0/1 outcome whose risk follows two columns, and its ratio."""
    schema = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(0, 1), probability=pi, measure="ratio")

    def drawn(chance: np.random.Generator) -> tuple[Array, Array]:
        u, arm = np.clip(0.4 * chance.normal(size=(records, 2)), -1, 1), chance.random(records) < pi
        mean = risk * (1 + u @ SLOPES) * np.where(arm, truth, 1.0)
        return np.c_[u, arm], chance.random(records) < mean

    row = {"risk": risk, "ratio": truth, "probability": pi}
    return {**row, **_covered(schema, 2, drawn, truth, records, epsilon, runs)}


def places(records: int, epsilon: float, runs: int) -> Row:
    """A trial at four sites that assign by .5, .4, .3 and .2, and differ in level."""
    chances = (0.5, 0.4, 0.3, 0.2)
    schema = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=chances)
    site = np.arange(records) % len(chances)

    def drawn(chance: np.random.Generator) -> tuple[Array, Array]:
        u, arm = chance.uniform(-1, 1, (records, 2)), chance.random(records) < np.array(chances)[site]
        y = u @ SLOPES / 2 + 0.15 * site - 0.2 + 0.1 * arm + 0.2 * chance.normal(size=records)
        return np.c_[u, arm], np.clip(y, -1, 1)

    return {"probabilities": ".5 .4 .3 .2", **_covered(schema, 4, drawn, 0.1, records, epsilon, runs)}


def _covered(
    schema: ps.EffectSchema,
    clients: int,
    drawn: Callable[[np.random.Generator], tuple[Array, Array]],
    truth: float,
    records: int,
    epsilon: float,
    runs: int,
) -> Row:
    course = ps.Effect.start(schema, ps.Cohort(clients, clients, 2 * records), promise(epsilon))
    chance, rng = _chances(schema.measure, schema.probability, truth, records, epsilon)
    reported, missed, widths = 0, 0, list[float]()
    for _ in range(runs):
        table = ps.inference.effect(played(course, *drawn(chance), rng))
        low, high = table.conf_int()
        reported, missed = reported + table.reported, missed + (not low <= truth <= high)
        widths += [(high - low) / 2] * table.reported
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": reported / runs,
        "reported and missed": missed / runs,
        **ends(missed, runs),
        "half width": float(np.median(widths)) if widths else math.inf,
    }


def _chances(*name: object) -> tuple[np.random.Generator, Generator]:
    seed = zlib.crc32(repr(name).encode())
    return np.random.default_rng(seed), seeded(seed)


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
