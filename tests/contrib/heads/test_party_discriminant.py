"""The head of whole parties: the released sum is its rule, and its centre is the serving site's own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import privstats as ps
from privstats.contrib.heads.party_discriminant import site_weights
from privstats.errors import DataError, HeadError, ReleaseError
from privstats.transforms import CentreRows, UnitNorm
from privstats.workflows.simulate import dirichlet_partition
from tests import made
from tests.made import refused

NAMES = tuple("abcdefghij")
X, Y = load_digits(return_X_y=True)
SITE, TRAIN = X[:600], slice(600, None)
SCHEMA = ps.PartySchema(10, 64, transform=(UnitNorm(),), class_names=NAMES)
PARTY = {"unit": "client", "max_records_per_client": 1}


def released(schema: Any = SCHEMA, parties: int = 8, **promise: Any) -> ps.Release:
    rows, labels = X[TRAIN], np.array(NAMES)[Y[TRAIN]]
    owners = dirichlet_partition(Y[TRAIN], parties, 0.5, ps.randomness.seeded(0))
    privacy = made.promise(**PARTY, **promise) if promise else None
    plan = made.plan(schema, ps.Cohort(parties, parties, parties), privacy)
    parts = [ps.measure(schema, rows[mine], labels[mine]) for mine in owners]
    return ps.session.aggregate_unmasked(plan, parts, ps.randomness.seeded(1))


@pytest.fixture(scope="module")
def release() -> ps.Release:
    return released()


def test_its_rule_is_the_sum_and_no_intercept_but_the_sites_own(release: ps.Release) -> None:
    plain, site = (ps.heads.PartyDiscriminant().fit_release(release, X_site=rows) for rows in (None, SITE))
    U = UnitNorm().apply(SITE.astype(float))
    np.testing.assert_array_equal(plain.coef_, release.moments.P)
    assert not plain.center_.any()
    assert not plain.intercept_.any()
    away = U - U.mean(axis=0)
    np.testing.assert_allclose(site.coef_, site_weights(release.moments.P, 0.0, away), atol=1e-12)
    np.testing.assert_allclose(site.center_, U.mean(axis=0))
    np.testing.assert_allclose(site.decision_function(SITE), away @ site.coef_.T, atol=1e-12)
    assert site.classes_.tolist() == list(NAMES)


def test_the_sites_own_rows_are_worth_many_points(release: ps.Release) -> None:
    plain, centred = (ps.heads.PartyDiscriminant().fit_release(release, X_site=site) for site in (None, SITE))
    truth = np.array(NAMES)[Y[:600]]
    assert centred.score(SITE, truth) > plain.score(SITE, truth) + 0.03
    assert centred.score(SITE, truth) > 0.8


def test_under_a_promise_the_sites_rows_say_what_is_noise() -> None:
    released_ = released(parties=80, epsilon=3.0)
    head = ps.heads.PartyDiscriminant().fit_release(released_, X_site=SITE)
    U = UnitNorm().apply(SITE.astype(float))
    truth = np.array(NAMES)[Y[:600]]
    centred = np.array(NAMES)[((U - U.mean(axis=0)) @ released_.moments.P.T).argmax(axis=1)]
    assert head.score(SITE, truth) > 0.5
    assert head.score(SITE, truth) > (centred == truth).mean()


def test_with_rows_of_the_site_no_promise_covers_the_head(tmp_path: Any) -> None:
    """Its centre is their exact mean, and a head that says it is covered may be shown."""
    release = replace(released(epsilon=8.0), reproducible=False)  # no promise covers noise from a seed
    plain, centred = (ps.heads.PartyDiscriminant().fit_release(release, X_site=site) for site in (None, SITE))
    assert plain.provenance_.covered
    assert (plain.provenance_.unit, plain.provenance_.epsilon) == ("client", pytest.approx(8.0))
    assert not centred.provenance_.covered
    assert str(centred.provenance_) == "exact: no promise"
    assert centred.provenance_.releases == (release.digest,)
    assert "it must stay where the records are" in centred.card()
    centred.save(tmp_path / "head")
    loaded = ps.heads.load(tmp_path / "head")
    assert loaded.provenance_ == centred.provenance_
    np.testing.assert_array_equal(loaded.predict(SITE), centred.predict(SITE))


def test_one_partys_records_in_one_place_are_the_definition() -> None:
    U = UnitNorm().apply(X.astype(float))
    head = ps.heads.PartyDiscriminant().fit(U, Y)
    schema = ps.PartySchema(10, 64, grid_bits=20)
    np.testing.assert_allclose(head.coef_, ps.measure(schema, U, Y).real().P, atol=1e-4)
    np.testing.assert_allclose(head.center_, U.mean(axis=0))
    assert head.score(U, Y) > 0.85


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"X_site": SITE[:0]}, DataError, "X_site must be a matrix of at least one row"),
        ({"X_site": SITE[0]}, DataError, "X_site must be a matrix of at least one row"),
        ({"X_site": np.full((2, 64), np.nan)}, DataError, "X must be a finite matrix"),
        ({"public": (SITE, Y[:600])}, HeadError, "does not use public records"),
        ({"labels": ["a"]}, DataError, "labels must name each of the 10 classes"),
    ],
)
def test_what_it_cannot_use_is_refused(release: ps.Release, given: Any, error: Any, words: str) -> None:
    refused(error, words, ps.heads.PartyDiscriminant().fit_release, release, **given)


def test_a_fit_that_fails_leaves_the_earlier_head_as_it_was(release: ps.Release) -> None:
    head = ps.heads.PartyDiscriminant().fit_release(release)
    before = head.predict(SITE)
    refused(DataError, "X_site", head.fit_release, release, labels=NAMES[::-1], X_site=np.empty((0, 64)))
    assert (head.predict(SITE) == before).all()


def test_a_site_without_a_transform_is_asked_for_finite_rows_too() -> None:
    release = released(ps.PartySchema(10, 64, 16.0, class_names=NAMES))
    with pytest.raises(DataError, match="X_site must hold finite numbers"):
        ps.heads.PartyDiscriminant().fit_release(release, X_site=np.full((2, 64), np.nan))


def test_other_heads_name_it_and_it_names_its_schema(release: ps.Release) -> None:
    refused(ReleaseError, r"directions of parties; use heads\.PartyDiscriminant", ps.heads.LDA().fit_release, release)
    plan = made.plan(ps.ClassSchema(10, 64, "NAB", 80.0), ps.Cohort(2, 2, 2_000))
    sums = ps.simulate(plan, [(X[k::2], Y[k::2]) for k in range(2)])
    with pytest.raises(ReleaseError, match="release of a ClassSchema; PartyDiscriminant reads a PartySchema"):
        ps.heads.PartyDiscriminant().fit_release(sums)


def test_a_sweep_scores_it_with_the_centre_of_the_test_rows() -> None:
    """And leaves every party all of its records: one record of the schema is a party."""
    from privstats.contrib.sweep import sweep

    schema = ps.PartySchema(10, 64, transform=(CentreRows(), UnitNorm()))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(8, 8, 8), privacy=made.promise(epsilon=8.0, **PARTY))
    found = sweep(plan, (X[TRAIN], Y[TRAIN]), (SITE, Y[:600]), {"PartyDiscriminant": ps.heads.PartyDiscriminant}, [8.0])
    assert next(point for point in found.points if point.epsilon == float("inf")).mean > 0.8
