"""`Private` is the head's `fit_private` as scikit-learn sees estimators: cloned, searched, charged each time."""

import math
import warnings
from hashlib import sha256
from inspect import signature

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted

import privstats as ps
from privstats import heads
from privstats.errors import AssumedPublicWarning, DataError, HeadError, LedgerError, PlanError
from privstats.heads.registry import HEADS, named
from privstats.transforms import ConstantFeature
from tests import made
from tests.heads.conftest import quick
from tests.made import refused

TERMS = {"epsilon": 50.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 4.0, "ledger": "uncharged"}
CLASSES = [0, 1, 2]


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    return 3 * np.eye(3, 5)[y] + 0.3 * rng.normal(size=(600, 5)), y


@pytest.fixture
def ledger(tmp_path):
    return made.ledger(tmp_path / "spent.db", epsilon=100.0)


def private(head=None, **changes):
    return heads.Private(head or heads.LDA(), **{**TERMS, "classes": CLASSES} | changes)


def suited(name):
    """A head of the registry under terms that it takes."""
    terms = {"clip_norm": 1.0 if name == "RefinedSoftmax" else 4.0}
    if HEADS[name].task == "ridge":
        terms |= {"classes": None, "target_bound": 3.0}
    if HEADS[name].after_rounds:
        terms["expected_records"] = 600
    return private(quick(name).set_params(**{"rounds": 2} if HEADS[name].after_rounds else {}), **terms)


@pytest.mark.parametrize(
    "name", [name for name, entry in HEADS.items() if entry.closed_form and entry.task != "parties"]
)
def test_every_head_is_fitted_by_its_own_fit_private(name, records):
    X, y = records
    head = suited(name).fit(X, y)
    released = getattr(head.head_, "release_", None) or head.head_.releases_[0]
    assert released.plan.privacy.adjacency == "add-remove"
    assert released.plan.schema.clip_norm == pytest.approx(head.clip_norm, rel=0.2)  # a constant lengthens rows
    assert is_classifier(head) is (HEADS[name].task == "classes") is not is_regressor(head)
    assert head.score(X, y) > 0.8


OTHERWISE = dict.fromkeys(
    ("check_dtype_object", "check_supervised_y_2d", "check_requires_y_none", "check_estimators_empty_data_messages"),
    "records enter through `measure`, which refuses or reads this with a sentence of its own",
) | {
    "check_classifier_data_not_an_array": "two fits have two draws of noise",
    "check_fit_idempotent": "two fits have two draws of noise",
    "check_estimator_sparse_tag": "`measure` takes sparse rows and `predict` does not",
    "check_fit2d_1sample": "classes are read off one label here",
    "check_fit2d_1feature": "a schema has two features at least",
}


STRICT = {"xfail_strict": True} if "xfail_strict" in signature(parametrize_with_checks).parameters else {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [private(classes=None, clip_norm=100.0, epsilon=100.0)], expected_failed_checks=lambda _: OTHERWISE, **STRICT
)
def test_scikit_learn_contract_holds(estimator, check):
    check(estimator)


def test_it_clones_with_all_its_terms_and_the_head_is_not_touched(records, ledger):
    head = private(heads.LDA(shrinkage=0.5), ledger=ledger, dataset="ward", public_transform=(ConstantFeature(1.0),))
    twin = clone(head.fit(*records))
    assert twin.get_params(deep=False).keys() == head.get_params(deep=False).keys()
    assert twin.get_params()["head__shrinkage"] == 0.5
    assert (twin.ledger, twin.public_transform, twin.epsilon) == (ledger, (ConstantFeature(1.0),), 50.0)
    assert not hasattr(twin, "head_")
    assert not hasattr(head.head, "rule_")


def test_it_is_the_step_private_of_a_pipeline(records):
    X, y = records
    pipeline = make_pipeline(FunctionTransformer(np.tanh), private())
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.9
    pipeline.set_params(private__epsilon=0.001, private__head__shrinkage="oas")
    released = pipeline.fit(X, y)[-1].head_.release_
    assert (released.budget.epsilon, pipeline.predict_proba(X).shape) == (0.001, (600, 3))
    assert pipeline.decision_function(X).shape == (600, 3)


def test_a_search_over_epsilon_pays_for_every_fit(records, ledger):
    """Three folds of two candidates, and the last fit on everything: seven releases, and mu adds up by its squares."""
    grid = {"epsilon": [0.01, 20.0]}
    head = private(ledger=ledger, dataset="ward")
    search = GridSearchCV(head, grid, cv=3, error_score="raise").fit(*records)
    assert search.best_params_ == {"epsilon": 20.0}
    account = ledger.account("ward")
    assert len(account.entries) == 3 * 2 + 1
    small, large = (ps.dp.gaussian_mu(epsilon, 1e-5) for epsilon in grid["epsilon"])
    assert account.mu == pytest.approx(math.sqrt(3 * small**2 + 4 * large**2), rel=1e-6)


def test_only_folds_that_follow_from_each_record_alone_differ_in_one_record():
    """What the guarantee says of sums over folds: mu adds up per record where no other record changes its fold."""
    ids = np.arange(30)
    own = np.array([sha256(bytes([each])).digest()[0] % 3 for each in ids])

    def most_apart(cut):
        trained = [[set(ids[kept][train]) for train in cut(kept)] for kept in (ids >= 0, ids != 0)]
        return max(len(one ^ other) for one, other in zip(*trained, strict=True))

    def split(cv):
        return lambda kept: [train for train, _ in cv.split(ids[kept], ids[kept] % 2)]

    assert most_apart(lambda kept: [train for train, _ in PredefinedSplit(own[kept]).split()]) == 1
    assert most_apart(split(KFold(3))) == most_apart(split(StratifiedKFold(3))) == 3
    assert most_apart(split(KFold(3, shuffle=True, random_state=0))) > 3


