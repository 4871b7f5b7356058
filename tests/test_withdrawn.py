"""A session of which nothing has left gives back what it cost, and nothing leaves under it ever after."""

import os
import shutil
import threading
from pathlib import Path

import pytest

import privstats as ps
from privstats import dp, session
from privstats.engines import loopback
from privstats.engines.journal import JournaledClient
from privstats.errors import LedgerError, LocalProtocolError, RestoredError, SessionEndedError
from privstats.secagg import Panel
from privstats.session import accounting
from tests import made
from tests.faults import interrupted
from tests.session.test_freed_spends import MEMBERS, PARTIES, PROMISE, SCHEMA, Lost, Run, account, charge
from tests.threads import join

RUNS = pytest.mark.parametrize("kind", [Lost, Run], ids=["interactive", "split"])
KEY = bytes(32)
__all__ = ["charge"]  # a fixture: an account with room for one release


def uploads(run: Run, client) -> bytes:
    """Carry the client to its upload, among others; what the ledger is told of it, empty where nothing leaves."""
    if run.panel is not None:
        client.start()
        return client.upload
    clients = [client, *(run.client(index) for index in range(1, 6))]
    loopback.run(session.server(run.plan, run.roster, identity=MEMBERS[0]), clients)
    return client.upload


@RUNS
def test_three_sessions_that_end_before_the_upload_leave_the_whole_cap(charge: session.Charge, kind) -> None:
    for counter in range(3):
        kind(counter).client(charge=charge).discard()
    assert (account(charge).mu, account(charge).counted, account(charge).waiting) == (0.0, (), ())
    assert [bool(entry.withdrawn) for entry in account(charge).entries] == [True] * 3
    run = kind(3)
    assert uploads(run, run.client(charge=charge))
    assert len(account(charge).counted) == 1


