"""The table of protocols: a second one is a row and its room, and plan, simulation, journals and command line follow.

The second one here is a made-up protocol of one step that masks nothing: what is tried is who else has to know it.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats import session
from privstats.encoding import Ring, RingVector
from privstats.engines import loopback
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.errors import AggregationError, LocalProtocolError, PlanError, RemoteProtocolError
from privstats.randomness import seeded
from privstats.review import facts
from privstats.secagg.machines import Aggregator, Masking, Outbox, Peer, StepStatus
from privstats.secagg.masking_facts import masking_facts, masking_numbers
from privstats.secagg.protocols import PROTOCOLS, Machines, MaskingProtocol, protocol_of
from privstats.testing import dropout_schedules
from privstats.workflows.simulate import run
from tests.planted import plant

KEY = bytes(32)


@dataclass(frozen=True)
class OpenParameters:
    """Everybody sends its vector as it is."""

    clients: int
    min_survivors: int
    ring: Ring
    plan_digest: bytes

    protocol: ClassVar[str] = "interactive"  # the only name that a plan asks for today
    steps: ClassVar[tuple[str, ...]] = ("report",)
    upload_step: ClassVar[str] = "report"
    failure: ClassVar[float] = 0.0
    failure_basis: ClassVar[dict[str, int]] = {}
    remedy: ClassVar[str] = "mask something"
    condition: ClassVar[str] = "every party is honest"

    def check_roster(self, roster) -> None:
        assert len(roster) == self.clients

    @property
    def min_listed(self) -> int:
        return self.min_survivors

    @property
    def upload_bytes(self) -> int:
        return self.ring.wire_bytes + 5

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(b"open" + self.plan_digest).digest()

    @classmethod
    def solve(
        cls, *, clients, min_survivors, colluders, ring, plan_digest, graph, helpers, noisy_helpers
    ) -> "OpenParameters":
        if graph != "auto":
            raise PlanError(f"graph must be auto, got {graph!r}")
        return cls(clients, min_survivors, ring, plan_digest)


@masking_facts.register
def _facts(parameters: OpenParameters) -> list[str]:
    return [f"{parameters.clients} clients send their vectors in the clear"]


@masking_numbers.register
def _numbers(parameters: OpenParameters) -> dict[str, Any]:
    del parameters
    return {"masks": 0, "log2": {"worst": float("-inf")}}


class OpenClient:
    """Answers the opening with its vector."""

    faults, ended, charged = (), "", False

    def __init__(self, parameters, vector, *, index, identity, roster, entropy=None, on_upload=None) -> None:
        self.parameters, self.index, self.step = parameters, index, "report"
        self.on_upload, self.answer, self.upload, self.packed = on_upload, b"", b"", vector.pack()

    def start(self) -> list[tuple[str, bytes]]:
        return []

    def receive(self, data) -> list[tuple[str, bytes]]:
        if self.step == "report":
            self.upload = hashlib.sha256(self.packed).digest()
            if self.on_upload is not None:
                self.on_upload(self.upload)
            self.answer, self.step = self.packed, "done"
        return [("server", self.answer)]

    def export(self, key) -> bytes:
        return self.packed

    def discard(self) -> None:
        self.step = "failed"

    @staticmethod
    def check_place(parameters, *, index, identity, roster) -> None:
        pass

    @classmethod
    def resume(cls, sealed, key, *, parameters, index, identity, roster, threads=1, on_upload=None) -> "OpenClient":
        vector = parameters.ring.unpack(sealed)
        return cls(parameters, vector, index=index, identity=identity, roster=roster, on_upload=on_upload)


class OpenServer:
    """Adds what comes."""

    faults, steps, accepted, openings = (), OpenParameters.steps, 0, {}

    def __init__(self, parameters, *, roster, identity, entropy=None, noise_due=False) -> None:
        self.parameters, self.roster, self.noise_due, self.step = parameters, roster, noise_due, "report"
        self.packed: dict[int, bytes] = {}

    @property
    def waiting_for(self) -> frozenset[int]:
        return frozenset(range(self.parameters.clients)) - set(self.packed)

    @property
    def outbox(self) -> Outbox:
        return Outbox(range(self.parameters.clients), lambda _: b"send it") if self.step == "report" else Outbox()

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        total = self.parameters.ring.zeros()
        for packed in self.packed.values():
            total.add(self.parameters.ring.unpack(packed))
        return total, tuple(sorted(self.packed))

    def awaits(self, client: int) -> bool:
        return client in self.waiting_for

    def start(self) -> Outbox:
        return self.outbox

    def receive(self, sender, data) -> Outbox:
        self.packed[sender] = bytes(data)
        self.accepted += 1
        return Outbox()

    def step_status(self) -> StepStatus:
        return StepStatus(self.step, tuple(sorted(self.packed)), tuple(sorted(self.waiting_for)), None)

    def end_step(self) -> Outbox:
        self.step = "done" if len(self.packed) >= self.parameters.min_survivors else "failed"
        if self.step == "failed":
            raise AggregationError("report", "too_few_clients", "too few")
        return Outbox()

    def abandon(self, code="abandoned") -> Outbox:
        return Outbox()

    def export(self, key) -> bytes:
        return msgspec.msgpack.encode(self.packed)

    @classmethod
    def resume(cls, sealed, key, *, parameters, roster, identity, threads=1) -> "OpenServer":
        server = cls(parameters, roster=roster, identity=identity)
        server.packed = msgspec.msgpack.decode(sealed, type=dict[int, bytes])
        return server


@pytest.fixture
def open_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch,
        PROTOCOLS,
        "interactive",
        MaskingProtocol(
            OpenParameters,
            lambda: Machines(OpenClient, OpenServer, lambda it: it.upload_bytes, lambda it: len(b"send it")),
        ),
    )


def plan(**changes) -> ps.Plan:
    return ps.Plan(
        schema=ps.ClassSchema(3, 4, "NA", clip_norm=1.0), cohort=ps.Cohort(5, 3, 100), privacy=ps.NoPrivacy(), **changes
    )


RNG = np.random.default_rng(0)
SHARDS = [(RNG.normal(size=(6, 4)), RNG.integers(0, 3, 6)) for _ in range(5)]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_with_a_panel_has_helpers_and_one_without_has_none(name):
    row = PROTOCOLS[name]
    assert row.has_panel == (row.machines.helper is not None)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_parameters_of_a_row_lead_back_to_it(name):
    """Machines are made and resumed by the name in the parameters: another row's name would give its machines."""
    panel = tuple(ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2 * PROTOCOLS[name].has_panel))
    assert protocol_of(plan(protocol=name, panel=panel).masking) is PROTOCOLS[name]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_place_where_a_protocol_is_chosen_names_it(name):
    docs = Path(__file__).parents[2] / "docs"
    (head,) = (line for line in (docs / "which_protocol.md").read_text("utf-8").splitlines() if line[:4] == "| | ")
    (setting,) = (line for line in (docs / "plan.md").read_text("utf-8").splitlines() if line[:12] == "| `protocol`")
    assert (f"`{name}`" in head, f'`"{name}"`' in setting, f'``"{name}"``' in ps.Plan.__doc__) == (True, True, True)


