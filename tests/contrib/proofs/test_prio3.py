"""The CFRG's Prio3 beside the proof of counts: its published vectors, and the same wrong tables, refused by both.

``prio3.json`` holds what the draft's repository publishes (cfrg/draft-irtf-cfrg-vdaf, test_vec at commit 5203892540),
all files of the two variants but the largest.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.contrib.proofs.counts import of_counts
from privstats.contrib.proofs.field import P
from tests.contrib.proofs.cases import STEP, Case, attempt_of, judged, secrets_of
from tests.contrib.proofs.prio3 import FIELD128, SEED_BYTES, Prio3, RefusedError, count, histogram, seed_of

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("prio3.json").read_text())
CONTEXT, NONCE, KEY = b"a survey", bytes(16), bytes(range(32))


def variant(vector: dict[str, Any]) -> Prio3:
    if "length" in vector:
        return histogram(vector["length"], vector["chunk_length"], vector["shares"])
    return count(vector["shares"])


def test_the_stream_is_the_published_one() -> None:
    vector = VECTORS["XofTurboShake128"]
    seed, tag, binder = (bytes.fromhex(vector[name]) for name in ("seed", "dst", "binder"))
    assert seed_of(seed, tag, binder).hex() == vector["derived_seed"]
    found = FIELD128.drawn(vector["length"], seed, tag, binder)
    assert FIELD128.encoded(found).hex() == vector["expanded_vec_field128"]


class Replayed:
    """A published file, operation by operation; each must do what the file says, bytes included."""

    def __init__(self, vector: dict[str, Any]) -> None:
        self.vector, self.prio3 = vector, variant(vector)
        self.context, self.key = bytes.fromhex(vector["ctx"]), bytes.fromhex(vector["verify_key"])
        self.states: dict[tuple[int, int], tuple[list[int], bytes]] = {}
        self.outputs: dict[tuple[int, int], list[int]] = {}
        self.sums: dict[int, list[int]] = {}

    def shard(self, report: dict[str, Any], _: int, __: int) -> None:
        nonce, drawn = bytes.fromhex(report["nonce"]), bytes.fromhex(report["rand"])
        public, shares = self.prio3.shard(self.context, self.prio3.encode(report["measurement"]), nonce, drawn)
        assert b"".join(public).hex() == report["public_share"]
        assert [share.hex() for share in shares] == report["input_shares"]

    def verify_init(self, report: dict[str, Any], place: int, number: int) -> None:
        public, data = bytes.fromhex(report["public_share"]), bytes.fromhex(report["input_shares"][place])
        parts = [public[at : at + SEED_BYTES] for at in range(0, len(public), SEED_BYTES)]
        *kept, said = self.prio3.begin(self.key, self.context, place, bytes.fromhex(report["nonce"]), parts, data)
        self.states[number, place] = kept[0], kept[1]
        assert said.hex() == report["verifier_shares"][0][place]

    def verifier_shares_to_message(self, report: dict[str, Any], _: int, __: int) -> None:
        message = self.prio3.joined(self.context, [bytes.fromhex(each) for each in report["verifier_shares"][0]])
        assert message.hex() == report["verifier_messages"][0]

    def verify_next(self, report: dict[str, Any], place: int, number: int) -> None:
        output = self.prio3.finish(*self.states[number, place], bytes.fromhex(report["verifier_messages"][0]))
        self.outputs[number, place] = output
        said = report["out_shares"][place]
        assert self.prio3.field.encoded(output).hex() == (said if isinstance(said, str) else "".join(said))

    def aggregate(self, _: object, place: int, __: int) -> None:
        columns = zip(*(output for (_, at), output in self.outputs.items() if at == place), strict=True)
        self.sums[place] = [sum(column) % self.prio3.field.modulus for column in columns]
        assert self.prio3.field.encoded(self.sums[place]).hex() == self.vector["agg_shares"][place]

    def unshard(self, _: object, __: int, ___: int) -> None:
        found = [sum(column) % self.prio3.field.modulus for column in zip(*self.sums.values(), strict=True)]
        assert (found if self.prio3.joint else found[0]) == self.vector["agg_result"]


@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith("Prio3")])
def test_every_published_operation_gives_the_published_bytes(name: str) -> None:
    replayed = Replayed(VECTORS[name])
    for step in VECTORS[name]["operations"]:
        number = step.get("report_index", -1)
        report = VECTORS[name]["reports"][number] if number >= 0 else None
        arguments = report, step.get("aggregator_id", 0), number
        if step["success"]:
            getattr(replayed, step["operation"])(*arguments)
        else:
            with pytest.raises(RefusedError):
                getattr(replayed, step["operation"])(*arguments)


# --- the same tables under both ---


def taken_by_prio3(cells: list[int], label: int) -> bool:
    """Cells as integers, or as quotients of integers in each field."""
    prio3 = histogram(len(cells), 2)
    drawn = np.random.default_rng(label).bytes(4 * SEED_BYTES)
    public, shares = prio3.shard(CONTEXT, [cell % FIELD128.modulus for cell in cells], NONCE, drawn)
    begun = [prio3.begin(KEY, CONTEXT, place, NONCE, public, share) for place, share in enumerate(shares)]
    try:
        message = prio3.joined(CONTEXT, [said for *_, said in begun])
        return all(prio3.finish(output, seed, message) is output for output, seed, _ in begun)
    except RefusedError:
        return False


def taken_by_counts(cells: list[int], label: int) -> bool:
    """By leader and two helpers, of a client that proves whatever it likes as well as it can."""
    statement = of_counts((len(cells),), STEP**2, 1)
    empty = Case(statement, np.zeros(len(cells), np.int64))
    x = np.array([cell * STEP**2 % P for cell in cells], np.uint64)
    made = attempt_of(empty, f"table {label}", x=x)
    return not judged(statement, made.finished(), secrets_of(f"table {label}"))


def wrong_table(rng: np.random.Generator) -> list[int]:
    """Neither empty nor one record: two records, a cell below zero, a large one, bits that are none but add up."""
    size = int(rng.integers(2, 8))
    cells, place = [0] * size, int(rng.integers(size))
    other = (place + 1 + int(rng.integers(size - 1))) % size
    kind = int(rng.integers(6))
    if kind == 0:
        cells[place] = cells[other] = 1
    elif kind == 1:
        cells[place] = int(rng.choice([2, 3, 100, 2**40]))
    elif kind == 2:
        cells[place], cells[other] = 2, -1
    elif kind == 3:
        cells[place] = -1
    elif kind == 4:
        big = int(rng.integers(2, 2**59))
        cells[place], cells[other] = big, 1 - big
    else:
        cells = [int(rng.integers(-3, 4)) for _ in range(size)]
        cells[place] += 9
    return cells


def test_both_take_every_table_of_one_record() -> None:
    for size in range(1, 8):
        for place in range(size):
            cells = [int(cell == place) for cell in range(size)]
            assert taken_by_prio3(cells, place)
            assert taken_by_counts(cells, place)


def test_a_table_of_no_record_is_where_they_differ() -> None:
    """A client without a record may report here; Prio3's histogram has exactly one."""
    assert taken_by_counts([0, 0, 0], 0)
    assert not taken_by_prio3([0, 0, 0], 0)


@pytest.mark.parametrize("number", [30, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_both_refuse_the_same_wrong_tables(number: int) -> None:
    rng = np.random.default_rng(number)
    for label in range(number):
        cells = wrong_table(rng)
        assert not taken_by_prio3(cells, label), cells
        assert not taken_by_counts(cells, label), cells


def test_a_wrong_table_is_refused_for_its_cells_and_not_for_a_slip_of_the_double() -> None:
    """A verifier that skips the check of the circuit's output takes the same report."""

    class Blind(Prio3):
        def accepts(self, verifier: list[int]) -> bool:
            return super().accepts([0, *verifier[1:]])

    blind = Blind(FIELD128, 4, 2, 3, 2, joint=True)
    public, shares = blind.shard(CONTEXT, [2, FIELD128.modulus - 1, 0], NONCE, bytes(128))
    said = [blind.begin(KEY, CONTEXT, place, NONCE, public, share)[2] for place, share in enumerate(shares)]
    assert blind.joined(CONTEXT, said)
    with pytest.raises(RefusedError):
        histogram(3, 2).joined(CONTEXT, said)
