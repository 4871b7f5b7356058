"""Public records beside a release: they help where noise hides the means, and never much where they say nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import privstats as ps
from privstats.cli.parts.head_files import HeadFile, against_releases, facts_of
from privstats.errors import DataError, HeadError
from privstats.estimates import denoise
from privstats.heads import LDA, QDA, NaiveBayes
from privstats.heads.evidence import ClassEvidence
from privstats.heads.registry import named
from privstats.randomness import seeded
from tests import made
from tests.heads.conftest import class_release, quick, record_noise
from tests.made import refused

C, D = 6, 30
RNG = np.random.default_rng


def evidence(public, sigma, rng):
    """Class sums of 100 records each under noise of this level, and the true means, of norm about 1."""
    means = rng.standard_normal((C, D)) / D**0.5
    A = 100 * means + sigma * rng.standard_normal((C, D))
    known = None if public is None else public(means, rng)
    return ClassEvidence(np.full(C, 100.0), A, None, None, None, np.zeros(D), {"A": sigma}, public=known), means


def near(means, rng):
    return denoise.public_means(means + 0.1 * rng.standard_normal((C, D)), np.arange(C), C)


def unrelated(means, rng):
    return denoise.public_means(rng.standard_normal((C, D)), np.arange(C), C)


@pytest.mark.parametrize("apart", [0.03, 1e-6, 0.0])
def test_public_means_that_nearly_coincide_do_not_replace_what_a_release_knows(apart):
    """What is expected of a mean is small then, and pulls by three errors at most."""
    known = [evidence(None, 0.5, RNG(seed)) for seed in range(20)]
    nowhere = np.full(D, 3.0)
    for found, _ in known:
        rows = nowhere + apart * RNG(0).standard_normal((C, D))
        pulled = denoise.class_means(replace(found, public=denoise.public_means(rows, np.arange(C), C)), found.N)
        plain = denoise.class_means(found, found.N)
        assert np.linalg.norm(pulled.grand - plain.grand) < 0.1 * np.linalg.norm(plain.grand - nowhere)


def error(public, sigma, seed):
    """Squared error of the differences between classes; the mean of all classes is not what public records tell."""
    known, means = evidence(public, sigma, RNG(seed))
    wrong = denoise.class_means(known, known.N).values - means
    return float(np.square(wrong - wrong.mean(axis=0)).sum())


@pytest.mark.parametrize(("sigma", "most"), [(1.0, 1.01), (30.0, 0.9), (100.0, 0.7), (300.0, 1.2)])
def test_public_means_that_are_near_are_used_as_far_as_noise_hides_the_own(sigma, most):
    near_by, alone = (np.mean([error(public, sigma, seed) for seed in range(30)]) for public in (near, None))
    assert near_by < most * alone


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 300.0))
def test_public_means_that_say_nothing_change_almost_nothing(seed, sigma):
    """b is one number out of C d; by chance it explains a few times one entry's share of signal and noise."""
    assert error(unrelated, sigma, seed) < error(None, sigma, seed) + 12 * ((sigma / 100) ** 2 + 1 / D)


@given(st.floats(-10.0, 10.0), st.floats(1.0, 300.0), st.integers(0, 1000))
def test_the_place_of_the_public_records_does_not_matter_to_what_tells_classes_apart(shift, sigma, seed):
    rows = RNG(seed).standard_normal((C, D))
    own, _ = evidence(lambda *_: rows, sigma, RNG(seed))
    moved, _ = evidence(lambda *_: rows + shift, sigma, RNG(seed))
    before, after = (denoise.class_means(each, each.N) for each in (own, moved))
    np.testing.assert_allclose(before.values - before.grand, after.values - after.grand, atol=1e-7)


@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_public_records_of_another_length_do_no_harm_once_the_release_shows_it(scale, sigma):
    def scaled(means, rng):
        return scale * near(means, rng)

    longer, alone = (np.mean([error(public, sigma, seed) for seed in range(30)]) for public in (scaled, None))
    assert longer < 1.01 * alone


@pytest.mark.parametrize("public", [near, unrelated])
def test_a_class_keeps_as_much_of_its_own_distance_as_without_public_records(public):
    known, _ = evidence(public, 100.0, RNG(0))
    alone, _ = evidence(None, 100.0, RNG(0))
    np.testing.assert_array_equal(*(denoise.class_means(each, each.N).retained for each in (known, alone)))


