"""Who draws the noise is a row of one table: it says what the mechanisms do, and nobody else compares a name."""

import ast
import math
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Privacy, calibrate, discrete_gaussian, draw_central, draw_member, draw_share, rounded_gaussian
from privstats.dp.privacy import MODELS, Model
from tests.mutation.catalogue import MUTANTS
from tests.mutation.plans import plan_of
from tests.numerics.bits import SAMPLERS

ROOT = Path(__file__).parents[2]
SCHEMA = ps.ClassSchema(3, 4, "NAB", 1.0)
HONEST, CLIENTS, MEMBERS = 7, 11, 3
DRAWS = {"server": draw_central, "client": draw_share, "member": draw_member}


def noise(model: str):
    privacy = Privacy(model=model, unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    members = MEMBERS if privacy.trust.drawn_by == "member" else 1
    return calibrate(SCHEMA, privacy, honest_shares=HONEST, members=members)


LEVELS = [
    ("central", rounded_gaussian, lambda total: total, lambda one: one + 0.5, 1.0),
    ("distributed", discrete_gaussian, lambda total: math.sqrt((total * total + 4) / HONEST),
        lambda one: math.sqrt(CLIENTS) * one, math.sqrt(CLIENTS / HONEST)),
    ("local", rounded_gaussian, lambda total: total, lambda one: math.sqrt(CLIENTS) * (one + 0.5), math.sqrt(CLIENTS)),
    ("panel", rounded_gaussian, lambda total: total, lambda one: math.sqrt(MEMBERS) * (one + 0.5), math.sqrt(MEMBERS)),
]  # fmt: skip
"""Of each model: the law, sigma of a draw, the tail of a sum and what a release has beyond its sigma."""


def test_every_model_has_its_proof_on_the_page_and_a_bug_that_is_looked_for_under_it():
    page = "".join((ROOT / "docs" / "proofs" / name).read_text("utf-8") for name in ("noise.md", "pure_epsilon.md"))
    assert [model for model in MODELS if f"\n| {model} |" not in page] == []
    unproved = [each for each in SAMPLERS if each.__name__.replace("_", " ") not in page.lower()]
    assert unproved == [], "docs/proofs lacks the proof of this noise"
    assert {plan_of(mutant.plan).privacy.model for mutant in MUTANTS.values() if mutant.plan} == set(MODELS)


PROVED = {rounded_gaussian: (0.5, 0.0, 0.0), discrete_gaussian: (0.0, 4.0, 1e-66 + 2.1e-34)}
"""By sampler the excess in grid steps, the surplus variance and the loss that docs/proofs/noise.md proves."""


def test_a_row_states_what_is_proved_of_its_sampler():
    """The defaults of a row are those of rounded Gaussians; another sampler took them over without a word."""
    stated = {(row.sampler, row.rounding, row.surplus_variance, row.slack) for row in MODELS.values()}
    assert stated == {(sampler, *numbers) for sampler, numbers in PROVED.items()}


def test_the_table_has_a_row_for_every_model_and_no_other():
    assert tuple(MODELS) == get_args(Model) == tuple(model for model, *_ in LEVELS)
    assert all(row.name == name and row.trusted for name, row in MODELS.items())


@pytest.mark.parametrize(("model", "sampler", "sigma", "tail", "surplus"), LEVELS)
def test_each_row_gives_the_levels_of_its_model_to_the_last_bit(model, sampler, sigma, tail, surplus):
    made, layout = noise(model), ps.encoding.layout_of(SCHEMA)
    for segment in layout.segments:
        assert made.share_sigma(segment) == sigma(made.grid_sigma(segment))
        assert made.tail_sigma(segment, CLIENTS, 1.0) == tail(made.share_sigma(segment))
    assert made.released_sigma(CLIENTS) == {name: value * surplus for name, value in made.sigma.items()}
    draw = DRAWS[MODELS[model].drawn_by]
    rng = ps.randomness.seeded(1)
    plain = [sampler(made.share_sigma(segment), segment.size, rng) for segment in layout.segments]
    np.testing.assert_array_equal(draw(made, layout, ps.randomness.seeded(1)), np.concatenate(plain))


@pytest.mark.parametrize("model", MODELS)
def test_who_does_not_draw_in_a_model_is_refused(model):
    words = {
        "server": "the server adds",
        "client": "clients add no noise",
        "member": "leader and helpers add noise only",
    }
    for drawer, draw in DRAWS.items():
        if drawer != MODELS[model].drawn_by:
            with pytest.raises(ValueError, match=words[drawer]):
                draw(noise(model), ps.encoding.layout_of(SCHEMA), ps.randomness.seeded(1))


def comparisons(source: str) -> list[int]:
    """Lines that compare with, match or key a table by the name of a trust model.

    An argument is called panel too, so a table that has a key of that name and of no other model is one of arguments.
    """
    found: list[int] = []
    if not any(model in source for model in MODELS):
        return found
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        leaves = [leaf for part in parts if part is not None for leaf in ast.walk(part)]
        names = {leaf.value for leaf in leaves if isinstance(leaf, ast.Constant)} & set(MODELS)
        if names - ({"panel"} if isinstance(node, ast.Dict) else set()):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "planted",
    [
        'if noise.model == "central":\n    pass',
        'share = 1 if "distributed" != privacy.model else 2',
        'server = plan.privacy.model in ("central", "local")',
        'match model:\n    case "local":\n        pass',
        'samplers = {"central": 1, "local": 2}',
        'if privacy.model == "panel":\n    pass',
    ],
)
def test_a_planted_comparison_is_noticed(planted):
    assert comparisons(planted)


@pytest.mark.ci
def test_no_other_module_compares_the_name_of_a_model():
    modules = [path for room in ("privstats", "threat_models") for path in (ROOT / room).rglob("*.py")]
    assert len(modules) > 100
    known = {
        ROOT / "privstats" / "dp" / "privacy.py",
        ROOT / "threat_models" / "audits" / "target.py",  # read through the table, a fault in it would not show
        ROOT / "privstats" / "review" / "certificate_checker.py",  # shares no code, so it has no table to ask
        ROOT / "privstats" / "optional_dependencies.py",  # a package of Dask's has the name of a model
    }
    found = {str(path.relative_to(ROOT)): comparisons(path.read_text()) for path in modules if path not in known}
    assert {path: lines for path, lines in found.items() if lines} == {}
