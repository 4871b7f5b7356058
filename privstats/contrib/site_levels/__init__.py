"""Fit linear and logistic regressions with a random intercept by site, from masked, noisy sums."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.site_levels.logit_table import random_intercept_logit as random_intercept_logit
    from privstats.contrib.site_levels.logit_table import site_round as site_round
    from privstats.contrib.site_levels.table import LevelsRegression as LevelsRegression
    from privstats.contrib.site_levels.table import random_intercept as random_intercept
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.contrib.site_levels.logit_table": ["random_intercept_logit", "site_round"],
            "privstats.contrib.site_levels.table": ["LevelsRegression", "random_intercept"],
        },
    )
