"""What others found about a plan, for its page: audits and attacks of packages that the library does not know.

The seam of ``privstats report --audit`` and ``--attack``: an entry point of the group ``privstats.findings`` is a
function from a plan to findings. Nothing is measured here.

Findings of the attacker's package reach the officer's page through an entry point. ``privstats report --audit`` needs
audits, and the library must not import them. An entry point of ``privstats.findings`` is a function from a plan to
sections; the page is independent of audits and attacks, and another package may add its own. All pages extend one
sheet, which ``threat_models`` imports from the library: one style, and one test in a browser for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from privstats.errors import MissingExtraError, PrivstatsError
from privstats.plan import Plan
from privstats.plug_ins import announced, loaded
from privstats.tables import by_name
from privstats.workflows.report.layout import Figure, Table

__all__ = ["GROUP", "Finder", "Finding", "Search", "finder"]

GROUP = "privstats.findings"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One section of the page.

    Attributes:
        title: its heading.
        summary: what was found, in a sentence or two.
        tables: the numbers.
        notes: sentences under the tables.
        figures: pictures under the notes.
        violated: whether it contradicts a promise of the plan.
        whole: whether it is of all that was released, and not of the plan alone, which may begin a course.

    Example:
        >>> from privstats.workflows.report import Finding
        >>> finding = Finding(title="An audit", summary="No search exceeded the bound.", violated=False)
        >>> finding.title, finding.violated
        ('An audit', False)
    """

    title: str
    summary: str
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    violated: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Search:
    """How long and how reproducibly to look.

    Attributes:
        seed: reproduces the findings; None for the operating system's randomness.
        trials: how often; None for as often as the finder thinks right.
        tick: called as work is done.

    Example:
        >>> from privstats.workflows.report import Search
        >>> search = Search(seed=0, trials=100)
        >>> search.seed, search.trials
        (0, 100)
    """

    seed: int | None = None
    trials: int | None = None
    tick: Callable[[], None] = lambda: None


Finder: TypeAlias = Callable[[Plan, Search], Sequence[Finding]]


def finder(name: str) -> Finder:
    """The finder of that name, from whatever package brings it.

    Raises:
        MissingExtraError: no installed package does.
        PrivstatsError: two do, or the one that does cannot be loaded.

    Example:
        >>> from privstats.workflows.report import finder
        >>> callable(finder("audit"))  # the package threat_models brings it
        True
    """
    entries = by_name(announced(GROUP), lambda entry: entry.name, "finder")
    if name in entries:
        found: Finder = loaded(entries[name], "finder", PrivstatsError)
        return found
    raise MissingExtraError(
        f"--{name} needs a package that offers {name!r} under {GROUP}; privstats brings its own, so install it anew"
    )
