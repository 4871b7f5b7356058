"""FedAvg, FedProx and the ensemble train on the study's own partition, and one seed yields identical scores."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import softmax

import privstats as ps
from privstats.contrib.sweep import Axes, study
from privstats.contrib.sweep.draws import Dataset, Trial, _owners
from privstats.contrib.sweep.rivals import FederatedRival, Rival, rivals
from privstats.contrib.sweep.rivals.ensemble import Ensemble, Once
from privstats.contrib.sweep.rivals.fedavg import FedAvg, Rounds
from privstats.contrib.sweep.rivals.fedprox import FedProx
from privstats.contrib.sweep.rivals.rows import clipped_rows
from privstats.contrib.sweep.rivals.softmax_layer import BATCH, SoftmaxModels, scores, with_bias
from privstats.plug_ins import announced
from privstats.workflows.score import Scores
from tests.contrib.sweep.test_sweep import CENTRES, PLAN, Y

# Classes that overlap, so that scores differ between seeds.
X = CENTRES[Y] / 4 + np.random.default_rng(5).normal(size=(900, 4))
TRAIN, TEST = (X[:600], Y[:600]), (X[600:], Y[600:])
FEW = Rounds(rounds=3, rate=16.0, local=5)
QUICK = {
    "FedAvg": lambda: FedAvg(FEW),
    "FedProx": lambda: FedProx(dataclasses.replace(FEW, pull=0.1)),
    "ensemble": lambda: Ensemble(Once(rate=16.0, local=20)),
}
SKEWED = Axes(alpha=[0.1, 10.0], epsilon=[1.0, 8.0])


def found(heads, axes=SKEWED, **how):
    return study(PLAN, TRAIN, TEST, heads, axes, **{"repeats": 3, "seed": 1, "with_baselines": False} | how)


@pytest.fixture(scope="module")
def result():
    return found({"LDA": ps.heads.LDA} | QUICK)


def parts_of(*parties):
    return [(with_bias(rows), labels) for rows, labels in (clipped_rows(PLAN.schema, *party) for party in parties)]


def plain_sgd(rows, labels, classes, rate, batches):
    """SGD on the softmax's cross entropy, written out record by record in double precision."""
    W = np.zeros((rows.shape[1] + 1, classes))
    for batch in batches:
        step = np.zeros_like(W)
        for place in batch:
            x = np.append(rows[place], 1.0)
            step += np.outer(x, softmax(x @ W) - np.eye(classes)[labels[place]])
        W -= rate / len(batch) * step
    return W


def test_fedavg_with_one_client_is_plain_sgd():
    (part,), (rows, labels) = parts_of(TRAIN), clipped_rows(PLAN.schema, *TRAIN)
    (W,) = FedAvg(FEW).fit([part], 4, 3, seed=9).layers
    turns = [np.random.default_rng((9, turn, 0)).integers(0, len(labels), (5, BATCH)) for turn in range(3)]
    assert np.allclose(W, plain_sgd(rows, labels, 3, 16.0, np.concatenate(turns)), atol=1e-4)


def test_a_round_of_fedavg_weighs_each_party_by_its_records():
    parts = parts_of((TRAIN[0][:400], TRAIN[1][:400]), (TRAIN[0][400:500], TRAIN[1][400:500]))
    (mean,) = FedAvg(Rounds(1, 16.0, 5)).fit(parts, 4, 3, seed=2).layers
    each = Ensemble(Once(16.0, 5)).fit(parts, 4, 3, seed=2)
    assert each.shares == [0.8, 0.2]
    assert np.allclose(mean, 0.8 * each.layers[0] + 0.2 * each.layers[1], atol=1e-6)


def test_fedprox_without_a_pull_is_fedavg_and_a_pull_holds_the_weights_back():
    parts = parts_of(*((TRAIN[0][TRAIN[1] == each], TRAIN[1][TRAIN[1] == each]) for each in range(3)))
    (plain,), (same,), (near,) = (
        rival.fit(parts, 4, 3, seed=3).layers
        for rival in (FedAvg(FEW), FedProx(FEW), FedProx(dataclasses.replace(FEW, pull=0.05)))
    )
    assert np.array_equal(plain, same)
    assert np.linalg.norm(near) < 0.95 * np.linalg.norm(plain)


def test_an_ensemble_predicts_by_the_mean_of_its_parties_probabilities():
    parts = parts_of((TRAIN[0][:300], TRAIN[1][:300]), (TRAIN[0][300:400], TRAIN[1][300:400]))
    model, (rows, _) = Ensemble(Once(16.0, 20)).fit(parts, 4, 3, seed=4), clipped_rows(PLAN.schema, *TEST)
    mean = sum(share * softmax(scores(W, rows), axis=1) for share, W in zip((0.75, 0.25), model.layers, strict=True))
    assert np.allclose(model.predict_proba(rows), mean, atol=1e-6)
    assert np.allclose(model.predict_proba(rows).sum(axis=1), 1.0)


def test_the_same_seed_yields_identical_scores_in_every_replicate(result):
    again, other = found({"LDA": ps.heads.LDA} | QUICK), found(QUICK, seed=2)
    assert again.to_json() == result.to_json()
    assert again.draws == result.draws
    skewed = result.draws.where(head="FedAvg", alpha=0.1)["score"]
    assert other.draws.where(head="FedAvg", alpha=0.1)["score"] != skewed


