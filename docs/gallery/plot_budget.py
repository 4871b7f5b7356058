"""
Where the budget goes
=====================

All statistics of a release are noised together under one mu, and mu² splits exactly over them.
Beside the shares: the noise on each sum, as a part of the largest sum that one record can make.
"""

import matplotlib.pyplot as plt

import privstats as ps

plan = ps.Plan(
    schema=ps.ClassSchema(classes=10, features=64, statistics="NAS", clip_norm=1.0),
    cohort=ps.Cohort(clients=20, min_survivors=15, max_records=20_000),
    privacy=ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6),
)
rows = plan.budget().rows

figure, (left, right) = plt.subplots(1, 2, figsize=(4.4, 3.0))
left.pie(
    [row.share for row in rows],
    labels=[f"{row.statistic}: {row.share:.0%}" for row in rows],
    startangle=90,
)
left.set_title("parts of mu²")
right.barh([row.statistic for row in rows], [row.sigma for row in rows])
right.set_title("noise on every entry")
right.set_xlabel("standard deviation, where\none record adds at most 1")
plt.show()
