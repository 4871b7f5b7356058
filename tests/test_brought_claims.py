"""What no claim on a plan names is refused under a promise: engines, provers, rules and totals of other packages."""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

import privstats as ps
from privstats import plug_ins
from privstats.contrib.proofs.levels import MOMENTS
from privstats.course import records_engines, spend, verify_next
from privstats.course.alone import measuring, private_release, private_releases, single_party_plan
from privstats.course.base import checked_mu
from privstats.course.document import Promise, read, write
from privstats.course.kinds import COURSE_KINDS, Changing, CourseKind, admits_of, file_of, kind_for
from privstats.course.phases import Phase, Phases
from privstats.course.planned import Phased
from privstats.course.promise import total_of
from privstats.course.records_engines import RecordsEngine
from privstats.engines.network import measuring as between_machines
from privstats.errors import DataError, PlanError
from privstats.plan.conditions import joint_condition
from privstats.plan.provers import PROVERS, Prover, level_for
from privstats.review.plan_facts import facts
from tests import made
from tests.brought import install
from tests.planted import plant, plant_entries

COHORT = ps.Cohort(3, 3, 300)
SCHEMA = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)


class Frame:
    """A container of a third package."""


GREEDY = RecordsEngine("a", lambda _: True, lambda *_, **__: None)  # type: ignore[arg-type, return-value]
ODD = replace(MOMENTS, level="odd", statements=(*MOMENTS.statements, "odd"))
CHANGES = Changing(lambda: None, lambda *_: [], lambda _: {})
CHANGING = CourseKind("a", "sums of changes", f"{__name__}:Cheap", changing=CHANGES)
GIVING = CourseKind("a", "a price that comes back", f"{__name__}:Cheap", gives_back=True)
APART = CourseKind("a", "records of a registry", f"{__name__}:Cheap", charge="registry")
CENTRED = CourseKind("a", "another centre", f"{__name__}:Cheap", asked="centred")
ANY = CourseKind("a", "all plans", f"{__name__}:Cheap", task="classes", asked="odd", means=lambda _: True)


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a distribution announce an object of this module."""

    def bring(group: str, name: str, value: str, package: str = "stranger") -> None:
        plant_entries(monkeypatch, group, {name: f"{__name__}:{value}"}, package)

    return bring


def plan_of(schema: Any = SCHEMA, privacy: Any = None, **more: Any) -> ps.Plan:
    return made.plan(schema, COHORT, privacy or made.promise(), **more)


# --- engines of records


def test_another_package_s_engine_sums_nothing_under_a_promise(brought: Any) -> None:
    brought(records_engines.ENGINES.group, "a", "GREEDY")
    said = "stranger 0.1 would form the sums of a Frame, and no claim on a plan names that package: under a promise"
    plan = single_party_plan(SCHEMA, made.promise())
    for call, first in ((private_release, (SCHEMA, made.promise())), (private_releases, (ps.course.Single(plan),))):
        with pytest.raises(DataError, match=said):
            call(*first, Frame(), ledger="uncharged")  # type: ignore[operator]
    assert measuring(Frame(), ps.NoPrivacy()) is GREEDY.place


@pytest.mark.parametrize("unit", ["record", "person"])
def test_nor_between_machines(unit: str, brought: Any, tmp_path: Path) -> None:
    brought(records_engines.ENGINES.group, "a", "GREEDY")
    person = {"person_clip": "average"} if unit == "person" else {}
    for privacy, refuses in ((made.promise(unit=unit, **person), True), (ps.NoPrivacy(), False)):
        plan = plan_of(privacy=privacy)
        folder: Any = SimpleNamespace(plan=plan, place=0, above=SimpleNamespace(course=ps.course.Single(plan)))
        folder.base = tmp_path
        loaded = (Frame(), None, None) if unit == "person" and refuses else (Frame(), None)
        if refuses:
            with pytest.raises(DataError, match="stranger 0.1 would form the sums"):
                between_machines._measured(folder, {"load": lambda given=loaded: given}, "ward")
        else:
            assert between_machines._measured(folder, {"load": lambda given=loaded: given}, "ward") is None


def test_no_path_is_shown_to_another_package(brought: Any) -> None:
    brought(records_engines.ENGINES.group, "a", "GREEDY")
    assert records_engines.engine_for(Path("ward.npy"), ps.NoPrivacy()) is not GREEDY


# --- courses


@dataclass(frozen=True)
class Stated:
    """A course of a script that states each price itself."""

    plans: tuple[ps.Plan, ...]
    mu: float
    priced: tuple[ps.Plan, ...]
    alternatives: tuple[tuple[ps.Plan, ...], ...]
    most: int
    digest: str = "c0" * 32

    @property
    def first(self) -> ps.Plan:
        return self.plans[0]

    def next(self, releases: Sequence[Any]) -> ps.Plan | None:
        return dict(enumerate(self.plans)).get(len(releases))

    def epsilon(self, delta: float) -> float:
        return delta


class Apart(Stated):
    """It says that its rounds hold different records."""

    def multiplicity(self, adjacency: str) -> float:
        return 1.0 + len(adjacency) * 0


def stated(cls: type[Stated] = Stated, **changes: Any) -> Stated:
    plans = (plan_of(), plan_of(privacy=made.promise(epsilon=2.0)), plan_of())
    mu = math.hypot(*(plan.noise.mu for plan in plans))  # type: ignore[union-attr]
    fair = {"plans": plans, "mu": mu, "priced": plans, "alternatives": tuple((plan,) for plan in plans), "most": 3}
    return cls(**fair | changes)


HONEST = stated()
CHEAP, DEAR = HONEST.plans[:2]
LIES = {
    "the dearest round alone": (stated(mu=DEAR.noise.mu), "Stated states mu .* for all its rounds, and they cost mu"),  # type: ignore[union-attr]
    "nothing": (stated(mu=0.0), "states mu 0 for all its rounds"),
    "no number": (stated(mu=math.nan), "states mu nan for all its rounds"),
    "one price for all": (stated(priced=(DEAR,)), "up to 3 rounds and prices 1; give priced one plan per round"),
    "a place short": (stated(alternatives=((CHEAP,), (DEAR,))), "up to 3 rounds and prices 2"),
    "cheap alternatives": (
        stated(alternatives=((CHEAP,),) * 3),
        "Stated prices round 1 at mu .*, and its alternatives, which a ledger charges, cost mu",
    ),
    "no alternative": (stated(alternatives=((CHEAP,), (), (CHEAP,))), "prices round 1 at mu .* cost mu 0;"),
    "another unit": (
        stated(alternatives=((CHEAP,), (DEAR, plan_of(privacy=made.promise(adjacency="replace-one"))), (CHEAP,))),
        "round 1 of the course changes the trust model, unit, adjacency",
    ),
    "other records": (stated(Apart, priced=(CHEAP,), mu=CHEAP.noise.mu), "3 rounds and prices 1"),  # type: ignore[union-attr]
    "other records, all priced": (stated(Apart, mu=DEAR.noise.mu), "Apart states mu"),  # type: ignore[union-attr]
}


def spent(course: Any, folder: Path) -> object:
    return spend(course, made.ledger(folder / "spent.db", epsilon=90.0), "ward", b"may")


USES: dict[str, Callable[[Any, Path], object]] = {
    "the total": lambda course, _: total_of(course),
    "a party's check": lambda course, _: verify_next(course, course.first, []),
    "a ledger's charge": spent,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("lie", LIES)
def test_no_course_states_less_than_its_rounds_cost(lie: str, use: str, tmp_path: Path) -> None:
    course, said = LIES[lie]
    with pytest.raises(PlanError, match=said):
        USES[use](course, tmp_path)


@pytest.mark.parametrize("use", USES)
def test_a_course_that_states_what_its_rounds_cost_is_accepted(use: str, tmp_path: Path) -> None:
    for cls in (Stated, Apart):  # at the full price of all rounds
        (tmp_path / cls.__name__).mkdir()
        USES[use](stated(cls), tmp_path / cls.__name__)


def test_epsilon_follows_from_the_sessions_and_not_from_the_course() -> None:
    assert HONEST.epsilon(1e-5) == 1e-5
    assert total_of(HONEST).epsilon == ps.dp.gaussian_epsilon(checked_mu(HONEST), 1e-5)


def test_a_course_of_one_round_is_compared_too() -> None:
    course = stated(plans=(CHEAP,), priced=(DEAR,), alternatives=((CHEAP,),), most=1)
    with pytest.raises(PlanError, match="prices round 0"):
        total_of(course)


@dataclass(frozen=True)
class Cheap(Phased):
    """Rounds that claim to read different records."""

    label: ClassVar[str] = "cheap"
    plan: ps.Plan
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        """Accept any plan."""

    @classmethod
    def within(cls, full: ps.Plan) -> "Cheap":
        return cls(full)

    @property
    def first(self) -> ps.Plan:
        return self.plan

    @cached_property
    def phases(self) -> Phases:
        return Phases((Phase("early", self.plan, tries=1), Phase("late", self.plan, tries=1)))

    @cached_property
    def mu(self) -> float:
        return self.plan.noise.mu  # type: ignore[union-attr]


class Fair(Cheap):
    """The same at its price, with no check of its promise."""

    mu = Phased.mu

    def __post_init__(self) -> None:
        """Check nothing."""


def test_a_file_states_no_promise_that_the_rounds_break(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    plant(monkeypatch, COURSE_KINDS, "cheap", CourseKind("cheap", "cheap rounds", Cheap))
    with pytest.raises(PlanError, match="Cheap states mu"):
        write("cheap.toml", Cheap(plan_of()))
    plant(monkeypatch, COURSE_KINDS, "cheap", CourseKind("cheap", "cheap rounds", Fair))
    with pytest.raises(PlanError, match="promise says epsilon 1 at delta 1e-05, and all rounds together cost"):
        write("fair.toml", Fair(plan_of(), Promise(1.0, 1e-5)))
    write("fair.toml", Fair(plan_of()))
    text = Path("fair.toml").read_text()
    Path("fair.toml").write_text(text.replace("epsilon = 1.", "epsilon = 0."))
    with pytest.raises(PlanError, match="promise says epsilon 0"):
        read("fair.toml")


@pytest.mark.parametrize(("value", "fields"), [("CHANGING", "changing"), ("GIVING", "gives_back"), ("APART", "charge")])
def test_a_kind_of_course_forms_no_sums_noise_or_charges(value: str, fields: str, brought: Any) -> None:
    brought(COURSE_KINDS.group, "a", value)
    with pytest.raises(
        PlanError, match=f"stranger 0.1 announces .* 'a' .*: it states {fields}, and only kinds of privstats form"
    ):
        COURSE_KINDS["a"]
    assert (COURSE_KINDS["stream"].charge, COURSE_KINDS["stream"].changing is None) == ("registry", False)  # ours


@dataclass(frozen=True)
class OfOnePlan(CourseKind):
    """A row whose course would be charged as a plan alone."""

    @property
    def single(self) -> bool:
        return True


ONE = OfOnePlan("a", "one charge", f"{__name__}:Cheap")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ONE", "it is of the class OfOnePlan over CourseKind, and must be a CourseKind itself"),
        ("CENTRED", "its asked is 'centred', an option of the kind of course 'centred' of privstats: choose an option"),
    ],
)
def test_a_kind_of_course_changes_no_charge_and_no_option_of_ours(value: str, said: str, brought: Any) -> None:
    """The first was charged as one plan, and ``course init --centred`` wrote the second."""
    brought(COURSE_KINDS.group, "a", value)
    with pytest.raises(PlanError, match=f"stranger 0.1 announces .* 'a' .*: {said}"):
        COURSE_KINDS["a"]


def test_another_package_s_course_is_written_where_it_is_asked_for_alone(brought: Any) -> None:
    before = kind_for(SCHEMA, ()).name
    brought(COURSE_KINDS.group, "a", "ANY")
    assert (kind_for(SCHEMA, ()).name, kind_for(SCHEMA, ("odd",)).name) == (before, "a")


class Peeking(Stated):
    """It would read a party's records."""

    def admits(self, *_: Any) -> None:
        """Refuse no record."""

    def reads(self, file: Any) -> Any:
        """Return another file."""
        return file.name


