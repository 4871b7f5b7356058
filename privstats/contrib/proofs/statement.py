"""The interface of statements for prover and verifier.

For wire entries x and a witness w, some entries are small integers (``tested``), some matrices are products
(``grams``), some linear forms are integers in a range (``relations``). Client and members run the same code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import isqrt
from typing import ClassVar, TypeAlias

from privstats.contrib.proofs.field import Field, Integers, P
from privstats.errors import PlanError

Coins: TypeAlias = Callable[[int, int], Field]
"""Uniform elements for the rounding of a witness, by the number of the try and their count; not the proof's coins."""


@dataclass(frozen=True)
class Slack:
    """A relation: a linear form of the report plus ``constant`` is an integer in [0, 2**width)."""

    name: str
    constant: int
    width: int


class Gram(ABC):
    """A matrix X with the product X X' = M. X, and M where it is not sent, are linear in x and w.

    Attributes:
        rows, columns: of X.
        sent: the report has M's lower triangle, row by row.
    """

    name: str
    rows: int
    columns: int
    sent: bool

    @property
    def product_size(self) -> int:
        """Number of M's entries sent."""
        return self.rows * (self.rows + 1) // 2 if self.sent else 0

    @abstractmethod
    def product(self, x: Field, w: Field) -> Field:
        """Return the sent part of X X'."""

    @abstractmethod
    def multiply(self, x: Field, w: Field, z: Field) -> Field:
        """Return X z, for z of ``columns`` elements."""

    @abstractmethod
    def multiply_transposed(self, x: Field, w: Field, c: Field) -> Field:
        """Return X' c, for c of ``rows`` elements."""

    @abstractmethod
    def form(self, x: Field, w: Field, product: Field, c: Field) -> int:
        """Return c' M c."""


class Statement(ABC):
    """One statement about a vector of wire entries, and the lengths of the report that proves it.

    Attributes:
        name: the plan's name of the level.
        tests: signed sums shown to be small; a false one passes with probability one half (docs: the lemma).
        size, witness_size: entries of x, which are summed, and of w.
        tested_size: entries tested, or 0.
        square: beta**2, an honest client's largest sum of squares of tested entries.
        slacks, grams: the relations, and the matrices.
    """

    name: ClassVar[str]
    tests: ClassVar[int] = 128

    size: int
    witness_size: int
    tested_size: int
    square: int
    slacks: tuple[Slack, ...]
    grams: tuple[Gram, ...]

    def hidden_of(self, x: Integers) -> Integers:
        """Return unsent entries, from x; none by default."""
        return x[:0]

    @abstractmethod
    def witness(self, x: Integers, hidden: Integers, coins: Coins) -> Integers:
        """Return a witness for an honest client's entries; raise ``DataError`` for inadmissible or too coarse ones."""

    @abstractmethod
    def tested(self, x: Field, w: Field) -> Field:
        """Return the tested entries."""

    @abstractmethod
    def relations(self, x: Field, w: Field, products: Sequence[Field]) -> Field:
        """Return the slacks' forms, without constants."""

    @property
    def signed(self) -> int:
        """Number of tests, or 0."""
        return self.tests if self.tested_size else 0

    @cached_property
    def bits(self) -> int:
        """Q, the bits of a test, with tau = 2**(Q - 1) at least 9.5 beta; without tests, of a slack.

        An honest client's sum passes tau with probability at most 2 exp(-9.5**2): the sum of X_i (u_i + u'_i - 1) has
        variance |X|**2 / 2 and is sub-Gaussian with it.
        """
        if not self.tested_size:
            return max(slack.width for slack in self.slacks)
        return isqrt(361 * self.square // 4).bit_length() + 1  # 9.5**2 = 361 / 4

    @property
    def reach(self) -> int:
        """Bound that the tests prove on the root of the sum of squares, rounded up: 4.75 tau."""
        return 19 * (1 << (self.bits - 1)) // 4 + 1

    @property
    def tolerance(self) -> int:
        """Field steps by which a liar may exceed the claim."""
        return 0

    @cached_property
    def rows(self) -> int:
        """Number of rows of Q bits."""
        return self.signed + sum(-(-slack.width // self.bits) for slack in self.slacks)

    @cached_property
    def lengths(self) -> tuple[tuple[int, ...], tuple[int, int], tuple[int]]:
        """Lengths by stage: x, w and per Gram M, z, Xz, z'z; bits, masks; h."""
        grams = (part for g in self.grams for part in (g.product_size, g.columns, g.rows, 1))
        return (self.size, self.witness_size, *grams), (self.rows * self.bits, self.rows), (3 * (self.bits + 1),)

    @cached_property
    def ends(self) -> tuple[int, int, int]:
        """Ends of the report's three stages."""
        first, second, third = accumulate(sum(stage) for stage in self.lengths)
        return first, second, third

    def check_room(self, remedy: str) -> None:
        """Raise ``PlanError`` with this remedy if integers could meet modulo p."""
        widest = max(slack.width for slack in self.slacks)
        most = max((abs(slack.constant) for slack in self.slacks), default=0)
        square = self.reach**2 if self.tested_size else 0
        if 2 * (square + most + (1 << widest)) >= P:
            raise PlanError(f"validity={self.name!r} has no room in its field for so many records: {remedy}")
