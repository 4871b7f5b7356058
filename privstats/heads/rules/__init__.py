"""Decision rules: frozen arrays, the scores they give, and the public map that stands in front of them.

Not estimators: a rule knows neither labels nor where it came from. Every head ends in one.
"""

from privstats.heads.rules.linear import LinearRule, WhitenedRule
from privstats.heads.rules.low_rank import DiagonalRule, LowRankRule
from privstats.heads.rules.preprocessing import Preprocessing, as_numpy
from privstats.heads.rules.quadratic import QuadraticRule
from privstats.heads.rules.rule import Rule, rule_of

__all__ = [
    "DiagonalRule",
    "LinearRule",
    "LowRankRule",
    "Preprocessing",
    "QuadraticRule",
    "Rule",
    "WhitenedRule",
    "as_numpy",
    "rule_of",
]
