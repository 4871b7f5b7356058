"""What a second plan changes is told by key, and what follows by number, in the right direction."""

import json
from dataclasses import replace

import pytest

import privstats as ps
from privstats.errors import DataError
from privstats.printable import at_most
from privstats.review import difference
from privstats.transforms import CentreRows, GaussianProjection, UnitNorm

PRIVACY = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
PLAN = ps.Plan(schema=ps.ClassSchema(3, 4, "NAB", 1.0), cohort=ps.Cohort(12, 9, 1000, 1), privacy=PRIVACY)


def effects(before, after):
    return {each.of: each for each in difference(before, after).effects}


def changed(before, after):
    return {each.key: (each.before, each.after) for each in difference(before, after).changes}


def test_one_plan_against_itself_changes_nothing():
    found = difference(PLAN, ps.Plan.from_toml(PLAN.to_toml()))
    assert not found.changes
    assert {each.means for each in found.effects} == {"unchanged"}
    assert found.notes == ("the two plans are identical: nothing to agree on anew",)
    assert found.digests == (PLAN.digest, PLAN.digest)


def test_more_epsilon_is_weaker_and_more_accurate():
    after = replace(PLAN, privacy=replace(PRIVACY, epsilon=3.0))
    assert changed(PLAN, after) == {"privacy.epsilon": ("1.0", "3.0")}
    found = effects(PLAN, after)
    assert (found["epsilon"].before, found["epsilon"].after) == (1.0, 3.0)
    assert found["epsilon"].means.startswith("weaker")
    assert found["of 100 found at 1 % false alarms, at most"].after > 3
    assert found["noise on A, in records"].means.endswith("more accurate")
    assert found["delta"].means == "unchanged"
    assert effects(after, PLAN)["mu"].means.startswith("stronger")
    assert effects(after, PLAN)["noise on N, in records"].means.endswith("less accurate")


def test_noise_is_told_in_records_so_that_a_clip_norm_alone_changes_none_of_it():
    found = effects(PLAN, replace(PLAN, schema=replace(PLAN.schema, clip_norm=4.0)))
    for statistic in "NAB":
        each = found[f"noise on {statistic}, in records"]
        assert each.after == pytest.approx(each.before, rel=1e-3)
    assert found["noise on A, in records"].before == pytest.approx(PLAN.noise.released_sigma(12)["A"])


def test_another_statistic_is_told_by_its_noise_and_its_bytes():
    found = effects(PLAN, replace(PLAN, schema=replace(PLAN.schema, statistics="NAS")))
    assert found["noise on B, in records"].means == "released no more"
    assert found["noise on S, in records"].means == "released now"
    upload = found["bytes that a client uploads"]
    assert upload.after > upload.before
    assert upload.means == f"{upload.after / upload.before:.3g} times as many"


def test_survivors_and_dropouts_are_counted_in_clients():
    found = effects(PLAN, replace(PLAN, cohort=ps.Cohort(14, 9, 1000, 0)))
    assert found["clients"].means == "2 more"
    assert (found["clients that may vanish"].before, found["clients that may vanish"].after) == (3, 5)
    assert found["clients that may collude"].means == "1 fewer"
    best = found["epsilon if no client vanishes"]
    assert best.before == pytest.approx(PLAN.noise.released_epsilon(11))
    assert best.after < best.before


def test_epsilons_of_two_promises_are_not_compared():
    client = replace(PRIVACY, unit="client", max_records_per_client=5)
    found = difference(PLAN, replace(PLAN, privacy=client))
    assert {each.means for each in found.effects if each.of in ("epsilon", "mu")} == {
        "another promise: the two do not compare"
    }
    assert any("the two epsilons do not compare" in note for note in found.notes)


def test_who_is_trusted_is_told_where_it_changes():
    central = replace(PLAN, privacy=replace(PRIVACY, model="central"))
    (note,) = [note for note in difference(PLAN, central).notes if "trust" in note]
    assert "central model: the server" in note
    assert effects(PLAN, central)["epsilon if no client vanishes"].after == 1.0
    split = replace(PLAN, protocol="split", panel=tuple(character * 64 for character in "ab"))
    assert any("'interactive' to 'split'" in note for note in difference(PLAN, split).notes)


