"""A claim names each package whose code its bound rests on, and the plan's digest holds that package's version."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import privstats as ps
from privstats import plug_ins
from privstats.course.pair_codes import PairCodes
from privstats.errors import DataError, PlanError, PrivstatsError, SchemaError
from privstats.kinds import KINDS, ClippedRows, Kind
from privstats.kinds.admission import _LEFT
from privstats.kinds.base import _FINAL
from privstats.kinds.registry import is_registered
from privstats.plan import document
from privstats.review import certificate_checker
from privstats.review.certificate import certificate_text
from privstats.schema.modules import MODULES
from privstats.transforms import Transform, base
from privstats.workflows.report import Statement, page_of
from tests import made
from tests.brought import announce, brought, install, points
from tests.planted import plant
from tests.schema.samples import SCHEMAS
from tests.schema.test_contract import published

GROUP = KINDS.group
BROUGHT = points("stranger", GROUP)
COHORT = ps.Cohort(3, 3, 300)
SERVER = "the server adds its noise and keeps the exact sum secret"
ALONE = "no party works with the server"
SAME = ", always with the same result"
TUKEY = f"stranger 0.1 maps each record of task 'tukey' by itself{SAME}"
ABS = (
    "stranger 0.1 sums any records of task 'abs' without an error, within the bound that it states and privstats does "
    "not prove"
)
CENTRE = f"stranger 0.1 maps each record by itself in 'batch-centre'{SAME}"
MODULE = f"hidden-layer 0.1 maps each record by itself in 'mlp/2'{SAME}"
BOTH = f"stranger 0.1 maps each record by itself in 'mlp/2' and 'batch-centre'{SAME}"


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Any]:
    """The package of a stranger, installed for one test."""
    site = install("stranger", tmp_path / "site")
    with brought(site):
        yield site


def schema_of(name: str) -> Any:
    if name in BROUGHT:
        return KINDS[name](3, 4.0)
    if name == "pairs/3-2":
        return ps.GradientSchema(4, 2, residual_norm=1.0, expected_records=100, course_mu=1.0, module=name)
    if name == "mlp/2":
        return ps.GradientSchema(4, 3, residual_norm=1.0, expected_records=100, course_mu=1.0, module=name)
    from stranger_map import BatchCentre

    return ps.MeanSchema(3, clip_norm=4.0, transform=(BatchCentre(), BatchCentre()))


def plan_of(schema: Any, privacy: Any = None) -> ps.Plan:
    return made.plan(schema, COHORT, privacy or made.promise(), published=published(schema))


CLAUSES = {"tukey": TUKEY, "abs": ABS, "batch-centre": CENTRE, "mlp/2": MODULE}
named = pytest.mark.parametrize("name", CLAUSES)
MODELS = {
    "central": f"{SERVER}, and {{}}; masks hide each party's sums while {ALONE}",
    "distributed": f"{{}}, and {ALONE}",
    "local": "the party itself follows the protocol, whatever all others do, and {}; masks hide each party's sums "
    f"while {ALONE}",
}


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize("model", MODELS)
@named
def test_the_condition_names_whose_code_a_bound_rests_on(name: str, model: str) -> None:
    assert plan_of(schema_of(name), made.promise(model)).condition == MODELS[model].format(CLAUSES[name])


@pytest.mark.usefixtures("stranger")
@named
def test_a_bound_of_clients_holds_for_any_map_and_one_that_is_stated_is_believed(name: str) -> None:
    clients = made.promise(unit="client", max_records_per_client=4)
    said = plan_of(schema_of(name), clients).condition
    assert (ABS in said) == ("stranger" in said) == (name == "abs")
    assert "hidden" not in said


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize("name", ["tukey", "batch-centre", "mlp/2"])
def test_a_bound_of_persons_names_it_too(name: str) -> None:
    persons = made.promise(unit="person", person_clip="average")
    assert CLAUSES[name] in plan_of(schema_of(name), persons).condition


@pytest.mark.usefixtures("stranger")
def test_one_clause_lists_all_that_one_package_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("MODULES.origin", "definer"):
        monkeypatch.setattr(f"privstats.plan.packages.{place}", lambda *_: "stranger 0.1")
    schema = replace(schema_of("mlp/2"), transform=schema_of("batch-centre").transform)
    assert BOTH in plan_of(schema).condition
    assert plan_of(replace(schema_of("tukey"), transform=schema.transform)).condition == MODELS["central"].format(
        f"{TUKEY}, and {CENTRE}"
    )


@pytest.mark.usefixtures("stranger")
@named
def test_every_statement_of_the_promise_has_the_clause(name: str, privstats: Any, tmp_path: Path) -> None:
    plan, clause = plan_of(schema_of(name)), CLAUSES[name]
    assert clause in plan.budget().promise
    assert clause in " ".join(page_of(Statement(plan)).replace("&#39;", "'").split())
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    shown = privstats("plan", "check", "plan.toml", cwd=tmp_path).stdout
    assert clause in " ".join(shown.split()), shown
    if name != "mlp/2":  # whose rounds need torch
        X = np.random.default_rng(0).normal(size=(30, 3))
        release = ps.simulate(plan, [(X[k::3], np.zeros(10)) for k in range(3)])
        assert clause in release.plan.budget().promise
        assert clause in " ".join(str(release.budget).split())


@pytest.mark.usefixtures("stranger")
def test_settings_of_a_strangers_kind_are_among_the_chosen_ones() -> None:
    stated = plan_of(schema_of("tukey")).budget().conditions
    assert any(each.startswith("clip_norm, grid_bits, transform, cut and shares were chosen") for each in stated)


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["batch-centre", "mlp/2", "pairs/3-2"])
def test_the_program_states_the_same_condition_from_the_plan_alone(name: str, model: str) -> None:
    for privacy in (made.promise(model), made.promise(model, unit="client", max_records_per_client=4)):
        plan = plan_of(schema_of(name), privacy)
        certificate = certificate_text(plan)
        assert f", while {plan.condition}; the worst case" in certificate_checker.check(plan.to_toml(), certificate)
    if name == "pairs/3-2":  # ours, so no package is stated
        forgeries = [plan.to_toml().replace('"pairs/3-2"', '"pairs/3-2"\npackage = "stranger 0.1"')]
    else:
        forgeries = [re.sub('(, )?package = "[^"]+"', "", plan.to_toml()), plan.to_toml().replace(" 0.1", " 0.2")]
    for forged in forgeries:
        with pytest.raises(certificate_checker.Refused):
            certificate_checker.check(forged, certificate)


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize(
    ("old", "new"), [(' = "stranger 0.1"', ' = "stranger"'), ('"batch-centre"', '"unit-norm"'), ("batch-c", "batch c")]
)
def test_the_program_refuses_a_package_that_is_none_and_one_of_a_map_of_ours(old: str, new: str) -> None:
    plan = plan_of(schema_of("batch-centre"))
    tables = json.loads(certificate_text(plan))
    tables["plan"] = tables["plan"].replace(old.replace(" = ", ":").strip(), new.replace(" = ", ":").strip())
    tables["plan_digest"] = certificate_checker.hashlib.sha256(tables["plan"].encode()).hexdigest()
    with pytest.raises(certificate_checker.Refused, match="plan: "):
        certificate_checker.check(plan.to_toml().replace(old, new), json.dumps(tables))


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize("name", BROUGHT)
def test_a_kind_without_a_worst_pair_is_not_certified(name: str) -> None:
    with pytest.raises(PlanError, match=f"no certificate covers the task '{name}' of stranger 0.1: the program"):
        certificate_text(plan_of(schema_of(name)))


@pytest.mark.usefixtures("stranger")
@named
def test_the_digest_holds_the_package_and_another_version_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(schema_of(name))
    text = plan.to_toml()
    again = ps.Plan.from_toml(text)
    assert (again.digest, again.schema) == (plan.digest, plan.schema)
    other = re.sub(r'package = "([\w-]+) 0\.1"', r'package = "\1 0.2"', text)
    assert other != text
    with pytest.raises(PlanError, match=r"rests on '[\w-]+ 0.2' for the .*, and [\w-]+ 0.1 is installed here; all"):
        ps.Plan.from_toml(other)
    by_hand = re.sub('(, )?package = "[^"]+"', "", text)
    assert ps.Plan.from_toml(by_hand).digest == plan.digest  # what is installed is written out
    definer = plug_ins.definer
    for place, own in (("KINDS.origin", KINDS.origin), ("MODULES.origin", MODULES.origin), ("definer", definer)):
        patched = f"privstats.plan.packages.{place}"
        monkeypatch.setattr(patched, lambda *given, own=own: own(*given).replace(" 0.1", " 0.2"))
    assert len({plan.digest, plan_of(schema_of(name)).digest}) == 2


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('task = "abs"\npackage = "stranger 0.1"', "the task 'abs' is of 'stranger 0.1', which is not here; install"),
        ('task = "abs"', r"schema\.task must be one of \['calibration'"),
        ('task = "mean"\npackage = "stranger 0.1"', "the task 'mean' is of privstats itself, and the plan states"),
        ('task = "mean"\npackage = 3', "package must be a text such as 'name 1.0', got int"),
    ],
)
def test_a_package_that_is_not_here_is_named(row: str, said: str) -> None:
    text = plan_of(ps.MeanSchema(2, 1.0)).to_toml()
    with pytest.raises(PlanError, match=said):
        ps.Plan.from_toml(text.replace('task = "mean"', row))


def test_a_map_that_is_not_here_is_named() -> None:
    text = plan_of(ps.MeanSchema(2, 1.0, transform=(ps.transforms.UnitNorm(),))).to_toml()
    for kind, said in (("none-of-ours", "is of 'a 1', which is not here"), ("unit-norm", "is of privstats itself")):
        with pytest.raises(PlanError, match=said):
            ps.Plan.from_toml(text.replace('kind = "unit-norm"', f'kind = "{kind}", package = "a 1"'))


@pytest.mark.parametrize("schema", [each for each in SCHEMAS if not getattr(each, "module", None)], ids=str)
def test_what_privstats_brings_says_nothing(schema: Any) -> None:
    assert "package" not in str(document.schema_table(schema))
    assert not any(map(plug_ins.definer, map(type, schema.transform)))
    assert not KINDS.origin(schema.task)


def test_no_map_of_privstats_is_of_a_package() -> None:
    ours = [each for each in base.kinds().values() if each.__module__.startswith("privstats.")]
    assert len(ours) > 10
    assert not any(map(plug_ins.definer, [*ours, PairCodes]))


@dataclass(frozen=True)
class Doubled(Transform):
    kind: ClassVar[str] = "doubled-in-a-plan"

    def apply(self, rows: Any) -> Any:
        return 2 * rows

    def outputs(self, inputs: int | None) -> int | None:
        return inputs


def test_a_map_of_a_script_is_named_by_its_module() -> None:
    plan = plan_of(ps.MeanSchema(2, 1.0, transform=(Doubled(),)))
    assert f"{__name__} (no package) maps each record by itself in 'doubled-in-a-plan'" in plan.condition
    assert f'package = "{__name__} (no package)"' in plan.to_toml()
    assert ps.Plan.from_toml(plan.to_toml()).digest == plan.digest


def test_a_class_that_states_another_module_is_not_taken_for_it() -> None:
    """The names of a class's module and of itself are whatever its body says."""

    class Passed(ps.transforms.UnitNorm):
        __module__, __qualname__ = "privstats.transforms.rowwise", "Passed"

    class Taken(ps.transforms.UnitNorm):
        __module__, __qualname__ = "numpy", "ndarray"

    class Alike(type(Transform)):  # type: ignore[misc]
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return hash(ps.transforms.UnitNorm)

    class Twin(ps.transforms.UnitNorm, metaclass=Alike):
        pass

    assert plug_ins.definer(ps.transforms.UnitNorm) == ""
    assert plug_ins.definer(Passed) == "privstats.transforms.rowwise (no package)"
    assert plug_ins.definer(Taken) == "numpy (no package)"
    assert plug_ins.definer(Twin) == f"{__name__} (no package)"
    assert plug_ins.definer(np.ndarray) == f"numpy {np.__version__}"


