"""What a party admits of a course, what it refuses by name, and what it keeps of it."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.course import iter_rounds
from privstats.dp import Ledger
from privstats.engines.journal import expiry
from privstats.engines.network.folder import Folder
from privstats.engines.network.party import RETAIN_SECONDS, Party
from privstats.engines.network.round_host import Ended, Waiting
from privstats.engines.network.statements import Envelope, SignedAnnouncement
from privstats.engines.network.transport import OK
from privstats.errors import LedgerError
from privstats.schema.public_values import Published, Values, values_path
from privstats.secagg import Identity
from tests.course.cases import CLIENTS
from tests.engines.network.courses.study import DATASET, CourseStudy, Desk, another_weight, course_study
from tests.engines.network.fake import FolderNet
from tests.made import unnamed


def lying(monkeypatch: pytest.MonkeyPatch, change: Callable[[ps.Plan], ps.Plan], at: int = 1) -> None:
    """A server whose course leads it elsewhere at one round; it signs what it sends, and its own checks are off."""
    real = Folder.store

    def keep(folder: Folder, place: int, plan: ps.Plan) -> Any:
        return real(folder, place, change(plan) if place == at and folder.home.name == "host" else plan)

    monkeypatch.setattr(Folder, "store", keep)


@pytest.mark.ci
def test_a_server_that_sends_another_weight_is_refused_by_each_party_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = course_study(tmp_path)
    lying(monkeypatch, another_weight)
    net = FolderNet(study)
    found = net.run()
    assert isinstance(found, Waiting)
    assert found.sentence.startswith(
        "course, round 1: step advertise: 0 of 5 answered, the plan needs 4; missing: 0 (Aachen)"
    )
    refused = [line for line in net.lines if "refuses a round" in line]
    assert refused == [
        f"course, round 1: party {peer} refuses a round that does not follow from the course and its releases: its "
        "operator has the reason"
        for peer in range(CLIENTS)
    ]
    for peer in range(CLIENTS):
        assert "the plan that came for round 1 is not the one that follows from the course" in net.logs[100 + peer][-1]
        assert study.account(peer).entries[0].begun == (0,)


@pytest.mark.ci
def test_a_party_that_does_not_work_the_plan_out_would_take_part_at_any_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weakened double: the check is what refuses, and nothing else on the way would."""
    study = course_study(tmp_path)
    lying(monkeypatch, another_weight)
    monkeypatch.setattr("privstats.engines.network.party.verify_next", lambda *_: None)
    monkeypatch.setattr("privstats.engines.network.host.iter_rounds", two_nodes)
    found = FolderNet(study).ended()
    assert all(release is not None for release in found.releases)
    assert all(study.account(peer).entries[0].begun == (0, 1) for peer in range(CLIENTS))


def two_nodes(course: Any, releases: list[Any]) -> Any:
    for round_ in iter_rounds(course, releases):
        if round_.place == 2:
            return
        yield round_


@pytest.fixture(scope="module")
def under_way(tmp_path_factory: pytest.TempPathFactory) -> CourseStudy:
    """A course whose first round is released without our party, and whose second has a plan."""
    study = course_study(tmp_path_factory.mktemp("under way"))
    net = FolderNet(study)
    net.goes = {100: 0.0}

    def meanwhile(node: int, kind: str) -> None:
        if net.envelope.place == 1:
            net.goes = {100 + peer: 0.0 for peer in range(CLIENTS)}

    net.meanwhile = meanwhile
    assert isinstance(net.run(), Waiting)
    return study


def test_a_round_is_admitted_with_what_was_released_before_it(desk: Desk) -> None:
    outgoing = desk.outgoing(1)
    assert desk.ask(outgoing.signed(whole=False), 1) == OK
    folder = Folder.open(desk.home)
    assert folder.rounds == (1,)
    assert folder.release(0) == desk.host.folder.release(0)
    assert folder.round(1).plan == desk.host.folder.round(1).plan
    assert desk.lines == []
    assert sorted(path.name for path in folder.path(1).iterdir()) == ["plan.toml", "plan.values"]
    assert {path.stat().st_mode & 0o77 for path in folder.home.rglob("*") if "nodes" in path.parts} == {0}


def test_a_party_that_lacks_releases_says_so_and_is_sent_all(desk: Desk) -> None:
    outgoing = desk.outgoing(1)
    bare = SignedAnnouncement.of(outgoing.announcement, outgoing.identity, outgoing.values, {})
    assert desk.ask(bare, 1) == "behind"
    forged = SignedAnnouncement.of(outgoing.announcement, outgoing.identity, outgoing.values, {0: b"another"})
    assert desk.ask(forged, 1) == "behind"
    assert desk.ask(outgoing.signed(whole=True), 1) == OK


