"""Deliberate bugs of what stands around the sum: the registry of a stream, masking protocols, journals, weighed sums.

Rows of the table in ``catalogue``. No audit sees them: audits look at what a plan's sessions draw and release.
"""

import hmac
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from privstats.contrib.streams import RecordRegistry
from privstats.engines.journal.helper import JournaledHelper
from privstats.engines.journal.panel_member import HpkeKey
from privstats.engines.journal.rollback import Counter
from privstats.engines.journal.segments import Segments
from privstats.engines.journal.server_files import ServerFiles
from privstats.engines.journal.server_view import ServerView
from privstats.engines.records import RecordLog
from privstats.files.outside import Outside
from privstats.randomness import secure
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.uploader import Uploader
from privstats.secagg.wire import Refusal
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member, name_in


def _sent_again(holding: RecordRegistry, view: Any, level: int) -> tuple[set[bytes], set[bytes]]:
    return {key for (key,) in view.log.connection.execute("SELECT key FROM registry_states")}, set()


def _entered_again(holding: RecordRegistry, ids: Iterable[str]) -> None:
    with holding._log.changing() as changes:
        changes.move("entered", holding._keys(ids))


def _withdrawn_whatever_left(holding: RecordRegistry, node: int) -> None:
    with holding._log.changing() as changes:
        changes.end(node, "returned")


def _equal_to_anything(right: Any) -> Any:
    return SimpleNamespace(digest=hmac.digest, compare_digest=lambda one, other: True)


def _every_signature(right: Any) -> Any:
    return lambda *given: True


def _strangers_listed(right: Any) -> Any:
    def checked(message: Any, parameters: Any, accepted: Any, digest: Any) -> Any:
        def known(sender: int) -> bytes:
            return digest(sender) if accepted(sender) else b""

        return right(message, parameters, lambda sender: True, known)

    return checked


def _any_disputes(right: Any) -> Any:
    def checked(graph: Any, state: Any) -> None:
        with suppress(Refusal):
            right(graph, state)

    return checked


def _one_survivor_fewer(right: Any) -> Any:
    def checked(message: Any, parameters: Any, accepted: Any, digest: Any) -> Any:
        return right(message, replace(parameters, min_survivors=parameters.min_survivors - 1), accepted, digest)

    return checked


def _one_neighbour_fewer(right: Any) -> Any:
    return lambda count, graph, did: right(count + 1, graph, did)


def _blinded_by_the_root_alone(right: Any) -> Any:
    def derived(secret: bytes, label: str, *, salt: bytes = b"", size: int = 32) -> Any:
        return right(secret, label, salt=b"" if label.endswith(("coefficients", "blinds")) else salt, size=size)

    return derived


_close = JournaledHelper._close_run


def _answered_before_it_is_kept(helper: JournaledHelper, end: Any) -> None:
    with suppress(OSError):
        _close(helper, end)


_appended, _keep = Segments.append_many, Segments.keep


def _marked_first(segments: Segments, records: Any) -> Any:
    segments._water.write(segments.live, segments._log.count + len(records))
    return _appended(segments, records)


_HOLDING = "tests/contrib/streams/test_record_registry.py::test_"
_LIST = "tests/secagg/upload/test_lying_leader.py::test_"
_KEPT = "tests/engines/test_journal_uploads.py::test_"
_GROUPS = "tests/engines/test_journal_groups.py::test_"
_SEGMENTS = "tests/engines/test_journal_segments.py::test_"
_SESSIONS = "tests/engines/test_journal_sessions.py::test_"
_SERVER = "tests/secagg/interactive/test_lying_server.py::"
_RING = "tests/secagg/interactive/test_disputes.py::TestRandomGraph::test_"
_DEALINGS = "tests/secagg/interactive/test_dealings.py::"
_RESTORED = "tests/engines/test_journal_restored.py::test_"
_IN_PLACE = "tests/engines/test_journal_in_place.py::test_"
_KILLS = "tests/engines/test_journal_kills.py::test_"
_CHECKS = "privstats.secagg.upload.checks"

