"""Published values: exact, bound to one digest, in a file beside the plan, and no plan without them changes."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from privstats.errors import PlanError, PrivstatsError
from privstats.schema import public_values
from privstats.schema.public_values import Published, Values, values_path
from tests.made import refused

VALUES = {"W": Values.rounded(np.eye(2, 3)), "M": Values.rounded([[1.0, -0.5], [0.25, 2.0]])}


@given(arrays.arrays(np.float64, (2, 3), elements=st.floats(-1e6, 1e6)), st.integers(2, 40))
def test_values_are_the_nearest_of_their_width(real: np.ndarray, bits: int) -> None:
    if not np.abs(real).max(initial=0.0) > 0 or np.abs(real).max() < 1e-60:
        return
    values = Values.rounded(real, bits)
    assert np.abs(values.integers).max() < 2 ** (bits - 1)
    assert np.abs(values.real - real).max() <= math.ldexp(1.0, -values.exponent)
    assert values.near(Values.rounded(real, bits))


def test_zero_has_values_too() -> None:
    assert Values.rounded(np.zeros((2, 2))).real.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_what_two_machines_compute_is_near_and_what_a_liar_sends_is_not() -> None:
    honest = np.linspace(-3, 5, 12).reshape(3, 4)
    mine = Values.rounded(honest)
    assert mine.near(Values.rounded(honest * (1 + 2e-6)))
    assert not mine.near(Values.rounded(honest * (1 + 1e-4)))
    assert not mine.near(Values.rounded(honest[:2]))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Values(np.ones(2), 0), "int64 array"),
        (lambda: Values([1, 2], 0), "int64 array"),
        (lambda: Values(np.array([1 << 54]), 0), "beyond 2\\*\\*53"),
        (lambda: Values(np.array([-(2**63)]), 0), "beyond 2\\*\\*53"),
        (lambda: Values(np.array([1]), 300), "exponent"),
        (lambda: Values(np.array([1]), True), "exponent"),
        (lambda: Values.rounded([math.nan]), "finite"),
        (lambda: Values.rounded([math.inf]), "finite"),
        (lambda: Values.rounded([1e-300]), "range of any scale"),
        (lambda: Published("x" * 64), "sha256"),
        (lambda: Published("0" * 64, "0"), "after"),
        (lambda: Published("0" * 64, "", VALUES), "these values do not match"),
        (lambda: Published("0" * 64, "", {"a b": VALUES["M"]}), "map names"),
        (lambda: Published("0" * 64).read(), "missing"),
        (lambda: Published("0" * 64).save("nowhere"), "missing"),
    ],
)
def test_what_is_no_value_is_refused(wrong: object, said: str) -> None:
    refused(PlanError, said, wrong)


def test_the_digest_holds_names_shapes_scales_and_entries() -> None:
    one = Values(np.array([[1, 2]]), 3)
    same = Published.of({"M": one})
    others = [
        {"W": one},
        {"M": Values(np.array([[1], [2]]), 3)},
        {"M": Values(np.array([[1, 2]]), 4)},
        {"M": Values(np.array([[1, 3]]), 3)},
        {"M": one, "W": one},
        {},
    ]
    assert len({same.sha256, *(Published.of(each).sha256 for each in others)}) == 7
    assert Published.of({"M": one}) == same
    assert Published.of({"M": one}, b"\1" * 32) != same
    assert "[[1" not in repr(same)
    assert VALUES["M"] != "M"


def test_the_digest_in_a_plan_is_that_of_every_version() -> None:
    """Frozen: a plan names all values together, so plans and releases of earlier versions keep their digests."""
    published = Published.of({"M": Values(np.eye(2, dtype=np.int64), 0), "W": Values(np.array([[1, -2, 3]]), 4)})
    assert published.sha256 == "6c57fe73384a20d604ab3d92292c879e67c6dc261dbab161b0950fc9a1f7ece3"


def test_the_order_of_names_does_not_matter() -> None:
    assert Published.of(VALUES) == Published.of(dict(reversed(VALUES.items())))


def test_values_travel_in_a_file_that_notices_edits(tmp_path: Path) -> None:
    published, path = Published.of(VALUES, b"\7" * 32), values_path(tmp_path / "round.toml")
    assert path.name == "round.values"
    published.save(path)
    back = Published.load(path)
    assert (back, dict(back.read())) == (published, dict(published.read()))
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    refused(PrivstatsError, "damaged|checksum", Published.load, path)


ENTRIES = st.integers(-(2**53), 2**53)


@given(
    arrays.arrays(np.int64, st.lists(st.integers(0, 5), max_size=4).map(tuple), elements=ENTRIES),
    st.integers(1, 54),
    st.integers(-256, 256),
    st.booleans(),
)
def test_a_file_gives_every_array_back_in_the_bits_that_it_needs(tmp_path_factory, whole, bits, exponent, both):
    whole = np.asarray(whole >> (54 - bits))
    if both and whole.ndim == 2:
        whole = whole @ whole.T >> 5 if not whole.size else np.tril(np.resize(whole, (4, 4)))
        whole = np.maximum(whole, whole.T)
    published, path = Published.of({"M": Values(whole, exponent)}), tmp_path_factory.mktemp("values") / "x"
    published.save(path)
    back = Published.load(path).read()["M"]
    assert (back, back.integers.shape) == (Values(whole, exponent), whole.shape)


def test_a_map_takes_its_triangle_in_20_bits_and_weights_theirs() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(64, 64))
    M, W = Values.rounded(half + half.T), Values.rounded(rng.normal(size=(10, 65)))
    one, both = (len(Published.of(each).encode()) for each in ({"M": M}, {"M": M, "W": W}))
    triangle, weights = 64 * 65 // 2 * 20 // 8, 10 * 65 * 20 // 8
    assert triangle < one < triangle + 500
    assert weights < both - one < weights + 200
    lopsided = M.integers.copy()
    lopsided[0, 1] += 1
    assert len(Published.of({"M": Values(lopsided, M.exponent)}).encode()) > 64 * 64 * 20 // 8


def test_the_digest_of_a_value_names_it_whatever_its_file() -> None:
    one = Values(np.array([[1, 2], [2, 3]]), 4)
    others = [
        Values(np.array([[1, 2], [2, 4]]), 4),
        Values(np.array([[1, 2], [2, 3]]), 5),
        Values(np.array([1, 2, 2, 3]), 4),
    ]
    assert len({one.digest, *(each.digest for each in others)}) == 4
    assert Values(np.array([[1, 2], [2, 3]], order="F"), 4).digest == one.digest


def test_values_that_no_file_may_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_values, "MAX_ENTRIES", 5)
    few, many = (Values.rounded(np.zeros(size)) for size in (2, 3))
    assert Published.of({"a": few, "b": many}).read().keys() == {"a", "b"}
    with pytest.raises(PlanError, match="over 2[*][*]26 entries together"):
        Published.of({"a": many, "b": many})


def test_values_of_another_plan_are_not_taken() -> None:
    bare = replace(Published.of(VALUES), values=None)
    assert bare.holding(VALUES).read().keys() == VALUES.keys()
    refused(PlanError, "these values do not match", bare.holding, {"M": VALUES["M"]})


def form(name: str = "M", **changes: object) -> str:
    """The manifest of one value of a byte."""
    said = {"exponent": 1, "shape": [2, 2], "bits": 2, "symmetric": False, **changes}
    return json.dumps({"after": "", "values": {name: said}})


@pytest.mark.parametrize(
    "manifest",
    [
        "[]",
        '{"after": "", "exponents": {"M": 1}}',
        form("Z"),
        form().replace('""', '"x"'),
        form(exponent=257),
        form(bits=0),
        form(bits=56),
        form(bits=9),
        form(shape=[-1]),
        form(shape=[5]),
        form(shape=[1 << 14, 1 << 14]),
        form(shape=[1 << 70, 0]),
        form(shape=[0] * 70),
        pytest.param(form(shape=[(1 << 63) - 1] * 60_000), id="many axes"),  # a product of minutes
        form(symmetric=True, shape=[4]),
        form(symmetric=True, shape=[2, 3]),
        form(symmetric=1),
        form(more=0),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(manifest: str, tmp_path: Path) -> None:
    from privstats.files.envelope import Content
    from privstats.schema.published_file import FORMAT

    FORMAT.write(tmp_path / "good.values", Content(form().encode(), {"M": np.array([0b11_10_01_00], np.uint8)}))
    assert Published.load(tmp_path / "good.values").read()["M"].integers.size == 4
    FORMAT.write(tmp_path / "wide.values", Content(form().encode(), {"M": np.array([1])}))
    refused(PlanError, "published values: an array has another number of", Published.load, tmp_path / "wide.values")
    FORMAT.write(tmp_path / "bad.values", Content(manifest.encode(), {"M": np.array([0], np.uint8)}))
    refused(PlanError, "consistent published values", Published.load, tmp_path / "bad.values")
