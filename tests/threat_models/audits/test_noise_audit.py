"""The residual audits of plans and of release files: quiet where the noise is right, loud where it is not."""

import io
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import privstats as ps
from privstats.dp import mechanisms
from privstats.randomness import Generator, seeded
from privstats.secagg.machines import Opening, layer_seeds
from privstats.workflows.report import Search
from privstats.workflows.simulate import run
from tests import made
from tests.made import refused
from tests.threat_models.audits.plans import SMALL, plan, target
from threat_models.audits import noise as noise_module
from threat_models.audits.budget import audit_budget
from threat_models.audits.known_inputs import known_inputs
from threat_models.audits.noise import SEES, audit_noise
from threat_models.audits.records import known_parties
from threat_models.audits.release_file import audit_release
from threat_models.audits.target import target_of
from threat_models.findings import audits

COHORT = ps.Cohort(6, 4, 600, colluders=1)
WIDE = ps.ClassSchema(3, 60, "NAB", 1.0)
RIDGE = ps.RidgeSchema(5, 2, clip_norm=1.0, target_bound=2.0, folds=2)


def records(schema, clients=6, each=9, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(each, schema.features)) for _ in range(clients)]
    if isinstance(schema, ps.RidgeSchema):
        return [(x, rng.normal(size=(each, schema.targets))) for x in X]
    return [(x, rng.integers(0, schema.classes, each)) for x in X]


def released(private, gone=(2,), rng=None):
    """A release and the moments of everybody."""
    parties = dict(enumerate(ps.measure(private.schema, *shard) for shard in records(private.schema)))
    release = run(private, list(parties.values()), dropouts={"mask": set(gone)}, rng=rng or seeded(8)).release
    return release, parties


@pytest.mark.ci
@pytest.mark.parametrize("model", made.MODELS)
@pytest.mark.parametrize("schema", [SMALL, pytest.param(RIDGE, marks=pytest.mark.nightly)])
def test_sound_noise_passes_with_the_power_that_was_asked_for(model, schema):
    report = audit_noise(target(schema, model=model, cohort=COHORT), seeded(3))
    assert not report.violated
    assert min([row[report.columns.index("sees")] for row in report.rows]) >= SEES
    assert {row[-1] for row in report.rows} == {"no evidence"}


def layers_of(clients=6, fewest=4):
    return replace(
        plan(model="distributed", cohort=ps.Cohort(clients, fewest, 600, colluders=1)), excess_noise="removed"
    )


def test_noise_that_is_left_at_every_level_is_audited_as_declared():
    report = audit_noise(target_of(layers_of()), seeded(3), trials=25)
    assert not report.violated
    named = {row[0] for row in report.rows}
    assert {f"{name}{of}" for name in ("N", "all") for of in ("", " of 5", " of 6")} <= named


@pytest.mark.ci
def test_noise_that_a_level_lacks_is_a_violation_at_that_level(monkeypatch):
    """Clients of a sum of five open as if it were six, which no release could tell from its own levels."""
    private = target_of(layers_of())

    def opened(plan, part, survivors):
        levels = plan.noise.levels
        right = layer_seeds(part.noise_root, len(levels) - 1)
        return Opening(levels[-1] if survivors > 4 else 4, right if survivors > 4 else ())

    monkeypatch.setattr("threat_models.audits.target.opened_among", opened)
    monkeypatch.setattr("privstats.session.unmasked._fits", lambda *_: True)
    monkeypatch.setattr("privstats.release._require_levels", lambda *_: None)
    report = audit_noise(private, seeded(3), trials=400)
    assert report.violated
    verdicts = {row[0]: row[-1] for row in report.rows}
    assert "violates" in {verdicts[f"{name} of 5"] for name in ("N", "A", "B", "all") if f"{name} of 5" in verdicts}
    assert verdicts["all"] == verdicts["all of 6"] == "no evidence"


def test_a_release_whose_clients_took_noise_back_has_what_they_left():
    private = layers_of()
    for gone in ({}, {"mask": {2}}, {"unmask": {3}}):
        parties = dict(enumerate(ps.measure(private.schema, *shard) for shard in records(private.schema)))
        release = run(private, list(parties.values()), dropouts=gone, rng=seeded(8)).release
        assert not audit_release(release, parties, seeded(1)).violated


def test_an_audit_of_few_sessions_says_that_it_is_underpowered():
    report = audit_noise(target(model="central", cohort=COHORT), seeded(3), trials=1)
    verdicts = {row[0]: row[-1] for row in report.rows}
    assert verdicts["N"] == "underpowered"
    assert any("underpowered in 1 sessions: N" in note for note in report.notes)
    assert not report.violated


