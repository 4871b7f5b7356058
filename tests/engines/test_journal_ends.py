"""What a box key's end does at both ends: after it no list is answered, nothing is sealed, and nothing lies there."""

import time
from functools import partial
from types import SimpleNamespace

import msgspec
import pytest

from privstats.engines import loopback
from privstats.engines.journal import JournaledClient, JournaledHelper, JournaledServer
from privstats.engines.journal.client_file import forget_answer
from privstats.engines.journal.expiry import UnconfirmedEndError, look
from privstats.engines.journal.helper import forget_ended
from privstats.engines.journal.leader import JournaledLeader
from privstats.engines.records import read_sealed
from privstats.errors import LocalProtocolError, RemoteProtocolError, SessionEndedError
from privstats.secagg import HelperKeys, Leader, Offer, Panel
from privstats.secagg.upload import messages
from privstats.secagg.upload.client import Client
from tests.faults import interrupted
from tests.secagg.upload.cohorts import uploads_of

KEY = bytes(32)
DAY = 24 * 3600


@pytest.fixture
def days(monkeypatch):
    """A clock that a test moves on by days."""
    real, gone = time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: real() + gone[0])
    return lambda number: gone.__setitem__(0, number * DAY)


@pytest.fixture
def run(tmp_path):
    """A run whose panel is in journals; its box keys end after the thirty days that nobody asked for."""
    uploads = uploads_of(helpers=2)
    common = {"parameters": uploads.parameters, "roster": uploads.roster}
    members = uploads.members
    leader = JournaledLeader.offer(tmp_path / "leader", KEY, identity=members[0], **common)
    homes = [tmp_path / f"helper {place}" for place in (1, 2)]
    helpers = [
        JournaledHelper.offer(home, KEY, identity=members[place], place=place, **common)
        for place, home in enumerate(homes, start=1)
    ]
    panel = Panel(tuple(each.public for each in members), (leader.offered, *(each.offered for each in helpers)))
    server = leader.lead(panel, lambda keys: Leader(uploads.parameters, keys=keys, roster=uploads.roster, panel=panel))
    for helper in helpers:
        helper.bind(panel)

    def client(index):
        vector = uploads.parameters.ring.encode(uploads.values[index])
        given = {"index": index, "identity": uploads.identities[index], "roster": uploads.roster, "panel": panel}
        return Client(uploads.parameters, vector, **given)

    def again(place):
        return JournaledHelper.resume(homes[place - 1], KEY, identity=members[place], **common)

    return SimpleNamespace(**locals())


def confirmed(days, number, act):
    """Do something on two days: the first look at the clock destroys nothing."""
    days(number)
    act()
    days(number + 1)
    return act()


def left_in(home):
    return sorted(path.name for path in next(home.iterdir()).iterdir() if path.name not in (".lock", "keys.ends"))


def kept_in(journal):
    return msgspec.msgpack.decode(read_sealed(journal, KEY))


def test_a_helper_that_is_opened_after_400_days_has_no_key_and_answers_no_list(run, days):
    for index in range(6):
        run.server.receive(index, run.client(index).start()[0][1])
    run.server.end_step()
    question = dict(run.server.outbox)[run.helpers[0].index]
    run.helpers[0].close()
    days(400)
    with run.again(1) as helper:
        assert helper.state == "bound"
        with pytest.raises(UnconfirmedEndError, match="set the clock if it is wrong"):
            helper.receive(question)
    days(401)
    helper = run.again(1)
    assert helper.state == "abandoned"
    assert left_in(run.homes[0]) == ["end"]
    with pytest.raises(RemoteProtocolError, match="box key is gone"):
        helper.receive(question)
    said = helper.abandon()[0][1]
    assert messages.is_kind(memoryview(said), messages.Abandoned), "parties are freed by it"


def test_a_helper_that_was_never_closed_answers_nothing_after_its_end(run, days):
    for index in range(6):
        run.server.receive(index, run.client(index).start()[0][1])
    run.server.end_step()
    question = dict(run.server.outbox)[run.helpers[1].index]
    for day, refusal in ((31, "by this machine's clock"), (31.9, "by this machine's clock"), (32, "box key is gone")):
        days(day)
        with pytest.raises((UnconfirmedEndError, RemoteProtocolError), match=refusal):
            run.helpers[1].receive(question)
    assert left_in(run.homes[1]) == ["end"]


def test_a_helper_that_was_cut_short_in_its_answer_ends_as_one_that_gave_none(run, days):
    """The machine has begun to answer and would not abandon; it is given up with its process, and nothing has left."""
    for index in range(6):
        run.server.receive(index, run.client(index).start()[0][1])
    run.server.end_step()
    helper = run.helpers[0]
    for peer, message in run.server.outbox:
        run.server.receive(peer, run.helpers[peer - helper.index].receive(message)[0][1])
    run.server.end_step()
    listed = dict(run.server.outbox)[helper.index]

    with interrupted("privstats.secagg.upload.signed_statements.reveal_statement"):
        helper.receive(listed)
    days(31)
    for call in (lambda: helper.receive(listed), helper.abandon, lambda: helper.bind(run.panel)):
        with pytest.raises(LocalProtocolError, match="was interrupted, so nothing was sent"):
            call()
    helper.close()
    confirmed(days, 31, lambda: run.again(1).close())
    with run.again(1) as helper:
        assert helper.state == "abandoned"
        assert messages.is_kind(memoryview(helper.answer), messages.Abandoned)