@RUNS
def test_one_session_that_ended_at_the_opening_does_not_count_as_exact_sums(tmp_path: Path, kind) -> None:
    """And while it is on, the refusal says so, and advises nobody to switch the guard off."""
    charge = session.Charge(dp.Ledger.create(tmp_path / "ledger.sqlite"), "ward 7")
    first = kind(0, ps.NoPrivacy()).client(charge=charge)
    with pytest.raises(
        LedgerError, match="nothing of 'ward 7' was released, but it could be: .* which began"
    ) as refused:
        kind(1, ps.NoPrivacy()).client(charge=charge)
    assert "allow_second_exact_release" not in str(refused.value)
    cap = {"unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(LedgerError, match="no cap can hold .* now: nothing has left under run"):
        charge.ledger.set_cap("ward 7", **cap)
    first.discard()
    second = kind(2, ps.NoPrivacy())
    assert uploads(second, second.client(charge=charge))
    with pytest.raises(LedgerError, match="were released before"):
        kind(3, ps.NoPrivacy()).client(charge=charge)


def test_a_full_cap_says_which_sessions_hold_it_without_having_sent_anything(charge: session.Charge) -> None:
    run = Lost(0)
    run.client(charge=charge)
    with pytest.raises(LedgerError, match=f"nothing has left under run {run.roster.run.hex()}, which began"):
        Lost(1).client(charge=charge)


@RUNS
def test_a_failed_session_gives_back_to_whoever_heard_its_end(charge: session.Charge, kind) -> None:
    run = kind(0)
    client = run.client(charge=charge)
    if run.panel is None:
        server = session.server(run.plan, run.roster, identity=MEMBERS[0])
        others = [run.client(index) for index in range(1, 6)]
        with pytest.raises(ps.AggregationError):
            loopback.run(server, [client, *others], dropouts={"share": {3, 4, 5}})
        assert client.step == "failed"
    else:
        client.discard()
    assert account(charge).counted == ()


def test_a_client_that_catches_a_liar_before_its_upload_has_back_what_it_cost(charge: session.Charge, tmp_path: Path):
    """Journaled: what could come back is gone from the disk before the ledger hears, also when the liar ends it."""
    run = Lost(0)
    named = {"parameters": run.plan.masking, "index": 0, "identity": PARTIES[0], "roster": run.roster}
    order: list[str] = []

    class LedgerCallback(accounting.LedgerCallback):
        def withdraw(self) -> None:
            with pytest.raises(SessionEndedError):
                journal._resumed(ClientFile(tmp_path / "c", KEY), machine, None, restored=False)
            order.append("told")
            super().withdraw()

    from privstats.engines.journal import client as journal_client
    from privstats.engines.journal.client_file import ClientFile

    journal, machine = JournaledClient, journal_client._Machine(*named.values(), 1)
    client = run.client(charge=charge)
    client._on_upload = LedgerCallback(run.plan, charge, run.roster.run)
    with JournaledClient.create(tmp_path / "c", KEY, client) as kept:
        server = session.server(run.plan, run.roster, identity=MEMBERS[0])
        kept.receive(server.start().to(0))
        server.abandon()
        kept.receive(server.abandon().to(0))
        assert kept.step == "failed"
    assert order == ["told"]
    assert account(charge).counted == ()


# --- attacks: an upload and a withdrawal together would be a release at no cost ---


@RUNS
def test_a_client_is_withdrawn_before_its_upload_and_not_after(charge: session.Charge, kind) -> None:
    early, late = kind(0), kind(1)
    session.withdraw(client := early.client(charge=charge))
    assert client.step == "failed"
    assert account(charge).counted == ()
    client = late.client(charge=charge)
    assert uploads(late, client)
    with pytest.raises(LedgerError, match="was sent, so its spend stays"):
        session.withdraw(client)
    assert len(account(charge).counted) == 1
    with pytest.raises(LocalProtocolError, match="must be the machine of a party"):
        session.withdraw(late.plan)


@RUNS
def test_what_has_left_is_not_withdrawn(charge: session.Charge, kind) -> None:
    run = kind(0)
    client = run.client(charge=charge)
    assert uploads(run, client)
    client.discard()
    with pytest.raises(LedgerError, match="only proof that it is in no sum gives it back"):
        session.withdraw_run(run.plan, roster=run.roster, charge=charge)
    assert len(account(charge).counted) == 1


@RUNS
def test_a_second_machine_of_a_withdrawn_run_never_speaks(charge: session.Charge, kind) -> None:
    """Kept in memory, made of the same contribution by a copy of the process, or resumed from a copy of its state."""
    run = kind(0)
    first, twin = run.client(charge=charge), run.client(charge=charge)
    sealed = first.export(KEY)
    first.discard()
    told = session.on_upload(run.plan, run.roster, charge)
    named = {"parameters": run.plan.masking, "index": 0, "identity": PARTIES[0], "roster": run.roster}
    copy = type(first).resume(sealed, KEY, on_upload=told, **named)
    for machine in (twin, copy):
        with pytest.raises(LedgerError, match="was withdrawn .* nothing may leave under it"):
            uploads(run, machine)
        assert machine.upload == machine.answer == b""
    with pytest.raises(LedgerError, match="was withdrawn"):
        run.client(charge=charge)
    assert account(charge).counted == ()


@RUNS
def test_a_copy_of_the_journal_that_is_put_back_after_the_withdrawal_never_speaks(charge, tmp_path, kind):
    run, path = kind(0), tmp_path / "client"
    with JournaledClient.create(path, KEY, run.client(charge=charge)) as client:
        shutil.copy(path, tmp_path / "copy")
        client.discard()
    assert account(charge).counted == ()
    shutil.copy(tmp_path / "copy", path)
    named = {"parameters": run.plan.masking, "index": 0, "identity": PARTIES[0], "roster": run.roster}
    told = session.on_upload(run.plan, run.roster, charge)
    with pytest.raises(RestoredError):
        JournaledClient.resume(path, KEY, on_upload=told, **named)
    with (  # nor where somebody vouches for it
        JournaledClient.resume(path, KEY, on_upload=told, restored=True, **named) as back,
        pytest.raises(LedgerError, match="withdrawn"),
    ):
        uploads(run, back)


def test_withdrawal_and_upload_race_and_one_of_them_wins(charge: session.Charge) -> None:
    """Both take the ledger's one write lock: never does an upload leave whose spend is given back."""
    for counter in range(6):
        ledger = made.ledger(Path(charge.ledger.path).with_name(f"race {counter}"), "ward 7", timeout=20, epsilon=4.0)
        mine, run = session.Charge(ledger, "ward 7"), Run(0)
        client, start = run.client(charge=mine), threading.Barrier(2, timeout=60)
        said: list[object] = []

        def withdrawing(start=start, run=run, mine=mine) -> None:
            start.wait()
            try:
                session.withdraw_run(run.plan, roster=run.roster, charge=mine)
            except LedgerError as error:
                assert "only proof" in str(error)

        other = threading.Thread(target=withdrawing)
        other.start()
        start.wait()
        try:
            said += client.start()
        except LedgerError as error:
            assert "withdrawn" in str(error)
        join(other)
        (entry,) = account(mine).entries
        assert (entry.withdrawn is None) == bool(said) == (entry.released is not None)


@RUNS
def test_killed_between_the_wipe_and_the_ledger_the_spend_stays_until_it_is_withdrawn(charge, tmp_path, kind):
    run, path = kind(0), tmp_path / "client"
    client = JournaledClient.create(path, KEY, run.client(charge=charge))
    with interrupted(dp.Ledger, "withdraw"):
        client.discard()
    assert len(account(charge).waiting) == 1
    named = {"parameters": run.plan.masking, "index": 0, "identity": PARTIES[0], "roster": run.roster}
    with pytest.raises(SessionEndedError):
        JournaledClient.resume(path, KEY, on_upload=session.on_upload(run.plan, run.roster, charge), **named)
    for _ in range(2):
        session.withdraw_run(run.plan, roster=run.roster, charge=charge)
    assert account(charge).counted == ()


def _discard_and_die(run: Run, charge: session.Charge, path: Path, at: int) -> None:
    """In a child: give the client up, and die as the disk is written to for the ``at``-th time, before or after it."""
    with JournaledClient.create(path, KEY, run.client(charge=charge)) as client:
        written = iter(range(1 << 20))

        def dying(real):
            def act(*arguments, **named):
                if next(written) == at:
                    os._exit(9)
                result = real(*arguments, **named)
                if next(written) == at:
                    os._exit(9)
                return result

            return act

        for name in ("replace", "rename", "fsync"):
            setattr(os, name, dying(getattr(os, name)))
        client.discard()


@pytest.mark.nightly
@RUNS
def test_killed_at_any_write_of_a_withdrawal_nothing_can_leave_that_is_not_paid_for(tmp_path, kind, monkeypatch):
    """Either the client still stands and is paid for, or it is wiped; given back is only what is wiped.

    Each time on a machine of its own, which has not seen a client of this run begin.
    """
    ends = []
    for at in range(40):
        home = tmp_path / str(at)
        home.mkdir()
        monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
        ledger, run = dp.Ledger.create(home / "ledger"), kind(0)
        ledger.set_cap("ward 7", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
        charge, child = session.Charge(ledger, "ward 7"), os.fork()
        if child == 0:
            _discard_and_die(run, charge, home / "client", at)
            os._exit(0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        named = {"parameters": run.plan.masking, "index": 0, "identity": PARTIES[0], "roster": run.roster}
        paid, told = len(account(charge).counted), session.on_upload(run.plan, run.roster, charge)
        try:
            with JournaledClient.resume(home / "client", KEY, on_upload=told, **named) as client:
                assert paid == 1
                client.discard()
        except SessionEndedError:
            session.withdraw_run(run.plan, roster=run.roster, charge=charge)
        assert account(charge).counted == ()
        if ends[-1] == 0:
            break
    assert ends[-1] == 0
    assert len(ends) > 4


def test_a_course_and_a_release_that_was_made_are_not_withdrawn(charge: session.Charge) -> None:
    run, ledger = Lost(0), charge.ledger
    cost = dp.Cost(run.plan.schema, run.plan.privacy, None)
    ledger.spend_course("courses", course=run.plan.digest, run=b"course", nodes=2, costs=[cost, cost])
    (course,) = ledger.account("courses").entries
    with pytest.raises(LedgerError, match="pays for a course"):
        ledger.withdraw(course)
    assert ledger.account("courses").waiting == ()
    for change in ({"charge": "uncharged"}, {"roster": Lost(1).roster}):
        with pytest.raises(LedgerError, match=r"must be the Charge|knows no such run"):
            session.withdraw_run(run.plan, **({"roster": run.roster, "charge": charge} | change))


def test_a_withdrawn_run_is_neither_finished_nor_freed_nor_begun(charge: session.Charge) -> None:
    run, ledger = Lost(0), charge.ledger
    run.client(charge=charge).discard()
    (entry,) = account(charge).entries
    for use in (
        lambda: ledger.finish(entry, b"u"),
        lambda: ledger.free(entry, upload=b"u", proof=b"p"),
        lambda: ledger.mark_started(entry, 0),
        lambda: run.client(charge=charge),
    ):
        with pytest.raises(LedgerError, match="was withdrawn"):
            use()


@pytest.mark.parametrize("aborts", [False, True])
def test_a_release_under_a_spend_that_is_withdrawn_meanwhile_tells_nothing_of_its_sum(tmp_path, monkeypatch, aborts):
    """The error behind the refusal would be the abort, which is a function of the noisy sum: seen, and given back."""
    plan = made.plan(
        SCHEMA, ps.Cohort(clients=3, min_survivors=2, max_records=90), ps.Privacy(model="central", **PROMISE)
    )
    ledger = made.ledger(tmp_path / "server", "ward 7", epsilon=4.1)

    def meanwhile(*_: object) -> None:
        (entry,) = ledger.account("ward 7").entries
        ledger.withdraw(entry)  # by another process
        if aborts:
            raise ps.AggregationError("unmask", "implausible", "an entry is larger than the plan allows for")

    monkeypatch.setattr("privstats.session.unmasked.check_plausible", meanwhile)
    charge = session.Charge(ledger, "ward 7")
    with pytest.raises(LedgerError, match="was withdrawn") as refused:
        session.release(plan, plan.ring.zeros(), (0, 1, 2), charge=charge, run=b"run")
    assert (refused.value.__context__, refused.value.__cause__) == (None, None)


# --- before anything is spent ---


def test_a_used_contribution_and_another_runs_panel_cost_nothing(charge: session.Charge) -> None:
    """64 public bytes and junk, or somebody else's offers, are refused before the ledger is asked."""
    run, other = Run(0), Run(1)
    moments = ps.measure(SCHEMA, [[0.5, 0.1, 0.0, 0.2]], [1])
    used = session.contribution(run.plan, moments)
    used.take()
    named = {"index": 0, "identity": PARTIES[0], "roster": run.roster, "charge": charge}
    forged = Panel(run.panel.identities, other.panel.offers)
    for part, panel, why in ((used, run.panel, "used before"), (moments, forged, "not signed for this plan")):
        with pytest.raises(LocalProtocolError, match=why):
            session.client(run.plan, part, panel=panel, **named)
    assert account(charge).entries == ()


@RUNS
def test_a_withdrawn_run_is_not_begun_for_other_data(charge: session.Charge, kind) -> None:
    """It would show the others two advertisements of one party under one name."""
    charge.ledger.set_cap("ward 8", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
    run = kind(0)
    run.client(charge=charge).discard()
    with pytest.raises(LedgerError, match="was withdrawn"):
        run.client(charge=session.Charge(charge.ledger, "ward 8"))
    assert charge.ledger.account("ward 8").entries == ()


def test_a_panel_whose_box_keys_have_ended_costs_nothing(charge: session.Charge, monkeypatch) -> None:
    run = Run(0)
    monkeypatch.setattr("privstats.secagg.upload.panel.time.time", lambda: float(run.panel.until))
    with pytest.raises(LocalProtocolError, match="have expired"):
        run.client(charge=charge)
    assert account(charge).entries == ()


@RUNS
def test_a_journal_that_was_told_whom_to_tell_is_not_resumed_without(charge: session.Charge, tmp_path: Path, kind):
    """The machine knows of no ledger, and the journal must."""
    run, path = kind(0), tmp_path / "client"
    charge.spend(run.plan, run.roster.run)
    told = session.on_upload(run.plan, run.roster, charge)
    JournaledClient.create(path, KEY, run.client(), on_upload=told).close()
    named = {"parameters": run.plan.masking, "index": 0, "identity": PARTIES[0], "roster": run.roster}
    with pytest.raises(LocalProtocolError, match="give on_upload"):
        JournaledClient.resume(path, KEY, **named)
    with JournaledClient.resume(path, KEY, on_upload=told, **named) as client:
        assert client.charged
        client._save()
    with pytest.raises(LocalProtocolError, match="give on_upload"):
        JournaledClient.resume(path, KEY, **named)
    session.withdraw_run(run.plan, roster=run.roster, charge=charge)
    with (
        JournaledClient.resume(path, KEY, on_upload=told, **named) as client,
        pytest.raises(LedgerError, match="withdrawn"),
    ):
        uploads(run, client)
