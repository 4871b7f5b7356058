"""A model card says what the head knows of itself, and never more."""

import numpy as np
import pytest
from msgspec.structs import replace
from sklearn.exceptions import NotFittedError

import privstats as ps
from privstats import heads
from privstats.heads.diagnostics import RANKS
from privstats.heads.registry import HEADS, named
from privstats.transforms import CentreRows, UnitNorm
from tests.heads.conftest import class_release
from tests.heads.test_provenance import CLOSED, TERMS, X, Y, fitted

SECTIONS = ["Intended use", "Inputs", "Outputs", "Provenance", "Parameters", "Evaluation", "Limits"]


@pytest.mark.parametrize("how", ["exact", "private"])
@pytest.mark.parametrize("name", CLOSED)
def test_every_head_has_a_card_with_every_section(name, how):
    head = fitted(name, how)
    card = head.card()
    assert [line[3:] for line in card.splitlines() if line.startswith("## ")] == SECTIONS
    assert card.startswith(f"# {name}\n")
    assert f"**{head.provenance_}**" in card
    assert ("no promise covers it" in card) is (how == "exact")
    assert all(digest in card for digest in head.provenance_.releases)
    assert ("One number per target" in card) is (HEADS[name].task == "ridge")
    assert all(f"| {parameter} |" in card for parameter in head.get_params())


def test_a_card_names_maps_clip_classes_and_columns():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(X, columns=["age", "sex", "dose", "a|b"])
    head = heads.LDA().fit_private(rows, Y, classes=range(3), transform=(CentreRows(), UnitNorm()), **TERMS)
    card = head.card()
    assert "Rows of 4 numbers: age, sex, dose, a|b." in card
    assert "public maps to them: centre-rows, unit-norm." in card
    assert "norm above 2 to it" in card
    assert "One of 3 classes: 0, 1, 2." in card


def test_a_card_says_what_people_said():
    card = heads.LDA().fit(X, Y).card(intended_use="Sorting trees.", scores={"accuracy | public": 0.91234})
    assert "Sorting trees." in card
    assert "| accuracy \\| public | 0.9123 |" in card
    assert "Not stated" not in card


@pytest.mark.filterwarnings("ignore:.* records")
def test_a_card_says_whether_probabilities_were_calibrated(tmp_path):
    never = heads.NaiveBayes().fit(X, Y)
    never.save(tmp_path / "head")
    for head in (heads.RefinedSoftmax().fit(X, Y), never, heads.load(tmp_path / "head")):
        assert "they were not calibrated on records" in head.card()
    head = heads.RefinedSoftmax(calibrated=True).fit(X, Y)
    assert f"calibrated on the training records: scores are divided by {head.temperature_:.3g}." in head.card()


@pytest.mark.filterwarnings("ignore")
def test_a_card_says_that_a_head_of_densities_under_noise_only_ranks(tmp_path):
    """On a table of `fertil2`'s kind its log loss was 1.007 at epsilon 1, where the class's share alone has .68."""
    for name in set(named("classes")) - {"RidgeClassifier"}:
        head = fitted(name, "private")
        head.save(tmp_path / "head")
        for each in (head, heads.load(tmp_path / "head")):
            assert f"not calibrated: {RANKS}.**" in each.card(), name
    rows = ps.ClassSchema(3, 4, "NAB", clip_norm=1.0, transform=(UnitNorm(),))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    plan = ps.Plan(schema=rows, cohort=ps.Cohort(2, 2, len(X)), privacy=privacy)
    course = ps.Centred.within(plan, calibrated=True)
    calibrated = heads.LDA().fit_release(ps.simulate(course, [(X[k::2], Y[k::2]) for k in range(2)]))
    for other in (calibrated, fitted("LDA", "exact"), fitted("RidgeClassifier", "private"), fitted("Ridge", "private")):
        assert RANKS not in other.card()


@pytest.mark.filterwarnings("ignore:.* records")
def test_a_card_says_how_far_noise_may_move_the_mean_probability(tmp_path):
    y = np.asarray(Y) % 2
    head = heads.RefinedSoftmax(rounds=2).fit_private(
        X, y, classes=(0, 1), **TERMS | {"clip_norm": 1.0, "expected_records": 60}
    )
    head.save(tmp_path / "head")
    sentence = f"{2 * head.mean_noise_:.2g} is about how far noise alone may move the mean probability of 1"
    assert all(sentence in each.card() for each in (head, heads.load(tmp_path / "head")))
    assert "noise alone" not in head.fit(X, y).card()


def test_nothing_known_is_said_as_such_and_nothing_fitted_has_no_card():
    card = heads.LDA(priors=[0.2, 0.3, 0.5]).fit_release(class_release(X, Y)).card()
    assert "**unknown: the file does not state whether a promise covers it**" in card
    assert "| priors | 3 numbers |" in card
    assert np.all([word not in card for word in ("| plan |", "epsilon")])
    with pytest.raises(NotFittedError):
        heads.LDA().card()


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({}, "2 of 2; or one holder alone, whose plan counts as two"),
        ({"clients": 3}, "2 of 3"),
        ({"model": "distributed"}, "2 of 2"),
        ({"unit": "client"}, "2 of 2"),
    ],
    ids=str,
)
def test_a_fit_of_one_party_alone_is_not_called_a_sum_of_two(facts, told):
    head = fitted("LDA", "private")
    head.provenance_ = replace(head.provenance_, **facts)
    assert f"| parties in the sum | {told} |" in head.card()


def test_a_card_says_what_becomes_of_a_rare_class_and_what_to_do():
    """A head that orders records well and predicts one class told "the classes hardly apart"."""
    rng = np.random.default_rng(0)
    y = (np.arange(2000) % 10 == 0).astype(int)
    for shift, said in ((1.0, "At the mean of every class it predicts 0"), (3.5, "One class or more is rare")):
        card = heads.LDA().fit(rng.normal(size=(2000, 2)) + shift * y[:, None] / 1.4, y).card()
        assert said in card
        assert "hardly apart" not in card
        assert "flag those whose probability of it is above its share" in card
        assert "priors='uniform'" in card
    even = heads.LDA(priors="uniform").fit(rng.normal(size=(2000, 2)) + y[:, None], y)
    assert "rare" not in even.card()


def test_a_score_on_a_card_has_intervals_a_rare_class_and_a_picture_of_the_reliability():
    rng = np.random.default_rng(0)
    y = (rng.random(2_000) < 0.1).astype(int)
    X = rng.normal(size=(2_000, 2)) + y[:, None]
    head = ps.heads.LDA().fit(X[:1_000], y[:1_000])
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, 1_000), privacy=ps.NoPrivacy())
    found = ps.inference.head_score(ps.simulate(plan, [(X[k::2], y[k::2]) for k in (1_000, 1_001)]))
    card = head.card(scores=found)
    at = found.at(found.prevalence)
    assert at.threshold == 0.1
    flagged = head.predict_proba(X[1_000:])[:, 1] >= 0.1
    assert at.sensitivity.value == pytest.approx(flagged[y[1_000:] == 1].mean())
    assert at.specificity.value == pytest.approx(1 - flagged[y[1_000:] == 0].mean())
    assert f"| sensitivity from 0.1 on | {at.sensitivity.value:.4g} ({at.sensitivity.low:.4g} to " in card
    bars = [line for line in card.splitlines() if line.endswith(" records") and " to " in line]
    assert len(bars) == len(found.calibration.records)
    assert all("|" in line for line in bars)
    assert '`predict(X, threshold="prevalence")` gives 1 from a probability of' in card
