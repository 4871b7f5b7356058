"""Decision rules: frozen arrays, the scores they give, and the public map that stands in front of them.

Not estimators: a rule knows neither labels nor where it came from. Every head ends in one.
"""

from privstats.heads.rules.linear import LinearRule
from privstats.heads.rules.low_rank import DiagonalRule, LowRankRule
from privstats.heads.rules.quadratic import QuadraticRule
from privstats.heads.rules.rule import Rule, rule_of
from privstats.heads.rules.surface import Surface, as_numpy
from privstats.heads.rules.whitened import WhitenedRule

__all__ = [
    "DiagonalRule",
    "LinearRule",
    "LowRankRule",
    "QuadraticRule",
    "Rule",
    "Surface",
    "WhitenedRule",
    "as_numpy",
    "rule_of",
]
