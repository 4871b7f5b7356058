"""From recovered feature rows to pictures without public images: a deep image prior.

``images`` has the linear decoder, which needs public images and no torch. Here an untrained convolutional net is fitted
so that the encoder maps its output to the recovered rows (Ulyanov, Vedaldi and Lempitsky 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.optional_dependencies import load

if TYPE_CHECKING:
    import torch

__all__ = ["deep_images"]

Array: TypeAlias = NDArray[np.float64]


def deep_images(
    features: NDArray[Any],
    encoder: Callable[[torch.Tensor], torch.Tensor],
    shape: tuple[int, int],
    *,
    seed: int,
    top: float = 1.0,
    width: int = 32,
    steps: int = 600,
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
        steps: of Adam.
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
        for _ in range(steps):
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
