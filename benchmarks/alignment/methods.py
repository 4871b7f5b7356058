"""The ways to align clients that are compared, each from the clients' records to scores for every client's test rows.

All in one place and without masking: that masked rounds give the same is tested elsewhere (tests/align). The head is
FedCGS's, LDA with the total covariance, unless the way brings its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf

import privstats as ps
from privstats import heads
from privstats.contrib.alignment import barycentre, transport
from privstats.contrib.personal import Personal
from privstats.kinds import RealWithinMoments

__all__ = ["CLASSES", "METHODS", "RADIUS", "STRENGTH", "Aligned", "Clients", "slot", "slot_to"]

CLASSES = 10
STRENGTH = 0.4  # tau of the SLOT-Align paper
PULL = 10.0  # records that `within` gives a client's offset in advance
_CONVERGED = 40
RADIUS = 40.0  # no row is as long

Array: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class Clients:
    """Training records of every client, and their Gaussians as SLOT-Align takes them."""

    rows: tuple[Array, ...]
    labels: tuple[Places, ...]

    @cached_property
    def all_rows(self) -> Array:
        """Everybody's rows."""
        return np.concatenate(self.rows)

    @cached_property
    def all_labels(self) -> Places:
        """Everybody's labels."""
        return np.concatenate(self.labels)

    @cached_property
    def counts(self) -> Array:
        """Records per client."""
        return np.array([len(labels) for labels in self.labels], np.float64)

    @cached_property
    def means(self) -> list[Array]:
        """Client means."""
        return [rows.mean(axis=0) for rows in self.rows]

    @cached_property
    def covariances(self) -> list[Array]:
        """Client covariances, shrunk by Ledoit and Wolf's weight."""
        return [ledoit_wolf(rows)[0] for rows in self.rows]

    @cached_property
    def mean(self) -> Array:
        """The weighted mean of the means."""
        mean: Array = self.counts @ np.stack(self.means) / self.counts.sum()
        return mean

    def reference(self, rounds: int | None) -> Array:
        """The barycentre: the published iteration to its end for None, else rounds of the better step."""
        if rounds is None:
            return barycentre(self.covariances, self.counts, _CONVERGED, "published")
        return barycentre(self.covariances, self.counts, rounds, "alvarez-esteban")


@dataclass(frozen=True)
class Aligned:
    """Result of a method.

    Attributes:
        scores: from a client and its test rows to log-probabilities, ``(n, C)``.
        priors: class probabilities in them, ``(C,)``.
    """

    scores: Callable[[int, Array], Array]
    priors: Array


def none(clients: Clients) -> Aligned:
    """One head for all, nothing aligned."""
    return _pooled(clients, lambda _, rows: rows)


def slot(clients: Clients, rounds: int | None) -> Aligned:
    """SLOT-Align: training and test rows go part of the way to the barycentre, then one head."""
    return slot_to(clients, clients.reference(rounds))


def slot_to(clients: Clients, reference: Array) -> Aligned:
    """Map the clients as ``slot`` does, to any common covariance."""
    maps = [_toward(covariance, reference) for covariance in clients.covariances]

    def moved(client: int, rows: Array) -> Array:
        mean = clients.means[client]
        return (1 - STRENGTH) * mean + STRENGTH * clients.mean + (rows - mean) @ maps[client]

    return _pooled(clients, moved)


def mean_only(clients: Clients) -> Aligned:
    """Every client's mean goes to the common one, all the way; covariances stay."""
    return _pooled(clients, lambda client, rows: rows - clients.means[client] + clients.mean)


def test_time(clients: Clients) -> Aligned:
    """An ordinary release; only test rows go part of the way, to the mean and covariance of all records."""
    pooled = none(clients)
    covariance = np.cov(clients.all_rows.T)
    maps = [_toward(each, covariance) for each in clients.covariances]
    centre = clients.all_rows.mean(axis=0)

    def scores(client: int, rows: Array) -> Array:
        mean = clients.means[client]
        return pooled.scores(client, (1 - STRENGTH) * mean + STRENGTH * centre + (rows - mean) @ maps[client])

    return Aligned(scores, pooled.priors)


def local_offset(clients: Clients) -> Aligned:
    """An ordinary release, and each client's label-aware offset as ``Personal`` chooses it by folds."""
    head = _head(clients.all_rows, clients.all_labels)
    known = [np.isin(labels, head.classes_) for labels in clients.labels]
    own = [
        Personal(head, prior=False, offset=True).fit(rows[keep], labels[keep])
        for rows, labels, keep in zip(clients.rows, clients.labels, known, strict=True)
    ]
    return Aligned(lambda client, rows: _spread(own[client].classes_, own[client].predict_log_proba(rows)), _of(head))


def within(clients: Clients) -> Aligned:
    """Within-client moments in integers, one upload; the head that reads them, and each client's offset."""
    schema = ps.WithinSchema(CLASSES, clients.all_rows.shape[1], RADIUS, pull=PULL, n_max=10_000)
    parts = [ps.measure(schema, rows, labels) for rows, labels in zip(clients.rows, clients.labels, strict=True)]
    total = sum(parts[1:], parts[0])
    head = heads.LDA(priors="uniform").fit_release(_Sums(_Governing(schema), total.real()))
    own = [
        Personal(head, prior=False, offset=True, pull=PULL / len(rows)).fit(rows, labels)
        for rows, labels in zip(clients.rows, clients.labels, strict=True)
    ]
    return Aligned(lambda client, rows: _spread(head.classes_, own[client].predict_log_proba(rows)), _of(head))


METHODS: Mapping[str, Callable[[Clients], Aligned]] = {
    "no alignment": none,
    "SLOT-Align as published": partial(slot, rounds=None),
    "masked SLOT, 1 round": partial(slot, rounds=1),
    "masked SLOT, 2 rounds": partial(slot, rounds=2),
    "masked SLOT, 3 rounds": partial(slot, rounds=3),
    "mean only": mean_only,
    "test-time transport": test_time,
    "within moments": within,
    "local offset": local_offset,
}


@dataclass(frozen=True)
class _Governing:
    schema: ps.WithinSchema
    merge: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sums:
    """The parts of a release that a head needs, without a cohort and a protocol."""

    plan: _Governing
    moments: RealWithinMoments
    sigma: Mapping[str, float] = field(default_factory=dict)
    suppressed: tuple[int, ...] = ()


def _pooled(clients: Clients, moved: Callable[[int, Array], Array]) -> Aligned:
    head = _head(np.concatenate([moved(k, rows) for k, rows in enumerate(clients.rows)]), clients.all_labels)
    return Aligned(lambda k, rows: _spread(head.classes_, head.predict_log_proba(moved(k, rows))), _of(head))


def _head(rows: Array, labels: Places) -> heads.LDA:
    return heads.LDA(covariance="total").fit(rows, labels)


def _toward(source: Array, target: Array) -> Array:
    """The linear part of the map that goes ``STRENGTH`` of the way."""
    return (1 - STRENGTH) * np.eye(len(source)) + STRENGTH * transport(source, target)


def _spread(classes: Places, logs: Array) -> Array:
    """Log-probabilities of all classes; one that nobody held has none."""
    out = np.full((len(logs), CLASSES), -math.inf)
    out[:, classes] = logs
    return out


def _of(head: heads.LDA) -> Array:
    priors = np.ones(CLASSES)
    priors[head.classes_] = head.priors_
    return priors
