"""Whole courses of the library: exact integers and its own noise, in the central and the distributed model.

No protocol: the server adds the clients' vectors in clear, which are the same integers as under masks. Some clients are
silent in each round, other ones each time, and their records are missing from its sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split
from privstats import heads
from privstats.course import Node, Rounds, run
from privstats.randomness import seeded
from privstats.release import Release
from privstats.transforms import UnitNorm

__all__ = ["CENTRAL", "DISTRIBUTED", "Setting", "course_of", "played", "prefixes"]


@dataclass(frozen=True)
class Setting:
    """Who holds the records and who of them falls silent.

    Attributes:
        model: trust model.
        clients: parties that share the records evenly.
        silent: how many of them send nothing, in every node anew.
    """

    model: Any
    clients: int
    silent: int


CENTRAL, DISTRIBUTED = Setting("central", 2, 0), Setting("distributed", 20, 2)


def course_of(split: Split, epsilon: float, delta: float, rounds: int, setting: Setting = CENTRAL) -> Rounds:
    """A course of a softmax whose whole promise is (epsilon, delta), for one record, add-remove."""
    X, _, y, _ = split
    schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", clip_norm=1.0, transform=(UnitNorm(),))
    privacy = ps.Privacy(model=setting.model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=delta)
    cohort = ps.Cohort(setting.clients, setting.clients - setting.silent, len(X))
    return Rounds.within(ps.Plan(schema=schema, cohort=cohort, privacy=privacy), rounds)


def played(
    course: Rounds, X: NDArray[Any], y: NDArray[Any], setting: Setting, seed: int, first: list[Any] | None = None
) -> list[Release | None]:
    """The releases of a course over records dealt to the clients in turn.

    Args:
        course: in the setting's trust model, for as many clients.
        X, y: all clients' records.
        setting: how many of them fall silent.
        seed: of noise and silences.
        first: a list that keeps the clients' exact sums of the first node, for other draws over the same records.
    """
    n, rng, chance = setting.clients, np.random.default_rng(seed), seeded(seed)
    keep: list[Any] = [] if first is None else first

    def measured(node: Node) -> Callable[[int], Any]:
        if node.place == 0:
            if not keep:
                keep.extend(ps.measure(node.plan.schema, X[k::n], y[k::n]) for k in range(n))
            return keep.__getitem__
        return lambda k: ps.measure(node.plan.schema, X[k::n], y[k::n], published=node.plan.published)

    def release(node: Node) -> Release:
        part = measured(node)
        there = np.sort(rng.permutation(n)[setting.silent :])
        return ps.session.in_clear(node.plan, [part(int(k)) for k in there], chance)

    return run(course, release)


def prefixes(releases: Sequence[Release | None], **parameters: Any) -> list[heads.RefinedSoftmax]:
    """The head after the first release, and after every round."""
    return [heads.RefinedSoftmax(**parameters).fit_releases(releases[: end + 1]) for end in range(len(releases))]
