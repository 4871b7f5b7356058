"""FedCGS's tables: the baselines train as they say, and the paper's counts are the formulas it gives."""

import numpy as np
import pytest

from benchmarks.alignment.digits5 import SOURCES, digits5
from benchmarks.papers.cells import Published
from benchmarks.papers.cgs import personal, published, skew, study, unseen
from benchmarks.papers.cgs.training import Net, Recipe, average, blank, gradients, trained

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
Y = RNG.integers(0, 3, 40)


def _loss(net, pull, prototypes):
    moved = net.features(X)
    pulled = pull * np.square(moved - prototypes[Y]).sum(axis=1)
    return float((pulled - np.log(net.probabilities(X)[np.arange(40), Y])).mean())


def test_gradients_are_those_of_the_loss():
    rng = np.random.default_rng(1)
    net = Net(rng.normal(size=(5, 5)), rng.normal(size=(5, 3)), rng.normal(size=3))
    prototypes = rng.normal(size=(3, 5))
    for part, gradient in zip(("map", "weights", "bias"), gradients(net, X, Y, 0.3, prototypes), strict=True):
        step = rng.normal(size=gradient.shape)
        ends = []
        for sign in (1, -1):
            values = {name: getattr(net, name) for name in ("map", "weights", "bias")}
            ends.append(_loss(Net(**values | {part: values[part] + sign * 1e-6 * step}), 0.3, prototypes))
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(float((gradient * step).sum()), rel=1e-5)


def test_training_separates_what_is_separable_and_keeps_a_map_that_is_none():
    means = np.eye(3, 5) * 8
    rows = (means[Y] + X).astype(np.float32)
    net = trained(blank(5, 3, mapped=False), rows, Y, Recipe(epochs=60), np.random.default_rng(0))
    assert net.map is None
    assert net.accuracy(rows, Y) > 95


def test_the_pull_draws_features_to_the_prototypes():
    rows, prototypes = X.astype(np.float32), np.eye(3, 5, dtype=np.float32)
    start = blank(5, 3, mapped=True)

    def distance(pull):
        net = trained(start, rows, Y, Recipe(100, pull=pull), np.random.default_rng(0), prototypes)
        return np.square(net.features(rows) - prototypes[Y]).sum()

    assert distance(1.0) < 0.5 * distance(0.0)


def test_an_average_weighs_by_records():
    one, other = blank(2, 2, mapped=True), Net(np.full((2, 2), 4.0), np.full((2, 2), 4.0), np.full(2, 4.0))
    mean = average([one, other], [3, 1])
    assert mean.bias == pytest.approx([1, 1])
    assert mean.map == pytest.approx(np.array([[1.75, 1], [1, 1.75]]))
    assert average([blank(2, 2, mapped=False)] * 2, [1, 1]).map is None


def test_the_paper_counts_both_triangles_and_we_send_one():
    d, C = 512, 10
    assert int(published.UPLOADS["FedCGS"][0]) == (C + d) * d + C
    assert int(published.UPLOADS["FedPFT"][0]) == (2 * d + 1) * 10 * C
    _, rows = skew.uploads()
    row = next(row for row in rows if row["row"].startswith("FedCGS:"))
    assert row["ours"] == C + C * d + d * (d + 1) // 2
    assert row["verdict"].startswith("differs: B is symmetric")


def test_the_head_does_not_move_with_alpha_and_the_ensemble_does():
    (_, rows), _ = skew.table_1(quick=True)
    value = {(row["row"], row["column"]): row for row in rows}
    cgs = [row for (_, name), row in value.items() if name == "FedCGS"]
    assert len({row["ours"] for row in cgs}) == 1
    assert all(row["se"] == 0 for row in cgs)
    assert all((f"CIFAR10, alpha = {alpha}", "FedAvg (one-shot)") in value for alpha in (0.05, 0.1, 0.5))
    assert value["CIFAR10, alpha = 0.05", "Ensemble"]["ours"] < value["CIFAR10, alpha = 0.5", "Ensemble"]["ours"]


def test_a_source_that_is_left_out_is_all_of_the_test_and_none_of_the_training():
    digits = digits5("gradients", most=20, features=8)
    for place in range(len(SOURCES)):
        X, X_test, y, y_test = unseen.without(digits, place).split
        assert len(X) + len(X_test) == len(digits.rows)
        assert np.array_equal(X_test, digits.rows[digits.source == place])
        assert (len(y), len(y_test)) == (len(X), len(X_test))


@pytest.mark.ci
def test_every_method_of_the_personalised_table_is_run():
    (_, rows), _ = personal.table_3(quick=True)
    assert set(published.TABLE_3) <= {row["row"] for row in rows}
    assert all(0 < row["ours"] < 100 for row in rows)


def test_four_samples_of_a_class_come_back_from_their_sums():
    title, rows = study.inversion(quick=True)
    assert "cannot be used" in title
    said = {row["the server sees"]: row["the paper's sentence"] for row in rows}
    assert said["A and B of the four samples, as uploaded"].startswith("refuted")
    assert said["A of the four samples alone"] == "holds for this sight"


def test_printed_numbers_are_numbers():
    for by_alpha in published.TABLE_1.values():
        for texts in by_alpha.values():
            assert [Published.of(text).spread is not None for text in texts] == [True] * len(published.METHODS)
    assert Published.of(published.TABLE_3["FedCGS"]["SVHN"]).value == 81.2
