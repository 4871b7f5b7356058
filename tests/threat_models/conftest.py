"""Small plans and pools that the attack tests share."""

import numpy as np
import pytest

from privstats import ClassSchema, Cohort, Privacy, RidgeSchema
from privstats.randomness import seeded
from privstats.secagg import Identity
from tests import made
from threat_models.world import Pool

PANEL = {"protocol": "split", "panel": [Identity.generate(seeded(s).bytes).public.hex() for s in range(3)]}


def plan_of(privacy=None, *, statistics="NAS", features=6, classes=2, cohort=None, **more):
    schema = ClassSchema(classes, features, statistics, clip_norm=1.0, grid_bits=12)
    more = {**(PANEL if isinstance(privacy, Privacy) and privacy.trust.drawn_by == "member" else {}), **more}
    return made.plan(schema, cohort or Cohort(4, 3, 200, 1), privacy, **more)


promise = made.promise


def ridge_plan(privacy=None):
    return made.plan(RidgeSchema(4, clip_norm=1.0, target_bound=1.0), Cohort(4, 3, 200, 1), privacy)


def records(count, features, classes=2, seed=0):
    X = np.random.default_rng(seed).standard_normal((count, features)) / np.sqrt(features) * 0.7
    return X, np.arange(count) % classes


@pytest.fixture
def pool():
    return Pool.split(*records(160, 6), seeded(0))
