"""
Choosing the clip norm
======================

Every vector is shrunk to ``clip_norm``, and the noise grows with it. Too small, and most records
are clipped; too large, and the noise is sized for records that do not exist. Look at public data
only: a clip norm taken from private records would leak information about them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import privstats as ps

X, y = load_digits(return_X_y=True)
X -= X.mean(axis=1, keepdims=True)
test = np.arange(len(X)) % 5 == 0
cohort = ps.Cohort(clients=10, min_survivors=8, max_records=2_000)
privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)

norms = np.array([4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
clipped, scores = [], []
for norm in norms:
    schema = ps.ClassSchema(classes=10, features=64, statistics="NAB", clip_norm=norm)
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
    moments = [ps.measure(schema, X[~test][k::10], y[~test][k::10]) for k in range(10)]
    clipped.append(sum(moments).clip_report.fraction_clipped)
    releases = [ps.session.aggregate_unmasked(plan, moments) for _ in range(3)]
    scores.append([ps.heads.LDA().fit_release(r).score(X[test], y[test]) for r in releases])

plt.plot(norms, np.mean(scores, axis=1), "o-", label="accuracy, epsilon 1")
plt.plot(norms, clipped, "s--", label="records that are cut")
plt.xscale("log", base=2)
plt.xlabel("clip_norm")
plt.legend()
plt.show()
