"""Models from a release: closed-form, noise-aware, scikit-learn compatible.

The registry finds heads in these modules, in ``contrib.heads`` and under this package's entry-point group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privstats.heads.registry import HEADS, head_class
from privstats.lazy_names import lazy_names

if TYPE_CHECKING:  # a head that is not here works, and its type is Any
    from privstats.heads.diagnostics import FewRecordsWarning as FewRecordsWarning
    from privstats.heads.diagnostics import OneClassWarning as OneClassWarning
    from privstats.heads.diagnostics import UnlikeColumnsWarning as UnlikeColumnsWarning
    from privstats.heads.diagnostics import expected_calibration_error as expected_calibration_error
    from privstats.heads.diagnostics import gaussianity as gaussianity
    from privstats.heads.diagnostics import gaussianity_of as gaussianity_of
    from privstats.heads.diagnostics import homogeneity as homogeneity
    from privstats.heads.diagnostics import log_likelihood as log_likelihood
    from privstats.heads.estimator import ClassHead as ClassHead
    from privstats.heads.export import to_linear as to_linear
    from privstats.heads.export import to_module as to_module
    from privstats.heads.export import to_onnx as to_onnx
    from privstats.heads.fitting.subspace import Fisher as Fisher
    from privstats.heads.fitting.subspace import fisher_subspace as fisher_subspace
    from privstats.heads.lda import LDA as LDA
    from privstats.heads.naive_bayes import NaiveBayes as NaiveBayes
    from privstats.heads.persistence import load as load
    from privstats.heads.private_estimator import Private as Private
    from privstats.heads.provenance import Provenance as Provenance
    from privstats.heads.quadratic import QDA as QDA
    from privstats.heads.quadratic import RDA as RDA
    from privstats.heads.refined_ridge import RefinedRidge as RefinedRidge
    from privstats.heads.refined_softmax import RefinedSoftmax as RefinedSoftmax
    from privstats.heads.ridge import Ridge as Ridge
    from privstats.heads.ridge import RidgeClassifier as RidgeClassifier

_listed, _listed_dir = lazy_names(
    __name__,
    {
        "privstats.heads.diagnostics": [
            "FewRecordsWarning",
            "OneClassWarning",
            "UnlikeColumnsWarning",
            "expected_calibration_error",
            "gaussianity",
            "gaussianity_of",
            "homogeneity",
            "log_likelihood",
        ],
        "privstats.heads.estimator": ["ClassHead"],
        "privstats.heads.export": ["to_linear", "to_module", "to_onnx"],
        "privstats.heads.fitting.subspace": ["Fisher", "fisher_subspace"],
        "privstats.heads.lda": ["LDA"],
        "privstats.heads.naive_bayes": ["NaiveBayes"],
        "privstats.heads.persistence": ["load"],
        "privstats.heads.private_estimator": ["Private"],
        "privstats.heads.provenance": ["Provenance"],
        "privstats.heads.quadratic": ["QDA", "RDA"],
        "privstats.heads.refined_ridge": ["RefinedRidge"],
        "privstats.heads.refined_softmax": ["RefinedSoftmax"],
        "privstats.heads.ridge": ["Ridge", "RidgeClassifier"],
    },
)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted({*HEADS, *_listed(name)})
    if name.startswith("_") or name not in HEADS:
        return _listed(name)
    value = head_class(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_listed_dir(), *HEADS})