def test_a_second_plan_for_a_round_is_refused_though_it_follows_from_what_is_shown_now(desk: Desk) -> None:
    """Two releases that a server has made up, and both lead to plans that follow: the first is kept to."""
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == OK
    shown = desk.host.folder.release(0)
    made_up = replace(shown, vector=shown.vector + 1)
    path = desk.study.host / "nodes" / "0" / "release.safetensors"
    made_up.save(path, signer=desk.study.server)
    plan = desk.study.course.next([made_up])
    second = desk.study.host / "nodes" / "1" / "plan.toml"
    plan.published.save(values_path(second))
    second.write_text(plan.to_toml())
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == "not_next"
    assert desk.lines[-1].startswith("the server showed another release of round 0 before; compare")
    desk.home = desk.study.home(1)  # took part in round 0, and has been shown nothing of it
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == "not_next"


def test_a_second_plan_that_follows_within_rounding_is_refused_too(desk: Desk) -> None:
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == OK
    plan = desk.host.folder.round(1).plan
    values = dict(plan.published.read())
    weights = values["W"].integers.copy()
    weights[0, 0] += 1
    values["W"] = Values(weights, values["W"].exponent)
    other = replace(plan, published=Published.of(values, bytes.fromhex(plan.published.after)))
    second = desk.study.host / "nodes" / "1" / "plan.toml"
    other.published.save(values_path(second))  # type: ignore[union-attr]
    second.write_text(other.to_toml())
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == "not_next"
    assert desk.lines[-1].startswith("the server sent another plan for round 1 before; compare")


@pytest.mark.ci
def test_a_release_of_another_plan_than_the_rounds_is_refused(tmp_path: Path) -> None:
    desk = Desk(course_study(tmp_path))
    net = FolderNet(desk.study)
    assert isinstance(net.run(), Ended)
    desk.home = desk.study.home(0)
    (Folder.open(desk.home).path(1) / "release.safetensors").unlink()
    folder = Folder.open(desk.home)
    (folder.path(2) / "plan.toml").unlink()
    other = replace(folder.round(1).plan, cohort=ps.Cohort(CLIENTS, 3, 600))
    (folder.path(1) / "plan.toml").write_text(other.to_toml())
    assert desk.ask(desk.outgoing(2).signed(whole=True), 2) == "not_next"
    assert desk.lines[-1].startswith("the release shown for round 1 is of another plan; compare")


def test_a_release_that_the_server_on_the_roster_did_not_sign_is_refused(desk: Desk) -> None:
    release = desk.host.folder.release(0)
    release.save(desk.study.host / "nodes" / "0" / "release.safetensors", signer=Identity(b"\x05" * 32))
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == "not_next"
    assert "sign" in desk.lines[-1]
    assert not Folder.open(desk.home).has_outcome(0)


def test_attack_a_release_that_names_another_session_is_refused(desk: Desk) -> None:
    """Signed by the server itself, whose other study has the same plans."""
    release = desk.host.folder.release(0)
    assert release is not None
    own = release.position
    assert own is not None
    for position in (
        None,
        replace(own, course="c0" * 32),
        replace(own, phase="round"),
        replace(own, place=1),
        replace(own, mu=own.mu * 0.99),
        replace(own, spent=own.mu),
    ):
        wrong = unnamed(release).at(position)
        wrong.save(desk.study.host / "nodes" / "0" / "release.safetensors", signer=desk.study.server)
        assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == "not_next"
        assert f"the release of round 0 names {position or 'no course'}, and not session" in desk.lines[-1]
        assert not Folder.open(desk.home).has_outcome(0)


def test_a_round_without_a_sum_stays_one(desk: Desk) -> None:
    """Who has heard that a round had no sum is not shown one afterwards."""
    nothing = desk.outgoing(1, outcomes=(b"",))
    assert desk.ask(nothing.signed(whole=False), 1) == "not_next"  # the course ends without its first release
    assert "the course has ended" in desk.lines[-1]
    assert Folder.open(desk.home).outcome_bytes(0) is None
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == "not_next"
    assert "showed another release of round 0 before" in desk.lines[-1]


@pytest.mark.parametrize(
    ("field", "value", "code", "said"),
    [
        ("course", b"c" * 32, "wrong_course", "the server runs another course \\(63636363...\\), ours is"),
        ("roster", b"r" * 32, "wrong_roster", "the server runs another roster \\(72727272...\\), ours is"),
        ("place", 2, "damaged", "the course has no round 1 with this announcement"),
        ("outcomes", (b"", b""), "damaged", "the course has no round 1 with this announcement"),
        ("plan", "[plan", "not_next", "TOML"),
        ("values", {"M": b"v" * 32}, "damaged", "the published values are not those that the server signed"),
    ],
)
def test_what_is_no_round_of_this_course_is_refused(desk: Desk, field: str, value: Any, code: str, said: str) -> None:
    assert desk.ask(desk.outgoing(1, **{field: value}).signed(whole=True), 1) == code
    assert re.search(said, desk.lines[-1]), desk.lines


def test_values_that_are_none_are_refused(desk: Desk) -> None:
    outgoing = replace(desk.outgoing(1), values=b"none")
    assert desk.ask(outgoing.signed(whole=True), 1) == "not_next"
    missing = replace(desk.outgoing(1, values={}), values=b"")
    assert desk.ask(missing.signed(whole=True), 1) == "not_next"
    assert Folder.open(desk.home).rounds == ()


