"""A report's vector, cut into its parts, and the leader's query of it: the orders that prover and members share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privstats.secagg.upload.proof.field import Field
from privstats.secagg.upload.proof.gadgets import Bits
from privstats.secagg.upload.proof.statement import Statement
from privstats.secagg.upload.proof.transcript import query

__all__ = ["Masked", "Query", "Report", "cut", "query_of"]

_SPARE = 16


@dataclass(frozen=True, eq=False)
class Masked:
    """What travels of one Gram: M's lower triangle or nothing, z, Xz, z'z."""

    product: Field
    mask: Field
    right: Field
    square: int


@dataclass(frozen=True, eq=False)
class Report:
    """A report's vector, or a share of one, by its parts.

    Attributes:
        x, w: what is summed, and the witness.
        grams: by the statement's.
        bits: ``(rows, Q)``: the tests' first, then the slacks' in the order of the relations.
        masks: of the rows.
        quotients: h by its values, ``(3, Q + 1)``.
    """

    x: Field
    w: Field
    grams: tuple[Masked, ...]
    bits: Field
    masks: Field
    quotients: Field


def cut(statement: Statement, vector: Field) -> Report:
    """The parts of a vector of ``statement.ends[-1]`` elements, as views."""
    sizes = [size for stage in statement.lengths for size in stage]
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    grams = (parts[2 + 4 * k : 6 + 4 * k] for k in range(len(statement.grams)))
    bits, masks, quotients = parts[-3:]
    return Report(
        parts[0],
        parts[1],
        tuple(Masked(product, mask, right, int(square[0])) for product, mask, right, square in grams),
        bits.reshape(statement.rows, statement.bits),
        masks,
        quotients.reshape(3, statement.bits + 1),
    )


@dataclass(frozen=True, eq=False)
class Query:
    """The leader's coins for one report.

    Attributes:
        grams: for each, v, which is not 0, and c.
        point: t, at least 2 Q + 2.
        weights: of the relations: the tests' first, then the slacks'.
    """

    grams: tuple[tuple[int, Field], ...]
    point: int
    weights: Field


def query_of(statement: Statement, rho: bytes, context: bytes, sender: int) -> Query:
    """The query derived from rho; a v of 0, or a point that would reveal bits, is skipped for the next element."""
    rows = [gram.rows for gram in statement.grams]
    relations = statement.signed + len(statement.slacks)
    words = query(rho, context, sender, sum(rows) + len(rows) + 1 + relations + _SPARE)
    least, at = Bits(statement.bits).first_point, 0
    grams = []
    for size in rows:
        at = _first_from(words, at, 1)
        grams.append((int(words[at]), words[at + 1 : at + 1 + size]))
        at += 1 + size
    at = _first_from(words, at, least)
    return Query(tuple(grams), int(words[at]), words[at + 1 : at + 1 + relations])


def _first_from(words: Field, at: int, least: int) -> int:
    """The first place from ``at`` on with a word of at least so much.

    Raises:
        ValueError: there is none, which does not happen to words that were drawn.
    """
    found = np.flatnonzero(words[at:] >= np.uint64(least))
    if not found.size:
        raise ValueError("a query of words that were not drawn: all of them are near zero")
    return at + int(found[0])
