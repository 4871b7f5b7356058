"""Small packages of somebody else, of what docs/how_to_add.md says others may bring, and what pip leaves of one."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import invalidate_caches
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, TypeAlias

from privstats import plug_ins
from privstats.transforms import base

Groups: TypeAlias = Mapping[str, Mapping[str, str]]
"""Entry points by group and name."""

__all__ = ["PACKAGES", "announce", "bring_modules", "brought", "install", "points"]

PACKAGES: Mapping[str, dict[str, Any]] = {
    path.parent.name: tomllib.loads(path.read_text("utf-8"))["project"]
    for path in sorted(Path(__file__).parent.glob("*/pyproject.toml"))
}
"""The ``[project]`` of each package, by its folder."""


def points(package: str, group: str) -> Mapping[str, str]:
    """The entry points of a package in one group."""
    found: Mapping[str, str] = PACKAGES[package]["entry-points"][group]
    return found


_STANDING = frozenset(sys.path)
"""Places whose packages stay as they are while tests run."""


def _names_in(place: str) -> Mapping[str, list[str]]:
    """Return the packages of one place by the modules that they bring."""
    found: dict[str, list[str]] = {}
    for each in distributions(path=[place]):
        files = {path.parts[0].removesuffix(".py") for path in each.files or () if path.suffix == ".py"}
        for module in (each.read_text("top_level.txt") or "").split() or sorted(files):
            found.setdefault(module, []).append(each.metadata["Name"])
    return found


_standing = cache(_names_in)


def _names_by_module() -> Mapping[str, list[str]]:
    """Return what ``importlib.metadata`` lists, and read each standing place once, which takes a third of a second."""
    found: dict[str, list[str]] = {}
    for place in sys.path:
        for module, names in (_standing if place in _STANDING else _names_in)(place).items():
            found.setdefault(module, []).extend(names)
    return found


plug_ins.packages_distributions = _names_by_module  # type: ignore[attr-defined, assignment]


def install(package: str, site: Path, groups: Groups | None = None, version: str = "0.1") -> Path:
    """Copy a package into a folder of packages, with its entry points, or others."""
    ignored = shutil.ignore_patterns("__pycache__", "pyproject.toml")
    shutil.copytree(Path(__file__).parent / package, site, ignore=ignored, dirs_exist_ok=True)
    project = PACKAGES[package]
    return _about(project["name"], site, project.get("entry-points", {}) if groups is None else groups, version)


@contextmanager
def brought(*sites: Path) -> Iterator[None]:
    """Let this process have the packages in these folders, and none of them afterwards."""
    places = [str(site) for site in sites]
    sys.path[:0] = places
    _look_again()
    try:
        yield
    finally:
        del sys.path[: len(places)]
        for name, module in list(sys.modules.items()):
            if places and str(getattr(module, "__file__", "")).startswith(tuple(places)):
                del sys.modules[name]
                for kind in [kind for kind, cls in base._TRANSFORMS.items() if cls.__module__ == name]:
                    del base._TRANSFORMS[kind]
        _look_again()


def _look_again() -> None:
    invalidate_caches()
    plug_ins._groups.cache_clear()
    plug_ins._packages.cache_clear()
    plug_ins._package_of.cache_clear()


@cache
def bring_modules() -> None:
    """Let this process have the package that brings modules of rounds, as if pip had installed it."""
    site = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, site, ignore_errors=True)
    sys.path[:0] = [str(install("hidden", site))]
    _look_again()  # a conftest of a room may have asked before this one was configured


def announce(package: str, site: Path, group: str, entries: Mapping[str, str]) -> Path:
    """The metadata of a distribution with these entry points, and nothing else."""
    return _about(package, site, {group: entries})


def _about(name: str, site: Path, groups: Groups, version: str = "0.1") -> Path:
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"  # as pip writes a name
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    modules = [f"{path.relative_to(site).as_posix()},,\n" for path in sorted(site.rglob("*.py"))]
    (about / "RECORD").write_text("".join(modules))
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in own.items()) for group, own in groups.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return site
