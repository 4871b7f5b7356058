"""A statistic of another package that gives one vector per record: its bound is the library's, whatever it returns."""

import math
import warnings
from asyncio import CancelledError
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import get_annotations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.encoding import flatten
from privstats.errors import RecordError, SchemaError, UnreadableRecordsWarning
from privstats.kinds import KINDS, ClippedRows
from privstats.kinds.admission import is_kind
from privstats.moments import exact_moments
from privstats.schema.base import by_letter
from tests import made
from tests.brought import brought, install
from tests.moments.test_person_sums import clip_of, one_by_one, same
from tests.planted import plant

D, M, R = 3, 2, 2.0
GIVEN = {
    0.0: lambda _: np.zeros(M),
    1.0: lambda _: np.array([R, 0.0]),
    2.0: lambda _: np.array([-R, 0.0]),
    3.0: lambda _: [3.0, 1e300],
    4.0: lambda record: (0.1 * record[1], 5),
    5.0: lambda _: np.array([1e-3, 1.0], np.float32),
}
"""What a vector may be, by a record's first column."""


def left(fault: BaseException) -> Any:
    raise fault


WITHOUT = {
    10.0: lambda _: np.array([np.nan, 0.0]),
    11.0: lambda _: np.array([0.0, np.inf]),
    12.0: lambda _: np.zeros(M + 1),
    13.0: lambda _: np.zeros((1, M)),
    14.0: lambda _: 1.0,
    15.0: lambda _: None,
    16.0: lambda _: ["a", "b"],
    17.0: lambda record: record[9],
    18.0: lambda _: 1 // 0,
    19.0: lambda _: next(iter(())),
    20.0: lambda _: left(SystemExit(3)),
    21.0: lambda _: np.full(M, 10**400, object),
    22.0: lambda _: left(CancelledError()),
    23.0: lambda _: left(GeneratorExit()),
}
"""What is no vector, so that its record is in no sum."""


@dataclass(frozen=True)
class Odd(ClippedRows):
    """The vectors of these tables; what it does to its argument, or returns again, reaches no other record."""

    task: ClassVar[str] = "odd"
    purpose: ClassVar[str] = "anything"
    outputs: ClassVar[int] = M  # type: ignore[assignment]
    again: ClassVar[np.ndarray] = np.zeros(M)

    def vector(self, record: Any) -> Any:
        assert record.base is None
        vector = {**GIVEN, **WITHOUT}[record[0]](record)
        record[:] = np.nan
        if record[0] in GIVEN:
            self.again[:] = vector
            return self.again
        return vector


def schema() -> Any:
    return KINDS["odd"](D, R)


RECORDS = st.lists(st.sampled_from([*GIVEN, *WITHOUT, math.nan]), max_size=12)


@pytest.fixture(params=["ours", "a stranger's"], scope="module", autouse=True)
def registered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The kind as ours, which may be read at once first, and as that of a package."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        if request.param == "ours":
            plant(patch, KINDS, "odd", Odd)
            yield
            return
        site = tmp_path_factory.mktemp("site")
        (site / "odd_kind.py").write_text(
            f"from {__name__} import Odd\nfrom dataclasses import dataclass\nfrom privstats.kinds import ClippedRows\n"
            "@dataclass(frozen=True)\nclass Strange(ClippedRows):\n    task, purpose = 'odd', 'anything'\n"
            "    outputs, again, vector = Odd.outputs, Odd.again, Odd.vector\n"
        )
        with brought(install("stranger", site, {KINDS.group: {"odd": "odd_kind:Strange"}})):
            yield


def rows_of(firsts: Any) -> tuple[np.ndarray, np.ndarray]:
    X = np.full((len(firsts), D), 7.0)
    X[:, 0] = firsts
    return X, np.zeros(len(firsts))


def summed(firsts: Any, **more: Any) -> Any:
    return exact_moments(schema(), *rows_of(firsts), unreadable="leave out", **more)


@given(RECORDS, RECORDS)
def test_sums_of_parts_add_up_whatever_a_vector_is(one: list[float], other: list[float]) -> None:
    assert summed(one) + summed(other) == summed([*one, *other])
    assert summed([*one, *other]).records == sum(each in GIVEN for each in [*one, *other])


@pytest.mark.parametrize("first", [*WITHOUT, math.nan])
def test_a_record_without_a_vector_is_in_no_sum_and_ends_none(first: float) -> None:
    assert summed([1.0, first, 4.0]) == summed([1.0, 4.0])
    with pytest.raises(RecordError, match="vector|unreadable record|cannot be read"):
        ps.measure(schema(), *rows_of([1.0, first, 4.0]))


def test_the_holder_is_told_why() -> None:
    with pytest.warns(UnreadableRecordsWarning, match=r"the vector of 'odd': 2 have no vector of finite numbers"):
        summed([1.0, 10.0, 17.0, 2.0])