@pytest.mark.parametrize("ask", [admits_of, partial(file_of, file=Path("ward.csv"))])
def test_another_package_s_course_reads_no_records_under_a_promise(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(PlanError, match=r"no package\) defines the method (admits|reads) of Peeking, which reads a"):
        ask(stated(Peeking))
    assert ask(stated()) in (None, Path("ward.csv"))
    free = plan_of(privacy=ps.NoPrivacy())
    assert ask(stated(Peeking, plans=(free,), priced=(free,))) not in (None, Path("ward.csv"))


# --- provers


def proved(level: str, privacy: Any) -> ps.Plan:
    panel = tuple(ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2))
    validity = ps.plan.Validity(level, most_records=50)
    schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0)
    return plan_of(schema, privacy, protocol="split", panel=panel, validity=validity)


@pytest.mark.filterwarnings("ignore:validity is experimental")
def test_another_package_proves_nothing_under_a_promise(brought: Any) -> None:
    brought(PROVERS.group, "odd", "ODD")
    with pytest.raises(PlanError, match=r"validity.level 'odd' is a prover of stranger 0.1, and no claim on a plan"):
        proved("odd", made.promise("panel"))
    said = "; ".join(facts(proved("odd", ps.NoPrivacy())))
    assert "stranger 0.1 states: every client proves that" in said
    assert "states: every client" not in "; ".join(facts(proved("moments", made.promise("panel"))))
    assert [level_for(level, ["odd"]) for level in ("moments", "odd")] == ["moments", "odd"]
    assert isinstance(PROVERS["odd"], Prover)


