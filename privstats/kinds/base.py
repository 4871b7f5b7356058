"""Define the base of kinds: a schema that forms its own sums and states how far one record moves them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from inspect import get_annotations, getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from privstats import moments
from privstats.errors import PlanError, SchemaError
from privstats.kinds.registry import KINDS, is_registered
from privstats.kinds.worst import WorstPair
from privstats.moments.base import ExactClass, Moments, RealMoments, Summed, unformed
from privstats.schema.base import Adjacency, Schema
from privstats.schema.narrowing import USUAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privstats.moments.adders import Adder
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened
    from privstats.schema.public_values import Values

_Sums = TypeVar("_Sums", bound=Moments)

_ALSO_FIELDS = {"class_names", "among"}
"""Base attributes that a kind may have as fields; a field of any other base name would silently replace it."""

_KEYS = {"package"}
"""Keys of a plan's schema that no kind has as a field."""

_FINAL = ("is_registered", "checks_records", "__eq__", "__hash__", "__class__")
"""What decides of which class a schema is, and whose; no kind defines it. ``dataclass`` writes == and the hash."""


class Kind(Schema):
    """A schema whose class has everything about its kind: what a record adds, and how far it moves the sums.

    A kind pulls records from :class:`~privstats.records.opened.Opened`, and knows no container.

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

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        fields = {name for name, hint in get_annotations(cls).items() if "ClassVar" not in str(hint)}
        if taken := sorted(fields & reserved()):
            raise SchemaError(f"{cls.__name__} has fields {', '.join(taken)}, which every kind has; rename them")
        mixed = (name for name in _FINAL[:2] if getattr_static(cls, name) is not vars(Kind)[name])
        if own := [*(name for name in _FINAL if name in vars(cls)), *mixed]:
            # With slots=True, dataclass builds a second class, which has what it wrote into the first.
            own = ["slots (dataclass(slots=True))"] if "__slots__" in vars(cls) else own
            raise SchemaError(f"{cls.__name__} defines {', '.join(dict.fromkeys(own))}, which no kind does; omit them")
        if "table" in vars(cls) and "proved" not in vars(cls):
            raise SchemaError(f"{cls.__name__} has a table of its own and no proved letters; state proved")
        if "task" in vars(cls) and not vars(cls).get("purpose"):
            raise SchemaError(f"{cls.__name__} has a task of its own and no purpose; state what its sums are used for")
        if "task" in vars(cls) and next(each for each in cls.__mro__ if "example" in vars(each)) is Kind:
            raise SchemaError(f"{cls.__name__} has a task of its own and no example; return a small schema of it")
        if not cls.no_persons and cls.terms_of is Kind.terms_of:
            raise SchemaError(f"{cls.__name__} admits persons and states no terms_of; state it, or set no_persons")

    @classmethod
    @abstractmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind, for tests and pages."""
        raise SchemaError(f"{cls.__name__} states no example; return a small schema of this kind")

    @abstractmethod
    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        """Return the exact sums of records, with the published values."""

    def terms_of(self, records: Opened, values: Mapping[str, Values]) -> RecordTerms:  # noqa: ARG002
        """Return what each record adds alone; sums over persons follow from it."""
        raise SchemaError(f"no code states what each record adds under {type(self).__name__}; omit persons")

    def adder(self) -> Adder:
        """Return the adder of records' own terms."""
        raise SchemaError(f"no sum over records is available under {type(self).__name__}; give a {USUAL}")

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:  # noqa: ARG002
        """Return mu^2 of one record, from the inverse variances by letter."""
        raise PlanError(f"no sensitivity is proved for a {type(self).__name__}; measure a schema of another kind")

    @classmethod
    def worst(cls) -> WorstPair | None:
        """Return the rule for two data sets that attain the bound; None: no certificate."""
        return None

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return ""

    @property
    def refuses_parts(self) -> str:
        """Return why sums over parts of a party's records are no sums over all of them; empty if they are.

        They are where each record's own terms are summed.
        """
        if type(self).terms_of is not Kind.terms_of:
            return ""
        return "these sums depend on all records of a party at once"

    @property
    def is_registered(self) -> bool:
        """Whether the registry has exactly this class: a proof covers a class alone, and no subclass."""
        return is_registered(self)

    @property
    def clipping(self) -> str:
        """Explanation of a record's bounded weight, which another package states of a kind of its own."""
        package = KINDS.origin(self.task)
        stated = f"How much a record weighs at most is stated by {package}, and privstats does not prove it."
        return stated if package else super().clipping

    @property
    def checks_records(self) -> bool:
        """Whether this is a kind of ours, whose sums raise RecordError at a record that cannot be read."""
        return not KINDS.origin(self.task)

    # weights, adjacency and records are unused here: kinds that override this method read them.
    def move_of_client(self, weights: Mapping[str, float], adjacency: Adjacency, records: float) -> float | None:  # noqa: ARG002
        """Return mu^2 of one client with n = ``records`` records; None: that of any n records together."""
        return None

    def exact(self, sums: Mapping[str, NDArray[Any]], **extra: Any) -> Moments:
        """Build exact moments from sums by letter, blocks first."""
        moments: Moments = self.containers()[0].of_sums(self, sums, **extra)
        return moments

    def real(self, sums: Mapping[str, NDArray[Any]]) -> Any:
        """Build moments in real units from sums by letter in wire steps, blocks first."""
        return self.containers()[1].of_sums(self, sums)


def reserved() -> set[str]:
    """Return the names that no field of a kind has: it would silently replace what every kind has."""
    names = {name for each in (Schema, Kind) for name in (*vars(each), *get_annotations(each))}
    return (names | _KEYS) - _ALSO_FIELDS


class Added(Kind, Summed, Generic[_Sums]):
    """A kind whose sums are over records' own terms, as its adder forms them."""

    @abstractmethod
    def adder(self) -> Adder:
        """Return the adder of records' own terms."""

    def moments_of(self, records: Opened, _: Mapping[str, Values]) -> _Sums:
        """Return the exact sums of records."""
        sums: Any = moments.accumulators.measured(self, records)
        return sums  # type: ignore[no-any-return]

    def terms_of(self, records: Opened, _: Mapping[str, Values]) -> RecordTerms:
        """Return what each record adds alone."""
        return moments.accumulators.terms_on_grid(self, records)


def kind_of(schema: Schema) -> Kind:
    """Return a schema as the kind that it is, which forms sums and bounds what one record moves.

    Raises:
        SchemaError: no kind, or a subclass of one: a proof covers a class alone.

    Example:
        >>> from privstats.kinds.base import kind_of
        >>> kind_of(ps.SitesSchema(2, clip_norm=8.0)).proved  # the statistics with a proved sensitivity
        'NQ'
    """
    if isinstance(schema, Kind) and is_registered(schema):
        return schema
    raise unformed(schema)
