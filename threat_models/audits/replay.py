"""Record a private fit, then replay it on a neighbour with the same noisy sums (Cebere et al. 2026, arXiv 2602.17454).

Whatever a fit shows is made of its noisy sums and of public values. So if a second run, on records that differ in one,
gets the noisy sums of the first, it must ask for the same sums under the same plans in the same order, move them by no
more than the noise pays for, and end in the same file. One pair of runs falsifies: a step that reads
the records beside the sums shows in the plans or in the file, whatever the noise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from privstats.dp import Privacy, gaussian_mu
from privstats.dp.privacy import MODELS
from privstats.encoding import RingVector
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.session import noise
from threat_models.audits.target import target_of
from threat_models.audits.verdict import Report, Value

Records: TypeAlias = tuple[Any, Any]
"""X and y, in any container that the fit takes."""

_SEAM = "privstats.session.unmasked.with_central_noise"
_COLUMNS = ("neighbour", "sums", "same plans", "mu moved", "mu promised", "same file")
_TOLERANCE = 1e-9
_LENGTH = 8  # bytes in front of the header of a safetensors file


@dataclass(frozen=True, eq=False)
class _Sum:
    """One noisy sum of the recorded fit: its plan, the exact sum that only the audit sees, and what was released."""

    plan: Plan
    exact: NDArray[np.int64]
    noisy: NDArray[np.int64]


@dataclass
class _Replay:
    """Result of a second run: the sums that it requested under the plans of the first, and the moved mu^2."""

    recorded: Sequence[_Sum]
    asked: int = 0
    square: float = 0.0
    strayed: bool = field(default=False, init=False)

    def answer(self, plan: Plan, total: RingVector, rng: Generator) -> RingVector:
        place, self.asked = self.asked, self.asked + 1
        if place >= len(self.recorded) or plan.digest != self.recorded[place].plan.digest:
            self.strayed = True
            return noise.with_central_noise(plan, total, rng)  # there is nothing to replay: let it end
        known = self.recorded[place]
        shift = (total.lift() - known.exact) / target_of(plan).levels()
        self.square += float(shift @ shift)
        return plan.ring.encode(known.noisy)


def audit_replay(
    fit: Callable[[Any, Any], Any], records: Records, neighbours: Sequence[Records], privacy: Privacy
) -> Report:
    """One row per neighbour: whether the fit asked for the same sums, how far they moved, and whether its file differs.

    Args:
        fit: of records; returns a fitted head or a release, whose ``save(path)`` writes a safetensors file. The noise
            of all its sums is the server's, as one party's is.
        records: those of the recorded run.
        neighbours: each differs from ``records`` by one record, as ``privacy.adjacency`` says.
        privacy: what ``fit`` promises for one record, in all of its sums.

    Guarantee:
        Falsifies and proves nothing beyond these pairs: the claim is that all sums together move by at most
        ``gaussian_mu(privacy.epsilon, privacy.delta)`` deviations of their noise, for one record under
        ``privacy.adjacency`` (Dong, Roth and Su 2022), and that all else is post-processing.

    Raises:
        PlanError: a promise without delta, whose noise is not Gaussian, or not the server's alone.

    Example:
        >>> from threat_models.audits.replay import audit_replay
        >>> X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 2
        >>> promise = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
        >>> terms = dict(epsilon=2.0, delta=1e-5, adjacency="add-remove", clip_norm=2.0, classes=(0, 1))
        >>> fit = lambda X, y: ps.heads.LDA().fit_private(X, y, ledger="uncharged", **terms)
        >>> audit_replay(fit, (X, y), [(X[1:], y[1:]), (X[:-1], y[:-1])], promise).violated
        False
    """
    if MODELS[privacy.model].drawn_by != "server" or privacy.pure:
        raise PlanError("a replay needs the server's Gaussian noise: give model='central' and a delta above 0")
    promised = gaussian_mu(privacy.epsilon, privacy.delta)
    with TemporaryDirectory() as folder:
        home = Path(folder)
        with _recording() as recorded:
            first = _saved(fit(*records), home / "first")
        rows: list[tuple[Value, ...]] = []
        for place, each in enumerate(neighbours):
            replay = _Replay(recorded)
            with patch(_SEAM, replay.answer):
                second = _saved(fit(*each), home / "second")
            same = not replay.strayed and replay.asked == len(recorded)
            rows.append((place, replay.asked, same, float(np.sqrt(replay.square)), promised, second == first))
    violated = not all(same and moved <= promised * (1 + _TOLERANCE) and equal for _, _, same, moved, _, equal in rows)  # type: ignore[operator]
    notes = (f"{len(recorded)} sums were recorded; a neighbour's run got the same noisy sums",)
    return Report("replay", _COLUMNS, tuple(rows), notes, violated)


@contextmanager
def _recording() -> Iterator[list[_Sum]]:
    sums: list[_Sum] = []

    def record(plan: Plan, total: RingVector, rng: Generator) -> RingVector:
        exact = total.lift()
        noisy = noise.with_central_noise(plan, total, rng)
        sums.append(_Sum(plan, exact, noisy.lift()))
        return noisy

    with patch(_SEAM, record):
        yield sums


def _saved(fitted: Any, path: Path) -> tuple[Any, bytes]:
    """The header of a safetensors file, whose keys have no order, and its data."""
    fitted.save(path)
    data = path.read_bytes()
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    return json.loads(data[_LENGTH:end]), data[end:]