def test_where_noise_hides_everything_the_public_records_decide():
    """b is then 1/2, so a quarter of their differences goes where nothing of the own distance is kept."""
    known, _ = evidence(near, 1e6, RNG(0))
    found = denoise.class_means(known, known.N)
    own = known.A / 100 - known.A.mean(axis=0) / 100
    told = found.values - found.grand - found.retained[:, None] * own
    differences = known.public - known.public.mean(axis=0)
    np.testing.assert_allclose(told, 0.25 * (1 - found.retained)[:, None] * differences, rtol=0.01)


def test_a_class_without_public_records_is_pulled_to_the_grand_mean_alone():
    rows, labels = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 4.0]]), np.array([0, 0, 2])
    public = denoise.public_means(rows, labels, 4)
    np.testing.assert_array_equal(public, [[2.0, 0.0], [np.nan] * 2, [0.0, 4.0], [np.nan] * 2])
    own, _ = evidence(lambda means, _: np.where(np.arange(C)[:, None] < 3, means, np.nan), 100.0, RNG(0))
    found = denoise.class_means(own, own.N)
    raw = own.A / own.N[:, None] - own.A.sum(axis=0) / own.N.sum()
    np.testing.assert_allclose((found.values - found.grand)[3:], found.retained[3:, None] * raw[3:])


@pytest.mark.parametrize(("sigma", "most"), [(1.0, 1.01), (30.0, 0.8), (100.0, 0.5), (300.0, 0.5)])
def test_the_grand_mean_moves_to_the_public_one_as_far_as_noise_explains_their_distance(sigma, most):
    def wrong(public, seed):
        known, means = evidence(public, sigma, RNG(seed))
        return np.square(denoise.class_means(known, known.N).grand - means.mean(axis=0)).sum()

    near_by, alone = (np.mean([wrong(public, seed) for seed in range(30)]) for public in (near, None))
    assert near_by < most * alone
    far, without = (
        np.mean([wrong(public, seed) for seed in range(30)])
        for public in (lambda means, rng: near(means, rng) + 100.0, None)
    )
    assert far == pytest.approx(without, rel=0.05)


@pytest.mark.parametrize("head", [LDA, NaiveBayes])
def test_few_public_records_win_where_noise_is_strong_and_change_nothing_without_noise(digits, head):
    X, X_test, y, y_test = digits
    first = np.concatenate([np.flatnonzero(y == c)[:5] for c in range(10)])
    public, rest = (X[first], y[first]), np.setdiff1d(np.arange(len(X)), first)
    noisy = class_release(X[rest], y[rest], sigma=record_noise(0.1), rng=RNG(0))
    alone = head().fit_release(noisy).score(X_test, y_test)
    assert head().fit_release(noisy, public=public).score(X_test, y_test) > alone + 0.2
    exact = class_release(X[rest], y[rest])
    with_public, without = head().fit_release(exact, public=public), head().fit_release(exact)
    np.testing.assert_array_equal(with_public.decision_function(X_test), without.decision_function(X_test))


def test_a_subspace_and_class_covariances_see_them_too(digits):
    X, X_test, y, y_test = digits
    release = class_release(X, y, "NAS", dict(zip("NAS", record_noise(0.3).values(), strict=True)), RNG(0))
    for head in (QDA(), LDA(subspace="auto")):
        with_public = head.fit_release(release, public=(X[:100], y[:100])).score(X_test, y_test)
        assert with_public > head.fit_release(release).score(X_test, y_test) - 0.05


@pytest.fixture(scope="module")
def release():
    X, y = RNG(0).normal(size=(200, 3)), np.arange(200) % 2
    transform = (ps.transforms.UnitNorm(),)
    schema = ps.ClassSchema(2, 3, "NAB", clip_norm=1.0, transform=transform, class_names=("ash", "elm"))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
    return ps.simulate(plan, [(X[k::2], np.array(["ash", "elm"])[y[k::2]]) for k in range(2)])


PUBLIC = ([[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]], ["ash", "elm"])