def test_clients_that_may_hold_one_record_or_none_are_audited_too():
    assert not audit_noise(target(cohort=ps.Cohort(6, 4, 5, colluders=1)), seeded(1), trials=30).violated
    single = target(cohort=COHORT, unit="client", max_records_per_client=1)
    assert not audit_noise(single, seeded(1), trials=30).violated


def test_a_session_that_goes_on_with_too_few_is_a_violation(monkeypatch):
    private = target(model="distributed", cohort=COHORT)
    monkeypatch.setattr("privstats.session.unmasked.require_survivors", lambda plan, survivors: None)
    monkeypatch.setattr("privstats.release.require_survivors", lambda plan, survivors: None)
    report = audit_noise(private, seeded(1), trials=2)
    assert report.violated
    assert "a release of 3 survivors was made" in report.notes[-1]


def test_masking_that_needs_fewer_than_the_plan_is_a_violation():
    private = plan(model="distributed", cohort=COHORT)
    private.__dict__["masking"] = SimpleNamespace(min_survivors=3)
    assert noise_module._admits_fewer(target_of(private), seeded(1))


def test_likeness_short_of_equality_between_sessions_of_the_system_is_seen(monkeypatch):
    private = target(WIDE, cohort=COHORT)
    rng = np.random.default_rng(0)
    base = rng.standard_normal(private.layout.size)
    alike = (private.levels() * (base + 0.1 * rng.standard_normal((4, private.layout.size)))).astype(np.int64)
    monkeypatch.setattr(type(private), "draw", lambda self, count, source: alike)
    assert noise_module._repeats(private)


@pytest.mark.parametrize("model", made.MODELS)
@pytest.mark.parametrize("schema", [WIDE, RIDGE])
def test_the_residuals_of_a_release_file_are_the_declared_noise(model, schema):
    release, parties = released(plan(schema, model=model, cohort=COHORT))
    report = audit_release(release, parties, seeded(1))
    assert not report.violated
    assert [row[0] for row in report.rows] == [s.name for s in release.plan.layout.segments] + ["all"]
    assert any(note.startswith("underpowered") for note in report.notes)


def test_a_release_with_suppressed_and_merged_classes_is_read_as_it_was_made():
    """Suppressed entries are left out, and a parent carries the noise of its children."""
    schema = ps.ClassSchema(6, 40, "NAB", 1.0)
    private = replace(plan(schema, cohort=COHORT, epsilon=8.0), min_count=12, merge={1: 0, 5: 4})
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2, 3, 4, 5], [30, 3, 20, 3, 40, 30])
    parts = np.array_split(rng.permutation(len(labels)), 6)
    X = rng.normal(size=(len(labels), 40))
    parties = {k: ps.measure(schema, X[part], labels[part]) for k, part in enumerate(parts)}
    release = ps.simulate(private, list(parties.values()), rng=seeded(2))
    assert set(release.suppressed) == {1, 3}
    assert not audit_release(release, parties, seeded(1)).violated


def test_a_release_without_a_class_still_has_the_noise_of_its_pooled_moments():
    release, parties = released(replace(plan(WIDE, cohort=COHORT, epsilon=8.0), min_count=200))
    assert release.suppressed == (0, 1, 2)
    report = audit_release(release, parties, seeded(1))
    assert [row[0] for row in report.rows] == ["B.diag", "B.off", "all"]
    assert not report.violated


def exact_of(release, parties):
    return sum(target_of(release.plan).exact(parties[k]) for k in release.survivors)


@pytest.mark.parametrize("model", ["central", "distributed"])
@pytest.mark.parametrize("bug", ["half", "square", "cut", "no off-diagonal", "one stream", "shifted"])
def test_a_spoiled_release_is_a_violation(model, bug):
    release, parties = released(plan(WIDE, model=model, cohort=COHORT))
    exact = exact_of(release, parties)
    noise = release.vector - exact
    places = {s.name: p for s, p in zip(release.plan.layout.segments, release.plan.layout.slices, strict=True)}
    scale = target_of(release.plan).levels(5 if model == "distributed" else 0)
    bugs = {
        "half": lambda: noise // 2,
        "square": lambda: np.sign(noise) * scale,
        "cut": lambda: np.clip(noise, -2.5 * scale, 2.5 * scale),
        "no off-diagonal": lambda: np.where(np.arange(len(noise)) >= places["B.off"].start, 0, noise),
        "one stream": lambda: scale * np.resize(noise[places["A"]] / scale[places["A"]], len(noise)),
        "shifted": lambda: noise + scale / 4,
    }
    wrong = replace(release, vector=exact + bugs[bug]().astype(np.int64))
    assert audit_release(wrong, parties, seeded(1)).violated


