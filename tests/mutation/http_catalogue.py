"""The deliberate bugs of the leader of devices, and the bugs themselves: rows as in ``catalogue``, which takes them."""

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from privstats.contrib.http.exchange import Answer, Refused
from privstats.contrib.http.helper_desk import HelperDesk
from privstats.contrib.http.intake import Intake
from privstats.contrib.http.leader import Leader
from privstats.contrib.http.limits import BrokenOff, BytesInFlight
from privstats.contrib.http.owner import Owner
from privstats.contrib.http.run import LeaderRun
from privstats.engines.door import deadline_protocol
from privstats.engines.door.deadline_protocol import DeadlineProtocol
from privstats.engines.network.folder import RoundFolder
from privstats.secagg.upload.deferred import DeferredSums
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member

_LEADER = "tests/contrib/http/test_leader.py::"
_SUMS = "tests/engines/test_journal_part_sums.py::"
_HOSTILE = "tests/contrib/http/test_hostile.py::"
_SERVE = "tests/contrib/http/test_serve.py::"
_DOOR = "tests/contrib/http/test_door.py::"

right_report, right_exchange, right_rest = Leader._report, LeaderRun.exchange, Intake._rest
right_take, right_data, right_replied = Intake.take, DeadlineProtocol.data_received, HelperDesk._replied


async def _beside_the_owner(self: Owner, action: Callable[[], Any]) -> Any:
    return action()


async def _by_the_step(self: Leader, request: Any, sender: int) -> Any:
    if self._run.step.name not in ("offer", "report"):
        raise Refused("closed" if self._run.ended is None else "over")
    return await right_report(self, request, sender)


def _added_again(self: DeferredSums, number: int, packed: bytes) -> bool:
    self._scheme.add(self._total, [memoryview(packed)])
    return self._state.settled.pop(number, None) is not None


async def _known_after_the_end(self: Leader, request: Any, sender: int) -> Any:
    if self._run.ended is not None and self._run.heard(sender) is not None:
        return Answer(200)
    return await right_report(self, request, sender)


def _whatever_the_outbox_lists(self: LeaderRun, place: int, payload: bytes) -> Any:
    following = right_exchange(self, place, payload)
    if following is None and self._server is not None and self._peer(place) in self._server.outbox.clients:
        return self._server.outbox.to(self._peer(place))
    return following


def _with_every_byte(self: DeadlineProtocol, data: bytes) -> None:
    if self._in_header:
        self._set_deadline(deadline_protocol.HEADER_SECONDS)
    right_data(self, data)


async def _known_before_the_signature(self: Intake, manifest: Any, sender: int, request: Any) -> Any:
    told = request.headers.get("privstats-signature", "")
    if self._heard(sender) not in (None, bytes.fromhex(told)):
        raise Refused("already_here")
    return await right_take(self, manifest, sender, request)


async def _many_of_one_sender(self: Intake, sender: int, *more: Any) -> Any:
    self._sending.clear()
    return await right_rest(self, sender, *more)


async def _a_nonce_for_everybody(self: HelperDesk, request: Any, place: int) -> Any:
    try:
        return await right_replied(self, request, place)
    finally:
        self._nonces[place].append(bytes.fromhex("ab" * 31) + bytes([len(self.heard) % 256]))


HTTP_MUTANTS: dict[str, Mutant] = {
    "a call beside the journal's thread": bug(
        "helpers' messages are handled in the event loop, beside the thread that receives reports",
        member(Owner, "call", _beside_the_owner), _LEADER + "test_all_calls_of_the_journal_are_one_threads"),
    "a repeat judged by the step": bug(
        "a report that comes again after the close is refused as late, also where its 201 was lost",
        member(Leader, "_report", _by_the_step),
        _HOSTILE + "test_after_the_close_a_new_report_is_late_and_a_repeat_is_confirmed"),
    "known after the end": bug("after the run whoever asks hears whose report was confirmed, signed or not",
        member(Leader, "_report", _known_after_the_end),
        _HOSTILE + "test_after_the_run_a_stranger_hears_nothing_of_who_reported"),
    "a part added twice": bug("a part's sum that comes twice, of a task that ran twice, counts twice",
        member(DeferredSums, "add_part_sum", _added_again), _SUMS + "test_a_second_sum_of_a_part_changes_nothing"),
    "parts that nobody summed": bug("the step of checks closes without the sums that are still to come",
        member(DeferredSums, "_sum_all_here", lambda self: None),
        _SUMS + "test_what_nobody_summed_the_leader_sums_at_the_close_of_the_step"),
    "helpers asked by the outbox alone": bug("a helper that has answered is asked again, as the outbox still lists it",
        member(LeaderRun, "exchange", _whatever_the_outbox_lists),
        _LEADER + "test_a_helper_that_has_answered_waits_for_the_others"),
    "a header's deadline with every byte": bug("every byte of a header gives it all of its time again",
        member(DeadlineProtocol, "data_received", _with_every_byte),
        _SERVE + "test_a_slow_header_ends_at_its_deadline_whatever_byte_came_last"),
    "requests before an answer": bug(
        "a connection may send requests before the answer to the first, and all are kept and answered",
        member(DeadlineProtocol, "on_message_begin", HttpToolsProtocol.on_message_begin),
        _DOOR + "TestRequests::test_attack_requests_before_an_answer_are_not_answered_and_end_their_connection"),
    "codes that come again": bug("a code that breaks off its bodies has as much room for the next one as any other",
        member(BrokenOff, "lately", lambda self, sender: False),
        _HOSTILE + "test_attack_codes_that_come_again_leave_room_for_the_others"),
    "an account that is not asked": bug(
        "a leader whose account cannot pay takes everybody's report, and says so at the release",
        member(RoundFolder, "ask_charge", lambda self: None),
        _SERVE + "test_a_leader_whose_account_cannot_pay_takes_no_report"),
    "all bodies in memory": bug("bodies are read whatever else is being received",
        member(BytesInFlight, "_fits", lambda self, size: True),
        _HOSTILE + "test_a_body_beyond_the_bytes_in_flight_is_not_read_and_then_refused"),
    "known before the signature": bug(
        "a stranger hears whose report is here: the table is asked before the signature is verified",
        member(Intake, "take", _known_before_the_signature),
        _HOSTILE + "test_a_stranger_hears_the_same_of_who_has_reported_and_who_has_not"),
    "many bodies of one sender": bug("one leaked code may hold the whole buffer by many slow bodies",
        member(Intake, "_rest", _many_of_one_sender), _HOSTILE + "test_of_64_slow_bodies_of_one_code_one_is_read"),
    "nonces for strangers": bug("a refused reply makes a new nonce, so strangers use up the helper's",
        member(HelperDesk, "_replied", _a_nonce_for_everybody),
        _HOSTILE + "test_the_last_two_nonces_hold_and_strangers_use_none_up"),
}  # fmt: skip
