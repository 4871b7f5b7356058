"""Tables that one may publish from a release: estimates with intervals and p-values that stay true under its noise.

Everything here is post-processing of a :class:`~privstats.Release` and costs no privacy. One claim holds throughout:
**at most a fraction alpha of releases report an interval that misses**; a parameter whose interval noise makes
unbounded is *not told*: its interval is (-inf, inf) and tables show no estimate.

``evidence`` reads the release; ``inversion`` and ``parts`` compute; ``score`` says whether rounds have arrived,
``clipping`` what a clip may have done to targets. ``regression``, ``sites``, ``effect_rows``, ``hazard_ratios`` and
``head_scores`` are what people call. ``summary`` prints, with ``reporting`` for what every table says of its releases;
``paragraph`` writes a paper's Methods; ``figure`` and ``forest`` draw in the style of ``drawing``.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.inference.balance import Balance as Balance
    from privstats.inference.cell_table import CellTable as CellTable
    from privstats.inference.clipping import Saturation as Saturation
    from privstats.inference.counts import Interval as Interval
    from privstats.inference.effect_rows import EffectRows as EffectRows
    from privstats.inference.effect_rows import effects as effects
    from privstats.inference.effect_table import EffectTable as EffectTable
    from privstats.inference.effect_table import effect as effect
    from privstats.inference.figure import plot_explanation as plot_explanation
    from privstats.inference.figure import plot_scorecard as plot_scorecard
    from privstats.inference.figure import plot_survival as plot_survival
    from privstats.inference.forest import plot_balance as plot_balance
    from privstats.inference.forest import plot_forest as plot_forest
    from privstats.inference.frame_columns import FRAME_COLUMNS as FRAME_COLUMNS
    from privstats.inference.frame_columns import FrameColumn as FrameColumn
    from privstats.inference.group_means import GroupMeans as GroupMeans
    from privstats.inference.group_means import table_one as table_one
    from privstats.inference.group_shares import GroupShares as GroupShares
    from privstats.inference.hazard_ratios import HazardRatios as HazardRatios
    from privstats.inference.hazard_ratios import hazards as hazards
    from privstats.inference.head_scores import HeadScore as HeadScore
    from privstats.inference.head_scores import head_score as head_score
    from privstats.inference.logrank import LogRank as LogRank
    from privstats.inference.logrank import logrank_test as logrank_test
    from privstats.inference.paragraph import methods as methods
    from privstats.inference.prediction import HalfWidth as HalfWidth
    from privstats.inference.prediction import predicted_half_width as predicted_half_width
    from privstats.inference.proportionality import Proportionality as Proportionality
    from privstats.inference.proportionality import proportionality_test as proportionality_test
    from privstats.inference.regression import ContrastTest as ContrastTest
    from privstats.inference.regression import Regression as Regression
    from privstats.inference.regression import ols as ols
    from privstats.inference.reliability import Reliability as Reliability
    from privstats.inference.roc import RocCurve as RocCurve
    from privstats.inference.score import logit as logit
    from privstats.inference.score import poisson as poisson
    from privstats.inference.score_figure import plot_score as plot_score
    from privstats.inference.scorecards import Explanation as Explanation
    from privstats.inference.scorecards import Scorecard as Scorecard
    from privstats.inference.scorecards import scorecard as scorecard
    from privstats.inference.sites import MixedRegression as MixedRegression
    from privstats.inference.sites import fixed_effects as fixed_effects
    from privstats.inference.sites import mixed as mixed
    from privstats.inference.summary import Summary as Summary
    from privstats.inference.survival import SurvivalCurve as SurvivalCurve
    from privstats.inference.survival import SurvivalCurves as SurvivalCurves
    from privstats.inference.survival import kaplan_meier as kaplan_meier
    from privstats.inference.tables import Chi2 as Chi2
    from privstats.inference.tables import Confusion as Confusion
    from privstats.inference.tables import Histogram as Histogram
    from privstats.inference.tables import chi2_contingency as chi2_contingency
    from privstats.inference.tables import confusion as confusion
    from privstats.inference.tables import histogram as histogram
    from privstats.inference.tables import proportions as proportions
    from privstats.inference.tables import quantile as quantile
else:
    __getattr__, __dir__ = lazy_names(__name__)