@pytest.mark.parametrize("model", ["central", "distributed"])
def test_the_noise_of_the_all_zero_seed_is_recognised(model):
    """Central: the server's generator. Distributed: every client's, so that all shares are the same."""
    private = plan(WIDE, model=model, cohort=COHORT)
    parties = {k: ps.measure(WIDE, *shard) for k, shard in enumerate(records(WIDE))}
    total = private.ring.zeros()
    for moments in parties.values():
        total.add(ps.session.contribution(private, moments, Generator(bytes(32))).take())
    release = ps.session.release(private, total, tuple(range(6)), Generator(bytes(32)), "uncharged")
    report = audit_release(release, parties, seeded(1))
    assert report.violated
    assert "all-zero seed" in report.notes[-1]


def test_shares_for_all_clients_instead_of_the_honest_show_in_a_release_file(monkeypatch):
    """The release's own table says the same as its noise: only the cohort as written tells what should be there."""
    private = plan(WIDE, model="distributed", cohort=COHORT)
    private.__dict__["noise"] = replace(private.noise, honest_shares=6)
    release, parties = released(private, gone=())
    assert audit_release(release, parties, seeded(1)).violated


def test_a_declared_noise_that_breaks_the_promise_is_named(monkeypatch):
    private = plan(WIDE, cohort=COHORT)
    rows = tuple(replace(row, sigma=0.9 * row.sigma) for row in private.noise.rows)
    private.__dict__["noise"] = replace(private.noise, rows=rows)
    release, parties = released(private)
    report = audit_release(release, parties, seeded(1))
    assert report.violated
    assert "the declared noise leaves mu" in report.notes[-1]


def test_inputs_that_do_not_belong_to_the_release_are_refused():
    release, parties = released(plan(SMALL, cohort=COHORT))
    with pytest.raises(ps.DataError, match=r"lack the survivors \[0, 1\]"):
        audit_release(release, {k: parties[k] for k in (3, 4, 5)}, seeded(1))
    other = ps.measure(replace(SMALL, clip_norm=2.0), *records(SMALL)[3])
    with pytest.raises(ps.DataError, match=r"clients \[3\] were measured under another schema"):
        audit_release(release, {**parties, 3: other}, seeded(1))


@pytest.mark.parametrize("schema", [SMALL, RIDGE])
def test_records_and_moments_in_a_file_are_the_same_inputs(schema, tmp_path):
    shards = records(schema)
    plain = {f"{n}_{k}": a for k, shard in enumerate(shards) for n, a in zip("Xy", shard, strict=True)}
    np.savez(tmp_path / "records.npz", **plain)
    fold = "" if isinstance(schema, ps.ClassSchema) else "fold_"
    moments = [ps.measure(schema, *shard) for shard in shards]
    arrays = {f"{n}_{k}": getattr(m, fold + n) for k, m in enumerate(moments) for n in schema.statistics}
    np.savez_compressed(tmp_path / "moments.npz", **arrays)
    for name in ("records.npz", "moments.npz"):
        assert known_inputs(tmp_path / name, schema) == dict(enumerate(moments))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "is empty"),
        ({"weights": np.ones(3)}, "holds an array 'weights'"),
        ({"N_0": np.ones(3)}, "client 0 has N; give X_0 and y_0, or N_0, A_0, B_0"),
        ({"N_0": np.ones(3), "A_0": np.ones((3, 12)), "B_0": np.ones((12, 12))}, "must be int64"),
        ({"X_0": np.array([object()]), "y_0": np.ones(1)}, "as an npz file of plain arrays"),
    ],
)
def test_a_file_that_holds_no_inputs_is_one_sentence(arrays, message, tmp_path):
    np.savez(tmp_path / "known.npz", **arrays)
    with pytest.raises(ps.DataError, match=message) as refused:
        known_inputs(tmp_path / "known.npz", SMALL)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"x" * 300])
def test_a_file_that_is_no_archive_is_one_sentence(content, tmp_path):
    path = tmp_path / "known.npz"
    path.write_bytes(content)
    refused(ps.DataError, "as an npz file of plain arrays", known_inputs, path, SMALL)


