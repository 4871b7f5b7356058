"""
Accuracy against epsilon, by who adds the noise
===============================================

Ten parties with handwritten digits. ``central`` and ``distributed`` cost the same accuracy: what
differs is whom you have to trust. ``local`` trusts no party and has the most noise. The curve is the mean of
three draws of the noise; the line on top has no noise at all.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import privstats as ps

X, y = load_digits(return_X_y=True)
X -= X.mean(axis=1, keepdims=True)  # by row, so public
X /= np.linalg.norm(X, axis=1, keepdims=True)
test = np.arange(len(X)) % 5 == 0
schema = ps.ClassSchema(classes=10, features=64, statistics="NAB", clip_norm=1.0)
cohort = ps.Cohort(clients=10, min_survivors=8, max_records=2_000)
moments = [ps.measure(schema, X[~test][k::10], y[~test][k::10]) for k in range(10)]


def score(privacy):
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
    release = ps.session.aggregate_unmasked(plan, moments)  # the integers that masking gives, without the masks
    return ps.heads.LDA().fit_release(release).score(X[test], y[test])


epsilons = (0.3, 1.0, 3.0, 10.0)
for model in ("central", "distributed", "local"):
    promise = {"model": model, "unit": "record", "adjacency": "add-remove", "delta": 1e-5}
    scores = [[score(ps.Privacy(epsilon=e, **promise)) for _ in range(3)] for e in epsilons]
    plt.plot(epsilons, np.mean(scores, axis=1), "o-", label=model)
plt.axhline(score(ps.NoPrivacy()), color="0.6", linestyle="--", label="no noise")
plt.xscale("log")
plt.xticks(epsilons, [f"{e:g}" for e in epsilons])
plt.xlabel("epsilon")
plt.ylabel("accuracy on held-out digits")
plt.legend()
plt.show()
