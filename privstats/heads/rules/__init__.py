"""Decision rules: numbers alone, without labels or provenance."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.heads.rules.low_rank import DiagonalRule as DiagonalRule
    from privstats.heads.rules.low_rank import LowRankRule as LowRankRule
    from privstats.heads.rules.paired import PairedRule as PairedRule
    from privstats.heads.rules.quadratic import QuadraticRule as QuadraticRule
    from privstats.heads.rules.rule import LinearRule as LinearRule
    from privstats.heads.rules.rule import Preprocessing as Preprocessing
    from privstats.heads.rules.rule import Rule as Rule
    from privstats.heads.rules.rule import WhitenedRule as WhitenedRule
    from privstats.heads.rules.rule import as_numpy as as_numpy
    from privstats.heads.rules.rule import local as local
    from privstats.heads.rules.rule import rows_of as rows_of
    from privstats.heads.rules.rule import rule_of as rule_of
    from privstats.heads.rules.rule import take_columns as take_columns
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.heads.rules.low_rank": ["DiagonalRule", "LowRankRule"],
            "privstats.heads.rules.paired": ["PairedRule"],
            "privstats.heads.rules.quadratic": ["QuadraticRule"],
            "privstats.heads.rules.rule": [
                "LinearRule",
                "Preprocessing",
                "Rule",
                "WhitenedRule",
                "as_numpy",
                "local",
                "rows_of",
                "rule_of",
                "take_columns",
            ],
        },
    )
