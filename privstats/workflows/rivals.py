"""What a sweep trains beside its heads, on all records in one place: the seam, and who is behind it.

A rival is a frozen value with its hyperparameters. It must keep the plan's own promise, refuse a plan whose promise it
cannot keep, and choose nothing by the records: tuning on them would reveal something that no epsilon counts. It may
see all of them, so it is a comparison and no deployment. Rivals are announced under ``privstats.rivals`` by
the word of ``privstats sweep --baseline``; ours are in ``contrib.rivals``. None is imported before it is asked for.
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
    """A system that is trained on all records of the cohort, and scored in a study as a head is.

    Attributes:
        recipe: its hyperparameters, a dataclass, which a study's document holds; fixed before any record is seen.
        packages: distributions whose versions a study's document says.

    Example:
        >>> from privstats.workflows.rivals import rivals
        >>> rival = rivals("dp-gd")["DP-GD (Opacus), pooled"]()
        >>> rival.recipe.steps, rival.packages
        (50, ('torch', 'opacus'))
    """

    packages: ClassVar[tuple[str, ...]] = ()
    recipe: Any

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of its row."""

    @abstractmethod
    def __str__(self) -> str:
        """For the reader of its row: what is trained, how, and what it takes as public."""

    @abstractmethod
    def require(self, plan: Plan) -> None:
        """Refuse a plan whose promise it does not keep; asked at every point before anything is measured.

        Raises:
            PlanError: another unit, adjacency or task.
            MissingExtraError: a package that it needs is not installed.
        """

    @abstractmethod
    def scores(self, plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any], seed: int) -> Scores:
        """The scores of one training under the promise of ``plan.privacy``; without DP without noise.

        They may depend on the promise, the clip norm and the public maps of the plan, and not on its trust model,
        cohort or statistics: one training stands for all of these.

        Args:
            plan: admitted by :meth:`require`.
            train, test: ``(X, y)``; all the cohort's records, and to score on.
            seed: fixes whatever is drawn. Reproducible noise protects nothing.
        """


def rivals(*words: str) -> dict[str, Callable[[], Rival]]:
    """What a study takes beside its heads, by the name of its row.

    Raises:
        DataError: a word that names none; a package that announces none.

    Example:
        >>> from privstats.workflows.rivals import rivals
        >>> list(rivals("dp-sgd", "dp-gd"))
        ['DP-SGD (Opacus), pooled', 'DP-GD (Opacus), pooled']
    """
    entries = by_name(announced(GROUP), lambda entry: entry.name, "rival")
    for word in words:
        if word not in entries:
            raise DataError(f"baseline must be one of {', '.join(entries)}, got {word!r}; choose one")
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
