"""Rounds of a module: the same promise, another model, and a head that needs no torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import read, verify_next, write
from privstats.course.read_recipe import recipe_of
from privstats.course.recipes import ModuleRounds
from privstats.errors import MissingExtraError, PlanError, SchemaError
from privstats.randomness import seeded
from tests.course.cases import RIDGE, C, D, plan_of, rounds, shards
from tests.made import named

WORD = "adapter/8"


@pytest.fixture(scope="module")
def released() -> tuple[ps.Rounds, list[ps.Release]]:
    pytest.importorskip("opacus")
    course = rounds(epsilon=8.0, module=WORD)
    return course, ps.simulate(course, shards(), rng=seeded(5))


def crossed(n: int = 3_000, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that no linear scores tell apart: the sign of a product."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("word", [WORD, "mlp/8"])
def test_it_costs_what_rounds_of_a_softmax_cost(word: str) -> None:
    course, plain = rounds(module=word), rounds()
    assert (course.mu, course.most) == (plain.mu, plain.most)
    for mine, other in zip(course.priced, plain.priced, strict=True):
        assert mine.noise is not None
        assert other.noise is not None
        assert mine.noise.mu == other.noise.mu
        assert mine.noise.rows[-1].sigma == pytest.approx(other.noise.rows[-1].sigma)
    entries = 8 * (D + 1) + C * (8 + (D + 1 if word == WORD else 1))
    assert course.template.schema.sizes == {"target": 1, "feature": entries}


def test_parties_admit_the_weights_that_follow_and_no_others(released: Any) -> None:
    course, releases = released
    assert verify_next(course, releases[2].plan, releases[:2]).place == 2
    with pytest.raises(PlanError, match="not the one that follows"):
        verify_next(course, releases[2].plan, releases[:1])
    other = replace(course, module="adapter/9")
    with pytest.raises(PlanError, match="release 0 is not of this course"):
        verify_next(other, releases[1].plan, releases[:1])
    with pytest.raises(PlanError, match="do not fit the schema"):
        verify_next(other, releases[1].plan, named(other, releases[:1]))


def test_every_prefix_is_a_head_which_needs_no_torch_and_comes_back_from_its_file(
    released: Any, tmp_path: Path
) -> None:
    course, releases = released
    recipe = recipe_of(releases)
    assert isinstance(recipe, ModuleRounds)
    assert (recipe.module, recipe.mu) == (WORD, course.recipe.mu)
    X, y = (np.concatenate(part) for part in zip(*shards(), strict=True))
    for end in (1, 2, 3):
        head = ps.heads.RefinedSoftmax().fit_releases(releases[:end])
        assert head.rounds_ == end - 1
        assert head.score(X, y) > 0.6
    assert head.weights_.shape == (course.template.schema.sizes["feature"],)
    head.save(tmp_path / "head")
    again = ps.heads.load(tmp_path / "head")
    np.testing.assert_array_equal(again.predict_proba(X), head.predict_proba(X))
    assert "RefinedSoftmax" in again.card()
    module = ps.heads.to_module(head)
    import torch

    np.testing.assert_allclose(module(torch.tensor(X)).detach().numpy(), head.decision_function(X), atol=1e-9)


def test_even_priors_shift_the_scores_by_the_counts(released: Any) -> None:
    _, releases = released
    X = np.random.default_rng(0).normal(size=(9, D))
    even, plain = (ps.heads.RefinedSoftmax(priors=each).fit_releases(releases) for each in ("uniform", "counts"))
    shift = even.decision_function(X) - plain.decision_function(X)
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-9)


@pytest.mark.parametrize("word", ["adapter/32", "mlp/32"])
def test_it_learns_what_no_linear_scores_can(word: str) -> None:
    X, y = crossed()
    assert ps.heads.RefinedSoftmax(rounds=12).fit(X, y).score(X, y) < 0.6
    assert ps.heads.RefinedSoftmax(rounds=12, module=word).fit(X, y).score(X, y) > 0.85


@pytest.mark.ci
def test_one_party_alone_learns_it_privately() -> None:
    pytest.importorskip("opacus")
    X, y = crossed()
    promise = {"epsilon": 8.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged"}
    public = {"classes": (0, 1), "expected_records": len(X)}
    head = ps.heads.RefinedSoftmax(rounds=12, module="adapter/16").fit_private(X, y, **promise, **public)
    assert head.score(X, y) > 0.75
    assert head.rounds_ == 12


def test_nothing_is_spent_on_rounds_that_cannot_be_measured_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from privstats import optional_dependencies

    monkeypatch.setattr(optional_dependencies.importlib.util, "find_spec", lambda name: None)
    ledger = ps.dp.Ledger.create(tmp_path / "ledger.db")
    ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=9.0, delta=1e-5)
    with pytest.raises(MissingExtraError, match="measuring this course needs torch and opacus"):
        ps.course.spend(rounds(module=WORD), ledger, "ward", run=b"spring")
    assert not ledger.account("ward").entries
    ps.course.spend(rounds(module=WORD), ledger, "ward", run=b"spring", sums_only=True)


def test_a_course_without_a_module_has_the_digest_and_the_file_that_it_had(tmp_path: Path) -> None:
    write(tmp_path / "plain.toml", rounds())
    assert "module" not in (tmp_path / "plain.toml").read_text()
    assert "module" not in rounds().template.to_toml()
    course = rounds(module=WORD)
    write(tmp_path / "course.toml", course)
    assert f'module = "{WORD}"' in (tmp_path / "course.toml").read_text()
    assert read(tmp_path / "course.toml") == course
    digests = {each.digest for each in (course, rounds(), rounds(module="adapter/9"), rounds(calibrated=True))}
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda: rounds(RIDGE, module=WORD), PlanError, "leave module out"),
        (lambda: rounds(calibrated=True, module=WORD), PlanError, "leave calibrated out, or module"),
        (lambda: ps.Rounds(plan_of(), module="resnet"), SchemaError, "module must be KIND/SIZE"),
    ],
)
def test_what_has_no_module_is_refused(wrong: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        wrong()
