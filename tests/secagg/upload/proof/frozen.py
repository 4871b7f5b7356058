"""The frozen cases of the proofs, ``tests/secagg/vectors/proofs.json``: ``python -m tests.secagg.upload.proof.frozen``.

Of every statement an honest report and refused ones, each with inputs, witness, secrets, hashes, report, query, every
member's answer and the decision. Numbers are decimal texts where JSON's readers would round them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privstats.secagg.upload.proof.field import Field, P, elements, lift
from privstats.secagg.upload.proof.norm import Norm
from privstats.secagg.upload.proof.prover import Attempt
from privstats.secagg.upload.proof.statement import Statement
from privstats.secagg.upload.proof.verifier import answer, refusals, summed
from tests.secagg.upload.proof.cases import BITS, CASES, CONTEXT, RHO, SENDER, STEP, Case, asked, secrets_of, shares_of

PATH = Path(__file__).parents[2] / "vectors" / "proofs.json"
_SHAPES: dict[str, dict[str, Any]] = {
    "NAB": {"classes": 3, "features": 4, "grid_bits": BITS, "most_records": 9},
    "NA": {"classes": 3, "features": 4, "grid_bits": BITS, "most_records": 9},
    "NAS": {"classes": 3, "features": 4, "grid_bits": BITS, "most_records": 9},
    "ridge": {"features": 4, "targets": 2, "folds": 2, "grid_bits": BITS, "most_records": 9},
    "norm": {"sizes": [20, 1], "counters": [20], "grid_bits": BITS, "most_records": 9},
    "counts": {"tables": [4, 3], "unit": STEP**2, "most_records": 9},
}


def cases(witnesses: Mapping[str, list[str]] | None = None) -> Iterator[dict[str, Any]]:
    """Every case as it is written down.

    Args:
        witnesses: by statement, of honest reports; computed where omitted: another machine's last bits may give another
            witness, and so another report.
    """
    for name, make in CASES.items():
        case = make(np.random.default_rng(5))
        if witnesses is not None:
            case = replace(case, known=lift(np.array([int(value) for value in witnesses[name]], np.uint64)))
        by = 4 * case.statement.mass if isinstance(case.statement, Norm) else 1
        yield _case(name, "honest", case, {})
        yield _case(name, f"x_0 is larger by {by} than the witness says", case, {"x": (0, by)})
        if case.statement.witness_size:
            yield _case(name, f"w_0 is larger by {by}", case, {"w": (0, by)})
        first = case.statement.ends[0]
        yield _case(name, "the first helper's share is off by one at the first bit", case, {"share": (first, 1)})


def _case(name: str, what: str, case: Case, lie: dict[str, tuple[int, int]]) -> dict[str, Any]:
    statement, secrets = case.statement, secrets_of(name)
    x, w = elements(case.x), elements(case.witness())
    _move(x, lie.get("x"))
    _move(w, lie.get("w"))
    proof = Attempt(statement, x, w, secrets, 0).finished()
    shares = [share.copy() for share in shares_of(statement, proof, secrets)]
    _move(shares[1], lie.get("share"))
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
        "body": proof.body.astype("<u8").tobytes().hex(),
        "share_1_off_by_one_at": lie["share"][0] if "share" in lie else None,
        "commits": [commit.hex() for commit in said.commits],
        "parts": [part.hex() for part in said.parts],
        "z": [said.first.hex(), said.second.hex()],
        "rho": RHO.hex(),
        "query": {"v": [str(v) for v, _ in query.grams], "t": str(query.point), "weights": _texts(query.weights)},
        "answers": [each.astype("<u8").tobytes().hex() for each in answers],
        "accepted": not failed,
        "failed": list(failed),
    }


def _move(vector: Field, by: tuple[int, int] | None) -> None:
    if by is not None:
        vector[by[0]] = (int(vector[by[0]]) + by[1]) % P


def _lengths(statement: Statement) -> dict[str, Any]:
    return {"Q": statement.bits, "rows": statement.rows, "ends": list(statement.ends)}


def _texts(values: Any) -> list[str]:
    return [str(int(value)) for value in values]


def main() -> None:
    """Write the file."""
    PATH.write_text(json.dumps(list(cases()), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
