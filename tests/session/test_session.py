"""Spend first, draw later; a contribution leaves once; a session counts as released from its masked vector on."""

import copy
import math
import os
import pickle
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger, client_norm
from privstats.encoding import flatten
from privstats.engines import loopback
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.randomness import seeded
from privstats.secagg import Identity, Roster
from privstats.session import Charge, accounting, unmasked
from tests import made
from tests.faults import interrupted
from tests.forks import in_a_fork
from tests.threads import join

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 4)), RNG.integers(0, 3, 40)
SCHEMA = ps.ClassSchema(3, 4, "NAB", clip_norm=2.0)
MOMENTS = ps.measure(SCHEMA, X, Y)
SHARES = [ps.measure(SCHEMA, X[k::4], Y[k::4]) for k in range(4)]
SERVER = Identity.generate(os.urandom)
IDENTITIES = [Identity.generate(os.urandom) for _ in range(4)]
EXACT = made.plan(SCHEMA, ps.Cohort(4, 3, 200))


def plan(model="central", clients=4, **privacy):
    return made.plan(SCHEMA, ps.Cohort(clients, clients - 1, 2000), made.promise(model, **privacy))


def roster(run=b"may"):
    publics = tuple(identity.public for identity in IDENTITIES)
    if isinstance(run, int):
        return Roster.numbered(publics, server=SERVER.public, label="ward 7", counter=run)
    return Roster(publics, server=SERVER.public, run=run)


def client(subject, moments, run=b"may", index=0, **more):
    return ps.session.client(
        subject,
        moments,
        index=index,
        identity=IDENTITIES[index],
        roster=roster(run),
        **({"charge": "uncharged"} | more),
    )


def session(subject, clients, dropouts=None, run=b"may"):
    return loopback.run(ps.session.server(subject, roster(run), identity=SERVER), clients, dropouts=dropouts)


@pytest.fixture
def charge(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.sqlite", "ward 7", epsilon=1.2)
    return Charge(ledger, "ward 7")


@pytest.fixture
def charges(tmp_path):
    """Every party's own ledger, without a cap for exact releases and with one for others."""

    def of(dataset):
        found = []
        for party in range(4):
            path = tmp_path / f"party {party}.db"
            ledger = Ledger(path) if path.exists() else Ledger.create(path)
            if dataset == "ward":
                ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=5.0, delta=1e-5)
            found.append(Charge(ledger, dataset))
        return found

    return of


def entries(charge):
    return charge.ledger.account(charge.dataset).entries


def total_of(subject):
    return subject.ring.encode(flatten(MOMENTS))


# --- differencing over two sessions ---------------------------------------------------------------------------------


def test_differencing_two_exact_sessions_with_one_client_absent_is_refused_by_the_victims_ledger(charges):
    """Same identities, same inputs, client 2 absent from the second: the difference is client 2's exact vector."""
    first = session(EXACT, [client(EXACT, SHARES[k], index=k) for k in range(4)])
    second = session(EXACT, [client(EXACT, SHARES[k], b"june", k) for k in range(4)], {"advertise": {2}}, b"june")
    first.total.subtract(second.total)
    assert np.array_equal(first.total.lift(), flatten(SHARES[2]))  # what a session promises is per session

    of = charges("exact sums")
    outcome = session(EXACT, [client(EXACT, SHARES[k], index=k, charge=of[k]) for k in range(4)])
    assert outcome.survivors == (0, 1, 2, 3)
    for run in (b"may", b"june"):
        for k in range(4):
            with pytest.raises(ps.LedgerError, match="new run name|that client's exact vector"):
                client(EXACT, SHARES[k], run, k, charge=of[k])
    told = Charge(of[0].ledger, of[0].dataset, allow_second_exact_release=True)
    client(EXACT, SHARES[0], b"june", charge=told)
    with pytest.raises(ps.LedgerError, match="new run name"):
        client(EXACT, SHARES[0], b"may", charge=told)


def test_an_abort_after_the_masked_vector_left_does_not_give_the_run_back(charges):
    """A server that has every masked vector and says that it failed could ask for the same run again."""
    subject, of = plan("distributed"), charges("ward")
    with pytest.raises(ps.AggregationError):
        session(subject, [client(subject, SHARES[k], index=k, charge=of[k]) for k in range(4)], {"agree": {0, 1, 2}})
    for k in range(4):
        with pytest.raises(ps.LedgerError, match="a retry is a second release, so agree on a new run name"):
            client(subject, SHARES[k], index=k, charge=of[k])
        client(subject, SHARES[k], b"may, again", k, charge=of[k])
        assert of[k].ledger.account("ward").mu == pytest.approx(math.sqrt(2) * subject.budget().mu)


