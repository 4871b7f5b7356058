"""A plan with a panel: one more row of the table of protocols, and no other plan's digest changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.secagg import Helper, HelperKeys, Identity, Leader, Panel, Roster
from privstats.secagg.upload.client import Client as UploadClient
from privstats.workflows.simulate import run
from tests.made import refused
from tests.secagg.interactive.cohorts import stream

PANEL = tuple(Identity.generate(stream(f"seat {place}")).public.hex() for place in range(3))
SCHEMA = ps.ClassSchema(classes=3, features=4, statistics="NA", clip_norm=1.0)
DP = {"epsilon": 4.0, "delta": 1e-5, "unit": "record", "adjacency": "add-remove"}


def plan_of(privacy=None, **change) -> ps.Plan:
    given = {
        "schema": SCHEMA,
        "cohort": ps.Cohort(clients=6, min_survivors=4, colluders=1, max_records=90),
        "privacy": privacy or ps.NoPrivacy(),
        "protocol": "split",
        "panel": PANEL,
    }
    return ps.Plan(**{**given, **change})


RNG = np.random.default_rng(0)
SHARDS = [(RNG.normal(size=(9, 4)), RNG.integers(0, 3, 9)) for _ in range(6)]


def test_the_panel_is_in_the_digest_and_in_the_file() -> None:
    plan = plan_of()
    assert ps.Plan.from_toml(plan.to_toml()) == plan_of(panel=list(PANEL)) == plan
    assert hash(plan_of(panel=list(PANEL))) == hash(plan)
    assert len({plan.digest, plan_of(panel=PANEL[:2]).digest, plan_of(panel=PANEL[::-1]).digest}) == 3
    assert (plan.masking.helpers, plan.masking.tolerated, plan.masking.protocol) == (2, 1, "split")
    assert plan.masking.plan_digest.hex() == plan.digest


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"panel": ()}, "needs a panel"),
        ({"panel": PANEL[:1]}, "needs a panel"),
        ({"graph": "complete"}, "leave graph at 'auto'"),
        ({"protocol": "interactive"}, "has no helpers: omit panel"),
        ({"protocol": "interactive", "panel": PANEL[:1]}, "omit panel, or choose protocol='split'"),
        ({"cohort": ps.Cohort(clients=6, min_survivors=4, colluders=3, max_records=90)}, "is alone in the sum"),
    ],
)
def test_a_panel_that_does_not_hold_together(change: dict, told: str) -> None:
    refused(ps.PlanError, told, plan_of, **change)


@pytest.mark.parametrize("model", [None, "central", "distributed", "local"])
def test_a_simulation_is_exact_and_names_the_plan_it_was_given(model: str | None) -> None:
    plan = plan_of(ps.Privacy(model=model, **DP) if model else None)
    done = run(plan, SHARDS, {"report": {1, 4}}, ps.randomness.seeded(1))
    assert done.exact
    assert (done.release.survivors, done.release.plan) == ((0, 2, 3, 5), plan)
    assert [sent > 0 for sent in done.bytes_sent] == [True, False, True, True, False, True]
    assert ps.simulate(plan, SHARDS, dropouts={"report": {2}}).survivors == (0, 1, 3, 4, 5)


def test_a_helper_that_vanishes_ends_the_run_by_name() -> None:
    refused(ps.AggregationError, "these have not answered: helper 2", run, plan_of(), SHARDS, {"check": {7}})
    refused(ps.PlanError, "clients are 0..5, and 7 is the last helper", run, plan_of(), SHARDS, {"check": {8}})


def test_clients_cannot_vanish_after_they_have_spoken() -> None:
    assert run(plan_of(), SHARDS, {"check": {0, 1, 2}, "reveal": {3}}).release.survivors == (0, 1, 2, 3, 4, 5)


@pytest.mark.nightly
@given(st.data())
def test_schedules_are_drawn_from_the_steps_of_split(data: st.DataObject) -> None:
    plan = plan_of()
    lost = data.draw(ps.testing.dropout_schedules(plan, survivable=False))
    assert set(lost) <= {"report"}
    refused(ps.AggregationError, "too_few_clients", run, plan, SHARDS, lost)
    assert run(plan, SHARDS, data.draw(ps.testing.dropout_schedules(plan))).exact


@pytest.mark.ci
def test_distributed_noise_has_its_variance_over_the_survivors() -> None:
    plan = plan_of(ps.Privacy(model="distributed", **DP))
    shards = [(np.zeros((0, 4)), np.zeros(0, int))] * 6
    drawn = [run(plan, shards, {"report": {0, 1}}, ps.randomness.seeded(seed)).release.vector for seed in range(40)]
    place, segment = plan.layout.slices[1], plan.layout.segments[1]
    noise = np.concatenate([vector[place] for vector in drawn]) / segment.scale
    assert noise.std() == pytest.approx(plan.noise.released_sigma(4)[segment.name], rel=0.15)


def test_plan_check_says_whom_split_trusts(privstats, tmp_path) -> None:
    (tmp_path / "plan.toml").write_text(plan_of(ps.Privacy(model="distributed", **DP)).to_toml())
    told = privstats("plan", "check", "plan.toml", cwd=tmp_path)
    text = " ".join(told.stdout.split())
    assert told.returncode == 0
    for part in (
        "the plan trusts that leader and helpers do not all work together",
        "if leader and all helpers work together they read every client's vector",
        "can shift the sum by anything in the ring",
        "a second run over the same data is a second release",
        "while leader and helpers do not all work together and ",
    ):
        assert part in text
    assert '"helpers": 2' in privstats("plan", "show", "plan.toml", cwd=tmp_path).stdout
    assert "1 helper compute" in ps.review.facts(plan_of(panel=PANEL[:2]))[0]


def test_plan_check_says_whom_the_interactive_protocol_trusts() -> None:
    text = " ".join(ps.review.facts(plan_of(protocol="interactive", panel=())))
    assert "masking trusts no server; if the server and more than 1 clients work together" in text
    assert "can shift the sum by anything in the ring" in text


# --- session ---


class Parties:
    """Six parties and a panel under their own plan."""

    def __init__(self) -> None:
        self.plan, self.identities = plan_of(), [Identity.generate(stream(f"party {i}")) for i in range(6)]
        self.members = [Identity.generate(stream(f"seat {place}")) for place in range(3)]
        publics = tuple(identity.public for identity in self.identities)
        self.roster = Roster.numbered(publics, server=self.members[0].public, label="tests", counter=0)
        self.keys = [
            HelperKeys(member, place, self.plan.masking, self.roster) for place, member in enumerate(self.members)
        ]
        offers = tuple(keys.offer for keys in self.keys)
        self.panel = Panel(tuple(member.public for member in self.members), offers)

    def client(self, **other):
        moments = ps.measure(SCHEMA, *SHARDS[0])
        return ps.session.client(self.plan, moments, index=0, identity=self.identities[0], roster=self.roster, **other)


def test_machines_of_a_plan_with_a_panel() -> None:
    parties = Parties()
    assert parties.client(panel=parties.panel).start()
    common = {"roster": parties.roster, "panel": parties.panel}
    assert ps.session.server(parties.plan, keys=parties.keys[0], **common).steps == ("report", "check", "reveal")
    assert ps.session.helper(parties.plan, keys=parties.keys[1], **common).index == 6


def test_keys_that_can_be_drawn_again_are_refused_unless_a_test_allows_them() -> None:
    parties = Parties()
    parties.keys = [
        HelperKeys(member, place, parties.plan.masking, parties.roster, entropy=ps.randomness.seeded(place).bytes)
        for place, member in enumerate(parties.members)
    ]
    panel = Panel(tuple(member.public for member in parties.members), tuple(keys.offer for keys in parties.keys))
    common = {"roster": parties.roster, "panel": panel}
    with pytest.raises(ps.RandomnessError, match="these keys are from a reproducible generator"):
        ps.session.server(parties.plan, keys=parties.keys[0], **common)
    with pytest.raises(ps.RandomnessError, match="these keys are from a reproducible generator"):
        ps.session.helper(parties.plan, keys=parties.keys[1], **common)
    masking = parties.plan.masking
    for kind, keys in ((Leader, parties.keys[0]), (Helper, parties.keys[1])):  # the machines themselves, too
        refused(ps.RandomnessError, "these keys are from a reproducible generator", kind, masking, keys=keys, **common)
    place = {"index": 0, "identity": parties.identities[0], "entropy": ps.randomness.seeded(5).bytes, **common}
    vector = masking.ring.zeros()
    refused(ps.RandomnessError, "can unmask the vector", UploadClient, masking, vector, **place)
    assert UploadClient(masking, vector, allow_reproducible=True, **place).step == "report"
    assert ps.session.server(parties.plan, keys=parties.keys[0], allow_reproducible=True, **common).step == "report"
    assert ps.session.helper(parties.plan, keys=parties.keys[1], allow_reproducible=True, **common).step == "check"
    secure_keys = HelperKeys(
        parties.members[2], 2, parties.plan.masking, parties.roster, entropy=ps.randomness.secure().bytes
    )
    assert secure_keys.reproducible is False


def test_what_a_panel_needs_is_asked_for_in_words() -> None:
    parties = Parties()
    refused(ps.LocalProtocolError, "the plan names a panel: pass panel=", parties.client)
    with pytest.raises(ps.LocalProtocolError, match="need keys=HelperKeys"):
        ps.session.server(parties.plan, parties.roster, panel=parties.panel)
    plain = plan_of(protocol="interactive", panel=())
    refused(ps.LocalProtocolError, "identity must be an Identity", ps.session.server, plain, parties.roster)
    refused(ps.LocalProtocolError, "panel must be a Panel, got list", parties.client, panel=[])
    with pytest.raises(ps.LocalProtocolError, match="panel must be a Panel, got list"):
        ps.session.server(plain, parties.roster, identity=parties.members[0], panel=[])  # type: ignore[arg-type]
    with pytest.raises(ps.LocalProtocolError, match="roster must be a Roster"):
        ps.session.helper(parties.plan, keys=parties.keys[1], roster=None, panel=parties.panel)
    with pytest.raises(ps.LocalProtocolError, match="has no helpers"):
        ps.session.helper(plain, keys=parties.keys[1], roster=parties.roster, panel=parties.panel)
    with pytest.raises(ps.LocalProtocolError, match="not the panel that the plan names"):
        ps.session.server(plain, parties.roster, identity=parties.members[0], panel=parties.panel)
