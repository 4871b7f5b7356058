"""What depends on the kind of a schema is said by the kind, or refused by its name: no ``else`` means ridge."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import heads
from privstats.contrib.sweep.draws import BASELINES, baselines
from privstats.contrib.sweep.points import metric, shown
from privstats.contrib.sweep.running import heads_named
from privstats.course.recipes import advised_rounds, recipe_for
from privstats.dp import default_shares, joint_mu
from privstats.errors import PrivstatsError
from privstats.heads.registry import HEADS
from privstats.kinds import KINDS
from privstats.randomness import seeded
from privstats.schema import Schema, predicted
from tests.made import refused
from tests.schema.samples import PROMISED, SCHEMAS
from threat_models.audits.sensitivity import worst_pair

ROOT = Path(__file__).parents[2]
OF_RECORDS = (  # take a ``RecordSchema``, which has two kinds: the type checker looks at both branches
    "threat_models/attacks/differencing.py",
    "threat_models/attacks/property_inference.py",
    "threat_models/audits/sensitivity.py",
    "threat_models/data.py",
)
MODELS = [schema for schema in SCHEMAS if schema.predicts]
OTHERS = [*{type(schema): schema for schema in SCHEMAS if not schema.predicts}.values()]
ASKED: dict[str, Callable[[Any], object]] = {
    "predicted": predicted,
    "metric": metric,
    "shown": lambda schema: shown(schema, 0.5),
    "heads of a sweep": lambda schema: heads_named(None, SimpleNamespace(schema=schema)),  # type: ignore[arg-type]
    "baselines": lambda schema: baselines(SimpleNamespace(schema=schema), *NOTHING, lambda: None),  # type: ignore[arg-type]
    "rounds": lambda schema: advised_rounds(schema, 1.0),
    "recipe": lambda schema: recipe_for(SimpleNamespace(schema=schema, validity=None), 100, 1.0, 2),  # type: ignore[arg-type]
    "worst pair": lambda schema: worst_pair(schema, {"U": 1.0}, "add-remove", seeded(0), 1),
}
NOTHING = ((np.zeros((0, 2)), np.zeros(0)), (np.zeros((0, 2)), np.zeros(0)))


def named(schema: Schema) -> str:
    return f"{schema.task}-{schema.statistics}"


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("schema", OTHERS, ids=named)
def test_a_kind_without_models_is_refused_by_its_name(schema: Schema, asked: str) -> None:
    """A sweep scored site sums with a ridge head and called it R²; rounds over them were advised to be four."""
    refused(PrivstatsError, type(schema).__name__, ASKED[asked], schema)


@pytest.mark.parametrize("schema", MODELS, ids=named)
def test_a_kind_with_models_has_a_metric_heads_and_baselines(schema: Schema) -> None:
    assert schema.predicts in BASELINES
    assert metric(schema) == {"classes": "accuracy", "parties": "accuracy", "ridge": "R²"}[predicted(schema)]
    assert {HEADS[name].task for name in heads_named(None, SimpleNamespace(schema=schema))} == {schema.predicts}  # type: ignore[arg-type]


@pytest.mark.parametrize("schema", SCHEMAS, ids=named)
def test_every_kind_has_a_sensitivity_or_admits_no_promise(schema: Schema) -> None:
    sigmas = dict.fromkeys(default_shares(schema), 1.0)
    if schema in PROMISED:
        assert joint_mu(schema, sigmas, "add-remove") > 0
    else:
        refused(PrivstatsError, "no sensitivity is proved", joint_mu, schema, sigmas, "add-remove")


def test_names_of_classes_reach_the_head_from_every_kind_that_has_them() -> None:
    """A release within clients lost them: its heads predicted 0, 1, 2."""
    names = ("ash", "beech", "elm")
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 4)) + 2 * np.eye(3, 4)[y]
    kinds = (
        ps.ClassSchema(3, 4, "NAB", 4.0, class_names=names),
        ps.WithinSchema(3, 4, 4.0, pull=1.0, n_max=50, class_names=names),
    )
    for schema in kinds:
        plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 2, 100), privacy=ps.NoPrivacy())
        release = ps.simulate(plan, [(X[k::3], np.array(names)[y[k::3]]) for k in range(3)])
        assert heads.LDA().fit_release(release).classes_.tolist() == list(names)


def choices(source: str) -> Iterator[int]:
    """Lines of ``a if isinstance(schema, SomeSchema) else b`` where b is no None: one kind, and "the other"."""
    if "isinstance(" not in source or "Schema" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.IfExp(test=ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]), orelse=other) if ast.unparse(
                kind
            ).endswith("Schema") and ast.unparse(other) not in ("None", "()", "''"):
                yield node.lineno


@pytest.mark.ci
def test_no_expression_takes_every_other_kind_for_one() -> None:
    files = [path for package in ("privstats", "threat_models") for path in sorted((ROOT / package).rglob("*.py"))]
    found = [
        f"{name}:{line}"
        for path in files
        if (name := path.relative_to(ROOT).as_posix()) not in OF_RECORDS
        for line in choices(path.read_text("utf-8"))
    ]
    assert not found, found
    assert list(choices("x = 1 if isinstance(schema, ClassSchema) else 2"))
    assert list(choices("x = (\n    1\n    if isinstance(schema, ClassSchema)\n    else 2\n)"))
    assert not list(choices("x = schema.classes if isinstance(schema, ClassSchema) else None"))


# A reader's name for what is asked of a user, and models' predictions, are words of their own.
TABLES_BY_TASK = {
    "privstats/kinds/registry.py": "the registry",
    "privstats/kinds/base.py": "whether the registry has exactly this class",
    "privstats/kinds/clipped_rows.py": "names the package that computes a vector",
    "privstats/kinds/scoring.py": "the entry point that reads a published head",
    "privstats/plan/feasibility.py": "names the package whose code scores records",
    "privstats/review/certificate_checker.py": "shares nothing with the library",
    "threat_models/audits/kinds.py": "the audits' own definitions",
    "threat_models/findings.py": "reads the audits' own definitions",
    "privstats/course/kinds.py": "a kind of course names the kind that means it, as packages outside do",
    "privstats/contrib/imputation/table_reader.py": "a reader names the kinds that it reads, as packages outside do",
    "privstats/contrib/site_levels/table_reader.py": "likewise",
    "privstats/dp/sensitivities.py": "names the package that states a bound",
    "privstats/plan/packages.py": "names the package that brings a kind",
    "privstats/workflows/readers.py": "finds the readers of a kind by that name",
    "privstats/workflows/tables/reader.py": "likewise",
    "privstats/workflows/tables/rows.py": "our readers name the kinds that they read",
}
OWN_WORDS = {
    "privstats/cli/parts/declaring.py": "the model that a user wants",
    "privstats/cli/parts/questions.py": "answers to the first question",
    "privstats/cli/parts/wizard.py": "answers to the first question",
    "privstats/contrib/sweep/draws.py": "what models predict",
    "privstats/contrib/sweep/points.py": "what models predict",
    "privstats/heads/registry/entries.py": "what a head predicts",
    "privstats/heads/registry/of_releases.py": "what a head predicts",
    "privstats/workflows/fitting.py": "what a head predicts",
}


def asked_by_task(source: str) -> Iterator[int]:
    """Lines that compare ``.task``, look it up, or list two tasks or more as keys."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                found = any(isinstance(each, ast.Attribute) and each.attr == "task" for each in (left, *others))
            case ast.Subscript(slice=ast.Attribute(attr="task")):
                found = True
            case ast.Call(args=args):
                given = [each for arg in args for each in (arg, *getattr(arg, "elts", ()))]
                found = any(isinstance(each, ast.Attribute) and each.attr == "task" for each in given)
            case ast.Dict(keys=keys):
                flat = [each for key in keys for each in (key, *getattr(key, "elts", ()))]
                found = len({each.value for each in flat if isinstance(each, ast.Constant)} & set(KINDS)) > 1
            case _:
                found = False
        if found:
            yield node.lineno


@pytest.mark.ci
def test_no_table_and_no_comparison_by_task_stands_outside_the_registry() -> None:
    """A page, a command or an audit asks the class: a table by task is one more place of every kind."""
    files = [path for package in ("privstats", "threat_models") for path in sorted((ROOT / package).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): [*asked_by_task(path.read_text("utf-8"))] for path in files}
    assert {name for name, lines in found.items() if lines} == {*TABLES_BY_TASK, *OWN_WORDS}, found
    assert list(asked_by_task('x = {"mean": 1, "ridge": 2}')) == [1]
    assert list(asked_by_task('x = {("mean", "a"): 1, ("ridge", "a"): 2}')) == [1]
    assert list(asked_by_task('x = schema.task in ("effect", "hazard")')) == [1]
    assert list(asked_by_task("x = ROWS.get((schema.task, letter))")) == [1]
    assert not list(asked_by_task('x = {"task": schema.task}'))


def test_the_audits_search_refuses_a_letter_that_it_does_not_define() -> None:
    with pytest.raises(PrivstatsError, match="no definition of statistic F"):
        worst_pair(ps.ClassSchema(3, 4, "NA", 1.0), {"F": 1.0}, "add-remove", seeded(0), 1)
