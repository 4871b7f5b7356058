"""Small packages of somebody else, of what docs/how_to_add.md says others may bring, and what pip leaves of one."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = [
    *("ATTACK", "COURSE", "HEAD", "NOTE", "PAGE", "READER", "RECORDS_ENGINE", "RIVAL"),
    *("announce", "bring_modules", "install"),
]

HEAD = {"NearestCentroid": "nearest_centroid.head:NearestCentroid"}
ATTACK = {"aligned-sum": "aligned_sum:AlignedSum"}
COURSE = {"twice": "twice:KIND"}
NOTE = {"ulm": "ulm_office:NOTE"}
PAGE = {"covering-letter": "ulm_office:LETTER"}
READER = {"totals": "totals_reader:READER"}
RECORDS_ENGINE = {"chunks": "chunks:ENGINE"}
RIVAL = {"output-perturbation": "output_perturbation:OutputPerturbation"}


def install(package: str, site: Path, group: str, entries: Mapping[str, str]) -> Path:
    """Copy a package into a folder of packages, with the entry points of its distribution."""
    shutil.copytree(
        Path(__file__).parent / package, site, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
    )
    return announce(package, site, group, entries)


@cache
def bring_modules() -> None:
    """Let this process have the package that brings modules of rounds, as if pip had installed it."""
    folder, site = Path(__file__).parent / "hidden", Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, site, ignore_errors=True)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    _about(project["name"], site, project["entry-points"])
    sys.path[:0] = [str(folder), str(site)]


def announce(package: str, site: Path, group: str, entries: Mapping[str, str]) -> Path:
    """The metadata of a distribution with these entry points, and nothing else."""
    return _about(package, site, {group: entries})


def _about(name: str, site: Path, groups: Mapping[str, Mapping[str, str]]) -> Path:
    about = site / f"{name}-0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in own.items()) for group, own in groups.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return site