def test_a_search_stops_where_the_cap_is_reached(records, ledger):
    ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=60.0, delta=1e-5)
    search = GridSearchCV(private(ledger=ledger), {"epsilon": [50.0]}, cv=3, error_score="raise")
    refused(LedgerError, "cap", search.fit, *records)


def test_classes_given_are_those_of_every_fold_and_left_out_they_are_warned_about(records):
    X, y = records
    with warnings.catch_warnings(action="error"):
        assert private().fit(X[y < 2], y[y < 2]).classes_.tolist() == CLASSES
    with pytest.warns(AssumedPublicWarning, match="read off y"):
        assert private(classes=None).fit(X[y < 2], y[y < 2]).classes_.tolist() == [0, 1]


def test_a_head_that_it_fitted_is_saved_like_any_other(records, tmp_path):
    head = private().fit(*records)
    head.save(tmp_path / "head")
    np.testing.assert_array_equal(heads.load(tmp_path / "head").predict(records[0]), head.predict(records[0]))


@pytest.mark.parametrize(
    ("head", "error", "words"),
    [
        (private(heads.LDA), HeadError, r"head must be a head, got the class LDA; call it: LDA\(\)"),
        (private(FunctionTransformer()), HeadError, "such as .*, got FunctionTransformer"),
        (private(heads.Ridge()), HeadError, r"Ridge takes no classes; leave it out of Private\(Ridge\(\)"),
        (private(heads.Ridge(), classes=None), HeadError, "Ridge needs target_bound=..., a public choice"),
        (private(target_bound=2.0), HeadError, "LDA takes no target_bound"),
        (private(expected_records=9), HeadError, "serves centred=True alone"),
        (private(ledger=None), LedgerError, "no ledger is given to record that"),
        (private(dataset="ward"), LedgerError, "dataset names an account"),
        (private(epsilon=-1.0), PlanError, "epsilon must be between"),
        (private(classes=[0, 1]), DataError, "not among classes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_one_sentence(head, error, words, records):
    refused(error, words, head.fit, *records)


def test_missing_and_misspelt_terms_are_named_when_it_is_made(records):
    terms = {name: value for name, value in TERMS.items() if name not in ("epsilon", "clip_norm")}
    words = r"a private fit needs epsilon=\.\.\., clip_norm=\.\.\.: only the owner"
    refused(HeadError, words, heads.Private, heads.LDA(), **terms)
    refused(HeadError, "give public_transform=...", private, transform=())
    refused(HeadError, words, heads.LDA().fit_private, *records, **terms)
    for name in HEADS:
        if HEADS[name].task != "parties":  # which refuses every private fit
            refused(HeadError, r"a private fit needs epsilon=\.\.\.", quick(name).fit_private, *records)


def test_every_classifier_offers_what_its_head_offers_and_a_regression_does_not():
    for name in named("classes"):
        assert hasattr(private(quick(name)), "predict_proba")
    assert not hasattr(private(heads.Ridge(), classes=None), "predict_proba")


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_classes_reach_every_fit_of_a_pipeline_a_score_and_a_search(records):
    """One fold of two lacks a class of three: its fit knows of it, and warns of nothing that was read off y."""
    X, y = records
    some = y < 2
    head = private(classes=None, public_transform=()).set_fit_request(classes=True)
    pipeline = make_pipeline(FunctionTransformer(np.tanh), head)
    with warnings.catch_warnings(action="error", category=AssumedPublicWarning):
        assert pipeline.fit(X[some], y[some], classes=CLASSES)[-1].classes_.tolist() == CLASSES
        assert cross_val_score(pipeline, X, y, cv=3, params={"classes": CLASSES}).min() > 0.9
        search = GridSearchCV(pipeline, {"private__epsilon": [0.001, 50.0]}, cv=3, error_score="raise")
        search.fit(X, y, classes=CLASSES)
    assert search.best_params_ == {"private__epsilon": 50.0}
    assert search.best_estimator_[-1].head_.provenance_.assumed_public == ()
    assert get_routing_for_object(clone(head)).consumes("fit", ["classes", "public"]) == {"classes"}
    refused(UnsetMetadataPassedError, "", make_pipeline(private(classes=None)).fit, X, y, classes=CLASSES)


@pytest.mark.usefixtures("routing")
def test_public_records_reach_a_fit_whole(records):
    X, y = records
    public = (3 * np.eye(3, 5), CLASSES)
    head = private(epsilon=0.05).set_fit_request(public=True)
    assert make_pipeline(head).fit(X, y, public=public)[-1].head_.provenance_.public is not None
    found = cross_validate(head, X, y, cv=3, params={"public": public}, return_estimator=True, error_score="raise")
    assert {each.head_.provenance_.public for each in found["estimator"]} == {
        head.fit(X, y, public=public).head_.provenance_.public
    }


def test_classes_of_a_fit_stand_for_those_of_the_constructor_and_never_against_them(records):
    X, y = records
    assert private(classes=None).fit(X, y, classes=CLASSES).head_.provenance_.assumed_public == ()
    assert private().fit(X, y, classes=np.array(CLASSES)).classes_.tolist() == CLASSES
    refused(HeadError, "give them once", private().fit, X, y, classes=[0, 1, 2, 3])
    with pytest.raises(HeadError, match="Ridge takes no public"):
        private(heads.Ridge(), classes=None, target_bound=3.0).fit(X, y, public=(X, y))
    refused(NotFittedError, "", check_is_fitted, private())
    check_is_fitted(private().fit(X, y))
