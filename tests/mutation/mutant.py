"""What a deliberate bug is: in words, where it is planted, and who must see it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tests import without
from tests.mutation.planting import Edit


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Attributes:
        what: in words.
        edits: what it rebinds.
        plan: the plan on which audits and attacks look for it; empty where it is none that a release could show.
        tests: nodes of the ordinary suite among which one must fail.
        audits: the audits that must report a violation; none where the audits cannot see it.
    """

    what: str
    edits: Callable[[], list[Edit]]
    plan: str
    tests: tuple[str, ...]
    audits: tuple[str, ...]


def bug(what, edits, *tests, plan="", audits=()):
    """A row of the table."""
    return Mutant(what, edits, plan, tests, audits)


def of_present_rooms(mutants: Mapping[str, Mutant]) -> dict[str, Mutant]:
    """Return the bugs of rooms that no run states to be deleted, each with the tests that are not deleted."""
    if not without.STATED:
        return dict(mutants)
    seen = {name: replace(each, tests=tuple(filter(_is_here, each.tests))) for name, each in mutants.items()}
    return {name: each for name, each in seen.items() if each.tests and _can_be_planted(each)}


def _is_here(node: str) -> bool:
    return not without.room_of(node.partition("::")[0].removesuffix(".py").replace("/", "."))


def _can_be_planted(mutant: Mutant) -> bool:
    try:
        return not any(isinstance(owner, without.StandIn) for owner, _, _ in mutant.edits())
    except ModuleNotFoundError as error:
        if without.reason(error):
            return False
        raise
