"""The loop, for every protocol: whatever network and nodes do, an exact sum, or a session that waits for a next run."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.engines.faults import Fault
from privstats.engines.network.statements import sign_reply
from privstats.engines.network.transport import Deadlines, Reply
from privstats.errors import AggregationError, PlanError
from privstats.secagg import Identity, Roster
from privstats.secagg.machines import Outbox, StepStatus
from tests.engines.network.fake import MachineNet
from tests.secagg.interactive.cohorts import cohort_of, stream
from tests.secagg.test_protocols import OpenClient, OpenParameters, OpenServer
from tests.secagg.upload.cohorts import uploads_of

STEPS = {
    "interactive": ("advertise", "share", "check", "mask", "agree", "unmask"),
    "split": ("report", "check", "reveal"),
}
FAULTS = ["drop", "duplicate", "truncate", "flip", "extend", "replay", "late"]
OF_HELPERS = (("split", "check"), ("split", "reveal"))
EACH_STEP = [(protocol, step) for protocol, steps in STEPS.items() for step in steps]


def network(protocol: str, faults=()):
    """A fresh cohort of six and its network, and what the sum over some of them is."""
    if protocol == "interactive":
        cohort = cohort_of()
        cohort.server.start()
        return MachineNet(cohort.server, cohort.clients, cohort.identities, faults=faults), cohort.sum_over
    run = uploads_of(helpers=2)
    offers = b"".join(offer.encode() for offer in run.panel.offers)
    identities = [*run.identities, *run.members[1:]]
    return MachineNet(run.leader, [*run.clients, *run.helpers], identities, offers, faults), run.sum_over


def exact(net: MachineNet, sum_over) -> tuple[int, ...]:
    total, survivors = net.server.result
    assert np.array_equal(total.lift(), sum_over(survivors))
    return survivors


@pytest.mark.parametrize("protocol", STEPS)
def test_a_session_ends_in_the_exact_sum_with_one_line_per_step(protocol: str) -> None:
    net, sum_over = network(protocol)
    outcome = net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    assert outcome.shortfall is None
    assert tuple(report.step for report in outcome.steps) == STEPS[protocol] == net.server.steps
    assert all(report.missing == () and report.sent > 0 and report.received > 0 for report in outcome.steps)
    assert len(net.lines) == len(outcome.steps)
    assert "6 of 6 answered" in net.lines[0]


@pytest.mark.ci
@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize(("protocol", "step"), EACH_STEP)
def test_one_fault_costs_nobody(protocol: str, step: str, kind: str, direction: str) -> None:
    """Whoever is not heard is asked again, and a repeat gets the same answer."""
    peer = 6 if (protocol, step) in OF_HELPERS else 2
    net, sum_over = network(protocol, [Fault(step, peer, direction, kind, 777)])
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))


faults = st.builds(
    Fault,
    st.sampled_from([step for steps in STEPS.values() for step in steps]),
    st.integers(0, 7),
    st.sampled_from(["up", "down"]),
    st.sampled_from(FAULTS),
    st.integers(0, 1 << 16),
)


@pytest.mark.ci
@pytest.mark.parametrize("protocol", STEPS)
@given(st.lists(faults, max_size=6), st.dictionaries(st.integers(100, 107), st.floats(0, 900), max_size=3))
def test_faults_and_nodes_that_go_cost_parties_but_never_the_sum(protocol: str, ordered, goes) -> None:
    net, sum_over = network(protocol, ordered)
    net.goes = goes
    outcome = net.drive()
    if outcome.shortfall is None:
        exact(net, sum_over)
    else:
        net.goes = {}
        assert net.drive().shortfall is None
        exact(net, sum_over)


@pytest.mark.parametrize("protocol", STEPS)
def test_who_never_comes_is_left_out_at_the_deadline(protocol: str) -> None:
    net, sum_over = network(protocol)
    net.comes = {103: 1e9}
    outcome = net.drive(Deadlines(1000, 240))
    assert exact(net, sum_over) == (0, 1, 2, 4, 5)
    assert 1000 <= net.now < 1240
    assert outcome.steps[0].missing == (3,)
    assert "missing: 3" in net.lines[0]


@pytest.mark.parametrize("protocol", STEPS)
def test_who_comes_late_is_opened_when_it_comes(protocol: str) -> None:
    net, sum_over = network(protocol)
    net.comes = {103: 900.0}
    net.drive(Deadlines(1000, 240))
    assert exact(net, sum_over) == tuple(range(6))
    assert 900 <= net.now < 910


def some_leave_at(net: MachineNet, step: str) -> None:
    """Three clients and the first helper go as the server comes to a step."""
    gone, end_step = dict.fromkeys((102, 103, 104, 106), 0.0), net.server.end_step
    if step == net.server.step:
        net.goes = gone

    def ended():
        following = end_step()
        net.goes = gone if net.server.step == step else {}
        return following

    net.server.end_step = ended


@pytest.mark.parametrize(("protocol", "step"), EACH_STEP)
def test_too_few_at_a_deadline_lose_nothing_and_the_next_run_goes_on(protocol: str, step: str) -> None:
    net, sum_over = network(protocol)
    some_leave_at(net, step)
    step_status = net.drive().shortfall
    assert step_status.step == net.server.step == step
    assert step_status.waiting_for == ((6,) if (protocol, step) in OF_HELPERS else (2, 3, 4))
    net.goes, pushed = {}, len(net.pushed)
    assert net.drive().shortfall is None
    assert exact(net, sum_over) == tuple(range(6))
    asked = {node for node, _, _ in net.pushed[pushed : pushed + len(step_status.waiting_for)]}
    assert asked == {100 + place for place in step_status.waiting_for}


@pytest.mark.parametrize(("protocol", "step"), [(protocol, steps[1]) for protocol, steps in STEPS.items()])
def test_a_map_that_was_lost_is_made_anew_by_asking(protocol: str, step: str) -> None:
    """The next run meets the same peers at nodes of other numbers, and knows none of them."""
    net, sum_over = network(protocol)
    some_leave_at(net, step)
    assert net.drive().shortfall is not None
    other = MachineNet(net.server, [], net.identities, net.panel)
    other.nodes = [200 + place for place in range(len(net.machines))]
    other.answer = lambda node, kind, data: net.answer(node - 100, kind, data)
    assert other.drive().shortfall is None
    assert exact(net, sum_over) == tuple(range(6))


def test_a_node_that_claims_a_place_that_another_has_proved_is_asked_nothing_more() -> None:
    """One home on two machines, or a copy of a key: the first to prove a place keeps it."""
    net, sum_over = network("interactive")
    net.nodes.append(199)
    plain = net.answer
    net.answer = lambda node, kind, data: plain(102 if node == 199 else node, kind, data)
    net.comes = {105: 200.0}
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    assert "node node-199 claims to be party 2, which node node-102 has proved to be" in net.lines
    assert [kind for node, kind, _ in net.pushed if node == 199] == ["open"]


def test_a_node_that_has_become_another_party_is_that_party() -> None:
    """Its folder was replaced: what it proves now counts for more than what was kept."""
    net, sum_over = network("interactive")
    net.context.registry.claim(102, 3)
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    assert net.context.registry.place_of(102) == 2


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("wrong_plan", 'node node-102 runs another plan: compare "privstats plan show" digests, here abababab...'),
        ("no_data", "party 2 cannot measure its records: its operator has the reason"),
        ("nonsense", "party 2 has failed: its operator has the reason"),
    ],
)
def test_a_party_that_says_it_will_not_answer_is_not_waited_for(code: str, line: str) -> None:
    net, sum_over = network("interactive")
    net.instead(102, "open", signed(net, 2, code))
    net.drive()
    assert exact(net, sum_over) == (0, 1, 3, 4, 5)
    assert net.now < 10
    assert net.lines.count(line) == 1


def signed(net: MachineNet, key: int, code: str) -> Reply:
    """A refusal in party 2's name, signed by a party."""
    return Reply(code, sign_reply(net.identities[key], 2, net.opening, code))


