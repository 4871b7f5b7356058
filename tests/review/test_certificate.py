"""The budget certificate: a checker without the library accepts what is true of a plan, and nothing else."""

import ast
import json
import os
import sys
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import mpmath
import pytest

import privstats as ps
from privstats.dp.exact import gaussian_delta_bounds
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, bound, check, delta_of, main
from tests import made
from tests.plan.random_plans import MAKERS, random_plans
from tests.review.certified import CHECKER, COHORT, PLAN, TEXT, lone
from tests.schema import samples


def test_the_checker_runs_alone_from_a_folder_without_packages(tmp_path: Path) -> None:
    done = lone(tmp_path, PLAN.to_toml(), TEXT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"holds: plan {PLAN.digest}, epsilon 1 at delta 1e-05 for one record, replace-one")


def test_the_checker_imports_the_standard_library_alone() -> None:
    tree = ast.parse(CHECKER.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_plan_of_every_kind_is_certified(kind: Any) -> None:
    for plan in islice(random_plans(11, [kind]), 3):
        assert check(plan.to_toml(), certificate_text(plan)).startswith("holds")


def test_what_is_not_a_plain_file_is_refused_at_once(tmp_path, capsys) -> None:
    """A pipe was waited for without end."""
    os.mkfifo(tmp_path / "pipe")
    assert main([str(tmp_path / "pipe")] * 2) == 1
    assert capsys.readouterr().out == f"refused: form: {str(tmp_path / 'pipe')!a} is not a plain file\n"
    assert main([str(tmp_path)] * 2) == 1


def test_a_plan_that_declares_texts_is_certified_and_another_declaration_is_another_plan() -> None:
    plans = [
        ps.Effect.start(
            ps.EffectSchema.of(
                {"age": (20, 90)}, treatment={"arm": arms}, outcome={"well": ("no", "yes")}, probability=0.5
            ),
            ps.Cohort(3, 3, 1_000),
            made.promise("central"),
        ).plan
        for arms in (("placebo", "drug"), ("drug", "placebo"))
    ]
    text = certificate_text(plans[0])
    assert check(plans[0].to_toml(), text).startswith("holds")
    with pytest.raises(Refused):
        check(plans[1].to_toml(), text)
    with pytest.raises(Refused, match="no such column"):
        check(plans[0].to_toml().replace('kind = "categories"', 'kind = "words"', 1), text)


def test_a_plan_with_a_column_of_several_texts_is_certified_at_the_noise_of_two() -> None:
    """The clip is that of two texts, and so is every number that the checker derives from the plan."""
    plans = []
    for texts in (("no", "yes"), ("never", "former", "current")):
        schema = ps.EffectSchema.of({"smoking": texts}, treatment="arm", outcome=(0, 1), probability=0.5)
        plans.append(ps.Effect.start(schema, ps.Cohort(3, 3, 1_000), made.promise("central")).plan)
    two, several = (certificate_text(plan) for plan in plans)
    assert check(plans[1].to_toml(), several).startswith("holds")
    assert json.loads(two)["statistics"] == json.loads(several)["statistics"]
    with pytest.raises(Refused):
        check(plans[1].to_toml().replace("spread = [", "spreads = ["), several)


@pytest.mark.nightly
def test_three_hundred_plans_by_chance_are_certified() -> None:
    for plan in islice(random_plans(300), 304):
        assert check(plan.to_toml(), certificate_text(plan)).startswith("holds")


@pytest.mark.parametrize("name", ["plan.toml", "shuffled"])
def test_a_plan_file_as_a_person_writes_it_says_the_same_as_its_tables(name: str, tmp_path: Path) -> None:
    """Defaults left out, another order of letters, letters that follow from others, comments, integers."""
    if name == "plan.toml":
        text = Path(ps.__file__).with_name("cli").joinpath("plan.toml").read_text()
    else:
        text = (
            'version = 1\n[schema]\ntask = "classes"\nclasses = 3\nfeatures = 2\nstatistics = "BSAND"\nclip_norm = 2\n'
            "[cohort]\nclients = 5\nmin_survivors = 4\nmax_records = 1_000\n"
            '[privacy]\nmodel = "central"\nunit = "record"\nadjacency = "add-remove"\nepsilon = 1\ndelta = 0.00001\n'
            "shares = { A = 0.5, S = 0.4000001, N = 0.1 }\n"
        )
    assert check(text, certificate_text(ps.Plan.from_toml(text))).startswith("holds")


def test_without_a_promise_there_is_nothing_to_certify() -> None:
    with pytest.raises(ps.PlanError, match="without differential privacy, so there is no budget to certify"):
        certificate_text(made.plan(PLAN.schema, COHORT))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("schema", samples.PROMISED)
def test_the_checker_bounds_what_the_library_bounds(schema: Any, adjacency: Any) -> None:
    """Two programs that share no code: closed forms in float64, and rationals."""
    if schema.task == "gaussians" and adjacency == "replace-one":
        return
    table = json.loads(json.dumps({"task": schema.task, **_fields(schema)}, default=vars))
    for weights in (dict.fromkeys(schema.statistics, 1.0), {s: 0.5 + 7 * i for i, s in enumerate(schema.statistics)}):
        grid = {s: Fraction(weight) / Fraction(schema.scale_of(s)) ** 2 for s, weight in weights.items()}
        mine = ps.dp.joint_mu(schema, {s: weight**-0.5 for s, weight in weights.items()}, adjacency) ** 2
        assert float(bound(table, grid, adjacency, 0)) == pytest.approx(mine, rel=1e-12)


def test_persons_who_average_counts_and_numbers_are_certified_at_the_noise_of_their_proof() -> None:
    """The checker's own bound, beside that of opposed vectors, which is a sixth to a third wider."""
    schema = ps.CountSchema(
        (ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60))),
        (("sex", "age"), ("age",)),
        numbers=(ps.Number("hours", 0, 80), ps.Number("cost", 0, 9, by=("sex",), missing=True)),
    )
    promise = made.promise(unit="person", person_clip="average", adjacency="replace-one")
    plan = made.plan(schema, COHORT, promise)
    sigmas = {row.statistic: row.sigma for row in plan.noise.rows}
    opposed = {s: sigma / ps.dp.sensitivities.apart(schema, s, "replace-one") for s, sigma in sigmas.items()}
    assert ps.dp.joint_mu(schema, opposed, "add-remove") > 1.15 * ps.dp.averaged_mu(schema, sigmas, "replace-one")
    assert check(plan.to_toml(), certificate_text(plan)).startswith("holds")


def _fields(schema: Any) -> dict[str, Any]:
    names = ("grid_bits", "features", "classes", "folds", "nonnegative", "family", "pulls", "pull", "n_max", "tables")
    names += ("reference", "outcome_names", "score_bins", "by_class", "measure", "balance", "probability")
    names += ("missing", "left_out", "errors")
    found = {name: getattr(schema, name) for name in names if hasattr(schema, name)}
    return {name: value for name, value in {**found, **schema.plain_fields()}.items() if value is not None}


PLACES = [("1/5000", "1/1000"), ("1", "1"), ("1/4", "1"), ("3", "8"), ("17/2", "100")]


@pytest.mark.parametrize(("mu", "epsilon"), PLACES)
def test_bounds_of_delta_hold_against_eighty_digits(mu: str, epsilon: str) -> None:
    with mpmath.workdps(300):
        m, e = (mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator for x in (mu, epsilon))
        true = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        for bounds in (delta_of, gaussian_delta_bounds):
            low, high = (mpmath.mpf(x.numerator) / x.denominator for x in bounds(Fraction(mu), Fraction(epsilon)))
            assert low <= true <= high
            assert high - low < true * mpmath.mpf(10) ** -40
