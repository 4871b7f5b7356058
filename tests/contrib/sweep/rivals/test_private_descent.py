"""What Opacus trains beside heads keeps the point's promise by its own account, and is the same under a seed."""

import dataclasses
import json
import math
import sys

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.sweep import Axes, study
from privstats.contrib.sweep.rivals import private_descent as descent
from privstats.contrib.sweep.rivals.dp_sgd import DP_SGD, PrivateDescent, _Fitted, dp_gd, dp_sgd
from privstats.contrib.sweep.rivals.private_descent import Recipe, linear, noise_multiplier, trained
from privstats.workflows.score import Scores
from tests import made
from tests.contrib.sweep.test_sweep import PLAN, TEST, TRAIN

FEW = Recipe(16.0, 0.3, 0.0, 4, 0.2)
SGD, GD = "DP-SGD (Opacus), pooled", "DP-GD (Opacus), pooled"


def found(heads, axes=None, **how):
    return study(PLAN, TRAIN, TEST, heads, axes, **{"repeats": 2, "with_baselines": False} | how)


def weights(records, recipe=FEW, epsilon=1.0, make=lambda: linear(4, 3), **how):
    module = trained(make, *records, recipe, epsilon, 1e-5, **{"seed": 0} | how)
    return [each.detach().numpy() for each in module.parameters()]


@pytest.fixture
def opacus():
    pytest.importorskip("torch")
    return pytest.importorskip("opacus")


@pytest.fixture
def unsolved(monkeypatch):
    """A noise multiplier of 1 at any finite epsilon: solving for one takes Opacus's accountant seconds."""
    monkeypatch.setattr(descent, "noise_multiplier", lambda epsilon, *_: float(math.isfinite(epsilon)))


@pytest.mark.ci
@pytest.mark.slow
def test_it_stands_beside_the_heads_in_table_picture_and_document(opacus):
    axes = Axes(model=["central", "local"], alpha=[0.1, 10.0], epsilon=[8.0])
    quick = Recipe(16.0, 0.3, 0.0, 9, 1.0)
    result = found({"LDA": ps.heads.LDA, GD: lambda: PrivateDescent(quick)}, axes)
    rows = result.draws.where(head=GD)
    exact = [len(result.draws.where(head=name, epsilon=None)) for name in ("LDA", GD)]
    assert exact == [2, 4]  # training is random without noise, too
    assert len(rows) - exact[1] == len(result.draws.where(head="LDA")) - exact[0]
    assert min(rows["score"]) > 0.8
    assert set(rows["upload_bytes"]) == {0}
    parts = [rows.where(model=model, alpha=alpha)["score"] for model in axes.model for alpha in axes.alpha]
    assert parts[1:] == parts[:-1]  # pooled records ask neither whose they are nor who draws the noise
    document = json.loads(result.to_json())
    assert document["recipes"] == {GD: dataclasses.asdict(quick)}
    assert {"torch", "opacus"} <= set(document["versions"])


