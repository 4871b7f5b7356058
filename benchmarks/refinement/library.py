"""Whole courses of the library: exact integers and its own noise, in the central and the distributed model.

No protocol: the server adds the clients' vectors in clear, which are the same integers as under masks. Some clients are
silent in each round, other ones each time, and their records are missing from its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split
from benchmarks.refinement.kept import Records
from privstats import heads
from privstats.course import Round, Rounds, run
from privstats.randomness import seeded
from privstats.release import Release
from privstats.transforms import UnitNorm

__all__ = ["CENTRAL", "DISTRIBUTED", "Records", "Setting", "course_of", "played", "prefixes"]


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


def course_of(
    split: Split,
    epsilon: float,
    delta: float,
    rounds: int | None = None,
    setting: Setting = CENTRAL,
    *,
    calibrated: bool = False,
    module: str | None = None,
) -> Rounds:
    """A course of a softmax whose whole promise is (epsilon, delta), for one record, add-remove.

    Args:
        split: X_train, X_test, y_train, y_test.
        epsilon, delta: of the whole.
        rounds: T; None: as many as the library advises.
        setting: who holds the records.
        calibrated: whether it ends in a calibration.
        module: of the rounds, in place of a linear softmax.
    """
    X, _, y, _ = split
    schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", clip_norm=1.0, transform=(UnitNorm(),))
    privacy = ps.Privacy(model=setting.model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=delta)
    cohort = ps.Cohort(setting.clients, setting.clients - setting.silent, len(X))
    whole = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
    return Rounds.within(whole, rounds, calibrated=calibrated, module=module)


def played(
    course: Rounds, X: NDArray[Any], y: NDArray[Any], setting: Setting, seed: int, records: Records | None = None
) -> list[Release | None]:
    """The releases of a course over records dealt to the clients in turn.

    Args:
        course: in the setting's trust model, for as many clients.
        X, y: all clients' records.
        setting: how many of them fall silent.
        seed: of noise and silences.
        records: the same records, dealt to as many clients, for other draws; made of X and y if omitted.
    """
    rng, chance = np.random.default_rng(seed), seeded(seed)
    kept = Records(X, y, setting.clients) if records is None else records

    def release(round_: Round) -> Release:
        there = np.sort(rng.permutation(setting.clients)[setting.silent :])
        return ps.session.aggregate_unmasked(round_.plan, [kept.measured(round_.plan, int(k)) for k in there], chance)

    return run(course, release)


def prefixes(releases: Sequence[Release | None], **parameters: Any) -> list[heads.RefinedSoftmax]:
    """The head after the first release, and after every round."""
    return [heads.RefinedSoftmax(**parameters).fit_releases(releases[: end + 1]) for end in range(len(releases))]