def test_a_plan_in_the_place_of_its_masking_is_refused_in_words():
    with pytest.raises(LocalProtocolError, match="got Plan: pass plan.masking"):
        protocol_of(plan())


@pytest.mark.parametrize("graph", ["ring", ""])
def test_a_word_that_is_no_graph_is_refused_by_the_protocol(graph):
    with pytest.raises(PlanError, match="graph must be one of auto, complete, sparse, robust"):
        plan(graph=graph)


def test_another_protocol_refuses_the_words_of_the_first(open_protocol):
    with pytest.raises(PlanError, match="graph must be auto"):
        plan(graph="complete")


@pytest.mark.parametrize(
    ("interface", "machine"),
    [(Masking, OpenParameters(5, 3, Ring(((1, 8),)), KEY)), (Peer, OpenClient), (Aggregator, OpenServer)],
)
def test_the_made_up_protocol_has_all_that_is_asked_of_one(interface, machine):
    if isinstance(machine, type):
        of = {"parameters": plan().masking, "roster": None, "identity": None}
        machine = machine(**of) if machine is OpenServer else machine(vector=plan().ring.zeros(), index=0, **of)
    assert [name for name in vars(interface) if not name.startswith("_") and not hasattr(machine, name)] == []


def test_plan_budget_and_facts_follow_the_protocol(open_protocol):
    subject = plan()
    assert facts(subject)[0] == "5 clients send their vectors in the clear"
    assert subject.budget().promise.endswith("the total is released as it is, while every party is honest")
    assert subject.budget().upload_bytes == subject.ring.wire_bytes + 5


