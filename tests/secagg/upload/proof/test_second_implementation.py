"""Two implementations of one specification: each takes the other's reports, and refuses what the other refuses."""

from __future__ import annotations

import hashlib

import numpy as np

from privstats.secagg.upload.proof.field import P, elements
from privstats.secagg.upload.proof.prover import Proof
from privstats.secagg.upload.proof.transcript import Transcript
from tests.secagg.upload.proof import second_implementation as second
from tests.secagg.upload.proof.cases import (
    BITS,
    CONTEXT,
    RHO,
    SENDER,
    STEP,
    attempt_of,
    judged,
    nab,
    secrets_of,
    shares_of,
)

CASE = nab(np.random.default_rng(4), classes=2, features=2, n=5)
SHAPE = second.Shape(2, 2, BITS, 5)


def theirs(shift: int = 0) -> Proof:
    """A report of the second implementation, with an entry moved after the witness was made."""
    x, w = CASE.x.tolist(), CASE.witness().tolist()
    x[-1] += shift
    seeds = list(secrets_of().seeds)
    body, blind, said = second.report(SHAPE, x, w, CONTEXT, SENDER, seeds, b"c" * 32)
    transcript = Transcript(said.context, said.sender, tuple(said.commits), (said.parts[0], said.parts[1]))
    return Proof(np.array(body, np.uint64), blind, transcript)


def taken(proof: Proof) -> bool:
    """What the second implementation decides."""
    said = proof.transcript
    shares = [[int(word) for word in share] for share in shares_of(CASE.statement, proof, secrets_of())]
    return second.accepts(
        SHAPE, shares, second.Said(said.context, said.sender, list(said.commits), list(said.parts)), RHO
    )


def test_both_have_the_same_lengths() -> None:
    assert (SHAPE.size, SHAPE.Q, SHAPE.rows) == (CASE.statement.ends[-1], CASE.statement.bits, CASE.statement.rows)
    assert (SHAPE.first, SHAPE.second) == CASE.statement.ends[:2]
    digits = second.Shape(10, 64, 12, 68)
    assert (digits.m, digits.Q, 8 * digits.size) == (2730, 23, 101_104)


def test_a_report_of_ours_is_taken_and_a_lie_of_ours_refused_by_the_second_implementation() -> None:
    assert taken(attempt_of(CASE).finished())
    x = CASE.x.copy()
    x[-1] += 1
    made = attempt_of(CASE, x=x.astype(np.uint64) % np.uint64(P))
    assert not taken(made.finished())
    assert judged(CASE.statement, made.finished(), secrets_of()) != ()


def test_a_report_of_the_second_implementation_is_taken_and_its_lie_refused_by_ours() -> None:
    assert judged(CASE.statement, theirs(), secrets_of()) == ()
    assert judged(CASE.statement, theirs(1), secrets_of()) == ("gram factor",)
    assert taken(theirs())
    assert not taken(theirs(1))


def test_a_report_under_a_fixed_secret_is_frozen() -> None:
    """An order, a label or a constant that changes by mistake shows here; the witness is exact on every machine."""
    x, w = np.zeros(9, np.int64), np.zeros(18, np.int64)
    x[[0, 2, 6]] = STEP**2  # one record of class 0 along the first axis: N, A, B
    w[[0, 2]] = STEP
    proof = attempt_of(CASE, x=elements(x), w=elements(w)).finished()
    assert judged(CASE.statement, proof, secrets_of()) == ()
    found = hashlib.sha256(proof.body.astype("<u8").tobytes() + proof.blind + b"".join(proof.transcript.parts))
    assert found.hexdigest() == "8120b7482a10b124f3d3813ad659d5a4254e26ca339151b5471d1b57c563337a"
