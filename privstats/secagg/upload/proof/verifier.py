"""Verification by leader and helpers: each member's answer for its share, and the decision on the sum of the answers.

A member needs its share and the client's signed statement; it has no state and draws no randomness. Answers are linear
in the share, so a lying member shifts the sum and learns nothing from the decision.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from privstats.secagg.upload.proof import transcript
from privstats.secagg.upload.proof.field import Field, P, add, checked, dot, matmul, mul, powers_of_two
from privstats.secagg.upload.proof.gadgets import Bits, GramAnswer, combined_signs, gram_accepts
from privstats.secagg.upload.proof.report import Query, Report, cut
from privstats.secagg.upload.proof.statement import Statement
from privstats.secagg.upload.proof.transcript import Transcript

__all__ = ["answer", "answer_size", "bad_parts", "constants", "refusals", "summed"]


def bad_parts(statement: Statement, body: Field, blind: bytes, said: Transcript) -> bool:
    """Whether the opened body differs from the one whose parts the client signed.

    Raises:
        ValueError: a word of it is not an element of the field, or there are too few or too many.
    """
    first, second, size = statement.ends
    if checked(body).shape != (size,):
        raise ValueError(f"a report of this statement has {size} words, got {body.size}")
    stages = (body[:first], body[first:second])
    one, two = (stage.astype("<u8").tobytes() for stage in stages)
    found = (
        transcript.first_part(said.context, said.sender, blind, one),
        transcript.second_part(said.context, said.sender, blind, two),
    )
    return found != said.parts


def answer_size(statement: Statement) -> int:
    """Elements of an answer: per Gram w and q, the zero, f of every row, three of h."""
    return sum(gram.columns + 1 for gram in statement.grams) + 1 + statement.rows + 3


def answer(statement: Statement, share: Field, said: Transcript, query: Query) -> Field:
    """A member's answer: linear in its share, and the same for leader and helpers."""
    report = cut(statement, share)
    parts: list[Field] = []
    for gram, sent, (v, c) in zip(statement.grams, report.grams, query.grams, strict=True):
        scaled = mul(sent.mask, np.full(gram.columns, v, np.uint64))
        across = 2 * v * dot(c, sent.right) + v * v * sent.square
        q = (gram.form(report.x, report.w, sent.product, c) + across) % P
        parts += [add(gram.left(report.x, report.w, c), scaled), np.array([q], np.uint64)]
    zero = _combined(statement, report, said, query.weights)
    values, quotients = Bits(statement.bits).answer(report.masks, report.bits, report.quotients, query.point)
    return np.concatenate([*parts, np.array([zero], np.uint64), values, quotients])


def _combined(statement: Statement, report: Report, said: Transcript, weights: Field) -> int:
    """The linear part of all relations under the query's weights."""
    bits, out, row = Bits(statement.bits), 0, statement.signed
    if row:
        coins = transcript.signs(said.first, said.context, statement.tested_size)
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
    """The sum of all members' answers.

    Raises:
        ValueError: a word of one is no element.
    """
    first, *others = (checked(each) for each in answers)
    for each in others:
        first = add(first, each)
    return first


def refusals(statement: Statement, total: Field, said: Transcript, query: Query) -> tuple[str, ...]:
    """The names of the checks that the sum of all members' answers fails; none for an accepted report.

    Guarantee:
        A report of a client that does not keep the statement passes with probability at most 2**-128 for each hash that
        it computed beforehand, and 2**-54 once it has left, if leader and helpers follow the protocol and the query was
        drawn after the report (docs: the gadgets and the lemma).
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
    gamma = transcript.gamma(said.second, said.context, statement.rows)
    if not Bits(statement.bits).accepts(values, quotients, gamma, query.point):
        failed.append("bits")
    return tuple(failed)


def constants(statement: Statement, weights: Field) -> int:
    """What no share holds of the relations: tau of every test, and the slacks' constants."""
    tau = 1 << (statement.bits - 1)
    tests = sum(int(weight) for weight in weights[: statement.signed]) * tau
    pairs = zip(statement.slacks, weights[statement.signed :], strict=True)
    return tests + sum(int(weight) * slack.constant for slack, weight in pairs)
