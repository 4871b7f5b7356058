"""Attacks on rows drawn from a synthetic course: they succeed without noise and stay within the course's promise."""

from dataclasses import replace

import pytest

import privstats as ps
from privstats.contrib.synthetic.columns import schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.course.kinds import COURSE_KINDS
from privstats.errors import DataError, PlanError
from privstats.randomness import seeded
from tests import made
from tests.made import promise, refused
from tests.threat_models.test_cli import call
from threat_models.attack import CourseExamination, attacks, attacks_named
from threat_models.attacks import synthetic_rows
from threat_models.ceilings import reconstruction
from threat_models.data import to_attack
from threat_models.drawn_rows import RowsWorld
from threat_models.evaluate import Effort, evaluate, evaluate_course, sessions_of
from threat_models.page import _declared, asked
from threat_models.report import LeakageReport

NAMES = ["synthetic-membership", "synthetic-record"]
COLUMNS = [ps.Categories(name, tuple("abcde")) for name in "wxy"]
COHORT = ps.Cohort(5, 4, 2_000, 1)
UNITS = {
    "record": promise(epsilon=3.0),
    "exchanged record": promise(epsilon=3.0, adjacency="replace-one"),
    "distributed": promise("distributed", epsilon=3.0),
    "local": promise("local", epsilon=3.0),
    "person": promise(epsilon=3.0, unit="person", max_records_per_person=4, person_clip=2.0),
    "client": promise(epsilon=3.0, unit="client", max_records_per_client=4),
}


def plan_of(privacy, columns=COLUMNS, **changes):
    return made.plan(schema_of(columns), COHORT, privacy, **changes)


def course_of(epsilon=3.0):
    return Synthetic.within(plan_of(promise(epsilon=epsilon)))


def pool_of(plan):
    return to_attack(plan, seeded(0))[0]


def rows_of(course, trials=24, names=NAMES) -> LeakageReport:
    return evaluate_course(course, attacks_named(names), pool_of, Effort(trials=trials, seed=1))


@pytest.mark.parametrize("goal", ["membership", "reconstruction"])
def test_what_is_drawn_from_a_course_is_read_by_an_attack_of_each_sort(goal):
    drawing = {kind.name for kind in COURSE_KINDS.values() if kind.draws}
    of_courses = [each for each in attacks() if isinstance(each, CourseExamination) and each.goal == goal]
    assert drawing == {name for each in of_courses for name in each.courses}
    assert "synthetic" in drawing


def test_without_noise_rows_show_who_was_counted_and_which_record_it_was():
    """At epsilon 90 noise seldom moves a count by a record."""
    likelihood, nearest, picked = rows_of(course_of(90.0), trials=24).rows
    assert likelihood.measured > 0.95
    assert nearest.measured > 0.7
    assert picked.measured > 0.7
    assert likelihood.baseline == 0.5
    assert picked.note == f"picks one of {round(1 / picked.baseline)}"
    assert picked.baseline < 0.1


@pytest.mark.parametrize("unit", UNITS)
def test_under_noise_every_unit_stays_within_its_ceiling(unit):
    course = Synthetic.within(plan_of(UNITS[unit]))
    report = rows_of(course)
    likelihood, nearest, picked = report.rows
    assert not report.violated
    assert likelihood.mu == nearest.mu == picked.mu == course.mu
    assert likelihood.ceiling == nearest.ceiling < 1
    assert picked.ceiling == reconstruction(picked.guarantee, picked.baseline)
    assert likelihood.measured <= likelihood.ceiling + 0.25
    assert ("asks about a whole client" in picked.adversary) == (unit == "client")
    assert ("colluding" in picked.adversary) == (unit == "distributed")
    assert "sees synthetic rows alone" in picked.adversary
    assert asked(nearest) == "tells a member from a stranger, by the nearest of the drawn rows alone"


def test_a_course_that_costs_more_than_it_claims_violates_its_ceiling(monkeypatch):
    course = course_of(90.0)
    monkeypatch.setattr(Synthetic, "mu", property(lambda _: 0.1))
    assert {row.attack for row in rows_of(course).rows if row.verdict == "violates ceiling"} == set(NAMES)


