"""What gives a spend back: the word of those who would know on this very upload, and nothing less."""

from dataclasses import replace
from pathlib import Path

import pytest

import privstats as ps
from privstats import dp, session
from privstats.engines import loopback
from privstats.engines.faults import Fault
from privstats.errors import LedgerError, LocalProtocolError
from privstats.secagg import HelperKeys, Identity, Panel, Roster
from privstats.secagg.protocols import PROTOCOLS
from tests import made
from tests.secagg.interactive.cohorts import stream

SCHEMA = ps.ClassSchema(classes=3, features=4, statistics="NA", clip_norm=1.0)
PROMISE = {"epsilon": 4.0, "delta": 1e-5, "unit": "record", "adjacency": "add-remove"}
MEMBERS = [Identity.generate(stream(f"seat {place}")) for place in range(3)]
PARTIES = [Identity.generate(stream(f"party {i}")) for i in range(6)]


class Run:
    """One run of six parties and two helpers; ``keys`` may be another's, for a second panel of the same people."""

    whole = False

    def __init__(self, counter: int, privacy=None, **change) -> None:
        given = {"protocol": "split", "panel": tuple(member.public.hex() for member in MEMBERS), **change}
        cohort = ps.Cohort(clients=6, min_survivors=4, colluders=1, max_records=90)
        privacy = privacy or ps.Privacy(model="distributed", **PROMISE)
        self.plan = made.plan(SCHEMA, cohort, privacy, **given)
        publics = tuple(party.public for party in PARTIES)
        self.roster = Roster.numbered(publics, server=MEMBERS[0].public, label="tests", counter=counter)
        self.panel = self.new_panel() if self.plan.panel else None

    def new_panel(self) -> Panel:
        self.keys = [HelperKeys(member, place, self.plan.masking, self.roster) for place, member in enumerate(MEMBERS)]
        return Panel(tuple(member.public for member in MEMBERS), tuple(keys.offer for keys in self.keys))

    def client(self, index: int = 0, charge="uncharged"):
        moments = ps.measure(SCHEMA, [[0.5, 0.1, 0.0, 0.2]], [1])
        named = {"index": index, "identity": PARTIES[index], "roster": self.roster, "panel": self.panel}
        return session.client(self.plan, moments, charge=charge, **named)

    def sent(self, charge) -> bytes:
        """The report of the party whose ledger this is, after it left."""
        client = self.client(charge=charge)
        ((_, report),) = client.start()
        assert client.answer == report
        assert len(client.receipt) < len(report)
        return report if self.whole else client.receipt

    def abandoned(self, panel: Panel | None = None) -> dict[int, bytes]:
        named = {"roster": self.roster, "panel": panel or self.panel}
        helpers = [session.helper(self.plan, keys=keys, **named) for keys in self.keys[1:]]
        return {place: helper.abandon()[0][1] for place, helper in enumerate(helpers, start=1)}

    def free(self, charge: session.Charge, report: bytes, statements: dict[int, bytes], **change) -> None:
        named = {"roster": self.roster, "panel": self.panel, "charge": charge, **change}
        session.free(self.plan, report, statements, **named)


LOST = (Fault("mask", 0, "up", "drop"),)


class Lost(Run):
    """One run of the interactive protocol, in which the vector of party 0 is lost after it left."""

    def __init__(self, counter: int, privacy=None, **change) -> None:
        super().__init__(counter, privacy, protocol="interactive", panel=(), **change)
        self.words: dict[int, bytes] = {}

    def sent(self, charge, faults=LOST) -> bytes:
        clients = [self.client(charge=charge), *(self.client(index) for index in range(1, 6))]
        server = session.server(self.plan, self.roster, identity=MEMBERS[0])
        loopback.run(server, clients, faults=faults)
        self.words = clients[1].agreement
        return clients[0].receipt

    def abandoned(self, panel=None) -> dict[int, bytes]:
        del panel
        if not self.words:
            self.sent("uncharged")
        return self.words


class Whole(Run):
    """The same, where the whole report was kept."""

    whole = True


RUNS = pytest.mark.parametrize("kind", [Run, Whole, Lost], ids=["split", "split, whole", "interactive"])


@pytest.fixture
def charge(tmp_path: Path) -> session.Charge:
    ledger = made.ledger(tmp_path / "ledger.sqlite", "ward 7", epsilon=4.0)
    return session.Charge(ledger, "ward 7")


def account(charge: session.Charge) -> dp.Account:
    return charge.ledger.account(charge.dataset)