def test_an_archive_that_unpacks_to_more_than_a_machine_holds_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("privstats.files.arrays.MOST_BYTES", 1000)
    np.savez_compressed(tmp_path / "known.npz", X_0=np.zeros((10_000, 12)))
    with pytest.raises(ps.DataError, match="X_0 hold 960,128 bytes, and at most 1,000 are read"):
        known_inputs(tmp_path / "known.npz", SMALL)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X_0.npy", b"no array at all")
    (tmp_path / "known.npz").write_bytes(buffer.getvalue())
    refused(ps.DataError, "as an npz file of plain arrays", known_inputs, tmp_path / "known.npz", SMALL)


def test_a_generator_of_the_system_that_starts_from_zero_is_seen(monkeypatch):
    monkeypatch.setattr("privstats.randomness.secure", lambda: Generator(bytes(32)))
    report = audit_noise(target(cohort=COHORT), seeded(1), trials=2)
    assert report.violated
    assert "the system's own randomness" in report.notes[-1]


def test_a_session_that_takes_a_generator_that_others_know_is_a_violation(monkeypatch):
    for module in ("privstats.session.unmasked", "privstats.session.machines"):
        monkeypatch.setattr(f"{module}.checked", lambda rng, **_: rng or seeded(0))
    report = audit_noise(target(cohort=COHORT), seeded(1), trials=2)
    assert report.violated
    assert any("a reproducible generator unasked" in note for note in report.notes)


def test_a_contribution_that_serves_two_sessions_is_a_violation(monkeypatch):
    monkeypatch.setattr("privstats.session.machines.Contribution.take", lambda self: self.vector)
    report = audit_noise(target(cohort=COHORT), seeded(1), trials=2)
    assert report.violated
    assert "one contribution served two sessions" in report.notes[-1]


def test_a_release_of_many_entries_is_not_underpowered():
    release, parties = released(plan(ps.ClassSchema(3400, 4, "NA", 1.0), cohort=COHORT))
    report = audit_release(release, parties, seeded(1))
    assert {row[-1] for row in report.rows} == {"no evidence"}
    assert not any("underpowered" in note for note in report.notes)


def test_a_plan_without_a_promise_is_no_target():
    bare = ps.Plan(schema=SMALL, cohort=COHORT, privacy=ps.NoPrivacy())
    refused(ps.PlanError, "no claim to audit", target_of, bare)


def test_the_mechanisms_own_name_is_what_the_session_draws_by(monkeypatch):
    """Noise is spoiled where it is drawn, and the audit of the plan sees it on the real path."""
    right = mechanisms._sample
    monkeypatch.setattr(mechanisms, "_sample", lambda *arguments: right(*arguments) // 2)
    assert audit_noise(target(model="distributed", cohort=COHORT), seeded(1), trials=60).violated


COUNTS = ps.CountSchema((ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 80))), (("sex",), ("sex", "age")))
PARTIES = ps.PartySchema(3, 4)
ONE = {"unit": "client", "max_records_per_client": 1}


@pytest.mark.parametrize(
    ("schema", "change"),
    [
        (COUNTS, {}),
        pytest.param(PARTIES, ONE, marks=pytest.mark.ci),
        pytest.param(COUNTS, {"adjacency": "replace-one"}, marks=pytest.mark.ci),
        pytest.param(PARTIES, {**ONE, "adjacency": "replace-one"}, marks=pytest.mark.nightly),
    ],
)
def test_tables_and_whole_parties_have_the_audits_of_noise_and_budget(monkeypatch, schema, change):
    private = target(schema, epsilon=8.0, cohort=COHORT, **change)
    assert not audit_noise(private, seeded(3), trials=60).violated
    assert not audit_budget(private).violated
    monkeypatch.setattr("threat_models.findings.search_of", lambda schema: lambda found, rng: audit_budget(found))
    shown = 3 + (schema is PARTIES) + private.privacy.trust.divided  # a canary of parties, and none of tables
    assert len(audits(private.plan, Search(seed=1, trials=60))) == shown
    monkeypatch.setattr(type(private), "sigma", {s: 0.9 * value for s, value in private.sigma.items()})
    assert audit_budget(private).violated


def test_parties_of_tables_may_hold_no_record():
    parties = known_parties(target(COUNTS, cohort=ps.Cohort(6, 4, 3, colluders=1)), seeded(1))
    assert [int(np.abs(ps.encoding.flatten(each)).sum()) for each in parties] == [0] * 6
