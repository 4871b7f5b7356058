"""What a verification tells of an honest client is what a simulator tells that has never seen its sums.

The sum of all members' answers is drawn by the simulator alone: w and f(t) uniform, q = w'w, h(t) from f(t), the zero
minus the constants. An honest member's own answer is that sum less what the others computed themselves.
"""

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from privstats.contrib.proofs import transcript
from privstats.contrib.proofs.counts import Counts
from privstats.contrib.proofs.field import Field, P, dot, mul, stream, subtract
from privstats.contrib.proofs.moments import Moments
from privstats.contrib.proofs.norm import Norm
from privstats.contrib.proofs.statement import Statement
from privstats.contrib.proofs.transcript import Transcript
from privstats.contrib.proofs.verifier import Query, answer, answer_size, constants, query_of, summed
from tests.contrib.proofs.cases import CASES, CONTEXT, RHO, SENDER, asked, attempt_of, nab, secrets_of, shares_of
from tests.contrib.proofs.test_doubles import like

RUNS = 24
LOW = 1e-6


def simulated(statement: Statement, said: Transcript, query: Query, key: bytes) -> Field:
    """The sum of the answers about a client of which nothing is known but what it signed."""
    coins, parts, at = stream(key, answer_size(statement)), [], 0
    for gram in statement.grams:
        w = coins[at : at + gram.columns]
        parts += [w, np.array([dot(w, w)], np.uint64)]
        at += gram.columns
    parts.append(np.array([-constants(statement, query.weights) % P], np.uint64))
    values = coins[at : at + statement.rows]
    gamma = transcript.gamma(said.second, said.context, statement.rows)
    zero = 1
    for k in range(1, statement.bits + 1):
        zero = zero * (query.point - k) % P
    gaps = [int(f) * (int(f) - 1) % P for f in values]
    sums = [sum(int(g) * gap for g, gap in zip(row, gaps, strict=True)) for row in gamma]
    return np.concatenate([*parts, values, np.array([each * pow(zero, -1, P) % P for each in sums], np.uint64)])


def free(statement: Statement) -> np.ndarray:
    """The places of an answer that the simulator draws; all others follow from these."""
    out, at = [], 0
    for gram in statement.grams:
        out += list(range(at, at + gram.columns))
        at += gram.columns + 1
    return np.array(out + list(range(at + 1, at + 1 + statement.rows)))


def totals(case: Any, name: str) -> tuple[list[Field], list[Field]]:
    """What is told of so many reports of one client, and what the simulator makes of their signed halves."""
    real, made = [], []
    for number in range(RUNS):
        secrets = secrets_of(f"{name} {number}", helpers=1)
        proof = attempt_of(case, f"{name} {number}", helpers=1).finished()
        query = asked(case.statement, proof)
        answers = [
            answer(case.statement, each, proof.transcript, query) for each in shares_of(case.statement, proof, secrets)
        ]
        real.append(summed(answers))
        made.append(simulated(case.statement, proof.transcript, query, f"{name:>24}{number:>8}".encode()))
    return real, made


@pytest.mark.parametrize("kind", CASES)
def test_what_follows_from_the_drawn_places_follows_as_the_simulator_says(kind: str) -> None:
    """Put the real w and f(t) into the simulator: every other number of the real answers comes out."""
    case = CASES[kind](np.random.default_rng(0))
    statement, secrets = case.statement, secrets_of()
    proof = attempt_of(case).finished()
    query = asked(statement, proof)
    total = summed(answer(statement, each, proof.transcript, query) for each in shares_of(statement, proof, secrets))
    coins = np.zeros(answer_size(statement), np.uint64)
    coins[: len(free(statement))] = total[free(statement)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "stream", lambda key, size: coins)
        assert simulated(statement, proof.transcript, query, b"").tolist() == total.tolist()


