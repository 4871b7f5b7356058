"""The closed forms are never beaten by a search, and are reached: they are exact, not bounds."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats import Categories, Cells, ClassSchema, MeanSchema, Numeric, RidgeSchema, Truth, measure
from privstats.dp.sensitivities import client_mu, grid_sensitivity, joint_mu, sensitivity
from privstats.errors import ClippedWarning, PlanError, UnreadableRecordsWarning
from privstats.kinds import CalibrationSchema, GradientSchema
from privstats.kinds.classes import _opposed
from privstats.randomness import seeded
from tests.schema.samples import SCHEMAS
from threat_models.audits.sensitivity import worst_pair

ADJACENCIES = ["add-remove", "replace-one"]
SIGMA = st.floats(-1.2, 1.2).map(lambda power: 10**power)
SINGLES = {
    "N": (lambda R, Y: 1, lambda R, Y: math.sqrt(2)),
    "A": (lambda R, Y: R, lambda R, Y: 2 * R),
    "B": (lambda R, Y: R**2, lambda R, Y: math.sqrt(2) * R**2),
    "S": (lambda R, Y: R**2, lambda R, Y: math.sqrt(2) * R**2),
    "D": (lambda R, Y: R**2, lambda R, Y: math.sqrt(2) * R**2),
    "G": (lambda R, Y: R**2, lambda R, Y: math.sqrt(2) * R**2),
    "h": (lambda R, Y: R * Y, lambda R, Y: 2 * R * Y),
    "q": (lambda R, Y: Y**2, lambda R, Y: Y**2),
}


@st.composite
def class_releases(draw):
    letters = draw(st.sampled_from(["NA", "NAB", "NAS", "NAD", "NABD"]))
    schema = ClassSchema(
        draw(st.integers(2, 4)),
        draw(st.integers(2, 5)),
        letters,
        draw(st.floats(0.3, 3)),
        8,
        nonnegative=draw(st.booleans()),
    )
    measured = schema.statistics + schema.derived
    named = draw(st.sets(st.sampled_from(measured), min_size=1))
    return schema, {letter: draw(SIGMA) for letter in measured if letter in named}


@st.composite
def ridge_releases(draw):
    schema = RidgeSchema(
        draw(st.integers(2, 4)),
        draw(st.integers(1, 3)),
        clip_norm=draw(st.floats(0.3, 3)),
        target_bound=draw(st.floats(0.3, 3)),
        grid_bits=8,
        folds=draw(st.sampled_from([1, 5])),
        nonnegative=draw(st.booleans()),
    )
    named = draw(st.sets(st.sampled_from("Ghq"), min_size=1))
    return schema, {letter: draw(SIGMA) for letter in "Ghq" if letter in named}


@st.composite
def mean_releases(draw):
    schema = MeanSchema(draw(st.integers(2, 5)), draw(st.floats(0.3, 3)), 8, nonnegative=draw(st.booleans()))
    return schema, {"x": draw(SIGMA)}


def schema_of(statistic, **kwargs):
    if statistic in "Ghq":
        return RidgeSchema(3, 2, clip_norm=1.7, target_bound=0.6, **kwargs)
    return ClassSchema(3, 3, {"N": "NA", "A": "NA"}.get(statistic, "NA" + statistic), 1.7, **kwargs)


@pytest.mark.ci
@settings(deadline=None)
@given(release=st.one_of(class_releases(), ridge_releases(), mean_releases()), adjacency=st.sampled_from(ADJACENCIES))
def test_no_pair_of_records_moves_a_release_further_than_the_formula_says_and_some_pair_reaches_it(release, adjacency):
    schema, sigmas = release
    claimed = joint_mu(schema, sigmas, adjacency)
    found = worst_pair(schema, sigmas, adjacency, seeded(1), starts=10).mu
    if found < claimed * (1 - 1e-4):  # the climbs may all have ended on a lower hill
        found = worst_pair(schema, sigmas, adjacency, seeded(2), starts=100).mu
    assert found <= claimed * (1 + 1e-9)
    assert found >= claimed * (1 - 1e-4)


@settings(deadline=None)
@given(
    release=st.one_of(class_releases(), ridge_releases()), adjacency=st.sampled_from(ADJACENCIES), seed=st.integers()
)
def test_random_records_never_move_a_release_further_than_the_formula_says(release, adjacency, seed):
    """The weighted distance by plain numpy, with none of the search's machinery."""
    schema, sigmas = release
    rng = np.random.default_rng(abs(seed))
    claimed = joint_mu(schema, sigmas, adjacency)
    for _ in range(50):
        gap = random_moments(schema, rng)
        if adjacency == "replace-one":
            other = random_moments(schema, rng)
            gap = {name: gap[name] - other[name] for name in gap}
        distance = math.sqrt(sum(float((gap[s] ** 2).sum()) / sigmas[s] ** 2 for s in sigmas))
        assert distance <= claimed * (1 + 1e-12)


