"""GH-OFL's tables: partitions lose nobody, integers show whom they lose, its attack on FedAvg stands beside ours."""

import gzip

import numpy as np
import pytest

from benchmarks.corruptions import CORRUPTIONS, corrupted
from benchmarks.features import corrupted_fashion_mnist
from benchmarks.papers import gh_appendix_b as appendix
from benchmarks.papers import sets
from benchmarks.papers.cells import Published
from benchmarks.papers.gh import accuracy, cost, future, invariance, published, rounds, shape
from benchmarks.papers.partitions import by_classes, by_dirichlet, dominant_mix, drawn
from benchmarks.papers.sets import at_hand
from benchmarks.table import titled

LABELS = np.arange(600) % 6


@pytest.mark.parametrize("alpha", [0.05, 0.5, 100.0])
def test_every_record_goes_to_one_client(alpha):
    cut = by_dirichlet(LABELS, 10, alpha, np.random.default_rng(0))
    assert len(cut) == 10
    assert sorted(np.concatenate(cut)) == list(range(600))


def test_a_small_alpha_leaves_clients_with_few_classes():
    def classes(alpha):
        cut = by_dirichlet(LABELS, 10, alpha, np.random.default_rng(0))
        return np.mean([len(np.unique(LABELS[part])) for part in cut if len(part)])

    assert classes(0.05) < 4 < classes(100.0) == 6


@pytest.mark.parametrize(("clients", "each"), [(6, 1), (15, 1), (6, 2), (100, 2)])
def test_a_client_has_its_number_of_classes_and_every_record_one_client(clients, each):
    cut = by_classes(LABELS, clients, each, np.random.default_rng(0))
    assert [len(np.unique(LABELS[part])) for part in cut] == [each] * clients
    assert sorted(np.concatenate(cut)) == list(range(600))


def test_fewer_clients_than_classes_would_lose_records():
    with pytest.raises(ValueError, match="5 clients cannot hold 6 classes"):
        by_classes(LABELS, 5, 1, np.random.default_rng(0))


def test_the_peers_rows_are_stops_of_one_run():
    """A peer after one round is where the same peer passes on its way to two."""
    (title, rows), (_, curves) = rounds.beside(quick=True)
    assert "multi-round" in title
    assert {row["row"] for row in rows} == {f"{name} (1 round)" for name in ("FedAvg", "FedProx", "SCAFFOLD")}
    at_one = {row["column"]: row["ours"] for row in curves if row["row"] == "1"}
    assert {row["ours"] for row in rows} == set(at_one.values())
    assert all(0 < row["ours"] < 100 for row in curves)


def test_a_few_classes_dominate_and_all_are_there():
    mix = dominant_mix(10, 0.2, 2, np.random.default_rng(0))
    assert mix.sum() == pytest.approx(1)
    assert sorted(mix)[-2:] == pytest.approx([0.42, 0.42])
    assert mix.min() == pytest.approx(0.02)


def test_a_draw_has_the_mix_and_takes_a_record_twice_only_where_a_class_has_too_few():
    rng = np.random.default_rng(0)
    mix = np.array([1.0, 0, 0, 0, 0, 0])
    assert set(LABELS[drawn(LABELS, mix, 50, rng)]) == {0}
    assert len(set(drawn(LABELS, mix, 100, rng))) == 100
    assert len(drawn(LABELS, mix, 101, rng)) == 101


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_changes_images_and_stays_a_picture(name):
    images = np.random.default_rng(0).random((3, 8, 8, 1))
    spoilt = corrupted(images, name)
    assert spoilt.shape == images.shape
    assert spoilt.min() >= 0
    assert spoilt.max() <= 1
    assert np.abs(spoilt - images).mean() > 0.01
    assert np.array_equal(spoilt, corrupted(images, name))


def test_raw_images_are_spoilt_part_by_part(tmp_path):
    pixels, labels = np.arange(3 * 784, dtype=np.int64) % 256, bytes([0, 1, 2])
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + bytes(pixels.tolist())))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + labels))
    made = corrupted_fashion_mnist(tmp_path)
    assert set(made) == {"train", "test", *(f"test_{name.replace(' ', '_')}" for name in CORRUPTIONS)}
    clean = made["test"][0]
    for part, (images, y) in made.items():
        assert (images.shape, images.dtype, list(y)) == ((3, 28, 28, 1), np.uint8, [0, 1, 2])
        assert np.array_equal(images, clean) == (part in ("train", "test"))


def test_partitions_give_the_pooled_integers_and_float_sums_do_not():
    _, rows = invariance.equal_integers(quick=True)
    assert all(row["equal to the pooled integers"] == row["partitions"] for row in rows)
    features = sets.at_hand(quick=True)["digits"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=features.split[0].shape)
    parts = [X[part] for part in by_dirichlet(features.split[2], 10, 0.5, rng)]
    assert (invariance.float_sums(parts) != invariance.float_sums([X])).mean() > 0.5


def test_a_client_that_is_lost_is_noticed(monkeypatch):
    whole = invariance.shards_of
    monkeypatch.setattr(invariance, "shards_of", lambda X, y, cut: whole(X, y, cut)[1:])
    _, rows = invariance.equal_integers(quick=True)
    assert all(row["equal to the pooled integers"] == 0 for row in rows)


