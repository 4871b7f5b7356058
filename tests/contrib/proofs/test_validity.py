"""The table of a plan that asks for proofs: what it says, what it refuses by name, and a session under it."""

import numpy as np
import pytest

import privstats as ps
from privstats import session
from privstats.contrib.proofs import of_plans as claims
from privstats.contrib.proofs.claims import statement_of
from privstats.dp import Ledger
from privstats.encoding import flatten
from privstats.engines import loopback
from privstats.errors import DataError, PlanError
from privstats.plan import Validity
from privstats.review import facts
from privstats.schema import COUNT_SCALE
from privstats.workflows.report import explanations
from tests.plan.test_split import DP, PANEL, plan_of

pytestmark = pytest.mark.filterwarnings("ignore:validity is experimental")

NAB = ps.ClassSchema(classes=3, features=4, statistics="NAB", clip_norm=1.0)
NAS = ps.ClassSchema(classes=3, features=4, statistics="NAS", clip_norm=1.0)
NA = ps.ClassSchema(classes=3, features=4, statistics="NA", clip_norm=1.0)
RIDGE = ps.RidgeSchema(4, clip_norm=1.0, target_bound=2.0, folds=2)
TARGETS = ps.RidgeSchema(4, 3, clip_norm=1.0, target_bound=2.0, folds=2)
COUNTS = ps.CountSchema(
    variables=(ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60, 120))), tables=(("sex", "age"), ("sex",))
)
MOMENTS = Validity("moments", most_records=9)
PANEL_NOISE = ps.Privacy(model="panel", **DP)
CLIENT = {**DP, "unit": "client", "max_records_per_client": 9, "client_clip": 3}
CLIPPED = ps.Privacy(model="panel", **CLIENT)


def proved(privacy=None, **change) -> ps.Plan:
    return plan_of(privacy, **{"schema": NAB, "validity": MOMENTS, **change})


def held(schema: ps.schema.Schema, seed: int = 0) -> list:
    """Nine records of each of six clients."""
    rng = np.random.default_rng(seed)
    if isinstance(schema, ps.CountSchema):
        return [ps.measure(schema, {"sex": rng.choice(["f", "m"], 9), "age": rng.uniform(0, 120, 9)}) for _ in range(6)]
    if isinstance(schema, ps.RidgeSchema):
        shape = (9, schema.targets) if schema.targets > 1 else 9
        return [ps.measure(schema, rng.normal(size=(9, 4)), rng.normal(size=shape)) for _ in range(6)]
    return [ps.measure(schema, rng.normal(size=(9, 4)), rng.integers(0, 3, 9)) for _ in range(6)]


def test_the_table_is_in_the_file_and_the_digest_and_plans_without_it_keep_theirs() -> None:
    plan, plain = proved(), plan_of(schema=NAB)
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    assert ps.Plan.from_toml(plan.to_toml()).validity == MOMENTS
    assert "validity" not in plain.to_toml()
    assert plain.digest == plan_of(schema=NAB, validity=None).digest
    others = [proved(validity=Validity(level, most)) for level, most in (("moments", 8), ("norm", 9))]
    assert len({plain.digest, plan.digest, *(other.digest for other in others)}) == 4
    assert len({each.masking.digest for each in (plain, plan, *others)}) == 4
    with pytest.warns(UserWarning, match="validity is experimental"):
        proved()


def test_the_officer_reads_what_a_liar_can_invent() -> None:
    of_lies = "True sums from a party that lies: "
    (said,) = (line for line in explanations.not_promised(proved(validity=MOMENTS)) if line.startswith(of_lies))
    (without,) = (line for line in explanations.not_promised(proved(validity=None)) if line.startswith(of_lies))
    assert f"invent {MOMENTS.most_records} records" in said
    assert "by anything" not in said
    assert "by anything" in without


