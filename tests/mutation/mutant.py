"""What a deliberate bug is: in words, where it is planted, and who must see it."""

from collections.abc import Callable
from dataclasses import dataclass

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