def test_a_key_that_no_panel_was_made_of_is_destroyed_too(tmp_path, days):
    run = uploads_of(helpers=2)
    place = {"parameters": run.parameters, "roster": run.roster, "identity": run.members[1]}
    JournaledHelper.offer(tmp_path, KEY, place=1, until=int(time.time()) + DAY, **place).close()
    confirmed(days, 2, lambda: JournaledHelper.resume(tmp_path, KEY, **place).close())
    with JournaledHelper.resume(tmp_path, KEY, **place) as helper:
        assert (helper.state, helper.answer) == ("abandoned", b"")
    assert left_in(tmp_path) == ["end"]


def test_a_helper_that_is_started_after_its_end_has_no_key(run, days):
    assert confirmed(days, 31, run.helpers[0].start) == []
    assert left_in(run.homes[0]) == ["end"]
    with pytest.raises(LocalProtocolError, match="is abandoned, and its box key is gone"):
        _ = run.helpers[0].offered


def test_a_run_within_its_time_ends_in_its_sum(run, days):
    days(29)
    loopback.run(run.server, [*map(run.client, range(6)), *run.helpers])
    total, survivors = run.server.result
    assert survivors == tuple(range(6))
    assert (total.lift() == run.uploads.sum_over(survivors)).all()


def test_a_clock_that_is_40_days_ahead_for_one_message_costs_no_sum(run, days, tmp_path):
    """It destroyed the box keys after all had uploaded: no release, and every spend stayed."""
    for index in range(6):
        run.server.receive(index, run.client(index).start()[0][1])
    run.server.end_step()
    journal = tmp_path / "client"
    with JournaledClient.create(journal, KEY, run.client(0)) as client:
        client.start()
    while run.server.step != "done":
        for peer, message in run.server.outbox:
            helper = run.helpers[peer - run.helpers[0].index]
            days(40)
            with pytest.raises(UnconfirmedEndError, match="set the clock if it is wrong"):
                helper.receive(message)
            forget_answer(journal, KEY)
            assert not run.server.expired
            days(0)
            run.server.receive(peer, helper.receive(message)[0][1])
        run.server.end_step()
    assert run.server.result[1] == tuple(range(6))
    assert kept_in(journal)["state"]


def test_two_wrong_looks_with_a_right_one_between_them_confirm_nothing(tmp_path, days):
    key, until = tmp_path / "key", time.time() + 30 * DAY
    found = []
    for day in (0, 40, 40.5, 1, 60, 60.5, 61):
        days(day)
        found.append(look(until, key))
    assert found == ["before", "seen", "waiting", "before", "seen", "waiting", "passed"]


@pytest.mark.parametrize("note", [b"", b"soon", b"-1", b"9" * 30, b"0"])
def test_a_note_that_is_none_confirms_nothing(tmp_path, days, note):
    (tmp_path / "key.ends").write_bytes(note)
    until = time.time()
    days(2)
    assert look(until, tmp_path / "key") == "seen"


def test_a_client_seals_nothing_to_a_panel_that_has_ended(run, days):
    early = run.client(0)
    days(31)
    for late in (early.start, lambda: run.client(1)):
        with pytest.raises(LocalProtocolError, match="the box keys of this run have expired"):
            late()
    assert (early.upload, early.receipt) == (b"", b"")


def test_a_panel_names_whose_key_has_ended(tmp_path, days):
    """A helper that began 40 days behind; the parties' clocks are right."""
    run = uploads_of(helpers=2)
    common = {"parameters": run.parameters, "roster": run.roster}
    leader = JournaledLeader.offer(tmp_path / "leader", KEY, identity=run.members[0], **common).offered
    right = JournaledHelper.offer(tmp_path / "1", KEY, identity=run.members[1], place=1, **common).offered
    days(-40)
    late = JournaledHelper.offer(tmp_path / "2", KEY, identity=run.members[2], place=2, **common).offered
    days(0)
    panel = Panel(tuple(each.public for each in run.members), (leader, right, late))
    with pytest.raises(LocalProtocolError, match=r"others have not \(helper 2's on 20.*holders' clocks were behind"):
        panel.require_open()
    with pytest.raises(LocalProtocolError, match=r"^helper 2's box key ends on 20.*one of both clocks was wrong"):
        panel.require_lasting(DAY)
    days(-41)
    panel.require_open()
    panel.require_lasting(DAY)
    days(31)
    with pytest.raises(LocalProtocolError, match="set this machine's clock if it is ahead"):
        panel.require_open()