def test_an_abort_before_the_masked_vector_left_costs_nothing_but_where_the_end_was_not_heard(charges):
    """A client that hears the end is wiped and has back what it cost; one that vanished goes on, or is discarded."""
    subject, of = plan("distributed"), charges("ward")
    for run in (b"may", b"june", b"july"):
        clients = [client(subject, SHARES[k], run, k, charge=of[k]) for k in range(4)]
        again = client(subject, SHARES[0], run, charge=of[0])
        with pytest.raises(ps.AggregationError):
            session(subject, clients, {"share": {0, 1}}, run)
        again.discard()
    assert [len(each.ledger.account("ward").counted) for each in of] == [0, 3, 0, 0]
    assert [len(entries(each)) for each in of] == [3, 3, 3, 3]
    assert all(entry.released is None for each in of for entry in entries(each))


def test_a_noisy_vector_reused_after_a_claimed_abort_is_refused():
    """Reused, the difference of two sums carries one share of noise; drawn anew, those of both sums together."""
    subject = plan("distributed", clients=13, epsilon=1.0)
    rng, absent = seeded(5), 12
    share = subject.noise.share_sigma(subject.layout.segments[1])
    reused, fresh = [], []
    for _ in range(40):
        sent = [ps.session.contribution(subject, MOMENTS, rng, allow_reproducible=True).vector for _ in range(13)]
        anew = [ps.session.contribution(subject, MOMENTS, rng, allow_reproducible=True).vector for _ in range(12)]
        for again, found in ((sent, reused), (anew, fresh)):
            total = subject.ring.zeros()
            for vector in sent:
                total.add(vector)
            for vector in again[:absent]:
                total.subtract(vector)
            found.append((total.lift() - flatten(MOMENTS))[3:15])
    assert np.std(reused) == pytest.approx(share, rel=0.15)
    assert np.std(fresh) == pytest.approx(math.sqrt(25) * share, rel=0.15)

    subject = plan("distributed")
    mine = ps.session.contribution(subject, MOMENTS)
    client(subject, mine)
    for use in (
        lambda: client(subject, mine, b"june"),
        lambda: ps.session.aggregate_unmasked(subject, [mine, MOMENTS, MOMENTS]),
    ):
        with pytest.raises(ps.LocalProtocolError, match="used before"):
            use()


def test_a_contribution_cannot_be_doubled_and_shows_nothing():
    mine = ps.session.contribution(plan("distributed"), MOMENTS)
    for double in (copy.copy, copy.deepcopy, pickle.dumps, lambda it: copy.deepcopy({"inside": [it]})):
        with pytest.raises(ps.LocalProtocolError, match="is sent once"):
            double(mine)
    assert repr(mine) == str(mine) == "Contribution(<one party's vector>)"
    with pytest.raises(AttributeError):
        mine.vector = plan().ring.zeros()
    assert not hasattr(mine, "__dict__")


def test_two_threads_cannot_both_use_a_contribution():
    mine = ps.session.contribution(plan(), MOMENTS)
    barrier, taken = threading.Barrier(8, timeout=60), []

    def take():
        barrier.wait()
        try:
            taken.append(mine.take())
        except ps.LocalProtocolError:
            taken.append(None)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    join(*threads)
    assert sum(vector is not None for vector in taken) == 1


def test_a_contribution_made_before_a_fork_is_not_used_by_both_children():
    """Each child would release the same vector with the same noise, and their difference shows the absent client."""
    mine = ps.session.contribution(plan("distributed"), MOMENTS)
    told = [in_a_fork(mine.take) for _ in range(2)]
    assert all(each.startswith("LocalProtocolError: this contribution was built before a fork") for each in told)
    assert mine.take() is mine.vector  # the process that made it goes on


def test_a_contribution_made_before_a_fork_costs_nothing(charge):
    subject = plan("distributed")
    mine = ps.session.contribution(subject, MOMENTS)
    refusal = in_a_fork(lambda: client(subject, mine, charge=charge))
    assert refusal.startswith("LocalProtocolError: this contribution was built before a fork")
    assert entries(charge) == ()
    client(subject, mine, charge=charge)
    assert len(entries(charge)) == 1


