"""Define the base of kinds: a schema that forms its own sums and states how far one record moves them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar

from privstats import moments
from privstats.errors import SchemaError
from privstats.kinds.worst import WorstPair
from privstats.moments.base import Moments
from privstats.schema.base import Adjacency, Schema
from privstats.schema.kinds import Kind as Row

if TYPE_CHECKING:
    from privstats.moments.adders import Adder
    from privstats.moments.opened import Opened
    from privstats.moments.record_sums import RecordTerms
    from privstats.schema.public_values import Values


class Kind(Schema):
    """A schema whose class has everything about its kind: what a record adds, and how far it moves the sums.

    A kind pulls records from :class:`~privstats.moments.opened.Opened`, and knows no container.

    Attributes:
        proved: letters that ``move`` covers; no others may be released under a promise. A class with a table of its
            own states them, because no proof may be inherited.
        nearer: whether ``move`` under replace-one may be below ``dp.apart``'s bound, which follows from lengths alone.

    Example:
        >>> from privstats.kinds.base import Kind
        >>> issubclass(ps.MeanSchema, Kind), ps.MeanSchema.proved
        (True, 'x')
    """

    proved: ClassVar[str]
    nearer: ClassVar[bool] = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        fields = {name for name, hint in get_annotations(cls).items() if "ClassVar" not in str(hint)}
        if taken := sorted(fields & (vars(Kind).keys() | get_annotations(Kind).keys())):
            raise SchemaError(f"{cls.__name__} has fields {', '.join(taken)}, which every kind has; rename them")
        if "table" in vars(cls) and "proved" not in vars(cls):
            raise SchemaError(f"{cls.__name__} has a table of its own and no proved letters; state proved")

    @classmethod
    @abstractmethod
    def containers(cls) -> tuple[Any, Any]:
        """Return the classes of exact sums and of sums in real units."""

    @abstractmethod
    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        """Return the exact sums of records, with the published values."""

    def terms_of(self, records: Opened, values: Mapping[str, Values]) -> RecordTerms:  # noqa: ARG002
        """Return what each record adds alone; sums over persons follow from it."""
        raise self._cannot("states what one record adds")

    def adder(self) -> Adder:
        """Return the adder of records' own terms."""
        raise self._cannot("adds records' own terms")

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:  # noqa: ARG002
        """Return mu^2 of one record, from the inverse variances by letter."""
        raise self._cannot("bounds what one record moves")

    @classmethod
    def worst(cls) -> WorstPair | None:
        """Return the rule for two data sets that attain the bound; None: no certificate."""
        return None

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return ""

    def move_of_client(self, weights: Mapping[str, float], adjacency: Adjacency, records: float) -> float:  # noqa: ARG002
        """Return mu^2 of one client with so many records, where it is less than that many records' own."""
        raise self._cannot("bounds what one client moves")

    def _cannot(self, does: str) -> SchemaError:
        return SchemaError(f"no code {does} under {type(self).__name__}; give a schema of another kind")


class Added(Kind):
    """A kind whose sums are over records' own terms, as its adder forms them."""

    @abstractmethod
    def adder(self) -> Adder:
        """Return the adder of records' own terms."""

    def moments_of(self, records: Opened, _: Mapping[str, Values]) -> Moments:
        """Return the exact sums of records."""
        return moments.accumulators.measured(self, records)  # type: ignore[arg-type]  # a ClassSchema or RidgeSchema

    def terms_of(self, records: Opened, _: Mapping[str, Values]) -> RecordTerms:
        """Return what each record adds alone."""
        return moments.accumulators.terms_on_grid(self, records)  # type: ignore[arg-type]


def row(kind: type[Kind]) -> Row:
    """Return the row of a kind that is a class, for code that reads rows."""
    exact, real = kind.containers()
    return Row(
        schema=kind,
        moments=exact,
        units=real,
        measure=kind.moments_of,
        square=_own(kind, "move"),
        proved=kind.proved,
        worst=kind.worst(),
        unsigned=lambda schema: str(schema.unsigned),
        nearer=kind.nearer,
        terms=_own(kind, "terms_of"),
        adder=_own(kind, "adder"),
        client_square=_own(kind, "move_of_client"),
    )


def _own(kind: type[Kind], name: str) -> Callable[..., Any] | None:
    """Return a method as a function of the schema; None where the kind has the base's, which refuses."""
    method: Callable[..., Any] = getattr(kind, name)
    return None if method is getattr(Kind, name) else method
