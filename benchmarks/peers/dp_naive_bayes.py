"""diffprivlib's naive Bayes on all records in one place.

Central, pure epsilon, record level; its logistic regression does not run beside current scikit-learns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.heads.peers import diffprivlib_naive_bayes
from benchmarks.peers.interface import Outcome, Shards

__all__ = ["DPNaiveBayes"]


@dataclass(frozen=True)
class DPNaiveBayes:
    """diffprivlib's Gaussian naive Bayes on the pooled records; pure epsilon, record level."""

    epsilon: float

    def __str__(self) -> str:
        return "nothing to tune"

    def fit(self, shards: Shards) -> Outcome:
        """Fit with the noise of this seed.

        Raises:
            ImportError: diffprivlib is not installed.
        """
        began = time.process_time()
        score = diffprivlib_naive_bayes(shards.split, self.epsilon, 1, first=shards.seed)[0]
        return Outcome(score, shards.record_bytes, time.process_time() - began, 1, self.epsilon, "record")
