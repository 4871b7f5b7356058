"""The published values of a course between machines: each is sent once, and what a party lacks it asks for by name."""

import json
import struct
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.engines.network.folder import Folder
from privstats.engines.network.host import Host
from privstats.engines.network.round_transport import OutgoingAnnouncement
from privstats.engines.network.statements import Envelope, RoundAnnouncement
from privstats.errors import PlanError
from privstats.schema.public_values import Published, Values
from privstats.secagg import Identity
from tests.course.cases import CLIENTS, RIDGE, SOFTMAX, parties_plan
from tests.engines.network.courses.study import CourseStudy, Desk, course_study
from tests.engines.network.fake import FolderNet

ALL = set(range(CLIENTS))


def told(net: FolderNet, tmp_path: Path) -> dict[tuple[int, int], list[set[str]]]:
    """The names of the values in every announcement that was sent, by round and party."""
    found: dict[tuple[int, int], list[set[str]]] = {}
    for node, data in net.whole:
        envelope = Envelope.decode(data)
        if envelope.signed is not None:
            (tmp_path / "came").write_bytes(envelope.signed.values)
            names = set(Published.load(tmp_path / "came").read()) if envelope.signed.values else set()
            found.setdefault((envelope.place, node - 100), []).append(names)
    return found


def values_of(home: Path, place: int) -> Path:
    return home / "nodes" / str(place) / "plan.values"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("schema", "weights"),
    [pytest.param(SOFTMAX, {"W"}, id="class"), pytest.param(RIDGE, {"w", "c"}, id="ridge", marks=pytest.mark.nightly)],
)
def test_the_map_is_sent_once_in_a_course_and_the_head_is_that_of_the_releases(
    schema: Any, weights: set[str], tmp_path: Path
) -> None:
    study = course_study(tmp_path, schema=schema)
    net = FolderNet(study)
    found = net.ended().releases
    sent = told(net, tmp_path)
    for peer in ALL:
        assert [sent[place, peer] for place in range(3)] == [[set()], [{"M"} | weights], [weights]]
    host = Host.open(study.host).folder
    for place in (1, 2):
        whole = host.values(place)
        assert whole.keys() == {"M"} | weights
        assert np.array_equal(whole["M"].integers, host.values(1)["M"].integers)
        assert all(Folder.open(study.home(peer)).values(place) == whole for peer in ALL)
        assert study.course.next(found[:place]).published == host.plan(place).published
    assert not any(net.logs.values())


@pytest.mark.ci
def test_two_rounds_of_parties_are_run_and_charged_between_machines(tmp_path: Path) -> None:
    course = ps.PartyRounds.within(parties_plan(model="distributed"))
    study = course_study(tmp_path, course)
    net = FolderNet(study)
    found = net.ended().releases
    sent = told(net, tmp_path)
    for peer in ALL:
        assert [sent[place, peer] for place in range(2)] == [[set()], [{"W"}]]
        assert study.account(peer).mu == pytest.approx(course.mu)
    assert course.next(found[:1]).published == Host.open(study.host).folder.plan(1).published
    assert ps.heads.PartyDiscriminant().fit_release(found).provenance_.epsilon == pytest.approx(4.0, rel=1e-6)
    assert not any(net.logs.values())


@pytest.mark.nightly
def test_one_that_answers_again_in_a_round_is_sent_no_values_again(tmp_path: Path) -> None:
    """A helper, and a client of a panel, are told of a round with each of several first messages."""
    study = course_study(tmp_path, helpers=2)
    net = FolderNet(study)
    net.ended()
    sent = told(net, tmp_path)
    for peer in range(CLIENTS + 2):
        assert len(sent[2, peer]) > 1
        assert [names for names in sent[1, peer] if names] == [{"M", "W"}]
        assert [names for names in sent[2, peer] if names] == [{"W"}]
    assert not any(net.logs.values())


def two_rounds(place: Path) -> CourseStudy:
    """A course of which two rounds are released, and the third is open: nobody has come to it."""
    study = course_study(place)
    net = FolderNet(study)

    def meanwhile(node: int, kind: str) -> None:
        if net.envelope.place == 1 and kind == "over":
            net.goes = {100 + peer: 0.0 for peer in ALL}

    net.meanwhile = meanwhile
    net.run()
    return study


@pytest.fixture(scope="module")
def under_way(tmp_path_factory: pytest.TempPathFactory) -> CourseStudy:
    return two_rounds(tmp_path_factory.mktemp("under way"))


def admitted(desk: Desk) -> bool:
    return 2 in Folder.open(desk.home).rounds


@pytest.mark.ci
def test_a_party_without_the_named_map_asks_for_it_and_takes_part_in_nothing_before(desk: Desk) -> None:
    values_of(desk.home, 1).unlink()
    assert desk.ask(desk.outgoing(2).signed(whole=False), 2) == "behind"
    assert desk.lines == ["the published M of round 2 is not here; the server sends it again"]
    assert not admitted(desk)
    assert desk.ask(desk.outgoing(2).signed(whole=True), 2) == "ok"
    assert Folder.open(desk.home).values(2) == desk.host.folder.values(2)


