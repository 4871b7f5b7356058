"""Attack 11 without public pictures: a class of one record, drawn by an untrained net (``image_prior``).

Needs torch; without it the row says that. The same scene as ``four_samples``: digits behind a public encoder, under the
plan's promise.
"""

from __future__ import annotations

import numpy as np

from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.schema import ClassSchema
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.encoder import torch_features
from threat_models.attacks.image_prior import deep_images
from threat_models.chance import whole
from threat_models.examined import rated
from threat_models.report import Row
from threat_models.scene import METRIC, Scene
from threat_models.world import released

__all__ = ["DeepPrior"]

_WIDTH, _STEPS = 12, 150


class DeepPrior(Examination):
    """deep_images(A) for classes of one, all worlds in one net."""

    name = "deep-prior"
    number = 11
    goal = "reconstruction"
    title = "somebody without pictures draws the record of a class of one by a deep image prior"
    needs = Adversary(knows="none", encoder=True)
    reads = "BS"
    kinds = (ClassSchema,)
    effort = 0.1

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row."""
        encoder = torch_features()  # first, so that a missing extra is said before anything is drawn
        scene = Scene.under(plan, rng)
        labels = [whole(2, rng) for _ in range(trials)]
        worlds = [scene.some(label, 1, rng) for label in labels]
        moments = [released(scene.field.pool, scene.plan, rows, rng).moments for rows in worlds]
        features = np.stack([np.asarray(found.A)[label] for found, label in zip(moments, labels, strict=True)])
        seed = int.from_bytes(rng.bytes(4), "little")
        drawn = deep_images(features, encoder, (8, 8), seed=seed, width=_WIDTH, steps=_STEPS)
        rates = [scene.recognised(rows, drawn[k : k + 1]) for k, rows in enumerate(worlds)]
        note = "digits behind a public encoder"
        return (rated(self, scene.plan, rates, scene.guesses(worlds), confidence, metric=METRIC, note=note),)