def test_a_contribution_belongs_to_its_plan():
    mine = ps.session.contribution(plan(), MOMENTS)
    other = plan(epsilon=2.0)
    for use in (lambda: client(other, mine), lambda: ps.session.aggregate_unmasked(other, [mine] * 3)):
        with pytest.raises(ps.DataError, match="another plan"):
            use()
    client(plan(), mine)  # and asking did not use it up


# --- charging --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["central", "distributed"])
def test_too_few_survivors_cost_nothing_and_no_noise_is_drawn(model, charge, monkeypatch):
    """The plan refuses such a release in any case; before it is charged, the next one still fits under the cap."""
    subject, drawn = plan(model), []
    right = ps.dp.draw_central
    monkeypatch.setattr("privstats.dp.draw_central", lambda *each: drawn.append(each) or right(*each))
    for survivors in ((0, 1), (0, 1, 7), ()):
        with pytest.raises(ps.errors.ReleaseError):
            ps.session.release(subject, total_of(subject), survivors, charge=charge, run=b"may")
    assert (entries(charge), drawn) == ((), [])
    assert ps.session.release(subject, total_of(subject), (0, 1, 2), charge=charge, run=b"may")
    assert len(entries(charge)) == 1


@pytest.mark.parametrize("model", made.MODELS)
def test_a_client_writes_its_spend_before_it_draws_its_share(model, charge, monkeypatch):
    subject = plan(model)
    drawn = []
    monkeypatch.setattr("privstats.dp.draw_share", lambda *a: drawn.append(len(entries(charge))) or 0)
    machine = client(subject, MOMENTS, charge=charge)
    (entry,) = entries(charge)
    assert drawn == [] if model == "central" else [1]
    assert (entry.plan, entry.run, entry.model) == (subject.digest, b"may", model)
    assert entry.released is None
    assert entry.mu == pytest.approx(subject.budget().mu)
    assert machine.step == "advertise"


def test_the_ledger_is_told_before_the_masked_vector_leaves(charges, monkeypatch):
    subject, of = plan("distributed"), charges("ward")
    clients = [client(subject, SHARES[k], index=k, charge=of[k]) for k in range(4)]
    told = []
    finish = Ledger.finish
    monkeypatch.setattr(Ledger, "finish", lambda self, *more: told.append(clients[0].step) or finish(self, *more))
    session(subject, clients)
    assert len(told) == 4
    assert all(entries(each)[0].released is not None for each in of)


def test_nothing_leaves_when_the_ledger_cannot_be_told(charges, monkeypatch):
    subject, of = plan("distributed"), charges("ward")
    clients = [client(subject, SHARES[k], index=k, charge=of[k]) for k in range(4)]
    answers = []
    receive = ps.secagg.Client.receive
    monkeypatch.setattr(
        ps.secagg.Client, "receive", lambda self, data: answers.append((self, data)) or receive(self, data)
    )
    Path(of[3].ledger.path).unlink()
    with pytest.raises(ps.LedgerError, match="no ledger"):
        session(subject, clients)
    asked, message = answers[-1]
    assert asked is clients[3]
    with pytest.raises(ps.LedgerError, match="no ledger"):
        clients[3].receive(message)
    assert clients[3].answer == b""


def test_a_second_machine_of_the_same_run_cannot_speak(charges):
    """Both were built before either spoke, at one spend, and each has drawn its own noise."""
    subject, of = plan("distributed"), charges("ward")
    twins = [[client(subject, SHARES[k], index=k, charge=of[k]) for k in range(4)] for _ in range(2)]
    session(subject, twins[0])
    with pytest.raises(ps.LedgerError, match="new run name"):
        session(subject, twins[1])


def test_run_names_cannot_be_ground_because_a_ledger_takes_only_the_next_number(charge):
    """Offline, 12,000 names a second can be tried until the neighbours suit; each needs another number."""
    subject = plan("distributed", epsilon=0.1)
    for number in (1, 7, 12_000):
        with pytest.raises(ps.LedgerError, match=f"is number 0 and this one is number {number}"):
            client(subject, MOMENTS, number, charge=charge)
    assert charge.ledger.account("ward 7").entries == ()
    for number in (0, 0, 1, 1, 2):
        client(subject, MOMENTS, number, charge=charge)
    assert [entry.run for entry in entries(charge)] == [roster(number).run for number in range(3)]
    with pytest.raises(ps.LedgerError, match="refuse it"):
        client(subject, MOMENTS, 0, charge=charge)


