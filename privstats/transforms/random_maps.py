"""Map features randomly, from a public seed.

Matrices are expanded by SHAKE-256 (FIPS 202). Rows are rounded to integers and multiplied exactly, so parties have one
map, bit for bit. Public by design: never a source of privacy noise.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.errors import SchemaError
from privstats.transforms.base import Transform
from privstats.transforms.exact import Rows, arrays_of, product, scaled_rows, unscaled

GAUSSIAN_SCALE = 256
"""Grid steps per standard deviation in :func:`gaussian_matrix`."""
GAUSSIAN_BITS = 12
"""Entries of :func:`gaussian_matrix` are below 2**12 in absolute value: 16 standard deviations; the maximum is 10."""

_TAIL = 10 * GAUSSIAN_SCALE


def expand_words(seed: int, purpose: str, count: int) -> NDArray[np.uint64]:
    """Return ``count`` uniform 64-bit words: SHAKE-256 of ``privstats|purpose|seed``, little-endian."""
    message = domains.RANDOM_MAP % (purpose.encode(), seed)
    return np.frombuffer(hashlib.shake_256(message).digest(8 * count), "<u8").astype(np.uint64, copy=False)


def gaussian_matrix(seed: int, purpose: str, rows: int, columns: int) -> NDArray[np.float64]:
    """Return integers of the discrete Gaussian of standard deviation ``GAUSSIAN_SCALE``, ``(rows, columns)``.

    One word per entry: its top bit is the sign, the other 63 index the cumulative table.
    """
    words = expand_words(seed, purpose, rows * columns)
    sizes = np.searchsorted(_half_gaussian_table(), words & np.uint64(2**63 - 1), side="right").astype(np.float64)
    return np.where(words >> np.uint64(63), -sizes, sizes).reshape(rows, columns)


def sign_matrix(seed: int, purpose: str, rows: int, columns: int, sparsity: int) -> NDArray[np.int8]:
    """Return entries -1, 0, 1 with probabilities 1/(2s), 1 - 1/s, 1/(2s) for s = ``sparsity``, ``(rows, columns)``."""
    words = expand_words(seed, purpose, rows * columns)
    hit = (words >> np.uint64(1)) < np.uint64(2**63 // sparsity)
    sign = np.where(words & np.uint64(1), np.int8(-1), np.int8(1))
    return np.where(hit, sign, np.int8(0)).reshape(rows, columns)


def signs(seed: int, purpose: str, count: int) -> NDArray[np.float64]:
    """Return fair signs, ``(count,)``."""
    return np.where(expand_words(seed, purpose, count) & np.uint64(1), -1.0, 1.0)


@lru_cache(maxsize=1)
def _half_gaussian_table() -> NDArray[np.uint64]:
    """Return floor(2**63 P(|Z| <= k)) for k = 0, 1, ..."""
    with localcontext() as context:
        context.prec = 40  # decimal exp is correctly rounded, so these digits are the same everywhere
        variance = Decimal(2 * GAUSSIAN_SCALE**2)
        weights = [(-Decimal(k * k) / variance).exp() * (2 if k else 1) for k in range(_TAIL)]
        total, reached, table = sum(weights), Decimal(0), []
        for weight in weights:
            reached += weight
            table.append(int(2**63 * (reached / total)))
    return np.array([min(entry, 2**63 - 1) for entry in table], np.uint64)


_TERMS = 12  # (pi/2)**24 / 24! is below 2**-54
_ROUNDS = 3


def _coefficients() -> list[float]:
    values, term = [], 1.0
    for k in range(_TERMS):
        values.append(term)
        term = -term * (2 * math.pi) * (2 * math.pi) / ((2 * k + 1) * (2 * k + 2))
    return values


_COEFFICIENTS = _coefficients()


def cosine_of_turns(turns: Rows) -> Rows:
    """Return cos(2 pi turns), to about 2e-16.

    Library cosines differ in the last bit, so this one is a fixed sequence of rounded operations.
    """
    xp = arrays_of(turns)
    distance = abs(turns - xp.rint(turns))  # from the nearest whole turn: 0 to 1/2, exact
    far = distance > 0.25
    angle = xp.where(far, 0.5 - distance, distance)
    square = angle * angle
    value = square * _COEFFICIENTS[-1] + _COEFFICIENTS[-2]
    for coefficient in reversed(_COEFFICIENTS[:-2]):
        value = value * square + coefficient
    return xp.where(far, -value, value)


@dataclass(frozen=True)
class SeededMap(Transform):
    """A map of ``inputs`` features to ``features``, generated from ``seed`` (0 to 2**63 - 1).

    The seed is public, so choose it before looking at data.
    """

    seed: int
    inputs: int
    features: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, minimum in (("seed", 0), ("inputs", 1), ("features", 1)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value < 2**63:
                raise SchemaError(f"transform {self.kind!r} needs {field} as an integer of at least {minimum}")

    def outputs(self, inputs: int | None) -> int:
        """Return ``features``; SchemaError for other inputs."""
        if inputs not in (None, self.inputs):
            raise SchemaError(f"transform {self.kind!r} takes {self.inputs} features but {inputs} come in")
        return self.features

    def takes(self, outputs: int) -> int:  # noqa: ARG002 - the signature of Transform
        """Return ``inputs``."""
        return self.inputs

    @abstractmethod
    def apply(self, rows: Rows) -> Rows:
        """Map float64 rows ``(n, inputs)``."""


@dataclass(frozen=True)
class GaussianProjection(SeededMap):
    """x -> W^T x / sqrt(features), W Gaussian: preserves inner products in expectation (Johnson-Lindenstrauss).

    Example:
        >>> project = ps.transforms.GaussianProjection(seed=0, inputs=3, features=1_000)
        >>> x, z = ps.transforms.apply((project,), np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]]))
        >>> abs(x @ z - 0.6) < 0.1  # the inner product of the rows that came in
        np.True_
    """

    kind: ClassVar[str] = "gaussian-projection"
    affine: ClassVar[bool] = True

    def apply(self, rows: Rows) -> Rows:
        """Return projected rows ``(n, features)``."""
        return _gaussian_product(self, rows) / (GAUSSIAN_SCALE * math.sqrt(self.features))


@dataclass(frozen=True)
class SparseProjection(SeededMap):
    """x -> W^T x sqrt(sparsity / features), one in ``sparsity`` entries of W is 1 or -1 (Achlioptas 2003; Li 2006).

    Args:
        sparsity: s >= 1; 3 is Achlioptas' choice, about sqrt(inputs) is Li's.

    Example:
        >>> project = ps.transforms.SparseProjection(seed=0, inputs=3, features=1_000, sparsity=3)
        >>> x, z = ps.transforms.apply((project,), np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]]))
        >>> abs(x @ z - 0.6) < 0.1  # the inner product of the rows that came in
        np.True_
    """

    sparsity: int = 3
    kind: ClassVar[str] = "sparse-projection"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.sparsity, bool) or not isinstance(self.sparsity, int) or not 1 <= self.sparsity < 2**31:
            raise SchemaError("transform 'sparse-projection' needs sparsity as an integer of at least 1")

    def apply(self, rows: Rows) -> Rows:
        """Return projected rows ``(n, features)``."""
        matrix = _sparse_matrix(self)
        if not isinstance(rows, np.ndarray):
            matrix = arrays_of(rows).like(matrix.toarray(), rows)
        return product(rows, matrix, 0) * math.sqrt(self.sparsity / self.features)


@dataclass(frozen=True)
class RandomReLU(SeededMap):
    """x -> max(W^T x, 0) sqrt(2 / features), W Gaussian: the arc-cosine kernel of degree 1 (Cho, Saul 2009; FedCGS).

    Args:
        keep_inputs: prepend x to the random features.

    Example:
        >>> lift = ps.transforms.RandomReLU(seed=0, inputs=2, features=5, keep_inputs=True)
        >>> rows = ps.transforms.apply((lift,), np.array([[0.3, -0.4]]))
        >>> rows.shape, rows[0, :2].tolist(), bool((rows[0, 2:] >= 0).all())
        ((1, 7), [0.3, -0.4], True)
    """

    keep_inputs: bool = False
    kind: ClassVar[str] = "random-relu"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.keep_inputs, bool):
            raise SchemaError("transform 'random-relu' needs keep_inputs as True or False")

    def apply(self, rows: Rows) -> Rows:
        """Return feature rows, behind the inputs if ``keep_inputs``."""
        xp = arrays_of(rows)
        features = xp.relu(_gaussian_product(self, rows)) * (math.sqrt(2 / self.features) / GAUSSIAN_SCALE)
        return xp.hstack(rows, features) if self.keep_inputs else features

    def outputs(self, inputs: int | None) -> int:
        """Return ``features``, plus retained inputs."""
        return super().outputs(inputs) + (self.inputs if self.keep_inputs else 0)


@dataclass(frozen=True)
class RandomFourier(SeededMap):
    """x -> sqrt(2 / features) cos(w^T x / bandwidth + b): the Gaussian kernel exp(-||x - x'||^2 / (2 bandwidth^2)).

    W Gaussian, b uniform over the circle (Rahimi, Recht 2007). The result has norm at most sqrt 2.

    Args:
        bandwidth: length scale of the kernel in feature units; public.

    Example:
        >>> lift = ps.transforms.RandomFourier(seed=0, inputs=2, features=1_000, bandwidth=1.0)
        >>> x, z = ps.transforms.apply((lift,), np.array([[0.0, 0.0], [1.0, 0.0]]))
        >>> abs(x @ z - np.exp(-0.5)) < 0.1  # the Gaussian kernel of the rows that came in
        np.True_
    """

    bandwidth: float = 1.0
    kind: ClassVar[str] = "random-fourier"

    def __post_init__(self) -> None:
        super().__post_init__()
        number = isinstance(self.bandwidth, int | float) and not isinstance(self.bandwidth, bool)
        if not number or not 1e-100 <= self.bandwidth <= 1e100:
            raise SchemaError("transform 'random-fourier' needs bandwidth as a number between 1e-100 and 1e100")
        object.__setattr__(self, "bandwidth", float(self.bandwidth))

    def apply(self, rows: Rows) -> Rows:
        """Return feature rows of entries up to sqrt(2 / features) in size."""
        phases = arrays_of(rows).like(_phases(self), rows)
        turns = _gaussian_product(self, rows) * (1 / (2 * math.pi * GAUSSIAN_SCALE * self.bandwidth)) + phases
        return cosine_of_turns(turns) * math.sqrt(2 / self.features)


def _gaussian_product(definition: SeededMap, rows: Rows) -> Any:
    return product(rows, arrays_of(rows).like(_gaussian(definition), rows), GAUSSIAN_BITS)


@lru_cache(maxsize=4)
def _gaussian(definition: SeededMap) -> NDArray[np.float64]:
    return gaussian_matrix(definition.seed, definition.kind, definition.inputs, definition.features)


@lru_cache(maxsize=4)
def _sparse_matrix(definition: SparseProjection) -> Any:
    from scipy.sparse import csr_array

    matrix = sign_matrix(definition.seed, definition.kind, definition.inputs, definition.features, definition.sparsity)
    return csr_array(matrix.astype(np.float64))


@lru_cache(maxsize=4)
def _phases(definition: RandomFourier) -> NDArray[np.float64]:
    words = expand_words(definition.seed, f"{definition.kind}|phases", definition.features)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True)
class OrthogonalProjection(SeededMap):
    """x -> the first ``features`` coordinates of H D3 H D2 H D1 x, times sqrt(p / features).

    H is the orthonormal Walsh-Hadamard transform of the next power of two p, D are random signs (Ailon, Chazelle 2009;
    Andoni et al. 2015). With ``features = p`` it is a rotation.

    Example:
        >>> rotate = ps.transforms.OrthogonalProjection(seed=0, inputs=3, features=4)
        >>> row = ps.transforms.apply((rotate,), np.array([[1.0, 2.0, 2.0]]))
        >>> row.shape, np.linalg.norm(row).round(6)
        ((1, 4), np.float64(3.0))
    """

    kind: ClassVar[str] = "orthogonal-projection"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features > self._padded:
            raise SchemaError(
                f"transform {self.kind!r} makes at most {self._padded} features from {self.inputs}; lower features"
            )

    @property
    def _padded(self) -> int:
        return 1 << (self.inputs - 1).bit_length()

    def apply(self, rows: Rows) -> Rows:
        """Return projected rows ``(n, features)``."""
        xp, size = arrays_of(rows), self._padded
        # Unnormalised rounds stretch the norm by sqrt(p) each, and no entry exceeds the norm: these bits stay exact.
        doublings = (size - 1).bit_length()
        bits = 52 - -(-_ROUNDS * doublings // 2) - -(-(self.inputs - 1).bit_length() // 2)
        scaled, exponents = scaled_rows(rows, bits)
        work = xp.rint(scaled)
        if size > self.inputs:
            work = xp.append(work, 0.0, size - self.inputs)
        for flips in _flips(self):
            work = walsh_hadamard(work * xp.like(flips, rows))
        return unscaled(work[:, : self.features], exponents) / (size * math.sqrt(self.features))


def walsh_hadamard(rows: Rows) -> Rows:
    """Return the unnormalised Walsh-Hadamard transform of rows ``(n, p)``, p a power of two."""
    xp, size = arrays_of(rows), int(rows.shape[1])
    half = 1
    while half < size:
        pairs = rows.reshape(-1, 2, half)
        left, right = pairs[:, 0], pairs[:, 1]
        rows = xp.hstack(left + right, left - right).reshape(-1, size)
        half *= 2
    return rows


@lru_cache(maxsize=8)
def _flips(definition: OrthogonalProjection) -> NDArray[np.float64]:
    size = 1 << (definition.inputs - 1).bit_length()
    return signs(definition.seed, definition.kind, _ROUNDS * size).reshape(_ROUNDS, size)
