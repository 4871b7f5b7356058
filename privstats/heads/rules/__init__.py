"""Decision rules: frozen arrays, the scores they give, and the public map in front of them.

Every head ends in a rule. A rule holds numbers alone: no labels and no provenance.
"""

from privstats.heads.rules.hidden import HiddenRule
from privstats.heads.rules.linear import LinearRule, WhitenedRule
from privstats.heads.rules.low_rank import DiagonalRule, LowRankRule
from privstats.heads.rules.preprocessing import Preprocessing, as_numpy, rows_of, take_columns
from privstats.heads.rules.quadratic import QuadraticRule
from privstats.heads.rules.rule import Rule, rule_of

__all__ = [
    "DiagonalRule",
    "HiddenRule",
    "LinearRule",
    "LowRankRule",
    "Preprocessing",
    "QuadraticRule",
    "Rule",
    "WhitenedRule",
    "as_numpy",
    "rows_of",
    "rule_of",
    "take_columns",
]