@pytest.mark.parametrize("use", ["client", "release"])
def test_a_plan_with_a_promise_is_charged_or_somebody_says_that_it_is_not(use, charge):
    subject = plan()

    def act(**how):
        if use == "release":
            return ps.session.release(subject, total_of(subject), (0, 1, 2), **how)
        return ps.session.client(subject, MOMENTS, index=0, identity=IDENTITIES[0], roster=roster(), **how)

    with pytest.raises(ps.LedgerError, match="charge=Charge.*or charge='uncharged'"):
        act()
    act(charge="uncharged")
    act(charge=charge)
    assert len(entries(charge)) == 1


@pytest.mark.parametrize(
    "mistake", ["spent.db", "Uncharged", Path("spent.db"), Ledger("spent.db"), 7, True, ["uncharged"]]
)
@pytest.mark.parametrize("subject", [plan(), EXACT])
def test_what_is_no_charge_is_refused_in_one_sentence(mistake, subject):
    with pytest.raises(ps.LedgerError, match=r"charge must be Charge\(ledger, dataset\) or the word 'uncharged', got"):
        ps.session.release(subject, total_of(subject), (0, 1, 2), charge=mistake)


@pytest.mark.parametrize("mistake", ["spent.db", Path("spent.db"), None])
def test_a_charge_names_a_ledger_and_not_its_file(mistake):
    with pytest.raises(ps.LedgerError, match="open the file with Ledger.open"):
        Charge(mistake, "ward 7")


@pytest.mark.parametrize("subject", [plan("distributed"), EXACT])
def test_a_charged_session_has_a_run_name_whatever_the_graph(subject, charge):
    with pytest.raises(ps.LedgerError, match="run name"):
        client(subject, MOMENTS, b"", charge=charge)


def test_a_hundred_releases_of_one_total_leave_a_tenth_of_the_noise_and_are_stopped_by_the_cap(charge):
    subject = plan()
    exact, total = flatten(MOMENTS)[3:15], total_of(subject)
    sigma = subject.noise.grid_sigma(subject.layout.segments[1])
    rng = seeded(3)
    drawn = [
        ps.session.release(subject, total, (0, 1, 2), rng, "uncharged", allow_reproducible=True).vector[3:15] - exact
        for _ in range(100)
    ]
    assert np.std(np.mean(drawn, axis=0)) < 0.2 * sigma

    ps.session.release(subject, total, (0, 1, 2), charge=charge)
    for run in (b"", b"may"):
        with pytest.raises(ps.LedgerError, match="nothing was spent"):
            ps.session.release(subject, total, (0, 1, 2), charge=charge, run=run)
    assert len(entries(charge)) == 1


@pytest.mark.parametrize("aborts", [False, True])
def test_releases_of_one_run_that_race_are_drawn_for_one_spend_and_only_one_of_them_is_seen(
    aborts, charge, monkeypatch
):
    """All of them find the spend unfinished, and each draws its own noise: one may be given out, or one abort."""
    subject, barrier, seen = plan(), threading.Barrier(4, timeout=60), []
    draw = unmasked.with_central_noise
    total = total_of(subject)
    if aborts:
        total = subject.ring.encode(np.full(subject.layout.size, subject.headroom[0].largest, np.int64))

    def drawn(*args):
        barrier.wait()  # everybody is past the ledger
        return draw(*args)

    def race():
        try:
            seen.append(ps.session.release(subject, total, (0, 1, 2), charge=charge, run=b"may").vector.tobytes())
        except ps.AggregationError as abort:
            seen.append(abort.code)
        except ps.LedgerError as refusal:
            seen.append(refusal)

    monkeypatch.setattr(unmasked, "with_central_noise", drawn)
    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    join(*threads)
    assert len(entries(charge)) == 1
    refusals = [str(each) for each in seen if isinstance(each, ps.LedgerError)]
    assert len(refusals) == 3
    assert all("a retry is a second release" in each for each in refusals)
    assert ("too-many-records" in seen) == aborts


