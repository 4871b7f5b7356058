"""Score and classify rows by a quadratic decision rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.heads.evidence import Array
from privstats.heads.rules.rule import TILE, Rule, tail, tail_in_graph

_DOUBT = 1e-4  # relative margin within which float32 scores are decided again in float64
_ROUNDING = 16 * float(np.finfo(np.float32).eps)  # of a float32 distance, over the largest terms that may cancel in it
_MOST = float(np.finfo(np.float32).max)
_WORTHWHILE = 0.25  # share of (row, class) pairs that may survive the screen before scoring all of them is faster


@dataclass(frozen=True, eq=False)
class QuadraticRule(Rule):
    """``bias - tail(z^T Q z - 2 z . linear + constant)`` per class, with z the projected row.

    ``tail(m)`` is ``m / 2`` for Gaussians and ``(k + nu) log(1 + m / nu) / 2`` for Student's t with nu ``degrees``.

    Attributes:
        packed: upper triangles of Q, off-diagonal entries doubled, ``(C, k (k + 1) / 2)``.
        linear, constant: ``(C, k)`` and ``mu^T Q mu``, ``(C,)``.
        bias: log prior minus half the log determinant, ``(C,)``.
        projection, origin: ``z = (x - origin) @ projection``; ``(d, k)``, ``(d,)``.
        degrees: shape ``(1,)``; 0 means Gaussians.
        screen, screen_linear, screen_constant: the same for the first m coordinates; their distance never exceeds the
            total. m = 0 means no screen.
    """

    packed: Array
    linear: Array
    constant: Array
    bias: Array
    projection: Array
    origin: Array
    degrees: Array
    screen: Array
    screen_linear: Array
    screen_constant: Array
    kind: ClassVar[str] = "quadratic"

    @classmethod
    def of(
        cls,
        values: Array,
        vectors: Array,
        means: Array,
        prior: Array,
        projection: Array,
        origin: Array,
        degrees: float,
        screened: int = 0,
    ) -> QuadraticRule:
        """Build the rule of covariances V_c diag(values_c) V_c^T and means, in the projected basis.

        ``prior`` holds log priors; ``screened`` is m, leading coordinates that best separate classes.
        """
        roots = vectors / np.sqrt(values)[:, None, :]
        packed = pack_precisions(roots @ roots.transpose(0, 2, 1), means)
        leading = vectors[:, :screened, :]
        marginal = (leading * values[:, None, :]) @ leading.transpose(0, 2, 1)
        inverse = np.linalg.inv(marginal) if screened else marginal
        part = pack_precisions((inverse + inverse.transpose(0, 2, 1)) / 2, means[:, :screened])
        bias = prior - np.log(values).sum(axis=1) / 2
        return cls(*packed, bias, projection, origin, np.array([degrees]), *part)

    def lifted(self, basis: Array) -> QuadraticRule:
        """Fold the basis into the projection."""
        return replace(self, projection=basis @ self.projection, origin=basis @ self.origin)

    def scores(self, X: Array) -> Array:
        """Compute scores by row tiles, one matrix product per triangle row."""
        out = np.empty((len(X), len(self.bias)))
        for start in range(0, len(X), TILE):
            tile = slice(start, start + TILE)
            out[tile] = self._score(_distances(self._project(X[tile]), self.packed, self.linear, self.constant))
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Record one matrix product per triangle row."""
        Z = (rows - buffers.origin) @ buffers.projection
        d = self.linear.shape[1]
        distance = buffers.constant - (Z * 2) @ buffers.linear.T
        start = 0
        for i in range(d):
            distance = distance + Z[:, i : i + 1] * (Z[:, i:] @ buffers.packed[:, start : start + d - i].T)
            start += d - i
        return buffers.bias - tail_in_graph(distance, float(self.degrees[0]), d)

    def best(self, X: Array) -> NDArray[np.intp]:
        """Return the winners in float32, recomputed in float64 where the margin is within rounding.

        A class is skipped if its screened distance alone already loses to some class's full score.
        """
        if any(np.abs(array).max(initial=0.0) > _MOST for array in self.arrays().values()):
            return np.asarray(self.scores(X).argmax(axis=1))  # a flat class, which float32 does not hold
        single, reach = self._in_float32(), self._reach()
        winners = np.empty(len(X), np.intp)
        for start in range(0, len(X), TILE):
            tile = slice(start, start + TILE)
            Z = self._project(X[tile])
            rounding = _ROUNDING * reach(np.square(Z).sum(axis=1))
            scores = single._contenders(Z.astype(np.float32), rounding)
            winners[tile] = scores.argmax(axis=1)
            if scores.shape[1] > 1:
                second, first = np.partition(scores, -2, axis=1)[:, -2:].T
                close = start + np.flatnonzero(~(first - second > _slack(first, rounding)))
                winners[close] = self.scores(X[close]).argmax(axis=1)
        return winners

    def _reach(self) -> Callable[[Array], Array]:
        """Return a bound on a score's terms before they cancel, as a function of squared row lengths."""
        Q, linear = (float(np.linalg.norm(array, axis=1).max()) for array in (self.packed, self.linear))
        constant, degrees = float(self.constant.max()), float(self.degrees[0])
        slope = 0.5 if degrees == 0 else (self.linear.shape[1] + degrees) / (2 * degrees)
        return lambda squares: slope * (Q * squares + 2 * linear * np.sqrt(squares) + constant)

    def _in_float32(self) -> QuadraticRule:
        arrays: dict[str, Any] = {name: array.astype(np.float32) for name, array in self.arrays().items()}
        return replace(self, **arrays)

    def _project(self, X: Array) -> Array:
        return np.asarray((X - self.origin) @ self.projection)

    def _score(self, distance: NDArray[Any]) -> Array:
        return np.asarray(self.bias - tail(distance.astype(np.float64), float(self.degrees[0]), self.linear.shape[1]))

    def _contenders(self, Z: NDArray[Any], rounding: Array) -> Array:
        m = self.screen_linear.shape[1]
        if m == 0:
            return self._score(_distances(Z, self.packed, self.linear, self.constant))
        bounds = self._score(_distances(Z[:, :m], self.screen, self.screen_linear, self.screen_constant))
        guess = bounds.argmax(axis=1)
        scores = np.full(bounds.shape, -np.inf)
        guessed = np.zeros(bounds.shape, bool)
        guessed[np.arange(len(Z)), guess] = True
        self._fill(Z, guessed, scores)
        reached = scores[np.arange(len(Z)), guess]
        alive = (bounds >= (reached - _slack(reached, rounding))[:, None]) & ~guessed
        if alive.mean() > _WORTHWHILE:
            return self._score(_distances(Z, self.packed, self.linear, self.constant))
        self._fill(Z, alive, scores)
        return scores

    def _fill(self, Z: NDArray[Any], wanted: NDArray[np.bool_], scores: Array) -> None:
        k = Z.shape[1]
        triangle, upper = np.zeros((k, k), Z.dtype), np.triu_indices(k)
        for c in np.flatnonzero(wanted.any(axis=0)):
            rows = np.flatnonzero(wanted[:, c])
            some = Z[rows]
            triangle[upper] = self.packed[c]
            distance = np.einsum("ij,ij->i", some @ triangle - 2 * self.linear[c], some) + self.constant[c]
            scores[rows, c] = self.bias[c] - tail(distance.astype(np.float64), float(self.degrees[0]), k)