def test_plan_show_follows_the_protocol(open_protocol, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from privstats.cli.plan import show

    (tmp_path / "plan.toml").write_text(plan().to_toml())
    show(tmp_path / "plan.toml")
    shown = json.loads(capsys.readouterr().out)
    assert shown["masking"] == {"masks": 0, "log2": {"worst": None}}
    assert shown["upload_bytes"] == plan().ring.wire_bytes + 5


def test_a_simulation_follows_the_protocol(open_protocol):
    done = run(plan(), SHARDS, {"report": {1}}, seeded(0))
    assert done.exact
    assert done.release.survivors == (0, 2, 3, 4)
    assert set(done.seconds) >= {"secagg: report"}
    with pytest.raises(PlanError, match="unknown step 'mask'; the steps are report"):
        run(plan(), SHARDS, {"mask": {1}})
    with pytest.raises(PlanError, match=r'for example \{"report": \{1, 4\}\}'):
        run(plan(), SHARDS, 7)


def test_an_implausible_sum_is_refused_at_the_protocols_last_step(open_protocol):
    subject = plan()
    wild = subject.ring.encode(np.full(subject.layout.size, 1 << 20))
    with pytest.raises(AggregationError, match="at step 'report'"):
        session.aggregate_unmasked(subject, [wild] * 3)


def test_journals_follow_the_protocol(open_protocol, tmp_path: Path):
    subject = plan()
    moments = [ps.measure(subject.schema, *shard) for shard in SHARDS]
    cast = session.local_parties(subject, moments, seeded(1))
    place = {"parameters": subject.masking, "roster": cast.server.roster, "identity": None}
    with JournaledServer.create(tmp_path / "server", KEY, cast.server):
        pass
    for client in cast.clients:
        JournaledClient.create(tmp_path / f"{client.index}", KEY, client).close()
    clients = [JournaledClient.resume(tmp_path / f"{k}", KEY, index=k, **place) for k in range(5)]
    server = JournaledServer.resume(tmp_path / "server", KEY, **place)
    outcome = loopback.run(server, clients, dropouts={"report": {0}})
    assert outcome.survivors == (1, 2, 3, 4)
    assert server.release(subject).survivors == (1, 2, 3, 4)


def test_schedules_are_drawn_from_the_protocols_steps(open_protocol):
    subject = plan()

    @settings(max_examples=20, database=None)
    @given(st.data())
    def drawn(data):
        assert set(data.draw(dropout_schedules(subject))) <= {"report"}
        lost = data.draw(dropout_schedules(subject, survivable=False))
        with pytest.raises(AggregationError, match="too_few_clients"):
            run(subject, SHARDS, lost)

    drawn()


@pytest.mark.parametrize(("peer", "who"), [(3, "client 3 "), ("server", "the server "), ("helper 2", "helper 2 ")])
def test_a_peer_is_named_as_it_is(peer, who):
    assert str(RemoteProtocolError(peer, "check", "bad_box")).startswith(who + "broke the protocol")
