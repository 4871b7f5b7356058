"""Attack 10 as a game: the class of the one record by which two releases differ, from their counts.

The arithmetic is in ``properties``, with that of attributes and properties, which need one-hot features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attacks.differencing import OfTwoCohorts
from threat_models.attacks.properties import label_between


class JoinedLabel(OfTwoCohorts):
    """The class whose count grew most."""

    name = "joined-label"
    number = 10
    goal = "inference"
    title = "an attacker reads the label of a person who joined between two releases off their counts"
    needs = Adversary(sees="releases", releases=2, cohorts="without-target", knows="none")
    reads = "N"
    records = 1
    effort = 0.5

    def run(self, view: View, rng: Generator) -> NDArray[np.int64]:
        """One label."""
        del rng
        after, before = view.sums[:2]
        return np.array([label_between(before["N"], after["N"])])
