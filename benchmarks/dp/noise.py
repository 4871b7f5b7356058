"""Measure how fast noise is drawn and calibrated, compared with other libraries.

    python -m benchmarks.dp.noise [--samples 131072] --save

Each sampler is held against a floor measured in the same run: the keystream and the float64 inverse normal, which
only the table of first bits undercuts, for discrete noise below sigma 64. Libraries that are not
installed are skipped with the reason.
"""

from __future__ import annotations

import argparse
import sys
import types
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.measuring import Row, Rows, Tables, command, least_seconds
from privstats import ClassSchema, RidgeSchema
from privstats.dp import Privacy, calibrate, discrete_gaussian, gaussian_mu, rounded_gaussian
from privstats.errors import PrivstatsError
from privstats.randomness import Generator, secure
from threat_models.audits.accountants import second_opinion

SIGMAS = [4.0, 17.3, 64.0, 2.0**10, 2.0**20, 2.0**31, 2.0**36, 2.0**42, 2.0**46]
TILE = 1 << 13
DELTA = 1e-6


def best(action: Callable[[], object], repeats: int) -> float:
    """Least wall time of some repeats, in seconds; short actions and many repeats get between other processes."""
    return least_seconds({"": action}, repeats)[""]


def floor(samples: int, rng: Generator) -> None:
    """Keystream words to float64 normals, tile by tile, and nothing else."""
    for _ in range(0, samples, TILE):
        words = rng.uint64(TILE).view(np.int64) & np.int64((1 << 63) - 1)
        ndtri((words + 0.5) * 2.0**-64)


def sampler_rates(samples: int, repeats: int) -> Rows:
    """Samples per second of each sampler, and its share of the floor."""
    rng = secure()
    least = samples / best(lambda: floor(samples, rng), repeats)
    rows: list[Row] = [
        {"sampler": "floor: keystream + inverse normal", "sigma": None, "million per s": least / 1e6, "of floor": 1.0}
    ]
    for sampler in (rounded_gaussian, discrete_gaussian):
        for sigma in SIGMAS:
            sampler(sigma, TILE, rng)  # tables are built once
            rate = samples / best(partial(sampler, sigma, samples, rng), repeats)
            rows.append(
                {
                    "sampler": f"privstats {sampler.__name__}",
                    "sigma": sigma,
                    "million per s": rate / 1e6,
                    "of floor": rate / least,
                }
            )
    return [*rows, *other_rates(least, repeats)]


def other_rates(least: float, repeats: int) -> Rows:
    """Measure exact samplers of other libraries, at the sigmas that they can draw in reasonable time."""
    rows: list[Row] = []
    others = (
        ("opendp discrete", opendp_sampler(), 20_000, (17.3, 2.0**20)),
        ("diffprivlib discrete", diffprivlib_sampler(), 200, (17.3,)),
    )
    for name, draw, count, sigmas in others:
        if not callable(draw):
            rows.append({"sampler": f"{name}: skipped, {draw}"})
            continue
        for sigma in sigmas:
            rate = count / best(partial(draw, sigma, count), min(3, repeats))
            rows.append({"sampler": name, "sigma": sigma, "million per s": rate / 1e6, "of floor": rate / least})
    return rows


def opendp_sampler() -> Callable[[float, int], Any] | str:
    """opendp's exact sampler, or why it is missing."""
    try:
        import opendp.prelude as opendp
    except ImportError as error:
        return str(error)
    opendp.enable_features("contrib")

    def draw(sigma: float, count: int) -> Any:
        space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
        return opendp.m.make_gaussian(*space, scale=sigma)([0] * count)

    return draw


def diffprivlib_mechanisms() -> Any:
    """Import diffprivlib's mechanisms alone: its models need an older scikit-learn, and importing them fails."""
    for name in ("diffprivlib.models", "diffprivlib.tools"):
        sys.modules.setdefault(name, types.ModuleType(name))
    import diffprivlib.mechanisms

    return diffprivlib.mechanisms


