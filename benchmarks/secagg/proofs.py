"""What a report that proves its vector costs client, helper and leader, beside the report that proves nothing.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.secagg.proofs --save

Sessions of the real machines under two plans that differ in ``validity`` alone, in turns: CPU milliseconds for one
report, one helper, with keys, boxes, signatures and messages. ``before`` is what ``session.client`` computes before a
spend: the sums are held against the statement. Then the arithmetic alone, by kernel, and ways to a smaller report.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command, least_seconds
from benchmarks.secagg.sessions import bits_of
from privstats.contrib.proofs import field, gadgets, transcript
from privstats.contrib.proofs.gadgets import Bits
from privstats.contrib.proofs.moments import of_classes
from privstats.engines import loopback
from privstats.plan import Validity
from privstats.randomness import seeded
from privstats.secagg import Identity

CLASSES = ((10, 64, 68), (10, 128, 1_000), (10, 256, 1_000), (77, 384, 100))
NORMS = ((10, 128, 68), (10, 430, 68), (10, 1_403, 68))
QUICK = ((3, 5, 20),)
CLIENTS, REPEATS = 4, 3
PANEL = tuple(Identity.generate(seeded(place).bytes).public.hex() for place in range(2))
CONTEXT = bytes(32)


@dataclass(frozen=True, eq=False)
class Work:
    """Sessions of a few clients who hold as many records as the plan admits.

    Attributes:
        level: what reports prove.
        schema: of N, A and B.
        records: of one client.
    """

    level: str
    schema: ps.ClassSchema
    records: int

    def plan(self, *, proved: bool) -> ps.Plan:
        """The plan with its validity, or without."""
        validity = Validity(self.level, self.records) if proved else None
        cohort = ps.Cohort(CLIENTS, CLIENTS - 1, CLIENTS * self.records, 1)
        named: dict[str, Any] = {"privacy": ps.NoPrivacy(), "protocol": "split", "panel": PANEL}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that proofs are experimental
            return ps.Plan(schema=self.schema, cohort=cohort, validity=validity, **named)

    def parts(self) -> list[Any]:
        """What every client measured."""
        rng, out = np.random.default_rng(0), []
        for _ in range(CLIENTS):
            X = rng.normal(size=(self.records, self.schema.features))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            out.append(ps.measure(self.schema, X, rng.integers(0, self.schema.classes, self.records)))
        return out

    def session(self, parts: list[Any], *, proved: bool) -> dict[str, float]:
        """Milliseconds of one report by party, and bytes, of one session."""
        plan = self.plan(proved=proved)
        start = time.process_time()
        ps.session.contribution(plan, parts[0])
        before = time.process_time() - start
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parties = ps.session.local_parties(plan, parts)
        leader: Any = parties.server
        outcome = loopback.run(leader, parties.clients, helpers=parties.helpers)
        if outcome.survivors != tuple(range(CLIENTS)) or leader.faults:
            raise SystemExit("an honest report was refused")
        return {
            "client ms": 1e3 * min(outcome.client_cpu),
            "helper ms": 1e3 * outcome.helper_cpu[0] / CLIENTS,
            "leader ms": 1e3 * outcome.server_cpu / CLIENTS,
            "before ms": 1e3 * before,
            "report kB": max(outcome.bytes_sent) / 1e3,
            "answers kB": (outcome.helper_sent[0] - plan.ring.wire_bytes) / CLIENTS / 1e3,
        }


def works(*, quick: bool) -> Iterator[tuple[str, Work]]:
    """What is measured, with its words."""
    levels: Sequence[tuple[str, Sequence[tuple[int, int, int]]]] = (("moments", CLASSES), ("norm", NORMS))
    for level, shapes in levels:
        for classes, features, records in QUICK if quick else shapes:
            schema = ps.ClassSchema(classes, features, "NAB", clip_norm=1.0)
            yield f"{level}, {classes} x {features}, n = {records}", Work(level, schema, records)


def sessions(*, quick: bool) -> Iterator[Row]:
    """The least time of each party, and the bytes, with and without proofs."""
    for name, work in works(quick=quick):
        parts, found = work.parts(), dict[str, float]()
        for _ in range(1 if quick else REPEATS):
            for proved in (True, False):
                for key, value in work.session(parts, proved=proved).items():
                    named = key if proved else f"{key}, none"
                    found[named] = min(value, found.get(named, value))
        plain = work.plan(proved=False)
        yield {"statement": name, "m": plain.layout.size, "bits": bits_of(plain.ring), **found}


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


def ways(*, quick: bool) -> Iterator[Row]:
    """Bytes of a report of digits' size as it is, and by three ways to a smaller one; time where one was run."""
    classes, features, records = QUICK[0] if quick else CLASSES[0]
    statement = of_classes(classes, features, 12, records)
    words, bits = statement.ends[-1], Bits(statement.bits)
    report = field.stream(CONTEXT, words)
    yield {"way": "as it is", "report kB": 8 * words / 1e3, "ms": None}
    packing = least_seconds({"": lambda: packed(report)}, 1 if quick else 5, time.process_time)[""]
    if not np.array_equal(unpacked(packed(report), words), report):
        raise SystemExit("words are lost in packing")
    yield {"way": "words of 61 bits", "report kB": len(packed(report)) / 1e3, "ms": 1e3 * packing}
    rows = statement.grams[1].rows
    sizes = {each: 8 * (words - _gram(statement.entries, rows) + _gram(statement.entries, each)) / 1e3
             for each in (rows // 2 or 1, max(1, round((2 * statement.entries) ** (1 / 3))), 2 * rows)}  # fmt: skip
    best = min(sizes, key=lambda each: sizes[each])
    yield {"way": f"{best} rows of E in place of {rows}", "report kB": sizes[best], "ms": None}
    digits = -(-bits.count // 2)  # base 4: half the digits, and a quotient of degree 3 Q / 2
    saved = statement.rows * (bits.count - digits) - 3 * (3 * digits + 1 - (bits.count + 1))
    yield {"way": "digits of base 4", "report kB": 8 * (words - saved) / 1e3, "ms": None}


def _gram(entries: int, rows: int) -> int:
    """Words of a Gram of so many entries in so many rows: M, z, Xz, z'z."""
    return rows * (rows + 1) // 2 + -(-entries // rows) + rows + 1


def packed(words: field.Field) -> bytes:
    """The words without their three highest bits."""
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")[:, : field.BITS]
    return np.packbits(bits.ravel(), bitorder="little").tobytes()


def unpacked(data: bytes, count: int) -> field.Field:
    """The words again."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: count * field.BITS]
    padded = np.zeros((count, 64), np.uint8)
    padded[:, : field.BITS] = bits.reshape(count, -1)
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").ravel().astype(np.uint64)


def tables(chosen: argparse.Namespace) -> Tables:
    """Sessions, then kernels, then ways to a smaller report."""
    sizes: Sequence[int] = (1_000, 1) if chosen.quick else (100_000, 5)
    yield "a session whose reports prove their sums beside one whose do not, h = 1", list(sessions(quick=chosen.quick))
    yield "kernels of the field, CPU time", kernels(*sizes)
    yield "a smaller report", list(ways(quick=chosen.quick))


if __name__ == "__main__":
    command("secagg.proofs", __doc__, tables)
