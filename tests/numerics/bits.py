"""Everything of which the library says that every machine gets the same bits: ``python -m tests.numerics.bits``.

A claim is a function here. Printed is the SHA-256 of what each claims, as JSON.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from privstats import transforms as T
from privstats.dp import samplers
from privstats.encoding import flatten
from privstats.kinds import CalibrationSchema, GradientSchema
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from privstats.transforms.exact import row_norms
from privstats.transforms.random_maps import cosine_of_turns
from tests.brought import bring_modules

__all__ = ["SAMPLERS", "digests"]

_D, _C = 70, 11
_CHAINS = (
    (T.CentreRows(), T.UnitNorm()),
    (T.GaussianProjection(7, _D, 33),),
    (T.SparseProjection(7, _D, 33),),
    (T.OrthogonalProjection(7, _D, 40),),
    (T.RandomReLU(7, _D, 90, keep_inputs=True),),
    (T.RandomFourier(7, _D, 64, bandwidth=4.0),),
)
_COHORT = ps.Cohort(20, 15, 30_000, colluders=1)
SAMPLERS = tuple(
    each
    for name, each in vars(samplers).items()
    if inspect.isfunction(each) and each.__module__ == samplers.__name__ and not name.startswith("_")
)
"""Every sampler of noise: the public functions of their module."""


def _records(count: int, seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Rows of sizes from a thousandth to a thousand: bits of a generator, and powers of two."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-(2**30), 2**30, (count, _D)) * 2.0 ** rng.integers(-40, -20, (count, 1))
    return rows, rng.integers(0, _C, count)


def _batched(schema: Any, X: Any, y: Any, published: Any = None) -> Iterable[bytes]:
    """The sums of the records whole, and of batches of several sizes."""
    for size in (1, 7, 64, len(X)):
        count = min(len(X), 40 * size)
        batches = ((X[at : at + size], y[at : at + size]) for at in range(0, count - count % size, size))
        yield flatten(ps.measure(schema, batches, published=published)).tobytes()


def transforms() -> Iterable[bytes]:
    X, _ = _records(300)
    for chain in _CHAINS:
        yield T.apply(chain, X).astype("<f8").tobytes()
        yield T.apply(chain, np.asfortranarray(X[:7])).astype("<f8").tobytes()


def norms_and_cosines() -> Iterable[bytes]:
    X, _ = _records(300)
    yield row_norms(X).norms.tobytes()
    yield cosine_of_turns(X[:, 0]).tobytes()


def class_sums() -> Iterable[bytes]:
    for chain in ((), *_CHAINS):
        schema = ps.ClassSchema(_C, T.output_features(chain, _D), "NABS", 1.0, transform=chain)
        yield from _batched(schema, *_records(150))


def ridge_sums() -> Iterable[bytes]:
    X, _ = _records(400)
    schema = ps.RidgeSchema(_D - 2, 2, clip_norm=1.0, target_bound=2.0, folds=3)
    yield from _batched(schema, X[:, 2:], X[:, :2])


def within_sums() -> Iterable[bytes]:
    X, y = _records(400)
    yield flatten(ps.measure(ps.WithinSchema(_C, _D, 8.0, pull=0.1, n_max=500), X, y)).tobytes()


def directions_of_parties() -> Iterable[bytes]:
    X, y = _records(400)
    order = np.random.default_rng(5).permutation(len(X))
    for chain in ((), *_CHAINS):
        schema = ps.PartySchema(_C, T.output_features(chain, _D), transform=chain)
        yield from _batched(schema, X, y)
        yield flatten(ps.measure(schema, np.asfortranarray(X[order]), y[order])).tobytes()


def updates_of_parties() -> Iterable[bytes]:
    X, y = _records(400)
    start = np.random.default_rng(4).integers(-(2**19), 2**19, (_C, _D)) / 2**15
    yield from _batched(ps.PartyUpdateSchema(_C, _D), X, y, Published.of({"W": Values.rounded(start)}))


def _said(c: int, *, softmax: bool) -> Published:
    rng = np.random.default_rng(3)
    M, W = rng.integers(-(2**19), 2**19, (_D, _D)) / 2**18, rng.integers(-(2**19), 2**19, (c, _D + 1)) / 2**16
    values = {"M": Values.rounded(M + M.T)}
    return Published.of(values | ({"W": Values.rounded(W)} if softmax else {"w": Values.rounded(W[0, :_D] / 16)}))


def rounds_of_a_refinement() -> Iterable[bytes]:
    X, y = _records(2100)
    terms = {"expected_records": 9, "course_mu": 1.0}
    softmax = GradientSchema(_D, _C, residual_norm=0.3, transform=(T.UnitNorm(),), **terms)
    yield from _batched(softmax, X, y, _said(_C, softmax=True))
    ridge = GradientSchema(_D, residual_norm=1.0, clip_norm=2.0, target_bound=3.0, **terms)
    said = Published.of({**_said(1, softmax=False).read(), "c": Values.rounded(0.8)})
    yield from _batched(ridge, X, X[:, 7], said)
    sure = CalibrationSchema(_D, _C, transform=(T.UnitNorm(),), **terms)
    yield from _batched(sure, X, y, _said(_C, softmax=True))


def published_values() -> Iterable[bytes]:
    yield _said(_C, softmax=True).sha256.encode()


def noise_of(law: Callable[..., Any]) -> Callable[[], Iterable[bytes]]:
    """A sampler's noise of one seed, as a claim that has the sampler's name."""

    def claim() -> Iterable[bytes]:
        for scale in (0.7, 5.5, 700.25, 3.1e6):
            yield law(scale, 20_000, seeded(1)).tobytes()

    claim.__name__ = f"noise_of_{law.__name__}"
    return claim


def weights_of_streams() -> Iterable[bytes]:
    from privstats.contrib.streams.mechanisms import coefficients

    yield json.dumps(coefficients(64)).encode()


def plans() -> Iterable[bytes]:
    terms = {"unit": "record", "adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-6}
    for model in ("central", "distributed", "local"):
        for schema in (ps.ClassSchema(_C, _D, "NAB", 1.0), ps.RidgeSchema(_D, 2, clip_norm=1.0, target_bound=2.0)):
            plan = ps.Plan(schema=schema, cohort=_COHORT, privacy=ps.Privacy(model=model, **terms))
            yield plan.digest.encode()
            yield repr(plan.ring).encode()


def pairs_of_synthetic_rows() -> Iterable[bytes]:
    """Pairs chosen from noisy counts, and their models: a ring of columns, of which one is there twice."""
    from privstats.contrib.synthetic.choice import Screened, chosen_pairs
    from privstats.contrib.synthetic.projection import projected

    rng = np.random.default_rng(6)
    for many, cells, noise in ((6, 4, 40), (12, 9, 300)):
        step = rng.integers(0, 2, (20_000, many)).cumsum(axis=1) % cells
        codes = np.column_stack([step, step[:, 0]])
        tables = {
            (a, b): np.bincount(codes[:, a] * cells + codes[:, b], minlength=cells**2).reshape(cells, cells)
            + rng.integers(-noise, noise + 1, (cells, cells)).astype(float)
            for a, b in combinations(range(many + 1), 2)
        }
        screened = Screened(tables, noise / 3**0.5, (cells,) * (many + 1), noise / 2)
        chosen = chosen_pairs(screened)
        yield json.dumps(chosen).encode()
        model = screened.model(chosen)
        for pair in tables:
            yield projected(model, pair).astype("<f8").tobytes()
            yield np.float64(screened.score(pair, projected(model, pair))).tobytes()


def no_claim() -> Iterable[bytes]:
    """The weakened double: a plain product, of which nobody says that it is the same everywhere."""
    X, _ = _records(300)
    yield (X @ X.T).tobytes()


def tensors() -> Iterable[bytes]:
    """Sums of torch's tensors, where torch is installed."""
    import torch

    X, y = _records(150)
    for chain in ((), *_CHAINS):
        schema = ps.ClassSchema(_C, T.output_features(chain, _D), "NABS", 1.0, transform=chain)
        yield flatten(ps.measure(schema, torch.tensor(X), torch.tensor(y))).tobytes()