@pytest.mark.ci
def test_a_party_whose_map_is_damaged_or_another_takes_part_in_nothing(desk: Desk) -> None:
    held = values_of(desk.home, 1)
    other = dict(Published.load(held).read())
    Published.of(other | {"M": Values(other["M"].integers + 1, other["M"].exponent)}).save(held)
    with pytest.raises(PlanError, match="these values do not match the plan's digest"):
        desk.ask(desk.outgoing(2).signed(whole=True), 2)
    held.write_bytes(held.read_bytes()[:-3])
    with pytest.raises(PlanError, match="plan.values is damaged"):
        desk.ask(desk.outgoing(2).signed(whole=True), 2)
    assert not admitted(desk)


def test_a_server_that_never_sends_the_map_gets_no_answer(desk: Desk) -> None:
    values_of(desk.home, 1).unlink()
    bare = replace(desk.outgoing(2), values=desk.outgoing(2).fresh)
    assert [desk.ask(bare.signed(whole=whole), 2) for whole in (False, True, True)] == ["behind"] * 3
    assert not admitted(desk)


def test_another_map_than_the_server_signed_is_refused_whoever_brings_it(desk: Desk) -> None:
    outgoing = desk.outgoing(2)
    values = dict(desk.host.folder.values(2))
    other = {**values, "M": Values(values["M"].integers + 1, values["M"].exponent)}
    assert desk.ask(replace(outgoing, values=Published.of(other).encode()).signed(whole=True), 2) == "damaged"
    assert desk.lines[-1] == "the published values are not those that the server signed"
    more = Published.of({**values, "more": values["W"]}).encode()
    assert desk.ask(replace(outgoing, values=more).signed(whole=True), 2) == "damaged"
    digests = {name: value.digest for name, value in other.items()}  # signed, and not what the plan names
    lie = replace(desk.outgoing(2, values=digests), values=Published.of(other).encode())
    assert desk.ask(lie.signed(whole=True), 2) == "not_next"
    assert not admitted(desk)


def first_version(path: Path) -> None:
    """Write a file of values anew as version 1 had it: every entry in 8 bytes."""
    from safetensors.numpy import save

    from privstats.files.envelope import Content
    from privstats.schema.published_file import FORMAT

    published = Published.load(path)
    exponents = {name: value.exponent for name, value in published.read().items()}
    manifest = json.dumps({"after": published.after, "exponents": exponents})
    tensors = {name: value.integers for name, value in published.read().items()}
    sealed = FORMAT.readers[1].sealed(Content(manifest.encode(), tensors))
    header = {"format": FORMAT.name, "version": "1", "manifest": manifest, "sha256": sha256(sealed).hexdigest()}
    path.write_bytes(save(tensors, metadata=header))
    (size,) = struct.unpack("<Q", path.read_bytes()[:8])
    assert b'"version":"1"' in path.read_bytes()[: 8 + size]


@pytest.mark.ci
def test_a_course_that_an_earlier_version_began_goes_on_and_who_lost_the_map_is_sent_it(tmp_path: Path) -> None:
    """Its folders hold values of version 1; their digests, and the plans', are the same."""
    study = two_rounds(tmp_path)
    for home in (study.host, *map(study.home, ALL)):
        first_version(values_of(home, 1))
    first_version(values_of(study.host, 2))
    for peer in (0, 3):
        values_of(study.home(peer), 1).unlink()
    net = FolderNet(study)
    assert net.ended().releases[2].survivors == tuple(ALL)  # type: ignore[union-attr]
    sent = told(net, tmp_path)
    whole = [{"W"}, {"M", "W"}]
    assert {peer: sent[2, peer] for peer in ALL} == {peer: whole if peer in (0, 3) else whole[:1] for peer in ALL}
    assert "lacks" not in "".join(net.lines)


def test_the_bytes_of_an_announcement_are_these() -> None:
    """A frozen vector: another form of these bytes is another version, with another label and kind of message."""
    value = Values(np.array([[3, -4], [-4, 7]]), 2)
    announcement = RoundAnnouncement(
        course=b"c" * 32, roster=b"r" * 32, place=1, plan="plan", values={"M": value.digest}, outcomes=(b"o" * 32,)
    )
    outgoing = OutgoingAnnouncement(announcement, Identity(b"\x07" * 32), b"values", b"", {0: b"release"})
    assert value.digest.hex() == "2463ef5fc239983fb47e133a675367b11fc772740fef2d0a75d75d7ee7e5e1a4"
    wire = {
        "whole": Envelope(1, "open", b"data", outgoing.signed(whole=True)),
        "fresh": Envelope(1, "open", b"data", outgoing.signed(whole=False)),
        "repeated": Envelope(1, "helper", b"data", outgoing.repeated()),
    }
    assert {name: sha256(each.encode()).hexdigest()[:32] for name, each in wire.items()} == {
        "whole": "0f6dd05a47b73bc9c3b1d9ad6d24a810",
        "fresh": "c884449d2c94c42c2d723b25599c2ce2",
        "repeated": "74cf547ae7aa34838808841820a6c188",
    }