@pytest.mark.parametrize("code", ["wrong_plan", "wrong_roster", "wrong_course", "refused", "stranger", "failed"])
def test_nodes_that_prove_nothing_do_not_close_an_opening(code: str) -> None:
    """Honest parties are on their way, or at work; as many strangers say that they will never answer."""
    net, sum_over = network("interactive")
    net.joined_by(197, 198, 199, code=code)
    net.comes = {102: 900.0, 103: 900.0}
    pull = net.pull

    def slowly(message: str, most: int) -> Reply | None:
        node = net.pushed[int(message.split()[1]) - 1][0]
        return None if node == 104 and net.now < 930 else pull(message, most)

    net.pull = slowly
    net.drive(Deadlines(3600, 240))
    assert exact(net, sum_over) == tuple(range(6))


def test_a_refusal_in_nobodys_name_from_a_partys_node_is_asked_for_again() -> None:
    net, sum_over = network("interactive")
    net.context.registry.claim(102, 2)
    net.instead(102, "open", signed(net, 3, "refused"))
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))


@pytest.mark.parametrize("code", ["busy", "disk", "damaged", "malformed", "too_large", "error:3", "error:5", "error:8"])
def test_who_cannot_answer_now_is_asked_again(code: str) -> None:
    net, sum_over = network("interactive")
    plain, tries = net.answer, []

    def answer(node: int, kind: str, data: bytes) -> Reply:
        if node == 102 and kind == "step":
            tries.append(net.now)
            if len(tries) < 3:
                return Reply(code)
        return plain(node, kind, data)

    net.answer = answer
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    due = 60 if code in ("disk", "malformed", "too_large") else 5
    assert due <= tries[1] - tries[0] < due + 2, "the loop looks every 2 s at least"
    said = [line for line in net.lines if line.startswith("party 2")]
    assert len(said) == (0 if code.startswith("error") else 1)


