"""Lies about the sums, the witness and the report: none is taken, whatever the liar computes honestly besides."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from privstats.contrib.proofs import transcript
from privstats.contrib.proofs.field import P, elements, stream
from privstats.contrib.proofs.norm import of_norms
from privstats.contrib.proofs.prover import Proof, Secrets
from privstats.contrib.proofs.transcript import Transcript
from privstats.contrib.proofs.verifier import answer, refusals, summed
from privstats.secagg.upload.signed_statements import seed_commitment
from tests.contrib.proofs.cases import (
    BITS,
    CASES,
    STEP,
    Case,
    asked,
    attempt_of,
    judged,
    nab,
    nas,
    ridge,
    secrets_of,
    shares_of,
)
from threat_models.attacks.poisoned_sums import own_witness

CLASSES, FEATURES, N = 3, 4, 9
COUNTS, MEANS = slice(0, CLASSES), slice(CLASSES, CLASSES * (1 + FEATURES))
SECOND = slice(MEANS.stop, None)
TRACE = slice(MEANS.stop, MEANS.stop + FEATURES)
Integers = np.ndarray


def honest() -> Case:
    return nab(np.random.default_rng(3), CLASSES, FEATURES, N)


def scaled(part: slice, factor: float, x: Integers) -> Integers:
    out = x.copy()
    out[part] = np.rint(factor * x[part]).astype(np.int64)
    return out


def moved(place: int, by: int, x: Integers) -> Integers:
    out = x.copy()
    out[place] += by
    return out


def toward_other_classes(x: Integers) -> Integers:
    """The means of other classes, and second moments that a head inverts: within one bound on the whole norm."""
    out = x.copy()
    out[MEANS] = -np.roll(x[MEANS].reshape(CLASSES, FEATURES), 1, axis=0).ravel()
    out[TRACE] = -out[TRACE] // 2
    return out


def one_short(x: Integers) -> Integers:
    """B is short of one record in one direction: no longer positive."""
    return moved(MEANS.stop, -int(x[MEANS.stop]) - STEP**2, x)


LIES: dict[str, Callable[[Integers], Integers]] = {
    "everything times 100": partial(scaled, slice(None), 100),
    "A times 100": partial(scaled, MEANS, 100),
    "A times 1.5": partial(scaled, MEANS, 1.5),
    "A toward other classes": toward_other_classes,
    "B times 3": partial(scaled, SECOND, 3),
    "three times the records": partial(scaled, slice(None), 3),
    "a negative count": partial(moved, 0, -N * STEP**2),
    "B one record short": one_short,
    "an entry of the field's size": partial(moved, MEANS.stop + FEATURES, (P - 1) // 2),
    "half of an entry": partial(moved, MEANS.stop + FEATURES, (P + 1) // 2),
    "a fraction of a step": partial(moved, CLASSES, pow(4096, -1, P)),
}


def own_factor(case: Case, x: Integers) -> Integers:
    """The liar's best."""
    return own_witness(case.statement, x, case.hidden)


def without_error(case: Case, x: Integers) -> Integers:
    out = own_factor(case, x)
    out[case.statement.entries : 2 * case.statement.entries] = 0
    return out


WITNESSES: dict[str, Callable[[Case, Integers], Integers]] = {
    "own factor": own_factor,
    "honest factor": lambda case, x: case.witness(),
    "no error": without_error,
}


@pytest.mark.parametrize("witness", WITNESSES)
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_about_the_sums_is_taken(lie: str, witness: str) -> None:
    case = honest()
    x = LIES[lie](case.x)
    assert not np.array_equal(x, case.x)
    w = WITNESSES[witness](case, x)
    made = attempt_of(case, x=elements(x), w=elements(w))
    assert judged(case.statement, made.finished(), secrets_of()) != ()


