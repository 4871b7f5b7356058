"""GH-OFL's appendix B: the attack on FedAvg beside ours, output perturbation's sensitivity, and the tables' form."""

import numpy as np
import pytest

from benchmarks.papers import gh_appendix_b as appendix
from benchmarks.papers.sets import at_hand
from benchmarks.table import titled

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