def test_a_field_cannot_be_called_as_the_key() -> None:
    with pytest.raises(SchemaError, match="has fields package, which are keys of a plan"):
        type("Second", (Transform,), {"__annotations__": {"package": str}})
    with pytest.raises(SchemaError, match="has fields package, which every kind has"):
        type("Second", (Kind,), {"__annotations__": {"package": str}})


# --- who is a kind


def test_the_door_has_the_kinds_of_a_package_and_their_origin(stranger: Path) -> None:
    assert list(KINDS)[-2:] == ["abs", "tukey"]
    assert (KINDS.origin("abs"), KINDS.origin("mean")) == ("stranger 0.1", "")
    with pytest.raises(TypeError, match="does not support item assignment"):
        KINDS["abs"] = ps.MeanSchema  # type: ignore[index]
    with (
        brought(announce("second", stranger.parent / "second", GROUP, BROUGHT)),
        pytest.raises(SchemaError, match=r"second 0.1 and stranger 0.1 both have the kind of schema 'abs'; rename it"),
    ):
        KINDS["abs"]


def test_a_class_of_other_files_than_its_package_has_no_plan(stranger: Path) -> None:
    """A file of that name in the folder of a script is found before the package."""
    shadow = stranger.parent / "shadow"
    shadow.mkdir()
    (shadow / "stranger_rows.py").write_bytes((stranger / "stranger_rows.py").read_bytes())
    with (
        brought(shadow),
        pytest.raises(
            PlanError, match=r"'tukey' is announced by stranger 0.1, and its class is in the files of strange"
        ),
    ):
        plan_of(schema_of("tukey"))


