"""A personal head is the release's head, the client's own prior, offset and adapter, each by its formula."""

import json
import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from privstats import heads
from privstats.contrib.personal.head import FORMAT, NOTE, Personal, _Manifest
from privstats.errors import DataError, HeadError
from privstats.files.envelope import Content
from privstats.heads.registry import named
from privstats.transforms import CentreRows
from tests.heads.conftest import class_release, quick

FITTED = [quick(name) for name in named("classes", trained=False)]


@pytest.fixture
def setting(blobs):
    """A head of a release, and a client whose rows are shifted and whose labels are mostly the first two."""
    X, y = blobs(n=900)
    rng = np.random.default_rng(3)
    keep = rng.random(len(y)) < np.where(y < 2, 1.0, 0.05)
    head = heads.LDA().fit_release(class_release(X[:400], y[:400], clip_norm=1e3))
    return head, X[400:][keep[400:]], y[400:][keep[400:]]


@pytest.mark.parametrize("head", FITTED, ids=lambda head: type(head).__name__)
def test_without_anything_it_is_the_head(head, blobs):
    X, y = blobs()
    head = clone(head).fit_release(class_release(X, y, "NAS"))
    personal = Personal(head, prior=False).fit(X[:50], y[:50])
    np.testing.assert_allclose(personal.predict_proba(X), head.predict_proba(X), atol=1e-12)
    assert np.array_equal(personal.predict(X), head.predict(X))


