"""Verification by leader and helpers: each member's answer for its share, and the decision on the answers' sum.

Answers are linear in the share, so a lying member shifts the sum and learns nothing from the decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from privstats.contrib.proofs import transcript
from privstats.contrib.proofs.field import Field, P, add, checked, dot, matmul, mul, powers_of_two
from privstats.contrib.proofs.gadgets import Bits, GramAnswer, combined_signs, gram_accepts
from privstats.contrib.proofs.statement import Statement
from privstats.contrib.proofs.transcript import Transcript, query

_SPARE = 16


@dataclass(frozen=True, eq=False)
class Masked:
    """Sent values of one Gram: M's lower triangle or nothing, z, Xz, z'z."""

    product: Field
    mask: Field
    right: Field
    square: int


@dataclass(frozen=True, eq=False)
class Report:
    """A report's vector, or a share of one, by its parts.

    Attributes:
        x, w: the summed entries, and the witness.
        bits: ``(rows, Q)``, the tests' first, then the slacks'.
        masks: one per row.
        quotients: h's values, ``(3, Q + 1)``.
    """

    x: Field
    w: Field
    grams: tuple[Masked, ...]
    bits: Field
    masks: Field
    quotients: Field


def cut(statement: Statement, vector: Field) -> Report:
    """Return a vector's parts, as views."""
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
    """The leader's coins for one report: a nonzero v and c per Gram, t of at least 2 Q + 2, and the weights of
    tests, then slacks.
    """

    grams: tuple[tuple[int, Field], ...]
    point: int
    weights: Field


def query_of(statement: Statement, rho: bytes, context: bytes, sender: int) -> Query:
    """Return the query derived from rho, without a v of 0 or points that reveal bits."""
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
    places = np.flatnonzero(words[at:] >= np.uint64(least))
    if not places.size:
        raise ValueError("a query of words that were not drawn: all of them are near zero")
    return at + int(places[0])


def bad_parts(statement: Statement, body: Field, blind: bytes, signed: Transcript) -> bool:
    """Return whether the opened body differs from the signed parts; raise ``ValueError`` for bad words."""
    first, second, size = statement.ends
    if checked(body).shape != (size,):
        raise ValueError(f"a report of this statement has {size} words, got {body.size}")
    stages = (body[:first], body[first:second])
    one, two = (stage.astype("<u8").tobytes() for stage in stages)
    parts = (
        transcript.first_part(signed.context, signed.sender, blind, one),
        transcript.second_part(signed.context, signed.sender, blind, two),
    )
    return parts != signed.parts


def answer_size(statement: Statement) -> int:
    """Return an answer's elements: per Gram w and q, the zero, each row's f, three of h."""
    return sum(gram.columns + 1 for gram in statement.grams) + 1 + statement.rows + 3


def answer(statement: Statement, share: Field, signed: Transcript, query: Query) -> Field:
    """Return a member's answer, linear in its share."""
    report = cut(statement, share)
    parts: list[Field] = []
    for gram, sent, (v, c) in zip(statement.grams, report.grams, query.grams, strict=True):
        scaled = mul(sent.mask, np.full(gram.columns, v, np.uint64))
        across = 2 * v * dot(c, sent.right) + v * v * sent.square
        q = (gram.form(report.x, report.w, sent.product, c) + across) % P
        parts += [add(gram.multiply_transposed(report.x, report.w, c), scaled), np.array([q], np.uint64)]
    zero = _combined(statement, report, signed, query.weights)
    values, quotients = Bits(statement.bits).answer(report.masks, report.bits, report.quotients, query.point)
    return np.concatenate([*parts, np.array([zero], np.uint64), values, quotients])


def _combined(statement: Statement, report: Report, signed: Transcript, weights: Field) -> int:
    bits, out, row = Bits(statement.bits), 0, statement.signed
    if row:
        coins = transcript.signs(signed.first, signed.context, statement.tested_size)
        signs = combined_signs(coins, statement.tested_size, weights[:row])
        shown = matmul(report.bits[:row], powers_of_two(bits.count)[:, None]).ravel()
        out += dot(signs, statement.tested(report.x, report.w)) - dot(weights[:row], shown)
    products = [sent.product for sent in report.grams]
    forms = statement.relations(report.x, report.w, products)
    for slack, form, weight in zip(statement.slacks, forms, weights[statement.signed :], strict=True):
        values = bits.weights(slack.width)
        rows = len(values) // bits.count
        held = dot(values, report.bits[row : row + rows].ravel()) if rows else 0
        out, row = out + int(weight) * (int(form) - held), row + rows
    return out % P


def summed(answers: Iterable[Field]) -> Field:
    """Return the sum of all members' answers; raise ``ValueError`` for a word that is no element."""
    first, *others = (checked(each) for each in answers)
    for each in others:
        first = add(first, each)
    return first


def refusals(statement: Statement, total: Field, signed: Transcript, query: Query) -> tuple[str, ...]:
    """Return the checks that the answers' sum fails; empty for an accepted report.

    Guarantee:
        A report that does not meet the statement passes with probability at most 2**-128 for each hash that the client
        computed beforehand, and 2**-54 once the report has left, if leader and helpers follow the protocol and the
        query was sampled after the report (docs: the gadgets and the lemma).
    """
    failed, at = [], 0
    for gram in statement.grams:
        end = at + gram.columns
        if not gram_accepts(GramAnswer(total[at:end], int(total[end]))):
            failed.append(f"gram {gram.name}")
        at = end + 1
    if (int(total[at]) + constants(statement, query.weights)) % P:
        failed.append("relations")
    values, quotients = total[at + 1 : at + 1 + statement.rows], total[at + 1 + statement.rows :]
    gamma = transcript.gamma(signed.second, signed.context, statement.rows)
    if not Bits(statement.bits).accepts(values, quotients, gamma, query.point):
        failed.append("bits")
    return tuple(failed)


def constants(statement: Statement, weights: Field) -> int:
    """Return the relations' public terms: tests' tau, slacks' constants."""
    tau = 1 << (statement.bits - 1)
    tests = sum(int(weight) for weight in weights[: statement.signed]) * tau
    pairs = zip(statement.slacks, weights[statement.signed :], strict=True)
    return tests + sum(int(weight) * slack.constant for slack, weight in pairs)
