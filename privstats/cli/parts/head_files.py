"""Read a head's file, print it, and verify it against plan, releases and key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from privstats.cli.parts.verifying import NO, begins, is_signed, key_of, together
from privstats.errors import HeadError, PrivstatsError
from privstats.files.envelope import file_metadata
from privstats.heads.file_formats import load_any
from privstats.heads.provenance import Provenance
from privstats.plan import Plan
from privstats.release import Release
from privstats.workflows.fitting import fitted

if TYPE_CHECKING:
    from privstats.course import Course

_PROBES = 64
_SAME_SCORES = 1e-6


@dataclass(frozen=True)
class HeadFile:
    """A head's file, read and checked."""

    head: Any
    version: str
    signed: bool

    @classmethod
    def of(cls, path: Path) -> HeadFile:
        """Load a head of any installed format."""
        header = file_metadata(path, HeadError)
        head = load_any(path, header.get("format"))
        return cls(head, header["version"], is_signed(path, HeadError))

    @property
    def name(self) -> str:
        """The head's class name."""
        return type(self.head).__name__

    @property
    def provenance(self) -> Provenance:
        """Releases and settings that the head was built from."""
        provenance: Provenance = self.head.provenance_
        return provenance


def facts_of(opened: HeadFile) -> dict[str, Any]:
    """Return a head file's contents, for people and scripts."""
    head, promise = opened.head, opened.provenance
    parameters = {name: value for name, value in head.get_params(deep=False).items() if name != "head"}
    return {
        "head": opened.name,
        "promise": str(promise),
        "exact": promise.exact,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "adjacency": promise.adjacency,
        "unit": promise.unit,
        "model": promise.model,
        "condition": promise.condition,
        "plan": promise.plan,
        "release": promise.release,
        "releases": promise.releases,
        "course": promise.course,
        "survivors": promise.survivors,
        "clients": promise.clients,
        "reproducible": promise.reproducible,
        "public": promise.public,
        "assumed_public": promise.assumed_public,
        "multiplicity": promise.multiplicity,
        "seed": parameters.get("random_state"),
        "classes": head.classes_.tolist() if hasattr(head, "classes_") else None,
        "features": (head if hasattr(head, "preprocessing_") else head.head).preprocessing_.features,
        "format": opened.version,
        "signed": opened.signed,
        "parameters": parameters,
    }


def against_plan(promise: Provenance, expected: Plan | Course) -> str:
    """Return the verdict whether the head comes from this plan, or from this course's first session."""
    plan = begins(expected)
    if promise.plan is None:
        return f"{NO}the file names no plan"
    if promise.plan != plan.digest:
        return f"{NO}it comes from the plan {promise.plan}, and not from {plan.digest}"
    if not isinstance(expected, Plan) and promise.course not in (None, expected.digest):
        return f"{NO}it comes from the course {promise.course}, and not from {expected.digest}"
    combined = together(expected)
    return f"good: of the first session of the course ({combined})" if combined else "good"


def against_key(path: Path, words: str) -> str:
    """Return the verdict whether this key signed the file."""
    key = key_of(words, HeadError)
    try:
        load_any(path, file_metadata(path, HeadError).get("format"), key)
    except HeadError as refusal:
        return f"{NO}{refusal}"
    return "good"


def against_releases(opened: HeadFile, releases: list[Release]) -> str:
    """Return the verdict whether the file agrees with the releases, and the head scores as one fitted on them."""
    claimed, actual = opened.provenance, Provenance.of(releases, opened.provenance.course)
    if actual.exact is False:  # values that a fit treated as public are not in its releases
        actual = msgspec.structs.replace(actual.of_rows(claimed.multiplicity), assumed_public=claimed.assumed_public)
    actual = msgspec.structs.replace(actual, public=claimed.public)
    if claimed != actual:
        return f"{NO}the file states {claimed}, of {_names(claimed)}; these state {actual}, of {_names(actual)}"
    head = opened.head
    if not getattr(head.entry, "closed_form", False):
        return "named in the file; not fitted again, because it is trained on samples"
    if claimed.public is not None:
        return "named in the file; not fitted again, because it does not hold the public records of its fit"
    try:
        again = fitted(type(head)(**head.get_params()), releases)
    except PrivstatsError as refusal:
        return f"{NO}no such head can be fitted on it: {refusal}"
    probes = np.random.default_rng(0).normal(size=(_PROBES, head.preprocessing_.features))
    one, other = head.rule_.scores(probes), again.rule_.scores(probes)
    same = one.shape == other.shape and np.allclose(
        one, other, rtol=_SAME_SCORES, atol=_SAME_SCORES * np.abs(one).max()
    )
    return "good: fitted again, it scores the same" if same else f"{NO}fitted again, it scores differently"


def _names(provenance: Provenance) -> str:
    return ", ".join(digest[:16] for digest in provenance.releases) or "no release"
