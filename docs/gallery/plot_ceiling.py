"""
What epsilon means for one person
=================================

The most that *any* attacker can achieve: how many of the people in the data it detects, at how many
false alarms. No knowledge and no computer lifts it above its line; the grey diagonal is guessing.
The axes are logarithmic, because an attacker that is right about a few people for certain is worse
than one that is slightly right about all.
"""

import matplotlib.pyplot as plt
import numpy as np

import privstats as ps

alarms = np.geomspace(1e-4, 1, 60)
for epsilon in (0.3, 1.0, 3.0, 10.0):
    mu = ps.dp.gaussian_mu(epsilon, 1e-6)
    found = [ps.dp.operating_point(mu, false_positive_rate=rate)[0] for rate in alarms]
    plt.plot(alarms, found, label=f"epsilon {epsilon:g}")
plt.plot(alarms, alarms, color="0.6", linestyle=":", label="guessing")
plt.axvline(0.01, color="0.8", linewidth=1)
plt.loglog()
for axis in (plt.gca().xaxis, plt.gca().yaxis):
    axis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
plt.xlabel("false alarms, of all strangers")
plt.ylabel("found, of all members")
plt.legend()
plt.show()
