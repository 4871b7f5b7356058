"""Sessions whose reports carry proofs: what is refused, by whom it is named, and what every member may repeat."""

from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import pytest

from privstats.contrib.proofs.field import P
from privstats.contrib.proofs.field_streams import FieldStreams
from privstats.contrib.proofs.moments import Moments
from privstats.encoding import Ring
from privstats.errors import AggregationError, DataError, LocalProtocolError, PlanError, RemoteProtocolError
from privstats.secagg.upload import batching, messages
from privstats.secagg.upload import signed_statements as said
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.masking_scheme import secret_of
from privstats.secagg.upload.non_inclusion import prove_excluded
from tests.contrib.proofs.proved import CLAIM, GROUP, Proved, covering, lying, proved_of, with_client
from tests.secagg.upload.cohorts import RING, refused, signed_batch, uploads_of
from tests.secagg.upload.inside import inside

KEY = b"k" * 32
A = slice(3, 15)
"""Where the sums by class lie."""


def played(run: Proved, silent: tuple[int, ...] = ()):
    run.play_until("reveal", silent)
    return run.finish()


@pytest.mark.parametrize("helpers", [1, 3])
def test_honest_reports_give_the_exact_sum_in_today_s_units(helpers: int) -> None:
    run = proved_of(helpers=helpers)
    total, survivors = played(run, silent=(4,))
    assert survivors == (0, 1, 2, 3, 5)
    assert np.array_equal(total, run.sum_over(survivors))
    assert run.leader.faults == ()
    assert len(run.leader.statements) == helpers