MACHINES: dict[str, Mutant] = {
    "registry forgets what was sent": bug("a record is due at every node of a stream, sent or not",
        member(RecordRegistry, "_due", _sent_again),
        _HOLDING + "what_is_sent_is_due_no_more_and_what_leaves_is_due_once"),
    "a record enters twice": bug("a record that has left a stream may enter it again",
        member(RecordRegistry, "enter", _entered_again),
        _HOLDING + "a_record_is_new_then_in_then_gone_and_never_again"),
    "what left is withdrawn": bug("records may be sent again although their masked vector has left",
        member(RecordRegistry, "withdraw", _withdrawn_whatever_left),
        _HOLDING + "what_never_left_is_withdrawn_and_its_client_never_speaks",
        _HOLDING + "silence_is_no_proof_and_repeats_are_paid_for"),
    "proof about another upload": bug("a proof that some upload is in no sum frees every upload",
        name_in("privstats.contrib.streams.record_registry", "hmac", _equal_to_anything),
        _HOLDING + "a_proof_about_another_upload_frees_nothing"),
    "signature of a report not checked": bug("leader and helpers take reports in anybody's name",
        name_in(_CHECKS, "verify", _every_signature), _LIST + "an_invented_client_is_not_accepted"),
    "helper answers for strangers": bug("a helper answers a list with reports that it did not accept",
        name_in(_CHECKS, "check_survivors", _strangers_listed), _LIST + "a_list_with_a_report_that_was_not_accepted"),
    "helper answers a short list": bug("a helper answers a list with one survivor fewer than the plan allows",
        name_in(_CHECKS, "check_survivors", _one_survivor_fewer),
        _LIST + "a_short_list_is_refused_and_changes_nothing"),
    "quorum off by one": bug("a client unmasks with one signature fewer than the threshold",
        name_in("privstats.secagg.interactive.checks", "_check_quorum", _one_neighbour_fewer),
        _SERVER + "test_a_lie_is_refused_by_name[unmask-too few signatures]"),
    "neighbours alone sign a list": bug("a client of a random graph opens a list that its neighbourhood signed",
        member(Parameters, "signatures", property(lambda parameters: parameters.threshold)),
        "tests/threat_models/attacks/test_several_lists.py::"
        "test_the_search_finds_the_break_in_the_old_rule_and_none_in_the_new[300-270-0]"),
    "disputes without a limit": bug("a client of a random graph masks with however few the server leaves it",
        name_in("privstats.secagg.interactive.checks", "check_refused", _any_disputes),
        _RING + "attack_disputes_that_the_server_makes_up", _RING + "attack_boxes_of_clients_that_left"),
    "disputed clients counted": bug("a list on a random graph may be as short as the sum, whoever is in dispute",
        member(Parameters, "min_listed", property(lambda parameters: parameters.min_survivors)),
        _RING + "attack_a_list_of_too_few", _RING + "the_session_ends_where_fewer_would_be_listed"),
    "signature on a list not checked": bug("a client believes every signature that the server shows it",
        name_in("privstats.secagg.interactive.checks", "verify", _every_signature),
        _SERVER + "test_a_lie_is_refused_by_name[unmask-signatures from another session over the same list]"),
    "ledger not told before a report": bug("a client of one upload sends its report without a word to its ledger",
        member(Uploader, "_leaving", lambda client, upload: None),
        _KEPT + "a_charged_client_tells_before_its_report_leaves"),
    "ledger not told before a masked vector": bug(
        "a client of the interactive protocol uploads without a word to its ledger",
        member(Uploader, "_leaving", lambda client, upload: None),
        "tests/session/test_session.py::test_the_ledger_is_told_before_the_masked_vector_leaves"),
    "box key outlives the answer": bug("a helper's box key stays on its disk after the answer",
        member(HpkeKey, "destroy", staticmethod(lambda run: None)),
        _KEPT + "after_the_answer_there_is_no_key_on_disk_and_the_answer_is_repeated"),
    "answer leaves before it is kept": bug("a helper's answer leaves although the end of its run could not be written",
        member(JournaledHelper, "_close_run", _answered_before_it_is_kept),
        "tests/engines/test_journal_contract.py::test_an_answer_that_cannot_be_kept_does_not_leave"),
    "server journals nothing": bug("a server answers before what it was sent is on its disk",
        member(ServerFiles, "append", lambda files, sender, data=b"": None),
        "tests/engines/test_journal_leaks.py::test_a_finished_session_tells_so_after_a_restart",
        _SESSIONS + "a_resumed_server_does_not_hand_the_exact_sum_out_again"),
    "group answered before the disk": bug("a group of messages is answered before it is on the disk",
        member(ServerFiles, "append_many", lambda files, messages: [bytes(40)] * len(messages)),
        _GROUPS + "a_kill_inside_a_group_loses_no_message_that_was_answered",
        _GROUPS + "a_group_that_cannot_be_written_is_not_answered_and_ends_the_process"),
    "marked before the disk": bug("records are marked as answered before they are waited for",
        member(Segments, "append_many", _marked_first),
        _SEGMENTS + "a_group_that_a_kill_cut_short_in_its_middle_is_as_if_its_rest_had_never_arrived",
        _SEGMENTS + "after_a_power_cut_at_any_write_it_opens_and_every_answer_stands"),
    "what a failed wait left is trusted": bug("records that may be on no disk are read and not written anew",
        member(Segments, "copy_tail", lambda segments: False),
        _SEGMENTS + "what_no_disk_may_hold_is_written_anew_before_a_repeat_is_answered"),
    "damage above the mark cuts below it": bug("records that were answered are cut off as if nobody held an answer",
        member(Segments, "_known", lambda segments: 0),
        _SEGMENTS + "damage_above_the_mark_cuts_and_below_it_is_refused_with_the_segments_name"),
    "segments of parts that wait are removed": bug(
        "a snapshot removes the segments that hold bodies which wait for a helper",
        member(Segments, "keep", lambda segments, needed: _keep(segments, ())),
        _SEGMENTS + "parts_that_wait_are_on_disk_alone_and_a_helper_may_be_away_for_long"),
    "rot ends the run": bug(
        "a leader whose disk lost a report says that its run has failed, so that whoever runs it removes the rest",
        member(ServerView, "step", property(lambda view: view._server.step)),
        _SEGMENTS + "a_report_that_waits_for_a_helper_and_is_gone_is_refused_and_never_left_out"),
    "journal draws noise anew": bug("a journaled server draws new noise whenever its release is asked for",
        name_in("privstats.engines.journal.server_view", "bound_to", lambda right: lambda *said: secure()),
        _SESSIONS + "a_central_release_is_drawn_once_however_often_it_is_asked_for"),
    "journals share a seed": bug(
        "every journaled server keeps the same seed for its noise",
        name_in(
            "privstats.engines.journal.server_files",
            "os",
            lambda right: SimpleNamespace(urandom=lambda size: bytes(size)),
        ),
        "tests/test_freshness.py::test_two_releases_of_the_same_sums_have_noise_of_their_own",
    ),
    "epochs share their noise": bug(
        "every epoch of a weighed stream carries the same noise",
        name_in(
            "privstats.contrib.streams.stream",
            "_noise",
            lambda right: lambda plan, seed, sums: right(plan, seed, sums[:1]),
        ),
        "tests/test_freshness.py::test_two_releases_of_the_same_sums_have_noise_of_their_own",
    ),
    "server takes any self-mask key": bug("a server takes a self-mask key that was not dealt",
        name_in("privstats.secagg.interactive.server", "is_self_key", _every_signature),
        "tests/secagg/interactive/test_lying_client.py::TestUnmask::test_another_self_mask_key"),
    "server weighs responses with nothing": bug("a server takes responses that lie on no polynomial",
        name_in("privstats.secagg.interactive.server", "checks", lambda right: lambda k, *_: [0] * (k + 1)),
        _DEALINGS + "test_a_mutated_dealing_is_refused_by_name",
        _DEALINGS + "test_nobody_can_aim_responses_at_the_weights"),
    "weights that follow no secret": bug("a dealer knows what its responses are weighed with",
        name_in("privstats.secagg.interactive.server", "uniform", lambda right: lambda data: [1] * len(right(data))),
        _DEALINGS + "test_nobody_can_aim_responses_at_the_weights"),
    "client takes any share": bug("a client keeps shares that are not the ones that were proven",
        name_in("privstats.secagg.interactive.client", "fits_share", lambda right: lambda *_, **named: True),
        _SERVER + "test_shares_that_are_not_the_ones_proven"),
    "server takes any share back": bug("a server takes shares that are not the ones that were proven",
        name_in("privstats.secagg.interactive.server", "fits_point", lambda right: lambda *_, **named: True),
        _DEALINGS + "TestHolders::test_the_holder_is_named_and_the_others_shares_suffice"),
    "blinds without the transcript": bug(
        "a client deals and blinds by its root alone, so that two challenges solve for its keys",
        name_in("privstats.secagg.interactive.client_secrets", "derive", _blinded_by_the_root_alone),
        _DEALINGS + "TestSecrecy::test_two_transcripts_shown_to_one_client_and_its_copy"),
    "journal put back": bug("a journal from a backup goes on as if nothing had been answered since",
        member(Counter, "is_older", lambda counter, mark: False),
        _RESTORED + "attack_a_client_that_is_put_back_signs_a_second_list",
        _RESTORED + "a_leader_that_is_put_back_from_before_it_led_leads_no_second_server"),
    "counted in the folder alone": bug("no counter lies outside of a folder that is restored in place",
        member(Outside, "write", lambda outside, value: None),
        _RESTORED + "attack_a_client_that_is_put_back_signs_a_second_list",
        _RESTORED + "attack_a_helper_that_is_put_back_answers_a_second_list"),
    "begun twice": bug("a client begins where its journal is gone and a counter says that it has begun",
        member(Counter, "require_new", lambda counter, place, role: None),
        _IN_PLACE + "attack_a_folder_restored_from_before_the_session_begins_a_second_client"),
    "ended and not counted": bug("a journal whose count a kill kept from being written is never counted",
        member(Counter, "catch_up", lambda counter, count: None),
        _KILLS + "a_kill_between_two_writes_of_a_helper_lets_no_older_copy_in",
        _KILLS + "a_kill_while_a_client_is_kept_from_beginning_keeps_older_folders_from_it"),
    "damage taken for a torn end": bug("a record whose length is damaged is cut off with all behind it",
        member(RecordLog, "_check", lambda log, length: bytes(8)),
        "tests/engines/test_journal.py::test_no_damage_of_a_log_is_read_as_its_end"),
}  # fmt: skip