def test_the_provenance_names_them_and_rows_go_through_the_public_map(release, tmp_path):
    head, plain = LDA().fit_release(release, public=PUBLIC), LDA().fit_release(release)
    assert plain.provenance_.public is None
    assert head.provenance_.covered
    assert head.provenance_ != plain.provenance_
    longer = LDA().fit_release(release, public=(7 * np.array(PUBLIC[0]), PUBLIC[1]))  # UnitNorm comes first
    assert longer.provenance_ == head.provenance_
    np.testing.assert_array_equal(longer.coef_, head.coef_)
    head.save(tmp_path / "a.head")
    again = HeadFile.of(tmp_path / "a.head")
    assert (again.provenance, facts_of(again)["public"]) == (head.provenance_, head.provenance_.public)
    assert "it does not hold the public records" in against_releases(again, [release])
    assert "public records went in, too" in head.card()
    assert "public records went in" not in plain.card()


@pytest.mark.parametrize(
    ("public", "words"),
    [
        ("records", "public must be a pair"),
        ((PUBLIC[0], ["ash", "oak"]), "holds the label 'oak'"),
        ((PUBLIC[0], ["ash"]), "a label for each row"),
        (([], []), "a label for each row|must be a finite matrix"),
        (([[np.nan, 1.0, 2.0]], ["ash"]), "finite"),
    ],
)
def test_what_is_no_public_record_is_refused(release, public, words):
    refused(DataError, words, LDA().fit_release, release, public=public)


def test_a_head_that_reads_no_class_means_refuses_them(release):
    with pytest.raises(HeadError, match="does not use public records; give them to LDA"):
        ps.heads.RidgeClassifier().fit_release(release, public=PUBLIC)


def test_a_refined_softmax_moves_to_a_discriminant_that_knows_them(digits):
    X, X_test, y, y_test = digits
    first = np.concatenate([np.flatnonzero(y == c)[:5] for c in range(10)])
    rest = np.setdiff1d(np.arange(len(X)), first)
    unit = (ps.transforms.UnitNorm(),)
    schema = ps.ClassSchema(10, 64, "NAB", clip_norm=1.0, transform=unit)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=0.3, delta=1e-5)
    whole = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2_000), privacy=privacy)
    releases = ps.simulate(ps.Rounds.within(whole), [(X[rest[k::2]], y[rest[k::2]]) for k in range(2)], rng=seeded(0))
    names = [f"digit {c}" for c in range(10)]
    public = (X[first], [names[c] for c in y[first]])
    plain = ps.heads.RefinedSoftmax().fit_releases(releases, names)
    informed = ps.heads.RefinedSoftmax().fit_releases(releases, names, public=public)
    truth = [names[c] for c in y_test]
    assert informed.score(X_test, truth) > plain.score(X_test, truth)
    assert (plain.provenance_.public, informed.provenance_.public is None) == (None, False)
    with pytest.raises(DataError):
        informed.fit_releases(releases, names, public=(public[0], np.full(len(public[1]), "no such class")))
    assert informed.provenance_.public is not None  # a refused call leaves the head as it was
    alone = ps.heads.RefinedSoftmax().fit_release(releases[0], names, public=public)
    assert alone.score(X_test, truth) > ps.heads.RefinedSoftmax().fit_release(releases[0], names).score(X_test, truth)


def test_rounds_of_a_module_refuse_them(release):
    whole = ps.Plan(schema=release.plan.schema, cohort=release.plan.cohort, privacy=release.plan.privacy)
    course = ps.Rounds.within(whole, 1, module="mlp/2")
    rows, labels = np.ones((40, 3)), np.array(["ash", "elm"] * 20)
    releases = ps.simulate(course, [(rows, labels)] * 2)
    with pytest.raises(HeadError, match="rounds of a module read no class means"):
        ps.heads.RefinedSoftmax().fit_releases(releases, public=PUBLIC)


@pytest.mark.parametrize("name", sorted(set(named("classes")) - {"RidgeClassifier"}))
def test_every_other_head_of_classes_uses_them(name):
    rng = RNG(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    X[:, 0] += y
    noisy = class_release(X, y, "NAS", {"N": 1.0, "A": 30.0, "S": 30.0}, rng)
    public = ([[0.0, 4.0, 0.0], [4.0, 0.0, 0.0]], [0, 1])
    with_public, alone = quick(name).fit_release(noisy, public=public), quick(name).fit_release(noisy)
    assert not np.allclose(with_public.predict_proba(X), alone.predict_proba(X))


ALONE: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-5, "adjacency": "add-remove", "classes": [0, 1, 2]}


