"""
Heads side by side
==================

The same parties, with and without noise. ``NAS`` has the second moments of every class and pays for
ten times as many noisy sums as ``NAB``: without noise the quadratic heads win, under strong noise
the linear one does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import privstats as ps

X, y = load_digits(return_X_y=True)
X -= X.mean(axis=1, keepdims=True)
X /= np.linalg.norm(X, axis=1, keepdims=True)
test = np.arange(len(X)) % 5 == 0
cohort = ps.Cohort(clients=10, min_survivors=8, max_records=2_000)
heads = (
    ("NAB", ps.heads.LDA()),
    ("NAB", ps.heads.NaiveBayes()),
    ("NAS", ps.heads.RDA()),
    ("NAS", ps.heads.LowRankQDA()),
)
promise = {"model": "central", "unit": "record", "adjacency": "add-remove", "delta": 1e-5}
privacies = {
    "epsilon 1": ps.Privacy(epsilon=1.0, **promise),
    "epsilon 10": ps.Privacy(epsilon=10.0, **promise),
    "no noise": ps.NoPrivacy(),
}


def score(statistics, head, privacy):
    schema = ps.ClassSchema(classes=10, features=64, statistics=statistics, clip_norm=1.0)
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
    moments = [ps.measure(schema, X[~test][k::10], y[~test][k::10]) for k in range(10)]
    release = ps.session.aggregate_unmasked(plan, moments)
    return head.fit_release(release).score(X[test], y[test])


places = np.arange(len(heads))
for shift, (name, privacy) in enumerate(privacies.items()):
    scores = [score(*head, privacy) for head in heads]
    bars = plt.bar(places + 0.27 * (shift - 1), scores, 0.25, label=name)
    plt.bar_label(bars, fmt="{:.0%}", fontsize=8)
plt.xticks(places, [f"{type(head).__name__}\n{statistics}" for statistics, head in heads])
plt.ylabel("accuracy on held-out digits")
plt.gcf().legend(loc="outside upper center", ncols=3)
plt.show()
