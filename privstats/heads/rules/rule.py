"""The base class of decision rules: frozen arrays, their scores in numpy and in a graph, and reading from a file.

Every head ends in a rule, which is saved, exported and run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import HeadError
from privstats.heads.evidence import Array
from privstats.plug_ins import announced, brought_by, loaded
from privstats.tables import by_name, load_all, register
from privstats.transforms.arrays import arrays_of

__all__ = ["TILE", "Rule", "kinds", "rule_of", "tail", "tail_in_graph"]

_ROOM = "privstats.heads.rules"
_GROUP = "privstats.rules"
_RULES: dict[str, type[Rule]] = {}
_WINDOW = 64
TILE = 1024  # rows per tile: a tile of X and its products stay in the second-level cache


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """Scores of shape ``(n, C)`` for rows of shape ``(n, d)``: log-densities up to a term common to all classes."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if not cls.__module__.startswith(_ROOM):
            kinds()  # so that a class from elsewhere is refused where it takes a name of ours
        register(_RULES, cls.kind, cls, "rule", HeadError)

    @abstractmethod
    def scores(self, X: Array) -> Array:
        """Scores of float64 rows; never allocates n x C x d."""

    @abstractmethod
    def lifted(self, basis: Array) -> Rule:
        """This rule of ``basis.T x`` as a rule of x; ``basis`` has orthonormal columns, ``(d, k)``."""

    @abstractmethod
    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """:meth:`scores` of tensor rows or of a recorded graph's: the same sequence of operations for any rows.

        Args:
            buffers: what holds :meth:`arrays` by name, as tensors on the device of the rows, or as arrays.
            rows: ``(n, d)``, of any type that ``transforms.arrays`` supports.
        """

    def best(self, X: Array) -> NDArray[np.intp]:
        """Index of the highest score of each row, shape ``(n,)``."""
        return np.asarray(self.scores(X).argmax(axis=1))

    def sole(self, rows: Array) -> int | None:
        """The one class of all these rows, ``(n, d)``; None where there are several: it stops at the second."""
        found: set[int] = set()
        for at in range(0, len(rows), _WINDOW):
            found.update(self.best(rows[at : at + _WINDOW]).tolist())
            if len(found) > 1:
                return None
        return next(iter(found), None)

    def arrays(self) -> dict[str, Array]:
        """The rule as named arrays, for a model file."""
        return {field.name: np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)}


def kinds() -> Mapping[str, type[Rule]]:
    """Every kind of rule by its name: those of the package, and those that were defined elsewhere."""
    load_all(_ROOM)
    return _RULES


def rule_of(kind: str, arrays: Mapping[str, Array]) -> Rule:
    """The rule that :meth:`Rule.arrays` described; the arrays must be finite float64 with exactly its names.

    Raises:
        HeadError: no package here brings this kind.
        ValueError: wrong names, or arrays that are not finite float64.
    """
    cls = _RULES.get(kind) or kinds().get(kind) or _announced(kind)
    if set(arrays) != {field.name for field in fields(cls)}:
        raise ValueError(f"no rule of kind {kind!r} has these arrays")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("a rule's arrays must be finite float64")
    return cls(**arrays)


def _announced(kind: str) -> type[Rule]:
    """The class of a rule that another package brings."""
    entries = by_name(announced(_GROUP), lambda entry: entry.name, "rule")
    if kind not in entries:
        raise HeadError(
            f"no package here brings a rule of kind {kind!r:.80}: install the one that announces it under the entry "
            f"points {_GROUP}, as the maker of this head had it"
        )
    cls: type[Rule] = loaded(entries[kind], "rule", HeadError)
    if _RULES.get(kind) is not cls:
        raise HeadError(
            f"{brought_by(entries[kind])} announces the rule {kind!r} as {entries[kind].value!r}, which is no Rule of "
            "that kind; mend or uninstall that package"
        )
    return cls


def tail(distance: Array, degrees: float, d: int) -> Array:
    """Minus the log density at a squared Mahalanobis distance, up to a constant."""
    return distance / 2 if degrees == 0 else (d + degrees) / 2 * np.log1p(np.maximum(distance, 0.0) / degrees)


def tail_in_graph(distance: Any, degrees: float, d: int) -> Any:
    """:func:`tail` of a tensor, or of a recorded graph's."""
    xp = arrays_of(distance)
    return distance / 2 if degrees == 0 else xp.log1p(xp.relu(distance) / degrees) * ((d + degrees) / 2)
