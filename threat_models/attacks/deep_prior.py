"""Attack 11 without public pictures: a class of one record, drawn by an untrained net.

Needs torch; without it the row reports that torch is missing. The same scene as ``four_samples``: digits behind a
public encoder, under the plan's promise. An untrained convolutional net is fitted so that the encoder maps its output
to the recovered rows (Ulyanov, Vedaldi and Lempitsky 2018); ``images`` has the linear decoder, which needs public
images and no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import ClassSchema
from privstats.optional_dependencies import load
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.encoder import torch_features
from threat_models.chance import integer_below
from threat_models.examined import rated
from threat_models.report import Row
from threat_models.scene import METRIC, Scene
from threat_models.world import released

if TYPE_CHECKING:
    import torch

_WIDTH, _ITERATIONS = 12, 150
Array: TypeAlias = NDArray[np.float64]


class DeepPrior(Examination):
    """deep_images(A) for classes of one, all worlds in one net."""

    name = "deep-prior"
    number = 11
    goal = "reconstruction"
    title = "an attacker without pictures draws the record of a class of one by a deep image prior"
    needs = Adversary(knows="none", encoder=True)
    reads = "BS"
    kinds = (ClassSchema,)
    effort = 0.1

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row."""
        encoder = torch_features()  # first, so that a missing extra is said before anything is drawn
        scene = Scene.under(plan, rng)
        labels = [integer_below(2, rng) for _ in range(trials)]
        worlds = [scene.some(label, 1, rng) for label in labels]
        moments = [released(scene.field.pool, scene.plan, rows, rng).moments for rows in worlds]
        features = np.stack([np.asarray(result.A)[label] for result, label in zip(moments, labels, strict=True)])
        seed = int.from_bytes(rng.bytes(4), "little")
        drawn = deep_images(features, encoder, (8, 8), seed=seed, width=_WIDTH, iterations=_ITERATIONS)
        rates = [scene.recognised(rows, drawn[k : k + 1]) for k, rows in enumerate(worlds)]
        note = "digits behind a public encoder"
        return (rated(self, scene.plan, rates, scene.guesses(worlds), confidence, metric=METRIC, note=note),)


def deep_images(
    features: NDArray[Any],
    encoder: Callable[[torch.Tensor], torch.Tensor],
    shape: tuple[int, int],
    *,
    seed: int,
    top: float = 1.0,
    width: int = 32,
    iterations: int = 600,
    rate: float = 0.01,
) -> Array:
    """Images ``(n, height, width)`` whose features are nearly those given, as an untrained net draws them.

    Args:
        features: recovered rows, ``(n, d)``.
        encoder: the public map from float32 images ``(n, 1, height, width)`` in [0, top] to features ``(n, d)``,
            differentiable.
        shape: height and width.
        seed: of the net's weights and its input.
        top: largest pixel value; the smallest is 0.
        width: channels of the hidden layers.
        iterations: of Adam.
        rate: its learning rate.

    Raises:
        MissingExtraError: torch is not installed.
    """
    torch = load("torch", by="the deep image prior")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        target = torch.as_tensor(np.asarray(features), dtype=torch.float32)
        noise = torch.randn(len(target), width, *shape)
        net = _net(width)
        scale = target.square().mean().clamp_min(torch.finfo(torch.float32).tiny)
        optimiser = torch.optim.Adam(net.parameters(), lr=rate)
        for _ in range(iterations):
            optimiser.zero_grad()
            loss = (encoder(top * net(noise)) - target).square().mean() / scale
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            drawn = top * net(noise)
    return np.asarray(drawn[:, 0].numpy(), dtype=np.float64)


def _net(width: int) -> torch.nn.Module:
    """Two convolutions at full size, two at half and one back; the last answer is a pixel in [0, 1]."""
    from torch import nn

    def block(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
        convolve = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, padding_mode="replicate")
        return [convolve, nn.InstanceNorm2d(outputs, affine=True), nn.LeakyReLU(0.2)]

    return nn.Sequential(
        *block(width, width, stride=2),
        *block(width, width),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        *block(width, width),
        *block(width, width),
        nn.Conv2d(width, 1, 1),
        nn.Sigmoid(),
    )
