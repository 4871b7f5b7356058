"""A head file predicts as the head did, and anything else is refused by name."""

import json
from dataclasses import fields

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from safetensors.numpy import load_file, save_file

from privstats import heads
from privstats.errors import HeadError
from privstats.files.envelope import Content
from privstats.heads.persistence import FORMAT, _Manifest, content_of
from privstats.heads.registry import HEADS, named
from privstats.heads.rules import Preprocessing
from privstats.transforms import CentreRows, UnitNorm
from tests.heads.conftest import class_release, quick, ridge_release
from tests.made import refused

pytestmark = pytest.mark.filterwarnings("ignore:this release has no constant feature")

FITTED = [
    *map(quick, named("classes")),
    heads.LDA(covariance="total", subspace="auto", priors=[0.25, 0.25, 0.25, 0.25]),
    heads.NaiveBayes(subspace=2),
]


@pytest.mark.parametrize("head", FITTED, ids=repr)
def test_a_loaded_head_scores_as_the_saved_one(head, blobs, tmp_path):
    X, y = blobs()
    head.fit_release(class_release(X, y, "NAS", clip_norm=3.0), labels=["a", "b", "c", "d"])
    head.save(tmp_path / "head.safetensors")
    loaded = heads.load(tmp_path / "head.safetensors")
    assert type(loaded) is type(head)
    np.testing.assert_array_equal(loaded._scores(X), head._scores(X))
    np.testing.assert_array_equal(loaded.predict(X), head.predict(X))
    assert {k: v for k, v in loaded.get_params().items() if k != "priors"} == {
        k: v for k, v in head.get_params().items() if k != "priors"
    }
    type(head)(**loaded.get_params()).fit(X, y)


def test_transforms_travel_with_the_head(blobs, tmp_path):
    X, y = blobs()
    head = heads.LDA().fit_release(class_release(X, y, transform=(CentreRows(), UnitNorm())))
    head.save(tmp_path / "h")
    np.testing.assert_array_equal(heads.LDA.load(tmp_path / "h").predict_proba(X), head.predict_proba(X))


@pytest.mark.parametrize("targets", [1, 2])
def test_ridge_keeps_the_shape_of_its_predictions(blobs, tmp_path, targets):
    X, _ = blobs()
    head = heads.Ridge(penalty=1.0).fit_release(ridge_release(X, X[:, :targets]))
    head.save(tmp_path / "h")
    np.testing.assert_array_equal(heads.Ridge.load(tmp_path / "h").predict(X), head.predict(X))


@pytest.mark.parametrize("labels", [[1.5, 2.5, 3.5, 4.5], [True, False], ["x", "y", "z"], [7, 8, 9, 10]])
def test_labels_keep_their_type(blobs, tmp_path, labels):
    X, y = blobs(classes=len(labels))
    head = heads.LDA().fit_release(class_release(X, y), labels=labels)
    head.save(tmp_path / "h")
    assert heads.load(tmp_path / "h").classes_.dtype.kind == head.classes_.dtype.kind


def test_labels_that_json_cannot_hold_are_refused(blobs, tmp_path):
    X, y = blobs(classes=2)
    head = heads.LDA().fit(X, y)
    head.classes_ = np.array([object(), object()])
    refused(HeadError, "labels", head.save, tmp_path / "h")


def test_another_class_is_refused(blobs, tmp_path):
    X, y = blobs()
    heads.LDA().fit(X, y).save(tmp_path / "h")
    refused(HeadError, "holds a LDA, not a QDA", heads.QDA.load, tmp_path / "h")


OF_THE_FIT = {
    "FisherMix": "convergence_ dispersion_ means_",
    "LDA": "covariance_ means_ shrinkage_",
    "LowRankQDA": "means_",
    "NaiveBayes": "means_ variances_",
    "PartyDiscriminant": "center_",
    "ProtoHyper": "convergence_ dispersion_ means_ residual_",
    "QDA": "means_",
    "RDA": "means_ pooled_weight_",
    "RefinedRidge": "clip_ rounds_",
    "RefinedSoftmax": "mean_noise_ rounds_ weights_",
    "Ridge": "condition_ penalty_ solver_",
    "RidgeClassifier": "condition_ penalty_ solver_",
}
"""Attributes that only describe a fit, so that no file has them; those of ``RefinedSoftmax.fit`` are None."""


def test_a_file_has_every_attribute_of_a_head_that_does_not_only_describe_its_fit(blobs, tmp_path):
    """Predictions alone would not tell: what is computed from a lost attribute is computed without it."""
    X, y = blobs()
    lost = {}
    for name, entry in HEADS.items():
        head = quick(name).fit(X, X[:, :1] if entry.task == "ridge" else y)
        head.save(tmp_path / name)
        lost[name] = " ".join(sorted(vars(head).keys() - vars(heads.load(tmp_path / name)).keys()))
    assert lost == {name: lines for name, lines in OF_THE_FIT.items() if name in HEADS}


def test_a_file_has_every_field_of_the_map_in_front_of_the_rule(blobs, tmp_path):
    X, y = blobs()
    head = heads.LDA().fit_release(class_release(X, y))
    names = tuple(f"column {place}" for place in range(X.shape[1]))
    whole = Preprocessing(X.shape[1], (CentreRows(),), 2.0, names, nonnegative=True)
    assert [each.name for each in fields(whole) if getattr(whole, each.name) == each.default] == []
    head.preprocessing_ = whole
    head.save(tmp_path / "head")
    assert heads.load(tmp_path / "head").preprocessing_ == whole


