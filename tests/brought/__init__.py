"""Small packages of somebody else, of what CONTRIBUTING says others may bring, and what pip leaves of one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ATTACK", "HEAD", "RIVAL", "announce", "install"]

HEAD = {"NearestCentroid": "nearest_centroid.head:NearestCentroid"}
ATTACK = {"aligned-sum": "aligned_sum:AlignedSum"}
RIVAL = {"output-perturbation": "output_perturbation:OutputPerturbation"}


def install(package: str, site: Path, group: str, entries: Mapping[str, str]) -> Path:
    """Copy a package into a folder of packages, with the entry points of its distribution."""
    shutil.copytree(
        Path(__file__).parent / package, site, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
    )
    return announce(package, site, group, entries)


def announce(package: str, site: Path, group: str, entries: Mapping[str, str]) -> Path:
    """The metadata of a distribution with these entry points, and nothing else."""
    about = site / f"{package}-0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1\n")
    lines = (f"{name} = {value}" for name, value in entries.items())
    (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    return site
