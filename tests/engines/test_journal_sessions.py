"""Journals of whole sessions: one release of one sum, one spend of one upload, whatever is killed in between."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats import session
from privstats.dp import Ledger
from privstats.encoding import flatten
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.engines.journal.server_files import ServerFiles
from privstats.errors import AggregationError, LedgerError, LocalProtocolError
from privstats.randomness import Generator
from tests.faults import interrupted

KEY = b"k" * 32
RUN = b"the first run"


def plan_of(model: str, **privacy) -> ps.Plan:
    schema = ps.ClassSchema(classes=3, features=4, statistics="NA", clip_norm=1.0)
    return ps.Plan(
        schema=schema,
        cohort=ps.Cohort(clients=5, min_survivors=4, colluders=1, max_records=50),
        privacy=ps.Privacy(epsilon=4.0, delta=1e-5, unit="record", adjacency="add-remove", model=model, **privacy),
    )


class Parties:
    """Five parties and their server, with a ledger for the server and one for party 0."""

    def __init__(self, place: Path, model: str = "central") -> None:
        self.plan, self.place = plan_of(model), place
        self.identities = [ps.secagg.Identity.generate(os.urandom) for _ in range(5)]
        self.aggregator = ps.secagg.Identity.generate(os.urandom)
        publics = tuple(identity.public for identity in self.identities)
        self.roster = ps.secagg.Roster(publics, server=self.aggregator.public, run=RUN)
        rng = np.random.default_rng(3)
        self.moments = [ps.measure(self.plan.schema, rng.normal(size=(9, 4)), rng.integers(0, 3, 9)) for _ in range(5)]
        ledger = Ledger.create(place / "ledger.db")
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=50.0, delta=1e-4)
        self.charge = session.Charge(ledger, "ward")

    def client(self, index: int, charge="uncharged"):
        identity = self.identities[index]
        return session.client(
            self.plan, self.moments[index], index=index, identity=identity, roster=self.roster, charge=charge
        )

    def server(self, *, restored: bool = False) -> JournaledServer:
        return JournaledServer.resume_or_create(
            self.place / "server",
            KEY,
            lambda: session.server(self.plan, self.roster, identity=self.aggregator),
            parameters=self.plan.masking,
            roster=self.roster,
            identity=self.aggregator,
            restored=restored,
        )

    def finished(self) -> JournaledServer:
        """The journal of a session that has ended in a sum, which nobody has taken."""
        clients = [self.client(index) for index in range(5)]
        server = self.server()
        for _ in server.steps:
            for client, message in server.outbox:
                server.receive(client, clients[client].receive(message)[0][1])
            server.end_step()
        return server

    def spent(self) -> int:
        return len(self.charge.ledger.account("ward").entries)


def test_a_central_release_is_drawn_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    """A hundred draws of noise for one sum leave a tenth of it; before and after a kill there is one."""
    parties, releases = Parties(tmp_path), []
    with parties.finished() as server:
        releases += [server.release(parties.plan, parties.charge) for _ in range(3)]
    for _ in range(3):
        with parties.server() as server:
            releases.append(server.release(parties.plan, parties.charge))
    assert all(each == releases[0] for each in releases)
    assert parties.spent() == 1
    with parties.server() as server, pytest.raises(LocalProtocolError, match="not handed out again"):
        _ = server.result


def test_a_resumed_server_does_not_hand_the_exact_sum_out_again(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    with parties.finished() as server:
        total, _ = server.result
        assert server.result[0] is total
    with parties.server() as server:
        with pytest.raises(LocalProtocolError, match="not handed out again"):
            _ = server.result
        server.release(parties.plan, "uncharged")


def test_a_kill_between_the_spend_and_the_release_charges_once(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    for place in ("privstats.session.release", "os.fsync", "privstats.dp.Ledger.finish"):
        with parties.server() if parties.spent() else parties.finished() as server, interrupted(place):
            server.release(parties.plan, parties.charge)
    with parties.server() as server:
        first = server.release(parties.plan, parties.charge)
        assert server.release(parties.plan, parties.charge) == first
    assert parties.spent() == 1


def test_an_abort_of_a_release_is_the_same_abort_every_time(tmp_path: Path, monkeypatch) -> None:
    """Under fresh noise each would be another answer to a question about the exact sum."""
    parties, asked = Parties(tmp_path), []

    def implausible(*args, **kwargs):
        asked.append(1)
        raise AggregationError("unmask", "implausible", "an entry is larger than the plan allows for")

    monkeypatch.setattr("privstats.session.release", implausible)
    with parties.finished() as server, pytest.raises(AggregationError, match="implausible"):
        server.release(parties.plan, parties.charge)
    for _ in range(2):
        with parties.server() as server, pytest.raises(AggregationError, match="implausible"):
            server.release(parties.plan, parties.charge)
    assert (len(asked), parties.spent()) == (3, 1)
    assert parties.charge.ledger.account("ward").entries[0].released is not None


def test_a_release_is_charged_in_words(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    with parties.finished() as server:
        with pytest.raises(LedgerError, match="or charge='uncharged'"):
            server.release(parties.plan)
        with pytest.raises(LocalProtocolError, match="session of another plan"):
            server.release(plan_of("distributed"), parties.charge)
        with pytest.raises(LocalProtocolError, match="session of another plan"):
            server.release("plan.toml", parties.charge)
        assert parties.spent() == 0


def test_there_is_no_release_without_a_sum(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    with parties.server() as server, pytest.raises(LocalProtocolError, match="no result"):
        server.release(parties.plan, "uncharged")


def test_a_client_killed_at_every_step_spends_once_and_finishes_once(tmp_path: Path) -> None:
    parties, made = Parties(tmp_path, "distributed"), []
    others = [parties.client(index) for index in range(1, 5)]

    def make():
        made.append(1)
        return parties.client(0, charge=parties.charge)

    def restarted() -> JournaledClient:
        return JournaledClient.resume_or_create(
            tmp_path / "client",
            KEY,
            make,
            parameters=parties.plan.masking,
            index=0,
            identity=parties.identities[0],
            roster=parties.roster,
            on_upload=session.on_upload(parties.plan, parties.roster, parties.charge),
        )

    restarted().close()
    with parties.server() as server:
        for _ in server.steps:
            for client, message in server.outbox:
                if client:
                    server.receive(client, others[client - 1].receive(message)[0][1])
                else:
                    with restarted() as mine:
                        server.receive(0, mine.receive(message)[0][1])
            server.end_step()
        assert server.result[1] == (0, 1, 2, 3, 4)
    (entry,) = parties.charge.ledger.account("ward").entries
    assert (len(made), entry.released is not None) == (1, True)


def test_a_charged_client_is_not_resumed_without_its_ledger(tmp_path: Path) -> None:
    parties = Parties(tmp_path, "distributed")
    JournaledClient.create(tmp_path / "client", KEY, parties.client(0, charge=parties.charge)).close()
    place = {
        "parameters": parties.plan.masking,
        "index": 0,
        "identity": parties.identities[0],
        "roster": parties.roster,
    }
    with pytest.raises(LocalProtocolError, match=r"give on_upload=session.on_upload\(plan, roster, charge\)"):
        JournaledClient.resume(tmp_path / "client", KEY, **place)
    tell = session.on_upload(plan_of("central"), parties.roster, parties.charge)
    with pytest.raises(LedgerError, match="knows no such run under this plan"):
        tell(bytes(32))


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def played(parties: Parties, server: JournaledServer, present: range) -> np.ndarray:
    """The sums that a session of these clients releases."""
    clients = {index: parties.client(index) for index in present}
    for _ in server.steps:
        for client, message in server.outbox:
            if client in clients and server.awaits(client):
                server.receive(client, clients[client].receive(message)[0][1])
        server.end_step()
    return server.release(parties.plan, "uncharged").vector


def test_attack_a_copied_journal_that_ends_in_another_sum(tmp_path: Path, monkeypatch) -> None:
    """With and without one party: were the noise the seed's alone, the difference would be that party's exact sums."""
    parties = Parties(tmp_path)
    exact = flatten(parties.moments[4])
    levels = [np.full(each.size, parties.plan.noise.grid_sigma(each)) for each in parties.plan.layout.segments]

    def stolen(name: str) -> np.ndarray:
        parties.place = tmp_path / name
        parties.server().close()
        shutil.copytree(tmp_path / name, tmp_path / f"{name} copied")
        with_it = played(parties, parties.server(), range(5))
        parties.place = tmp_path / f"{name} copied"
        return with_it - played(parties, parties.server(restored=True), range(4))

    noise = (stolen("ours") - exact) / np.concatenate(levels)
    assert np.abs(noise).max() > 0.5
    assert 0.6 < noise.std() < 3
    monkeypatch.setattr("privstats.engines.journal.server_view.noise_of", lambda seed, *sums: Generator(seed))
    assert np.array_equal(stolen("double"), exact)


def test_a_release_of_an_older_privstats_is_not_drawn_again(tmp_path: Path) -> None:
    """Its noise followed from the seed alone, so what is drawn now would be a second release of one sum."""
    parties = Parties(tmp_path)
    server = parties.finished()
    server._files.append(-3)  # as an older privstats noted that it had released
    server.close()
    with pytest.raises(LocalProtocolError, match="keep the release that was made"):
        parties.server().release(parties.plan)


@pytest.mark.parametrize("aborts", [False, True])
@pytest.mark.parametrize("killed", [False, True])
def test_attack_a_release_of_which_the_ledger_never_heard_and_its_spend_back(
    tmp_path: Path, monkeypatch, killed: bool, aborts: bool
) -> None:
    """The journal notes the release before the ledger does; a withdrawal in between must not make it free."""
    parties = Parties(tmp_path)
    withdraw = partial(session.withdraw_run, parties.plan, roster=parties.roster, charge=parties.charge)
    finish = Ledger.finish

    def meanwhile(*told: object) -> None:
        if killed:
            raise KeyboardInterrupt
        withdraw()  # by another process
        finish(*told)

    if aborts:
        abort = AggregationError("unmask", "implausible", "an entry is larger than the plan allows for")
        monkeypatch.setattr("privstats.session.release", raising(abort))
    with parties.finished() as server, monkeypatch.context() as patch:
        patch.setattr(Ledger, "finish", meanwhile)
        with pytest.raises(KeyboardInterrupt if killed else LedgerError) as refused:
            server.release(parties.plan, parties.charge)
        assert refused.value.__context__ is None
        if not killed:
            with pytest.raises(LedgerError, match="no ledger is given to record that"):
                server.release(parties.plan)
    withdraw()
    for charge, why in ((None, "no ledger is given to record that"), (parties.charge, "was withdrawn")):
        with parties.server() as server, pytest.raises(LedgerError, match=why) as refused:
            server.release(parties.plan, charge)
        assert refused.value.__context__ is None
    assert parties.charge.ledger.account("ward").mu == 0


def raising(error: Exception) -> Callable[..., None]:
    def made(*_: object, **__: object) -> None:
        raise error

    return made


def test_a_release_that_the_ledger_has_heard_of_needs_no_charge(tmp_path: Path, monkeypatch) -> None:
    """Also after a kill between the ledger's note and the journal's; a journal from before that note asks once."""
    parties = Parties(tmp_path)
    with parties.finished() as server, monkeypatch.context() as patch:
        patch.setattr(ServerFiles, "append", lambda _, sender: interrupt() if sender == -6 else None)
        with pytest.raises(KeyboardInterrupt):
            server.release(parties.plan, parties.charge)
    with parties.server() as server:
        server._files.append(-5)
    with parties.server() as server:
        with pytest.raises(LedgerError, match="no ledger is given to record that"):
            server.release(parties.plan)
        first = server.release(parties.plan, parties.charge)
        assert server.release(parties.plan) == first
    with parties.server() as server:
        assert server.release(parties.plan) == first
    assert parties.spent() == 1


def test_a_release_that_was_said_to_be_uncharged_is_repeated_without_the_word(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    with parties.finished() as server:
        first = server.release(parties.plan, "uncharged")
    with parties.server() as server:
        assert server.release(parties.plan) == first
