"""
What a release shows
====================

The sums A divided by the counts N are class means, and for images one can look at them: at every
epsilon the picture is of a whole class, and the noise is what stands between the mean and any
single image in it. From top to bottom the noise becomes weaker; the last row has none.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import privstats as ps

X, y = load_digits(return_X_y=True)
schema = ps.ClassSchema(classes=10, features=64, statistics="NA", clip_norm=60.0)
cohort = ps.Cohort(clients=10, min_survivors=8, max_records=2_000)
moments = [ps.measure(schema, X[k::10], y[k::10]) for k in range(10)]


def means(privacy):
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
    real = ps.session.aggregate_unmasked(plan, moments).moments
    return real.A / real.N.clip(1)[:, None]


promise = {"model": "central", "unit": "record", "adjacency": "add-remove", "delta": 1e-5}
rows = {f"epsilon {e:g}": means(ps.Privacy(epsilon=e, **promise)) for e in (0.1, 0.3, 1.0)}
rows["no noise"] = means(ps.NoPrivacy())

figure, axes = plt.subplots(len(rows), 10, figsize=(4.4, 2.4))
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for axis, picture in zip(line, pictures, strict=True):
        axis.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
plt.show()
