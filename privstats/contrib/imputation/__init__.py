"""Fit regressions to columns with gaps, by imputation on masked, noisy sums or counts."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.imputation.gaps import by_gaps as by_gaps
    from privstats.contrib.imputation.gaps import schema_of as schema_of
    from privstats.contrib.imputation.linear import ols as ols
    from privstats.contrib.imputation.odds_table import ImputedOdds as ImputedOdds
    from privstats.contrib.imputation.odds_table import logit as logit
    from privstats.contrib.imputation.risk_table import Measure as Measure
    from privstats.contrib.imputation.risk_table import Risks as Risks
    from privstats.contrib.imputation.risk_table import risks as risks
    from privstats.contrib.imputation.table_reader import SHARES as SHARES
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.imputation.gaps": ["by_gaps", "schema_of"],
            "privstats.contrib.imputation.linear": ["ols"],
            "privstats.contrib.imputation.odds_table": ["ImputedOdds", "logit"],
            "privstats.contrib.imputation.risk_table": ["Measure", "Risks", "risks"],
            "privstats.contrib.imputation.table_reader": ["SHARES"],
        },
    )
