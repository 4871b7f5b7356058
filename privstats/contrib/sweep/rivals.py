"""Rivals of a sweep's heads, trained on all records in one place.

A rival must meet the plan's own promise and choose nothing by the records: no epsilon counts such tuning. Packages
announce rivals under ``privstats.rivals``; the library has none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

from privstats.errors import DataError
from privstats.plan import Plan
from privstats.plug_ins import announced, dist_name, loaded
from privstats.tables import by_name
from privstats.workflows.score import Scores

GROUP = "privstats.rivals"


class Rival(ABC):
    """A system trained on all records of the cohort, and scored as a head.

    Attributes:
        recipe: its hyperparameters, a dataclass, fixed before any record is seen.
        packages: distributions; a study's document states their versions.

    Example:
        >>> from privstats.contrib.sweep.rivals import Rival
        >>> sorted(Rival.__abstractmethods__)  # a rival defines these, and has a recipe
        ['__str__', 'name', 'require', 'scores']
    """

    packages: ClassVar[tuple[str, ...]] = ()
    recipe: Any

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the rival's row."""

    @abstractmethod
    def __str__(self) -> str:
        """Describe the rival's model, its training, and what it treats as public."""

    @abstractmethod
    def require(self, plan: Plan) -> None:
        """Refuse a promise that the rival cannot meet, before anything is measured."""

    @abstractmethod
    def scores(self, plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any], seed: int) -> Scores:
        """Train once under the promise of ``plan.privacy``, without noise if there is no DP, and return the scores.

        They may depend on the plan's promise, clip norm and public maps, not on its trust model, cohort or statistics.

        Args:
            plan: admitted by :meth:`require`.
            train, test: ``(X, y)``; the cohort's records, and to score on.
            seed: fixes all randomness.
        """


def rivals(*words: str) -> dict[str, Callable[[], Rival]]:
    """Return the rivals with these names, by row name.

    Example:
        >>> from privstats.contrib.sweep.rivals import rivals
        >>> rivals()  # none was asked for
        {}
    """
    entries = by_name(announced(GROUP), lambda entry: entry.name, "rival")
    for word in words:
        if word not in entries:
            known = ", ".join(entries) or "those of installed packages, of which none has any"
            raise DataError(f"baseline must be one of {known}, got {word!r}; choose one, or omit it")
    makers = [_maker(entries[word]) for word in words]
    return {make().name: make for make in makers}


def _maker(entry: EntryPoint) -> Callable[[], Rival]:
    make: Callable[[], Rival] = loaded(entry, "rival", DataError)
    if not callable(make) or not isinstance(make(), Rival):
        raise DataError(
            f"{dist_name(entry)} announces the rival {entry.name!r} as {entry.value!r}, which makes no Rival when "
            "called; fix or uninstall that package"
        )
    return make
