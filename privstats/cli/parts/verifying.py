"""Keys, signatures and verdicts for every command that signs, shows or verifies a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import privstats as ps
from privstats.cli.parts.options import option
from privstats.cli.parts.terminal import say
from privstats.errors import LocalProtocolError, PlanError, PrivstatsError, ReleaseError
from privstats.files.text import json_text

if TYPE_CHECKING:
    from privstats.course import Course

NO = "NO: "
"""Begins every verdict of a check that fails."""


def key_of(words: str, error: type[PrivstatsError]) -> bytes:
    """Return the public key that is spelled out or in the named file."""
    from privstats.files.locked_key import read_public
    from privstats.files.signing import public_key

    if Path(words).exists():
        return read_public(words, error)
    return public_key(words, "--signed-by", error)


def party_key(words: str) -> bytes:
    """Return a party's public key, from hex or a file."""
    from privstats.files.locked_key import read_public
    from privstats.files.signing import public_key

    if re.fullmatch("[0-9a-fA-F]{64}", words) and not Path(words).exists():
        return public_key(words, "a public key", LocalProtocolError)
    return read_public(words, LocalProtocolError)


def is_signed(path: Path, error: type[PrivstatsError]) -> bool:
    """Return whether the file has any signature."""
    from privstats.files.envelope import file_metadata

    return "ed25519" in file_metadata(path, error)


def unasked(signed: bool) -> str:
    """Return the verdict on a signature without a key to check."""
    return f"not checked: pass --signed-by; the file has {'a' if signed else 'no'} signature"


def show_verdicts(checks: Mapping[str, str], as_json: bool, **facts: Any) -> None:
    """Print the verdicts, in JSON with ``facts``; exit with code 1 on a negative one."""
    violated = any(verdict.startswith(NO) for verdict in checks.values())
    if as_json:
        typer.echo(json_text({"violated": violated, **facts, "checks": checks}))
    else:
        for name, verdict in checks.items():
            say(f"{name:<18} {verdict}")
    if violated:
        raise typer.Exit(1)


def in_words(value: Any) -> str:
    """Return a value as text for a table."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case tuple() | list():
            return ", ".join(map(str, value)) or "none"
    return str(value)


_NONE = "none"


def read_expected(path: Path) -> ps.Plan | Course:
    """Return the plan or course in a file."""
    from privstats.course.document import is_course

    return ps.course.read(path) if is_course(path) else ps.Plan.read(path)


def begins(expected: ps.Plan | Course) -> ps.Plan:
    """Return the plan, or the course's first one."""
    return expected if isinstance(expected, ps.Plan) else expected.first


def together(expected: ps.Plan | Course) -> str:
    """Describe the promise for all sessions of a course, with its condition; empty for a plan alone."""
    from privstats.course.promise import total_of

    total = total_of(expected)
    if total.sessions == 1 or total.delta == 1:
        return ""
    return f"for all {total.sessions} sessions together, {total.claim}"


def of_course(release: ps.Release, course: Course, after: Sequence[str]) -> str:
    """Return the verdict whether a release belongs to the course's session after earlier ones.

    Args:
        after: files in order; ``"none"`` for a session without a sum.
    """
    if not after and release.position is not None and release.position.place:
        return _of_later_session(release, course, release.position.place)
    before: list[ps.Release | None] = []
    for name in after:
        earlier = None if name == _NONE else ps.Release.load(name)
        if earlier is not None and (wrong := _unlike(earlier, course, before)):
            return f"{NO}{name} is not of session {len(before)}: {wrong}"
        before.append(earlier)
    wrong = _unlike(release, course, before)
    return f"{NO}{wrong}" if wrong else f"good: of session {len(before)} of the course"


def _of_later_session(release: ps.Release, course: Course, place: int) -> str:
    from privstats.course.promise import unlike_session

    if wrong := unlike_session(course, release.plan):
        return f"{NO}{wrong}"
    return (
        f"good: of session {place} of the course; whether its published values follow from sessions 0 to {place - 1} "
        "is not checked: pass their releases with --after, in order"
    )


def _unlike(release: ps.Release, course: Course, before: Sequence[ps.Release | None]) -> str:
    from privstats.course.base import position_of

    try:
        own: Any = course.next(tuple(before))
    except (PlanError, ReleaseError) as refusal:
        return f"no plan follows from the releases before: {refusal}"
    if own is None:
        return f"the course ends after {len(before)} sessions"
    plan, position = release.plan, position_of(course, [earlier is not None for earlier in before])
    if plan == own and release.position == position:
        return ""
    if plan == own:
        named = "no course" if release.position is None else release.position
        return f"the release names {named}, and not {position or 'a plan alone'}"
    same = own.published is not None and plan.published is not None and plan.published.after == own.published.after
    if same and replace(plan, published=own.published) == own:
        return (
            "the plan's published values match the course but for their last digits, which another machine may round "
            "differently: compare them with privstats course admit and the plan's file in the session's folder"
        )
    if not before:
        return (
            f"the course's first session has the plan {own.digest}, and this one {plan.digest}: for a later session "
            "pass the releases of all earlier ones with --after, in order"
        )
    return f"the plan that follows is {own.digest}, and this one is {plan.digest}"


_MOST_CHARACTERS = 1 << 12

PassphraseFile: TypeAlias = Annotated[
    Path | None, option("A file whose first line is the passphrase, for programs; without it you are asked.")
]


def identity_of(path: Path, passphrase_file: Path | None) -> ps.secagg.Identity:
    """Return the identity in a file; prompts for a locked one's passphrase."""
    from privstats.files.locked_key import is_locked

    if passphrase_file is not None:
        return ps.secagg.Identity.load(path, first_line(passphrase_file))
    return ps.secagg.Identity.load(path, prompted() if is_locked(path, LocalProtocolError) else None)


def prompted(option: str = "--passphrase-file", *, twice: bool = False) -> str:
    """Prompt for a passphrase; without a terminal recommend ``option``."""
    if not sys.stdin.isatty():
        raise LocalProtocolError(f"there is no terminal to ask for the passphrase; pass {option}")
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def first_line(path: Path) -> str:
    """Return the passphrase in a file."""
    try:
        with path.open(encoding="utf-8") as file:
            line = file.readline(_MOST_CHARACTERS).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LocalProtocolError(f"cannot read {path}: {why}; name the file that holds the passphrase") from None
    if not line:
        raise LocalProtocolError(f"the first line of {path} is empty; write the passphrase there")
    return line
