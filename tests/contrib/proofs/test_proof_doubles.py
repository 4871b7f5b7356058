"""Machines that lack one rule of the proofs, each with the attack that works there and fails on ours.

The numbers are those of the design; the doubles of the arithmetic are in ``proof/test_doubles.py``. Every attack must
succeed on its double, or the test that it fails on ours would show nothing.
"""

from functools import partial
from itertools import combinations, product
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from privstats.contrib.proofs.field import Field, P, add, dot, elements, lift, mul, subtract, words_in
from privstats.contrib.proofs.field_streams import FieldStreams
from privstats.contrib.proofs.prover import Attempt, Secrets
from privstats.contrib.proofs.transcript import Transcript
from privstats.contrib.proofs.verifier import answer, cut, query_of
from privstats.encoding import RingVector
from privstats.errors import DataError, LocalProtocolError, RemoteProtocolError
from privstats.secagg.prg import ctr_keystream
from privstats.secagg.upload import messages
from privstats.secagg.upload.batching import ReportBatches
from privstats.secagg.upload.checks import rows
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.masking_scheme import Streams
from privstats.secagg.upload.signed_statements import derive
from tests.contrib.proofs import test_zero_knowledge as zero_knowledge
from tests.contrib.proofs.cases import STEP
from tests.contrib.proofs.proved import (
    CLASSES,
    FACTORS,
    FEATURES,
    GROUP,
    MOST,
    Lying,
    Proved,
    covering,
    proved_of,
    with_client,
)
from tests.contrib.proofs.test_proved import Shifting, batch_and_run, played
from tests.contrib.proofs.test_zero_knowledge import LOW, free, simulated
from tests.secagg.upload.cohorts import answer_of, list_of, refused, signed_batch
from tests.secagg.upload.inside import inside

VICTIM = 2
EVERYBODY, WITHOUT = (0, 1, 2, 3, 4, 5), (0, 1, 3, 4, 5)
OTHER = b"another rho, of thirty-two bytes"
OFF = CLASSES * (1 + FEATURES) + FEATURES


def full(size: int, value: int) -> Field:
    return np.full(size, value, np.uint64)


def drawn(seed: bytes) -> RingVector:
    """Noise of a helper, in grid steps."""
    return GROUP.encode(np.frombuffer(ctr_keystream(seed, bytes(16), 2 * GROUP.size), "<i2").astype(np.int64))


def truth(run: Proved) -> tuple[Field, Field]:
    """The victim's entries and witness."""
    x = np.concatenate(GROUP.encode(run.values[VICTIM]).lanes)
    witness = run.parameters.statement.witness(lift(x), lift(x)[:0], lambda number, size: full(size, 0))
    return x, elements(witness)


class Honest(Lying):
    """An honest report under the root itself, which no vector and no witness hedges."""

    change: ClassVar = staticmethod(lambda x, w: (x, w))


# --- 15: noise of clients, and clips in wire steps ---


