"""Pictures behind a public encoder under a plan's promise: the scene that the attacks on pictures share.

The digits and the encoder are public stand-ins; cohort, privacy and the kind of second moment are the plan's. It draws
and scores; the attacks are elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import ClassSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.attacks.encoder import conv_features, digit_images
from threat_models.attacks.images import Decoder, ssim
from threat_models.chance import permutation
from threat_models.report import Example
from threat_models.world import Field, Pool

ALIKE = 0.9
"""Structural similarity above which a picture counts as recognised."""
METRIC = f"SSIM > {ALIKE:g}"

_GUESSES = 50
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scene:
    """Digits as a plan for pictures measures them.

    Attributes:
        plan: the attacked plan with a schema for the encoder's features.
        field: private and public records: vectors of features.
        images: pictures of the private records, ``(n, 8, 8)``, pixels in [0, 1].
        public_images: pictures of the public ones.
    """

    plan: Plan
    field: Field
    images: Array
    public_images: Array

    @classmethod
    def under(cls, plan: Plan, rng: Generator) -> Scene:
        """The scene for a plan of class sums: twos and threes, S or B as the plan sends it."""
        images, y = digit_images()
        two = (y == 2) | (y == 3)
        images, y = images[two], y[two] - 2
        order = permutation(len(y), rng)
        images, y = images[order], y[order]
        features, cut = conv_features(images), len(y) // 2
        statistics = "NAS" if "S" in plan.schema.statistics else "NAB"
        clip = float(np.linalg.norm(features[:cut], axis=1).max()) * 1.05
        schema = ClassSchema(2, features.shape[1], statistics, clip_norm=clip, nonnegative=True)
        mine = replace(plan, schema=schema, min_count=0, merge={})
        pool = Pool(features[cut:], y[cut:], features[:cut], y[:cut])
        return cls(mine, pool.of(mine), images[cut:], images[:cut])

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder from features to pixels, trained on the public pictures."""
        return Decoder.fit(self.field.public[0], self.public_images)

    def some(self, label: int, count: int, rng: Generator) -> NDArray[np.int64]:
        """Private records of one class."""
        rows = np.flatnonzero(self.field.y == label)
        return np.asarray(rows[permutation(len(rows), rng)[:count]])

    def recognised(self, rows: NDArray[np.int64], pictures: Array) -> float:
        """Share of records whose picture ``(n, 8, 8)`` is like the true one."""
        pairs = zip(self.images[rows], pictures, strict=True)
        return float(np.mean([ssim(x, z) > ALIKE for x, z in pairs]))

    def guesses(self, worlds: Sequence[NDArray[np.int64]]) -> Array:
        """Per world, what the best single picture without a release hits: the public mean, or a public picture."""
        singles = [self.public_images.mean(axis=0), *self.public_images[:_GUESSES]]
        table = np.array([[self.recognised(rows, np.stack([one] * len(rows))) for one in singles] for rows in worlds])
        return np.asarray(table[:, int(table.mean(axis=0).argmax())])

    def example(self, rows: NDArray[np.int64], label: int, raw: Array, pictures: Array) -> Example:
        """Rows of a picture: truth, the sum read as one record, the attack, the public mean, a public picture."""
        mine = self.public_images[self.field.public[1] == label]
        mean = mine.mean(axis=0)
        prior = mine[np.square(mine - mean).sum(axis=(1, 2)).argmin()]
        columns = (self.images[rows], np.stack([raw] * len(rows)), pictures)
        guesses = (np.stack([each] * len(rows)) for each in (mean, prior))
        return Example(*(_plain(column) for column in (*columns, *guesses)))


def _plain(pictures: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(f"{pixel:.4g}") for pixel in picture.ravel()) for picture in pictures)
