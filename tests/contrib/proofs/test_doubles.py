"""Every rule of the proof, and the attack that works where just that rule is missing and fails on ours.

The numbers are those of the design. What needs machines (a second answer, a batch shown again, a kill) waits for them;
the arithmetic that makes a second answer fatal is here.
"""

from typing import Any, ClassVar

import numpy as np
import pytest

from privstats.contrib.proofs import gadgets, transcript, verifier
from privstats.contrib.proofs.field import Field, P, add, dot, elements, mul, stream, subtract
from privstats.contrib.proofs.gadgets import Bits
from privstats.contrib.proofs.moments import Moments
from privstats.contrib.proofs.prover import Attempt, Proof
from privstats.contrib.proofs.transcript import Transcript
from privstats.contrib.proofs.verifier import Query, answer, query_of, summed
from tests.contrib.proofs.cases import (
    CONTEXT,
    RHO,
    SENDER,
    STEP,
    Case,
    asked,
    attempt_of,
    judged,
    nab,
    secrets_of,
    shares_of,
)
from threat_models.attacks.poisoned_sums import own_witness

CLASSES, FEATURES, N = 3, 8, 9
SECOND = CLASSES * (1 + FEATURES)
OFF = SECOND + FEATURES


def honest(features: int = FEATURES) -> Case:
    return nab(np.random.default_rng(3), CLASSES, features, N)


def like(kind: type[Moments], statement: Moments) -> Moments:
    """The same statement of another class: a double."""
    names = ("pattern", "source", "size", "hidden", "lines", "limits", "unit", "most_records", "coarse")
    return kind(**{name: getattr(statement, name) for name in names})


def error_place(case: Case, entry: int) -> int:
    """Where the witness holds the error of an entry of x."""
    statement: Any = case.statement
    return int(statement.entries + np.flatnonzero(statement.source == entry)[0])


