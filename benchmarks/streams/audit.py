"""Canaries through a whole stream whose server says every epoch that their party dropped out: mu found, mu claimed.

    python -m benchmarks.streams.audit --save

The party's own book decides in which nodes a canary stands; the noise is that of real releases, which integers
move and do not change. A group of copies of the worst record is told apart by the likelihood ratio, with bounds of
95 %. Beside it the double, a party that takes silence for proof and sends the canary again.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats import session
from privstats.contrib.streams import MomentsDelta, RecordRegistry
from privstats.course import spend
from privstats.encoding import flatten
from privstats.errors import LedgerError
from privstats.randomness import seeded
from threat_models.audits.canary import GROUP_MU, lower_bounds

__all__ = ["CARELESS", "OURS", "Careless", "audited", "stream_of"]

SCHEMA = ps.ClassSchema(2, 2, "NA", 1.0)
DELTA = 1e-6
TRIALS, QUICK_TRIALS = 2_000, 300
NOISES = (("increments", 4), ("increments", 16), ("tree", 4), ("tree", 16))
OURS, CARELESS = "keeps a book", "takes silence for proof"
_CONFIDENCE = 0.95
_SECRET = b"a benchmark's, and known to all."


class Careless(RecordRegistry):
    """The double: what was sent is sent again once the server said that it was not counted."""

    def lose(self, node: int) -> None:
        """Settle a vector by the server's word."""
        with self._log.changing() as changes:
            changes.end(node, "returned")


def tables(options: argparse.Namespace) -> Tables:
    """One table: a row per mechanism, number of epochs and party."""
    kinds, trials = (NOISES[:1], QUICK_TRIALS) if options.quick else (NOISES, TRIALS)
    yield (
        "mu of one record over a whole stream",
        [audited(stream_of(*kind), party, trials) for kind in kinds for party in (OURS, CARELESS)],
    )


def stream_of(mechanism: str, epochs: int) -> ps.Stream:
    """The audited stream: three parties, epsilon 1 in all."""
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=DELTA)
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 2, 500), privacy=privacy)
    return ps.Stream(plan, epochs, mechanism)  # type: ignore[arg-type]


def audited(stream: ps.Stream, party: str, trials: int) -> Row:
    """What trials prove about mu of one record, beside what the stream claims."""
    stands = nodes_of_a_canary(stream, {OURS: RecordRegistry, CARELESS: Careless}[party])
    worst = flatten(ps.measure(SCHEMA, np.array([[1.0, 0.0]]), np.array([0])))
    levels = _levels(stream)
    copies = max(1, round(GROUP_MU / float(np.linalg.norm(np.outer(stands, worst / levels)))))
    shift = copies * np.outer(stands, worst / levels)
    whole = float(np.linalg.norm(shift))
    scores = np.einsum("ntd,td->n", _noise(stream, trials), shift / whole)
    least = lower_bounds(scores, scores + whole, _CONFIDENCE, DELTA).mu / copies
    return {
        "mechanism": stream.mechanism,
        "epochs": stream.epochs,
        "party": party,
        "times sent": int(stands.sum()),
        "mu claimed": stream.mu,
        "mu at least": least,
        "ratio": least / stream.mu,
    }


def nodes_of_a_canary(stream: ps.Stream, kind: type[RecordRegistry]) -> NDArray[np.float64]:
    """1.0 for every node whose vector has the canary in it, ``(nodes,)``: by the book of the party."""
    stands = np.zeros(stream.most)
    with TemporaryDirectory() as folder:
        ledger = ps.dp.Ledger.create(Path(folder) / "party.db")
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=1.0, delta=DELTA)
        book = kind.open(stream, ledger, spend(stream, ledger, "ward", b"audit"), _SECRET)
        book.enter(["canary"])
        for node in range(stream.most):
            pending = book.pending(node, ["canary"])
            charge = book.charge(stream.first, [None] * node, pending)
            charge.spend(stream.first, b"")
            charge.finish(stream.first, b"", node.to_bytes(32, "big"))
            stands[node] = len(pending.entering)
            with suppress(LedgerError):  # the party holds to its book: what left counts as sent
                book.lose(node)
    return stands


def _levels(stream: ps.Stream) -> NDArray[np.float64]:
    noise = stream.first.noise
    assert noise is not None
    return np.concatenate([np.full(each.size, noise.grid_sigma(each)) for each in stream.first.layout.segments])


@cache
def _noise(stream: ps.Stream, trials: int) -> NDArray[np.float64]:
    """Releases of nodes in which nobody changed anything, in sigmas, ``(trials, nodes, entries)``."""
    rng, nothing = seeded(11), [MomentsDelta.nothing(SCHEMA)] * 3
    drawn = [
        [session.aggregate_unmasked(stream.first, nothing, rng).vector for _ in range(stream.most)]
        for _ in range(trials)
    ]
    return np.asarray(np.array(drawn) / _levels(stream))


if __name__ == "__main__":
    command("streams.audit", __doc__, tables)
