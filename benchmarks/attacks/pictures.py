"""Recover pictures from sums: the FedCGS scenario, four samples of a class, on digits and, if present, Fashion-MNIST.

python -m benchmarks.attacks.pictures --save
"""

from __future__ import annotations

import argparse
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command
from privstats import optional_dependencies
from privstats.errors import MissingExtraError
from threat_models.attacks.constraints import NONNEGATIVE
from threat_models.attacks.deep_prior import deep_images
from threat_models.attacks.encoder import conv_features, digit_images, torch_features
from threat_models.attacks.images import Decoder, four_samples, psnr, ssim
from threat_models.attacks.matching import match
from threat_models.attacks.rotation import recover

Array: TypeAlias = NDArray[np.float64]

FASHION = Path(os.environ.get("PRIVSTATS_FASHION_MNIST", "/usr/share/datasets/fashion-mnist"))
"""The folder of Debian's package dataset-fashion-mnist."""

RECORDS = 4


def tables(options: argparse.Namespace) -> Tables:
    """One table per data set: what each attacker's pictures are worth."""
    trials = 2 if options.quick else 5
    for name, images, y, stride in data(options.quick):
        steps = 0 if options.quick else 500
        yield f"{name}: four samples of a class, mean over pictures", pictures(images, y, stride, trials, steps)


def data(quick: bool) -> Iterator[tuple[str, Array, NDArray[Any], int]]:
    """Name, images in [0, 1], labels, and the stride that the encoder takes; absent sets are named."""
    images, y = digit_images()
    yield "digits", images, y, 2
    if quick:
        return
    if not (FASHION / "t10k-images-idx3-ubyte.gz").exists():
        print(f"skipped Fashion-MNIST: no images in {FASHION}; set PRIVSTATS_FASHION_MNIST to the folder that has them")
        return
    pixels = np.frombuffer(gzip.decompress((FASHION / "t10k-images-idx3-ubyte.gz").read_bytes()), np.uint8, offset=16)
    labels = np.frombuffer(gzip.decompress((FASHION / "t10k-labels-idx1-ubyte.gz").read_bytes()), np.uint8, offset=8)
    yield "Fashion-MNIST", pixels[: 6000 * 784].reshape(-1, 28, 28) / 255.0, labels[:6000], 3


def pictures(images: Array, y: NDArray[Any], stride: int, trials: int, steps: int) -> list[Row]:
    """One row per attacker: PSNR and SSIM. Half of the images are public; ``steps``: of the deep prior, 0 for none."""
    half = len(images) // 2
    features = conv_features(images, stride=stride)
    decoder = Decoder.fit(features[:half], images[:half])
    scores: dict[str, list[tuple[float, float]]] = {}
    found_all = []
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        chosen = half + rng.choice(np.flatnonzero(y[half:] == trial % 10), RECORDS, replace=False)
        rows, truth = features[chosen], images[chosen]
        found = recover(RECORDS, rows.sum(axis=0), rows.T @ rows, constraints=NONNEGATIVE, rng=rng)
        found_all.append(found.certified)
        recovered = found.rows[match(rows, found.rows).order]
        drawn = four_samples(decoder, rows, recovered)
        attackers = {
            "one client's upload (no secure aggregation)": drawn.wholly,
            "sums of four (A and S, rotation)": drawn.partly,
            "sum of four (A alone)": np.repeat(drawn.mean[None], RECORDS, axis=0),
            "mean public image (baseline)": np.repeat(drawn.prior[None], RECORDS, axis=0),
        }
        if steps and trial < 1:  # the slow one
            attackers |= prior_pictures(recovered, images.shape[1:], stride, steps)
        for name, pictured in attackers.items():
            scores.setdefault(name, []).extend((psnr(a, b), ssim(a, b)) for a, b in zip(truth, pictured, strict=True))
    return [
        {
            "attacker": name,
            "pictures": len(values),
            "PSNR": float(np.mean([p for p, _ in values])),
            "SSIM": float(np.mean([s for _, s in values])),
            "rows certified": float(np.mean(found_all)) if "rotation" in name else None,
        }
        for name, values in scores.items()
    ]


def prior_pictures(recovered: Array, shape: tuple[int, ...], stride: int, steps: int) -> dict[str, Array]:
    """Pictures of the deep image prior, which needs no public image, or none where torch is missing."""
    try:
        torch = optional_dependencies.load("torch", by="the deep image prior")
    except MissingExtraError as error:
        print(f"skipped: {error}")
        return {}
    torch.set_num_threads(1)
    drawn = deep_images(recovered, torch_features(stride), (shape[0], shape[1]), seed=0, width=16, iterations=steps)
    return {"sums of four, deep image prior": drawn}


if __name__ == "__main__":
    command("attacks.pictures", __doc__, tables)