def test_a_crash_after_the_spend_costs_the_release_and_keeps_the_record(charge):
    for _ in range(2):
        with interrupted("privstats.dp.draw_central"):
            ps.session.release(plan(), total_of(plan()), (0, 1, 2), charge=charge, run=b"may")
    (entry,) = entries(charge)
    assert entry.released is None
    ps.session.release(plan(), total_of(plan()), (0, 1, 2), charge=charge, run=b"may")  # at no further cost
    assert [mine.id for mine in entries(charge)] == [entry.id]


@pytest.mark.parametrize("refused", ["max_records", "implausible"])
def test_an_abort_on_noisy_sums_is_charged_like_a_release(refused, charge):
    """Its verdict depends on fresh noise and is seen by everybody: free to repeat, it would be an oracle."""
    subject, vector = plan(), flatten(MOMENTS)
    if refused == "max_records":
        vector[0] = 4 * 2000 << 12
    else:
        vector[3] = 2 ** (subject.headroom[1].bits - 1) - 1
    total = subject.ring.encode(vector)
    with pytest.raises(ps.AggregationError, match=refused):
        ps.session.release(subject, total, (0, 1, 2), charge=charge, run=b"may")
    with pytest.raises(ps.LedgerError, match="new run name"):
        ps.session.release(subject, total, (0, 1, 2), charge=charge, run=b"may")
    (entry,) = entries(charge)
    assert entry.released is not None
    assert entry.mu == pytest.approx(subject.budget().mu)


def test_an_exact_release_needs_no_charge_and_can_be_recorded(charge):
    for how in ({}, {"charge": "uncharged"}, {"charge": Charge(charge.ledger, "exact sums")}):
        ps.session.release(EXACT, total_of(EXACT), (0, 1, 2), **how)
    with pytest.raises(ps.LedgerError, match="exact vector"):
        ps.session.release(EXACT, total_of(EXACT), (0, 1, 2), charge=Charge(charge.ledger, "exact sums"))
    with pytest.raises(ps.LedgerError, match="without DP has no cost that a cap could hold"):
        ps.session.release(EXACT, total_of(EXACT), (0, 1, 2), charge=charge)
    client(EXACT, MOMENTS, charge=None)


# --- without the protocol --------------------------------------------------------------------------------------------


def test_in_clear_is_what_the_protocol_would_release():
    assert ps.session.aggregate_unmasked(EXACT, SHARES) == ps.simulate(EXACT, SHARES)
    made = [ps.session.contribution(EXACT, SHARES[0]), ps.session.contribution(EXACT, SHARES[1]).vector, *SHARES[2:]]
    assert ps.session.aggregate_unmasked(EXACT, made) == ps.simulate(EXACT, SHARES)
    assert ps.session.aggregate_unmasked(EXACT, SHARES[:3]).survivors == (0, 1, 2)


@pytest.mark.parametrize("model", made.MODELS)
def test_in_clear_draws_the_noise_of_the_plan(model):
    subject = plan(model)
    again = [ps.session.aggregate_unmasked(subject, SHARES, seeded(1)).vector for _ in range(2)]
    assert np.array_equal(*again)
    assert not np.array_equal(again[0], ps.session.aggregate_unmasked(subject, SHARES).vector)
    noise = np.concatenate(
        [ps.session.aggregate_unmasked(subject, SHARES, seeded(k)).vector - flatten(MOMENTS) for k in range(40)]
    )
    scale = subject.layout.segments[1].scale
    found = np.std(noise.reshape(40, -1)[:, 3:15]) / scale
    assert found == pytest.approx(subject.noise.released_sigma(4)["A"], rel=0.15)


def test_in_clear_refuses_what_is_no_part_of_the_plan():
    wide = plan(clients=40)
    with pytest.raises(ps.DataError, match="another ring"):
        ps.session.aggregate_unmasked(EXACT, [wide.ring.zeros()] * 3)
    with pytest.raises(ps.DataError, match="moments must be"):
        ps.session.aggregate_unmasked(EXACT, [X] * 3)
    with pytest.raises(ps.ReleaseError, match="at least 3"):
        ps.session.aggregate_unmasked(EXACT, SHARES[:2])