def test_a_kind_of_other_files_than_ours_has_no_plan_without_a_package(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What calls itself privstats has an empty origin, and its class is none of ours."""
    assert stranger.is_dir()
    schema = schema_of("tukey")
    monkeypatch.setattr("privstats.plan.packages.KINDS.origin", lambda *_: "")
    with pytest.raises(PlanError, match="'tukey' is announced by privstats, and its class is in the files of stranger"):
        plan_of(schema)


def test_a_package_that_is_installed_in_place_is_known(stranger: Path) -> None:
    """pip lists no file of it, and states the folder."""
    about = stranger / "stranger-0.1.dist-info"
    (about / "RECORD").write_text("")
    assert plug_ins.definer(KINDS["tukey"]) == "stranger_rows (no package)"
    (about / "direct_url.json").write_text(json.dumps({"url": stranger.as_uri(), "dir_info": {"editable": True}}))
    with brought():
        assert plug_ins.definer(KINDS["tukey"]) == "stranger 0.1 (in place)"
        plan = plan_of(schema_of("tukey"))
        assert 'package = "stranger 0.1 (in place)"' in plan.to_toml()
        assert ps.Plan.from_toml(plan.to_toml()).digest == plan.digest
        placed = plan_of(schema_of("batch-centre"))
        assert "stranger 0.1 (in place) maps each record by itself in 'batch-centre'" in placed.condition
        assert placed.condition in certificate_checker.check(placed.to_toml(), certificate_text(placed))


def test_a_package_keeps_the_version_that_was_loaded(stranger: Path) -> None:
    """Else an upgrade under a running process would be named in place of the code that runs."""
    assert KINDS["tukey"].task == "tukey"
    about = stranger / "stranger-0.1.dist-info" / "METADATA"
    about.write_text(about.read_text().replace("0.1", "0.2"))
    assert KINDS.origin("tukey") == "stranger 0.1"
    with pytest.raises(PlanError, match="is announced by stranger 0.1, and its class is in the files of stranger 0.2"):
        plan_of(schema_of("tukey"))
    about.unlink()
    assert KINDS.origin("tukey") == "stranger 0.1"


BAD = """
from abc import ABCMeta
import privstats as ps
from stranger_kind import AbsSchema
from stranger_rows import TukeySchema
from dataclasses import dataclass

@dataclass(frozen=True)
class OurTask(AbsSchema):
    task, purpose = "mean", "a mean of another"

@dataclass(frozen=True)
class OfOurs(ps.MeanSchema):
    task, purpose, table, proved = "ofours", "a mean of ours", AbsSchema.table, "x"
    def move(self, weights, adjacency): return 0.0

class Anything(ABCMeta):
    def __eq__(self, other): return True
    def __hash__(self): return hash(ps.MeanSchema)

class NoKind(metaclass=Anything):
    task = "nokind"

class Virtual:
    task = "virtual"
ps.kinds.Kind.register(Virtual)

@dataclass(frozen=True)
class Late(TukeySchema):
    task, purpose = "late", "a bound that changes later"
Late.move = lambda *_: 0.0

class Open(ps.kinds.ClippedRows):
    task, purpose = "open", "no vector"

@dataclass(frozen=True)
class Shorter(AbsSchema):
    task, purpose = "shorter", "a bound under delta 0 of its own"
    def longest(self, *_): return 0

@dataclass(frozen=True)
class Unsigned(AbsSchema):
    task, purpose, unsigned = "unsigned", "a second bound", "x"

@dataclass(frozen=True)
class NoBound(AbsSchema):
    task, purpose, move = "nobound", "a kind without a bound", ps.kinds.Kind.move

@dataclass(frozen=True)
class NoReason(AbsSchema):
    task, purpose, no_persons = "noreason", "a kind without a reason", ps.kinds.Kind.no_persons

@dataclass(frozen=True)
class Sometimes(AbsSchema):
    task, purpose, no_persons = "sometimes", "a kind that bounds persons later", property(lambda self: "")

@dataclass(frozen=True)
class Mixin:
    nearer: bool = False

@dataclass(frozen=True)
class Mixed(AbsSchema, Mixin):
    task, purpose = "mixed", "a mixin"

@dataclass(frozen=True, eq=False)
class Unequal(AbsSchema):
    task, purpose = "unequal", "equal schemas of other fields"
"""
STATES = {
    "Shorter": "Shorter defines longest, which kinds of other packages do not; omit them",
    "Unsigned": "Unsigned defines unsigned, which kinds of other packages do not",
    "NoBound": "NoBound must state move, and why it bounds no person",
    "NoReason": "NoReason must state move, and why it bounds no person",
    "Sometimes": "Sometimes must state move, and why it bounds no person",
    "Mixed": "Mixed defines nearer, which kinds of other packages do not",
    "Unequal": "Unequal defines options",
    "Late": "Late defines move, on which the bound of ClippedRows rests",
}


@pytest.mark.parametrize("cls", STATES)
def test_a_kind_that_states_more_or_less_than_a_records_bound_is_refused(cls: str, stranger: Path) -> None:
    (stranger / "bad.py").write_text(BAD)
    bad = install("stranger", stranger.parent / "bad", {GROUP: {cls.lower(): f"bad:{cls}"}}, "6")
    with brought(bad), pytest.raises(SchemaError, match=STATES[cls]):
        KINDS[cls.lower()]


MAY_DEFINE = {
    "adder",
    "appended",
    "bound",
    "check_values",
    "class_names",
    "column_facts",
    "columns",
    "containers",
    "derived",
    "exact",
    "exact_warning",
    "example",
    "excludes_gaps",
    "facts",
    "finds_cuts",
    "goal",
    "grid_steps",
    "ignorable",
    "levels_apart",
    "moments_of",
    "move",
    "needs",
    "needs_privacy",
    "no_persons",
    "on_grid",
    "open_columns",
    "optional",
    "packages",
    "predicts",
    "reading",
    "reads_any_record",
    "real",
    "record",
    "refusal",
    "refuses_cohort",
    "scale",
    "scale_of",
    "sent",
    "several_sessions",
    "site_groups",
    "sizes",
    "worst",
}
"""What a full kind of another package defines: what is summed, its bound, and what pages print."""


def test_every_public_name_of_a_kind_is_closed_or_one_that_strangers_define() -> None:
    names = {name for name in dir(Kind) if not name.startswith("_")}
    assert names == {*_LEFT, *_FINAL[:2], *MAY_DEFINE}
    assert not {*_LEFT} & MAY_DEFINE


COUNTS = """
from dataclasses import dataclass, replace
from stranger_kind import AbsMoments, AbsSchema
from privstats.schema.base import Schema

class Few(AbsMoments):
    counted = property(lambda self: 0)

@dataclass(frozen=True)
class Drops(AbsSchema):
    task, purpose = "drops", "the sizes of records without one below 0"
    containers = classmethod(lambda _: (Few, AbsSchema.containers()[1]))
    def moments_of(self, records, _):
        kept = [x[(x >= 0).all(axis=1)] for x, _ in records.pieces()]
        return Few(self, sum(x.astype(int).sum(axis=0) for x in kept), sum(map(len, kept)))

@dataclass(frozen=True)
class Named(AbsSchema):
    task, purpose = "named", "columns by name"
    reading = property(lambda self: replace(Schema.reading.func(self), columns=("a", "b")))
"""


def test_a_kind_that_omits_records_itself_ends_no_session_and_states_no_number(stranger: Path) -> None:
    """Else the session ended where such a record is, and a client's limit counted what a package says."""
    site = stranger.parent / "counts"
    site.mkdir()
    (site / "counts.py").write_text(COUNTS)
    entries = {GROUP: {"drops": "counts:Drops", "named": "counts:Named"}}
    with brought(install("stranger", site, entries, "7")):
        schema, X = KINDS["drops"](2, 4.0), np.array([[1.0, 1.0], [-1.0, 1.0], [2.0, 0.0]])
        sums: Any = ps.measure(schema, X, np.zeros(3), unreadable="leave out")
        assert (sums.records, sums.counted, sums.x.tolist()) == (3, 0, [3, 1])
        plan = plan_of(schema, made.promise(unit="client", max_records_per_client=2))
        with pytest.raises(DataError, match=r"more records than privacy\.max_records_per_client=2"):
            ps.session.contribution(plan, sums)
        with pytest.raises(SchemaError, match="a Named reads columns by name, which kinds of other packages do not"):
            ps.measure(KINDS["named"](2, 4.0), {"a": [1.0], "b": [2.0]})


def test_a_class_on_another_packages_class_is_refused(stranger: Path) -> None:
    """Its version decides the sums, and no plan states it."""
    second = stranger.parent / "second"
    announce("second", second, GROUP, {"second": "second_kind:Second"})
    (second / "second_kind.py").write_text(
        "from dataclasses import dataclass\nfrom stranger_rows import TukeySchema\n"
        "from stranger_map import BatchCentre\n@dataclass(frozen=True)\nclass Second(TukeySchema):\n"
        "    task, purpose = 'second', 'a kind of two packages'\n@dataclass(frozen=True)\n"
        "class Centre(BatchCentre):\n    kind = 'second-centre'\n"
    )
    (second / "second-0.1.dist-info" / "RECORD").write_text("second_kind.py,,\n")
    with brought(second):
        import second_kind

        for schema in (KINDS["second"](3, 4.0), ps.MeanSchema(3, 4.0, transform=(second_kind.Centre(),))):
            with pytest.raises(
                PlanError, match=r"of second 0.1 derives from (TukeySchema|BatchCentre) of stranger 0.1"
            ):
                plan_of(schema)


@pytest.mark.parametrize(
    ("task", "cls"),
    [
        *(("mean", "OurTask"), ("ofours", "OfOurs"), ("nokind", "NoKind"), ("virtual", "Virtual")),
        *(("open", "Open"), ("other", "Late")),
    ],
)
def test_what_is_no_kind_of_its_task_is_refused_by_the_name_of_its_package(task: str, cls: str, stranger: Path) -> None:
    (stranger / "bad.py").write_text(BAD)
    with brought(install("stranger", stranger.parent / "bad", {GROUP: {task: f"bad:{cls}"}}, "6")):
        import bad

        if task == "mean":
            assert KINDS["mean"] is ps.MeanSchema  # ours is found first, and no plan changes
            assert not is_registered(bad.OurTask(2, 1.0))
            with pytest.raises(PlanError, match="OurTask is no registered kind of schema"):
                plan_of(bad.OurTask(2, 1.0))
            return
        with pytest.raises(SchemaError, match=f"stranger 6 announces the kind of schema '{task}' as 'bad:{cls}'"):
            KINDS[task]


@pytest.mark.usefixtures("stranger")
def test_no_class_decides_itself_whether_it_is_registered() -> None:
    Tukey = KINDS["tukey"]
    with pytest.raises(SchemaError, match="defines is_registered, which no kind does"):
        type("Sure", (Kind,), {"is_registered": True})

    class Sub(Tukey):  # type: ignore[misc, valid-type]
        pass

    class Duck:
        task, is_registered, schema = "mean", True, None
        __class__ = ps.MeanSchema  # type: ignore[assignment]

    assert [is_registered(each) for each in (Tukey(3, 1.0), Sub(3, 1.0), Duck())] == [True, False, False]
    with pytest.raises(SchemaError, match="Sub is a subclass of a kind of schema, and no kind; state a task"):
        ps.measure(Sub(3, 1.0), np.ones((2, 3)), [0, 1])
    for schema in (Sub(3, 1.0), Duck()):
        with pytest.raises(PrivstatsError, match="no kind|no registered kind"):
            ps.Plan(schema=schema, cohort=COHORT, privacy=made.promise())


def test_a_planted_kind_of_ours_states_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Signs(ClippedRows):
        task: ClassVar[str] = "signs"
        purpose: ClassVar[str] = "signs"

        @property
        def outputs(self) -> int:
            return self.features

        def vector(self, record: Any) -> Any:
            return np.sign(record)

    plant(monkeypatch, KINDS, "signs", Signs)
    assert plan_of(Signs(3, 1.0)).condition == plan_of(ps.MeanSchema(3, 1.0)).condition
