"""``privstats head show | verify``: what a model's file is made from, and so what it may be shown to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer

from privstats.cli.parts.verifying import NO, Json, SignedBy, in_words, is_signed, key_of, show_verdicts, unasked
from privstats.errors import HeadError, PrivstatsError
from privstats.files.atomic import read_whole, safetensors_metadata
from privstats.files.jsonable import json_text
from privstats.heads import persistence, personal
from privstats.heads.provenance import Provenance
from privstats.plan import Plan
from privstats.release import Release

__all__ = ["app"]

app = typer.Typer(help="Show and verify a model's file: what it is made from, what is promised.", no_args_is_help=True)

_FORMATS = {each.name: each for each in (persistence.FORMAT, personal.FORMAT)}
_PROBES = 64
_SAME_SCORES = 1e-6

HeadFile = Annotated[Path, typer.Argument(help="The head, as its save() wrote it.", metavar="FILE")]


@app.command()
def show(path: HeadFile, as_json: Json = False) -> None:
    """Print what a head's file says: the head, what it was made from, and what is promised for it."""
    facts = _facts(_Opened.of(path))
    if as_json:
        typer.echo(json_text(facts))
        return
    for name, value in facts.items():
        if name != "parameters":
            typer.echo(f"{name.replace('_', ' '):<14} {in_words(value)}")
    for name, value in facts["parameters"].items():
        typer.echo(f"  {name:<20} {value}")


@app.command()
def verify(
    path: HeadFile,
    plan: Annotated[
        Path | None, typer.Option(help="The plan that it must come from (a course's first).", metavar="PLAN.TOML")
    ] = None,
    release: Annotated[
        list[Path] | None, typer.Option(help="The release that it must come from; repeat for a course.", metavar="FILE")
    ] = None,
    signed_by: SignedBy = None,
    as_json: Json = False,
) -> None:
    """Check that a promise covers a head, and hold it against its plan, its release and a signature.

    Exit code 1 where one is not so: an exact head, and one of which nothing is known, may not leave whoever has the
    records. With --release the head is fitted again and must score the same.
    """
    opened = _Opened.of(path)
    promise = opened.provenance
    checks = {
        "checksum": "good" if opened.checksum else "none: the file is of a version that had none",
        "promise": str(promise) if promise.covered else f"{NO}{promise}",
        "plan": "not asked: give --plan" if plan is None else _against_plan(promise, Plan.read(plan)),
        "release": "not asked: give --release",
        "signature": unasked(opened.signed) if signed_by is None else _against_key(path, signed_by),
    }
    if release:
        checks["release"] = _against_releases(opened, [Release.load(each) for each in release])
    show_verdicts(checks, as_json, head=opened.name, promise=msgspec.to_builtins(promise))


@dataclass(frozen=True)
class _Opened:
    """A head's file, read and checked."""

    head: Any
    version: str
    checksum: bool
    signed: bool

    @classmethod
    def of(cls, path: Path) -> _Opened:
        """The head in a file, or in a personal head's.

        Raises:
            HeadError: the file is neither, or damaged.
        """
        header = safetensors_metadata(read_whole(path, HeadError, "save"))
        format_ = _FORMATS.get(header.get("format", ""), persistence.FORMAT)
        head = format_.read(path)
        return cls(head, header["version"], "sha256" in header, is_signed(path, HeadError, "save"))

    @property
    def name(self) -> str:
        """The class of the head."""
        return type(self.head).__name__

    @property
    def provenance(self) -> Provenance:
        """What it was made from."""
        found: Provenance = self.head.provenance_
        return found


def _facts(opened: _Opened) -> dict[str, Any]:
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
        "plan": promise.plan,
        "release": promise.release,
        "releases": promise.releases,
        "course": promise.course,
        "survivors": promise.survivors,
        "clients": promise.clients,
        "reproducible": promise.reproducible,
        "seed": parameters.get("random_state"),
        "classes": head.classes_.tolist() if hasattr(head, "classes_") else None,
        "features": (head if hasattr(head, "preprocessing_") else head.head).preprocessing_.features,
        "format": opened.version,
        "signed": opened.signed,
        "parameters": parameters,
    }


def _against_plan(promise: Provenance, plan: Plan) -> str:
    if promise.plan is None:
        return f"{NO}the file names no plan"
    if promise.plan != plan.digest:
        return f"{NO}it comes from the plan {promise.plan}, and not from {plan.digest}"
    return "good"


def _against_key(path: Path, words: str) -> str:
    key = key_of(words, HeadError)
    try:
        _FORMATS[safetensors_metadata(read_whole(path, HeadError, "save"))["format"]].read(path, key)
    except HeadError as refusal:
        return f"{NO}{refusal}"
    return "good"


def _against_releases(opened: _Opened, releases: list[Release]) -> str:
    """Whether the head says what the releases say, and scores as one that is fitted on them."""
    said, found = opened.provenance, Provenance.of(releases, opened.provenance.course)
    if said != found:
        return f"{NO}the file says {said}, of {_names(said)}; these say {found}, of {_names(found)}"
    head = opened.head
    if not getattr(head.entry, "closed_form", False):
        return "named in the file; not fitted again, because it is trained on samples"
    try:
        again = type(head)(**head.get_params())
        again = again.fit_releases(releases) if head.entry.after_rounds else again.fit_release(releases[0])
    except PrivstatsError as refusal:
        return f"{NO}no such head follows from it: {refusal}"
    probes = np.random.default_rng(0).normal(size=(_PROBES, head.preprocessing_.features))
    one, other = head.rule_.scores(probes), again.rule_.scores(probes)
    same = one.shape == other.shape and np.allclose(
        one, other, rtol=_SAME_SCORES, atol=_SAME_SCORES * np.abs(one).max()
    )
    return "good: fitted again, it scores the same" if same else f"{NO}fitted again, it scores otherwise"


def _names(provenance: Provenance) -> str:
    return ", ".join(digest[:16] for digest in provenance.releases) or "no release"
