"""A second run is no second release only where every helper has signed that the first is over without an answer."""

import msgspec
import pytest

from privstats.errors import AggregationError, LocalProtocolError
from privstats.secagg import check_abandoned_by_all
from privstats.secagg.upload import messages
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.non_inclusion import prove_excluded
from tests.secagg.upload.cohorts import Uploads, refused, uploads_of


def abandoned(run: Uploads) -> dict[int, bytes]:
    return {place: helper.abandon()[0][1] for place, helper in enumerate(run.helpers, start=1)}


def place_of(run: Uploads) -> dict:
    return {"parameters": run.parameters, "roster": run.roster, "panel": run.clients[0].panel}


def test_the_word_of_all_helpers_is_enough_also_for_a_client_that_has_only_the_digest_of_the_roster() -> None:
    run = uploads_of(helpers=3)
    run.play_until("check", silent=(1,))
    told = abandoned(run)
    check_abandoned_by_all(told, **place_of(run))
    check_abandoned_by_all(told, **{**place_of(run), "roster": run.roster.digest})


def test_the_leader_hands_on_what_the_check_asks_for() -> None:
    run = uploads_of()
    for place, word in abandoned(run).items():
        run.leader.receive(run.peer(place), word)
    check_abandoned_by_all(run.leader.abandoned, **place_of(run))


def test_the_leader_hears_who_gives_up_after_the_run_has_failed() -> None:
    """One helper is gone, the run fails, and only then do the operators of all of them let go."""
    run = uploads_of()
    run.play_until("check")
    with pytest.raises(AggregationError, match="too_few_helpers|have not answered"):
        run.leader.end_step()
    told = abandoned(run)
    for place, word in told.items():
        run.leader.receive(run.peer(place), word)
        run.leader.receive(run.peer(place), word)
    assert run.leader.abandoned == told
    check_abandoned_by_all(run.leader.abandoned, **place_of(run))
    with refused("not_expected"):
        run.leader.receive(run.peer(1), run.report(0))
    with refused("not_expected"):
        run.leader.receive(0, told[1])
    other = abandoned(uploads_of(run=b"another run name"))
    with refused("wrong_session"):
        run.leader.receive(run.peer(1), other[1])
    assert run.leader.step == "failed"


def test_nobody_gives_up_a_run_that_has_its_sum() -> None:
    run, twin = uploads_of(), uploads_of()
    run.play_until("check")
    run.finish()
    with refused("not_expected"):
        run.leader.receive(run.peer(1), abandoned(twin)[1])
    assert run.leader.abandoned == {}


@pytest.mark.parametrize("missing", [1, 2])
def test_one_helper_that_is_silent_may_still_answer(missing: int) -> None:
    run = uploads_of()
    told = abandoned(run)
    del told[missing]
    with pytest.raises(LocalProtocolError, match=f"no signed statement .* how helper {missing} ended the run: count"):
        check_abandoned_by_all(told, **place_of(run))


def test_one_helper_does_not_speak_for_another() -> None:
    run = uploads_of()
    word = run.helpers[0].abandon()[0][1]
    with pytest.raises(LocalProtocolError, match=r"helper 2 is not its signed statement .* \(bad_signature\)"):
        check_abandoned_by_all({1: word, 2: word}, **place_of(run))


def test_the_word_on_another_run_says_nothing_of_this_one() -> None:
    run, other = uploads_of(), uploads_of(run=b"another run name")
    with pytest.raises(LocalProtocolError, match=r"helper 1 is not its signed statement .* \(wrong_session\)"):
        check_abandoned_by_all(abandoned(other), **place_of(run))


def test_the_word_on_another_panel_of_the_same_people_says_nothing() -> None:
    """A leader with two offers has two panels; the helpers bound themselves to the one that the client did not use."""
    run, other = uploads_of(), uploads_of(label="other keys")
    assert run.panel.identities == other.panel.identities
    with pytest.raises(LocalProtocolError, match="wrong_session"):
        check_abandoned_by_all(abandoned(other), **place_of(run))


@pytest.mark.parametrize("word", [b"", bytes(40), "words", None])
def test_what_is_no_statement_is_refused_in_words(word: object) -> None:
    run = uploads_of(helpers=1)
    with pytest.raises(LocalProtocolError):
        check_abandoned_by_all({1: word}, **place_of(run))


# --- a report that came too late: each helper's one list ---


def late(helpers: int = 2) -> tuple[Uploads, Client]:
    """A run with a sum over all but client 5, whose report left and never came."""
    run = uploads_of(helpers=helpers)
    client = run.client(5)
    client.start()
    run.play_until("reveal", silent=(5,))
    run.finish()
    return run, client


def test_the_lists_that_all_helpers_answered_free_the_report_that_is_on_none() -> None:
    run, client = late()
    told = run.leader.statements
    assert sorted(told) == [1, 2]
    named = {"roster": run.roster, "panel": run.panel}
    assert prove_excluded(run.parameters, client.receipt, told, **named) == client.upload
    counted = run.client(0)
    counted.start()
    with pytest.raises(LocalProtocolError, match="answered a list with this client: count the run as a release"):
        prove_excluded(run.parameters, counted.receipt, told, **named)
    with pytest.raises(LocalProtocolError, match="on how helper 2 ended the run"):
        prove_excluded(run.parameters, client.receipt, {1: told[1]}, **named)


@pytest.mark.parametrize("field", ["bitmap", "digests", "answer", "signature", "context"])
def test_a_list_that_no_helper_answered_frees_nothing(field: str) -> None:
    """Nothing of it can be changed, nor shown as another helper's, in another run or for an abandoned one."""
    run, client = late()
    told, named = run.leader.statements, {"roster": run.roster, "panel": run.panel}
    right = run.read(told[1], messages.Listed)
    value = getattr(right, field)
    changed = messages.encode(msgspec.structs.replace(right, **{field: bytes([value[0] ^ 1]) + value[1:]}))
    shorter = messages.encode(msgspec.structs.replace(right, digests=right.digests[32:]))
    for lie in (changed, shorter, told[2], b"", told[1] + b"\0"):
        with pytest.raises(LocalProtocolError, match="helper 1 is not its signed statement on the end of this run"):
            prove_excluded(run.parameters, client.receipt, {**told, 1: lie}, **named)
    with pytest.raises(LocalProtocolError, match="is not its signed statement on the end of this run"):
        check_abandoned_by_all(told, parameters=run.parameters, **named)


def test_a_list_and_a_helper_that_gave_up_free_the_report_that_is_on_no_list() -> None:
    run, client = late()
    twin = uploads_of(helpers=2)
    told = {1: run.leader.statements[1], 2: abandoned(twin)[2]}
    named = {"roster": run.roster, "panel": run.panel}
    assert twin.context == run.context
    assert prove_excluded(run.parameters, client.receipt, told, **named) == client.upload


def test_a_second_report_of_a_client_that_is_in_the_sum_frees_nothing() -> None:
    """The client is put back to before it made its report: of the same root and vector it makes another."""
    run, _ = late()
    named = {"roster": run.roster, "panel": run.panel}
    again = run.client(0)
    again.start()
    assert again.upload != run.clients[0].upload
    for report in (again.receipt, again.start()[0][1]):
        with pytest.raises(LocalProtocolError, match="answered a list with this client: count the run as a release"):
            prove_excluded(run.parameters, report, run.leader.statements, **named)