@pytest.mark.parametrize("priors", ["counts", "uniform", [0.1, 0.2, 0.3, 0.4]])
def test_the_prior_is_laplace_in_place_of_the_heads_own(priors, blobs):
    X, y = blobs()
    head = heads.LDA(priors=priors).fit(X, y)
    mine = np.array([0, 0, 0, 2])
    personal = Personal(head).fit(X[[np.flatnonzero(y == c)[0] for c in mine]], mine)
    shares = np.array([4, 1, 2, 1]) / 8
    theirs = np.bincount(y) / len(y) if priors == "counts" else np.full(4, 0.25) if priors == "uniform" else priors
    expected = head.predict_proba(X) * shares / theirs
    np.testing.assert_allclose(personal.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


def test_the_prior_is_what_the_head_would_have_had_with_these_counts(blobs):
    """The same rule with the client's Laplace shares as its priors: changing the prior afterwards is no other thing."""
    X, y = blobs()
    mine = np.repeat([0, 1, 2, 3], [7, 1, 0, 12])
    places = np.array([np.flatnonzero(y == c)[0] for c in mine])
    shares = (np.bincount(mine, minlength=4) + 1) / (len(mine) + 4)
    for cls in (heads.LDA, heads.QDA, heads.NaiveBayes):
        personal = Personal(cls().fit(X, y)).fit(X[places], mine)
        np.testing.assert_allclose(personal.predict_proba(X), cls(priors=shares).fit(X, y).predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("pull", [0.0, 1.0, 4.0])
def test_the_offset_is_the_shift_that_labels_do_not_explain(pull, setting):
    head, X, y = setting
    personal = Personal(head, prior=False, offset=True, pull=pull).fit(X + 5.0, y)
    expected = (X + 5.0 - head.prototypes_[y]).sum(axis=0) / (len(X) * (1 + pull))
    np.testing.assert_allclose(personal.shift_, expected)
    np.testing.assert_allclose(personal.predict_proba(X), head.predict_proba(X - expected), atol=1e-9)


def test_the_offset_forgives_a_shifted_client(setting):
    head, X, y = setting
    shifted = X + np.linspace(-6, 6, X.shape[1])
    personal = Personal(head, offset=True).fit(shifted[::2], y[::2])
    assert math.isfinite(personal.pulls_["offset"])
    assert head.score(shifted[1::2], y[1::2]) < 0.5 < 0.85 < personal.score(shifted[1::2], y[1::2])


@pytest.mark.parametrize("records", [3, 200])
@pytest.mark.parametrize("pull", [0.1, 10.0])
def test_the_adapter_is_the_closed_form(records, pull, setting):
    """FedCGS eq. 12 without its task loss, solved the plain way; fewer records than features and more."""
    head, X, y = setting
    X, y = X[:records], y[:records]
    personal = Personal(head, prior=False, adapter="linear", pull=pull).fit(X, y)
    centre = head.priors_ @ head.prototypes_
    Z, T = X - centre, head.prototypes_[y] - centre
    ridge = pull * np.trace(Z.T @ Z) / X.shape[1] * np.eye(X.shape[1])
    P = np.linalg.solve(Z.T @ Z + ridge, Z.T @ T + ridge)
    np.testing.assert_allclose(personal.matrix_, P, atol=1e-8)
    np.testing.assert_allclose(personal.predict_proba(X), head.predict_proba(centre + Z @ P), atol=1e-8)


@pytest.mark.parametrize("records", [5, 200])
def test_the_trained_adapter_minimises_the_papers_loss(records, setting):
    """FedCGS eq. 12 whole: no map nearby is better, and where the means alone count it is the closed form."""
    head, X, y = setting
    X, y, pull, attraction = X[:records], y[:records], 0.3, 0.5
    personal = Personal(head, adapter="trained", attraction=attraction, pull=pull).fit(X, y)
    centre, means = head.priors_ @ head.prototypes_, head.prototypes_[y]
    square = np.square(X - centre).mean()

    def loss(P):
        moved = centre + (X - centre) @ P
        logs = head.rule_.scores(moved) + personal.log_ratio_
        logs -= np.log(np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)) + logs.max(
            axis=1, keepdims=True
        )
        drawn = np.square(moved - means).sum() / (records * square) + pull * np.square(P - np.eye(len(P))).sum()
        return -logs[np.arange(records), y].mean() + attraction * drawn

    rng, found = np.random.default_rng(0), loss(personal.matrix_)
    assert found < loss(np.eye(X.shape[1]))
    for size in (1e-1, 1e-2):
        for _ in range(20):
            assert found <= loss(personal.matrix_ + size * rng.normal(size=personal.matrix_.shape)) + 1e-5
    alone = Personal(head, adapter="trained", attraction=1e6, pull=pull).fit(X, y)
    closed = Personal(head, adapter="linear", pull=pull).fit(X, y)
    np.testing.assert_allclose(alone.matrix_, closed.matrix_, atol=1e-3)


def test_a_trained_adapter_is_saved_and_needs_linear_scores(setting, tmp_path, blobs):
    head, X, y = setting
    personal = Personal(head, adapter="trained", attraction=0.2, pull=1.0).fit(X, y)
    personal.save(tmp_path / "mine.head")
    loaded = Personal.load(tmp_path / "mine.head")
    assert loaded.get_params(deep=False)["attraction"] == 0.2
    assert np.array_equal(loaded.predict_proba(X), personal.predict_proba(X))
    X, y = blobs()
    curved = heads.QDA().fit_release(class_release(X, y, "NAS"))
    with pytest.raises(
        HeadError, match="needs a head with linear scores, such as LDA, not a QDA: set adapter='linear'"
    ):
        Personal(curved, adapter="trained").fit(X, y)


def test_folds_choose_nothing_where_nothing_helps(setting):
    """Labels that rows say nothing of: a client's part must not be fitted to noise."""
    head, X, y = setting
    y = np.random.default_rng(0).permutation(y)[:40]
    personal = Personal(head, offset=True, adapter="linear").fit(X[:40], y)
    assert personal.pulls_["offset"] >= 10
    assert np.abs(personal.shift_).max() < 1.0


def test_one_record_gives_a_prior_and_nothing_else(setting):
    head, X, y = setting
    personal = Personal(head, offset=True, adapter="linear").fit(X[:1], y[:1])
    assert personal.pulls_ == {"offset": math.inf, "adapter": math.inf}
    np.testing.assert_array_equal(personal.matrix_, np.eye(X.shape[1]))
    assert not personal.shift_.any()


def test_the_release_s_head_is_not_touched(setting):
    head, X, y = setting
    before = head.predict_proba(X)
    Personal(head, offset=True, adapter="linear", pull=0.1).fit(X, y)
    np.testing.assert_array_equal(head.predict_proba(X), before)


def test_scikit_learn_clones_and_cross_validates_around_the_same_head(setting):
    head, X, y = setting
    personal = Personal(head, offset=True, pull=2.0)
    copy = clone(personal)
    assert copy.head is head
    assert copy.get_params(deep=False) == personal.get_params(deep=False)
    assert cross_val_score(personal, X, y, cv=3).mean() > 0.8
    two = Personal(heads.LDA().fit(X[y < 2], y[y < 2])).fit(X[y < 2], y[y < 2])
    assert two.decision_function(X).shape == (len(X),)
    assert np.array_equal(two.predict(X) == two.classes_[1], two.decision_function(X) > 0)
    assert np.allclose(np.exp(two.predict_log_proba(X)).sum(axis=1), 1)


def test_columns_are_the_heads_for_scikit_learn(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    terms = {"epsilon": 50.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 4.0, "ledger": "uncharged"}
    frame = pandas.DataFrame(X, columns=list("abc"))
    head = heads.LDA().fit_private(frame, y, classes=(0, 1), transform=(CentreRows(),), **terms)
    own = Personal(head)
    assert not hasattr(own, "n_features_in_")
    own.fit(X, y).save(tmp_path / "own")
    for each in (own, Personal.load(tmp_path / "own")):
        assert (each.n_features_in_, each.feature_names_in_.tolist()) == (3, ["a", "b", "c"])


def test_names_of_classes_and_the_public_map_are_the_heads(blobs):
    X, y = blobs()
    release = class_release(X - X.mean(axis=1, keepdims=True), y, transform=(CentreRows(),))
    head = heads.LDA().fit_release(release, labels=["3", "7", "11", "20"])
    numbers = np.array([3, 7, 11, 20])[y]
    personal = Personal(head).fit(X + 100.0, numbers)
    assert personal.score(X, numbers) == personal.score(X, numbers.astype(str)) > 0.5


@pytest.fixture
def saved(setting, tmp_path):
    head, X, y = setting
    personal = Personal(head, offset=True, adapter="linear", pull=0.5).fit(X, y)
    personal.save(tmp_path / "mine")
    return personal, X, tmp_path / "mine"


def test_a_file_predicts_as_the_head_did_and_says_what_it_is(saved):
    personal, X, path = saved
    loaded = Personal.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), personal.predict_proba(X))
    assert loaded.pulls_ == personal.pulls_
    assert NOTE in path.read_bytes().decode("latin-1")
    assert "outside every promise" in NOTE
    with pytest.raises(HeadError, match="is not a privstats head"):
        heads.load(path)


