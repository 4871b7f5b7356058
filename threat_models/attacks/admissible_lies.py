"""The worst sums that one client may send: a climb over the lies that a level of proof admits.

The liar knows all honest sums and the records on which the model is judged, so it is stronger than any real one, and
what a climb finds is a lower bound of the harm. ``records``: whole invented records. ``moments``: fractional ones.
``norm``: anything within the norm of that number of records, statistic by statistic. ``none``: anything.

Sums of fractional records are a convex hull, so the best of them against a linear slope is one record, a trust region
problem: a lie's worst records are replaced by it, again and again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privstats.encoding import layout_of, to_real
from privstats.errors import AggregationError, PrivstatsError
from privstats.estimates.discriminant import conditioned, shrink_values
from privstats.kinds import ClassSchema, RidgeSchema, row_of
from privstats.plan import Plan, check_plausible
from privstats.randomness import Generator
from privstats.release import Release
from privstats.schema import COUNT_SCALE, Schema
from threat_models.chance import integer_below, normal

Vector: TypeAlias = NDArray[np.int64]
Level: TypeAlias = Literal["none", "norm", "moments", "records"]

_GROUPS = 64
_STARTS = 8  # of a climb's moves, one in so many draws a start of its own
_NEARLY = 0.9999  # of a bound: sums are rounded to the grid
_MULTIPLES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
Array: TypeAlias = NDArray[np.float64]
Slopes: TypeAlias = tuple[Array, Array, Array]
"""Of N ``(C,)``, A ``(C, d)`` and B ``(d, d)``."""
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Lie:
    """Invented records, equal within groups, and how much of each group enters every statistic.

    Attributes:
        weights: by statistic and group, ``(3, k)``; the rows differ only where no record need be behind the sums.
        X: one vector per group, ``(k, d)``, of norm at most the clip norm.
        y: its label, or its target, ``(k,)``.
    """

    weights: Array
    X: Array
    y: NDArray[Any]

    def vector(self, schema: Schema) -> Vector:
        """The sums in grid steps, ``(size,)``: where there are folds, in the first one."""
        return _flat(schema, row_of(_KINDS, schema, "lie").sums(schema, self))

    def within(self, schema: Schema, records: float) -> Lie:
        """Scale every statistic to the norm of ``records`` equal records; counts add up to at most ``records``."""
        result, scales = self.vector(schema).astype(np.float64), []
        for letter in row_of(_KINDS, schema, "lie").letters:
            entries = result[_places(schema, letter)]
            norm = max(float(np.linalg.norm(entries)), float(entries.sum()) if letter == "N" else 0.0)
            scales.append(_NEARLY * records * _bounds(schema)[letter] / max(norm, 1.0))
        return replace(self, weights=self.weights * np.array(scales)[:, None])


def readable(schema: Schema) -> bool:
    """Whether the lies here are about such sums: N, A and B of classes, or a regression of one target."""
    return type(schema) in _KINDS and _KINDS[type(schema)].readable(schema)


def _class_sums(schema: ClassSchema, lie: Lie) -> dict[str, Array]:
    first, second, third = lie.weights
    onehot = np.eye(schema.classes)[lie.y]
    return {
        "N": first @ onehot,
        "A": (second[:, None] * onehot).T @ lie.X,
        "B": (third[:, None] * lie.X).T @ lie.X,
    }


def _ridge_sums(_: RidgeSchema, lie: Lie) -> dict[str, Array]:
    first, second, third = lie.weights
    return {
        "h": (second * lie.y) @ lie.X,
        "q": np.array([first @ np.square(lie.y)]),
        "G": (third[:, None] * lie.X).T @ lie.X,
    }


def _within_classes(real: Any) -> Array:
    counts = np.maximum(real.N, 1.0)
    return np.asarray(np.asarray(real.B) - np.einsum("ci,cj->ij", real.A, np.asarray(real.A) / counts[:, None]))


def _over_folds(real: Any) -> Array:
    G = np.asarray(real.G)
    return np.asarray(G.reshape(-1, *G.shape[-2:]).sum(axis=0))


class _Kind(NamedTuple):
    """Facts about lies for one kind of sums.

    Attributes:
        letters: the statistics, in the order of the weights of a lie.
        readable: whether a schema sends these and no others.
        sums: of a lie, by letter, in real units.
        scatter: how records vary, from sums in real units, ``(d, d)``.
        answer: a label, or one of the two largest targets, by chance.
    """

    letters: str
    readable: Callable[[Any], bool]
    sums: Callable[[Any, Lie], dict[str, Array]]
    scatter: Callable[[Any], Array]
    answer: Callable[[Any, Generator], Any]


_KINDS: Mapping[type[Schema], _Kind] = {
    ClassSchema: _Kind(
        "NAB",
        lambda schema: bool(schema.statistics == "NAB"),
        _class_sums,
        _within_classes,
        lambda schema, rng: integer_below(schema.classes, rng),
    ),
    RidgeSchema: _Kind(
        "qhG",
        lambda schema: bool(schema.targets == 1),
        _ridge_sums,
        _over_folds,
        lambda schema, rng: schema.target_bound * (2.0 * integer_below(2, rng) - 1.0),
    ),
}
"""By the schema's class."""


