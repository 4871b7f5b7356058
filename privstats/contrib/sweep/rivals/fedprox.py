"""FedProx over the study's partition: FedAvg with a pull toward the round's weights in every local step.

Source: Li et al. 2020, arXiv:1812.06127, Algorithm 2, with all parties in every round.
"""

from __future__ import annotations

from dataclasses import dataclass

from privstats.contrib.sweep.rivals.fedavg import FedAvg, Rounds

RECIPE = Rounds(rounds=50, rate=16.0, local=20, pull=0.001)


@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedAvg whose parties minimise ``loss + mu/2 |W - W_0|^2``, where W_0 are the round's weights; without privacy.

    Example:
        >>> from privstats.contrib.sweep.rivals.fedprox import FedProx
        >>> FedProx().recipe.pull
        0.001
    """

    recipe: Rounds = RECIPE

    @property
    def name(self) -> str:
        """Name of the method and its number of rounds."""
        return f"FedProx, {self.recipe.rounds} rounds"
