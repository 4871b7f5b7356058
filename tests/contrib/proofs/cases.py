"""Honest clients' entries for every statement, from whole-numbered records; one run of prover, members and leader."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.proofs import transcript, verifier
from privstats.contrib.proofs.counts import of_counts
from privstats.contrib.proofs.field import elements, stream
from privstats.contrib.proofs.moments import Moments, of_classes, of_folds, of_separate_classes
from privstats.contrib.proofs.norm import of_norms
from privstats.contrib.proofs.prover import Attempt, Proof, Secrets, prove
from privstats.contrib.proofs.statement import Statement
from privstats.contrib.proofs.verifier import Query, answer, query_of, refusals, summed
from tests.secagg.interactive.cohorts import stream as bytes_of

Integers = NDArray[np.int64]
BITS = 8
STEP = 2**BITS


def vectors(rng: np.random.Generator, count: int, width: int, *, rank: int = 0, scale: float = 1.0) -> Integers:
    """Whole-numbered vectors of norm at most 2**f."""
    real = rng.normal(size=(count, rank or width)) @ rng.normal(size=(rank or width, width))
    real *= scale * STEP / np.maximum(np.linalg.norm(real, axis=1, keepdims=True), 1e-9)
    return np.trunc(real).astype(np.int64)


def triangle(matrix: Integers) -> Integers:
    """Diagonals, then strict upper triangles by row, of ``(blocks, d, d)``."""
    row, column = np.triu_indices(matrix.shape[-1], 1)
    diagonals = np.diagonal(matrix, axis1=1, axis2=2)
    return np.concatenate([diagonals.ravel(), matrix[:, row, column].ravel()])


def class_sums(X: Integers, y: Integers, classes: int) -> tuple[Integers, Integers, Integers]:
    """Wire entries of N, A and B or S: by class."""
    counts = STEP**2 * np.bincount(y, minlength=classes)
    sums = np.zeros((classes, X.shape[1]), np.int64)
    np.add.at(sums, y, STEP * X)
    second = np.stack([X[y == c].T @ X[y == c] for c in range(classes)])
    return counts, sums.ravel(), second


@dataclass(frozen=True)
class Case:
    """A statement with an honest client's entries, and its witness where it is known."""

    statement: Statement
    x: Integers
    hidden: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    known: Integers | None = None

    def witness(self) -> Integers:
        if self.known is not None:
            return self.known
        return self.statement.witness(self.x, self.hidden, lambda number, size: stream(bytes([number]) * 32, size))


def nab(rng: np.random.Generator, classes: int = 3, features: int = 4, n: int = 9, **more: Any) -> Case:
    X, y = vectors(rng, n, features, **more), rng.integers(0, classes, n)
    counts, sums, second = class_sums(X, y, classes)
    x = np.concatenate([counts, sums, triangle(second.sum(axis=0, keepdims=True))])
    return Case(of_classes(classes, features, BITS, max(n, 1)), x)


def na(rng: np.random.Generator) -> Case:
    whole = nab(rng)
    return Case(of_classes(3, 4, BITS, 9, second=False), whole.x[:15], whole.x[15:])


def nas(rng: np.random.Generator) -> Case:
    X, y = vectors(rng, 9, 4), rng.integers(0, 3, 9)
    counts, sums, second = class_sums(X, y, 3)
    return Case(of_separate_classes(3, 4, BITS, 9), np.concatenate([counts, sums, triangle(second)]))


def ridge(rng: np.random.Generator) -> Case:
    X, Y, fold = vectors(rng, 9, 4), vectors(rng, 9, 2), rng.integers(0, 2, 9)
    parts = [(X[fold == k], Y[fold == k]) for k in range(2)]
    G = np.stack([x.T @ x for x, _ in parts])
    h = np.concatenate([(x.T @ y).ravel() for x, y in parts])
    own = [(y.T @ y) for _, y in parts]
    q = np.array([np.trace(each) for each in own])
    hidden = np.concatenate([each[np.tril_indices(2)] for each in own])
    return Case(of_folds(4, 2, 2, BITS, 9), np.concatenate([triangle(G), h, q]), hidden)


def norm(rng: np.random.Generator) -> Case:
    gradient = vectors(rng, 9, 20).sum(axis=0) * STEP
    kappa = rng.integers(0, 9 * STEP**2 + 1)
    return Case(of_norms((20, 1), STEP**2, 9, counters=(20,)), np.append(gradient, kappa))


def counts(rng: np.random.Generator) -> Case:
    tables = [np.bincount(rng.integers(0, cells, 9), minlength=cells) for cells in (4, 3)]
    return Case(of_counts((4, 3), STEP**2, 9), STEP**2 * np.concatenate(tables))


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "NAB": nab,
    "NA": na,
    "NAS": nas,
    "ridge": ridge,
    "norm": norm,
    "counts": counts,
}

CONTEXT, SENDER, RHO = b"a run of proofs, of thirty-two b", 3, bytes(range(32))


def secrets_of(label: str = "", helpers: int = 2, sender: int = SENDER, context: bytes = CONTEXT) -> Secrets:
    """Secrets that follow from a label."""
    drawn = bytes_of(f"proof {label}")
    return Secrets(context, sender, drawn(32), tuple(drawn(32) for _ in range(helpers)))


def attempt_of(case: Case, label: str = "", **changed: Any) -> Attempt:
    """The first try of an honest client's report."""
    x, w = (changed.pop(name, None) for name in ("x", "w"))
    x = elements(case.x) if x is None else x
    w = elements(case.witness()) if w is None else w
    return Attempt(case.statement, x, w, secrets_of(label, **changed), 0)


def proof_of(case: Case, label: str = "", **changed: Any) -> Proof:
    """An honest client's report."""
    return prove(case.statement, elements(case.x), elements(case.witness()), secrets_of(label, **changed))


def shares_of(statement: Statement, proof: Proof, secrets: Secrets) -> list[NDArray[np.uint64]]:
    """Every member's share, the leader's first."""
    place = (secrets.context, secrets.sender, statement.ends[-1])
    return [proof.body, *(transcript.share(seed, *place) for seed in secrets.seeds)]


def asked(statement: Statement, proof: Proof, rho: bytes = RHO) -> Query:
    """The leader's query of a report."""
    return query_of(statement, rho, proof.transcript.context, proof.transcript.sender)


def judged(statement: Statement, proof: Proof, secrets: Secrets, rho: bytes = RHO) -> tuple[str, ...]:
    """What leader and honest helpers find wrong with a report."""
    if verifier.bad_parts(statement, proof.body, proof.blind, proof.transcript):
        return ("parts",)
    query = asked(statement, proof, rho)
    shares = shares_of(statement, proof, secrets)
    total = summed(answer(statement, share, proof.transcript, query) for share in shares)
    return refusals(statement, total, proof.transcript, query)


def found(case: Case, label: str = "") -> tuple[str, ...]:
    """What is found wrong with an honest client's report."""
    return judged(case.statement, proof_of(case, label), secrets_of(label))


__all__ = [
    "CASES",
    "Case",
    "Moments",
    "asked",
    "attempt_of",
    "found",
    "judged",
    "nab",
    "proof_of",
    "secrets_of",
    "shares_of",
]