@pytest.mark.filterwarnings("ignore:validity is experimental")
def test_what_clients_prove_is_told_where_it_changes():
    central = replace(PRIVACY, model="central")
    split = replace(PLAN, privacy=central, protocol="split", panel=tuple(character * 64 for character in "ab"))
    moments, norm = (
        replace(split, validity=ps.plan.Validity(level, most)) for level, most in (("moments", 9), ("norm", 30))
    )
    told = [difference(before, after).notes[-1] for before, after in ((split, moments), (moments, norm), (norm, split))]
    assert told[0].startswith("clients prove their sums now (level 'moments', at most 9 records of one client)")
    assert "from level 'moments' to level 'norm', at most 30 records of one client" in told[1]
    assert "a liar may invent 21 more" in told[1]
    assert "a client with more than 30 records is refused" in told[1]
    assert told[2].startswith("clients prove nothing of their sums any more")
    same = difference(moments, replace(moments, min_count=5)).notes
    assert not any("prove" in note for note in same)


def test_no_privacy_is_no_number():
    none = replace(PLAN, privacy=ps.NoPrivacy())
    lost, won = effects(PLAN, none), effects(none, PLAN)
    assert lost["epsilon"].after is None
    assert "nothing is promised any more" in lost["epsilon"].means
    assert won["delta"].means == "a promise where there was none"
    assert lost["noise on N, in records"].means == "no noise any more"
    assert won["noise on N, in records"].means == "noise where there was none"
    assert "epsilon if no client vanishes" not in lost
    assert effects(none, none)["epsilon"].means == "unchanged"


def test_lists_and_maps_are_told_short():
    names = tuple(f"class {index}" for index in range(9))
    schema = ps.ClassSchema(9, 4, "NAB", 1.0, transform=(CentreRows(), GaussianProjection(1, 8, 4), UnitNorm()))
    before = replace(PLAN, schema=schema)
    found = changed(before, replace(before, schema=replace(schema, transform=(), class_names=names)))
    assert found["schema.transform"][0] == (
        "centre-rows then gaussian-projection (seed=1, inputs=8, features=4) then unit-norm"
    )
    assert found["schema.transform"][1] is None
    assert found["schema.class_names"][1].endswith("class 5 and 3 more")
    few = replace(schema, transform=(), class_names=None, feature_names=("a", "b", "c", "d"))
    assert changed(before, replace(before, schema=few))["schema.feature_names"] == (None, "a, b, c, d")


def test_what_is_no_plan_is_one_sentence():
    with pytest.raises(DataError, match="after must be a Plan, got str; read one"):
        difference(PLAN, "plan.toml")


def test_the_command_prints_tables_or_json(privstats, tmp_path):
    (tmp_path / "a.toml").write_text(PLAN.to_toml())
    (tmp_path / "b.toml").write_text(replace(PLAN, min_count=5).to_toml())
    done = privstats("plan", "diff", "a.toml", "b.toml", cwd=tmp_path, code=0)
    assert "aggregation.min_count" in done.stdout
    assert "every party must read and agree" in done.stdout
    assert " changed" in done.stdout
    assert " changed" not in privstats("plan", "diff", "a.toml", "a.toml", cwd=tmp_path).stdout
    document = json.loads(privstats("plan", "diff", "a.toml", "b.toml", "--json", cwd=tmp_path).stdout)
    assert document["changes"] == [{"key": "aggregation.min_count", "before": "0", "after": "5"}]


def test_every_dropout_that_is_told_anywhere_is_of_one_table():
    """12 clients, 30 %: one reader was told epsilon 1 and another that the session aborts."""
    from threat_models.audits.budget import audit_dropouts
    from threat_models.audits.target import target_of

    told = next(line for line in ps.review.facts(PLAN) if line.startswith("epsilon after dropouts"))
    for gone, _, _, epsilon, _ in audit_dropouts(target_of(PLAN)).rows:
        assert f"{'no release' if epsilon is None else at_most(epsilon)} with {gone or 'none'} gone" in told
