"""The torch modules whose gradients a round may sum: a closed list, which plans name by a word.

Only shapes, which need no torch; ``moments.module_map`` builds the module. No layer of the list mixes rows, so the
gradient of one record is a function of that record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from privstats.errors import SchemaError

__all__ = ["MODULES", "Module"]

MODULES = ("mlp", "adapter")
_MOST_WIDTH = 1 << 12
_WIDTH = re.compile("[1-9][0-9]{0,3}")  # one word for one module


@dataclass(frozen=True)
class Module:
    """A hidden layer ``h = tanh(8 V u) / sqrt(H)``, and scores ``W z``: z = (h, a) for mlp, z = (h, u) for adapter.

    ``u`` is the mapped row of a round, ``(d + 1,)``, whose last entry is the constant ``a``; so there are no further
    intercepts, and an adapter stands beside a linear softmax. h is no longer than u: both are at most 1.

    Attributes:
        kind: one of :data:`MODULES`.
        width: H, entries of h.

    Example:
        >>> from privstats.schema.modules import Module
        >>> Module.of("adapter/64").shapes(features=10, classes=3)  # V, then W
        ((64, 11), (3, 75))
    """

    kind: str
    width: int

    @classmethod
    def of(cls, word: object) -> Module:
        """The module that a word such as ``"mlp/64"`` names.

        Raises:
            SchemaError: it names none.
        """
        kind, _, width = word.partition("/") if isinstance(word, str) else ("", "", "")
        if kind not in MODULES or not _WIDTH.fullmatch(width) or int(width) > _MOST_WIDTH:
            raise SchemaError(
                f"module must be {' or '.join(f'{each}/WIDTH' for each in MODULES)} with a WIDTH from 1 to "
                f"{_MOST_WIDTH}, such as 'adapter/64', got {word!r:.80}; leave it out for a linear softmax"
            )
        return cls(kind, int(width))

    def through(self, features: int) -> int:
        """How many of the last entries of u the scores read beside h."""
        return features + 1 if self.kind == "adapter" else 1

    def shapes(self, features: int, classes: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of V and W; the published ``w`` holds V, then W, row by row."""
        return (self.width, features + 1), (classes, self.width + self.through(features))

    def size(self, features: int, classes: int) -> int:
        """P: how many numbers V and W are."""
        return sum(rows * columns for rows, columns in self.shapes(features, classes))