OTHERS = {
    "head": "QDA",
    "parameters": {"shrinkage": 0.25},
    "rule": "quadratic",
    "classes": ["a", "b", "c", "d"],
    "flat": True,
    "features": 3,
    "clip_norm": 0.5,
    "transform": [{"kind": "unit-norm"}],
    "feature_names": ["a", "b", "c", "d", "e"],
    "nonnegative": True,
    "provenance": {"kind": "exact"},
    "facts": {"temperature": 2.0, "prevalence": [0.1, 0.2, 0.3, 0.4]},
}
"""Another value for every field of a manifest."""


@pytest.mark.parametrize("field", _Manifest.__struct_fields__)
def test_no_field_of_a_manifest_is_written_and_not_read(blobs, tmp_path, field):
    X, y = blobs()
    fitted = heads.Ridge(penalty=1.0).fit(X, X[:, :1]) if field == "flat" else heads.LDA().fit(X, y)
    content = content_of(fitted)
    edited = {**json.loads(content.manifest), field: OTHERS[field]}
    assert edited != json.loads(content.manifest)
    FORMAT.write(tmp_path / "head", Content(json.dumps(edited).encode(), content.tensors))
    try:
        again = heads.load(tmp_path / "head")
    except HeadError:
        return
    assert content_of(again).manifest != content.manifest


@pytest.fixture
def stored(blobs, tmp_path):
    X, y = blobs()
    path = tmp_path / "head"
    heads.LDA().fit(X, y).save(path)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    return path, load_file(path), json.loads(raw[8 : 8 + length])["__metadata__"]["manifest"].encode()


def test_another_version_is_refused(stored):
    path, tensors, manifest = stored
    header = {"format": "privstats-head", "version": "999", "manifest": manifest.decode(), "sha256": ""}
    save_file(tensors, path, metadata=header)
    refused(HeadError, "head format '999' and this privstats reads 3", heads.load, path)


@pytest.mark.parametrize("manifest", [b"{}", b"not json", json.dumps({"head": "os.system"}).encode()])
def test_a_manifest_under_a_fitting_checksum_must_hold_together(stored, manifest):
    path, tensors, _ = stored
    FORMAT.write(path, Content(manifest, tensors))
    refused(HeadError, "its manifest and its tensors do not hold together", heads.load, path)


def test_a_rule_that_nobody_here_brings_is_refused_by_what_to_install(stored):
    path, tensors, manifest = stored
    FORMAT.write(path, Content(json.dumps({**json.loads(manifest), "rule": "exec"}).encode(), tensors))
    refused(
        HeadError,
        "this head needs the rule 'exec', which no installed package announces",
        heads.load,
        path,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"head": "os.system"},
        {"features": 7},
        {"features": 4},
        {"features": 1 << 60},
        {"classes": ["a"]},
        {"transform": [{}]},
        {"clip_norm": -1e300},
        {"clip_norm": 0.0},
        {"classes": ["a", "a", "b", "c"]},
        {"classes": [0, 1, 2, None]},
        {"feature_names": ["a"]},
        {"facts": {"temperature": 0.0}},
        {"facts": {"temperature": -2.0}},
        {"facts": {"link": [0.0, 0.0]}},
        {"facts": {"link": [1.0, [0.0]]}},
        {"facts": {"prevalence": [0.5, 0.5]}},
        {"facts": {"prevalence": [0.5, 0.5, 0.5, 0.5]}},
        {"facts": {"prevalence": [2.0, -1.0, 0.0, 0.0]}},
        {"facts": {"mean_noise": -1.0}},
    ],
)
def test_a_manifest_that_names_what_is_not_there_is_refused(stored, change):
    path, tensors, manifest = stored
    FORMAT.write(path, Content(json.dumps({**json.loads(manifest), **change}).encode(), tensors))
    refused(HeadError, "do not hold together", heads.load, path)


def test_tensors_under_a_fitting_checksum_must_be_those_of_the_rule(stored):
    path, tensors, manifest = stored
    others = (
        {"coef": tensors["coef"]},
        {**tensors, "coef": tensors["coef"] * np.nan},
        {**tensors, "coef": np.full_like(tensors["coef"], 1e308)},
        {**tensors, "known.priors": -tensors["known.priors"]},
        {**tensors, "known.prototypes": np.full_like(tensors["known.prototypes"], np.inf)},
    )
    for other in others:
        FORMAT.write(path, Content(manifest, other))
        refused(HeadError, "do not hold together", heads.load, path)


def test_a_forged_head_is_told_by_the_signature_alone(blobs, tmp_path):
    X, y = blobs()
    head, key, path = heads.LDA().fit(X, y), Ed25519PrivateKey.generate(), tmp_path / "h"
    head.save(path, signer=key)
    loaded = heads.LDA.load(path, signed_by=key.public_key())
    np.testing.assert_array_equal(loaded.predict(X), head.predict(X))
    heads.LDA().fit(X, 1 - (y > 1)).save(path)
    heads.load(path)
    refused(HeadError, "not signed by the key you trust", heads.load, path, signed_by=key.public_key())


@pytest.mark.parametrize("data", [b"", b"hello", b"\xff" * 100, (5).to_bytes(8, "little") + b"[1,2]"])
def test_foreign_files_are_refused(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    refused(HeadError, "not a privstats head", heads.load, tmp_path / "x")


def test_a_missing_file_is_refused(tmp_path):
    refused(HeadError, "cannot read", heads.load, tmp_path / "nothing")