@RUNS
def test_an_upload_that_is_in_no_sum_costs_nothing_and_its_name_is_used_up(charge: session.Charge, kind) -> None:
    """The cap has room for one release: without the proof the retry is refused, with it the retry goes on."""
    first = kind(0)
    report = first.sent(charge)
    with pytest.raises(LedgerError, match="is left for one more release"):
        kind(1).sent(charge)
    told = first.abandoned()
    for _ in range(2):
        first.free(charge, report, told)
    (entry,) = account(charge).entries
    assert (account(charge).mu, account(charge).counted, account(charge).statistics()) == (0.0, (), {})
    assert entry.freed
    assert len(entry.proof) == 32
    kind(2).sent(charge)
    assert account(charge).mu == pytest.approx(entry.mu)
    with pytest.raises(LedgerError, match="is left for one more release"):
        kind(3).sent(charge)


@RUNS
def test_the_name_of_a_freed_run_stays_used_up(charge: session.Charge, kind) -> None:
    """A second client under it would draw new noise at no cost; its helpers are gone, but a ledger cannot know."""
    run = kind(0)
    run.free(charge, run.sent(charge), run.abandoned())
    with pytest.raises(LedgerError, match="agree on a new run name"):
        run.sent(charge)


@RUNS
def test_exact_sums_that_were_never_counted_may_be_sent_again(tmp_path: Path, kind) -> None:
    charge = session.Charge(dp.Ledger.create(tmp_path / "ledger.sqlite"), "ward 7")
    first = kind(0, ps.NoPrivacy())
    report = first.sent(charge)
    with pytest.raises(LedgerError, match="were released before"):
        kind(1, ps.NoPrivacy()).sent(charge)
    first.free(charge, report, first.abandoned())
    kind(2, ps.NoPrivacy()).sent(charge)


# --- attacks: each would let a client be released twice at the price of one ---


def still_charged(charge: session.Charge) -> bool:
    (entry,) = account(charge).entries
    return entry.freed is None and account(charge).mu == entry.mu > 0


@pytest.mark.parametrize("missing", [1, 2])
def test_one_helper_that_has_not_spoken_could_still_answer(charge: session.Charge, missing: int) -> None:
    run = Run(0)
    report, told = run.sent(charge), run.abandoned()
    del told[missing]
    with pytest.raises(LocalProtocolError, match=f"on how helper {missing} ended the run"):
        run.free(charge, report, told)
    assert still_charged(charge)


def test_a_forged_statement_frees_nothing(charge: session.Charge) -> None:
    """The leader signs for a helper; flips a bit; sends helper 1's word twice."""
    run = Run(0)
    report, told = run.sent(charge), run.abandoned()
    signed = told[2][:-64]
    forged = signed + MEMBERS[0].sign(
        b"privstats/upload/1/abandoned\0" + run.panel.context(run.plan.masking, run.roster) + b"\2"
    )
    for lie in (forged, told[2][:-1] + bytes([told[2][-1] ^ 1]), told[1], b"", bytes(1 << 20)):
        with pytest.raises(LocalProtocolError, match=r"helper 2 is not its signed statement"):
            run.free(charge, report, {1: told[1], 2: lie})
    assert still_charged(charge)


@RUNS
def test_statements_of_another_run_free_nothing(charge: session.Charge, kind) -> None:
    run, other = kind(0), kind(1)
    report, theirs, told = run.sent(charge), other.sent("uncharged"), other.abandoned()
    with pytest.raises(LocalProtocolError, match="wrong_session|client 1 is not its signed list"):
        run.free(charge, report, told)
    with pytest.raises(LedgerError, match="knows no such run"):
        run.free(charge, theirs, told, roster=other.roster, panel=other.panel)
    assert still_charged(charge)


def test_a_second_panel_of_the_same_run_that_is_abandoned_frees_nothing(charge: session.Charge) -> None:
    """Leader and helpers offer twice: the client reports to the first panel, and the second one is abandoned."""
    run = Run(0)
    report, first = run.sent(charge), run.panel
    run.panel = run.new_panel()
    told = run.abandoned()
    with pytest.raises(LocalProtocolError, match="wrong_session"):
        run.free(charge, report, told, panel=first)
    with pytest.raises(LocalProtocolError, match="not of this run and panel"):
        run.free(charge, report, told)
    with pytest.raises(LedgerError, match="is another upload"):
        run.free(charge, run.sent("uncharged"), told)
    assert still_charged(charge)


def test_a_panel_that_the_plan_does_not_name_speaks_for_nobody(charge: session.Charge) -> None:
    run, own = Run(0), [Identity.generate(stream(f"own {place}")) for place in range(3)]
    report = run.sent(charge)
    keys = [HelperKeys(member, place, run.plan.masking, run.roster) for place, member in enumerate(own)]
    panel = Panel(tuple(member.public for member in own), tuple(each.offer for each in keys))
    with pytest.raises(LocalProtocolError, match="not the panel that the plan names"):
        run.free(charge, report, run.abandoned(), panel=panel)
    assert still_charged(charge)


