"""A schema that exists can be measured; one that cannot is refused with the field, the bound and the remedy."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given

import privstats as ps
from privstats.transforms import ConstantFeature, GaussianProjection, UnitNorm
from tests.made import refused


def class_schema(**changes):
    return ps.ClassSchema(**{"classes": 3, "features": 4, "statistics": "NAB", "clip_norm": 1.0} | changes)


def ridge_schema(**changes):
    return ps.RidgeSchema(**{"features": 4, "clip_norm": 1.0, "target_bound": 2.0} | changes)


@given(ps.testing.schemas())
def test_schemas_are_values(schema):
    assert (dataclasses.replace(schema), hash(dataclasses.replace(schema))) == (schema, hash(schema))
    assert schema.grid_steps == 2**schema.grid_bits
    assert math.isclose(schema.scale * schema.clip_norm, schema.grid_steps)


@given(ps.testing.class_schemas(statistics="NABSDTF"))
def test_statistics_are_sent_once_in_wire_order(schema):
    assert schema.statistics == "".join(name for name in "NABSDTF" if name in schema.statistics)
    assert set(schema.statistics).isdisjoint(schema.derived)
    assert [*dict.fromkeys(segment.statistic for segment in ps.encoding.layout_of(schema).segments)] == list(
        schema.statistics
    )


def test_what_follows_from_s_is_not_sent():
    assert class_schema(statistics="SNABD").statistics == "NAS"
    assert (class_schema(statistics="NAS").derived, class_schema(statistics="NABD").derived) == ("BD", "")


@given(ps.testing.schemas())
def test_the_layout_has_room_for_every_statistic_and_knows_its_scale(schema):
    layout = ps.encoding.layout_of(schema)
    d, triangle = schema.features, schema.features * (schema.features + 1) // 2
    if isinstance(schema, ps.ClassSchema):
        C = schema.classes
        sizes = {"N": C, "A": C * d, "B": triangle, "S": C * triangle, **dict.fromkeys("DTF", C * d)}
    else:
        F = schema.folds
        sizes = {"G": F * triangle, "h": F * d * schema.targets, "q": F}
    assert layout.size == sum(sizes[name] for name in schema.statistics)
    assert [where.stop - where.start for where in layout.slices] == [segment.size for segment in layout.segments]
    for segment in layout.segments:
        assert segment.scale == schema.scale_of(segment.statistic)


def test_counts_carry_a_scale_of_their_own():
    assert class_schema().scale_of("N") == ps.schema.COUNT_SCALE
    assert class_schema(clip_norm=2.0).scale_of("A") == 2048.0
    assert ridge_schema().scale_of("h") == 4096.0 * 2048.0


def test_whole_numbers_of_numpy_become_plain_ones():
    schema = class_schema(classes=np.int64(3), features=np.uint8(4), clip_norm=np.float32(1.5), grid_bits=np.int16(8))
    assert [type(getattr(schema, name)) for name in ("classes", "features", "clip_norm", "grid_bits")] == [
        int,
        int,
        float,
        int,
    ]


def test_a_list_of_maps_becomes_a_tuple():
    assert hash(class_schema(transform=[UnitNorm()])) == hash(class_schema(transform=(UnitNorm(),)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": 1}, "classes must be at least 2, got 1: one class has nothing to separate"),
        ({"classes": 2.0}, "classes must be an integer"),
        ({"classes": np.array([2])}, "classes must be an integer"),
        ({"classes": None}, "classes must be an integer"),
        ({"classes": True}, "classes must be an integer"),
        ({"features": 1}, "features must be at least 2, got 1: one feature has no covariance"),
        ({"statistics": ""}, "letters out of NABSDTF"),
        ({"statistics": ["N", "A"]}, "letters out of NABSDTF"),
        ({"statistics": "NAX"}, "unknown letters 'X'"),
        ({"statistics": "B"}, "must contain N and A; add N and A"),
        ({"clip_norm": 0.0}, "clip_norm must be a number between"),
        ({"clip_norm": math.nan}, "clip_norm must be a number between"),
        ({"clip_norm": math.inf}, "clip_norm must be a number between"),
        ({"clip_norm": 10**400}, "clip_norm must be a number between"),
        ({"clip_norm": 1e-31}, "clip_norm must be a number between"),
        ({"clip_norm": "1"}, "clip_norm must be a number, got the text '1'; remove the quotes"),
        ({"classes": "ten"}, "classes must be an integer of at least 2, got 'ten'"),
        ({"classes": "x" * 1000}, "classes must be an integer of at least 2, got str$"),
        ({"statistics": "nab"}, "got 'nab'; write them in capitals: 'NAB'"),
        ({"statistics": "nabz"}, "unknown letters 'z'"),
        ({"grid_bits": 1}, "grid_bits must be at least 2"),
        ({"grid_bits": 21}, "grid_bits must be at most 20"),
        ({"grid_bits": 18, "statistics": "NAT"}, "at most 17 with statistic T, whose entries have 3 times .*, got 18"),
        ({"grid_bits": 14, "statistics": "NADTF"}, "at most 13 with statistic F, whose entries have 4 times"),
        ({"features": 64, "grid_bits": 2}, "too coarse for features=64.*use at least 3"),
        ({"nonnegative": 1}, "nonnegative must be True or False"),
        ({"transform": UnitNorm}, "transform must be a tuple"),
        ({"transform": ("unit-norm",)}, "transform must be a tuple"),
        ({"transform": (GaussianProjection(1, 10, 5),)}, "returns 5 features but features=4"),
        ({"transform": (GaussianProjection(1, 10, 4), ConstantFeature(1.0))}, "returns 5 features but features=4"),
        ({"transform": (GaussianProjection(1, 10, 5), GaussianProjection(1, 6, 4))}, "takes 6 features but 5"),
    ],
)
def test_class_schemas_that_cannot_be_measured_are_refused(changes, message):
    refused(ps.SchemaError, message, class_schema, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": 0}, "targets must be at least 1"),
        ({"folds": 0}, "folds must be at least 1"),
        ({"folds": 2.5}, "folds must be an integer"),
        ({"folds": 65}, "folds must be at most 64, got 65: the upload grows with each"),
        ({"target_bound": -1.0}, "target_bound must be a number between"),
        ({"targets": 64, "grid_bits": 2}, "too coarse for targets=64"),
        ({"features": 1}, "features must be at least 2"),
    ],
)
def test_ridge_schemas_that_cannot_be_measured_are_refused(changes, message):
    refused(ps.SchemaError, message, ridge_schema, **changes)


def test_the_remedy_for_a_coarse_grid_works():
    for features in (2, 16, 17, 64, 65, 1000):
        least = next(bits for bits in range(2, 21) if math.sqrt(features) / 2 < 2**bits)
        assert class_schema(features=features, grid_bits=least).grid_bits == least
        if least > 2:
            refused(ps.SchemaError, f"use at least {least}", class_schema, features=features, grid_bits=least - 1)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("class_names", ("a", "b"), "class_names holds 2 names but classes=3; name each once, in order"),
        ("class_names", ("a", "b", "a"), "class_names holds 'a' twice"),
        ("class_names", ("a", "b", 3), "class_names must be a tuple of texts"),
        ("class_names", "abc", "class_names must be a tuple of texts, for example .*, got 'abc'"),
        ("class_names", {"a", "b", "c"}, "class_names must be a tuple of texts, .* got set"),
        ("class_names", ("a", "b", ""), "1 to 200 printable characters"),
        ("class_names", ("a", "b", "c\n"), "1 to 200 printable characters"),
        ("class_names", ("a", "b", " c"), "no space at either end"),
        ("class_names", ("a", "b", "c" * 201), "1 to 200 printable characters"),
        ("feature_names", ("a", "b", "c"), "feature_names names 3 columns but features=4: name each input column"),
        ("feature_names", ("a", "b", "c", "c"), "feature_names holds 'c' twice"),
    ],
)
def test_names_that_tell_nothing_apart_are_refused(field, value, message):
    refused(ps.SchemaError, message, class_schema, **{field: value})
    if field == "feature_names":
        refused(ps.SchemaError, message, ridge_schema, feature_names=value)


def test_feature_names_are_of_the_columns_before_the_transform():
    behind = {"features": 5, "transform": (ConstantFeature(1.0),)}
    assert class_schema(**behind, feature_names=["a", "b", "c", "d"]).feature_names == ("a", "b", "c", "d")
    with pytest.raises(ps.SchemaError, match="names 5 columns, which the transform turns into 6, but features=5"):
        class_schema(**behind, feature_names=tuple("abcde"))
    with pytest.raises(ps.SchemaError, match="before the transform: .* takes 9 features but 4 come in"):
        class_schema(transform=(GaussianProjection(0, 9, 4),), feature_names=tuple("abcd"))


def test_names_make_another_schema():
    named = class_schema(class_names=["x", "y", "z"])
    assert named == class_schema(class_names=("x", "y", "z"))
    assert named != class_schema()
    assert hash(named) != hash(class_schema())


def test_tables_have_at_most_as_many_cells_as_a_vector_of_counts_may():
    def cells(count):
        return ps.CountSchema((ps.Bins("a", tuple(range(count + 1))),), (("a",),))

    assert cells(1 << 16).sizes["cell"] == 1 << 16
    refused(ps.SchemaError, "tables have 65537 cells in all and at most 65536 are allowed", cells, (1 << 16) + 1)