def test_a_client_beyond_its_clip_is_shrunk_as_a_whole():
    subject = plan(unit="client", max_records_per_client=40, client_clip=3.0, epsilon=8.0)
    clipped = ps.session.contribution(subject, MOMENTS).vector.lift()
    assert client_norm(SCHEMA, subject.privacy, flatten(MOMENTS)) > 3
    assert 2.99 < client_norm(SCHEMA, subject.privacy, clipped) <= 3


# --- randomness -------------------------------------------------------------------------------------------------------


def test_a_seeded_generator_reaches_a_real_machine_only_where_it_is_asked_for():
    """Whoever knows the seed takes off the noise and the masks: every door of the session refuses it."""
    subject, rng = plan("distributed"), seeded(1)
    doors = [
        lambda **told: ps.session.contribution(subject, MOMENTS, rng, **told),
        lambda **told: client(subject, MOMENTS, rng=rng, **told),
        lambda **told: ps.session.server(subject, roster(), identity=SERVER, rng=rng, **told),
        lambda **told: ps.session.release(subject, total_of(subject), (0, 1, 2), rng, "uncharged", **told),
    ]
    for door in doors:
        with pytest.raises(ps.RandomnessError, match="rng is reproducible"):
            door()
        door(allow_reproducible=True)


def test_attack_a_contribution_with_known_noise_reaches_a_real_machine_only_where_it_is_requested(charge):
    """Four clients with real ledgers were charged, and their exact sums came back from such contributions."""
    subject = plan("distributed")

    def known():
        return ps.session.contribution(subject, MOMENTS, seeded(1), allow_reproducible=True)

    with pytest.raises(ps.RandomnessError, match="build a contribution without rng"):
        client(subject, known(), charge=charge)
    assert charge.ledger.account("ward 7").entries == ()
    assert client(subject, known(), allow_reproducible=True).index == 0


def _released(subject, outcome):
    return ps.session.release(subject, outcome.total, outcome.survivors, charge="uncharged")


def _over_machines(subject, parts):
    machines = [client(subject, part, index=k, allow_reproducible=True) for k, part in enumerate(parts)]
    return _released(subject, session(subject, machines))


def _over_journals(subject, parts):
    run = os.urandom(8)
    machines = [client(subject, part, run, k, allow_reproducible=True) for k, part in enumerate(parts)]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as closing:
        journals = [
            closing.enter_context(JournaledClient.create(f"{folder}/{k}", os.urandom(32), each))
            for k, each in enumerate(machines)
        ]
        return _released(subject, session(subject, journals, run=run))


def _by_a_journal(subject, parts):
    """Client and server are killed and resumed on the way: neither machine's own state has the mark."""
    run, key = os.urandom(8), bytes(32)
    machines = [client(subject, part, run, k, allow_reproducible=True) for k, part in enumerate(parts)]
    place = {"parameters": subject.masking, "roster": roster(run)}
    with tempfile.TemporaryDirectory() as folder:
        JournaledClient.create(f"{folder}/3", key, machines[3]).close()
        last = JournaledClient.resume(f"{folder}/3", key, index=3, identity=IDENTITIES[3], **place)
        server = ps.session.server(subject, identity=SERVER, roster=roster(run))
        with last, JournaledServer.create(f"{folder}/server", key, server) as server:
            loopback.run(server, [*machines[:3], last])
            first = server.release(subject, "uncharged")
        with JournaledServer.resume(f"{folder}/server", key, identity=SERVER, **place) as server:
            assert server.result[0].reproducible == first.reproducible
            again = server.release(subject, "uncharged")
    assert again.digest == first.digest
    return again


def _in_one_process(subject, parts):
    parties = ps.session.local_parties(subject, parts)
    return _released(subject, loopback.run(parties.server, parties.clients))


def _with_a_panel(subject, parts):
    panel = tuple(Identity.generate(os.urandom).public.hex() for _ in range(2))
    split = replace(subject, protocol="split", panel=panel)
    again = [ps.session.Contribution(split.digest, part.take()) for part in parts]
    parties = ps.session.local_parties(split, again)
    return _released(split, loopback.run(parties.server, parties.clients, helpers=parties.helpers))


def _by_hand(subject, parts):
    total = subject.ring.zeros()
    for part in parts:
        total.add(part.take())
    return ps.session.release(subject, total, tuple(range(len(parts))), charge="uncharged")


def _unmasked(subject, parts):
    return ps.session.aggregate_unmasked(subject, parts)


def _of_vectors(subject, parts):
    return ps.session.aggregate_unmasked(subject, [part.vector for part in parts])


