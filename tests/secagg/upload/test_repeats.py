"""A second run is no second release only where every helper has signed that the first is over without an answer."""

from __future__ import annotations

import pytest

from privstats.errors import AggregationError, LocalProtocolError
from privstats.secagg import check_abandoned_by_all
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
    with pytest.raises(LocalProtocolError, match=f"helper {missing} has not said that it abandoned the run"):
        check_abandoned_by_all(told, **place_of(run))


def test_one_helper_does_not_speak_for_another() -> None:
    run = uploads_of()
    word = run.helpers[0].abandon()[0][1]
    with pytest.raises(LocalProtocolError, match=r"helper 2's word .* is not \(bad_signature\)"):
        check_abandoned_by_all({1: word, 2: word}, **place_of(run))


def test_the_word_on_another_run_says_nothing_of_this_one() -> None:
    run, other = uploads_of(), uploads_of(run=b"another run name")
    with pytest.raises(LocalProtocolError, match=r"helper 1's word .* is not \(wrong_session\)"):
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
