"""The frozen cases of the proofs, ``tests/secagg/vectors/proofs.json``: ``python -m tests.contrib.proofs.frozen``.

Of every statement an honest report and refused ones, each with inputs, witness, secrets, hashes, report, query, every
member's answer and the decision. Numbers are decimal texts where JSON's readers would round them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privstats.contrib.proofs.counts import of_counts
from privstats.contrib.proofs.field import Field, P, elements, lift
from privstats.contrib.proofs.moments import of_classes
from privstats.contrib.proofs.norm import Norm, of_norms
from privstats.contrib.proofs.prover import Attempt
from privstats.contrib.proofs.statement import Statement
from privstats.contrib.proofs.verifier import answer, refusals, summed
from tests.contrib.proofs.cases import BITS, CASES, CONTEXT, RHO, SENDER, STEP, Case, asked, nab, secrets_of, shares_of

PATH = Path(__file__).parents[2] / "secagg" / "vectors" / "proofs.json"


def _clipped(rng: np.random.Generator) -> Case:
    whole = nab(rng, classes=2, features=3, n=10)
    return Case(of_classes(2, 3, BITS, 10, clipped=True), whole.x)


def _two_counters(rng: np.random.Generator) -> Case:
    x = CASES["norm"](rng).x
    return Case(of_norms((20, 1, 1), STEP**2, 10, counters=(20, 21)), np.append(x, x[-1] // 2))


def _shrunk_counts(rng: np.random.Generator) -> Case:
    return Case(of_counts((4, 3), 1, 10 * 4096), rng.integers(0, 10 * 1024, 7))


FROZEN: dict[str, Callable[[np.random.Generator], Case]] = {
    **CASES,
    "NAB, ten records": partial(nab, classes=2, features=3, n=10),
    "NAB, clipped clients": _clipped,
    "norm, two counters": _two_counters,
    "counts, clipped clients": _shrunk_counts,
}
_SHAPES: dict[str, dict[str, Any]] = {
    "NAB": {"classes": 3, "features": 4, "grid_bits": BITS, "most_records": 9},
    "NA": {"classes": 3, "features": 4, "grid_bits": BITS, "most_records": 9},
    "NAS": {"classes": 3, "features": 4, "grid_bits": BITS, "most_records": 9},
    "ridge": {"features": 4, "targets": 2, "folds": 2, "grid_bits": BITS, "most_records": 9},
    "norm": {"sizes": [20, 1], "counters": [20], "grid_bits": BITS, "most_records": 9},
    "counts": {"tables": [4, 3], "unit": STEP**2, "most_records": 9},
    "NAB, ten records": {"classes": 2, "features": 3, "grid_bits": BITS, "most_records": 10},
    "NAB, clipped clients": {"classes": 2, "features": 3, "grid_bits": BITS, "most_records": 10, "clipped": True},
    "norm, two counters": {"sizes": [20, 1, 1], "counters": [20, 21], "grid_bits": BITS, "most_records": 10},
    "counts, clipped clients": {"tables": [4, 3], "unit": 1, "most_records": 40960},
}


def cases(witnesses: Mapping[str, list[str]] | None = None) -> Iterator[dict[str, Any]]:
    """Every case as it is written down.

    Args:
        witnesses: by statement, of honest reports; computed where omitted: another machine's last bits may give another
            witness, and so another report.
    """
    for name, make in FROZEN.items():
        case = make(np.random.default_rng(5))
        if witnesses is not None:
            case = replace(case, known=lift(np.array([int(value) for value in witnesses[name]], np.uint64)))
        by = 4 * case.statement.mass if isinstance(case.statement, Norm) else 1
        yield _case(name, "honest", case, {})
        yield _case(name, f"x_0 is larger by {by} than the witness says", case, {"x": [(0, by)]})
        if case.statement.witness_size:
            yield _case(name, f"w_0 is larger by {by}", case, {"w": [(0, by)]})
        first = case.statement.ends[0]
        yield _case(name, "the first helper's share is off by one at the first bit", case, {"share": [(first, 1)]})
        moved = [(first, 2), (first + 1, P - 1)]
        yield _case(name, "two bits of the first row are none, and show the same number", case, {"share": moved})
        for gram, place in _products(case.statement):
            yield _case(
                name, f"an entry of {gram}'s product is off by one, beside the diagonal", case, {"sent": [(place, 1)]}
            )


def _case(name: str, what: str, case: Case, lie: dict[str, list[tuple[int, int]]]) -> dict[str, Any]:
    statement, secrets = case.statement, secrets_of(name)
    x, w = elements(case.x), elements(case.witness())
    _move(x, lie.get("x", []))
    _move(w, lie.get("w", []))
    attempt = Attempt(statement, x, w, secrets, 0)
    _move(attempt.vector, lie.get("sent", []))
    proof = attempt.finished()
    shares = [share.copy() for share in shares_of(statement, proof, secrets)]
    _move(shares[1], lie.get("share", []))
    query = asked(statement, proof)
    answers = [answer(statement, share, proof.transcript, query) for share in shares]
    failed = refusals(statement, summed(answers), proof.transcript, query)
    said = proof.transcript
    return {
        "statement": name,
        "case": what,
        "shape": _SHAPES[name],
        **_lengths(statement),
        "x": _texts(x),
        "witness": _texts(w),
        "context": CONTEXT.hex(),
        "sender": SENDER,
        "seeds": [seed.hex() for seed in secrets.seeds],
        "blind": proof.blind.hex(),
        "body": None if "share" in lie else proof.body.astype("<u8").tobytes().hex(),
        "share_1_moved": [[place, str(by)] for place, by in lie.get("share", [])],
        "commits": [commit.hex() for commit in said.commits],
        "parts": [part.hex() for part in said.parts],
        "z": [said.first.hex(), said.second.hex()],
        "rho": RHO.hex(),
        "query": {"v": [str(v) for v, _ in query.grams], "t": str(query.point), "weights": _texts(query.weights)},
        "answers": [each.astype("<u8").tobytes().hex() for each in answers],
        "accepted": not failed,
        "failed": list(failed),
    }


def _move(vector: Field, moves: list[tuple[int, int]]) -> None:
    for place, by in moves:
        vector[place] = (int(vector[place]) + by) % P


def _products(statement: Statement) -> Iterator[tuple[str, int]]:
    """Where the products that travel have their first entry beside the diagonal."""
    at = statement.size + statement.witness_size
    for gram in statement.grams:
        if gram.product_size > 1:
            yield gram.name, at + 1
        at += gram.product_size + gram.columns + gram.rows + 1


def _lengths(statement: Statement) -> dict[str, Any]:
    return {"Q": statement.bits, "rows": statement.rows, "ends": list(statement.ends)}


def _texts(values: Any) -> list[str]:
    return [str(int(value)) for value in values]


def main() -> None:
    """Write the file."""
    PATH.write_text(json.dumps(list(cases()), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
