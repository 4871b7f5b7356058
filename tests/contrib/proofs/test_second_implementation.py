"""Two implementations of one page: each takes the other's reports and refuses its lies; cases of both are frozen."""

import hashlib
import json
from typing import Any

import numpy as np
import pytest

from privstats.contrib.proofs.field import P, elements
from privstats.contrib.proofs.prover import Proof
from privstats.contrib.proofs.transcript import Transcript
from tests.contrib.proofs import frozen
from tests.contrib.proofs import second_implementation as second
from tests.contrib.proofs.cases import (
    BITS,
    CONTEXT,
    RHO,
    SENDER,
    STEP,
    Case,
    attempt_of,
    judged,
    nab,
    proof_of,
    secrets_of,
    shares_of,
)
from tests.contrib.proofs.second_implementation import Layout, Said

LAYOUTS = {
    "NAB": second.classes(3, 4, BITS, 9),
    "NA": second.classes(3, 4, BITS, 9, summed=False),
    "NAS": second.classes_apart(3, 4, BITS, 9),
    "ridge": second.ridge(4, 2, 2, BITS, 9),
    "norm": second.norm([20, 1], [20], BITS, 9),
    "counts": second.counts([4, 3], STEP**2, 9),
    "NAB, ten records": second.classes(2, 3, BITS, 10),
    "NAB, clipped clients": second.classes(2, 3, BITS, 10, clipped=True),
    "norm, two counters": second.norm([20, 1, 1], [20, 21], BITS, 10),
    "counts, clipped clients": second.counts([4, 3], 1, 40_960),
}
FROZEN = json.loads(frozen.PATH.read_text("utf-8"))
HONEST = {case["statement"]: case["body"] for case in FROZEN if case["case"] == "honest"}
NAMES = [f"{case['statement']}: {case['case']}" for case in FROZEN]
SMALL, SHAPE = nab(np.random.default_rng(4), classes=2, features=2, n=5), second.classes(2, 2, BITS, 5)


def case_of(name: str) -> Case:
    return frozen.FROZEN[name](np.random.default_rng(11))


def theirs(layout: Layout, case: Case) -> Proof:
    """A report of the second implementation."""
    x, w = case.x.tolist(), case.witness().tolist()
    body, blind, said = second.report(layout, x, w, CONTEXT, SENDER, list(secrets_of().seeds), b"c" * 32)
    transcript = Transcript(said.context, said.sender, tuple(said.commits), (said.parts[0], said.parts[1]))
    return Proof(np.array(body, np.uint64), blind, transcript)


def taken(layout: Layout, case: Case, proof: Proof) -> bool:
    """What the second implementation decides."""
    said = proof.transcript
    shares = [[int(word) for word in share] for share in shares_of(case.statement, proof, secrets_of())]
    return second.accepts(layout, shares, Said(said.context, said.sender, list(said.commits), list(said.parts)), RHO)


@pytest.mark.parametrize("name", LAYOUTS)
def test_both_have_the_same_lengths(name: str) -> None:
    layout, statement = LAYOUTS[name], case_of(name).statement
    assert (layout.length, layout.Q, layout.rows) == (statement.ends[-1], statement.bits, statement.rows)
    assert (layout.first, layout.second) == statement.ends[:2]


def test_lengths_of_a_page_of_digits() -> None:
    digits = second.classes(10, 64, 12, 68)
    assert (digits.size, digits.Q, 8 * digits.length) == (2730, 23, 101_104)


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_takes_the_other_s_report(name: str) -> None:
    case = case_of(name)
    assert taken(LAYOUTS[name], case, proof_of(case))
    assert judged(case.statement, theirs(LAYOUTS[name], case), secrets_of()) == ()


@pytest.mark.parametrize(
    "name", [name for name in LAYOUTS if not name.startswith("norm") and name != "counts, clipped clients"]
)
def test_each_refuses_the_other_s_lie(name: str) -> None:
    case = case_of(name)
    x = case.x.copy()
    x[-1] += 1
    made = attempt_of(case, x=x.astype(np.uint64) % np.uint64(P)).finished()
    assert not taken(LAYOUTS[name], case, made)
    assert judged(case.statement, made, secrets_of()) != ()