def clipped_in_wire_steps(run: Proved) -> Client:
    """A client whose vector is shrunk after its factors were multiplied in."""
    client = run.client(VICTIM)
    words = lift(np.concatenate(GROUP.encode(run.values[VICTIM]).lanes))
    inside(client).vector = GROUP.of(elements((words * 13) // 17))
    return client


@pytest.mark.parametrize("fine", [True, False])
def test_15_a_clip_in_wire_steps_is_read_below_the_noise_of_the_helpers(fine: bool) -> None:
    """Noise is a whole multiple of every factor, so what it leaves free below them is a client's own."""
    run = proved_of(noisy_helpers=True, helper_class=partial(Helper, noise=drawn))
    run.clients[VICTIM] = clipped_in_wire_steps(run) if fine else run.client(VICTIM, run.values[VICTIM] * 13 // 17)
    own = lift(np.concatenate(inside(run.clients[VICTIM]).vector.lanes))
    run.play_until("reveal")
    run.finish()
    total = lift(np.concatenate(run.leader.result[0].lanes))
    read, hidden = total % FACTORS, own % FACTORS
    assert np.array_equal(read, hidden)
    assert bool(hidden.any()) is fine


def test_15_a_client_that_adds_noise_cannot_prove_its_sums() -> None:
    run = proved_of()
    noise = np.random.default_rng(0).normal(0, 400, GROUP.size).astype(np.int64)
    with pytest.raises(DataError, match="most_records=9"):
        run.client(VICTIM, run.values[VICTIM] + noise).start()


# --- 17: coins that are drawn before the reports are fixed, or answered twice ---


class Foreseeing(Lying):
    """A false entry, and a square of the mask that satisfies the query of one rho."""

    rho: ClassVar[bytes]
    change: ClassVar = staticmethod(lambda x, w: (x + np.uint64(MOST * STEP**2) * (np.arange(len(x)) == OFF), w))

    def attempt(self, told: tuple[Field, Field], secrets: Secrets) -> Attempt:
        made, gram = super().attempt(told, secrets), self._statement.grams[0]
        v, c = query_of(self._statement, self.rho, secrets.context, secrets.sender).grams[0]
        sent = cut(self._statement, made.vector).grams[0]
        w = add(gram.multiply_transposed(made.x, made.witness, c), mul(sent.mask, full(gram.columns, v)))
        q = gram.form(made.x, made.witness, sent.product, c) + 2 * v * dot(c, sent.right) + v * v * sent.square
        square = sum(self._statement.lengths[0][:6]) - 1
        made.vector[square] = (int(made.vector[square]) + (dot(w, w) - q) * pow(v * v, -1, P)) % P
        return made


@pytest.mark.parametrize("early", [True, False])
def test_17_coins_that_do_not_depend_on_the_reports_are_known_from_an_earlier_life(early: bool, monkeypatch) -> None:
    """A leader that is put back to before its reports: with coins of the part's number it would ask the same again."""
    if early:
        monkeypatch.setattr(ReportBatches, "_coins", lambda book, number, part: derive(bytes(32), "rho/0", bytes(32)))
    rho = read_batch(proved_of(), 1)[1].rho
    run = with_client(proved_of(), VICTIM, covering(type("Knowing", (Foreseeing,), {"rho": rho})))
    assert (VICTIM in played(run)[1]) is early
    assert run.leader.unproved == (not early)


class Memoryless(Helper):
    """It answers every batch as if it were the first."""

    def _accepted(self, view: memoryview):
        self._parts.clear()
        self._seen[:] = bytes(len(self._seen))
        return super()._accepted(view)


def read_batch(run: Proved, place: int) -> tuple[bytes, messages.ProvedBatch]:
    batch = run.play_until("check")[run.peer(place)]
    return batch, run.read(batch, messages.ProvedBatch)


def told(run: Proved, place: int, batch: bytes) -> Field:
    """A helper's answers to all clients' proofs, a row for each."""
    ((_, data),) = run.helpers[place - 1].receive(batch)
    return words_in(run.read(data, messages.ProvedChecked).answers).reshape(len(EVERYBODY), -1)


def mixed(run: Proved, answers: list[Field], rhos: list[bytes]) -> tuple[Field, Field]:
    """What two answers about one share say of its factor once its mask is taken out, and of which rows."""
    statement, size = run.parameters.statement, run.parameters.statement.grams[0].columns
    (v, c), (u, d) = (query_of(statement, rho, run.context, VICTIM).grams[0] for rho in rhos)

    def out(one: Field, other: Field) -> Field:
        return subtract(mul(one, full(len(one), u)), mul(other, full(len(other), v)))

    return out(answers[0][:size], answers[1][:size]), out(c, d)


def leaders_own(run: Proved, message: messages.ProvedBatch, rho: bytes, sender: int = VICTIM) -> Field:
    """The leader's answer about a client's body."""
    statement, body = run.parameters.statement, inside(run.leader).state.parts[0].bodies[sender]
    query = query_of(statement, rho, run.context, sender)
    return answer(statement, words_in(body[32:]), said_of(run, message, sender), query)


def said_of(run: Proved, message: messages.ProvedBatch, sender: int) -> Transcript:
    """What a client signed, as it stands in a batch of all six."""
    columns = (message.commits, message.parts)
    return Transcript.of(run.context, sender, *(rows(each, len(each) // len(EVERYBODY))[sender] for each in columns))


@pytest.mark.parametrize("kind", [Memoryless, Helper])
def test_17_a_helper_that_answers_two_queries_shows_linear_forms_of_the_factor(kind: type[Helper]) -> None:
    run = proved_of(helpers=1, helper_class=kind)
    batch, message = read_batch(run, 1)
    other = signed_batch(run, 1, msgspec.structs.replace(message, rho=OTHER))
    rhos = [message.rho, OTHER]
    try:
        helped = [told(run, 1, each)[VICTIM] for each in (batch, other)]
    except RemoteProtocolError as refusal:
        assert (kind, refusal.code) == (Helper, "wrong_part")
        return
    totals = [add(each, leaders_own(run, message, rho)) for each, rho in zip(helped, rhos, strict=True)]
    found, lines = mixed(run, totals, rhos)
    assert kind is Memoryless
    assert found.tolist() == run.parameters.statement.grams[0].multiply_transposed(*truth(run), lines).tolist()


def test_17_a_part_that_comes_again_after_the_next_one_gets_the_same_answer(monkeypatch) -> None:
    monkeypatch.setattr("privstats.secagg.upload.parameters._ANSWERS", 3 * proved_of().parameters.answer_bytes)
    run = proved_of(helpers=1)
    for index in EVERYBODY:
        run.leader.receive(index, run.report(index))
    parts = [inside(run.leader).book.batch(number, 1) for number in (0, 1)]
    first, second, again = (run.helpers[0].receive(part) for part in (*parts, parts[0]))
    assert first == again != second
    lie = msgspec.structs.replace(run.read(parts[0], messages.ProvedBatch), rho=OTHER)
    with pytest.raises(RemoteProtocolError, match="wrong_part"):
        run.helpers[0].receive(signed_batch(run, 1, lie))


# --- zero knowledge, of what really travels ---


@pytest.mark.ci
def test_what_members_say_of_honest_reports_is_what_a_simulator_says_that_has_seen_none() -> None:
    """The answers in the messages of sessions: two cohorts whose records differ, and the simulator's for both."""
    found: dict[str, list[Field]] = {"a helper": [], "all, 0": [], "all, 1": [], "simulated": []}
    for number, label in product(range(2), ("one", "other", "third")):
        run = proved_of(helpers=1, label=f"{number} {label}")
        run.clients = [run.client(index, run.values[(index + number) % 6]) for index in EVERYBODY]
        batch, message = read_batch(run, 1)
        statement = run.parameters.statement
        for sender, helped in enumerate(told(run, 1, batch)):
            total = add(helped, leaders_own(run, message, message.rho, sender))
            said, query = said_of(run, message, sender), query_of(statement, message.rho, run.context, sender)
            made = simulated(statement, said, query, f"{label:>24}{number:>4}{sender:>4}".encode())
            places = free(statement)
            with pytest.MonkeyPatch.context() as patch:  # from the places that are drawn, all others follow
                patch.setattr(zero_knowledge, "stream", lambda key, size, total=total, places=places: total[places])
                assert simulated(statement, said, query, b"").tolist() == total.tolist()
            found["a helper"].append(helped)
            found[f"all, {number}"].append(total[places])
            found["simulated"].append(made[places])
    drawn_words = {name: np.concatenate(each).astype(np.float64) / P for name, each in found.items()}
    assert all(kstest(each, "uniform").pvalue > LOW for each in drawn_words.values())
    for one, other in combinations(("all, 0", "all, 1", "simulated"), 2):
        assert ks_2samp(drawn_words[one], drawn_words[other]).pvalue > LOW


# --- 18: two honest helpers, and a leader that shows each something else ---


class OneSeed(Honest):
    """Every helper has the same seed, so that any one of them may vanish."""

    def seeds(self, secret: bytes) -> tuple[bytes, ...]:
        return super().seeds(secret)[:1] * self._helpers


@pytest.mark.parametrize(("kind", "breaks"), [(OneSeed, True), (FieldStreams, False)])
def test_18_two_queries_to_two_helpers_read_the_factor_where_they_share_a_seed(kind, breaks: bool) -> None:
    run = proved_of(client_class=covering(kind))
    asked = run.play_until("check")
    message = run.read(asked[7], messages.ProvedBatch)
    other = signed_batch(run, 2, msgspec.structs.replace(message, rho=OTHER))
    rhos = [message.rho, OTHER]
    found, lines = mixed(run, [told(run, 1, asked[6])[VICTIM], told(run, 2, other)[VICTIM]], rhos)
    statement = run.parameters.statement
    body = cut(statement, words_in(inside(run.leader).state.parts[0].bodies[VICTIM][32:]))
    known = statement.grams[0].multiply_transposed(body.x, body.w, lines)
    read = add(known, add(found, found))  # the body and twice the one share
    assert (read.tolist() == statement.grams[0].multiply_transposed(*truth(run), lines).tolist()) is breaks


@pytest.mark.parametrize(("kind", "breaks"), [(OneSeed, True), (FieldStreams, False)])
def test_18_two_lists_to_two_helpers_read_a_client_where_they_share_a_seed(kind, breaks: bool) -> None:
    run = proved_of(client_class=covering(kind))
    asked = run.play_until("check")
    lists = (EVERYBODY, WITHOUT)
    answers = []
    for place, listed in zip((1, 2), lists, strict=True):
        run.helpers[place - 1].receive(asked[run.peer(place)])
        answers.append(answer_of(run, run.helpers[place - 1], list_of(run, listed)))
    share, total = answers[0], GROUP.of(words_in(run.body(VICTIM, run.report(VICTIM))[32:][: GROUP.wire_bytes]))
    share.subtract(answers[1])
    total.add(share)
    total.add(share)
    assert np.array_equal(total.lift(), run.values[VICTIM]) is breaks


@pytest.mark.parametrize(("kind", "breaks"), [(Honest, True), (FieldStreams, False)])
def test_18_two_reports_of_one_root_show_their_difference_where_no_vector_hedges_it(kind, breaks: bool) -> None:
    run = proved_of(client_class=covering(kind))
    values = run.values[VICTIM], run.values[VICTIM + 1]
    bodies = []
    for each in values:
        ((_, report),) = run.client(VICTIM, each).start()
        bodies.append(GROUP.of(words_in(run.body(VICTIM, report)[32:][: GROUP.wire_bytes])))
    bodies[0].subtract(bodies[1])
    assert np.array_equal(bodies[0].lift(), values[0] - values[1]) is breaks


# --- 19: a member fails one chosen client in one run of two ---


@pytest.mark.parametrize("noisy", [False, True])
def test_19_a_helper_that_fails_one_client_in_the_second_run_shows_it_where_no_noise_is_added(noisy: bool) -> None:
    """What the page says: two releases, of which noise covers the difference, and a fault that names the client."""
    named = {"noise": drawn} if noisy else {}
    first, second = (
        proved_of(noisy_helpers=noisy, helper_class=partial(kind, **named), run=b"run %d, of the same" % number)
        for number, kind in enumerate((Helper, Shifting))
    )
    (whole, everybody), (rest, left) = played(first), played(second)
    assert (everybody, left) == (EVERYBODY, WITHOUT)
    assert [(fault.peer, fault.code, fault.proven) for fault in second.leader.faults] == [(VICTIM, "bad_proof", False)]
    assert np.array_equal(whole - rest, first.values[VICTIM]) is not noisy


# --- a helper that goes on, or has no means to ---


def test_a_log_is_taken_as_messages_are_and_not_by_a_helper_that_has_ended() -> None:
    run, batch = batch_and_run()
    with refused("too_large") as told:
        run.helpers[0].take(bytes(messages.largest_request(run.parameters) + 1))
    assert not told.value.proven  # nobody signed it
    run.finish()
    with refused("session_over"):
        run.helpers[0].take(batch)
    assert (run.helpers[0].step, run.helpers[0].answer != b"") == ("done", True)
    run.helper(run.key(1)).take(batch)


def test_a_helper_whose_scheme_proves_nothing_answers_nothing() -> None:
    run, batch = batch_and_run()
    inside(run.helpers[0]).scheme = Streams(GROUP, 2, run.context)
    with pytest.raises(LocalProtocolError, match="the masking scheme verifies none"):
        run.helpers[0].receive(batch)