def random_moments(schema, rng):
    x = rng.standard_normal(schema.features) * rng.choice([0.1, 1], schema.features)
    x = np.abs(x) if schema.nonnegative else x
    x *= schema.clip_norm * rng.choice([1.0, rng.random()]) / np.linalg.norm(x)
    if isinstance(schema, RidgeSchema):
        b = rng.standard_normal(schema.targets)
        b *= schema.target_bound * rng.choice([1.0, rng.random()]) / np.linalg.norm(b)
        cell = np.eye(schema.folds)[rng.integers(schema.folds)]
        return {
            "G": np.multiply.outer(cell, np.outer(x, x)),
            "h": np.multiply.outer(cell, np.outer(x, b)),
            "q": cell * (b @ b),
        }
    cell = np.eye(schema.classes)[rng.integers(schema.classes)]
    return {
        "N": cell, "A": np.outer(cell, x), "B": np.outer(x, x),
        "S": np.multiply.outer(cell, np.outer(x, x)), "D": np.outer(cell, x * x),
    }  # fmt: skip


@pytest.mark.parametrize("statistic", SINGLES)
def test_the_single_sensitivities_are_the_tables(statistic):
    schema = schema_of(statistic)
    add, replace = SINGLES[statistic]
    assert sensitivity(schema, statistic, "add-remove") == pytest.approx(add(1.7, 0.6))
    assert sensitivity(schema, statistic, "replace-one") == pytest.approx(replace(1.7, 0.6))


def test_non_negative_features_move_a_sum_by_less_when_replaced():
    assert sensitivity(schema_of("A", nonnegative=True), "A", "replace-one") == pytest.approx(math.sqrt(2) * 1.7)


def test_records_on_the_sphere_are_already_the_worst():
    """Unit-norm features change nothing: the worst pairs have norm R."""
    schema = ClassSchema(2, 3, "NAB", 1.0)
    for adjacency in ADJACENCIES:
        pair = worst_pair(schema, {"N": 1.0, "A": 0.5, "B": 2.0}, adjacency, seeded(3))
        np.testing.assert_allclose(np.linalg.norm(pair.features, axis=1), 1.0, rtol=1e-4)


def test_a_record_that_changes_fold_moves_q_in_two_places():
    one = RidgeSchema(3, clip_norm=1.0, target_bound=1.0)
    five = RidgeSchema(3, clip_norm=1.0, target_bound=1.0, folds=5)
    assert sensitivity(one, "q", "replace-one") == 1.0
    assert sensitivity(five, "q", "replace-one") == pytest.approx(math.sqrt(2))


@given(release=ridge_releases())
def test_folds_never_cost_anything_when_a_record_is_added_or_removed(release):
    schema, sigmas = release
    whole = RidgeSchema(schema.features, schema.targets, clip_norm=schema.clip_norm, target_bound=schema.target_bound)
    assert joint_mu(schema, sigmas, "add-remove") == joint_mu(whole, sigmas, "add-remove")


@given(release=ridge_releases())
def test_folds_cost_nothing_when_a_record_is_replaced_and_q_is_not_released(release):
    schema, sigmas = release
    sigmas = {letter: sigmas.get(letter, 1.0) for letter in "Gh"}
    whole = RidgeSchema(schema.features, schema.targets, clip_norm=schema.clip_norm, target_bound=schema.target_bound)
    assert joint_mu(schema, sigmas, "replace-one") == pytest.approx(joint_mu(whole, sigmas, "replace-one"), rel=1e-12)


