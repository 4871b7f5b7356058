"""Attack 11 as a game: a record recovered from the sums, turned into a picture by a decoder trained on public pictures.

``images`` has the decoder (``deep_prior`` a deep one, which needs torch). Needs raw records that are square pictures,
and an attacker who can run the encoder.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.images import Decoder
from threat_models.attacks.inversion import one_record


class DecodedImages(Attack):
    """decode(A) for a class of one."""

    name = "decoded-image"
    number = 11
    goal = "reconstruction"
    title = "an attacker with public pictures decodes the vector of a class of one into its picture"
    needs = Adversary(knows="public", encoder=True)
    reads = "A"
    records = 1
    effort = 0.5
    scored = "images"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """One picture, as a row of pixels."""
        del rng
        if view.public is None or view.public_raw is None:
            raise DataError("decoding needs an adversary with a public sample and the encoder")
        side = math.isqrt(view.public_raw.shape[1])
        if side * side != view.public_raw.shape[1]:
            raise DataError("decoding needs records that are square pictures, and these are not")
        top = max(float(view.public_raw.max()), 1e-12)
        decoder = Decoder.fit(view.public[0], view.public_raw.reshape(-1, side, side), top=top)
        return decoder.images(one_record(view.sums[0]["A"][int(view.labels[0])])).reshape(1, -1)
