"""
Parties that vanish
===================

Distributed noise is sized for the fewest survivors that the plan admits. While more of them stay,
their shares are on top, so the release is noisier and stronger than promised; with fewer there is
no release at all.
"""

import matplotlib.pyplot as plt
import numpy as np

import privstats as ps

clients, fewest = 20, 13
plan = ps.Plan(
    schema=ps.ClassSchema(classes=10, features=64, statistics="NAB", clip_norm=1.0),
    cohort=ps.Cohort(clients=clients, min_survivors=fewest, max_records=20_000),
    privacy=ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6),
)
survivors = np.arange(fewest, clients + 1)
epsilons = [plan.noise.released_epsilon(n) for n in survivors]

plt.axvspan(0, fewest - 0.5, color="0.9", label="no release")
plt.plot(survivors, epsilons, "o-", label="epsilon of what is released")
plt.axhline(1.0, color="C1", linestyle="--", label="the promise")
plt.xlim(clients + 0.5, 8)
plt.ylim(0, 1.15)
plt.xlabel("survivors out of 20")
plt.ylabel("epsilon at delta 1e-6")
plt.legend(loc="lower center")
plt.show()