def test_an_answer_in_nobodys_name_is_malformed_and_accuses_a_node_only() -> None:
    net, sum_over = network("interactive")
    true = net.answer(102, "open", net.opening).data
    net.instead(102, "open", Reply("ok", b"\xff" * 4 + true[4:]), Reply("ok", true[:60]))
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    assert net.lines.count("node node-102: malformed") == 1


def test_a_word_for_another_question_proves_nothing() -> None:
    """Who could show an old answer could take a party's place, and it would never be asked."""
    net, _ = network("interactive")
    old = sign_reply(net.identities[2], 2, b"yesterday's opening", "ok", b"")
    net.instead(102, "open", *[Reply("ok", old)] * 9)
    net.drive(Deadlines(200, 200))
    assert net.context.registry.place_of(102) is None


def test_an_empty_answer_is_none() -> None:
    net, sum_over = network("interactive")
    net.instead(102, "step", Reply("ok"))
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))


def test_a_leader_whose_helpers_are_behind_asks_for_the_report_again(monkeypatch) -> None:
    net, sum_over = network("split")
    plain, told = net.server.receive, []

    def receive(sender: int, data: bytes):
        if sender == 2 and not told:
            told.append(sender)
            from privstats.errors import RemoteProtocolError

            raise RemoteProtocolError(2, "report", "busy", proven=False)
        return plain(sender, data)

    monkeypatch.setattr(net.server, "receive", receive)
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    assert net.now < 10


def test_a_push_that_is_not_taken_is_tried_again() -> None:
    net, sum_over = network("interactive")
    plain, tries = net.push, []

    def push(node: int, kind: str, data: bytes, *, ttl: float) -> str:
        if node == 102 and not tries:
            tries.append(node)
            return ""
        return plain(node, kind, data, ttl=ttl)

    net.push = push
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))