@pytest.mark.parametrize(
    "door",
    [_over_machines, _over_journals, _by_a_journal, _in_one_process, _with_a_panel, _by_hand, _unmasked, _of_vectors],
)
def test_attack_the_release_of_one_contribution_with_known_noise_is_marked_whatever_door_it_came_through(door):
    """The release said ``reproducible=False``, so nothing told a reader that anyone could subtract its noise."""
    subject = plan("distributed")
    fresh = [ps.session.contribution(subject, share) for share in SHARES]
    assert not door(subject, fresh).reproducible
    parts = [ps.session.contribution(subject, share) for share in SHARES[:3]]
    parts.append(ps.session.contribution(subject, SHARES[3], seeded(1), allow_reproducible=True))
    assert door(subject, parts).reproducible


def test_a_session_that_has_ended_is_not_marked_any_more(tmp_path):
    """Its release may be out: the same one would have another digest."""
    subject, run = plan("distributed"), os.urandom(8)
    machines = [client(subject, ps.session.contribution(subject, each), run, k) for k, each in enumerate(SHARES)]
    server = ps.session.server(subject, identity=SERVER, roster=roster(run))
    with JournaledServer.create(tmp_path / "server", bytes(32), server) as server:
        loopback.run(server, machines)
        assert not server.release(subject, "uncharged").reproducible
        server.mark_known_noise(())
        with pytest.raises(ps.errors.LocalProtocolError, match="mark clients before"):
            server.mark_known_noise([3])


def test_a_generator_that_is_refused_costs_nothing(charge):
    with pytest.raises(ps.RandomnessError):
        ps.session.release(plan(), total_of(plan()), (0, 1, 2), seeded(1), charge)
    assert charge.ledger.account("ward 7").entries == ()


@pytest.mark.parametrize("model", made.MODELS)
def test_a_release_whose_shares_can_be_predicted_says_so(model):
    """The noise is in the contributions: a secure generator for the sum does not make it secret."""
    subject = plan(model)
    parts = [
        ps.session.contribution(subject, each, seeded(k), allow_reproducible=True) for k, each in enumerate(SHARES)
    ]
    assert ps.session.aggregate_unmasked(subject, parts).reproducible == (model != "central")


def test_keys_do_not_come_from_a_generator_that_can_be_predicted():
    subject = made.plan(SCHEMA, ps.Cohort(4, 3, 200))
    with pytest.raises(ps.DataError, match="rng must be a privstats.randomness.Generator"):
        ps.session.contribution(subject, MOMENTS, np.random.default_rng(0))


def test_what_the_masking_may_fail_by_adds_up_over_releases_in_the_ledger(charge):
    """Each plan's delta counts it; a ledger that forgot it would promise the cap's delta for any number of them."""
    big = made.plan(SCHEMA, ps.Cohort(300, 250, 2000), made.promise("distributed", epsilon=0.1))
    assert big.masking.failure > 0
    account = accounting.charge_of(big, charge)
    for run in (b"may", b"june"):
        account.spend(big, run)
    account.spend(plan(epsilon=0.1), b"july")  # a complete graph
    found = charge.ledger.account("ward 7")
    assert found.masking_failure == pytest.approx(2 * big.masking.failure)
    assert [entry.masking_failure for entry in found.entries] == [big.masking.failure, big.masking.failure, 0]


def test_a_withdrawn_run_gives_back_epsilon_and_not_the_try_of_its_graph(charge):
    """A server that ends 20 runs and lets the 21st finish has chosen among 21 graphs: the union bound counts all."""
    big = made.plan(SCHEMA, ps.Cohort(300, 250, 2000), made.promise("distributed", epsilon=0.1))
    publics = [ps.secagg.Identity.generate(os.urandom).public for _ in range(300)]
    server = ps.secagg.Identity.generate(os.urandom).public
    rosters = [
        ps.secagg.Roster.numbered(publics, server=server, label="hips", counter=counter) for counter in range(21)
    ]
    for roster in rosters:
        charge.spend(big, roster.run)
    for roster in rosters[:-1]:
        ps.session.withdraw_run(big, roster=roster, charge=charge)
    found = charge.ledger.account("ward 7")
    assert (len(found.counted), found.spent) == (1, pytest.approx(0.1))
    assert found.masking_failure == pytest.approx(21 * big.masking.failure)
