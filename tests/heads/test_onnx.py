"""An ONNX file scores, labels and weighs as the head does, in a runtime that knows nothing of privstats."""

import numpy as np
import pytest

import privstats as ps
from privstats import heads
from privstats.errors import HeadError, PrivstatsError
from privstats.heads.registry import named
from privstats.transforms import CentreRows, Transform, UnitNorm
from tests.heads.conftest import quick, ridge_release
from tests.heads.test_export import CHAINS, hard_rows, kinds, released_behind, same_scores
from tests.lengths import sized

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore:this release has no constant feature")

USUAL = (CentreRows(), UnitNorm())
PAIRS = [
    pytest.param(
        transform,
        name,
        id=f"{kinds(transform)}-{name}",
        marks=[] if transform == USUAL or name == "QDA" else pytest.mark.nightly,
    )
    for place, transform in enumerate(CHAINS)
    for number, name in enumerate(named("classes", trained=False))
    if transform == USUAL or name == "QDA" or (place + number) % sized(3, 1) == 0
]


def served(head, path, **options):
    """The head's file in a runtime: from rows to its outputs by name."""
    head.to_onnx(path, **options)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return lambda rows: dict(zip(names, session.run(None, {"rows": rows}), strict=True))


@pytest.mark.parametrize(("transform", "name"), PAIRS)
def test_every_head_behind_every_transform_is_the_same_in_another_runtime(transform, name, tmp_path):
    release, X = released_behind(transform)
    head, rows = quick(name).fit_release(release), hard_rows(X[:40])
    found = served(head, tmp_path / "head.onnx")(rows)
    same_scores(found["scores"], head, rows, 1e-7)
    np.testing.assert_array_equal(found["label"], head.predict(rows))
    if head.softmax:
        np.testing.assert_allclose(found["probabilities"], head.predict_proba(rows), atol=1e-6)
    else:
        assert "probabilities" not in found


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["FisherMix", "ProtoHyper"])
def test_heads_that_are_trained_are_written_too(name, tmp_path):
    pytest.importorskip("torch", reason="the torch extra is not installed")
    release, X = released_behind(USUAL)
    head = quick(name).fit_release(release)
    same_scores(served(head, tmp_path / "h")(X)["scores"], head, X, 1e-9)


@pytest.mark.parametrize("module", [None, "adapter/4", "mlp/4"])
def test_a_refined_head_is_written_too(tmp_path, module):
    X, y = released_behind(())[1], np.arange(200) % 4
    head = heads.RefinedSoftmax(rounds=2, module=module).fit(X, y)
    rows = np.r_[X, np.zeros((1, 6))]
    np.testing.assert_allclose(served(head, tmp_path / "h")(rows)["probabilities"], head.predict_proba(rows), atol=1e-9)


@pytest.mark.parametrize("targets", [1, 2])
def test_a_regression_has_scores_alone(targets, tmp_path):
    X = released_behind(())[1]
    head = heads.Ridge(penalty=1.0).fit_release(ridge_release(X, X[:, :targets] + 1.0))
    found = served(head, tmp_path / "h")(X)
    assert list(found) == ["scores"]
    np.testing.assert_allclose(found["scores"], head.predict(X).reshape(len(X), -1), atol=1e-9)


@pytest.mark.parametrize(
    "labels", [["ash", "birch", "élan", "oak"], [7, 8, 9, 10], [0.5, 1.5, 2.5, 3.5], np.array(list("abcd"), object)]
)
def test_labels_are_those_of_the_head(labels, tmp_path):
    release, X = released_behind(())
    head = heads.LDA().fit_release(release, labels=labels)
    assert served(head, tmp_path / "h")(X)["label"].tolist() == head.predict(X).tolist()


def test_labels_of_truth_are_truth(tmp_path):
    X = released_behind(())[1]
    head = heads.LDA().fit(X, X[:, 0] > 1)
    assert served(head, tmp_path / "h")(X)["label"].tolist() == head.predict(X).tolist()


@pytest.mark.parametrize("transform", [USUAL, *CHAINS[-5:-3]], ids=kinds)
def test_a_file_of_float32_takes_and_gives_float32(transform, tmp_path):
    release, X = released_behind(transform)
    head, rows = heads.QDA().fit_release(release), np.r_[X, 100 * X, np.zeros((1, 6))]
    found = served(head, tmp_path / "h", precision="float32")(rows.astype(np.float32))
    assert found["scores"].dtype == np.float32
    same_scores(found["scores"], head, rows, 3e-5)
    assert np.mean(found["label"] == head.predict(rows)) > 0.995


def test_negative_entries_are_cut_where_the_release_cut_them(tmp_path):
    schema = ps.ClassSchema(3, 4, "NAS", 1.0, nonnegative=True)
    X, y = np.random.default_rng(0).normal(size=(90, 4)), np.arange(90) % 3
    head = heads.QDA().fit_release(ps.Release.exact(schema, ps.measure(schema, X, y)))
    same_scores(served(head, tmp_path / "h")(X)["scores"], head, X, 1e-9)


def test_the_file_says_where_the_head_comes_from(tmp_path):
    release, _ = released_behind(USUAL)
    heads.LDA().fit_release(release).to_onnx(tmp_path / "h")
    model = onnx.load(tmp_path / "h")
    said = {each.key: each.value for each in model.metadata_props}
    assert (said["privstats.head"], said["privstats.exact"]) == ("LDA", "true")
    assert said["privstats.promise"] == "exact: no promise"
    assert (said["privstats.plan"], said["privstats.release"]) == (release.plan.digest, release.digest)
    assert (model.producer_name, model.producer_version) == ("privstats", ps.__version__)


class Foreign(Transform):
    """A map of another package that knows numpy alone."""

    kind = "foreign-to-onnx"

    def apply(self, rows):
        return np.tanh(rows)

    def outputs(self, inputs):
        return inputs


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda head, path: head.to_onnx(path / "no" / "h"), PrivstatsError, "no"),
        (lambda head, path: head.to_onnx(path, precision="half"), HeadError, "precision must be one of"),
        (lambda head, path: heads.to_onnx(3, path), HeadError, "to_onnx takes a fitted head"),
        (lambda head, path: foreign(head).to_onnx(path / "h"), HeadError, "does not take the arrays of a graph"),
        (lambda head, path: odd(head).to_onnx(path / "h"), HeadError, "labels must be texts, numbers or truth"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(make, error, words, tmp_path):
    head = heads.LDA().fit_release(released_behind((UnitNorm(),))[0])
    with pytest.raises(error, match=words):
        make(head, tmp_path)
    assert not (tmp_path / "h").exists()


def foreign(head):
    preprocessing = head.preprocessing_
    head.preprocessing_ = type(preprocessing)(preprocessing.features, (Foreign(),), preprocessing.clip_norm)
    return head


def odd(head):
    head.classes_ = np.array([1j, 2j, 3j, 4j])
    return head