@given(RECORDS, RECORDS)
def test_no_record_moves_the_sum_further_than_the_bound(one: list[float], other: list[float]) -> None:
    a, b = (summed(each).x for each in (one[:1], other[:1]))
    assert int(a @ a) <= schema().grid_steps ** 2
    assert int((a - b) @ (a - b)) <= 4 * schema().grid_steps ** 2


@pytest.mark.parametrize(("adjacency", "pair"), [("add-remove", ([1.0], [])), ("replace-one", ([1.0], [2.0]))])
def test_the_bound_is_attained(adjacency: Any, pair: Any) -> None:
    one, other = (summed(each).real().x for each in pair)
    assert np.linalg.norm(one - other) == ps.dp.sensitivity(schema(), "x", adjacency)


@pytest.mark.parametrize("clip", [1.0, 2.5, "average"])
@given(firsts=RECORDS, owners=st.lists(st.integers(0, 4), min_size=12, max_size=12))
def test_a_person_adds_what_that_persons_rows_add_alone(clip: Any, firsts: list[float], owners: list[int]) -> None:
    firsts, ids = firsts or [1.0], np.array(owners[: len(firsts or [1.0])])
    X, y = rows_of(firsts)
    limit = clip_of(schema(), clip)
    want = one_by_one(schema(), X, y, ids, limit, unreadable="leave out")
    same(exact_moments(schema(), X, y, unreadable="leave out", persons=ids, person_clip=limit), want)


def test_its_plan_is_measured_and_released() -> None:
    plan = made.plan(schema(), ps.Cohort(3, 3, 90), made.promise(unit="person", person_clip="average"))
    assert plan.layout.size == M
    X, y = rows_of([1.0, 4.0, 10.0] * 6)
    release = ps.simulate(plan, [(X[k::3], y[k::3], np.arange(6)) for k in range(3)])
    assert np.isfinite(release.moments.x).all()
    assert ps.Plan.from_toml(plan.to_toml()).digest == plan.digest
    assert flatten(summed([1.0])).tolist() == [schema().grid_steps, 0]


# --- the bound is not the subclass's


SEALED = {
    "move": lambda *_: 0.0,
    "moments_of": lambda *_: None,
    "terms_of": lambda *_: None,
    "containers": classmethod(lambda _: None),
    "exact": lambda *_: None,
    "real": lambda *_: None,
    "clip_norm": 9.0,
    "grid_steps": 1,
    "scale": property(lambda _: 1e9),
    "scale_of": lambda *_: 1.0,
    "statistics": "",
    "table": (),
    "proved": "xy",
    "reading": property(lambda _: None),
    "goal": None,
    "sizes": property(lambda _: {"feature": 0}),
    "bound": 1,
    "unsigned": "x",
    "nearer": True,
    "nonnegative": True,
    "refusal": lambda *_: "",
    "no_persons": "none",
    "refuses_persons": lambda *_, **__: "",
    "move_of_client": lambda *_: 0.0,
    "checks_records": True,
    "_vectors": lambda *_: (),
    "_vector": lambda *_: None,
    "_exclude": lambda *_: None,
    "__post_init__": lambda _: None,
    "__init__": lambda *_: None,
    "__eq__": lambda *_: True,
    "__getattribute__": lambda *_: None,
    "__init_subclass__": classmethod(lambda _: None),
    "__new__": lambda *_: None,
}


@pytest.mark.parametrize("name", SEALED)
def test_what_the_bound_rests_on_is_not_defined_again(name: str) -> None:
    with pytest.raises(SchemaError, match="Mine defines|Mine has a table of its own"):
        type("Mine", (ClippedRows,), {name: SEALED[name]})
    mixin = type("Mixin", (), {name: SEALED[name]})
    if not name.startswith("__"):
        with pytest.raises(SchemaError, match=f"Mine defines .*{name}"):
            type("Mine", (mixin, ClippedRows), {})
        with pytest.raises(SchemaError, match="Mine"):
            type("Mine", (ClippedRows,), {"__annotations__": {name: int}})


def test_every_public_name_of_the_base_is_sealed_or_listed() -> None:
    free = {"task", "purpose", "outputs", "vector", "check", "example"}
    for name in {each for each in dir(ClippedRows) if not each.startswith("__")} - free - {"_abc_impl"}:
        with pytest.raises(SchemaError, match="Mine"):
            type("Mine", (ClippedRows,), {name: None})


def test_what_check_stores_stands_before_no_method() -> None:
    class Sly(Odd):
        task, purpose = "sly", "other bounds"

        def check(self) -> None:
            for name in ("move", "moments_of", "sizes", "bound", "grid_steps"):
                vars(self)[name] = None
            vars(self).update(clip_norm=R / 10, grid_bits=40, _outputs=1, features=9)
            del vars(self)["transform"]

    assert Sly(D, R).move({"x": 1.0}, "add-remove") == R**2
    assert Sly(D, R).bound == schema().bound
    assert (Sly(D, R).grid_bits, Sly(D, R).sizes, Sly(D, R).features, Sly(D, R).transform) == (
        12,
        {"feature": M},
        D,
        (),
    )