def test_an_intermediate_target_can_be_the_worst_replacement():
    """With q cheap to see and no G, replacing (a, b) by (a, -t b) with 0 < t < 1 beats t = 0 and t = 1."""
    schema = RidgeSchema(2, clip_norm=1.0, target_bound=1.0)
    sigmas = {"h": 1.0, "q": 0.4}
    t = (1 - math.sqrt(1 - 2 * 0.16)) / 2
    expected = (1 + t) ** 2 + 6.25 * (1 - t * t) ** 2
    assert joint_mu(schema, sigmas, "replace-one") == pytest.approx(math.sqrt(expected))
    assert expected > max(1 + 6.25, 4)


@given(release=st.one_of(class_releases(), ridge_releases()), adjacency=st.sampled_from(ADJACENCIES))
def test_mu_of_all_statistics_together_scales_with_the_noise_and_lies_between_its_parts(release, adjacency):
    schema, sigmas = release
    joint = joint_mu(schema, sigmas, adjacency)
    alone = [joint_mu(schema, {s: sigma}, adjacency) for s, sigma in sigmas.items()]
    assert max(alone) <= joint * (1 + 1e-12)
    assert joint <= math.hypot(*alone) * (1 + 1e-12)
    assert joint_mu(schema, {s: 2 * sigma for s, sigma in sigmas.items()}, adjacency) == pytest.approx(joint / 2)


def test_grid_units_are_integers_of_the_grid():
    schema = ClassSchema(3, 4, "NAB", 2.5, 10)
    assert grid_sensitivity(schema, "N", "add-remove") == 4096
    assert grid_sensitivity(schema, "A", "add-remove") == pytest.approx(2**10)
    assert grid_sensitivity(schema, "B", "add-remove") == pytest.approx(2**20)
    ridge = RidgeSchema(3, clip_norm=2.0, target_bound=7.0, grid_bits=10)
    assert grid_sensitivity(ridge, "h", "add-remove") == pytest.approx(2**20)


def test_a_client_is_worth_its_records_in_the_worst_case():
    schema, sigmas = ClassSchema(2, 3, "NAB", 1.0), {"N": 3.0, "A": 1.0, "B": 2.0}
    add, replace = (joint_mu(schema, sigmas, adjacency) for adjacency in ADJACENCIES)
    assert client_mu(schema, sigmas, "add-remove", 7) == pytest.approx(7 * add)
    assert client_mu(schema, sigmas, "replace-one", 7) == pytest.approx(7 * replace)


def test_replacing_a_client_is_at_least_removing_it():
    schema, sigmas = RidgeSchema(2, clip_norm=1.0, target_bound=1.0), {"q": 1.0}
    assert client_mu(schema, sigmas, "replace-one", 3) == 3.0


GRADIENTS = [
    GradientSchema(4, 3, residual_norm=0.3, expected_records=9, course_mu=1.0),
    GradientSchema(4, 3, residual_norm=0.3, expected_records=9, course_mu=1.0, module="mlp/5"),
    GradientSchema(4, residual_norm=1.0, expected_records=9, course_mu=1.0, target_bound=2.0),
]


@pytest.mark.parametrize("schema", GRADIENTS)
def test_a_round_moves_by_its_residual_and_by_one(schema):
    c = schema.residual_norm
    assert [sensitivity(schema, s, "add-remove") for s in "gk"] == pytest.approx([c, 1])
    assert [sensitivity(schema, s, "replace-one") for s in "gk"] == pytest.approx([2 * c, 1])
    noise = {"g": 3.0, "k": 7.0}
    assert joint_mu(schema, noise, "add-remove") == pytest.approx(math.hypot(c / 3, 1 / 7))
    assert joint_mu(schema, noise, "replace-one") == pytest.approx(math.hypot(2 * c / 3, 1 / 7))
    assert client_mu(schema, noise, "add-remove", 5) == pytest.approx(5 * math.hypot(c / 3, 1 / 7))
    assert grid_sensitivity(schema, "g", "add-remove") == pytest.approx(schema.grid_steps**2)
    with pytest.raises(PlanError, match="name only those"):
        joint_mu(schema, {"N": 1.0}, "add-remove")