REFUSED = {
    "another level": (
        lambda: Validity("all", 9),
        "validity.level needs the prover 'all', .*installed: moments, norm",
    ),
    "none by name": (lambda: Validity("none", 9), "omit validity for no proof"),
    "no number": (lambda: Validity("norm", True), "must be an integer of at least 1, got True"),
    "no records": (lambda: Validity("norm", 0), "at least 1, got 0"),
    "another type": (lambda: proved(validity="moments"), "validity must be a Validity or None, got str"),
    "another protocol": (lambda: proved(protocol="interactive", panel=()), "protocol='interactive' has none: choose"),
    "noise of clients": (
        lambda: proved(ps.Privacy(model="distributed", **DP)),
        "model='distributed' adds: choose model='panel' or 'central'",
    ),
    "local noise": (lambda: proved(ps.Privacy(model="local", **DP)), "model='local' adds"),
    "a node of a stream": (lambda: proved(spare_bits=3), "a stream weighs sums"),
    "a stream": (lambda: ps.Stream(proved(ps.Privacy(model="central", **DP)), epochs=2), "a stream weighs sums"),
    "more than all": (lambda: proved(validity=Validity("norm", 91)), "most_records=91 exceeds cohort.max_records=90"),
    "fewer than a client has": (
        lambda: proved(CLIPPED, validity=Validity("moments", 8)),
        "most_records=8 is below privacy.max_records_per_client=9",
    ),
    "too coarse": (
        lambda: proved(schema=ps.ClassSchema(3, 4, "NAB", 1.0, grid_bits=5)),
        "grid_bits of at least 6, got 5",
    ),
    "a schema without a statement": (
        lambda: proved(schema=ps.ClassSchema(3, 4, "NAD", 1.0)),
        "no statement about task='classes' with statistics 'NAD', only about classes with 'NAB'",
    ),
    "sums of too many features alone": (
        lambda: proved(schema=ps.ClassSchema(3, 513, "NA", 1.0)),
        "with statistics 'NA', only about classes with 'NAB'",
    ),
    "a clip of several targets": (lambda: proved(CLIPPED, schema=TARGETS), "task='ridge' with statistics 'Ghq' under"),
    "a clip that only NAB has room for": (lambda: proved(CLIPPED, schema=NAS), "'NAS' under privacy.client_clip"),
    "norms of counts": (lambda: proved(schema=COUNTS, validity=Validity("norm", 9)), "counts are proved cell by cell"),
    "a task without a norm": (
        lambda: proved(schema=ps.WithinSchema(3, 4, clip_norm=1.0, pull=1.0, n_max=9), validity=Validity("norm", 9)),
        "'norm' has no statement about task='within'",
    ),
    "norms of third powers": (
        lambda: proved(schema=ps.ClassSchema(3, 4, "NADTF", 1.0), validity=Validity("norm", 9)),
        "'norm' has no statement about T and F: omit validity",
    ),
    "too long a vector": (
        lambda: proved(schema=ps.ClassSchema(3, 1500, "NAB", 1.0)),
        "at most 1,000,000 entries, and this vector has 1,130,253",
    ),
    "too many cells": (
        lambda: proved(schema=ps.CountSchema((ps.Bins("a", tuple(range(10_002))),), (("a",),))),
        "at most 10,000 cells, and these tables have 10,001",
    ),
    "a grid that leaves records": (
        lambda: proved(schema=ps.ClassSchema(3, 400, "NAB", 1.0, grid_bits=6)),
        "proofs allow 1.33 records beyond validity.most_records=9, and 1 is the limit; raise schema.grid_bits",
    ),
}


def test_a_vector_that_is_too_long_is_refused_before_anything_grows_with_it(monkeypatch) -> None:
    monkeypatch.setattr(claims, "statement_of", lambda claim: pytest.fail("a statement was built"))
    with pytest.raises(PlanError, match="at most 1,000,000 entries"):
        proved(schema=ps.ClassSchema(2, 32_000, "NAB", 1.0))


def test_the_largest_tables_are_proved() -> None:
    assert sum(proved(schema=ps.CountSchema((ps.Bins("a", tuple(range(10_001))),), (("a",),))).claim.sizes) == 10_000


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_proved_is_refused_by_name(case: str) -> None:
    make, told = REFUSED[case]
    with pytest.raises(PlanError, match=told.replace("(", r"\(")):
        make()


def test_files_are_refused_with_the_place() -> None:
    text = plan_of(schema=NAB).to_toml()
    for table, told in (
        ('[validity]\nlevel = "moments"\n', "validity lacks most_records"),
        ('[validity]\nlevel = "moments"\nmost_records = 9\nmost = 1\n', "validity has unknown keys 'most'"),
        ('[validity]\nlevel = "all"\nmost_records = 9\n', "validity.level needs the prover 'all'"),
    ):
        with pytest.raises(PlanError, match=told):
            ps.Plan.from_toml(f"{text}\n{table}")
    with pytest.raises(PlanError, match="validity must be a table"):
        ps.Plan.from_toml(text.replace("version = 1", 'version = 1\nvalidity = "moments"'))


def test_the_largest_number_of_records_is_named() -> None:
    schema, many = ps.ClassSchema(10, 64, "NAB", 1.0), ps.Cohort(6, 4, 10_000_000, 1)
    with pytest.raises(PlanError, match="at most 156544 at grid_bits=12; lower it, or grid_bits"):
        proved(schema=schema, cohort=many, validity=Validity("moments", 156_545))
    assert proved(schema=schema, cohort=many, validity=Validity("moments", 156_544)).masking.statement is not None