LIES = {
    "A times 100": lambda x, w: (np.concatenate([x[:3], x[A] * np.uint64(100) % np.uint64(P), x[15:]]), w),
    "one entry by a grid step of many records": lambda x, w: (np.where(np.arange(25) == 3, (x + (1 << 30)) % P, x), w),
    "a fraction of a grid step, 1/4096 mod p": lambda x, w: ((x + np.uint64(pow(4096, -1, P))) % np.uint64(P), w),
    "another witness": lambda x, w: (x, (w + np.uint64(1)) % np.uint64(P)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_and_named_and_the_sum_is_of_the_others(lie: str) -> None:
    run = with_client(proved_of(), 1, lying(LIES[lie]))
    total, survivors = played(run)
    assert survivors == (0, 2, 3, 4, 5)
    assert np.array_equal(total, run.sum_over(survivors))
    (fault,) = run.leader.faults
    assert (fault.peer, fault.code, fault.proven, run.leader.unproved) == (1, "bad_proof", False, 1)
    assert "according to the leader and all helpers" in str(fault)


def test_more_failures_than_colluders_name_the_panel_and_too_many_end_the_run() -> None:
    run = proved_of(colluders=1)
    for index in (0, 1, 2):
        with_client(run, index, lying(LIES["A times 100"]))
    run.play_until("check")
    run.pass_on(run.leader.outbox)
    *clients, panel = run.leader.faults
    assert [fault.peer for fault in clients] == [0, 1, 2]
    assert (panel.peer, panel.proven) == ("panel", False)
    assert "3 proofs fail and the plan has 1 colluders" in str(panel)
    with pytest.raises(AggregationError, match="3 clients remain, the plan needs 4, 3 proofs failed"):
        run.leader.end_step()


class Shifting(Helper):
    """A helper that shifts its answers, well signed: any one member can make any honest client fail."""

    def _answers(self, scheme, message, bitmap):
        for number, answer in enumerate(super()._answers(scheme, message, bitmap)):
            words = np.frombuffer(answer, "<u8").copy()
            words[0] = (int(words[0]) + (number == 2)) % P
            yield words.tobytes()


def test_a_lying_helper_fails_an_honest_client_and_no_message_shows_which_of_them_lied() -> None:
    run = proved_of(helper_class=Shifting)
    total, survivors = played(run)
    assert survivors == (0, 1, 3, 4, 5)
    assert np.array_equal(total, run.sum_over(survivors))
    assert [(fault.peer, fault.proven) for fault in run.leader.faults] == [(2, False)]


def test_a_refused_report_is_on_no_list_so_its_client_can_show_that_it_is_in_no_sum() -> None:
    run = with_client(proved_of(), 1, lying(LIES["A times 100"]))
    played(run)
    common = {"roster": run.roster, "panel": run.panel}
    said_by = run.leader.statements
    for report in (run.clients[1].receipt, run.report(1)):
        assert prove_excluded(run.parameters, report, said_by, **common) == run.clients[1].upload
    with pytest.raises(LocalProtocolError, match="answered a list with this client: count the run as a release"):
        prove_excluded(run.parameters, run.clients[0].receipt, said_by, **common)


def test_noise_of_helpers_is_added_in_the_field_and_in_whole_grid_steps() -> None:
    """Sums of words wrap at p: with noise of -7 in every entry some word of an answer passes it."""
    noise = GROUP.encode(np.full(GROUP.size, -7))
    kind = partial(Helper, noise=lambda _: GROUP.of(np.concatenate(noise.lanes)))
    run = proved_of(noisy_helpers=True, helper_class=kind)
    total, survivors = played(run)
    assert np.array_equal(total, run.sum_over(survivors) - 14)


# --- the leader against helpers ---


def batch_and_run(helpers: int = 2) -> tuple[Proved, bytes]:
    run = proved_of(helpers=helpers)
    return run, run.play_until("check")[6]


def test_a_helper_answers_one_rho_for_a_report_ever() -> None:
    run, batch = batch_and_run()
    first = run.helpers[0].receive(batch)
    assert run.helpers[0].receive(batch) == first
    message = run.read(batch, messages.ProvedBatch)
    for number in (0, 1):
        other = signed_batch(run, 1, msgspec.structs.replace(message, rho=b"r" * 32, part=number))
        with refused("wrong_part" if not number else "out_of_order"):
            run.helpers[0].receive(other)
    assert run.helpers[0].receive(batch) == first


@pytest.mark.parametrize("column", ["commits", "parts"])
def test_proofs_that_the_leader_swaps_between_clients_are_not_accepted(column: str) -> None:
    run, batch = batch_and_run()
    message = run.read(batch, messages.ProvedBatch)
    width = len(getattr(message, column)) // 6
    value = getattr(message, column)
    swapped = value[width : 2 * width] + value[:width] + value[2 * width :]
    ((_, answer),) = run.helpers[0].receive(signed_batch(run, 1, msgspec.structs.replace(message, **{column: swapped})))
    assert run.read(answer, messages.ProvedChecked).bitmap == b"\x3c"
    assert [(fault.peer, fault.code) for fault in run.helpers[0].faults] == [("server", "bad_signature")] * 2
    short = signed_batch(run, 2, msgspec.structs.replace(message, **{column: value[:-1]}))
    with refused("wrong_length"):
        run.helpers[1].receive(short)


def test_a_seed_that_is_not_the_committed_one_is_a_bad_box() -> None:
    """Its client signed another commitment; the helper says so before it answers anything."""

    class Uncommitted(FieldStreams):
        def cover(self, vector, root, sender):
            hidden = super().cover(vector, root, sender)
            return replace(hidden, commits=hidden.commits[:32] + bytes(32))

    run = with_client(proved_of(), 0, covering(Uncommitted))
    asked = run.play_until("check")
    bitmaps = []
    for place in (1, 2):
        ((_, answer),) = run.helpers[place - 1].receive(asked[run.peer(place)])
        bitmaps.append(run.read(answer, messages.ProvedChecked).bitmap)
    assert bitmaps == [b"\x3f", b"\x3e"]
    assert [(fault.peer, fault.code) for fault in run.helpers[1].faults] == [(0, "bad_box")]


# --- clients and helpers against the leader ---


class Tampering(FieldStreams):
    """A body that is not the one whose parts are signed, or that holds words that are no elements."""

    word: int
    value: int

    def cover(self, vector, root, sender):
        hidden = super().cover(vector, root, sender)
        body = bytearray(hidden.body[0])
        body[32 + 8 * self.word : 40 + 8 * self.word] = self.value.to_bytes(8, "little")
        return replace(hidden, body=(memoryview(bytes(body)),))


@pytest.mark.parametrize(("word", "value", "code"), [(0, 1, "bad_parts"), (900, 1, "bad_parts"), (3, P, "malformed")])
def test_a_body_that_is_not_the_signed_one_is_refused_and_its_client_may_send_again(word, value, code) -> None:
    kind = type("Tampered", (Tampering,), {"word": word, "value": value})
    run = with_client(proved_of(), 0, covering(kind))
    with refused(code):
        run.leader.receive(0, run.report(0))
    assert (run.leader.faults, run.leader.refused) == ((), {code: 1})
    run.clients[0] = run.client(0)
    assert played(run)[1] == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("answers", "code"), [(lambda told: told[:-8], "wrong_length"), (lambda told: told[:-8] + b"\xff" * 8, "malformed")]
)
def test_answers_that_are_none_are_refused_and_proven(answers, code: str) -> None:
    run, batch = batch_and_run()
    ((_, checked),) = run.helpers[0].receive(batch)
    message = run.read(checked, messages.ProvedChecked)
    lie = answers(message.answers)
    digest = inside(run.leader).book.batch_digest(0, 1)
    statement = said.proved_checked_statement(run.context, 1, digest, message.bitmap, lie)
    signed = msgspec.structs.replace(message, answers=lie, signature=run.members[1].sign(statement))
    with refused("bad_signature"):
        run.leader.receive(6, messages.encode(msgspec.structs.replace(message, answers=lie)))
    with pytest.raises(RemoteProtocolError, match=code) as error:
        run.leader.receive(6, messages.encode(signed))
    assert error.value.proven
    run.leader.receive(6, checked)


def test_a_word_of_the_last_answer_that_is_no_element_is_refused() -> None:
    run = proved_of()
    asked = run.play_until("reveal")
    ((_, reveal),) = run.helpers[0].receive(asked[6])
    message = run.read(reveal, messages.Reveal)
    lie = b"\xff" * 8 + bytes(message.answer[8:])
    statement = said.reveal_statement(run.context, 1, message.roll, lie)
    signed = msgspec.structs.replace(message, answer=memoryview(lie), signature=run.members[1].sign(statement))
    with refused("malformed"):
        run.leader.receive(6, messages.encode(signed))
    run.leader.receive(6, reveal)
    assert run.finish()[1] == (0, 1, 2, 3, 4, 5)


def test_machines_of_the_two_kinds_of_sessions_refuse_each_others_messages() -> None:
    plain, proved = uploads_of(), proved_of()
    for one, other in ((plain, proved), (proved, plain)):
        with refused("wrong_type"):
            one.leader.receive(0, other.report(0))
    asked = plain.play_until("check"), proved.play_until("check")
    with refused("wrong_type"):
        proved.helpers[0].receive(asked[0][6])
    with refused("too_large"):  # for any message of a session without proofs
        plain.helpers[0].receive(asked[1][6])


# --- repeats and restarts ---


def leader_again(run: Proved) -> None:
    sealed = run.leader.export(KEY)
    place = {"parameters": run.parameters, "roster": run.roster, "identity": run.members[0]}
    run.leader = Leader.resume(sealed, KEY, **place)


def test_a_leader_that_is_resumed_after_every_message_sends_the_same_batches(monkeypatch) -> None:
    monkeypatch.setattr(batching, "PART_BYTES", 2 * proved_of().parameters.upload_bytes)
    run, sent = with_client(proved_of(), 3, lying(LIES["A times 100"])), {}
    for index in range(6):
        run.leader.receive(index, run.report(index))
        leader_again(run)
        for peer, message in run.leader.outbox:
            told = run.read(message, messages.ProvedBatch)
            assert sent.setdefault((peer, told.part), message) == message
    while run.leader.step != "done":
        for peer, message in run.leader.outbox:
            ((_, answer),) = run.helpers[peer - 6].receive(message)
            run.leader.receive(peer, answer)
            leader_again(run)
        if not run.leader.waiting_for or run.leader.step == "report":
            run.leader.end_step()
    total, survivors = run.leader.result
    assert survivors == (0, 1, 2, 4, 5)
    assert np.array_equal(total.lift(), run.sum_over(survivors))
    rhos = {part: {run.read(sent[peer, part], messages.ProvedBatch).rho for peer in (6, 7)} for _, part in sent}
    assert all(len(each) == 1 for each in rhos.values())  # one for all helpers
    assert len(set.union(*rhos.values())) == len(rhos)  # and another for each part


def test_coins_follow_from_every_report_of_their_part_with_its_body() -> None:
    """A leader that is put back and takes another body under the same signed key draws others, which helpers refuse."""
    first, second = proved_of(), proved_of()
    for run in (first, second):
        for index in range(6):
            run.leader.receive(index, run.report(index))
    part = inside(second.leader).state.open
    part.bodies[5] = part.bodies[5][:-1] + bytes([part.bodies[5][-1] ^ 1])
    coins = [run.read(dict(run.leader.end_step())[6], messages.ProvedBatch).rho for run in (first, second)]
    assert coins[0] != coins[1]
    first.helpers[0].receive(dict(first.leader.outbox)[6])
    with refused("wrong_part"):
        first.helpers[0].receive(dict(second.leader.outbox)[6])


def test_a_helper_that_takes_its_log_again_computes_no_answer(monkeypatch) -> None:
    run, batch = batch_and_run()
    first = run.helpers[0].receive(batch)
    again = run.helper(run.key(1))
    with monkeypatch.context() as patch:
        patch.setattr(FieldStreams, "helped", None)
        again.take(batch)
        again.take(batch)
        with refused("malformed"):
            again.take(batch[:40])
    assert again.parts == 1
    assert again.receive(batch) == first


def test_parts_are_closed_before_their_answers_pass_a_bound(monkeypatch) -> None:
    answer = proved_of().parameters.answer_bytes
    monkeypatch.setattr("privstats.secagg.upload.parameters._ANSWERS", 2 * answer + 1)
    run = proved_of()
    assert run.parameters.max_in_part == 2
    assert played(run)[1] == (0, 1, 2, 3, 4, 5)
    assert run.helpers[0].step == "done"


def test_two_witnesses_of_one_vector_give_two_secrets() -> None:
    """The same root on a machine that finds another factor: no key and no mask is used for two reports."""
    run = proved_of()
    vector = run.parameters.ring.encode(run.values[0])
    first, second = (secret_of(bytes(32), run.context, 0, vector, witness) for witness in (b"one", b"two"))
    assert len({first, second, secret_of(bytes(32), run.context, 0, vector)}) == 3


def test_a_report_with_another_witness_has_other_shares_and_masks(monkeypatch) -> None:
    """The same root and vector on a machine that rounds otherwise: a mask used twice would show the difference."""
    run, right = proved_of(), Moments.witness
    first = inside(run.client(0)).scheme.cover(run.clients[0].parameters.ring.encode(run.values[0]), bytes(32), 0)

    def other(statement, *given):
        found = right(statement, *given)
        found[: statement.entries] *= -1  # L of the other sign is another factor of the same sums
        return found

    monkeypatch.setattr(Moments, "witness", other)
    again = inside(run.client(0)).scheme.cover(run.clients[0].parameters.ring.encode(run.values[0]), bytes(32), 0)
    assert not set(first.pieces) & set(again.pieces)
    assert first.commits != again.commits


def test_a_client_keeps_no_root_or_vector_once_its_report_is_made() -> None:
    run = proved_of()
    client = run.client(0)
    assert client.prepare()
    assert not client.prepare()
    assert (client.step, client.answer, client.upload, client.receipt) == ("report", b"", b"", b"")
    held = inside(client)
    assert held.vector is None
    assert held.state.root == bytes(32)
    assert not run.leader.receive(0, client.start()[0][1])
    assert client.receipt.startswith(said.prefix("proved-report"))


def test_a_client_whose_sums_keep_no_statement_sends_nothing() -> None:
    run, told = proved_of(), []
    client = run.client(0, 100 * run.values[0], on_upload=told.append)
    with pytest.raises(DataError, match="most_records=9"):
        client.start()
    assert (told, client.answer, client.upload) == ([], b"", b"")


# --- parameters and sizes ---


def test_a_claim_and_its_group_belong_together_and_are_in_the_digest(monkeypatch) -> None:
    base = proved_of().parameters
    for wrong in ({"claim": None}, {"ring": RING}, {"claim": replace(CLAIM, sizes=(3, 5))}):
        with pytest.raises(PlanError, match="ring and claim must be one plan.s"):
            replace(base, **wrong)
    monkeypatch.setattr("privstats.secagg.upload.parameters._MAX_BODY", base.upload_bytes - 1)
    with pytest.raises(PlanError, match=f"at most {base.upload_bytes - 1} bytes, got {base.upload_bytes}"):
        replace(base)
    monkeypatch.undo()
    others = (
        replace(base, claim=replace(CLAIM, most_records=8)),
        replace(base, claim=replace(CLAIM, clipped=True)),
        replace(base, ring=type(GROUP)(tuple((size, 2 * factor) for size, factor in GROUP.parts))),
        replace(base, noisy_helpers=True),
        replace(base, claim=None, ring=Ring(GROUP.segments)),
    )
    assert len({base.digest, *(other.digest for other in others)}) == 1 + len(others)


@pytest.mark.parametrize("helpers", [1, 3])
def test_size_limits_of_reports_with_proofs_are_exact(helpers: int) -> None:
    run = proved_of(helpers=helpers)
    kinds = messages.kinds_of(run.parameters)
    limit = {kind: messages.size_limit(kind, run.parameters) for kind in (*kinds, messages.Reveal)}
    assert len(run.report(5)) == limit[kinds.report]
    asked = run.play_until("check")
    ((_, checked),) = run.helpers[0].receive(asked[6])
    assert (len(asked[6]), len(checked)) == (limit[kinds.batch], limit[kinds.checked])
    run.pass_on(run.leader.outbox)
    ((_, reveal),) = run.helpers[0].receive(dict(run.leader.end_step())[6])
    assert len(reveal) == limit[messages.Reveal]
    assert messages.largest_answer(run.parameters) == max(limit[each] for each in (kinds.report, kinds.checked))
    assert isinstance(run.client(0), Client)