def test_pages_say_who_states_that_a_vector_reads_one_record() -> None:
    by = KINDS.origin("odd") or "privstats"
    assert schema().clipping.startswith(f"Then {by} computes a vector of {M} numbers, and states that it reads that")


def mixed(name: str, order: str, **options: Any) -> Any:
    """A kind with a mixin's field of this name, before or behind the base."""
    mixin = type("Mixin", (), {"__annotations__": {name: Any}, name: field(**options)})
    bases = (ClippedRows, dataclass(frozen=True)(mixin))
    body = {"task": "mixed", "purpose": "a mixin", "outputs": M, "vector": Odd.vector}
    return dataclass(frozen=True)(type("Mixed", bases if order == "behind" else bases[::-1], body))


@pytest.mark.parametrize("order", ["behind", "before"])
@pytest.mark.parametrize(
    "name", ["statistics", "table", "nearer", "nonnegative", "bound", "sent", "proved", "appended"]
)
def test_a_mixins_field_stands_before_nothing_that_the_bound_rests_on(name: str, order: str) -> None:
    cls = mixed(name, order, kw_only=True)
    if order == "behind" and name in get_annotations(ClippedRows):  # a class variable of the base is no field
        assert is_kind(cls, "mixed")
        assert getattr(cls(D, R), name) is getattr(ClippedRows, name)
        return
    with pytest.raises(SchemaError, match=f"Mixed defines {name}, on which the bound"):
        is_kind(cls, "mixed")


def test_a_mixins_field_is_none_of_ours() -> None:
    with pytest.raises(SchemaError, match="Mixed defines clip_norm, on which the bound"):
        is_kind(mixed("clip_norm", "before", compare=False, kw_only=True), "mixed")
    assert is_kind(mixed("cut", "behind", kw_only=True), "mixed")


@pytest.mark.parametrize("options", [{"eq": False}, {"init": False}, {"order": True}])
def test_options_of_dataclass_that_change_equality_are_refused(options: dict[str, bool]) -> None:
    cls = type("Mine", (Odd,), {"task": "mine", "purpose": "mine"})
    said = r"an order \(dataclass\(order=True\)\)" if "order" in options else "options"
    with pytest.raises(SchemaError, match=f"Mine defines {said}"):
        is_kind(dataclass(frozen=True, **options)(cls), "mine")


def test_slots_are_refused_by_that_name() -> None:
    with pytest.raises(SchemaError, match=r"Mine defines slots \(dataclass\(slots=True\)\), which no kind does"):
        dataclass(frozen=True, slots=True)(type("Mine", (Odd,), {"task": "mine", "purpose": "mine"}))


def test_a_letter_is_sent_once() -> None:
    """The second segment of one letter would be memory of this process."""
    with pytest.raises(SchemaError, match="statistics names a letter twice, got 'xx'"):
        by_letter(ClippedRows.table, "xx")


@pytest.mark.parametrize("outputs", [0, -1, 2.5, "2", None, True])
def test_a_vector_has_a_whole_number_of_entries(outputs: Any) -> None:
    wrong = type("Wrong", (Odd,), {"task": "wrong", "purpose": "wrong", "outputs": outputs})
    with pytest.raises(SchemaError, match="outputs must be"):
        wrong(D, R)


def test_a_subclass_refuses_values_of_its_own_fields() -> None:
    @dataclass(frozen=True)
    class Cut(Odd):
        task: ClassVar[str] = "cut"
        purpose: ClassVar[str] = "a cut"
        cut: float = 1.0

        def check(self) -> None:
            if not self.cut > 0:
                raise SchemaError(f"cut must be above 0, got {self.cut}: choose one")

    with pytest.raises(SchemaError, match="cut must be above 0"):
        Cut(D, R, cut=-1.0)
    with pytest.raises(SchemaError, match="clip_norm must be a number"):
        Cut(D, math.nan)


def test_a_stranger_reads_readable_records_alone(tmp_path: Path) -> None:
    """Its sums need not raise an error at a gap: as int64, a gap is the largest number of all."""
    with brought(install("stranger", tmp_path)):
        schema = KINDS["abs"](2, 1.0)
        X = np.array([[0.5, 0.0], [math.nan, 0.1], [math.inf, 0.0], [0.0, 0.25]])
        found = exact_moments(schema, X, np.zeros(4), unreadable="leave out")
        assert (found.records, found.real().x.tolist()) == (2, [0.5, 0.25])
        with pytest.raises(RecordError, match="2 of the records cannot be read"):
            ps.measure(schema, X, np.zeros(4))
