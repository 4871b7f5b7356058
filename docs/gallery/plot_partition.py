"""
However the records are spread
==============================

Ten parties that each hold a few classes only, or all of them alike: sums do not care. The release
is the same on every integer, and so is the head; what is drawn here are the parties, not the
accuracy, which would be three equal bars.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import privstats as ps
from privstats.workflows.simulate import dirichlet_partition

X, y = load_digits(return_X_y=True)
schema = ps.ClassSchema(classes=10, features=64, statistics="NAB", clip_norm=60.0)
whole = ps.measure(schema, X, y)
rng = ps.randomness.seeded(7)

figure, axes = plt.subplots(1, 3, figsize=(4.4, 3.0), sharey=True)
for axis, alpha in zip(axes, (0.1, 0.5, 100.0), strict=True):
    parts = dirichlet_partition(y, 10, alpha, rng)
    moments = [ps.measure(schema, X[part], y[part]) for part in parts]
    assert sum(moments) == whole  # federated is centralised, with ==
    counts = np.array([m.N for m in moments])
    axis.imshow(counts, aspect="auto")
    axis.grid(False)
    axis.set_title(f"alpha {alpha:g}")
    axis.set_xlabel("class")
axes[0].set_ylabel("party")
plt.show()