def test_a_lie_of_the_second_implementation_is_refused_by_ours() -> None:
    x, w = SMALL.x.tolist(), SMALL.witness().tolist()
    x[-1] += 1
    body, blind, said = second.report(SHAPE, x, w, CONTEXT, SENDER, list(secrets_of().seeds), b"c" * 32)
    transcript = Transcript(said.context, said.sender, tuple(said.commits), (said.parts[0], said.parts[1]))
    proof = Proof(np.array(body, np.uint64), blind, transcript)
    assert judged(SMALL.statement, proof, secrets_of()) == ("gram factor",)
    assert not taken(SHAPE, SMALL, proof)


@pytest.mark.parametrize("case", FROZEN, ids=NAMES)
def test_the_second_implementation_passes_every_frozen_case(case: dict[str, Any]) -> None:
    layout = LAYOUTS[case["statement"]]
    assert (layout.Q, layout.rows, [layout.first, layout.second, layout.length]) == (
        case["Q"],
        case["rows"],
        case["ends"],
    )
    context, seeds = bytes.fromhex(case["context"]), [bytes.fromhex(seed) for seed in case["seeds"]]
    commits, parts = ([bytes.fromhex(each) for each in case[name]] for name in ("commits", "parts"))
    said = Said(context, case["sender"], commits, parts)
    body, blind = words(case["body"] or HONEST[case["statement"]]), bytes.fromhex(case["blind"])
    shares = [
        body,
        *(second.stream(second.kdf(seed, f"field/{said.sender}", context), layout.length) for seed in seeds),
    ]
    assert commits == [
        second.digest("proof-commit", context, second.u32(said.sender), bytes([j]), seed)
        for j, seed in enumerate(seeds, start=1)
    ]
    assert parts == [
        second.part_of(said, b"\x01", blind, body[: layout.first]),
        second.part_of(said, b"\x02", blind, body[layout.first : layout.second]),
    ]
    assert [said.z1.hex(), said.z2.hex()] == case["z"]
    vector = [sum(column) % P for column in zip(*shares, strict=True)]
    x, w = layout.parts(vector)[:2]
    assert ([str(each) for each in x], [str(each) for each in w]) == (case["x"], case["witness"])
    rho = bytes.fromhex(case["rho"])
    queries, point, weights = second.asked_of(layout, said, rho)
    assert case["query"] == {
        "v": [str(v) for v, _ in queries],
        "t": str(point),
        "weights": [str(each) for each in weights],
    }
    for place, by in case["share_1_moved"]:
        shares[1][place] = (shares[1][place] + int(by)) % P
    assert [second.answer_of(layout, share, said, rho) for share in shares] == [words(each) for each in case["answers"]]
    assert second.accepts(layout, shares, said, rho) == case["accepted"]


def words(text: str) -> list[int]:
    data = bytes.fromhex(text)
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def test_the_frozen_cases_are_those_of_the_library_and_each_statement_has_honest_and_refused_ones() -> None:
    honest = {case["statement"]: case["witness"] for case in FROZEN if case["case"] == "honest"}
    assert list(frozen.cases(honest)) == FROZEN
    assert {(case["statement"], case["accepted"]) for case in FROZEN} == {
        (name, accepted) for name in LAYOUTS for accepted in (True, False)
    }


def test_a_report_under_a_fixed_secret_is_frozen() -> None:
    """An order, a label or a constant that changes by mistake shows here; the witness is exact on every machine."""
    x, w = np.zeros(9, np.int64), np.zeros(18, np.int64)
    x[[0, 2, 6]] = STEP**2  # one record of class 0 along the first axis: N, A, B
    w[[0, 2]] = STEP
    proof = attempt_of(SMALL, x=elements(x), w=elements(w)).finished()
    assert judged(SMALL.statement, proof, secrets_of()) == ()
    found = hashlib.sha256(proof.body.astype("<u8").tobytes() + proof.blind + b"".join(proof.transcript.parts))
    assert found.hexdigest() == "8120b7482a10b124f3d3813ad659d5a4254e26ca339151b5471d1b57c563337a"