def test_accuracies_that_move_with_the_partition_stop_the_table():
    invariance.require_one_value([80.0, 80.0])
    with pytest.raises(AssertionError, match=r"from 79\.0 to 80\.0"):
        invariance.require_one_value([80.0, 79.0])


def test_uploads_are_what_the_paper_counts():
    _, rows = cost.uploads(quick=False)
    printed = [row for row in rows if row["published"] is not None]
    assert len(printed) == 15
    assert [row["row"] for row in printed if row["verdict"] != "within the spread"] == []


def test_the_robustness_table_is_about_heads_that_hold_on_clean_rows():
    (_, rows), _ = accuracy.robustness(quick=True)
    value = {(row["row"], row["column"]): row["ours"] for row in rows}
    for head in ("FedCGS", "GH-LDA"):
        assert value[head, "the same head, clean"] > 90
        assert 10 < value[head, "CIFAR-100-C"] < value[head, "the same head, clean"]


def test_the_whole_subspace_is_the_whole_head():
    (_, rows), _ = shape.subspaces(quick=True)
    value = {row["row"] + row["column"]: row["ours"] for row in rows}
    assert value["CIFAR-10energy, k = 16"] == pytest.approx(1)
    assert value["CIFAR-100-Call features"] < value["CIFAR-10all features"]
    assert value["CIFAR-10k = 4"] < value["CIFAR-10k = 16"] == value["CIFAR-10all features"]


def test_a_class_is_halved_across_its_longest_direction():
    """Two clumps of one class, and a class of one clump that is long in the second feature."""
    rng = np.random.default_rng(0)
    clumps = rng.normal(size=(200, 2)) * 0.1 + np.where(np.arange(200) % 2, 5.0, -5.0)[:, None] * [1, 0]
    long = rng.normal(size=(100, 2)) * [0.1, 3.0]
    sides = future.halved(np.r_[clumps, long], np.r_[np.zeros(200, int), np.full(100, 2)], 3)
    assert len(set(sides[:200:2])) == len(set(sides[1:200:2])) == 1
    assert sides[0] != sides[1]
    above = long[:, 1] > long[:, 1].mean()
    assert (sides[200:] == above).mean() in (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))


def test_the_sets_that_are_not_there_give_way_to_the_nearest():
    assert sets.nearest_to("CIFAR-100", quick=True).name == "digits"


def test_scaled_rows_have_a_mean_square_of_one():
    features = sets.scaled(sets.at_hand(quick=True)["digits"], 100)
    assert len(features.split[0]) == len(features.split[2]) == 100
    assert np.square(features.split[1]).mean() == pytest.approx(1, rel=0.1)


def test_printed_numbers_are_numbers():
    tables = (published.TABLE_1, published.TABLE_3A, published.TABLE_3B, published.TABLE_4, published.LOW_RANK)
    for table in tables:
        for texts in table.values():
            assert all(Published.of(text).text == text for text in texts)
    assert all(len(texts) == len(published.HEADS) for texts in (*published.TABLE_1.values(), published.TABLE_2))


DIGITS = at_hand(quick=True)["digits"]


def test_a_fedavg_update_shows_less_than_the_sums_of_lda():
    update, sums = appendix.leakage(2)
    assert update["pictures"] == sums["pictures"] == 8
    assert sums["PSNR, dB"] - update["PSNR, dB"] > 5


@pytest.mark.parametrize("penalty", [0.1, 3.0])
def test_no_record_moves_the_weights_further_than_output_perturbation_counts_with(penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 3, 12)
    whole, off = appendix.softmax(X, y, 3, penalty)
    moved = [
        np.linalg.norm(appendix.softmax(np.delete(X, i, 0), np.delete(y, i), 3, penalty)[0] - whole) for i in range(12)
    ]
    assert max(moved) <= (np.sqrt(2) + 2 * off) / penalty
    assert max(moved) > 0.2 / penalty
    far = np.linalg.norm(appendix.perturbed(whole, off, penalty, 1e-3, 1) - whole)
    assert far > 100 * np.sqrt(2) / penalty


def test_local_noise_is_that_of_all_parties_together_and_laplace_noise_of_one_table_the_smaller():
    (row,) = appendix.local_noise(DIGITS, (16,), seeds=2)
    ratio = row["noise of B over B, local"] / row["noise of B over B, central"]
    assert ratio == pytest.approx(np.sqrt(appendix.CLIENTS), rel=0.35)
    one, many = appendix.counts((1, 30))
    assert one["Laplace over Gaussian"] < 1 < many["Laplace over Gaussian"]


def test_the_committed_tables_say_what_the_page_says():
    kept = dict(titled("papers.gh_appendix_b"))
    k = [row["k"] for row in next(rows for title, rows in kept.items() if title.startswith("local noise"))]
    assert k == sorted(k)
    heads = next(rows for title, rows in kept.items() if title.startswith("noise on the final head"))
    assert all(row["noise on the sums, LDA, %"] > 0 for row in heads)
    update, sums = kept[appendix.LEAKAGE]
    assert sums["PSNR, dB"] - update["PSNR, dB"] > 5