# --- rules and modules, whose packages stay imported


SCORED = """
from dataclasses import replace
import numpy as np
import privstats as ps
rng = np.random.default_rng(0)
y = np.arange(200) % 4
X = np.eye(4)[y] + .1 * rng.standard_normal((200, 4))
schema, cohort = ps.ClassSchema(4, 4, "NA", clip_norm=9.0), ps.Cohort(3, 3, 200)
release = ps.Release.exact(schema, ps.measure(schema, X, y))
promise = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
assert ps.Scoring(ps.heads.LDA().fit(X, y)).plan(cohort=cohort, privacy=promise).noise is not None
scoring = ps.Scoring(ps.heads.NearestCentroid(floor=2.0).fit_release(release))
plan = scoring.plan(cohort=cohort, privacy=ps.NoPrivacy())
assert ps.simulate(plan, [(X[k::3], y[k::3]) for k in range(3)]).moments.T.sum() > 0
later = replace(plan.published, values=None)
held = ps.Plan(schema=scoring.schema, cohort=cohort, privacy=promise, published=later)
for build in (lambda: scoring.plan(cohort=cohort, privacy=promise), lambda: held.with_values(plan.published.values)):
    try:
        build()
    except ps.PlanError as error:
        assert str(error).startswith("nearest 0.1 would score each record under the published head, and no"), error
    else:
        raise AssertionError("a head of nearest is scored under a promise")
"""
SHADOWED = """
import privstats as ps
schema = ps.GradientSchema(4, 3, residual_norm=1.0, expected_records=100, course_mu=1.0, module="mlp/2")
from privstats.plan import packages
try:
    print(packages.of_module(schema))
except ps.PlanError as error:
    print(error)
"""


