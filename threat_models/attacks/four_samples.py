"""Attack 11, the scene of FedCGS ("uploaded variables cannot be used to recover"): four samples of a class as pictures.

Three attackers: secure aggregation off, so that they see each sample's own upload; partly off, so that they see only
the sums of the four; and on, so that they see only the release. ``images`` decodes what they see.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.encoding import to_real
from privstats.kinds import ClassSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.constraints import NONNEGATIVE
from threat_models.attacks.matching import match
from threat_models.attacks.rotation import recover
from threat_models.chance import integer_below
from threat_models.examined import rated
from threat_models.report import Example, Row
from threat_models.scene import METRIC, Scene
from threat_models.world import released

_SAMPLES = 4
_EVERYBODY = 30
_STARTS, _ITERATIONS = 2, 300
Array = NDArray[np.float64]
Rows = NDArray[np.int64]


class FourSamples(Examination):
    """Pictures of four samples of one class by what of secure aggregation is on."""

    name = "four-samples"
    number = 11
    goal = "reconstruction"
    title = "an attacker with public pictures decodes four samples of a class from what clients upload"
    needs = Adversary(sees="cohort", knows="public", encoder=True)
    reads = "BS"
    kinds = (ClassSchema,)
    effort = 0.2

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row for each of off, partly off, and on."""
        scene = Scene.under(plan, rng)
        seen = {"off": self.needs, "partly off": self.needs, "on": Adversary(knows="public", encoder=True)}
        worlds: list[Rows] = []
        rates: dict[str, list[float]] = {way: [] for way in seen}
        shown: dict[str, Example] = {}
        for _ in range(trials):
            label = integer_below(2, rng)
            worlds.append(scene.some(label, _SAMPLES, rng))
            for way, pictures in _pictures(scene, worlds[-1], label, rng).items():
                rates[way].append(scene.recognised(worlds[-1], pictures))
                mean = pictures.mean(axis=0)
                shown.setdefault(way, scene.example(worlds[-1], label, mean, pictures))
        blind = scene.guesses(worlds)
        level = 1 - (1 - confidence) / len(seen)
        return tuple(
            rated(self, scene.plan, rates[way], blind, level, metric=f"{METRIC}, {way}", who=who, example=shown[way],
                  note="secure aggregation off, partly off (sums of the four) and on; digits behind a public encoder")
            for way, who in seen.items()
        )  # fmt: skip


def _pictures(scene: Scene, rows: Rows, label: int, rng: Generator) -> dict[str, Array]:
    """Each attacker's pictures of four samples, ``(4, 8, 8)``."""
    alone = np.concatenate([_upload(scene, rows[k : k + 1], rng)[0][label][None] for k in range(len(rows))])
    A, second = _upload(scene, rows, rng)
    moment = second if second.ndim == 2 else second[label]
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    limits = {"starts": _STARTS, "iterations": _ITERATIONS}
    result = recover(len(rows), A[label], moment, constraints=NONNEGATIVE, rng=chance, **limits).rows
    order = match(scene.field.private[rows], result).order  # for the picture and the score: whose picture is whose
    others = [scene.some(c, _EVERYBODY, rng) for c in range(2)]
    moments = released(scene.field.pool, scene.plan, np.concatenate(others), rng).moments
    mean = np.asarray(moments.A)[label] / max(1.0, float(np.asarray(moments.N)[label]))
    return {
        "off": scene.decoder.images(alone),
        "partly off": scene.decoder.images(result[order]),
        "on": scene.decoder.images(np.tile(mean, (len(rows), 1))),
    }


def _upload(scene: Scene, rows: Rows, rng: Generator) -> tuple[Array, Array]:
    """(A, second moment) in one client's upload without masks: its noise is in it, that of a server is not."""
    vector = session.contribution(scene.plan, scene.field.measure(rows), rng, allow_reproducible=True).take().lift()
    real = to_real(scene.plan.schema, vector)
    second = real.B if real.S is None else real.S
    return np.asarray(real.A, np.float64), np.asarray(second, np.float64)