def test_a_round_past_the_end_of_the_course_is_none(desk: Desk) -> None:
    outgoing = desk.outgoing(1, place=3, outcomes=(b"",) * 3)
    envelope = Envelope(3, "hello", bytes(64), outgoing.signed(whole=True))
    assert desk.tell("round", envelope.encode()) == "damaged"


def test_what_the_server_did_not_sign_is_not_looked_at(desk: Desk) -> None:
    outgoing = replace(desk.outgoing(1), identity=Identity(b"\x05" * 32))
    assert desk.ask(outgoing.signed(whole=True), 1) == "damaged"
    assert desk.lines == ["the server on the roster did not sign this announcement of a round with these values"]
    good = desk.outgoing(1).signed(whole=True)
    flipped = SignedAnnouncement(good.announcement, good.signature, good.values[:-1] + b"\0", good.releases)
    assert desk.ask(flipped, 1) == "damaged"  # on its way: the server is asked again, and accused of nothing
    said = desk.study.server.sign(_said(b"\xc1", good.values))
    garbled = SignedAnnouncement(b"\xc1", said, good.values, good.releases)
    assert desk.ask(garbled, 1) == "damaged"
    assert desk.lines[-1].startswith("what the server signed is no round of a course")
    for data in (b"", b"\xc1", b"\x93\x00\x00\x00", good.announcement):
        assert desk.tell("round", data) == "damaged"


def _said(announcement: bytes, values: bytes) -> bytes:
    return b"privstats/flower/2/brief\0" + sha256(announcement).digest() + sha256(values).digest()


def test_messages_of_a_session_without_a_round(desk: Desk) -> None:
    assert desk.ask(None, 1, "hello") == "damaged"
    assert desk.ask(None, 1, "step", b"x") == "lost"
    assert desk.lines[-1] == "party 0/nodes/1 is gone, or never announced here"
    assert desk.tell("open", b"") == "version"
    assert desk.lines[-1].startswith("the server speaks another version")
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1) == OK
    assert desk.ask(None, 1, "step", b"x") == "lost"


def test_a_round_that_was_marked_and_lost_is_sat_out_by_name(desk: Desk) -> None:
    """Killed between mark and noise: the party says so, and is in the next round."""
    folder = Folder.open(desk.home)
    folder.ledger.mark_started(folder.entry(DATASET), 1)
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1, "open") == "begun"
    assert desk.lines[-1] == "round 1 was begun here and cut short before it was on disk: it is lost"
    assert desk.ask(desk.outgoing(1).signed(whole=True), 1, "hello") == OK


def test_two_courses_under_one_cap_are_two_spends_and_the_second_is_refused(tmp_path: Path) -> None:
    desk = Desk(course_study(tmp_path))
    folder = Folder.open(desk.home)
    folder.entry(DATASET)
    assert folder.entry(DATASET) == folder.entry(DATASET)
    after = replace(folder, roster=folder.roster.renewed())
    with pytest.raises(LedgerError, match="would reach epsilon"):
        after.entry(DATASET)
    skipped = replace(folder, roster=folder.roster.renewed().renewed().renewed())
    with pytest.raises(LedgerError, match="the next run of these parties is number"):
        skipped.entry(DATASET)


def test_what_check_and_join_do_before_anything_is_sent_spends_nothing(tmp_path: Path) -> None:
    desk = Desk(course_study(tmp_path))
    party = Party.open(desk.home, desk.lines.append)
    records = party.prepare(anew=True)
    assert records.dataset == DATASET
    assert records.moments.records == len(desk.study.shards[0][1])
    assert desk.study.account(0).entries == ()


@pytest.mark.ci
def test_last_answers_are_given_up_with_the_next_round_and_after_a_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = course_study(tmp_path)
    net = FolderNet(study)
    net.dropped = {"over"}
    net.ended()
    kept = {place: size(study, place) for place in range(3)}
    assert kept[0] == kept[1] < kept[2]
    (last,) = [path for path in (study.home(0) / "nodes" / "2" / "sessions").iterdir() if not path.suffix]
    os.utime(last, (0, time.time() - RETAIN_SECONDS - 60))
    monkeypatch.setattr(expiry, "CONFIRMING_SECONDS", 0)
    Party.open(study.home(0))
    assert size(study, 2) == kept[2], "the first look removes nothing"
    Party.open(study.home(0))
    assert size(study, 2) <= kept[0] < kept[2]


def size(study: CourseStudy, place: int) -> int:
    (journal,) = [path for path in (study.home(0) / "nodes" / str(place) / "sessions").iterdir() if not path.suffix]
    return journal.stat().st_size


def test_the_ledger_of_a_party_needs_an_account(tmp_path: Path) -> None:
    desk = Desk(course_study(tmp_path))
    for name in ("ledger", "ledger.head"):
        (desk.home / name).unlink()
    Ledger.create(desk.home / "ledger")
    desk.host.folder.store(0, desk.study.course.first)
    assert desk.ask(desk.outgoing(0).signed(whole=True), 0, "open") == "ledger"
    assert f"`privstats ledger cap '{desk.home}/ledger' DATASET --unit record --adjacency" in desk.lines[-1]