def _run(program: str, *sites: Path) -> str:
    path = os.pathsep.join([*map(str, sites), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=sites[0], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.ci
def test_another_package_s_rule_scores_no_head_under_a_promise(tmp_path: Path) -> None:
    _run(SCORED, install("nearest", tmp_path))


@pytest.mark.ci
def test_a_module_of_other_files_than_its_package_has_no_plan(tmp_path: Path) -> None:
    site, shadow = install("hidden", tmp_path / "site"), tmp_path / "shadow"
    assert _run(SHADOWED, site) == "hidden-layer 0.1"
    shadow.mkdir()
    (site / "hidden_layer").rename(shadow / "hidden_layer")
    said = _run(SHADOWED, site, shadow)
    assert said.startswith("the module 'mlp/2' is announced by hidden-layer 0.1, and its class is in the files of")


# --- what calls itself privstats


def test_what_calls_itself_privstats_is_ours_in_our_modules_alone(brought: Any) -> None:
    brought(records_engines.ENGINES.group, "a", "GREEDY", "privstats")  # a left-over of another version, or a fork
    assert records_engines.ENGINES.origin("a") == "privstats 0.1"
    assert records_engines.ENGINES.origin("parts") == ""


def test_a_file_in_our_folder_that_pip_does_not_list_is_not_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = ModuleType("privstats.mine")
    exec("class Mine: pass", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for folder, files, said in (
        (Path(ps.__file__).parent, frozenset(), ""),
        (Path(ps.__file__).parent, frozenset({"privstats/plug_ins.py"}), "privstats.mine (no package)"),
        (tmp_path, frozenset(), "privstats.mine (no package)"),
    ):
        monkeypatch.setattr(plug_ins, "_own_files", lambda files=files: files)
        plug_ins._is_own.cache_clear()
        plug_ins._package_of.cache_clear()
        module.__file__ = str(folder / "mine.py")
        assert plug_ins.definer(module.Mine) == said
    plug_ins._is_own.cache_clear()
    plug_ins._package_of.cache_clear()


# --- conditions


def test_a_condition_that_no_ledger_holds_is_refused_with_its_plan_and_course(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = ps.ClassSchema(2, 4, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
    plan = plan_of(schema, made.promise(epsilon=3.0))

    def rounds() -> ps.Rounds:
        return ps.Rounds.within(plan, rounds=2, expected_records=100, module="mlp/2")

    course = rounds()
    longest = max(len(each.condition) for each in course.priced)
    assert len(joint_condition(course.priced)) > longest
    monkeypatch.setattr("privstats.plan.conditions.MAX_CONDITION", longest)
    with pytest.raises(PlanError, match="the condition of the promise has .* characters, and records hold at most"):
        rounds()
    monkeypatch.setattr("privstats.plan.conditions.MAX_CONDITION", len(plan.condition) - 1)
    with pytest.raises(PlanError, match="the condition of the promise has"):
        replace(plan, min_count=1)