def calibration(classes, bits=12):
    return CalibrationSchema(4, classes, grid_bits=bits, expected_records=9, course_mu=1.0)


@pytest.mark.parametrize(
    ("classes", "bits", "add", "replaced"),
    [(2, 12, 1, 2.5), (4, 12, 1.125, 4 - 3 / 8), (10, 20, 1.62, 4.42), (5, 2, 2, 5), (8192, 12, 2, 5)],
)
def test_a_calibration_moves_the_further_the_more_classes_there_are(classes, bits, add, replaced):
    """The fewer classes, the surer every model; a grid without a step of 1 / C gives the least that holds."""
    schema = calibration(classes, bits)
    assert sensitivity(schema, "t", "add-remove") ** 2 == pytest.approx(add, rel=1e-5)
    assert sensitivity(schema, "t", "replace-one") ** 2 == pytest.approx(replaced, rel=1e-5)
    assert client_mu(schema, {"t": 2.0}, "add-remove", 5) == pytest.approx(5 * math.sqrt(add) / 2, rel=1e-5)
    assert grid_sensitivity(schema, "t", "add-remove") == pytest.approx(math.sqrt(add) * schema.grid_steps, rel=1e-5)


@pytest.mark.parametrize("classes", [2, 3, 4, 10, 100])
def test_no_shape_of_a_calibration_is_further_away(classes):
    """Hits, a first confidence and gains by chance and at their ends, as the proof has them: both bounds are met."""
    rng, schema = np.random.default_rng(0), calibration(classes)
    least = (schema.grid_steps // classes) / schema.grid_steps
    first = np.concatenate([least + (1 - least) * rng.random(2000), [least, least, 1.0, 1.0]])
    right = np.concatenate([rng.integers(0, 2, 2000), [1, 0, 1, 0]])
    ways = np.concatenate([rng.dirichlet(np.full(11, 0.1), 2000)[:, :10], np.eye(4, 10)])
    t = np.column_stack([right - first, (1 - first)[:, None] * ways])
    assert np.square(t).sum(axis=1).max() == pytest.approx(sensitivity(schema, "t", "add-remove") ** 2)
    apart = np.square(t[:, None] - t[None, -400:]).sum(axis=2)
    assert apart.max() == pytest.approx(sensitivity(schema, "t", "replace-one") ** 2)


@given(linear=SIGMA, quadratic=SIGMA)
def test_the_page_and_the_code_have_the_same_worst_cosine_within_a_class(linear, quadratic):
    """F(c) of docs/proofs/records.md, at every c = <x, x'> / R^2, by plain numpy."""
    c = np.linspace(-1, 1, 20_001)
    by_c = 2 * linear * (1 - c) + 2 * quadratic * (1 - c**2)
    assert by_c.max() <= _opposed(linear, quadratic) * (1 + 1e-12)
    assert by_c.max() >= _opposed(linear, quadratic) * (1 - 1e-6)
    assert by_c.argmax() <= 10_000  # the worst rows are opposed, never alike


@given(schema=st.sampled_from([each for each in SCHEMAS if not each.refusal("record")]), data=st.data())
def test_an_exchange_with_an_excluded_record_costs_no_more_than_replace_one(schema, data):
    """Such a record contributes 0, so the distance is one record's length: mu under add-remove."""
    letters = [row.letter for row in schema.sent]
    named = data.draw(st.sets(st.sampled_from(letters), min_size=1))
    sigmas = {letter: data.draw(SIGMA) for letter in letters if letter in named}
    assert joint_mu(schema, sigmas, "replace-one") >= joint_mu(schema, sigmas, "add-remove") * (1 - 1e-12)


@settings(deadline=None)
@given(release=st.one_of(class_releases(), ridge_releases(), mean_releases()), seed=st.integers(0, 2**32))
def test_no_record_that_becomes_unreadable_moves_a_release_further_than_replace_one(release, seed):
    """Measured integers of two tables, which differ in one record: readable in one, unreadable in the other."""
    schema, sigmas = release
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3, schema.features)) * rng.choice([0.1, 1, 100])
    y = rng.standard_normal((3, schema.targets)) if isinstance(schema, RidgeSchema) else rng.integers(0, 2, 3)
    gone = X.copy()
    gone[0, 0] = rng.choice([math.nan, math.inf])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableRecordsWarning)
        warnings.simplefilter("ignore", ClippedWarning)
        before, after = (measure(schema, rows, y, unreadable="leave out").real() for rows in (X, gone))
    moved = {s: np.asarray(getattr(before, s)) - np.asarray(getattr(after, s)) for s in sigmas}
    distance = math.sqrt(sum(float((moved[s] ** 2).sum()) / sigmas[s] ** 2 for s in sigmas))
    assert distance <= joint_mu(schema, sigmas, "replace-one") * (1 + 1e-12)