@RUNS
def test_what_has_not_left_is_begun_again_and_not_freed(charge: session.Charge, kind) -> None:
    run = kind(0)
    run.client(charge=charge)
    with pytest.raises(LedgerError, match="nothing has left"):
        run.free(charge, run.sent("uncharged"), run.abandoned())
    run.sent(charge)


def test_one_client_fewer_than_the_threshold_frees_nothing(charge: session.Charge) -> None:
    run = Lost(0)
    report, told = run.sent(charge), dict(run.abandoned())
    assert len(told) == run.plan.masking.threshold == 4
    told.popitem()
    with pytest.raises(LocalProtocolError, match="3 clients have signed 1 lists of this session, and 4 on one list"):
        run.free(charge, report, told)
    assert still_charged(charge)


def test_a_list_that_has_the_client_on_it_frees_nothing(charge: session.Charge) -> None:
    run = Lost(0)
    report = run.sent(charge, faults=())
    with pytest.raises(LocalProtocolError, match="its upload is in the sum"):
        run.free(charge, report, run.words)
    assert still_charged(charge)


@RUNS
def test_what_others_wrote_under_the_wrong_name_or_not_at_all_frees_nothing(charge: session.Charge, kind) -> None:
    run = kind(0)
    report, told = run.sent(charge), run.abandoned()
    first = min(told)
    for lie in (b"", bytes(1 << 12), told[first][:-1] + bytes([told[first][-1] ^ 1]), told[first + 1]):
        with pytest.raises(LocalProtocolError, match="is not its signed"):
            run.free(charge, report, {**told, first: lie})
    assert still_charged(charge)


def test_a_protocol_without_proof_and_a_charge_without_a_ledger_free_nothing(
    charge: session.Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Lost(0)
    for change in ({"roster": run.roster.digest}, {"roster": None}):
        with pytest.raises(LocalProtocolError, match="roster=Roster"):
            run.free(charge, b"", {}, **change)
    with pytest.raises(LocalProtocolError, match="a receipt of this protocol has 68 bytes"):
        run.free(charge, b"", {})
    with monkeypatch.context() as patch:
        unproved = replace((row := PROTOCOLS["interactive"]).machines, prove_excluded=None)
        patch.setattr("privstats.session.charges.protocol_of", lambda _: replace(row, load_machines=lambda: unproved))
        with pytest.raises(LedgerError, match="has no proof that an upload is in no sum"):
            run.free(charge, b"", {})
    run = Run(0)
    with pytest.raises(LedgerError, match="must be the Charge"):
        run.free("uncharged", b"", {})
    for change in ({"panel": None}, {"panel": "helpers"}):
        with pytest.raises(LocalProtocolError, match="panel=Panel"):
            run.free(charge, b"", {}, **change)
    with pytest.raises(LocalProtocolError, match="statements by place"):
        run.free(charge, b"", [])


def test_the_ledger_itself_frees_single_releases_that_left(charge: session.Charge) -> None:
    run, ledger = Run(0), charge.ledger
    run.sent(charge)
    (entry,) = account(charge).entries
    with pytest.raises(LedgerError, match="is another upload"):
        ledger.free(entry, upload=b"", proof=b"")
    cost = dp.Cost(run.plan.schema, run.plan.privacy, None)
    ledger.spend_course("courses", course=run.plan.digest, run=b"course", nodes=2, costs=[cost, cost])
    (course,) = ledger.account("courses").entries
    ledger.finish(course, b"u")
    with pytest.raises(LedgerError, match="pays for a course"):
        ledger.free(course, upload=b"u", proof=b"")


def test_no_round_begins_under_a_spend_whose_upload_was_sent_or_freed(charge: session.Charge) -> None:
    """By direct calls a freed entry began a round, and its release cost nothing."""
    run, ledger = Run(0), charge.ledger
    run.sent(charge)
    (entry,) = account(charge).entries
    with pytest.raises(LedgerError, match="new run name"):
        ledger.mark_started(entry, 0)
    ledger.free(entry, upload=entry.upload, proof=b"\1" * 32)
    with pytest.raises(LedgerError, match="new run name"):
        ledger.mark_started(entry, 0)
    assert account(charge).entries[0].begun == ()
    begun = replace(account(charge).entries[0], begun=(0,))
    assert begun.counts  # in a ledger in which an older version let it begin


def test_a_record_that_frees_what_nobody_spent_is_damage() -> None:
    from privstats.dp.ledger.accounts import LedgerState
    from privstats.dp.ledger.records import Freed

    with pytest.raises(LedgerError, match="frees a release that no record allowed"):
        LedgerState.of([Freed(at="now", spend=1, proof="")])
