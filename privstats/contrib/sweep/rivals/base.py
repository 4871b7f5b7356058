"""Define what a rival of a sweep's heads is: trained on pooled records, or by parties that hold their own.

A rival chooses nothing by the records, because no epsilon counts such tuning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from privstats.extend.heads import Scores
from privstats.plan import Plan

Records: TypeAlias = tuple[Any, Any]
"""``(X, y)``."""


class Rival(ABC):
    """A system trained on all records of the cohort in one place, and scored as a head.

    Attributes:
        recipe: its hyperparameters, a dataclass, fixed before any record is seen.
        packages: distributions; a study's document states their versions.
        private: whether it meets the plan's promise. A study scores a rival without privacy at the point without
            noise alone, in every replicate.

    Example:
        >>> from privstats.contrib.sweep.rivals import Rival
        >>> sorted(Rival.__abstractmethods__)  # a rival defines these, and has a recipe
        ['__str__', 'name', 'require', 'scores']
    """

    packages: ClassVar[tuple[str, ...]] = ()
    private: ClassVar[bool] = True
    recipe: Any

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the rival's row."""

    @abstractmethod
    def __str__(self) -> str:
        """Describe the rival's model, its training, its privacy, and what it treats as public."""

    @abstractmethod
    def require(self, plan: Plan) -> None:
        """Refuse a plan that the rival cannot train for, or a promise that it cannot meet, before any measurement."""

    @abstractmethod
    def scores(self, plan: Plan, train: Records, test: Records, seed: int) -> Scores:
        """Train once under the promise of ``plan.privacy``, without noise if there is no DP, and return the scores.

        They may depend on the plan's promise, clip norm and public maps, not on its trust model, cohort or statistics.

        Args:
            plan: admitted by :meth:`require`.
            train, test: ``(X, y)``; the cohort's records, and to score on.
            seed: fixes all randomness.
        """

    def upload_bytes(self, plan: Plan) -> int:  # noqa: ARG002  # the default pools records, outside of any session
        """Bytes that one party uploads in total; 0 where records are pooled."""
        return 0


class FederatedRival(Rival):
    """A rival whose parties train on their own records. A study passes the partition that its heads' sums have.

    Example:
        >>> from privstats.contrib.sweep.rivals import FederatedRival
        >>> sorted(FederatedRival.__abstractmethods__)
        ['__str__', 'name', 'require', 'scores_of_parties']
    """

    def scores(self, plan: Plan, train: Records, test: Records, seed: int) -> Scores:
        """Return the scores with one party that holds all records."""
        return self.scores_of_parties(plan, [train], test, seed)

    @abstractmethod
    def scores_of_parties(self, plan: Plan, parties: Sequence[Records], test: Records, seed: int) -> Scores:
        """Train once over these parties, and return the scores.

        Args:
            plan: admitted by :meth:`require`.
            parties: ``(X, y)`` of each party; some may hold no records.
            test: ``(X, y)`` to score on.
            seed: fixes all randomness.
        """
