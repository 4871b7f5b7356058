"""Deliberate bugs of what is read from a release, and of the bounds of what is measured for it.

Rows of the table in ``catalogue``. No audit of sessions sees the first ones: those look at what is drawn and released,
and ``audit inference`` is not among them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from privstats.inference.inversion import Inversion, quantile
from privstats.schema import ClassSchema
from tests.mutation.mutant import Mutant
from tests.mutation.planting import member, name_in, row_in

__all__ = ["READERS"]

_INVERSION = "tests/inference/test_inversion.py::"
_LAST_STEP = "tests/inference/test_last_step.py::"
_CLIPPING = "tests/inference/test_clipping.py::"
_COUNTS = "tests/inference/test_counts.py::"
_POWERS = "tests/moments/test_power_sums.py::"
_LINES = "tests/moments/test_csv_lines.py::"
_SCORE = "tests/inference/test_score.py::"


def _nothing(inversion: Inversion) -> Any:
    return np.zeros(len(inversion.contrasts))


def _without_noise(right: Any) -> Any:
    return lambda release, *names: replace(right(release, *names), sigma=0.0)


def _of_the_clipped(mean: float, square: float, bound: float) -> float:
    deviation = max(square - mean**2, 1e-12) ** 0.5
    return float(ndtr((-bound - mean) / deviation) + ndtr((mean - bound) / deviation))


READERS: dict[str, Mutant] = {
    "intervals without the noise": Mutant(
        "a regression's intervals leave the noise in the sums out",
        member(Inversion, "_noise", property(_nothing)),
        "",
        (_INVERSION + "test_an_interval_about_the_exact_sums_is_of_the_noise_alone",),
        (),
    ),
    "counts taken for exact": Mutant(
        "shares, quantiles and tests of count tables forget the noise in the counts",
        name_in("privstats.inference.tables", "count_table", _without_noise),
        "",
        (_COUNTS + "test_shares_quantiles_and_independence_hold_under_noise",),
        (),
    ),
    "count tables priced as one": Mutant(
        "a record is priced for one table, however many it counts in",
        row_in("privstats.dp.sensitivities", "_SQUARES", "counts", lambda right: lambda _, weights, __: weights["T"]),
        "",
        (_COUNTS + "test_two_records_that_differ_everywhere_are_the_sensitivity",),
        (),
    ),
    "information always free": Mutant(
        "the information beside a logistic score is never priced",
        name_in("privstats.dp.sensitivities", "_logistic", lambda right: lambda score, information: score),
        "",
        (_SCORE + "test_bounds_hold_on_a_grid_of_all_means",),
        (),
    ),
    "powers without a proof are free": Mutant(
        "a statistic whose sensitivity nobody proved counts as if no record moved it",
        name_in("privstats.dp.sensitivities", "_require_formula", lambda right: lambda weights, covered: None),
        "",
        (_POWERS + "test_no_formula_counts_them_as_free",),
        (),
    ),
    "powers promised": Mutant(
        "a class schema with third and fourth powers admits a promise",
        member(ClassSchema, "refusal", lambda schema, unit: ""),
        "",
        (_POWERS + "test_no_promise_covers_them",),
        (),
    ),
    "early rounds told": Mutant(
        "coefficients of rounds that ended before they arrived are told",
        name_in("privstats.inference.last_step", "_ARRIVED", lambda right: np.inf),
        "",
        (_LAST_STEP + "test_rounds_that_may_leave_more_than_two_errors_are_not_told",),
        (),
    ),
    "falling information told": Mutant(
        "coefficients are told whose information was still falling from round to round",
        name_in("privstats.inference.last_step", "_SETTLED", lambda right: np.inf),
        "",
        (_LAST_STEP + "test_information_that_still_falls_is_not_told",),
        (),
    ),
    "noise in the information taken for none": Mutant(
        "a measured change of the information forgets the noise in it",
        name_in("privstats.inference.last_step", "_SURE", lambda right: 0.0),
        "",
        (_LAST_STEP + "test_noise_in_the_information_counts_as_change",),
        (),
    ),
    "intervals without what a step leaves": Mutant(
        "intervals of a logistic regression forget what the last step may have left",
        name_in(
            "privstats.inference.inversion", "folded_quantile", lambda right: lambda alpha, _: quantile(alpha, np.inf)
        ),
        "",
        (_INVERSION + "test_the_worst_bias_is_missed_in_alpha_of_draws",),
        (),
    ),
    "clipped variance taken for the true one": Mutant(
        "the share of clipped targets follows from the variance that the clip left",
        name_in("privstats.inference.clipping", "share_beyond", lambda right: _of_the_clipped),
        "",
        (_CLIPPING + "test_the_share_of_clipped_targets_is_found_however_large_it_is",),
        (),
    ),
    "clipped targets told": Mutant(
        "coefficients are told however many targets were clipped",
        name_in("privstats.inference.clipping", "_MOST", lambda right: 1.0),
        "",
        (_CLIPPING + "test_coefficients_of_clipped_targets_are_not_told_in_any_way",),
        (),
    ),
    "a first record told as names": Mutant(
        "the error for a table without a row of names tells its first record",
        name_in("privstats.moments.record_files", "like_a_record", lambda right: lambda names: False),
        "",
        (_LINES + "test_a_first_record_in_the_place_of_names_is_not_told",),
        (),
    ),
    "kinds of a rehearsal kept": Mutant(
        "the file that a rehearsal keeps says what it took the columns for",
        name_in("privstats.plan.columns", "OPEN", lambda right: "numeric"),
        "",
        ("tests/cli/test_try.py::test_no_cell_of_a_file_is_told_but_the_lists_that_are_said",),
        (),
    ),
    "a plan of a rehearsal": Mutant(
        "the plan on a rehearsal's page holds words that nobody chose",
        name_in("privstats.workflows.rehearsal.page", "_OPEN", lambda right: "local"),
        "",
        ("tests/cli/test_try.py::test_the_plan_on_the_page_says_nothing_that_was_read_or_chosen_here",),
        (),
    ),
}