def test_a_report_that_nobody_opens_any_more_is_removed(run, days, tmp_path):
    journal, place = tmp_path / "client", {"index": 0, "identity": run.uploads.identities[0], **run.common}
    with JournaledClient.create(journal, KEY, run.client(0)) as client:
        ((_, report),) = client.start()
    with JournaledClient.resume(journal, KEY, **place) as client:
        assert client.answer == report
        receipt = client.receipt
    confirmed(days, 31, lambda: forget_answer(journal, KEY))
    with pytest.raises(SessionEndedError):
        JournaledClient.resume(journal, KEY, **place)
    left = kept_in(journal)
    assert left.pop("mark").keys() == {"count"}
    assert left == {"state": b"", "receipt": receipt}, "which upload it was may still be proved"


def test_old_reports_and_keys_are_removed_by_whoever_opens_the_folder(run, days, tmp_path):
    """The folder is of another run by now, so nobody can resume the old ones."""
    journal = tmp_path / "client"
    with JournaledClient.create(journal, KEY, run.client(0)) as client:
        client.start()
    (home,) = run.homes[0].iterdir()
    run.helpers[0].close()
    forget_answer(journal, KEY)
    forget_ended(home, KEY)
    assert kept_in(journal)["state"], "it may have to be sent again"
    assert left_in(run.homes[0]) == ["keys", "log", "sealing"]
    days(31)
    forget_answer(journal, KEY)
    with pytest.raises(UnconfirmedEndError):
        forget_ended(home, KEY)
    assert kept_in(journal)["state"], "the clock may be wrong"
    assert left_in(run.homes[0]) == ["keys", "log", "sealing"]
    days(32)
    forget_answer(journal, KEY)
    assert forget_ended(home, KEY) == "this run is over: its box key has ended and is destroyed"
    assert forget_ended(home, KEY) == ""
    assert set(kept_in(journal)) == {"state", "receipt", "mark"}
    assert kept_in(journal)["state"] == b""
    assert left_in(run.homes[0]) == ["end"]
    with run.again(1) as helper:
        assert (helper.state, helper.answer) == ("abandoned", b"")
    with pytest.raises(LocalProtocolError, match="knows this run"):
        JournaledHelper.offer(run.homes[0], KEY, identity=run.members[1], place=1, **run.common)


def test_a_leaders_run_that_can_have_no_sum_any_more_is_given_up(run, days):
    run.server.receive(0, run.client(0).start()[0][1])
    path = run.server._directory
    run.server.close()
    resume = partial(JournaledServer.resume, path, KEY, identity=run.members[0], **run.common)
    confirmed(days, 31, lambda: resume().close())
    with resume() as server:
        assert server.step == "failed"


def test_a_leaders_key_that_never_led_is_destroyed(tmp_path, days):
    run = uploads_of(helpers=2)
    place = {"parameters": run.parameters, "roster": run.roster, "identity": run.members[0]}
    JournaledLeader.offer(tmp_path, KEY, **place).close()
    days(31)
    with pytest.raises(UnconfirmedEndError):
        JournaledLeader.resume(tmp_path, KEY, **place)
    days(32)
    for _ in range(2):
        with pytest.raises(SessionEndedError, match="has ended before the run was led; name another run"):
            JournaledLeader.resume(tmp_path, KEY, **place)
    assert left_in(tmp_path) == ["end"]
    with pytest.raises(LocalProtocolError, match="knows this run"):
        JournaledLeader.offer(tmp_path, KEY, **place)


@pytest.mark.parametrize("until", [0, -1, 1.5, True, "tomorrow", 1 << 63])
def test_an_end_that_is_none_or_has_passed_is_refused(tmp_path, until):
    run = uploads_of(helpers=2)
    place = {"parameters": run.parameters, "roster": run.roster}
    for offer in (
        lambda: HelperKeys(run.members[1], 1, *place.values(), until=until),
        lambda: JournaledHelper.offer(tmp_path, KEY, identity=run.members[1], place=1, until=until, **place),
        lambda: JournaledLeader.offer(tmp_path, KEY, identity=run.members[0], until=until, **place),
    ):
        with pytest.raises(LocalProtocolError, match="until must be an integer number of seconds since 1970"):
            offer()
    assert list(tmp_path.iterdir()) == []


def test_an_offer_without_its_end_is_refused_and_an_end_cannot_be_changed(run):
    offer = run.panel.offers[1]
    with pytest.raises(LocalProtocolError, match="an offer has 1,321 bytes"):
        Offer.decode(offer.encode()[:-72] + offer.encode()[-64:])
    later = Offer(offer.place, offer.identity, offer.box_key, offer.until + 1, offer.signature)
    forged = Panel(run.panel.identities, (run.panel.offers[0], later, run.panel.offers[2]))
    with pytest.raises(LocalProtocolError, match="offer for place 1 is not signed for this plan and this run"):
        forged.context(run.uploads.parameters, run.uploads.roster)