def test_a_rival_without_privacy_has_the_point_without_noise_alone_in_every_replicate(result):
    for name in QUICK:
        rows = result.draws.where(head=name)
        assert set(rows["epsilon"]) == {None}
        assert set(rows["model"]) == {"none"}
        assert [len(rows.where(alpha=alpha)) for alpha in SKEWED.alpha] == [3, 3]
        (row,) = result.summary.where(head=name, alpha=0.1)
        assert row["low"] < row["mean"] < row["high"]
    assert len(result.draws.where(head="LDA", epsilon=None)) == 2  # a head's exact score is the same in each
    assert min(result.draws.where(head="FedAvg", alpha=10.0)["score"]) > 0.6


class Recording(FederatedRival):
    """Stores the parties that it is passed."""

    recipe = Once(1.0, 1)
    private = False
    seen: list[object] = []  # noqa: RUF012

    name = "recording"

    def __str__(self):
        return "no model"

    def require(self, plan):
        """Refuse nothing."""

    def scores_of_parties(self, plan, parties, test, seed):
        """Store the parties."""
        self.seen.append(parties)
        return Scores(0.5, 0.5)


def test_the_split_is_the_one_whose_sums_the_heads_have(monkeypatch):
    Recording.seen.clear()
    measured, genuine = [], ps.moments.exact_moments
    monkeypatch.setattr(
        "privstats.contrib.sweep.draws.exact_moments",
        lambda schema, X, y, **how: (measured.append((X, y)), genuine(schema, X, y, **how))[1],
    )
    axes = Axes(alpha=[0.1], epsilon=[8.0])
    found({"LDA": ps.heads.LDA, "recording": Recording}, axes, repeats=2)
    assert len(Recording.seen) == 2
    subject = Dataset(PLAN, axes, TRAIN, TEST, {}, 1)
    (deal,) = axes.deals(PLAN)
    for draw, parties in enumerate(Recording.seen):
        ours = measured[5 * draw : 5 * draw + 5]
        dealt = [TRAIN[0][index] for index in _owners(subject, Trial(deal, draw))]
        for (X, y), (rows, labels), drawn in zip(parties, ours, dealt, strict=True):
            assert np.array_equal(X, rows)
            assert np.array_equal(y, labels)
            assert np.array_equal(X, drawn)


def test_a_party_without_records_takes_no_part():
    empty = TRAIN[0][:0], TRAIN[1][:0]
    ends = [FedAvg(FEW).scores_of_parties(PLAN, parties, TEST, 5) for parties in ([TRAIN], [TRAIN, empty])]
    assert ends[0] == ends[1] == FedAvg(FEW).scores(PLAN, TRAIN, TEST, 5)


def test_rows_are_clipped_as_those_of_the_sums_and_divided_by_the_clip_norm():
    long = np.array([[30.0, 40.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    rows, labels = clipped_rows(PLAN.schema, long, np.array([2, 0]))
    assert np.allclose(rows, [[0.6, 0.8, 0, 0], [0.125, 0, 0, 0]])
    assert labels.tolist() == [2, 0]
    own = ps.measure(PLAN.schema, long[:1], np.array([2])).real().A[2] / PLAN.schema.clip_norm
    assert np.allclose(rows[0], own, atol=2**-11)


def test_each_announced_rival_makes_one_with_a_name_a_recipe_and_words_about_its_privacy():
    names = [entry.name for entry in announced("privstats.rivals") if entry.dist.name == "privstats"]
    assert names == ["dp-gd", "dp-sgd", "ensemble", "fedavg", "fedprox"]
    made = {name: make() for name, make in rivals(*names).items()}
    assert len(made) == len(names)
    for name, rival in made.items():
        assert isinstance(rival, Rival)
        assert (rival.name, hash(rival)) == (name, hash(rival))
        assert dataclasses.asdict(rival.recipe)
        assert ("no privacy" in str(rival)) == (not rival.private)
        assert rival.upload_bytes(PLAN) == {"dp": 0, "on": 60, "Fe": 3000}.get(name[:2], 0)


def test_rivals_are_named_in_python_as_on_the_command_line():
    by_name = found({"LDA": ps.heads.LDA}, Axes(epsilon=[8.0]), baselines=["ensemble"], repeats=2)
    assert list(by_name.rivals) == ["one-shot ensemble"]
    assert set(by_name.draws["head"]) == {"LDA", "one-shot ensemble"}
    for wrong, words in (("fedavg", "baselines must be a list of names"), (["sgd"], "baseline must be one of dp-gd, ")):
        with pytest.raises(ps.DataError, match=words):
            found({"LDA": ps.heads.LDA}, baselines=wrong)


def test_a_plan_without_classes_is_refused():
    ridge = dataclasses.replace(PLAN, schema=ps.RidgeSchema(4, clip_norm=8.0, target_bound=1.0))
    with pytest.raises(ps.PlanError, match="FedAvg, 3 rounds trains a softmax of classes, and this plan has none"):
        FedAvg(FEW).require(ridge)


def test_a_softmax_of_zero_weights_is_unsure():
    model = SoftmaxModels((np.zeros((3, 2), np.float32),), (1.0,))
    rows, labels = np.ones((4, 2), np.float32), np.array([0, 0, 1, 1])
    assert Scores.of(PLAN.schema, model, rows, labels) == Scores(0.5, 0.5, auc=0.5, one_class=True)