@pytest.mark.ci
def test_the_drawn_places_of_real_answers_are_uniform_and_like_the_simulators() -> None:
    cases = [nab(np.random.default_rng(seed), classes=2, features=2, n=9) for seed in (1, 2)]
    found = [totals(case, f"input {number}") for number, case in enumerate(cases)]
    places = free(cases[0].statement)
    real = [np.stack(each)[:, places].astype(np.float64) / P for each, _ in found]
    made = np.stack(found[0][1])[:, places].astype(np.float64) / P
    for one in real:
        assert kstest(one.ravel(), "uniform").pvalue > LOW
        assert ks_2samp(one.ravel(), made.ravel()).pvalue > LOW
        worst = min(kstest(column, "uniform").pvalue for column in one.T)
        assert worst > LOW / len(places)
        z = np.corrcoef(one[:, ::5], rowvar=False)[np.triu_indices(len(places[::5]), 1)] * np.sqrt(RUNS)
        assert abs(z).max() < 7
    assert ks_2samp(real[0].ravel(), real[1].ravel()).pvalue > LOW


class SmallMoments(Moments):
    tests: ClassVar[int] = 1


class SmallNorm(Norm):
    tests: ClassVar[int] = 1


def small(kind: str) -> Statement:
    """A statement with so few tests that exact ranks are cheap."""
    statement = CASES[kind](np.random.default_rng(0)).statement
    if isinstance(statement, Moments):
        return like(
            SmallMoments, nab(np.random.default_rng(0), classes=2, features=2).statement if kind == "NAB" else statement
        )
    if isinstance(statement, Norm):
        return SmallNorm(statement.sizes, statement.mass, statement.shift, statement.counters)
    return statement


def rank(matrix: Field) -> int:
    """The rank modulo p."""
    matrix, found = matrix.copy(), 0
    for column in range(matrix.shape[1]):
        rows = np.flatnonzero(matrix[found:, column]) + found
        if not rows.size:
            continue
        matrix[[found, rows[0]]] = matrix[[rows[0], found]]
        inverse = np.uint64(pow(int(matrix[found, column]), -1, P))
        pivot = mul(matrix[found], np.full(matrix.shape[1], inverse, np.uint64))
        below = matrix[found + 1 :]
        below[...] = subtract(below, mul(below[:, column : column + 1], pivot[None, :]))
        found += 1
        if found == len(matrix):
            break
    return found


@pytest.mark.parametrize(
    "kind", ["counts", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("NAB", "norm"))]
)
def test_no_combination_of_answers_to_one_query_or_to_two_lies_on_the_sums_alone(kind: str) -> None:
    """So nothing that a member says while a report is checked joins what it says of x when the sum is revealed."""
    statement = small(kind)
    size = statement.ends[-1]
    said = Transcript(CONTEXT, SENDER, (b"c" * 32,), (b"p" * 32, b"q" * 32))
    queries = [query_of(statement, rho, CONTEXT, SENDER) for rho in (RHO, b"x" * 32)]
    columns = []
    for place in range(size):
        one = np.zeros(size, np.uint64)
        one[place] = 1
        columns.append(np.concatenate([answer(statement, one, said, query) for query in queries]))
    matrix = np.stack(columns, axis=1)
    count = answer_size(statement)
    beyond = matrix[:, statement.size :]
    assert rank(beyond[:count]) == count
    assert rank(beyond) == rank(matrix)


def test_answers_are_linear_in_the_share() -> None:
    for kind in CASES:
        case = CASES[kind](np.random.default_rng(0))
        proof = attempt_of(case).finished()
        query, size = asked(case.statement, proof), case.statement.ends[-1]
        a, b = (stream(bytes([k]) * 32, size) for k in (1, 2))
        together = answer(case.statement, summed([a, b]), proof.transcript, query)
        apart = summed(answer(case.statement, each, proof.transcript, query) for each in (a, b))
        assert together.tolist() == apart.tolist()
        assert isinstance(case.statement, Moments | Norm | Counts)
