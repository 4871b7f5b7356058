"""Models from a release: closed-form, noise-aware, scikit-learn compatible."""

from privstats.heads.diagnostics import (
    FewRecordsWarning,
    expected_calibration_error,
    gaussianity,
    homogeneity,
    log_likelihood,
)
from privstats.heads.discriminant import LDA
from privstats.heads.export import to_linear, to_module
from privstats.heads.fisher import Fisher, fisher_subspace
from privstats.heads.fisher_mix import FisherMix
from privstats.heads.low_rank import LowRankQDA
from privstats.heads.naive_bayes import NaiveBayes
from privstats.heads.persistence import load
from privstats.heads.proto_hyper import ProtoHyper
from privstats.heads.quadratic import QDA, RDA
from privstats.heads.ridge import Ridge, RidgeClassifier

__all__ = [
    "LDA",
    "QDA",
    "RDA",
    "FewRecordsWarning",
    "Fisher",
    "FisherMix",
    "LowRankQDA",
    "NaiveBayes",
    "ProtoHyper",
    "Ridge",
    "RidgeClassifier",
    "expected_calibration_error",
    "fisher_subspace",
    "gaussianity",
    "homogeneity",
    "load",
    "log_likelihood",
    "to_linear",
    "to_module",
]