@pytest.mark.parametrize("count", [8, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_no_lie_about_any_records_is_taken(count: int) -> None:
    """Ranks, scales and numbers of records as those of the honest reports that are all taken."""
    rng = np.random.default_rng(1)
    for number in range(count):
        classes, features, n = (int(each) for each in rng.integers((2, 1, 0), (6, 9, 60)))
        case = nab(rng, classes, features, n, rank=int(rng.integers(0, features)), scale=rng.random())
        lie, place = case.x.copy(), int(rng.choice([0, classes, classes * (1 + features)]))  # of N, A and B's diagonal
        lie[place] += (-1) ** int(rng.integers(2)) * 2 * (n + 1) * STEP**2
        x = 3 * case.x if n and number % 4 == 0 else lie
        w = WITNESSES[list(WITNESSES)[number % 3]](case, x)
        made = attempt_of(case, str(number), x=elements(x), w=elements(w))
        assert judged(case.statement, made.finished(), secrets_of(str(number))) != ()


@pytest.mark.parametrize("kind", [nas, ridge])
@pytest.mark.parametrize("factor", [1.5, 3, 100])
def test_no_multiple_of_other_sums_is_taken(kind, factor: float) -> None:
    case = kind(np.random.default_rng(1))
    x = np.rint(factor * case.x).astype(np.int64)
    for witness in (own_factor(case, x), case.witness()):
        made = attempt_of(case, x=elements(x), w=elements(witness))
        assert judged(case.statement, made.finished(), secrets_of()) != ()


@pytest.mark.parametrize("kind", CASES)
def test_sums_moved_by_a_step_under_an_honest_witness_are_refused(kind: str) -> None:
    case = CASES[kind](np.random.default_rng(2))
    x = case.x.copy()
    x[0] += 1 if kind != "counts" else 7
    made = attempt_of(case, x=elements(x))
    found = judged(case.statement, made.finished(), secrets_of())
    assert found == () if kind == "norm" else found != ()  # a step more is a norm that is as small


@pytest.mark.parametrize(("counts", "why"), [([-1, 2, 0, 1, 3, 3, 3], "below"), ([9, 9, 0, 0, 9, 0, 0], "too many")])
def test_counts_below_zero_or_beyond_n_are_refused(counts: list[int], why: str) -> None:
    case = CASES["counts"](np.random.default_rng(0))
    x = STEP**2 * np.array(counts, np.int64)
    made = attempt_of(case, x=elements(x))
    assert not made.fits, why
    assert judged(case.statement, made.finished(), secrets_of()) == ("relations",)


@pytest.mark.parametrize("lie", ["1.2", "100", "one statistic", "one entry", "quotients", "kappa", "minus kappa"])
def test_no_lie_about_a_norm_is_taken(lie: str) -> None:
    n, size = 9, 400
    statement = of_norms((size, size, 1), 4**BITS, n, counters=(2 * size,))
    rng = np.random.default_rng(0)
    full = rng.normal(size=(2, size))
    full *= n * 4**BITS / np.linalg.norm(full, axis=1, keepdims=True)
    x = np.append(np.trunc(full).astype(np.int64).ravel(), n * 4**BITS)
    honest = Case(statement, x)
    assert judged(statement, attempt_of(honest).finished(), secrets_of()) == ()
    lied, quotients = x.copy(), honest.witness()
    if lie in ("1.2", "100"):
        lied[: 2 * size] = np.rint(float(lie) * x[: 2 * size]).astype(np.int64)
    elif lie == "one statistic":
        lied[:size] = 2 * x[:size]  # the other one is what it was
    elif lie in ("one entry", "quotients"):
        lied[3] = 2 * n * 4**BITS
    else:
        lied[-1] = {"kappa": n * 4**BITS + 1, "minus kappa": -1}[lie]
    if lie != "quotients":
        half = (1 << statement.shift) >> 1
        quotients = (lied + half) >> statement.shift
    made = attempt_of(honest, x=elements(lied), w=elements(quotients))
    assert judged(statement, made.finished(), secrets_of()) != ()


# --- the report ---


def with_stage(proof: Proof, place: int) -> Proof:
    body = proof.body.copy()
    body[place] = (int(body[place]) + 1) % P
    return Proof(body, proof.blind, proof.transcript)


def test_every_part_of_a_body_is_held_against_what_was_signed_or_against_the_others() -> None:
    case = honest()
    first, second, size = case.statement.ends
    proof = attempt_of(case).finished()
    for place in (0, first - 1, first, second - 1):
        assert judged(case.statement, with_stage(proof, place), secrets_of()) == ("parts",)
    for place in (second, size - 1):  # h, which no part covers: the body's box does
        assert judged(case.statement, with_stage(proof, place), secrets_of()) == ("bits",)


@pytest.mark.parametrize("change", ["sender", "run", "seed", "garbage"])
def test_a_report_of_another_sender_run_or_seed_is_refused(change: str) -> None:
    case, proof, secrets = honest(), attempt_of(honest()).finished(), secrets_of()
    said = proof.transcript
    if change == "sender":
        said = Transcript(said.context, said.sender + 1, said.commits, said.parts)
    elif change == "run":
        said = Transcript(b"o" * 32, said.sender, said.commits, said.parts)
    elif change == "seed":
        assert seed_commitment(said.context, said.sender, 1, b"o" * 32) != said.commits[0]
        secrets = Secrets(secrets.context, secrets.sender, secrets.secret, (b"o" * 32, *secrets.seeds[1:]))
        assert judged(case.statement, proof, secrets) != ()
        return
    body = stream(b"g" * 32, len(proof.body)) if change == "garbage" else proof.body
    assert judged(case.statement, Proof(body, proof.blind, said), secrets) == ("parts",)


def test_garbage_under_its_own_hashes_is_refused_by_every_check() -> None:
    case, secrets = honest(), secrets_of()
    body = stream(b"g" * 32, case.statement.ends[-1])
    first, second, _ = case.statement.ends
    blind = bytes(32)
    parts = (
        transcript.first_part(secrets.context, secrets.sender, blind, body[:first].astype("<u8").tobytes()),
        transcript.second_part(secrets.context, secrets.sender, blind, body[first:second].astype("<u8").tobytes()),
    )
    commits = attempt_of(case).commits
    said = Transcript(secrets.context, secrets.sender, commits, parts)
    found = judged(case.statement, Proof(body, blind, said), secrets)
    assert found == ("gram factor", "gram error", "gram cones", "relations", "bits")


def test_commitments_and_parts_are_bound_to_run_sender_and_place() -> None:
    context, seed, blind = b"c" * 32, b"s" * 32, b"b" * 32
    commits = {seed_commitment(c, s, p, seed) for c in (context, b"d" * 32) for s in (1, 2) for p in (1, 2)}
    assert len(commits) == 8
    assert len({seed_commitment(context, 1, 1, each) for each in (seed, b"t" * 32)}) == 2
    parts = {make(context, 1, blind, b"x") for make in (transcript.first_part, transcript.second_part)}
    assert len(parts) == 2
    z = transcript.first_challenge(context, 1, (b"a" * 32, b"b" * 32), b"p" * 32)
    others = [
        transcript.first_challenge(b"d" * 32, 1, (b"a" * 32, b"b" * 32), b"p" * 32),
        transcript.first_challenge(context, 2, (b"a" * 32, b"b" * 32), b"p" * 32),
        transcript.first_challenge(context, 1, (b"b" * 32, b"a" * 32), b"p" * 32),
        transcript.first_challenge(context, 1, (b"a" * 32, b"b" * 32), b"q" * 32),
    ]
    assert z not in others


def test_labels_shifted_among_classes_are_taken_as_they_must_be() -> None:
    """What a client says of its own records is not what a proof is about."""
    case = honest()
    x = case.x.copy()
    x[COUNTS], x[MEANS] = np.roll(x[COUNTS], 1), np.roll(x[MEANS].reshape(CLASSES, FEATURES), 1, axis=0).ravel()
    again = Case(case.statement, x)
    assert judged(case.statement, attempt_of(again).finished(), secrets_of()) == ()


def test_an_answer_that_is_off_by_one_fails_the_report() -> None:
    """So any one member can fail an honest client; the leader cannot tell which, or whether the client lied."""
    case, secrets = honest(), secrets_of()
    proof = attempt_of(case).finished()
    query = asked(case.statement, proof)
    answers = [
        answer(case.statement, share, proof.transcript, query) for share in shares_of(case.statement, proof, secrets)
    ]
    for place in range(0, len(answers[1]), 7):
        wrong = answers[1].copy()
        wrong[place] = (int(wrong[place]) + 1) % P
        total = summed([answers[0], wrong, *answers[2:]])
        assert refusals(case.statement, total, proof.transcript, query) != ()
