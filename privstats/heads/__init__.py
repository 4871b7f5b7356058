"""Models from a release: closed-form, noise-aware, scikit-learn compatible."""

from privstats.heads.discriminant import LDA
from privstats.heads.low_rank import LowRankQDA
from privstats.heads.naive_bayes import NaiveBayes
from privstats.heads.quadratic import QDA, RDA
from privstats.heads.ridge import Ridge, RidgeClassifier

__all__ = ["LDA", "QDA", "RDA", "LowRankQDA", "NaiveBayes", "Ridge", "RidgeClassifier"]