def diffprivlib_sampler() -> Callable[[float, int], Any] | str:
    """diffprivlib's exact sampler, one sample at a time, or why it is missing."""
    try:
        mechanisms = diffprivlib_mechanisms()
    except ImportError as error:
        return str(error)

    def draw(sigma: float, count: int) -> Any:
        mechanism = mechanisms.GaussianDiscrete(epsilon=1.0, delta=DELTA, sensitivity=1)
        mechanism._scale = sigma
        return [mechanism.randomise(0) for _ in range(count)]

    return draw


def calibration_times(repeats: int, *, others: bool) -> Rows:
    """Milliseconds from a promise to noise levels."""
    class_plan = ClassSchema(100, 512, "NAS", 1.0)
    ridge_plan = RidgeSchema(512, 10, clip_norm=1.0, target_bound=1.0, folds=5)
    rows = []
    for name, schema in (("classes, d = 512, NAS", class_plan), ("ridge, d = 512, 5 folds", ridge_plan)):
        for adjacency in ("add-remove", "replace-one"):
            promise = Privacy(model="distributed", unit="record", adjacency=adjacency, epsilon=1.0, delta=DELTA)
            seconds = best(partial(calibrate, schema, promise, honest_shares=10), repeats)
            rows.append({"what": f"privstats calibrate: {name}, {adjacency}", "ms": seconds * 1e3})
    rows.append({"what": "privstats gaussian_mu alone", "ms": best(lambda: gaussian_mu(1.0, DELTA), repeats) * 1e3})
    return [*rows, *(other_calibrations(repeats) if others else [])]


def other_calibrations(repeats: int) -> Rows:
    """Measure the calibrations of other libraries, with the sigma that they choose at sensitivity 1."""
    rows: list[Row] = []
    try:
        from opacus.accountants.utils import get_noise_multiplier

        for accountant in ("prv", "rdp"):
            promise: dict[str, Any] = {"target_epsilon": 1.0, "target_delta": DELTA, "sample_rate": 1.0, "steps": 1}
            seconds = best(partial(get_noise_multiplier, accountant=accountant, **promise), 2)
            sigma = get_noise_multiplier(accountant=accountant, **promise)
            rows.append({"what": f"opacus get_noise_multiplier ({accountant})", "ms": seconds * 1e3, "sigma": sigma})
    except ImportError as error:
        rows.append({"what": f"opacus: skipped, {error}"})
    try:
        analytic = diffprivlib_mechanisms().GaussianAnalytic
        make = partial(analytic, epsilon=1.0, delta=DELTA, sensitivity=1.0)
        rows.append({"what": "diffprivlib GaussianAnalytic", "ms": best(make, repeats) * 1e3, "sigma": make()._scale})
    except ImportError as error:
        rows.append({"what": f"diffprivlib: skipped, {error}"})
    rows.append({"what": "privstats (exact curve)", "ms": None, "sigma": 1 / gaussian_mu(1.0, DELTA)})
    return rows


def opinions(epsilons: tuple[float, ...]) -> Rows:
    """epsilon of the same calibrated noise by several accountants."""
    rows = []
    schema = ClassSchema(10, 64, "NAB", 1.0)
    for epsilon in epsilons:
        promise = Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
        noise = calibrate(schema, promise, honest_shares=10)
        row: dict[str, Any] = {"ours (exact)": epsilon}
        for accountant in ("dp-accounting", "opacus", "opacus-rdp", "zcdp"):
            try:
                row[accountant] = second_opinion(noise, accountant).epsilon
            except PrivstatsError as error:
                row[accountant] = str(error)
        rows.append(row)
    return rows


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--samples", type=int, default=1 << 17, help="samples per sampler measurement")


def tables(chosen: argparse.Namespace) -> Tables:
    """Samplers, calibration and second opinions."""
    warnings.simplefilter("ignore")
    repeats = 2 if chosen.quick else 100
    yield "samplers", sampler_rates(TILE if chosen.quick else chosen.samples, repeats)
    yield "calibration", calibration_times(repeats, others=not chosen.quick)
    yield "epsilon of the same noise", opinions((1.0,) if chosen.quick else (0.3, 1.0, 3.0, 8.0))


if __name__ == "__main__":
    command("dp.noise", __doc__, tables, options)