def rounds_of_a_module() -> Iterable[bytes]:
    """Sums of the gradients that Opacus gives of a module, where it is installed."""
    bring_modules()
    terms = {"expected_records": 9, "course_mu": 1.0, "module": "adapter/24", "transform": (T.UnitNorm(),)}
    schema = GradientSchema(_D, _C, residual_norm=1.0, **terms)
    w = np.random.default_rng(4).integers(-(2**19), 2**19, schema.sizes["feature"]) / 2**18
    said = Published.of({"M": _said(_C, softmax=True).read()["M"], "w": Values.rounded(w)})
    yield from _batched(schema, *_records(300), said)


CLAIMS: tuple[Callable[[], Iterable[bytes]], ...] = (
    transforms,
    norms_and_cosines,
    class_sums,
    ridge_sums,
    within_sums,
    directions_of_parties,
    updates_of_parties,
    rounds_of_a_refinement,
    published_values,
    *map(noise_of, SAMPLERS),
    plans,
)
CONTRIBUTED = {"streams": weights_of_streams, "synthetic": pairs_of_synthetic_rows}
"""Claims of rooms of contrib, by room."""


def digests(*, torch: bool = False) -> dict[str, str]:
    """SHA-256 of each claim by its name, and of what is none."""
    more = tuple(
        claim
        for claim, package in ((tensors, "torch"), (rounds_of_a_module, "opacus"))
        if torch and importlib.util.find_spec(package)
    )
    folder = Path(ps.__file__).parent / "contrib"
    contributed = (claim for room, claim in CONTRIBUTED.items() if (folder / room).is_dir())
    every = (*CLAIMS, *contributed, *more, no_claim)
    return {each.__name__: hashlib.sha256(b"".join(each())).hexdigest() for each in every}


if __name__ == "__main__":
    import sys

    print(json.dumps(digests(torch="--torch" in sys.argv)))