def test_a_plan_of_one_way_tables_is_attacked_through_the_course_that_keeps_its_promise():
    plan = plan_of(promise(epsilon=3.0))
    pool, _ = to_attack(plan, seeded(0))
    rows = evaluate(plan, attacks_named(NAMES), pool, Effort(trials=16, seed=1)).rows
    assert {row.mu for row in rows} == {Synthetic.within(plan).mu}


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (made.plan(ps.ClassSchema(2, 4, "NA", 1.0), COHORT, promise()), "written for a CountSchema"),
        (plan_of(ps.NoPrivacy()), "there is none"),
        (made.plan(ps.CountSchema((ps.Bins("age", (0, 40, 60)),), (("age",),)), COHORT, promise()), "there is none"),
    ],
)
def test_other_plans_have_no_rows(plan, why):
    for attack in attacks_named(NAMES):
        assert why in attack.refusal(plan)


def test_known_records_and_units_differ_and_the_exchanged_unit_is_the_least_alike():
    world = RowsWorld.drawn(course_of(), 16, seeded(1))
    mine, other = world.exchange()
    assert other is None
    beside = (world.cells[:, None] == world.units[None, :, 0]).sum(axis=(0, 2))
    assert beside[mine] == beside.min()
    exchanged = RowsWorld.drawn(Synthetic.within(plan_of(UNITS["exchanged record"])), 16, seeded(1))
    mine, other = exchanged.exchange()
    alike = (exchanged.units == exchanged.units[mine]).sum(axis=(1, 2))
    assert mine != other
    assert alike[other] == min(count for at, count in enumerate(alike) if at != mine)


def test_units_that_no_attacker_can_distinguish_are_refused(monkeypatch):
    refused(PlanError, "have different cells", RowsWorld.drawn, course_of(), 1, seeded(1))
    monkeypatch.setattr(synthetic_rows, "_UNITS", 1)
    (row,) = rows_of(course_of(), names=NAMES[:1]).rows
    assert (row.verdict, row.measured) == ("does not apply", None)
    assert "have different cells" in row.note


def test_attacks_on_sums_play_every_session_and_finished_rows_are_kept(tmp_path):
    effort = Effort(trials=8, seed=1, results=tmp_path / "rows.jsonl")
    named = attacks_named(["likelihood-ratio", "synthetic-record", "event-time"])
    first, again = (evaluate_course(course_of(), named, pool_of, effort) for _ in range(2))
    assert first == again
    played = [(row.attack, row.setting.get("session")) for row in first.rows]
    assert played == [("synthetic-record", None), *(("likelihood-ratio", k) for k in (0.0, 1.0)), ("event-time", None)]
    assert first.rows[-1].verdict == "does not apply"
    assert "written for a HazardSchema" in first.rows[-1].note


def test_sessions_with_other_values_alone_are_played_once():
    """Values of a later session come from invented releases; the trial's own plan alone has none."""
    columns = {"age": (20, 90), "smoking": ("never", "former", "current")}  # texts become columns of 0 and 1
    schema = ps.EffectSchema.of(columns, treatment="arm", outcome=(0, 1), probability=0.5)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2_000), promise(epsilon=3.0))
    assert [plan.schema.task for plan in sessions_of(course, 1).values()] == ["ridge", "effect"]
    report = evaluate_course(course, attacks_named(["likelihood-ratio"]), pool_of, Effort(trials=8, seed=1))
    assert {row.setting["session"] for row in report.rows} == {0.0, 1.0}
    assert all(row.measured is not None for row in report.rows)
    ceilings = [row.ceiling for row in report.rows if row.metric == "AUC"]
    assert f"an AUC above {max(ceilings):.3f} from one release" in _declared(report), "of the session that shows most"
    sums = ps.ScoreSchema(3, 2.0, transform=(ps.transforms.ConstantFeature(1.0),))
    rounds = ps.Newton.start(sums, ps.Cohort(2, 2, 2_000), promise(epsilon=3.0), 3)
    assert len(sessions_of(rounds, 1)) < rounds.most


def test_the_commands_take_a_synthetic_course(tmp_path):
    path = tmp_path / "rows.toml"
    ps.course.write(path, course_of())
    done = call("run", path, "--attack", NAMES[1], "--trials", "8", "--seed", "1")
    assert done.exit_code == 0
    assert "from a course on bundled or made-up records" in " ".join(done.stdout.split())
    listed = " ".join(call("list", path).stdout.split())
    assert "reads of this course" in listed
    assert "nothing: is written for a HazardSchema" in listed
    refused(DataError, "omit --data", call, "run", path, "--data", tmp_path / "own.npz")
    other = replace(course_of(), share=0.3)
    assert other.digest != course_of().digest
