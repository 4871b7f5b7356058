"""What every journal promises, whose ever it is: each role does the one act that must not be done twice.

How a kill at every single wait for the disk ends is in ``test_journal_kills``; what one role alone promises is in the
files beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.secagg import Server
from privstats.secagg.upload.leader import Leader
from tests.engines.test_journal_uploads import KEY, Journals
from tests.faults import full_disk, interrupted
from tests.secagg.interactive.cohorts import cohort_of, play_until
from tests.secagg.upload.cohorts import batch_of, list_of, uploads_of


@dataclass
class Role:
    """A journal that stands before its act: how it is opened, and what leaves when it acts."""

    open: Callable[..., Any]
    act: Callable[[Any], bytes]


def released(server: Any) -> bytes:
    """The sum of a server that has everything that it waits for."""
    if server.step != "done":
        server.end_step()
    return server.result[0].pack()


def resumed(kind: Any, path: Path, place: dict[str, Any]) -> Callable[..., Any]:
    return lambda key=KEY: kind.resume(path, key, **place)


def client(place: Path) -> Role:
    cohort = cohort_of()
    opening = play_until(cohort, "mask")[0]
    JournaledClient.create(place / "client", KEY, cohort.clients[0]).close()
    return Role(
        resumed(JournaledClient, place / "client", cohort.place(0)), lambda machine: machine.receive(opening)[0][1]
    )


def server(place: Path) -> Role:
    cohort = cohort_of()
    for index, message in play_until(cohort, "unmask").items():
        cohort.server.receive(index, cohort.clients[index].receive(message)[0][1])
    return serving(place, Server.resume(cohort.server.export(KEY), KEY, **cohort.place()), cohort.place())


def leader(place: Path) -> Role:
    run = uploads_of()
    run.play_until("reveal")
    run.pass_on(run.leader.outbox)
    named = {"parameters": run.parameters, "roster": run.roster, "identity": run.members[0]}
    return serving(place, Leader.resume(run.leader.export(KEY), KEY, **named), named)


def serving(place: Path, machine: Any, named: dict[str, Any]) -> Role:
    machine.start = lambda: None  # it has
    JournaledServer.create(place / "server", KEY, machine).close()
    return Role(resumed(JournaledServer, place / "server", named), released)


def reporter(place: Path) -> Role:
    run = uploads_of()
    named = {"parameters": run.parameters, "index": 0, "identity": run.identities[0], "roster": run.roster}
    JournaledClient.create(place / "client", KEY, run.client(0)).close()
    return Role(resumed(JournaledClient, place / "client", named), lambda machine: machine.start()[0][1])


def helper(place: Path) -> Role:
    journals = Journals(place)
    with journals.helper(1) as machine:
        machine.receive(batch_of(journals.run, 1, (0, 1, 2, 3, 4)))
    question = list_of(journals.run, (0, 1, 2, 3))
    named = {"identity": journals.run.members[1], **journals.common}
    return Role(resumed(type(machine), journals.home(1), named), lambda machine: machine.receive(question)[0][1])


ROLES = (client, server, leader, reporter, helper)


@pytest.fixture(params=ROLES, ids=lambda role: role.__name__)
def role(request, tmp_path: Path) -> Role:
    return request.param(tmp_path)


def test_an_act_is_repeated_to_the_byte_after_every_restart(role: Role) -> None:
    left = set()
    for _ in range(3):
        with role.open() as machine:
            left |= {role.act(machine), role.act(machine)}
    assert len(left) == 1


def test_an_answer_that_cannot_be_kept_does_not_leave(role: Role) -> None:
    """Nor can it be fetched; after a restart with room on the disk the act is done."""
    with role.open() as machine:
        before = getattr(machine, "answer", b"")
        with full_disk(), pytest.raises(LocalProtocolError, match="could not be written|nothing was sent"):
            role.act(machine)
        assert not getattr(machine, "answer", b"")
        with pytest.raises(LocalProtocolError, match="close it and resume|nothing was sent"):
            role.act(machine)
    with role.open() as machine:
        assert getattr(machine, "answer", b"") == before
        assert role.act(machine)


def test_an_act_that_was_interrupted_is_done_after_a_restart(role: Role) -> None:
    with role.open() as machine:
        with interrupted("os.fsync"):
            role.act(machine)
        with pytest.raises(LocalProtocolError, match="was interrupted|nothing was sent"):
            role.act(machine)
    with role.open() as machine:
        assert role.act(machine)


def test_one_process_at_a_time(role: Role) -> None:
    with role.open() as machine:
        with pytest.raises(LocalProtocolError, match="in use by another"):
            role.open()
        assert role.act(machine)


def test_what_is_closed_acts_no_more(role: Role) -> None:
    machine = role.open()
    machine.close()
    machine.close()
    with pytest.raises(LocalProtocolError, match="is closed"):
        role.act(machine)
    with role.open() as machine:
        assert role.act(machine)


def test_another_key_opens_nothing_and_leaves_no_lock(role: Role) -> None:
    with pytest.raises(LocalProtocolError, match="another key|does not open"):
        role.open(b"x" * 32)
    role.open().close()


def test_what_was_given_up_never_acts(role: Role) -> None:
    with role.open() as machine:
        machine.discard()
    gone = "must not come back|holds no session|box key is gone"
    with pytest.raises(PrivstatsError, match=gone), role.open() as machine:
        role.act(machine)
