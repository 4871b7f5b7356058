"""Append products of columns, the interactions of a regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from privstats.errors import SchemaError
from privstats.transforms.base import Transform
from privstats.transforms.exact import Rows, arrays_of
from privstats.transforms.levels import Levels

_MAX_PAIRS = 64


@dataclass(frozen=True)
class Interactions(Transform):
    """Append the product of each pair of columns, for example of a treatment and a subgroup.

    Put it after ``Centre`` and ``Scale`` and before ``ConstantFeature``. Columns inside -1 to 1 then have products
    inside -1 to 1, so a clip norm of sqrt(columns + pairs + 1) clips no record inside its public ranges. A column of
    several texts (:class:`Levels`) takes one pair for each of its 0/1 columns; together they add at most 1 to a row's
    squared norm. A product depends on its own row alone, and rows are clipped after it: bounds on one record hold as
    without products, for all values.

    Args:
        pairs: indices of two different columns, from 0, each pair once; up to 64.

    Example:
        >>> ps.transforms.apply((ps.transforms.Interactions(((0, 1),)),), np.array([[0.5, -1.0, 0.25]])).tolist()
        [[0.5, -1.0, 0.25, -0.5]]
    """

    kind: ClassVar[str] = "interactions"

    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pairs", _checked(self.pairs))

    @classmethod
    def between(
        cls, columns: Sequence[str], pairs: Sequence[tuple[str, str]], levels: Levels | None = None
    ) -> Interactions:
        """Return the map of pairs that are named.

        Args:
            columns: the schema's ``feature_names``.
            pairs: two different columns each.
            levels: the schema's map of texts, if any: a column of several texts takes part with all its 0/1 columns.

        Raises:
            SchemaError: an unknown column, or a pair of a column with itself.

        Example:
            >>> ps.transforms.Interactions.between(("arm", "age", "sex"), (("arm", "sex"),))
            Interactions(pairs=((0, 2),))
        """
        owners = owners_of(columns, levels)
        for name in (name for pair in pairs for name in pair):
            if name not in owners:
                raise SchemaError(f"interactions name {name!r}, and the columns are {', '.join(columns)}; name two")
        places = {name: [place for place, each in enumerate(owners) if each == name] for name in owners}
        return cls(tuple((a, b) for first, second in pairs for a in places[first] for b in places[second]))

    def apply(self, rows: Rows) -> Rows:
        """Return rows with their products appended; a product is rounded once, as IEEE 754 does everywhere."""
        products = (rows[:, a : a + 1] * rows[:, b : b + 1] for a, b in self.pairs)
        return reduce(arrays_of(rows).hstack, products, rows)

    def outputs(self, inputs: int | None) -> int | None:
        """Return the number of columns, products included."""
        highest = max(place for pair in self.pairs for place in pair)
        if inputs is not None and highest >= inputs:
            raise SchemaError(f"interactions name column {highest}, and {inputs} columns come in; 0 is the first")
        return None if inputs is None else inputs + len(self.pairs)

    def takes(self, outputs: int) -> int:
        """Return the number of columns without products."""
        return outputs - len(self.pairs)

    def named(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return output names, such as ``"arm x sex"`` for a product."""
        return (*names, *(f"{names[a]} x {names[b]}" for a, b in self.pairs))

    def plain_table(self) -> dict[str, Any]:
        """Return the fields for a plan file."""
        return {"pairs": [list(pair) for pair in self.pairs]}


def owners_of(columns: Sequence[str], levels: Levels | None) -> tuple[str, ...]:
    """Return the input column of each column behind ``Levels``: one of several texts owns several."""
    further = () if levels is None else [each.name for each in levels.several for _ in each.values[2:]]
    return (*columns, *further)


def _checked(pairs: Any) -> tuple[tuple[int, int], ...]:
    listed = (
        [tuple(each) for each in pairs if isinstance(each, tuple | list)] if isinstance(pairs, tuple | list) else []
    )
    whole = bool(listed) and len(listed) == len(pairs) and all(len(each) == 2 for each in listed)
    if not whole or not all(type(place) is int and place >= 0 for pair in listed for place in pair):
        raise SchemaError(f"pairs must hold two indices of columns each, such as ((0, 1),), got {pairs!r}")
    if any(a == b for a, b in listed):
        raise SchemaError("pairs must name two different columns: the square of a column is no interaction")
    if len({frozenset(pair) for pair in listed}) < len(listed):
        raise SchemaError("pairs must be different: two equal products cannot be distinguished; name each pair once")
    if len(listed) > _MAX_PAIRS:
        raise SchemaError(f"pairs must be at most {_MAX_PAIRS}, got {len(listed)}; name fewer interactions")
    return tuple((a, b) for a, b in listed)