def test_wire_steps_are_whole_multiples_and_every_segment_has_room() -> None:
    plan = proved(PANEL_NOISE)
    factors = {segment.name: part[1] for segment, part in zip(plan.layout.segments, plan.ring.parts, strict=True)}
    assert factors == {"N": 4**12 // COUNT_SCALE, "A": 2**12, "B.diag": 1, "B.off": 1}
    assert [room.bits for room in plan.headroom] == [49, 49, 61, 61]
    assert all(room.factor > 1 for room in plan.headroom)
    vector = flatten(held(NAB)[0])
    assert np.array_equal(plan.ring.encode(vector).lift(), vector)


def test_a_plan_says_what_is_proved_and_what_is_not() -> None:
    told = "\n".join(facts(proved()))
    assert "EXPERIMENTAL: every client proves that its sums are of at most 9 fractional records" in told
    assert "a lying client can invent 9 records, 0.1 of all that the plan admits" in told
    assert "any one of leader and helpers can make the proof of any honest client fail" in told
    assert "masking proves nothing about inputs" not in told
    assert "does not protect class moments" in "\n".join(facts(proved(validity=Validity("norm", 9))))
    assert "EXPERIMENTAL" not in "\n".join(facts(plan_of(schema=NAB)))


@pytest.mark.parametrize(
    ("schema", "validity", "privacy"),
    [
        (NAB, MOMENTS, None),
        (NAB, MOMENTS, CLIPPED),
        (NAB, Validity("norm", 9), PANEL_NOISE),
        (NAS, MOMENTS, None),
        (NA, MOMENTS, None),
        (RIDGE, MOMENTS, None),
        (TARGETS, MOMENTS, PANEL_NOISE),
        (COUNTS, MOMENTS, None),
        (COUNTS, MOMENTS, CLIPPED),
    ],
)
def test_sessions_release_what_the_same_vectors_release_without_proofs(schema, validity, privacy) -> None:
    """Over the machines: honest reports of every statement pass, and the sum is the exact one."""
    plan = plan_of(privacy, schema=schema, validity=validity)
    parts = held(schema)
    parties = session.local_parties(plan, parts)
    outcome = loopback.run(parties.server, parties.clients, helpers=parties.helpers)
    assert (outcome.survivors, parties.server.faults) == ((0, 1, 2, 3, 4, 5), ())
    if privacy is None:
        exact = np.sum([flatten(each) for each in parts], axis=0)
        assert np.array_equal(outcome.total.lift(), exact)
        with_proofs = session.release(plan, outcome.total, outcome.survivors)
        assert with_proofs.moments == session.aggregate_unmasked(plan_of(schema=schema), parts).moments
    factors = np.concatenate([np.full(size, factor) for size, factor in plan.ring.parts])
    words = np.concatenate(outcome.total.lanes)
    lifted = np.where(words > 2**60, words.astype(np.int64) - (2**61 - 1), words.astype(np.int64))
    assert not (lifted % factors).any()  # nothing below a grid step, noise included


def test_a_client_that_could_not_prove_its_sums_is_refused_before_anything_is_spent(tmp_path) -> None:
    plan, ledger = proved(PANEL_NOISE, validity=Validity("moments", 8)), Ledger.create(tmp_path / "ledger")
    (parts, *_), few = held(NAB), "more records than validity.most_records=8"
    with pytest.raises(DataError, match=few):
        session.contribution(plan, parts)
    with pytest.raises(DataError, match=few):
        session.aggregate_unmasked(plan, [parts] * 6)
    claim = statement_of(plan.claim)
    wild = 100 * flatten(parts)
    with pytest.raises(DataError, match="most_records=8"):
        claim.witness(wild, wild[:0], lambda number, size: np.zeros(size, np.uint64))
    assert ledger.accounts() == ()
    assert plan.panel == PANEL


def test_rounds_after_a_first_sum_prove_the_norm_of_their_gradients() -> None:
    """A gradient's directions are alike, and no other statement reads it; n is that of the first plan."""
    first = proved(ps.Privacy(model="central", **DP), schema=ps.ClassSchema(3, 4, "NAB", 1.0))
    course = ps.Rounds.within(first, 2)
    assert course.template.validity == Validity("norm", 9)
    assert course.template.masking.statement.name == "norm"
    assert ps.Rounds.within(plan_of(ps.Privacy(model="central", **DP), schema=NAB), 2).template.validity is None
    with pytest.raises(PlanError, match="leave calibrated out, or validity"):
        ps.Rounds.within(first, 2, calibrated=True)
