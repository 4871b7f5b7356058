"""Define the columns of every ``to_frame``: one name, one meaning, after R's broom with underscores."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_UNIT = "that of the estimate"
_RECORDS = "records"


class FrameColumn(NamedTuple):
    """A column of a frame; ``unit`` is of numbers, else ``"text"`` or ``"True, False"``.

    Example:
        >>> ps.inference.FRAME_COLUMNS["p_value"].unit
        '0 to 1'
    """

    meaning: str
    unit: str


FRAME_COLUMNS: Mapping[str, FrameColumn] = MappingProxyType(
    {
        "term": FrameColumn("parameter of a regression: a column, or `const`", "text"),
        "variable": FrameColumn("column of the records", "text"),
        "level": FrameColumn("value of the variable, or interval between two of its cut points", "text"),
        "compared_with": FrameColumn(
            "value that the level is compared with: an estimate is of the level less this one, a ratio over it", "text"
        ),
        "reference": FrameColumn("whether other levels of the variable are compared with this one", "True, False"),
        "group": FrameColumn("records that are compared with others: a class, or a level of `by`", "text"),
        "outcome": FrameColumn("outcome of the effect", "text"),
        "subgroup": FrameColumn("subgroup of the effect; empty for all records", "text"),
        "measure": FrameColumn("`difference` or `ratio`", "text"),
        "estimand": FrameColumn("population of the effect: `ate`, `att` or `overlap`", "text"),
        "declared": FrameColumn("`primary` or `secondary` before the first session, else `exploratory`", "text"),
        "metric": FrameColumn(
            "quantity of a head, or of an arm: `risk`, `adjusted risk`, `mean`, `difference`, `ratio`", "text"
        ),
        "class": FrameColumn("class of the row; empty for all", "text"),
        "time": FrameColumn("end of the bin, or its own time where every bin is one", "that of the variable of times"),
        "estimate": FrameColumn(
            "coefficient, contrast, effect or metric",
            "outcome per unit of the column; logarithms in logistic, Poisson and hazard models",
        ),
        "std_error": FrameColumn("standard error, sampling and noise together", _UNIT),
        "noise_std_error": FrameColumn("standard error from the release's noise alone", _UNIT),
        "statistic": FrameColumn("test statistic of an estimate of 0", "standard deviations"),
        "df": FrameColumn(
            "degrees of freedom of Student's law of the row's p-value and interval; infinite for the normal law",
            "degrees",
        ),
        "test_df": FrameColumn("degrees of freedom of the test of equal groups", "degrees"),
        "p_value": FrameColumn("of the two-sided test of an estimate of 0", "0 to 1"),
        "adj_p_value": FrameColumn("the same, by Holm over rows of one declaration; NaN if exploratory", "0 to 1"),
        "conf_low": FrameColumn(
            "lower end of the interval of the row's number; of a quartile, the edge of its bins", "that of the number"
        ),
        "conf_high": FrameColumn("upper end of it", "that of the number"),
        "odds_ratio": FrameColumn("exp of the estimate, logistic regression", "ratio per unit of the column"),
        "rate_ratio": FrameColumn("exp of the estimate, Poisson regression", "ratio per unit of the column"),
        "hazard_ratio": FrameColumn("exp of the estimate, proportional hazards", "ratio per unit of the column"),
        "ratio_low": FrameColumn("lower end of the ratio's interval", "ratio"),
        "ratio_high": FrameColumn("upper end of it", "ratio"),
        "counted": FrameColumn(
            "share of the events up to the last edge that count before the cap; NaN where it is not reported", "0 to 1"
        ),
        "look": FrameColumn("number of the interim look, from 1", "looks"),
        "nominal_level": FrameColumn(
            "two-sided level of the look, below which a p-value crosses its boundary", "0 to 1"
        ),
        "boundary": FrameColumn("boundary of the absolute statistic at the look", "standard deviations"),
        "final_estimate": FrameColumn(
            "median-unbiased effect of a trial that ended at the look; NaN at its other looks", _UNIT
        ),
        "final_low": FrameColumn("lower end of its interval", _UNIT),
        "final_high": FrameColumn("upper end of it", _UNIT),
        "crossed": FrameColumn("whether the p-value is below the look's level", "True, False"),
        "n": FrameColumn("records of the row, noisy where the release is", _RECORDS),
        "n_std_error": FrameColumn("standard error of the noise in `n`; 0 for an exact number", _RECORDS),
        "n_group": FrameColumn("records of the group, noisy where the release is: the denominator", _RECORDS),
        "n_group_std_error": FrameColumn("standard error of the noise in `n_group`", _RECORDS),
        "proportion": FrameColumn("share of the records of the group, or of all where there is none", "0 to 1"),
        "mean": FrameColumn("mean of the variable in the group", "that of the variable"),
        "std_dev": FrameColumn("standard deviation of the variable in the group", "that of the variable"),
        "smd": FrameColumn("standardised mean difference of two groups", "standard deviations"),
        "smd_low": FrameColumn("lower end of its interval, for these records under the noise", "standard deviations"),
        "smd_high": FrameColumn("upper end of it", "standard deviations"),
        "mean_treated": FrameColumn("mean of the variable among the treated", "that of the variable"),
        "mean_others": FrameColumn("the same among the others", "that of the variable"),
        "weighted_smd": FrameColumn("`smd` after weighting both arms", "standard deviations"),
        "weighted_smd_low": FrameColumn("lower end of its interval", "standard deviations"),
        "weighted_smd_high": FrameColumn("upper end of it", "standard deviations"),
        "n_risk": FrameColumn("records at risk, noisy where the release is", _RECORDS),
        "n_event": FrameColumn("records with the event, noisy where the release is", _RECORDS),
        "n_risk_std_error": FrameColumn("standard error of the noise in `n_risk`", _RECORDS),
        "n_event_std_error": FrameColumn("standard error of the noise in `n_event`", _RECORDS),
        "survival": FrameColumn("estimate of survival", "0 to 1"),
        "cause": FrameColumn("event that rules the others out", "text"),
        "incidence": FrameColumn("share that had this event first, up to the time", "0 to 1"),
        "points": FrameColumn("what the level adds to the score", "log odds"),
        "discrepancy": FrameColumn("root mean square by which a sum of points misses a record's score", "log odds"),
        "test": FrameColumn(
            "`interaction`, or the claim about a declared margin: `non-inferiority`, `equivalence` or `superiority`",
            "text",
        ),
        "margin_low": FrameColumn("lower end of the declared margin; empty without one", "that of the measure"),
        "margin_high": FrameColumn("upper end of it", "that of the measure"),
        "shown": FrameColumn("whether the claim about the margin is shown at its one-sided level", "True, False"),
        "reported": FrameColumn(
            "whether the row is reported; where noise hides it, its estimate is NaN", "True, False"
        ),
    }
)
"""Every column of every ``to_frame``, and of the rows of ``privstats table --format json``, by name."""