def test_a_head_from_a_file_can_be_made_personal(setting, tmp_path):
    head, X, y = setting
    head.save(tmp_path / "h")
    loaded = Personal(heads.load(tmp_path / "h"), offset=True).fit(X, y)
    expected = Personal(head, offset=True).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    loaded.save(tmp_path / "mine")
    np.testing.assert_array_equal(Personal.load(tmp_path / "mine").predict_proba(X), expected)


def manifest_of(path):
    raw = path.read_bytes()
    return json.loads(json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]["manifest"])


def test_a_file_has_every_attribute(saved):
    personal, _, path = saved
    assert vars(Personal.load(path)).keys() == vars(personal).keys()


OTHERS = {
    "prior": False,
    "offset": False,
    "adapter": "trained",
    "attraction": 0.5,
    "pull": 2.0,
    "pulls": {"offset": 3.0},
    "head": "{}",
}
"""Another value for every field of a manifest but the note, which is for people."""


@pytest.mark.parametrize("field", [name for name in _Manifest.__struct_fields__ if name != "note"])
def test_no_field_of_a_manifest_is_written_and_not_read(saved, tmp_path, field):
    from safetensors.numpy import load_file

    _, _, path = saved
    before = manifest_of(path)
    assert {**before, field: OTHERS[field]} != before
    FORMAT.write(path, Content(json.dumps({**before, field: OTHERS[field]}).encode(), load_file(path)))
    try:
        Personal.load(path).save(tmp_path / "again")
    except HeadError:
        return
    assert manifest_of(tmp_path / "again") != before


@pytest.mark.parametrize(
    "change",
    [{"pull": -1.0}, {"pulls": {"offset": -1.0}}, {"adapter": "none"}, {"head": "{}"}, {"extra": 1}, {"prior": "yes"}],
)
def test_a_manifest_that_does_not_fit_is_refused(saved, change):
    from safetensors.numpy import load_file

    _, _, path = saved
    changed = {**manifest_of(path), **change}
    FORMAT.write(path, Content(json.dumps(changed).encode(), load_file(path)))
    with pytest.raises(HeadError, match="do not hold together"):
        Personal.load(path)


@pytest.mark.parametrize("name", ["log_ratio", "shift", "matrix", "head.known.priors", "head.known.prototypes"])
def test_tensors_that_do_not_fit_are_refused(saved, name):
    from safetensors.numpy import load_file

    _, _, path = saved
    tensors = load_file(path)
    manifest, value = json.dumps(manifest_of(path)).encode(), tensors[name]
    for spoilt in (value[:1], value * np.nan, value + 1e200):
        FORMAT.write(path, Content(manifest, {**tensors, name: spoilt}))
        with pytest.raises(HeadError, match="do not hold together"):
            Personal.load(path)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"head": "LDA"}, "head must be a classification head of privstats.heads"),
        ({"head": heads.LDA()}, "head is a LDA that is not fitted"),
        ({"pull": "none"}, "pull must be 'cv' or a finite number of at least 0"),
        ({"adapter": True}, "adapter must be 'none', 'linear', 'trained'"),
        ({"prior": 1.5}, "prior must be True or False"),
    ],
)
def test_parameters_out_of_bounds_are_one_sentence(parameters, words, setting):
    head, X, y = setting
    with pytest.raises(HeadError, match=words):
        Personal(**{"head": head, **parameters}).fit(X, y)


def test_wrong_records_are_one_sentence(setting):
    head, X, y = setting
    with pytest.raises(DataError, match="labels that the head does not know"):
        Personal(head).fit(X, y + 9)
    with pytest.raises(DataError, match="one label for each of the 5 rows"):
        Personal(head).fit(X[:5], y[:4])
    del head.prototypes_
    with pytest.raises(HeadError, match="without class means; fit it on the release again"):
        Personal(head).fit(X, y)