def pack_precisions(precisions: Array, means: Array) -> tuple[Array, Array, Array]:
    """Return packed triangles ``(C, k (k + 1) / 2)``, ``Q mu`` and ``mu^T Q mu`` of symmetric ``(C, k, k)``."""
    linear = np.einsum("cij,cj->ci", precisions, means)
    rows, columns = np.triu_indices(means.shape[1])
    packed = precisions[:, rows, columns]
    packed[:, rows != columns] *= 2
    return packed, linear, np.einsum("ci,ci->c", linear, means)


def _distances(Z: NDArray[Any], packed: NDArray[Any], linear: NDArray[Any], constant: NDArray[Any]) -> NDArray[Any]:
    distance = -2 * (Z @ linear.T)
    distance += constant
    columns, product, start = np.asfortranarray(Z), np.empty_like(distance), 0
    for i in range(Z.shape[1]):
        stop = start + Z.shape[1] - i
        np.matmul(columns[:, i:], packed[:, start:stop].T, out=product)
        product *= columns[:, i, None]
        distance += product
        start = stop
    return np.asarray(distance)


def _slack(scores: Array, rounding: Array) -> Array:
    """Bound a score's float32 error by its size and its cancelling terms."""
    return _DOUBT * (2 * np.abs(scores) + 1) + rounding
