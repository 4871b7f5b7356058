"""A party remembers the list of an alignment's first sum, and is in no round over another one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.alignment import Alignment
from privstats.engines.network import folder
from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.round_host import Ended, Waiting
from privstats.engines.network.transport import Reply
from privstats.errors import LocalProtocolError
from privstats.schema.public_values import Published, Values, values_path
from privstats.secagg import Roster
from tests import made
from tests.engines.network.fake import FolderNet, Study, study_of
from tests.faults import Killed

NINE = tuple(f"clinic {place}" for place in range(9))
SCHEMA = ps.GaussianSchema(3, 4.0, shrinkage=0.1, rounds=1)
FIRST = {"schema": SCHEMA, "cohort": ps.Cohort(9, 8, 600)}


SERVER = b"s" * 32
PEOPLE = tuple(bytes([place]) * 32 for place in range(1, 10))
ROSTER = Roster(PEOPLE, server=SERVER, run=b"first")


def first_sum(place: Path) -> tuple[FolderNet, Ended]:
    """The first sum of an alignment, as a session of its own."""
    study = study_of(place, names=NINE, **FIRST)
    for peer in range(9):
        script = study.home(peer) / "records.py"
        script.write_text(
            "allow_second_exact_release = True\n" + script.read_text().replace('data["X"], data["y"]', 'data["X"]')
        )
    for home in (study.host, *(study.home(peer) for peer in range(9))):  # as `privstats course init` writes it
        (home / "plan.toml").write_text(Alignment(study.plan).next([]).to_toml())
    net = FolderNet(study)
    return net, net.run()  # type: ignore[return-value]


def next_round(study: Study, releases: list[Any], **schema: Any) -> FolderNet:
    """The folders of the round that follows, under the next run name."""
    plan = Alignment(study.plan).next(releases)
    plan = replace(plan, schema=replace(plan.schema, **schema)).at(plan.position)
    (study.host / "release.safetensors").rename(study.host / "first.safetensors")
    for home in (study.host, *(study.home(peer) for peer in range(9))):
        plan.published.save(values_path(home / "plan.toml"))
        (home / "plan.toml").write_text(plan.to_toml())
    return FolderNet(study.renewed())


@pytest.mark.ci
def test_a_round_over_the_clients_of_the_first_sum_is_released(tmp_path: Path) -> None:
    net, found = first_sum(tmp_path)
    assert isinstance(found, Ended), (net.lines, net.logs)
    ended = next_round(net.study, list(found.releases)).run()
    course = Alignment(net.study.plan)
    assert [each.position for each in (*found.releases, *ended.releases)] == [
        course.position([]),
        course.position([True]),
    ]
    assert ended.releases[0].survivors == tuple(range(9))


@pytest.mark.ci
def test_attack_a_server_names_other_clients_in_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sums whose lists differ by one client are that client; who forgets the first list is in both."""
    net, found = first_sum(tmp_path)
    others = tuple(range(8))
    lie = next_round(net.study, list(found.releases), among=others)
    refused = lie.run()
    assert isinstance(refused, Waiting)
    assert "0 of 9 answered" in refused.sentence
    assert any("over other clients than the earlier sum" in line for line in lie.logs[100])
    assert "party 0 refuses a round that does not follow" in "\n".join(lie.lines)
    with monkeypatch.context() as forgetful:
        forgetful.setattr(RoundFolder, "agreed", others)
        lie.nodes = lie.nodes[:8]
        ended = lie.run()
    assert ended.releases[0].survivors == others


def test_attack_a_round_under_a_roster_with_two_clients_in_each_others_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same places are then other clients: with the one that it has moved in, a server has the other one's part."""
    plan, swapped = made.plan(**FIRST), Roster((*PEOPLE[1::-1], *PEOPLE[2:]), server=SERVER, run=b"second")
    following = replace(
        plan,
        schema=replace(SCHEMA, reference=True, among=tuple(range(8))),
        published=Published.of({"S": Values.rounded(np.eye(3), 48)}, bytes(32)),
    )
    folder.keep_signed_list(tmp_path, plan, ROSTER, tuple(range(8)))
    assert folder.signed_list(tmp_path, following, ROSTER) == tuple(range(8))
    assert folder.signed_list(tmp_path, following, swapped) is None
    monkeypatch.setattr(folder, "_list_name", lambda first, _: first.digest)  # a party that looks at places alone
    folder.keep_signed_list(tmp_path, plan, ROSTER, tuple(range(8)))
    assert folder.signed_list(tmp_path, following, swapped) == tuple(range(8))


@pytest.mark.ci
def test_a_party_killed_before_it_wrote_the_list_down_writes_it_when_it_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal has the list beside its last answer."""
    killed: list[int] = []
    real = folder.keep_signed_list

    def keep(home: Path, *rest: Any) -> None:
        if home.name == "party 3" and not killed:
            killed.append(3)
            raise Killed
        real(home, *rest)

    answer = FolderNet.answer

    def dying(self: FolderNet, node: int, kind: str, data: bytes) -> Reply:
        try:
            return answer(self, node, kind, data)
        except Killed:
            return Reply("error:8")

    monkeypatch.setattr(folder, "keep_signed_list", keep)
    monkeypatch.setattr(FolderNet, "answer", dying)
    net, found = first_sum(tmp_path)
    assert killed == [3]
    ended = next_round(net.study, list(found.releases)).run()
    assert 3 in ended.releases[0].survivors


def test_a_first_list_stays_and_other_plans_have_none(tmp_path: Path) -> None:
    plan = made.plan(**FIRST)
    plain = made.plan(ps.ClassSchema(2, 3, "NA", 1.0), FIRST["cohort"])
    folder.keep_signed_list(tmp_path, plain, ROSTER, (0, 1))
    assert folder.signed_list(tmp_path, plain, ROSTER) is None
    assert not (tmp_path / "agreed").exists()
    folder.keep_signed_list(tmp_path, plan, ROSTER, tuple(range(9)))
    folder.keep_signed_list(tmp_path, plan, ROSTER.renewed(), tuple(range(8)))
    moments = [ps.measure(SCHEMA, np.random.default_rng(k).normal(size=(20, 3))) for k in range(9)]
    course = Alignment(plan)
    first = ps.session.aggregate_unmasked(course.next([]), moments)
    following = course.next([first])
    assert following is not None
    assert folder.signed_list(tmp_path, following, ROSTER.renewed()) == tuple(range(9))
    for damaged in (b"{", b'{"\xff": []}'):
        (tmp_path / "agreed").write_bytes(damaged)
        with pytest.raises(LocalProtocolError, match="is damaged: bring it back"):
            folder.signed_list(tmp_path, following, ROSTER)
