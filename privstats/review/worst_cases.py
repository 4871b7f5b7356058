"""Select a kind's worst pair of adjacent data sets, and its distance.

A kind lists its pairs (``kinds.worst``); docs/proofs/sensitivity.md proves which are worst.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from privstats.dp import Privacy
from privstats.errors import SchemaError
from privstats.kinds.base import kind_of
from privstats.kinds.worst import Record, WorstPair, first, record_of
from privstats.schema import Schema


@dataclass(frozen=True)
class Case:
    """Neighbouring data sets ``beside`` + ``gone`` and ``beside`` + ``come``, and their distance by letter.

    Attributes:
        beside: records of the same party in both, where weights depend on them.
        gone: the record in the first only; empty where a unit is added.
        come: the record in the second only, or a unit's records.
        moves: squared distances in wire steps, by letter.
    """

    beside: tuple[Record, ...]
    gone: tuple[Record, ...]
    come: tuple[Record, ...]
    moves: Mapping[str, int]


def worst_case(schema: Schema, privacy: Privacy, weights: Mapping[str, float]) -> Case:
    """Return the candidate of the largest ``sum_s weights_s moves_s``.

    Args:
        weights: per letter, for squared wire steps; others do not count.

    Raises:
        SchemaError: no worst case is written for this kind.
    """
    cases = [
        Case(beside, gone, come, _moves(schema, weights, (*beside, *gone), (*beside, *come)))
        for beside, gone, come in _candidates(schema, privacy, weights)
    ]
    return max(cases, key=lambda case: sum(weights[s] * moved for s, moved in case.moves.items()))


Sides: TypeAlias = tuple[tuple[Record, ...], tuple[Record, ...], tuple[Record, ...]]


def _worst(schema: Schema) -> WorstPair:
    worst = kind_of(schema).worst()
    if worst is None:
        raise SchemaError(f"no worst case is written for a {type(schema).__name__}; measure a schema of another kind")
    return worst


def _candidates(schema: Schema, privacy: Privacy, weights: Mapping[str, float]) -> Iterator[Sides]:
    row = _worst(schema)
    pairs = row.pairs(schema, weights)
    if not pairs:
        yield (), (), ()
        return
    if privacy.unit == "person":  # with the rows that count in full, alone or next to another person
        groups = [tuple({**each, "times": math.floor(privacy.group)} for each in pair) for pair in pairs]
        gone = privacy.adjacency == "replace-one"
        yield from (((), (one,) if gone else (), (other if gone else one,)) for one, other in groups)
        return
    if privacy.adjacency == "replace-one":
        yield from ((beside, (one,), (other,)) for beside in row.exchanged(schema) for one, other in pairs)
        if row.left_out(schema):
            yield from ((row.crowd(schema)[:1], (), (one,)) for one, _ in pairs)
        return
    times = privacy.max_records_per_client if privacy.client_clip is None else None
    if privacy.unit == "record":
        yield from ((row.crowd(schema)[:1], (), (one,)) for one, _ in pairs)
    if row.halves and times and times > 1:
        half = times // 2
        yield (), (), (record_of(first(schema), times=half), record_of(first(schema, -1), times=times - half))
    yield from (((), (), ({**one, "times": times or 1},)) for one, _ in pairs)


def _moves(
    schema: Schema, weights: Mapping[str, float], before: Sequence[Record], after: Sequence[Record]
) -> dict[str, int]:
    old, new = (_worst(schema).sums(schema, records) for records in (before, after))
    moves = dict.fromkeys(weights, 0)
    for letter, cell in old.keys() | new.keys():
        if letter in moves:
            gap = new.get((letter, cell), 0) - old.get((letter, cell), 0)
            moves[letter] += int(np.sum(np.square(gap)))
    return moves