def test_the_same_seed_gives_the_same_bits_and_leaves_torch_as_it_was(opacus, unsolved):
    import torch

    torch.manual_seed(7)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = weights(TRAIN, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    torch.set_num_threads(threads + 1)
    again, other = (weights(TRAIN, seed=seed) for seed in (1, 2))
    assert torch.get_num_threads() == threads + 1
    torch.set_num_threads(threads)
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.fixture
def engines(opacus, monkeypatch):
    """Opacus's engines, as they are made."""
    made, genuine = [], opacus.PrivacyEngine.make_private
    monkeypatch.setattr(
        opacus.PrivacyEngine, "make_private", lambda engine, **how: (made.append(engine), genuine(engine, **how))[1]
    )
    return made


SHARES = [(600, 0.2), (7, 0.2), (4, 0.2), (7, 1.0)]
"""Records, and the recipe's share of them; where that does not divide the records Opacus samples more of them."""


@pytest.mark.parametrize(("records", "sample"), SHARES)
def test_the_noise_is_solved_for_the_share_that_opacus_samples(engines, monkeypatch, records, sample):
    asked = []
    monkeypatch.setattr(descent, "noise_multiplier", lambda *how: (asked.append(how), 2.0)[1])
    part = [each[:records] for each in TRAIN]
    assert all(np.isfinite(each).all() for each in weights(part, dataclasses.replace(FEW, sample=sample)))
    (epsilon, delta, share, steps), ((noise, sampled, taken),) = asked[0], engines[0].accountant.history
    assert (epsilon, delta) == (1.0, 1e-5)
    assert (noise, sampled, taken) == (2.0, share, steps)


@pytest.mark.nightly
@pytest.mark.parametrize(("records", "sample"), SHARES)
def test_opacus_itself_counts_no_more_than_epsilon(engines, records, sample):
    weights([each[:records] for each in TRAIN], dataclasses.replace(FEW, sample=sample))
    assert 0.97 < engines[0].get_epsilon(1e-5) < 1.011  # within the error that its accountant states, .01


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_by_opacus_own_accountant_the_recipe_of_dp_sgd_spends_at_most_the_plans_epsilon(opacus, epsilon):
    from opacus.accountants import PRVAccountant

    account = PRVAccountant()
    account.history = [(noise_multiplier(epsilon, 1e-5, DP_SGD.sample, DP_SGD.steps), DP_SGD.sample, DP_SGD.steps)]
    assert 0.97 * epsilon < account.get_epsilon(1e-5) <= epsilon


@pytest.mark.nightly
def test_a_small_epsilon_is_spent_whole(opacus):
    """By Opacus's accountant with an error that is small beside it; with its own, .01, a fifth of it was not."""
    from opacus.accountants import PRVAccountant

    account = PRVAccountant()
    account.history = [(noise_multiplier(0.05, 1e-5, 0.2, 20), 0.2, 20)]
    assert 0.048 < account.get_epsilon(1e-5, eps_error=1e-4) <= 0.0501


def test_scores_that_are_not_finite_count_as_wrong(opacus):
    import torch

    layer = linear(4, 3)
    layer.bias.data[1] = math.nan
    rows, labels = np.zeros((6, 4), np.float32), np.array([0, 1, 2, 0, 1, 2])
    classes = ps.ClassSchema(3, 4, "NAB", 1.0)
    assert Scores.of(classes, _Fitted(layer, 3), rows, labels).score == 0.0
    layer.bias.data = torch.tensor([1.0, 0.0, 0.0])
    assert Scores.of(classes, _Fitted(layer, 3), rows, labels).score == pytest.approx(1 / 3)


def test_a_step_without_any_record_draws_its_noise(opacus, unsolved):
    """Of one record in a sample of one tenth most steps are empty; with noise the weights move all the same."""
    one = dataclasses.replace(FEW, steps=3)
    records = np.zeros((2, 4)), np.array([0, 1])
    (weight, _), (still, _) = (weights(records, one, epsilon, seed=3) for epsilon in (1.0, math.inf))
    assert np.isfinite(weight).all()
    assert np.abs(weight).min() > 0
    assert not still.any()


def test_the_rate_is_lowered_until_all_noise_together_is_as_small_as_the_recipe_says(opacus):
    """Rows of zeros give the weights nothing but noise."""
    records, recipe = (np.zeros((90, 60)), np.arange(90) % 3), Recipe(1e6, 0.3, 0.0, 25, 1.0, spread=2.0)
    weight, _ = weights(records, recipe, make=lambda: linear(60, 3))
    assert weight.std() == pytest.approx(2.0, rel=0.15)
    assert recipe.rate_at(0.0, 90) == 1e6
    assert dataclasses.replace(recipe, rate=0.01).rate_at(1.0, 90) == 0.01


def test_full_batches_compose_as_gaussians_and_without_a_promise_there_is_no_noise():
    assert noise_multiplier(1.0, 1e-5, 1.0, 49) == pytest.approx(7 / ps.dp.gaussian_mu(1.0, 1e-5))
    assert noise_multiplier(math.inf, 1e-5, 0.1, 49) == 0.0


CLASSES = ps.ClassSchema(3, 4, "NAB", clip_norm=8.0)


@pytest.mark.parametrize(
    ("schema", "change", "words"),
    [
        (CLASSES, {"adjacency": "replace-one"}, "added or removed, .*unit 'record' and adjacency 'replace-one'"),
        (CLASSES, {"unit": "client", "max_records_per_client": 9}, "unit 'client'"),
        (ps.ClassSchema(3, 4, "NA", 8.0), {"delta": 0.0}, "Opacus promises no pure epsilon"),
        (ps.RidgeSchema(4, clip_norm=8.0, target_bound=1.0), {}, "a softmax of classes, and this plan has none"),
    ],
)
def test_a_promise_that_opacus_does_not_keep_is_refused(schema, change, words):
    plan = made.plan(schema, ps.Cohort(5, 4, 1000), made.promise("central", **change))
    with pytest.raises(ps.PlanError, match=words):
        PrivateDescent(DP_SGD).require(plan)


def test_it_is_refused_before_anything_is_drawn(monkeypatch, opacus):
    monkeypatch.setattr("privstats.contrib.sweep.experiment.draws_of", lambda *_: pytest.fail("drawn"))
    with pytest.raises(ps.PlanError, match="added or removed"):
        found({SGD: dp_sgd}, Axes(unit=["record", "client"], records_per_client=200))


def test_it_is_trained_once_for_all_that_it_does_not_depend_on(monkeypatch, opacus):
    """Partition, trust model and statistics; once a draw and epsilon, and once a draw without noise."""
    seen = []
    monkeypatch.setattr(PrivateDescent, "scores", lambda _, plan, *rest: seen.append(rest[-1]) or Scores(len(seen) / 9))
    axes = Axes(model=["central", "local"], alpha=[0.1, 10.0], statistics=["NA", "NAB"], epsilon=[8.0])
    result = found({GD: dp_gd}, axes)
    assert len(seen) == 4
    assert len(set(seen)) == 2
    parts = [result.draws.where(model=model, draw=1)["score"] for model in axes.model]
    assert [len(set(part)) for part in parts] == [1, 1]


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setattr("privstats.optional_dependencies.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ps.errors.MissingExtraError, match=r"needs torch and opacus; .*privstats\[torch\]"):
        PrivateDescent(DP_SGD).require(PLAN)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ps.errors.MissingExtraError, match=r"privstats\[torch\]"):
        weights(TRAIN)


@pytest.mark.ci
@pytest.mark.slow
def test_any_module_of_torch_is_trained_from_the_start_that_the_seed_draws(opacus):
    import torch

    def bent(features, classes):
        return torch.nn.Sequential(torch.nn.Linear(features, 8), torch.nn.Tanh(), torch.nn.Linear(8, classes))

    recipe = Recipe(8.0, 1.0, 0.9, 60, 1.0)
    result = found({"bent": lambda: PrivateDescent(recipe, bent)}, Axes(epsilon=[20.0]))
    assert min(result.draws["score"]) > 0.8
    assert result.draws == found({"bent": lambda: PrivateDescent(recipe, bent)}, Axes(epsilon=[20.0])).draws


@pytest.mark.parametrize("affine", [True, False])
def test_a_layer_that_mixes_records_is_refused_by_its_name(opacus, affine):
    """Opacus itself passes one that has no weights of its own."""
    import torch

    mixed = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8, affine=affine), torch.nn.Linear(8, 3))
    with pytest.raises(ps.DataError, match=r"no gradient of one record in 1 \(BatchNorm1d\): use GroupNorm"):
        weights(TRAIN, make=lambda: mixed)
