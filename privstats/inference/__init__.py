"""Publishable tables from a release: estimates with intervals and p-values that stay valid under its noise.

Everything is post-processing of a :class:`~privstats.Release` and costs no privacy. One claim holds throughout: **at
most a fraction alpha of releases report an interval that misses**, under a table's assumptions. A parameter is *not
reported* where noise makes its interval unbounded: the interval is (-inf, inf), or 0 to 1 for a share, tables show no
estimate, and its ``reported`` is False.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.inference.column_proportionality import ColumnProportionality as ColumnProportionality
    from privstats.inference.counts.averages import Average as Average
    from privstats.inference.counts.averages import averages as averages
    from privstats.inference.counts.missing_values import MissingTable as MissingTable
    from privstats.inference.counts.missing_values import MissingValues as MissingValues
    from privstats.inference.counts.missing_values import missing_values as missing_values
    from privstats.inference.counts.restricted_means import RestrictedMeans as RestrictedMeans
    from privstats.inference.counts.restricted_means import restricted_means as restricted_means
    from privstats.inference.counts.risks import Incidence as Incidence
    from privstats.inference.counts.risks import RisksAt as RisksAt
    from privstats.inference.counts.risks import cumulative_incidence as cumulative_incidence
    from privstats.inference.counts.risks import risks_at as risks_at
    from privstats.inference.counts.statistics import Chi2 as Chi2
    from privstats.inference.counts.statistics import Confusion as Confusion
    from privstats.inference.counts.statistics import Histogram as Histogram
    from privstats.inference.counts.statistics import Quantile as Quantile
    from privstats.inference.counts.statistics import chi2_contingency as chi2_contingency
    from privstats.inference.counts.statistics import confusion as confusion
    from privstats.inference.counts.statistics import histogram as histogram
    from privstats.inference.counts.statistics import proportions as proportions
    from privstats.inference.counts.statistics import quantile as quantile
    from privstats.inference.counts.survival import FollowUp as FollowUp
    from privstats.inference.counts.survival import SurvivalCurve as SurvivalCurve
    from privstats.inference.counts.survival import SurvivalCurves as SurvivalCurves
    from privstats.inference.counts.survival import follow_up as follow_up
    from privstats.inference.counts.survival import kaplan_meier as kaplan_meier
    from privstats.inference.counts.table import Interval as Interval
    from privstats.inference.counts.two_groups import LogRank as LogRank
    from privstats.inference.counts.two_groups import Proportionality as Proportionality
    from privstats.inference.counts.two_groups import logrank_test as logrank_test
    from privstats.inference.counts.two_groups import proportionality_test as proportionality_test
    from privstats.inference.e_values import EValue as EValue
    from privstats.inference.e_values import e_value as e_value
    from privstats.inference.figures import plot_explanation as plot_explanation
    from privstats.inference.figures import plot_score as plot_score
    from privstats.inference.figures import plot_scorecard as plot_scorecard
    from privstats.inference.figures import plot_survival as plot_survival
    from privstats.inference.forecasts import Forecast as Forecast
    from privstats.inference.forecasts import ForecastRow as ForecastRow
    from privstats.inference.forecasts import forecast as forecast
    from privstats.inference.forest import plot_balance as plot_balance
    from privstats.inference.forest import plot_forest as plot_forest
    from privstats.inference.frame_columns import FRAME_COLUMNS as FRAME_COLUMNS
    from privstats.inference.frame_columns import FrameColumn as FrameColumn
    from privstats.inference.groups.means import GroupMeans as GroupMeans
    from privstats.inference.groups.means import table_one as table_one
    from privstats.inference.groups.shares import GroupShares as GroupShares
    from privstats.inference.hazard_ratios import HazardRatios as HazardRatios
    from privstats.inference.hazard_ratios import hazards as hazards
    from privstats.inference.head_curves import Reliability as Reliability
    from privstats.inference.head_curves import RocCurve as RocCurve
    from privstats.inference.head_scores import HeadScore as HeadScore
    from privstats.inference.head_scores import head_score as head_score
    from privstats.inference.paragraph import methods as methods
    from privstats.inference.prediction import HalfWidth as HalfWidth
    from privstats.inference.prediction import predicted_half_width as predicted_half_width
    from privstats.inference.regression.cell_table import CellTable as CellTable
    from privstats.inference.regression.clipping import Saturation as Saturation
    from privstats.inference.regression.interactions import InteractionTest as InteractionTest
    from privstats.inference.regression.linear import ols as ols
    from privstats.inference.regression.score import logit as logit
    from privstats.inference.regression.score import poisson as poisson
    from privstats.inference.regression.sites import MixedRegression as MixedRegression
    from privstats.inference.regression.sites import fixed_effects as fixed_effects
    from privstats.inference.regression.sites import mixed as mixed
    from privstats.inference.regression.table import ContrastTest as ContrastTest
    from privstats.inference.regression.table import Regression as Regression
    from privstats.inference.scorecard_table import Explanation as Explanation
    from privstats.inference.scorecard_table import Scorecard as Scorecard
    from privstats.inference.scorecard_table import scorecard as scorecard
    from privstats.inference.summary import Summary as Summary
    from privstats.inference.treatment_effects.arm_table import ArmTable as ArmTable
    from privstats.inference.treatment_effects.balance import Balance as Balance
    from privstats.inference.treatment_effects.looks import FinalEffect as FinalEffect
    from privstats.inference.treatment_effects.looks import Look as Look
    from privstats.inference.treatment_effects.looks import LookTable as LookTable
    from privstats.inference.treatment_effects.looks import looks as looks
    from privstats.inference.treatment_effects.rows import EffectRows as EffectRows
    from privstats.inference.treatment_effects.rows import Verdict as Verdict
    from privstats.inference.treatment_effects.rows import effects as effects
    from privstats.inference.treatment_effects.subgroup_tests import SubgroupTest as SubgroupTest
    from privstats.inference.treatment_effects.table import EffectTable as EffectTable
    from privstats.inference.treatment_effects.table import effect as effect
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.inference.column_proportionality": ["ColumnProportionality"],
            "privstats.inference.counts.averages": ["Average", "averages"],
            "privstats.inference.counts.missing_values": ["MissingTable", "MissingValues", "missing_values"],
            "privstats.inference.counts.restricted_means": ["RestrictedMeans", "restricted_means"],
            "privstats.inference.counts.risks": ["Incidence", "RisksAt", "cumulative_incidence", "risks_at"],
            "privstats.inference.counts.statistics": [
                "Chi2",
                "Confusion",
                "Histogram",
                "Quantile",
                "chi2_contingency",
                "confusion",
                "histogram",
                "proportions",
                "quantile",
            ],
            "privstats.inference.counts.survival": [
                "FollowUp",
                "SurvivalCurve",
                "SurvivalCurves",
                "follow_up",
                "kaplan_meier",
            ],
            "privstats.inference.counts.table": ["Interval"],
            "privstats.inference.counts.two_groups": [
                "LogRank",
                "Proportionality",
                "logrank_test",
                "proportionality_test",
            ],
            "privstats.inference.e_values": ["EValue", "e_value"],
            "privstats.inference.figures": ["plot_explanation", "plot_score", "plot_scorecard", "plot_survival"],
            "privstats.inference.forecasts": ["Forecast", "ForecastRow", "forecast"],
            "privstats.inference.forest": ["plot_balance", "plot_forest"],
            "privstats.inference.frame_columns": ["FRAME_COLUMNS", "FrameColumn"],
            "privstats.inference.groups.means": ["GroupMeans", "table_one"],
            "privstats.inference.groups.shares": ["GroupShares"],
            "privstats.inference.hazard_ratios": ["HazardRatios", "hazards"],
            "privstats.inference.head_curves": ["Reliability", "RocCurve"],
            "privstats.inference.head_scores": ["HeadScore", "head_score"],
            "privstats.inference.paragraph": ["methods"],
            "privstats.inference.prediction": ["HalfWidth", "predicted_half_width"],
            "privstats.inference.regression.cell_table": ["CellTable"],
            "privstats.inference.regression.clipping": ["Saturation"],
            "privstats.inference.regression.interactions": ["InteractionTest"],
            "privstats.inference.regression.linear": ["ols"],
            "privstats.inference.regression.score": ["logit", "poisson"],
            "privstats.inference.regression.sites": ["MixedRegression", "fixed_effects", "mixed"],
            "privstats.inference.regression.table": ["ContrastTest", "Regression"],
            "privstats.inference.scorecard_table": ["Explanation", "Scorecard", "scorecard"],
            "privstats.inference.summary": ["Summary"],
            "privstats.inference.treatment_effects.arm_table": ["ArmTable"],
            "privstats.inference.treatment_effects.balance": ["Balance"],
            "privstats.inference.treatment_effects.looks": ["FinalEffect", "Look", "LookTable", "looks"],
            "privstats.inference.treatment_effects.rows": ["EffectRows", "Verdict", "effects"],
            "privstats.inference.treatment_effects.subgroup_tests": ["SubgroupTest"],
            "privstats.inference.treatment_effects.table": ["EffectTable", "effect"],
        },
    )