def _bounds(schema: Schema) -> dict[str, int]:
    return {row.letter: row.bound(schema.grid_steps) for row in schema.sent}


def _places(schema: Schema, letter: str) -> NDArray[np.bool_]:
    """Return which entries of a vector belong to a statistic."""
    return np.concatenate([np.full(each.size, each.statistic == letter) for each in layout_of(schema).segments])


def _flat(schema: Schema, sums: dict[str, Array]) -> Vector:
    out = []
    for segment in layout_of(schema).segments:
        values = sums[segment.statistic]
        if segment.name.endswith(".diag"):
            values = np.diagonal(values)
        elif segment.name.endswith(".off"):
            values = values[np.triu_indices(len(values), 1)]
        padded = np.zeros(segment.size)
        padded[: values.size] = values.ravel()
        out.append(np.rint(segment.scale * padded))
    return np.concatenate(out).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Scene:
    """The liar's knowledge, and the cost of its lie.

    Attributes:
        plan: of the session, without noise.
        others: the sum of all other clients, in grid steps.
        own: the vector that the liar would send if it were honest.
        model: the accuracy, from 0 to 1, of the model that follows from a release.
        test: the records that evaluate the model, as they enter the sums, and their labels or targets.
    """

    plan: Plan
    others: Vector
    own: Vector
    model: Callable[[Release], float]
    test: tuple[Array, NDArray[Any]]

    def accuracy(self, lie: Vector) -> float:
        """Return the model's accuracy with this lie in the sum; 1 where the lie ends the session without a model."""
        total = self.others + lie
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few records, which is what the liar wants
            try:
                check_plausible(self.plan, total)
                return self.model(Release(self.plan, total, tuple(range(self.plan.cohort.clients))))
            except (AggregationError, PrivstatsError, np.linalg.LinAlgError):
                return 1.0

    def slopes(self, lie: Lie) -> tuple[float, Any]:
        """The mean probability of the true class under linear discriminants, and its slopes in the sums."""
        real = cast("Any", to_real(self.plan.schema, self.others + lie.vector(self.plan.schema)))
        N, A, B = (np.asarray(each, np.float64) for each in (real.N, real.A, real.B))
        return slopes(N, A, B, *self.test)

    @cached_property
    def directions(self) -> Array:
        """Columns that span the features, the longer the less the honest records vary along them, ``(d, d)``."""
        scatter = row_of(_KINDS, self.plan.schema, "lie").scatter(to_real(self.plan.schema, self.others))
        values, vectors = np.linalg.eigh(scatter)
        return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-6 * values.mean())))