def test_the_loop_runs_a_protocol_that_it_has_never_heard_of() -> None:
    """One step, no panel, no order of messages that it could know."""
    parameters = OpenParameters(3, 2, Ring(((4, 32),)), b"plan")
    identities = [Identity.generate(stream(f"open {place}")) for place in range(3)]
    roster = Roster(tuple(each.public for each in identities), server=Identity.generate(stream("s")).public)
    values = [np.arange(4) + place for place in range(3)]
    clients = [
        OpenClient(parameters, parameters.ring.encode(value), index=place, identity=identities[place], roster=roster)
        for place, value in enumerate(values)
    ]
    net = MachineNet(OpenServer(parameters, roster=roster, identity=None), clients, identities)
    assert [report.step for report in net.drive().steps] == ["report"]
    assert np.array_equal(net.server.result[0].lift(), sum(values))


def test_a_step_that_nobody_can_save_ends_the_session_by_its_name() -> None:
    """All have answered and it still cannot be closed: waiting for the deadline, or the next run, would not help."""
    abort = AggregationError("only", "isolated", "nobody is left who could help")

    class Hopeless:
        steps, step, waiting_for, outbox = ("only",), "only", frozenset(), Outbox()
        parameters = SimpleNamespace(clients=1)

        def step_status(self) -> StepStatus:
            return StepStatus("only", (0,), (), abort)

        def end_step(self) -> None:
            raise abort

    net = MachineNet(Hopeless(), [], [])
    with pytest.raises(AggregationError, match="isolated"):
        net.drive()


def test_a_node_that_restarts_must_be_able_to_come_back_in_time() -> None:
    with pytest.raises(PlanError, match="step-seconds must be at least 120, because a node that restarts"):
        Deadlines(3600, 30)
    with pytest.raises(PlanError, match="open-seconds must be at least 120"):
        Deadlines(float("nan"), 600)
    assert Deadlines(1, 1, least=1).step_seconds == 1


@pytest.mark.parametrize("seconds", [math.inf, math.nan, 1e300, 366 * 86_400 + 1])
def test_a_deadline_that_never_comes_is_none(seconds: float) -> None:
    for name in ("open_seconds", "step_seconds"):
        with pytest.raises(PlanError, match=f"{name.replace('_', '-')} must be at (most|least)"):
            Deadlines(**{name: seconds})
    assert Deadlines() == Deadlines(3600, 600)


def test_two_answers_to_one_question_are_one() -> None:
    """The first reply was only slow, so the question was asked again."""
    net, sum_over = network("interactive")
    plain, asked = net.pull, {}

    def pull(message: str, most: int) -> Reply | None:
        node, kind, _ = net.pushed[int(message.split()[1]) - 1]
        asked.setdefault(message, net.now)
        slow = (node, kind) == (102, "step") and net.now < 100
        return None if slow else plain(message, most)

    net.pull = pull
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    assert [kind for node, kind, _ in net.pushed if node == 102][:3] == ["open", "step", "step"]
    assert net.now < 110


def test_a_node_that_has_gone_is_asked_as_soon_as_it_is_back() -> None:
    """It was killed with the question in its hands; waiting a minute for its answer would be a minute for all."""
    net, sum_over = network("interactive")
    plain = net.answer

    def answer(node: int, kind: str, data: bytes) -> Reply:
        if (node, kind) == (102, "step") and not net.comes:
            net.comes = {102: 20.0}
            return Reply("error:8")
        return plain(node, kind, data)

    net.answer = answer
    net.drive()
    assert exact(net, sum_over) == tuple(range(6))
    assert 20 <= net.now < 22
    assert net.lines.count("party 2 is offline, asked again when it returns") == 1


def test_a_node_that_will_not_answer_is_not_asked_again_when_it_is_back() -> None:
    net, sum_over = network("interactive")
    plain = net.answer

    def answer(node: int, kind: str, data: bytes) -> Reply:
        if (node, kind) == (102, "step"):
            net.comes = {102: 20.0}
            return Reply("ledger")
        return plain(node, kind, data)

    net.answer = answer
    net.comes = {103: 10.0}
    net.drive()
    assert exact(net, sum_over) == (0, 1, 3, 4, 5)
