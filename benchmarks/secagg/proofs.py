"""What a report that proves its vector costs client, helper and leader, beside the report that proves nothing.

    OMP_NUM_THREADS=1 python -m benchmarks.secagg.proofs --save

CPU milliseconds for one report, one helper, without wire and machines, which proofs do not have yet: witness and report
at the client; the answers at a helper; the leader's own answers and its decision. Beside it, in turns, what the cover
of ``split`` costs them for as many entries of 32 bits. Every report is verified before its time counts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command, least_seconds
from privstats.encoding import Ring
from privstats.secagg.upload.masking_scheme import Streams
from privstats.secagg.upload.proof import field, gadgets, transcript
from privstats.secagg.upload.proof.gathered import of_classes
from privstats.secagg.upload.proof.norm import of_norms
from privstats.secagg.upload.proof.prover import Proof, Secrets, prove
from privstats.secagg.upload.proof.report import query_of
from privstats.secagg.upload.proof.statement import Statement
from privstats.secagg.upload.proof.verifier import answer, answer_size, bad_parts, refusals, summed

BITS = 12
UNIT = 4**BITS
CLASSES = ((10, 64, 68), (10, 128, 1_000), (10, 256, 1_000), (77, 384, 100))
NORMS = ((10_000, 68), (100_000, 68), (1_000_000, 68))
SENDER, CONTEXT = 3, bytes(32)


@dataclass
class Work:
    """One report of one client, and everybody's part of it."""

    statement: Statement
    x: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.secrets = Secrets(CONTEXT, SENDER, os.urandom(32), (os.urandom(32),))
        self.query = query_of(self.statement, os.urandom(32), CONTEXT, SENDER)
        self.proof = self.client()
        self.helped = self.helper()
        if self.leader():
            raise SystemExit("an honest report was refused")
        ring = Ring(((self.statement.size, 32),))
        self.cover, self.vector, self.total = Streams(ring, 1, CONTEXT), ring.encode(self.x), ring.zeros()
        body, self.pieces = self.cover.hide(self.vector, bytes(32), SENDER)
        self.body = b"".join(bytes(tile) for tile in body)

    def client(self) -> Proof:
        """Witness and report."""
        elements, hidden = field.elements(self.x), np.zeros(0, np.int64)
        witness = self.statement.witness(self.x, hidden, lambda number, size: field.stream(bytes([number]) * 32, size))
        return prove(self.statement, elements, field.elements(witness), self.secrets)

    def helper(self) -> field.Field:
        """A helper's answers, of its seed."""
        share = transcript.share(self.secrets.seeds[0], CONTEXT, SENDER, self.statement.ends[-1])
        return answer(self.statement, share, self.proof.transcript, self.query)

    def leader(self) -> tuple[str, ...]:
        """The leader's answers, and its decision."""
        proof = self.proof
        if bad_parts(self.statement, proof.body, proof.blind, proof.transcript):
            return ("parts",)
        own = answer(self.statement, proof.body, proof.transcript, self.query)
        return refusals(self.statement, summed([own, self.helped]), proof.transcript, self.query)

    def tasks(self) -> dict[str, Callable[[], object]]:
        """By name."""
        out = memoryview(bytearray(self.cover.answer_bytes))
        return {
            "client": self.client,
            "helper": self.helper,
            "leader": self.leader,
            "client, none": lambda: list(self.cover.hide(self.vector, bytes(32), SENDER)[0]),
            "helper, none": lambda: self.cover.answer([(SENDER, self.pieces[0])], out),
            "leader, none": lambda: self.cover.add(self.total, memoryview(self.body)),
        }


def class_sums(classes: int, features: int, records: int) -> Work:
    """Wire entries of N, A and B of records within the ball."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(records, features))
    X = np.trunc(X * 2**BITS / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.int64)
    y = rng.integers(0, classes, records)
    sums, second = np.zeros((classes, features), np.int64), X.T @ X
    np.add.at(sums, y, X << BITS)
    upper = second[np.triu_indices(features, 1)]
    x = np.concatenate([UNIT * np.bincount(y, minlength=classes), sums.ravel(), second.diagonal(), upper])
    return Work(of_classes(classes, features, BITS, records), x)


def gradient(size: int, records: int) -> Work:
    """One statistic of the largest norm."""
    vector = np.random.default_rng(0).normal(size=size)
    vector *= records * UNIT / np.linalg.norm(vector)
    return Work(of_norms((size,), UNIT, records), np.trunc(vector).astype(np.int64))


def works(*, quick: bool) -> Iterator[tuple[str, Work]]:
    """What is measured, with its words."""
    for classes, features, records in ((3, 5, 20),) if quick else CLASSES:
        yield f"moments, {classes} x {features}, n = {records}", class_sums(classes, features, records)
    for size, records in ((50, 20),) if quick else NORMS:
        yield f"norm, n = {records}", gradient(size, records)


def reports(*, quick: bool) -> Iterator[Row]:
    """Milliseconds and bytes of every report."""
    for name, work in works(quick=quick):
        seconds = least_seconds(work.tasks(), 1 if quick else 5, time.process_time)
        yield {
            "statement": name,
            "m": work.statement.size,
            **{f"{party} ms": 1e3 * seconds[party] for party in ("client", "helper", "leader")},
            **{f"{party} ms, none": 1e3 * seconds[f"{party}, none"] for party in ("client", "helper", "leader")},
            "report kB": 8 * work.statement.ends[-1] / 1e3,
            "report kB, none": len(work.body) / 1e3,
            "answers kB": 8 * answer_size(work.statement) / 1e3,
        }


def kernels(size: int, repeats: int) -> list[Row]:
    """Nanoseconds an entry of what the field is made of."""
    a, b = (field.stream(bytes([k]) * 32, size) for k in (1, 2))
    side = int(size**0.5)
    square, signs = a[: side * side].reshape(side, side), transcript.signs(bytes(32), CONTEXT, size)
    small, weights = (a % np.uint64(1 << 20)).astype(np.int64), b[:128]
    tasks: dict[str, Callable[[], Any]] = {
        "add": lambda: field.add(a, b),
        "mul": lambda: field.mul(a, b),
        "matmul, matrix x vector": lambda: field.matmul(square, b[:side, None]),
        "total": lambda: field.total(a),
        "stream": lambda: field.stream(bytes(32), size),
        "128 signed sums (client)": lambda: gadgets.projected(small, signs, 128),
        "128 signed sums combined (member)": lambda: gadgets.combined_signs(signs, size, weights),
    }
    seconds = least_seconds(tasks, repeats, time.process_time)
    return [{"kernel": name, "ns an entry": 1e9 * each / size} for name, each in seconds.items()]


def tables(chosen: argparse.Namespace) -> Tables:
    """Kernels, then reports."""
    sizes: Sequence[int] = (1_000, 1) if chosen.quick else (100_000, 5)
    yield "kernels of the field, CPU time", kernels(*sizes)
    yield "a report that proves its vector beside one that does not, h = 1, CPU time", list(reports(quick=chosen.quick))


if __name__ == "__main__":
    command("secagg.proofs", __doc__, tables)