def worst(scene: Scene, level: Level, records: int, moves: int, rng: Generator, known: Sequence[Lie] = ()) -> Lie:
    """Return the worst lie of a level that a climb finds within its moves.

    Args:
        scene: what the liar knows.
        level: what its report proves.
        records: n.
        moves: evaluations of the model.
        rng: of the climb.
        known: lies of this level or a stricter one to begin with; fractional records are rounded where whole ones are
            asked for.
    """
    known = [_completed(lie) for lie in known] if level == "records" else known
    starts = [*known, *(_drawn(scene, level, records, rng) for _ in range(max(1, moves // _STARTS)))]
    if "class" in scene.plan.schema.sizes:
        if level in ("records", "moments"):
            best = climbed(scene, starts, lambda lie: lie, 0)
            starts += [_steepest(scene, each, moves // _STARTS) for each in (best, starts[-1])]
        else:
            starts += [_bent(scene, count, records) for count in (1, 2, 4, 8, 16, 32) if count < len(scene.directions)]
    if level == "none":
        results = [*known, *starts[-6:]]
        more = [np.array(each)[:, None] for t in _MULTIPLES for each in ((1, t, 1), (1, 1, t), (1, t, t))]
        starts += [replace(lie, weights=each * lie.weights) for lie in results for each in more]
    return climbed(scene, starts, lambda lie: _moved(scene, lie, level, records, rng), moves)


def _completed(lie: Lie) -> Lie:
    """The lie with integers of records in its groups, and no more of them."""
    sizes = np.floor(lie.weights[0])
    left = int(round(lie.weights[0].sum()) - sizes.sum())
    sizes[np.argsort(sizes - lie.weights[0])[:left]] += 1
    return replace(lie, weights=np.tile(sizes, (3, 1)))


def _steepest(scene: Scene, lie: Lie, moves: int) -> Lie:
    """The lie after its least harmful groups were replaced by the most harmful record, until that helps no more."""
    schema = cast("ClassSchema", scene.plan.schema)
    value, slope = scene.slopes(lie)
    for _ in range(moves):
        order, (vector, label) = -worth(slope, lie.X, lie.y), best_record(slope, schema.clip_norm)
        for count in (len(lie.y) // 2, len(lie.y) // 8, 2, 1):
            chosen = np.argsort(order)[:count]
            X, y = lie.X.copy(), lie.y.copy()
            X[chosen], y[chosen] = vector, label
            other = replace(lie, X=X, y=y)
            result, following = scene.slopes(other)
            if result < value:
                lie, value, slope = other, result, following
                break
        else:
            break
    return lie


def _bent(scene: Scene, count: int, records: int) -> Lie:
    """Class sums turned round, and a second moment that is negative where honest records vary least."""
    schema = cast("ClassSchema", scene.plan.schema)
    real = cast("Any", to_real(schema, scene.others))
    means = np.asarray(real.A) - np.asarray(real.A).mean(axis=0)
    long = np.linalg.norm(scene.directions, axis=0).argsort()[-count:]
    X = np.concatenate([means, scene.directions[:, long].T])
    X *= schema.clip_norm / np.maximum(np.linalg.norm(X, axis=1), 1e-9)[:, None]
    classes = schema.classes
    weights = np.zeros((3, len(X)))
    weights[0, :classes], weights[1, :classes], weights[2, classes:] = 1.0, -1.0, -1.0
    return Lie(weights, X, np.arange(len(X)) % classes).within(schema, records)


def climbed(scene: Scene, starts: Sequence[Lie], move: Callable[[Lie], Lie], moves: int) -> Lie:
    """The best of the starts, moved ``moves`` times; a move stays where it does not help the others."""
    schema = scene.plan.schema
    results = [(scene.accuracy(lie.vector(schema)), place) for place, lie in enumerate(starts)]
    least, place = min(results)
    best = starts[place]
    for _ in range(moves):
        other = move(best)
        accuracy = scene.accuracy(other.vector(schema))
        if accuracy <= least:
            least, best = accuracy, other
    return best


def _drawn(scene: Scene, level: Level, records: int, rng: Generator) -> Lie:
    """Groups of equal weight along random directions, mostly those in which honest records vary least."""
    count = min(_GROUPS, records)
    X = np.stack([_direction(scene, rng) for _ in range(count)])
    answer = row_of(_KINDS, scene.plan.schema, "lie").answer
    y = np.array([answer(scene.plan.schema, rng) for _ in range(count)])
    sizes = np.full(count, records // count, np.float64)
    sizes[: records % count] += 1
    return _admitted(scene, Lie(np.tile(sizes, (3, 1)), X, y), level, records)


def _direction(scene: Scene, rng: Generator) -> Array:
    d = len(scene.directions)
    spread = scene.directions if integer_below(4, rng) else np.eye(d)
    result = spread @ normal(d, rng)
    return np.asarray(cast("Any", scene.plan.schema).clip_norm * result / np.linalg.norm(result))


def _moved(scene: Scene, lie: Lie, level: Level, records: int, rng: Generator) -> Lie:
    """The lie with one group turned, renamed, or made larger at the cost of another."""
    weights, X, y = lie.weights.copy(), lie.X.copy(), lie.y.copy()
    group, way = integer_below(len(y), rng), integer_below(3, rng)
    if way == 0:
        clip = cast("Any", scene.plan.schema).clip_norm
        turned = X[group] + 2.0 ** -integer_below(5, rng) * _direction(scene, rng)
        X[group] = turned * min(1.0, clip / np.linalg.norm(turned)) if integer_below(2, rng) else clip * _unit(turned)
    elif way == 1:
        y[group] = row_of(_KINDS, scene.plan.schema, "lie").answer(scene.plan.schema, rng)
    elif level in ("norm", "none"):
        statistic = integer_below(3, rng)
        weights[statistic, group] += (
            2.0 ** -integer_below(4, rng) * np.abs(weights[statistic]).max() * normal(1, rng)[0]
        )
    else:
        other, amount = integer_below(len(y), rng), weights[0, group] * (integer_below(8, rng) + 1) / 8
        amount = np.floor(amount) if level == "records" else np.rint(COUNT_SCALE * amount) / COUNT_SCALE
        weights[:, group] -= amount
        weights[:, other] += amount
    return _admitted(scene, Lie(weights, X, y), level, records)


def _admitted(scene: Scene, lie: Lie, level: Level, records: int) -> Lie:
    """The lie as its level takes it: statistics of full length under ``norm``."""
    return lie.within(scene.plan.schema, records) if level == "norm" else lie


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))


def slopes(N: Array, A: Array, B: Array, X: Array, y: NDArray[Any]) -> tuple[float, Slopes]:
    """The mean probability of the true class under linear discriminants of these sums, and its slope in each of them.

    Args:
        N, A, B: of all clients, in real units.
        X, y: test records.
    """
    n, d = np.maximum(N, np.finfo(np.float64).tiny), A.shape[1]
    total, means = n.sum(), A / n[:, None]
    values, vectors = np.linalg.eigh((B - np.einsum("ci,cj->ij", A, means)) / total)
    shrunk, share = shrink_values(values, total, "auto")
    inverse = (vectors / conditioned(shrunk)) @ vectors.T
    rotated = means @ inverse
    scores = X @ rotated.T - np.einsum("cd,cd->c", rotated, means) / 2 + np.log(n)
    chances = softmax(scores, axis=1)
    true = chances[np.arange(len(y)), y]
    by_score = true[:, None] * (np.eye(len(n))[y] - chances) / len(y)
    weights = by_score.sum(axis=0)
    by_mean = (by_score.T @ X - weights[:, None] * means) @ inverse
    outer = X.T @ by_score @ means - (means.T * weights) @ means / 2
    by_covariance = -inverse @ ((outer + outer.T) / 2) @ inverse
    by_scatter = ((1 - share) * by_covariance + share / d * np.trace(by_covariance) * np.eye(d)) / total
    by_A = by_mean / n[:, None] - 2 * means @ by_scatter
    by_N = (weights - np.einsum("cd,cd->c", by_mean, means)) / n + np.einsum("ci,ij,cj->c", means, by_scatter, means)
    return float(true.mean()), (by_N, by_A, by_scatter)


def worth(slope: Slopes, X: Array, y: NDArray[Any]) -> Array:
    """Return each record's first-order contribution to the model; the smallest harms most."""
    by_N, by_A, by_B = slope
    return np.asarray(by_N[y] + np.einsum("kd,kd->k", by_A[y], X) + np.einsum("ki,ij,kj->k", X, by_B, X))


def best_record(slope: Slopes, norm: float) -> tuple[Array, int]:
    """The vector of at most this norm, and its label, that add least: for every label the least of a quadratic form
    over a ball, by the multiplier at which its minimum lies on the sphere."""
    _, by_A, by_B = slope
    values, vectors = np.linalg.eigh(by_B)
    across = by_A @ vectors
    across += 1e-12 * np.abs(across).max() + np.finfo(np.float64).tiny  # no component is exactly zero
    least = max(0.0, -float(values[0]))
    low, high = np.full(len(across), least), least + np.linalg.norm(across, axis=1) / norm + 1e-300
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        outside = np.linalg.norm(across / (2 * (values + middle[:, None])), axis=1) > norm
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    X = -(across / (2 * (values + high[:, None]))) @ vectors.T
    X *= np.minimum(1.0, norm / np.linalg.norm(X, axis=1))[:, None]
    label = int(worth(slope, X, np.arange(len(X))).argmin())
    return X[label], label
