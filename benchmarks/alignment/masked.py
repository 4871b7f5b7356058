"""Measure what a masked round still changes: the share of predictions that differ from those at the plaintext
iteration's end.

    python -m benchmarks.alignment.masked --save

Label shift alpha .1, five seeds; every client predicts the whole test set of its domain. Twenty clients (four a domain)
also go through the whole of it: masked sums of an ``Alignment``, then the release of a plan that names the transport,
on a grid of 16 bits, because these features are flat in some directions and a transport magnifies those. Five clients
(one a domain) do not, because no plan lets so few into several rounds without noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.alignment.digits5 import Digits, choice, digits5, encoders
from benchmarks.alignment.methods import CLASSES, RADIUS, STRENGTH, Aligned, Clients, slot_to
from benchmarks.alignment.shift import PARTITIONS, QUICK, clients_of, parts_of
from benchmarks.measuring import Rows, Tables, command
from privstats.contrib.alignment import Rule, barycentre
from privstats.contrib.personal import with_local_transform

ALPHA = 0.1
ENCODERS = ("convolutions", "efficientnet")
SEEDS = 5
ROUNDS = (0, 1, 2, 3)
FEWEST = 16  # clients that three rounds without noise need
GRID_BITS = 16
PUBLISHED, BETTER, MASKED = "published step", "better step", "better step, masked"
_END = 12  # rounds of the better step after which nothing moves

Array = NDArray[np.float64]
Places = NDArray[np.intp]


def tables(options: argparse.Namespace) -> Tables:
    """One table per encoder and partition."""
    seeds = 1 if options.quick else SEEDS
    for encoder in ENCODERS[:1] if options.quick else encoders(options.encoder or ENCODERS):
        digits = digits5(encoder, **QUICK if options.quick else {})
        for partition in PARTITIONS:
            yield (
                f"predictions that differ from the end's, %: {encoder}, {partition}",
                changed(digits, partition, seeds),
            )


def changed(digits: Digits, partition: str, seeds: int) -> Rows:
    """A row per number of rounds, means over the seeds."""
    found: dict[tuple[int, str], list[float]] = {}
    for seed in range(seeds):
        parts = parts_of(digits, partition, ALPHA, np.random.default_rng(seed))
        clients = clients_of(digits, parts)
        tests = [digits.rows[digits.test & (digits.source == part.domain)] for part in parts]
        end = _labels(slot_to(clients, barycentre(clients.covariances, clients.counts, _END, "alvarez-esteban")), tests)
        made = [*_plaintext(clients, tests)]
        if len(parts) >= FEWEST:
            made += _through_sessions(clients, tests)
        for key, labels in made:
            different = [np.mean(one != other) for one, other in zip(labels, end, strict=True)]
            found.setdefault(key, []).append(100 * float(np.mean(different)))
    ways = [way for way in (PUBLISHED, BETTER, MASKED) if (0, way) in found]
    return [
        {"rounds": number, **{way: float(np.mean(found[number, way])) for way in ways}, "seeds": seeds}
        for number in ROUNDS
    ]


def _labels(aligned: Aligned, tests: list[Array]) -> list[Places]:
    return [aligned.scores(client, rows).argmax(axis=1) for client, rows in enumerate(tests)]


def _plaintext(clients: Clients, tests: list[Array]) -> Iterator[tuple[tuple[int, str], list[Places]]]:
    steps: tuple[tuple[str, Rule], ...] = ((PUBLISHED, "published"), (BETTER, "alvarez-esteban"))
    for number in ROUNDS:
        for way, step in steps:
            reference = barycentre(clients.covariances, clients.counts, number, step)
            yield (number, way), _labels(slot_to(clients, reference), tests)


def _through_sessions(clients: Clients, tests: list[Array]) -> Iterator[tuple[tuple[int, str], list[Places]]]:
    """Every sum masked: the course of most rounds, stopped after each, and a release under its transport."""
    features = clients.all_rows.shape[1]
    cohort = ps.Cohort(len(clients.rows), len(clients.rows), len(clients.all_rows))
    gaussians = ps.GaussianSchema(features, RADIUS, shrinkage="ledoit-wolf", rounds=max(ROUNDS), grid_bits=GRID_BITS)
    course = ps.Alignment(ps.Plan(schema=gaussians, cohort=cohort, privacy=ps.NoPrivacy()))
    shards = list(zip(clients.rows, clients.labels, strict=True))
    sums = ps.simulate(course, shards)
    for number in ROUNDS:
        reference = course.reference(sums[: number + 1])
        common = reference.transport(STRENGTH)
        schema = ps.ClassSchema(CLASSES, features, "NAB", RADIUS, transform=(common,), grid_bits=GRID_BITS)
        own = [reference.local(common, rows) for rows in clients.rows]
        moments = [
            ps.measure(replace(schema, transform=(map_,)), *shard) for map_, shard in zip(own, shards, strict=True)
        ]
        release = ps.simulate(ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy()), moments)
        head = ps.heads.LDA(covariance="total").fit_release(release)
        yield (
            (number, MASKED),
            [with_local_transform(head, map_).predict(rows) for map_, rows in zip(own, tests, strict=True)],
        )


if __name__ == "__main__":
    command("alignment.masked", __doc__, tables, choice)