COLUMNS = st.one_of(
    st.integers(1, 6).map(lambda cuts: ("numeric", cuts)),
    st.just(("truth", 1)),
    st.integers(2, 5).map(lambda values: ("ordered", values)),
    st.integers(3, 5).map(lambda values: ("category", values)),
)


@st.composite
def declared(draw):
    kinds = draw(st.lists(COLUMNS, min_size=1, max_size=6))
    columns = [
        Numeric(f"c{place}", tuple(float(cut) ** 2 for cut in range(size)))
        if kind == "numeric"
        else Truth(f"c{place}")
        if kind == "truth"
        else Categories(f"c{place}", tuple(range(size)), ordered=kind == "ordered")
        for place, (kind, size) in enumerate(kinds)
    ]
    return Cells(tuple(columns), ramp=draw(st.booleans()), bits=draw(st.sampled_from([12, 14]))), kinds


@given(drawn=declared())
def test_cells_have_the_squares_and_the_cosines_of_the_page(drawn):
    cells, kinds = drawn
    full, signs = 1 << 2 * cells.bits, 0
    lowest = 0
    for table, (kind, _) in zip(cells.tables, kinds, strict=True):
        inner = table.astype(object) @ table.T.astype(object)
        assert len(cells.columns) * max(np.diagonal(inner)) <= full
        has_signs = kind != "category" and len(table) > 2
        signs += has_signs
        if has_signs:
            assert (table[0] == -table[-2]).all()  # the lowest and the highest value
            assert not inner[-1, :-1].any()  # a gap is orthogonal to every value
        else:
            assert not (inner - np.diag(np.diagonal(inner))).any()
        lowest += min(inner.min(), 0)
    assert lowest * len(cells.columns) >= -signs * full


@settings(deadline=None)
@given(drawn=declared(), sigmas=st.tuples(SIGMA, SIGMA, SIGMA), seed=st.integers(0, 2**32))
def test_no_two_records_of_cells_are_further_apart_than_the_formulas(drawn, sigmas, seed):
    """Gaps, outermost values and random ones, in one class and in two; from a full row, add-remove is reached."""
    cells, _ = drawn
    schema = ClassSchema(2, cells.width, "NAB", 1.0, cells.bits, transform=(cells,))
    noise, rng = dict(zip("NAB", sigmas, strict=True)), np.random.default_rng(seed)
    values = [None, -1, 1e9, *range(5)]
    tables = [{c.name: [values[rng.integers(len(values))]] for c in cells.columns} for _ in range(4)]
    tables += [{c.name: [value] for c in cells.columns} for value in (None, -1, 1e9)]
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        real = [measure(schema, table, [label], unreadable="leave out").real() for table in tables for label in (0, 1)]
    vectors = [np.concatenate([np.ravel(getattr(each, s)) / noise[s] for s in "NAB"]) for each in real]
    added = max(float(np.linalg.norm(each)) for each in vectors)
    apart = max(float(np.linalg.norm(one - other)) for one in vectors for other in vectors)
    assert added <= joint_mu(schema, noise, "add-remove") * (1 + 1e-12)
    assert added >= joint_mu(schema, noise, "add-remove") * (31 / 32) ** 2
    assert apart <= joint_mu(schema, noise, "replace-one") * (1 + 1e-12)
