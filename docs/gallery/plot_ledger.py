"""
Releases add up
===============

Ten releases of the same records, each worth epsilon 1: together they are worth the root of the sum
of squares in mu, which is less than the sum of the epsilons and more than any of them. A ledger
counts this and refuses what would pass its cap.
"""

import matplotlib.pyplot as plt
import numpy as np

import privstats as ps

delta, cap = 1e-6, 3.0
mu = ps.dp.gaussian_mu(1.0, delta)
releases = np.arange(1, 11)
together = np.array([ps.dp.gaussian_epsilon(mu * np.sqrt(n), delta) for n in releases])

plt.bar(releases, together, color=np.where(together <= cap, "C0", "0.8"), label="together")
plt.plot(releases, releases, ":", color="0.6", label="sum of the epsilons")
plt.axhline(cap, color="C1", linestyle="--", label="the ledger's cap")
plt.xticks(releases)
plt.ylim(0, 6)
plt.xlabel("releases of the same records")
plt.ylabel("epsilon at delta 1e-6")
plt.legend()
plt.show()