def root(value: int) -> int | None:
    """A square root modulo p, which is 3 modulo 4, where there is one."""
    found = pow(value, (P + 1) // 4, P)
    return found if found * found % P == value % P else None


def with_errors(case: Case, errors: dict[int, int]) -> Attempt:
    """A report whose entries are moved so far that their errors are these; the factor is the honest one."""
    held = case.witness()
    return moved(case, {entry: value - int(held[error_place(case, entry)]) for entry, value in errors.items()})


def moved(case: Case, changes: dict[int, int]) -> Attempt:
    """A report whose entries are moved, with their errors moved along: the factor is the honest one."""
    x, w = elements(case.x), elements(case.witness())
    for entry, by in changes.items():
        x[entry] = (int(x[entry]) + by) % P
        place = error_place(case, entry)
        w[place] = (int(w[place]) + by) % P
    return attempt_of(case, x=x, w=w)


def test_1_without_the_gram_of_the_factor_any_second_moments_pass() -> None:
    case = honest()
    x = case.x.copy()
    x[OFF : OFF + 5] += N * STEP**2
    proof = attempt_of(case, x=elements(x)).finished()
    assert judged(case.statement, proof, secrets_of()) == ("gram factor",)


def test_2_without_the_bits_check_values_in_their_place_make_every_relation_true() -> None:
    case = honest()
    x = case.x.copy()
    x[CLASSES:SECOND] *= 100
    made = attempt_of(case, x=elements(x), w=elements(own_witness(case.statement, x)))
    assert not made.fits
    statement, rows = case.statement, []
    for value, slack in zip(made.values, statement.slacks, strict=True):
        row = np.zeros((-(-slack.width // statement.bits), statement.bits), np.uint64)
        row[0, 0] = value % P
        rows.append(row)
    tests = np.zeros((statement.signed, statement.bits), np.uint64)
    tests[:, 0] = [(each + (1 << (statement.bits - 1))) % P for each in made.sums]
    proof = made.with_bits(np.concatenate([tests, *rows]))
    assert judged(statement, proof, secrets_of()) == ("bits",)
    assert "relations" in judged(statement, made.finished(), secrets_of())


class Untested(Moments):
    """Nothing shows that L and E are small."""

    tests: ClassVar[int] = 0


def test_3_without_tests_errors_of_the_fields_size_cancel_in_their_squares() -> None:
    case, t = honest(), 12345
    u, v = (1 - t * t) * pow(1 + t * t, -1, P) % P, 2 * t * pow(1 + t * t, -1, P) % P
    assert (u * u + v * v) % P == 1
    errors = {OFF: u, OFF + 1: v}
    assert judged(case.statement, with_errors(case, errors).finished(), secrets_of()) == ("relations",)
    double = Case(like(Untested, case.statement), case.x)
    proof = with_errors(double, errors).finished()
    assert judged(double.statement, proof, secrets_of()) == ()
    assert min(u, v, P - u, P - v) > 1 << 50  # what the sum is moved by


class FiveTests(Moments):
    """Fewer tests: one in 32 blinds lets a lie pass."""

    tests: ClassVar[int] = 5


def test_4_with_few_tests_a_liar_draws_blinds_until_it_passes() -> None:
    """Four entries of (p + 1) / 2 square to 1, and a signed sum of them is small every other time."""
    case, half = honest(), (P + 1) // 2
    double = Case(like(FiveTests, case.statement), case.x)
    made = with_errors(double, dict.fromkeys(range(OFF, OFF + 4), half))
    x, w = made.x, made.witness
    tries = (Attempt(double.statement, x, w, secrets_of(), number) for number in range(1000))
    passing = next(each for each in tries if each.fits)
    assert passing.number < 600
    assert judged(double.statement, passing.finished(), secrets_of()) == ()
    ours = [Attempt(case.statement, x, w, secrets_of(), number) for number in range(5)]
    small = [sum(abs(each) < 1 << (case.statement.bits - 1) for each in one.sums) for one in ours]
    assert all(32 < count < 96 for count in small)  # of 128, which all would have to be
    assert all(judged(case.statement, one.finished(), secrets_of()) == ("relations",) for one in ours)


def kernel(matrix: list[list[int]]) -> list[int]:
    """A vector that every row maps to zero modulo p, not all zero."""
    rows, width, pivots = [list(row) for row in matrix], len(matrix[0]), []
    for column in range(width):
        pivot = next((r for r in range(len(pivots), len(rows)) if rows[r][column] % P), None)
        if pivot is None:
            free = column
            break
        place = len(pivots)
        rows[place], rows[pivot] = rows[pivot], rows[place]
        inverse = pow(rows[place][column], -1, P)
        rows[place] = [value * inverse % P for value in rows[place]]
        for r, row in enumerate(rows):
            if r != place and row[column]:
                rows[r] = [(a - row[column] * b) % P for a, b in zip(row, rows[place], strict=True)]
        pivots.append(column)
    out = [0] * width
    out[free] = 1
    for place, column in enumerate(pivots):
        out[column] = -rows[place][free] % P
    return out


def test_5_with_signs_that_are_known_beforehand_an_error_hides_in_their_kernel(monkeypatch) -> None:
    case = Case(like(FiveTests, honest().statement), honest().x)
    statement: Any = case.statement
    known = transcript.signs(b"k" * 32, CONTEXT, statement.tested_size)
    entries = list(range(OFF, OFF + 12))
    places = [error_place(case, entry) for entry in entries]
    one = np.eye(statement.tested_size, dtype=np.int64)
    signs = np.array([gadgets.projected(one[place], known, 5) for place in places]).T
    hidden = kernel([[int(value) % P for value in row] for row in signs])
    errors = [int(value) for value in case.witness()[places]]
    squares = sum(each * each for each in hidden) % P
    across = sum(a * b for a, b in zip(hidden, errors, strict=True)) % P
    before = sum(int(e) ** 2 for e in case.witness()[statement.entries : 2 * statement.entries])
    scale = next(  # the sum of squares becomes a small number again: a quadratic equation modulo p
        (-across + found) * pow(squares, -1, P) % P
        for target in range(1, 1000)
        if (found := root((across * across - squares * (before - target)) % P)) is not None
    )
    changes = {entry: scale * each % P for entry, each in zip(entries, hidden, strict=True)}
    assert any(1 << 50 < each < P - (1 << 50) for each in changes.values())
    assert judged(statement, moved(case, changes).finished(), secrets_of()) == ("relations",)
    monkeypatch.setattr(transcript, "signs", lambda first, context, count: known)
    assert judged(statement, moved(case, changes).finished(), secrets_of()) == ()


def test_6_with_a_query_that_is_known_beforehand_the_square_of_the_mask_is_chosen_for_it() -> None:
    case, secrets = honest(), secrets_of()
    x = case.x.copy()
    x[OFF] += N * STEP**2
    made = attempt_of(case, x=elements(x))
    query = query_of(case.statement, RHO, CONTEXT, SENDER)
    total = clear_answer(case, made.finished(), made, query)
    columns = case.statement.grams[0].columns
    w, q = total[:columns], int(total[columns])
    v = query.grams[0][0]
    place = sum(case.statement.lengths[0][:6]) - 1
    made = attempt_of(case, x=elements(x))
    made.vector[place] = (int(made.vector[place]) + (dot(w, w) - q) * pow(v * v, -1, P)) % P
    proof = made.finished()
    assert judged(case.statement, proof, secrets) == ()
    assert judged(case.statement, proof, secrets, b"drawn after the report, 32 bytes") == ("gram factor",)


def clear_answer(case: Case, proof: Proof, made: Attempt, query: Query) -> Field:
    """The sum of all members' answers, of the vector itself."""
    return answer(case.statement, made.vector, proof.transcript, query)


def test_7_two_queries_of_one_report_read_linear_forms_of_the_factor() -> None:
    """Why a helper answers one rho for a report, ever: z falls out of two answers."""
    case = honest()
    made = attempt_of(case)
    proof = made.finished()
    queries = [query_of(case.statement, rho, CONTEXT, SENDER) for rho in (RHO, b"x" * 32)]
    columns = case.statement.grams[0].columns
    one, other = (clear_answer(case, proof, made, query)[:columns] for query in queries)
    (v, c), (u, d) = (query.grams[0] for query in queries)
    scaled = subtract(mul(one, np.full(columns, u, np.uint64)), mul(other, np.full(columns, v, np.uint64)))
    mixed = subtract(mul(c, np.full(len(c), u, np.uint64)), mul(d, np.full(len(d), v, np.uint64)))
    assert scaled.tolist() == case.statement.grams[0].multiply_transposed(made.x, made.witness, mixed).tolist()


def test_8_a_helper_that_takes_its_signs_from_the_leader_tells_a_form_of_the_witness() -> None:
    """With the client's own z_1 the zero is the same for every report; with another it depends on L and E."""
    case, secrets = honest(), secrets_of()
    proof = attempt_of(case).finished()
    query, shares = asked(case.statement, proof), shares_of(case.statement, proof, secrets)
    said = proof.transcript
    lied = Transcript(said.context, said.sender, said.commits, (b"o" * 32, said.parts[1]))
    place = sum(gram.columns + 1 for gram in case.statement.grams)

    def zero(of: Transcript) -> int:
        total = summed(answer(case.statement, share, of, query) for share in shares)
        return (int(total[place]) + verifier.constants(case.statement, query.weights)) % P

    assert zero(said) == 0
    tested = case.statement.tested(elements(case.x), elements(case.witness()))
    entries, weights = case.statement.tested_size, query.weights[: case.statement.signed]
    gaps = [
        gadgets.combined_signs(transcript.signs(each.first, CONTEXT, entries), entries, weights)
        for each in (lied, said)
    ]
    assert zero(lied) == dot(subtract(*gaps), tested) != 0


class Coarse(Moments):
    """Reads the sums in the units of today's wire: T holds 4**f / 4096 times a count."""

    factor: ClassVar[int] = STEP

    def sources_of(self, x: Field, w: Field) -> Field:
        return mul(x, np.full(len(x), self.factor, np.uint64))


def test_9_with_entries_that_count_more_than_once_a_fraction_of_a_step_is_moved() -> None:
    case = honest()
    coarse = like(Coarse, case.statement)
    inverse = pow(Coarse.factor, -1, P)
    x = mul(elements(case.x), np.full(len(case.x), inverse, np.uint64))  # so that T is the honest one
    fraction = x.copy()
    fraction[OFF] = (int(x[OFF]) + inverse) % P  # 2**53 steps of the sum, and one of T
    witness = elements(case.witness())
    witness[error_place(case, OFF)] = (int(witness[error_place(case, OFF)]) + 1) % P
    made = Attempt(coarse, fraction, witness, secrets_of(), 0)
    assert judged(coarse, made.finished(), secrets_of()) == ()
    assert min(inverse, P - inverse) > 1 << 50
    ours = Attempt(
        case.statement, add(elements(case.x), subtract(fraction, x)), elements(case.witness()), secrets_of(), 0
    )
    assert judged(case.statement, ours.finished(), secrets_of()) != ()


def test_10_with_coins_of_the_bits_that_are_known_beforehand_other_values_cancel() -> None:
    bits, rows = Bits(4), 6
    known, later = (stream(bytes([k]) * 32, 3 * rows).reshape(3, rows) for k in (1, 2))
    gaps = kernel([[int(each) for each in row[:4]] for row in known])
    scale = next(s for s in range(1, 5000) if all(root((1 + 4 * s * gap) % P) is not None for gap in gaps))
    values = [(1 + root((1 + 4 * scale * gap) % P)) * pow(2, -1, P) % P for gap in gaps]  # type: ignore[operator]
    assert [value * (value - 1) % P for value in values] == [scale * gap % P for gap in gaps]
    table = np.zeros((rows, 4), np.uint64)
    table[:4, 2] = values
    masks, point = stream(b"m" * 32, rows), 1 << 40
    for gamma, taken in ((known, True), (later, False)):
        quotients = bits.quotients(masks, table, gamma)
        assert bits.accepts(*bits.answer(masks, table, quotients, point), gamma, point) is taken


def test_11_a_part_is_no_test_of_guesses() -> None:
    """All helpers together know every stream; without blind and masks a part would be a hash of the vector alone."""
    case = honest()
    one, again = (attempt_of(case) for _ in range(2))
    other = Attempt(case.statement, one.x, one.witness, secrets_of(), 1)  # of another blind, with other masks
    assert one.first_part == again.first_part
    assert len({each.first_part for each in (one, other)}) == len({each.blind for each in (one, other)}) == 2
    first, columns = sum(case.statement.lengths[0][:3]), case.statement.grams[0].columns
    assert one.vector[:first].tolist() == other.vector[:first].tolist()  # what a guess would be of
    assert one.vector[first : first + columns].tolist() != other.vector[first : first + columns].tolist()
    body = one.finished().body[: case.statement.ends[0]].astype("<u8").tobytes()
    assert transcript.first_part(CONTEXT, SENDER, one.blind, body) == one.first_part
    assert transcript.first_part(CONTEXT, SENDER, bytes(32), body) != one.first_part


@pytest.mark.parametrize("small", [0, 1, 3, 20])
def test_12_a_query_never_reads_a_factor_or_a_bit_as_it_is(small: int, monkeypatch) -> None:
    case = honest()
    made = attempt_of(case)
    proof, statement = made.finished(), case.statement
    query, gram = asked(statement, proof), statement.grams[0]
    bare = Query(tuple((0, c) for _, c in query.grams), query.point, query.weights)
    total = clear_answer(case, proof, made, bare)
    assert total[: gram.columns].tolist() == gram.multiply_transposed(made.x, made.witness, bare.grams[0][1]).tolist()
    with pytest.raises(ValueError, match="not invertible"):  # at a node f is a bit, and there is no answer at all
        clear_answer(case, proof, made, Query(query.grams, 3, query.weights))

    def ground(rho: bytes, context: bytes, sender: int, size: int) -> Field:
        words = np.arange(1000, 1000 + size, dtype=np.uint64)
        at = 0
        for rows in (each.rows for each in statement.grams):
            words[at] = 0
            at += 2 + rows
        words[at] = small
        return words

    monkeypatch.setattr(verifier, "query", ground)
    query = query_of(statement, RHO, CONTEXT, SENDER)
    assert all(v for v, _ in query.grams)
    assert query.point >= 2 * statement.bits + 2
    assert judged(statement, proof, secrets_of()) == ()


class Flat(Moments):
    """Nothing holds a class's mean in the ball."""

    cones: ClassVar[int] = 0  # type: ignore[misc]


@pytest.mark.parametrize(("share", "norm"), [(1.0, 2.5), (0.04, 12.0)])
def test_13_without_cones_a_class_of_its_own_holds_a_record_of_any_norm(share: float, norm: float) -> None:
    """A record, or a part of one, beyond the ball; its second moments are paid by the others' empty records."""
    case = honest()
    far = np.zeros((1, FEATURES), np.int64)
    far[0, 0] = round(norm * STEP)
    counts = np.array([(N - 1) * STEP**2, 0, int(share * STEP**2)])
    sums = np.zeros((CLASSES, FEATURES), np.int64)
    sums[2] = np.rint(share * STEP * far[0]).astype(np.int64)
    second = np.rint(share * far.T @ far).astype(np.int64)
    x = np.concatenate([counts, sums.ravel(), second.diagonal(), second[np.triu_indices(FEATURES, 1)]])
    double = Case(like(Flat, case.statement), x)
    flat = attempt_of(double)
    assert flat.fits
    assert judged(double.statement, flat.finished(), secrets_of()) == ()
    made = attempt_of(Case(case.statement, x), w=elements(double.witness()))
    assert not made.fits
    assert judged(case.statement, made.finished(), secrets_of()) == ("relations",)


def test_14_words_beyond_the_field_are_refused_before_they_are_added() -> None:
    case, secrets = honest(), secrets_of()
    proof = attempt_of(case).finished()
    query = asked(case.statement, proof)
    answers = [
        answer(case.statement, share, proof.transcript, query) for share in shares_of(case.statement, proof, secrets)
    ]
    answers[1][0] += np.uint64(P)
    with pytest.raises(ValueError, match="below 2\\*\\*61 - 1"):
        summed(answers)


def test_fields_of_the_doubles_are_those_of_the_statement() -> None:
    case = honest()
    same = like(Moments, case.statement)
    proof = attempt_of(case).finished()
    assert judged(same, proof, secrets_of()) == ()
    assert (same.ends, same.bits) == (case.statement.ends, case.statement.bits)