@pytest.fixture(scope="module")
def ward():
    """Records of three classes, and two that are public of each."""
    rng, y = RNG(3), np.arange(300) % 3
    X = 2 * np.eye(3, 4)[y] + rng.normal(size=(300, 4))
    return X[6:], y[6:], (X[:6], y[:6])


def ward_table(X):
    return dict(zip([f"c{place}" for place in range(4)], X.T, strict=True))


OTHERS = sorted(set(named("classes")) - {"RidgeClassifier", "LDA", "RefinedSoftmax"})


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "one release") for name in OTHERS),
        *(("LDA", way) for way in ("one release", "centred", "a table", "a table of open columns")),
        *(("RefinedSoftmax", way) for way in ("one release", "a table", "a table of open columns")),
    ],
)
def test_a_private_fit_knows_them_as_a_fit_on_its_release_does(name, way, ward):
    """The same head, to the last bit, and the same words of where it comes from but what it read off the records."""
    X, y, public = ward
    terms: dict[str, Any] = {"clip_norm": 1.0 if way == "centred" else 4.0}
    refined = name == "RefinedSoftmax"
    if way.startswith("a table"):
        edges = () if way.endswith("columns") else ((-1.0, 0.0, 1.0),)
        columns = tuple(ps.Numeric(f"c{place}", *edges) for place in range(4))
        terms = {"columns": columns, "expected_records": 300}
        X, public = ward_table(X), (ward_table(public[0]), public[1])
    elif refined:
        terms = {"clip_norm": 1.0, "expected_records": 300}
    elif way == "centred":
        terms |= {"centred": True, "expected_records": 300}
    head = quick(name).set_params(**{"rounds": 2} if refined else {})
    fitted = head.fit_private(X, y, public=public, ledger="uncharged", **ALONE, **terms)
    again = clone(head)
    releases = getattr(fitted, "releases_", None)
    if refined:
        again.fit_releases(releases, ALONE["classes"], public=public)
    else:
        again.fit_release(fitted.release_ if releases is None else releases, ALONE["classes"], public=public)
    for key, array in fitted.rule_.arrays().items():
        np.testing.assert_array_equal(array, again.rule_.arrays()[key])
    assert fitted.provenance_.public == again.provenance_.public is not None
    without = clone(head)
    (without.fit_releases if refined else without.fit_release)(
        releases if releases is not None else fitted.release_, ALONE["classes"]
    )
    assert any(not np.array_equal(array, without.rule_.arrays()[key]) for key, array in fitted.rule_.arrays().items())


@pytest.mark.parametrize(
    ("public", "words"),
    [
        ("records", "public must be a pair"),
        (([[1.0, 0, 0, 0]], [7]), "which is no class"),
        (([[1.0, 0, 0, 0]], [0, 1]), "a label for each row"),
        (([[1.0, 0, 0]], [0]), "has 3 columns but the head takes 4"),
        (([[1.0, 0, 0, "x"]], [0]), "numbers"),
        (([[np.nan, 0, 0, 0]], [0]), "finite"),
    ],
)
def test_bad_public_records_cost_nothing(public, words, ward, tmp_path):
    """They are refused before noise is drawn, and so before the ledger is charged."""
    ledger = made.ledger(tmp_path / "spent.db", epsilon=9.0, delta=1e-3)
    X, y, _ = ward
    for head in (LDA(), ps.heads.RefinedSoftmax(rounds=1)):
        terms = {"clip_norm": 1.0} | ({} if isinstance(head, LDA) else {"expected_records": 300})
        refused(DataError, words, head.fit_private, X, y, public=public, ledger=ledger, **ALONE, **terms)
    with pytest.raises(HeadError, match="does not use public records"):
        ps.heads.RidgeClassifier().fit_private(X, y, public=public, clip_norm=1.0, ledger=ledger, **ALONE)
    with pytest.raises(HeadError, match="rounds of a module"):
        ps.heads.RefinedSoftmax(module="mlp/2").fit_private(
            X, y, public=public, expected_records=300, ledger=ledger, **ALONE
        )
    assert ledger.account("ward").entries == ()
