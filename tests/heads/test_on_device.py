"""A head fitted on a device of torch is the host's up to rounding of float64, and predicts the same."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.sweep import Axes, behind_means, study
from privstats.contrib.sweep.running import heads_named
from privstats.errors import DataError
from privstats.estimates.algebra import Algebra, DeviceAlgebra, algebra_on
from privstats.heads.registry import HEADS, head_class
from tests.cards import CARD, DEVICES
from tests.contrib.sweep.test_sweep import PLAN, TEST, TRAIN
from tests.heads.conftest import class_release, gaussian_blobs, ridge_release
from tests.lengths import sized
from tests.made import refused

torch = pytest.importorskip("torch", reason="torch is an extra")
ON_DEVICE = [name for name, entry in HEADS.items() if entry.on_device]
SHRINKAGE = st.sampled_from(["auto", "oas", 0.01])
SUBSPACE = st.sampled_from([None, "auto", 0.9])
SOLVER = st.sampled_from(["auto", "plain", "adassp", "wiener", "aggregate"])
PARAMETERS = {
    "LDA": st.fixed_dictionaries(
        {"covariance": st.sampled_from(["pooled", "total"]), "shrinkage": SHRINKAGE, "subspace": SUBSPACE}
    ),
    "QDA": st.fixed_dictionaries({"shrinkage": SHRINKAGE, "subspace": SUBSPACE}),
    "RDA": st.fixed_dictionaries({"pooled_weight": st.sampled_from(["auto", 0.5]), "subspace": SUBSPACE}),
    "NaiveBayes": st.fixed_dictionaries({"subspace": SUBSPACE}),
    "RidgeClassifier": st.fixed_dictionaries({"solver": SOLVER, "penalty": st.sampled_from(["auto", 0.5])}),
    "Ridge": st.fixed_dictionaries({"solver": SOLVER, "penalty": st.sampled_from(["auto", "folds", 0.5])}),
}
STATISTICS = {"LDA": "NAB", "RidgeClassifier": "NAB", "NaiveBayes": "NABD", "QDA": "NAS", "RDA": "NAS"}


def _release(name, seed, classes, d, level):
    rng = np.random.default_rng(seed)
    X, y = gaussian_blobs(40 * classes, d, classes, seed)
    if name == "Ridge":
        targets = X @ rng.standard_normal((d, 2)) + rng.standard_normal((len(X), 2))
        return X, ridge_release(X, targets, dict.fromkeys("Ghq", level), rng, folds=3)
    return X, class_release(X, y, STATISTICS[name], dict.fromkeys("NABSD", level), rng)


def _outputs(head, X):
    return head.predict(X) if hasattr(head, "penalty_") and not hasattr(head, "classes_") else head._scores(X)


def test_every_head_that_fits_on_a_device_is_tested():
    assert set(ON_DEVICE) == set(PARAMETERS)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ON_DEVICE)
@settings(max_examples=sized(10, 300))
@given(st.data())
def test_a_head_fitted_on_a_device_is_the_hosts(name, device, data):
    parameters = data.draw(PARAMETERS[name])
    sizes = data.draw(st.integers(0, 999)), data.draw(st.integers(2, 5)), data.draw(st.integers(2, 12))
    X, release = _release(name, *sizes, data.draw(st.sampled_from([0.0, 0.1, 3.0])))
    host = head_class(name)(**parameters).fit_release(release)
    with algebra_on(device):
        there = head_class(name)(**parameters).fit_release(release)
    expected, found = _outputs(host, X), _outputs(there, X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * float(np.abs(expected).max()))
    if hasattr(host, "classes_"):
        best = np.sort(expected, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-9 * np.abs(expected).max()
        assert (host.predict(X) == there.predict(X))[clear].all()


@pytest.mark.parametrize("name", ["LDA", "QDA", "RidgeClassifier", "Ridge"])
def test_no_matrix_is_factored_on_the_host_within_the_block(name, monkeypatch):
    _, release = _release(name, 0, 3, 6, 0.1)
    for method in ("product", "composed", "less_gram", "eigh", "svd", "solved"):
        monkeypatch.setattr(Algebra, method, None)
    monkeypatch.setattr(np.linalg, "eigh", None)
    with algebra_on("cpu"):
        head_class(name)().fit_release(release)
    with pytest.raises(TypeError):
        head_class(name)().fit_release(release)


def test_both_algebras_read_the_same_triangle():
    rng = np.random.default_rng(0)
    matrix, rows = rng.normal(size=(5, 5)), rng.normal(size=(3, 5))
    expected = np.triu(matrix) + np.triu(matrix, 1).T - rows.T @ rows
    for each in (Algebra(), DeviceAlgebra.named("cpu")):
        found = each.less_gram(matrix, rows)
        assert (found == found.T).all()
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_sums_that_no_records_have_are_solved_alike():
    release = class_release(*gaussian_blobs(80, 4, 3))
    release.moments.B[0, 0] = -5.0
    host = ps.heads.LDA().fit_release(release).coef_
    with algebra_on("cpu"):
        np.testing.assert_allclose(ps.heads.LDA().fit_release(release).coef_, host, rtol=1e-9)


@pytest.mark.parametrize("device", ["nowhere", "meta", 5, *(["cuda"] if not CARD else [])])
def test_a_device_that_is_not_there_is_refused_in_a_sentence(device):
    start = f"^device must name a device of torch with float64, such as 'cuda' or 'cpu', got {device!r}: [^\n]+$"
    refused(DataError, start, DeviceAlgebra.named, device)


def test_a_study_on_a_device_has_the_hosts_scores():
    heads = {name: head_class(name) for name in ("LDA", "RidgeClassifier")}
    axes = Axes(epsilon=[0.1, 5.0])
    host, there = (
        study(PLAN, TRAIN, TEST, heads, axes, repeats=2, with_baselines=False, device=device)
        for device in (None, "cpu")
    )
    assert list(host.draws) == list(there.draws)
    assert (host.device, there.device, there.versions["torch"]) == (None, "cpu", torch.__version__)


def test_a_study_refuses_a_head_of_the_host_and_an_unknown_device():
    refusal = f"is computed on the host alone; omit device, or choose among {', '.join(ON_DEVICE)}$"
    for heads in ({"softmax": ps.heads.RefinedSoftmax}, behind_means({"nothing": object})):
        refused(DataError, refusal, study, PLAN, TRAIN, TEST, heads, device="cpu")
    lda = {"LDA": ps.heads.LDA}
    refused(DataError, "^device must name a device of torch", study, PLAN, TRAIN, TEST, lda, device="nowhere")


def test_a_plan_whose_heads_all_stay_on_the_host_is_refused_in_a_sentence():
    parties = SimpleNamespace(schema=ps.PartySchema(3, 2))
    refused(
        DataError,
        "^no head of this plan is fitted on a device; omit --device$",
        heads_named,
        None,
        parties,
        on_device=True,
    )


def test_the_command_fits_on_a_device(privstats, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())
    np.savez(tmp_path / "data.npz", X_train=TRAIN[0], y_train=TRAIN[1], X_test=TEST[0], y_test=TEST[1])
    words = ("plan.toml", "data.npz", "--epsilon", "1", "--repeats", "2", "--no-baselines", "--device")
    done = privstats("sweep", *words, "cpu", cwd=tmp_path, code=0)
    assert all(name in done.stdout for name in ("LDA", "RidgeClassifier"))
    assert "device must name a device of torch" in privstats("sweep", *words, "nowhere", cwd=tmp_path, code=2).stderr
