"""Fit a head on the releases of a session or course, from their files alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privstats.errors import HeadError, PlanError
from privstats.heads.registry import HEADS, head_class, suited
from privstats.release import Release

_HOST, _ROSTER = "host", "roster.toml"


def release_files(paths: Sequence[Path]) -> list[Path]:
    """Return the release files that paths name; a folder's are ordered by the numbers in their names.

    A study's folder stands for its host's.

    Raises:
        PlanError: a folder holds no release.

    Example:
        >>> from pathlib import Path
        >>> from privstats.workflows.fitting import release_files
        >>> [path.name for path in release_files([Path("sums.release")])]
        ['sums.release']
    """
    files: list[Path] = []
    for path in paths:
        home = path / _HOST if (path / _HOST).is_dir() else path
        inside = [home] if not home.is_dir() else [*home.rglob("*.release"), *home.rglob("*release.safetensors")]
        if not inside:
            raise PlanError(f"{path} is no release and holds none: name the files, or the folder of the session's host")
        files += sorted(inside, key=lambda each: [int(part) for part in re.findall("[0-9]+", _below(each, home))])
    return files


def _below(file: Path, home: Path) -> str:
    return str(file.relative_to(home)) if file != home else file.name


def releases_at(paths: Sequence[Path]) -> list[Release]:
    """Load the releases that paths name; a host's must be signed by the server of its roster.

    Raises:
        PlanError: a folder holds no release.
        ReleaseError: a file is no release, or its signature is wrong.
    """
    return [Release.load(each, signed_by=_server(each)) for each in release_files(paths)]


def _server(file: Path) -> bytes | None:
    """Return the key that must have signed a release inside a host's folder; None elsewhere."""
    from privstats.secagg import Roster

    roster = next((each / _ROSTER for each in file.parents if (each / _ROSTER).is_file()), None)
    return None if roster is None else Roster.load(roster).server


def fitted(head: Any, releases: Sequence[Release]) -> Any:
    """Return a head fitted on all releases of a session or course, in order.

    Raises:
        PrivstatsError: no such head follows from these releases.
    """
    if head.entry.after_rounds:
        return head.fit_releases(releases)
    return head.fit_release(releases[0] if len(releases) == 1 else list(releases))


def head_of(releases: Sequence[Release], name: str | None = None) -> Any:
    """Return a fitted head: the named one, or the usual one for these releases.

    Raises:
        HeadError: no head is built from these releases, or not the named one.
        PrivstatsError: the releases are not those of one session or course, in order.

    Example:
        >>> from privstats.workflows.fitting import head_of
        >>> X, y = np.eye(2)[np.arange(20) % 2], np.arange(20) % 2
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 20), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [(X[:10], y[:10]), (X[10:], y[10:])])
        >>> head_of([release])
        LDA() [exact: no promise]
    """
    schemas = [each.plan.schema for each in releases]
    able = suited(schemas)
    if not able:
        what = ", ".join(dict.fromkeys(each.task for each in schemas))
        raise HeadError(f"no head is built from releases of {what}: `privstats table` reads them")
    if name is not None and HEADS[name].task != HEADS[able[0]].task:
        raise HeadError(f"{name} is not built from these releases; the heads are {', '.join(able)}")
    return fitted(head_class(name or able[0])(), releases)
