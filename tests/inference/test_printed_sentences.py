"""Each sentence under a table is held by a world at its edge, and this page says by which.

The sentences come from the tables themselves, one of every kind and one of each variant that prints other sentences
(``tests/inference/printed_variants.py``). A new sentence fails here until it has its world.
"""

import ast
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import privstats as ps
from benchmarks.inference.stretched import EDGES
from benchmarks.measuring import results
from privstats.transforms import ConstantFeature
from tests.inference.planted_tables import WRONG
from tests.inference.planted_worlds import CHEAP, COURSES
from tests.inference.printed_variants import VARIANTS
from tests.inference.test_descriptions import MAKERS
from tests.inference.test_descriptions import WORLDS as DESCRIBED
from tests.inference.test_frame_columns import EXAMPLES

pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
inf = ps.inference
ROOT = Path(__file__).parents[2]
EDGE = "world: "
"""Begins the title of a table of worlds in ``benchmarks.inference.stretched``."""
ROWS = "rows: "
"""Begins a benchmark's name and the title of its stored table, as ``rows: inference.effects: trials``."""
TRUST = "trust: "
"""Begins a file of the tests of a promise that no draw of records can try."""

_COURSE = "tests/hazard/test_course.py"
_RATIOS = "tests/hazard/test_audit.py::test_hazard_ratios_keep_their_claim"
_EFFECTS = "tests/inference/test_effects.py::test_intervals_of_a_trial_hold"
_FIRST = "tests/inference/test_first_table.py"
_SHARES = f"{_FIRST}::test_shares_cover_under_noise_and_a_hidden_group_has_none"
_BANDS = "tests/inference/test_scorecards.py::test_bands_hold_what_the_same_records_give_without_noise"
_PLAN = f"{TRUST}tests/inference/test_summary.py"
_BY_COLUMN = (
    "tests/hazard/test_column_proportionality.py::"
    "test_a_constant_ratio_is_rejected_beside_a_correlated_one_that_changes_and_the_table_says_so"
)
_WHOLE_BINS = f"{_COURSE}::test_a_plan_that_does_not_say_what_a_bin_is_runs_as_it_did_and_its_table_says_so_first"
_INFORMS = "tests/inference/test_hidden_levels.py::test_what_no_record_informs_costs_its_own_row_alone"
_NO_MORE_ROUNDS = f"{_COURSE}::test_rounds_are_no_advice_where_noise_hides_the_last_step"
_MORE_ROUNDS = f"{_COURSE}::test_more_rounds_are_the_advice_where_they_would_help"
_ADJUSTED = "tests/inference/test_effects.py::test_an_adjusted_difference_says_first_what_no_sum_can_test"
_HIDES_WHO = "tests/inference/test_effects.py::test_no_propensity_within_the_trim_adds_more_than_the_bound"
_INCOMPLETE = f"{ROWS}inference.missing_outcomes: other worlds"
_EXCLUDED = "tests/workflows/test_exclusions.py::test_the_number_of_excluded_records_stands_where_the_release_has_it"
_LEFT_OUT = "tests/inference/test_left_out.py::test_the_table_has_records_left_out_by_arm_and_reason_and_they_add_up"

_LEVELS = "tests/contrib/site_levels"
_LOOKS = "tests/inference/test_looks.py::test_no_effect_rarely_crosses_any_boundary"
_FEW_AT_RISK = "tests/inference/test_survival.py::test_a_table_of_exact_counts_names_the_rows_with_few_at_risk"
_CUT = "tests/inference/test_overdispersion.py::test_a_table_states_the_share_of_counts_that_were_cut"
_LATE = "tests/inference/test_late_entry.py::test_curves_and_tests_keep_their_level"
_AT_RISK = "tests/inference/test_late_entry.py::test_the_number_at_risk_has_a_legend"
_ENTRY = "tests/hazard/test_entry.py::test_intervals_of_ratios_keep_their_level"
_GAPS = "tests/inference/test_missing_values.py::test_counts_and_intervals_without_noise_are_those_of_the_records"

_IMPUTED = f"{ROWS}inference.imputation_cells: gaps in covariates"
_HIDDEN = "tests/contrib/imputation/test_cells.py::test_what_noise_hides_is_not_reported_and_says_why"
_STANDARDISED = "tests/contrib/imputation/test_cells.py::test_risks_without_gaps_are_standardised_over_the_others"

_DESCRIBED = "tests/inference/test_descriptions.py"
_NOISY_COUNTS = f"{_DESCRIBED}::test_a_count_says_that_it_is_noisy_exactly_where_it_is"

WORLDS: dict[str, str] = {
    r"missing: [^;]+ \d+ %; no sum can test that values are missing at random: where a gap depends on the value "
    "itself, complete cases may be right and this table wrong": _IMPUTED,
    "values missing at random given the table's other variables": _IMPUTED,
    "no product of three variables in the cells' log probabilities": _IMPUTED,
    r"a (coefficient|risk) is not reported where noise moves its log odds by more than a sixth, or where hardly a "
    "record tells of it: cross fewer variables or values, or release more records": _HIDDEN,
    r"Differences and ratios are to \w+, over the [\w ]+ of all records\.": _STANDARDISED,
    r"Fewer than 20 records are at risk at [^.]+\. Do not rely on intervals there: where 5% was stated, up to 13% "
    r"missed, and up to 22% of a median's\.": _FEW_AT_RISK,
    r"Counts above target_bound, [\d.]+, were cut, which pulls coefficients toward 0\. The sums do not show how many "
    r"were, and no interval of a coefficient allows for it: where 0\.1% of counts were cut, 8 to 64% of releases "
    r"missed\. Each party's clip report has its own share\.": _CUT,
    r"At most 5% of releases report an interval that misses, if the assumptions hold\.": f"{EDGE}rounds",
    r'"At risk" is the number of records under observation at the time of the row\.': _AT_RISK,
    r'"At risk" is the number [a-z ]+ when the bin of the row begins; the time is the bin\'s end\.': _AT_RISK,
    r"'-' means not reported: noise hides it\.": (
        "tests/inference/test_inversion.py::test_told_and_missed_in_at_most_alpha"
    ),
    r"'-' means not reported: noise hides it, or the rounds have not converged\.": _MORE_ROUNDS,
    r"'-' means not reported: these sums do not determine it\.": (
        "tests/inference/test_regression.py::test_clipped_targets_a_coarse_grid_and_collinear_columns_are_noted"
    ),
    r"'-' means not reported: a warning below states the reason(, or the rounds have not converged)?\.": (
        "tests/inference/test_clipping.py::test_coefficients_of_clipped_targets_are_not_told_in_any_way"
    ),
    r"P values and intervals are (of the normal law|Student's t with [\d,.]+ degrees of freedom|Student's t with the "
    r"row's df(: [\w (),]+)?)\.": f"{_DESCRIBED}::test_p_value_and_interval_follow_from_the_printed_row",
    r"An interval holds every value that its test does not reject, .* about the estimate\.": (
        f"{_DESCRIBED}::test_p_value_and_interval_follow_from_the_printed_row"
    ),
    r"df can fall with a larger epsilon: .* They rise again where little of the variance is noise\.": (
        f"{_DESCRIBED}::test_degrees_fall_as_noise_leaves_the_variance_and_rise_again"
    ),
    r"std err is estimated from few parts, .* by chance\.": (
        f"{_DESCRIBED}::test_a_standard_error_of_few_parts_can_be_below_that_of_the_noise"
    ),
    r"Numbers of records and events are noisy, .* need not add up\.": _NOISY_COUNTS,
    r"Numbers at risk are noisy too, .* may exceed the one before it\.": _NOISY_COUNTS,
    r"Each number of events has a noise of standard error [\d.,]+\.": _NOISY_COUNTS,
    r"Numbers of cells are noisy, .* add up to the group's records\.": _NOISY_COUNTS,
    r"Numbers of ones are noisy, with standard errors of .*\)\.": _NOISY_COUNTS,
    r"P: chi-squared test with .* noise in its covariance\.": (
        "tests/inference/test_counts.py::test_a_p_value_of_nearly_empty_cells_is_simulated"
    ),
    r"P: Welch's t with df degrees of freedom; of shares the chi-squared test with 1\.": (
        f"{_FIRST}::test_shares_tests_and_differences_of_0_and_1_hold_under_noise"
    ),
    r"Median \[first quartile; third quartile\]: .* inside a bin\.": (
        f"{_DESCRIBED}::test_medians_of_bins_are_the_bins_and_their_columns_have_a_denominator"
    ),
    r"P values and intervals of ratios are on the scale of logarithms, intervals of risks on that of log odds\.": (
        "tests/contrib/imputation/test_cells.py::test_risks_without_gaps_are_standardised_over_the_others"
    ),
    r"Exact sums: no differential privacy\.": _PLAN,
    r"Privacy: epsilon [\d.]+, [^.]+, model central, while [^.]+\.": _PLAN,
    r"Privacy: exact: no promise\.": _PLAN,
    r"Plan \w{16}, \d+ of \d+ clients\.": _PLAN,
    # assumptions
    "honest clients": f"{TRUST}tests/session/test_session.py",
    "independent records(?! that)": f"{EDGE}shares and quantiles",
    "independent persons": _RATIOS,
    "negligible clipping": f"{EDGE}linear regression, one residual variance",
    "the model is linear": f"{EDGE}linear regression, 20 folds",
    "residuals have one variance whatever the columns are": f"{EDGE}linear regression, one residual variance",
    "log odds are linear in the columns": f"{EDGE}rounds",
    "log mean counts are linear in the columns": (
        "tests/inference/test_robust.py::test_of_hundreds_of_releases_no_more_miss_than_is_claimed"
    ),
    "the variance of counts with equal columns equals their mean": f"{EDGE}rounds, few records",
    "a linear model with the same slopes and normal levels at all sites": (
        "tests/inference/test_sites.py::test_a_random_intercept_covers"
    ),
    "levels independent of columns and site sizes": f"{_LEVELS}/test_fit.py::test_intervals_cover",
    "each record has 1 in exactly one named site and 0 in the others": (
        f"{_LEVELS}/test_table.py::test_records_in_two_sites_or_in_none_are_refused"
    ),
    "a linear model with the same slopes at all sites": f"{EDGE}sites",
    "a linear model with slopes that may differ by site": f"{EDGE}sites",
    "effects of columns add up": (
        "tests/inference/test_cells.py::test_an_interval_of_a_cell_is_told_and_misses_in_at_most_one_release_of_twenty"
    ),
    "proportional hazards given the columns": _RATIOS,
    "censoring independent of the event given the columns": (
        "tests/hazard/test_sums.py::test_the_score_is_unbiased_at_the_truth_however_columns_say_who_leaves"
    ),
    "censoring independent of the events?": f"{EDGE}survival curves",
    "hazards even inside a cell of the counts, or nobody leaves inside it": f"{EDGE}survival curves",
    "hazards even inside a bin, or nobody leaves inside it": f"{EDGE}survival curves",
    "one time zero for all": _RATIOS,
    "one row per person": _RATIOS,
    "each record, a patient or a whole clinic, was assigned by the plan's probability, alone or in permuted blocks and "
    "not together with other records": f"{EDGE}trials",
    "the columns were measured before assignment": f"{EDGE}trials",
    "one outcome per record analysed": f"{EDGE}trials",
    r"whether a record is excluded as unreadable does not depend on its \w+( and event)?( given the columns)?": (
        f"{EDGE}gaps of declared columns"
    ),
    r"Excluded are records that a party cannot read, .* how many of its own\.": _EXCLUDED,
    r"Excluded are records that a party cannot read, such as records with a gap: \d+ \(.*\)\.": _LEFT_OUT,
    r"Excluded here are released records with a gap: in .* \d+( \(.*\))?\.$": _EXCLUDED,
    r"If exclusion depends on more than is assumed, .* through cells of counts\.": f"{EDGE}gaps of declared columns",
    "what one receives does not affect another's outcome": f"{EDGE}trials",
    "means near normal": f"{EDGE}means by group",
    "independent records that the head was not fitted on": f"{EDGE}scores of a head",
    "censoring and entry independent of the event given the columns": _ENTRY,
    "entry independent of the event among those still alive": _LATE,
    "entry before the bin of the exit": _LATE,
    "entries even inside a bin": _LATE,
    # what a table says of itself
    r"Records enter late: survival is of those alive at \d+, and a record is at risk from its entry on\.": _LATE,
    r"Where a column has products, its own row is its effect where the other column of each product is 0, in original "
    r"units; slope_at gives it at other values\.": (
        "tests/inference/test_interactions.py::test_exact_sums_are_statsmodels_on_the_pooled_records"
    ),
    r"Interaction of the treatment with \w+( on \w+)?: P = [<.\d]+ \(Welch's test of equal differences in "
    r"its subgroups, not adjusted for other tests\)\.": (
        "tests/inference/test_interactions.py::test_equal_effects_are_rarely_rejected"
    ),
    r"In at most 5% of trials the interval of any of the looks misses, if the assumptions hold; it is that of the "
    r"look's level\. '-' means not reported: noise hides it, or no alpha is spent yet\.": _LOOKS,
    r"Alpha 0\.05 is spent over \d looks by Pocock's function \(Lan and DeMets 1983\), as declared before the first "
    r"session\. Boundaries count that looks share records and that each has noise of its own\.": _LOOKS,
    r"The effect is assumed to be the same for early and late records\. A trial that goes on after a crossing, or "
    r"stops without one, keeps the claim\.": _LOOKS,
    r"The effect as read at the look that stopped a trial is too far from 0 on average, .* \(Tsiatis, Rosner and Mehta "
    r"1984\)\.": (
        "tests/inference/test_looks.py::test_estimates_are_too_large_in_half_of_trials_and_intervals_miss_in_alpha"
    ),
    r"The budget of all looks was charged before the first; stopping early gives nothing back\.": (
        "tests/inference/test_looks.py::test_one_budget_covers_all_looks_before_the_first"
    ),
    r"Each share is of a column's own missing values: .* an analysis of complete cases leaves out\.": _GAPS,
    r"Whether values are missing at random cannot be seen in these counts\.": _GAPS,
    r"\d+ of \d+ released columns shown\.": _PLAN,
    r"A contrast is the difference to the column's reference cell, other columns equal\.": (
        "tests/inference/test_cells.py::test_the_first_cell_that_holds_records_is_the_reference"
    ),
    r"\* \d+% of the events count: the ratios cover the first part of the follow-up, to a cumulative hazard of 1; "
    r"Cox's ratio over all of it differs where ratios change with time\.": (
        f"{_COURSE}::test_the_table_says_which_share_of_the_events_counts"
    ),
    "A person counts up to a cumulative hazard of 1; where hazards are not proportional, the ratio covers that "
    r"time\.": ("tests/hazard/test_sums.py::test_the_score_is_unbiased_at_the_truth_where_most_pass_the_cap"),
    r"The check of proportionality covers \w+ alone, from the counts\. Not rejecting is no evidence that hazards are "
    r"proportional, and a rejection does not make the ratio wrong: it is then an average over time\.": (
        f"{_COURSE}::test_a_ratio_that_changes_with_time_is_read_as_an_average_over_time"
    ),
    r"A hazard ratio is not a causal effect, even in a trial: it compares persons still at risk, and depends on the "
    r"columns; kaplan_meier of the same releases gives risks\.": (
        f"{_COURSE}::test_the_table_covers_and_says_what_a_ratio_is"
    ),
    r"declared: primary \d+, secondary \d+; digest [^,]+, exploratory: all else\.": _EFFECTS,
    r"Holm's P is adjusted for all declared rows of its family, .* compare it with theirs\.": (
        "tests/inference/test_effects.py::test_a_p_value_is_below_alpha_exactly_where_the_interval_leaves_null_out"
    ),
    r"On .*, the analysis states: nothing\.": _EFFECTS,
    r"The effect is that of assignment: people who did not comply count in their assigned arm\.": _EFFECTS,
    r"Numbers analysed and events describe these records; .* have an outcome\.": (
        "tests/inference/test_left_out.py::test_counts_are_whole_and_never_below_zero_and_intervals_keep_their_level"
    ),
    r"Risks and means by arm are not adjusted, .* are adjusted\.": f"{EDGE}trials",
    r"An adjusted risk or mean averages its arm's regression line .* right or wrong\.": (
        "tests/inference/test_adjusted.py::test_both_means_differ_by_the_effect_and_lie_in_their_intervals"
    ),
    r"SMD: the first group's mean less .* under the noise alone\.": (
        f"{_FIRST}::test_standardised_differences_are_austin_s_and_hold_these_records_under_noise"
    ),
    r"Cells: number .* under the noise alone\.": _SHARES,
    r"Causes compete: an incidence is the share of persons who had this cause first\.": (
        "tests/inference/test_risks.py::test_contrasts_leave_out_what_both_intervals_rule_out"
    ),
    r"A record's score is the base and its points: .* mean points\.": _BANDS,
    r"Points in parentheses: noise alone could show so few records, so they are no finding\.": _BANDS,
    r"Bands cover the points of these records without noise: .* other records\.": _BANDS,
    # warnings
    r"intervals assume that residuals have one variance .* no such assumption\.": f"{EDGE}beyond the edge, variances",
    r"intervals assume that the variance of counts .* assumes no variance\.": f"{EDGE}beyond the edge, variances",
    r"the variance of the levels is at the end of the range that is searched\.": (
        "tests/inference/test_sites.py::test_a_random_intercept_covers"
    ),
    "tau's interval assumes normal levels: with exponential or heavy-tailed ones it missed in up to 40 %": (
        f"{_LEVELS}/test_fit.py::test_skewed_levels_make_taus_interval_miss_and_not_the_coefficients"
    ),
    r"no records in .*: not reported, and excluded from the fit\.": (
        "tests/inference/test_cells.py::test_the_first_cell_that_holds_records_is_the_reference"
    ),
    # tables of other courses, and of broken assumptions
    r"The check of proportionality compares the curves of \w+ in the counts, unadjusted for [^.]+\. It rejects also "
    r"where .* this table's ratios\. Not rejecting is no evidence that hazards are proportional\."
    r"( A course with early_bins tests each column given the others\.)?": (
        f"{_COURSE}::test_the_check_of_curves_is_named_unadjusted_beside_other_columns"
    ),
    r"The check before and after one time compares each column's ratio given the others, .* an average over time\.": (
        _BY_COLUMN
    ),
    "noise hides the last step, and more rounds would not mend that: plan for more events, fewer bins or columns, or "
    "a larger epsilon": _NO_MORE_ROUNDS,
    r"noise hides the last step, and more rounds would not mend that: plan more records, fewer columns, or a larger "
    "epsilon": (
        "tests/inference/test_last_step.py::test_a_step_no_longer_than_noise_makes_it_is_no_reason_for_more_rounds"
    ),
    r"noise hides .*: no record or event is there, or too few to show\. What compares with it is not reported.* Every "
    "other row holds whatever is there": (
        "tests/inference/test_hidden_levels.py::test_intervals_cover_with_a_level_of_few_records_at_a_small_budget"
    ),
    r"[^.:]*: \w and [^.:]*: \w hold the same records, as far as noise shows\. .* Every other row holds whatever is "
    "there": (
        "tests/inference/test_hidden_levels.py::test_of_two_levels_that_hold_the_same_records_the_difference_is_hidden"
    ),
    r"rounds have not converged for .*: few records or events are there, .* Every other row holds whatever is there": (
        _INFORMS
    ),
    r"(ward: C|x0) alone is not reported: |\. Where all records of such a row have one outcome, .* plan reports it": (
        _INFORMS
    ),
    r"Widened: noise hides who is treated in .*\. The interval allows for whatever these records may hold\.": _INFORMS,
    r"Widened: noise hides whose outcome is missing in .*\. The interval allows for .* records may hold\.": _INFORMS,
    r"too few are at risk from bin .* on: end the bins where people's follow-up ends": (
        f"{_COURSE}::test_hidden_ratios_are_not_told"
    ),
    "the rounds ended before they converged: plan six rounds where a ratio above 2 or below .5 is expected": (
        _MORE_ROUNDS
    ),
    "the rounds ended before they converged: plan more rounds, or a public rate= near the mean of the outcome": (
        "tests/inference/test_last_step.py::test_strong_effects_are_missed_no_more_often_than_is_claimed"
    ),
    r"A record that left inside a bin counts as at risk for all of it: biased where groups leave at different "
    r"rates\.": (_WHOLE_BINS),
    "nobody leaves inside a bin, or all groups leave alike": _WHOLE_BINS,
    r"The ratios compare rates of \w+ among persons with neither .* \(cumulative_incidence\)\.": (
        f"{ROWS}inference.hazards: one cause of two, a column of three texts"
    ),
    r"No unmeasured confounding given the columns named in the plan: no sum can test this\.": _ADJUSTED,
    "the columns were measured before treatment": f"{ROWS}inference.effects: overlap weights, confounded",
    "the propensity or the outcome models are right among the records included": (
        f"{ROWS}inference.effects: beyond the trim"
    ),
    r"\d+% of records are in this population; the rest have a published propensity outside .*\.": _ADJUSTED,
    r"It is about \d+% of all records: the treated, except those that have a published propensity above [\d.]+\.": (
        "tests/inference/test_effects.py::test_the_effect_of_the_treated_has_their_influence_and_no_centred_square"
    ),
    r"It is about the records weighted by e \(1 - e\), .* of at most \.25\.": (
        "tests/inference/test_effects.py::test_overlap_is_about_records_weighted_by_the_published_propensity"
    ),
    r"Balance after weighting was not released\.": _ADJUSTED,
    r"After weighting no column's standardised difference is larger than [\d.]+ \(balance table\)\.": (
        "tests/inference/test_risk_ratios.py::test_balance_after_weighting_is_that_of_weighted_means"
    ),
    r"Means are in the units of the columns\. Differences .* and cover noise alone\.": (
        "tests/inference/test_weighted_balance.py::test_the_interval_is_as_wide_as_the_noise_of_both_sums"
    ),
    r"Widened: noise hides along some column who is treated; .* or a larger trim\.": _HIDES_WHO,
    r"Widened: noise hides along some column whose outcome is missing; .* or a larger trim\.": (
        "tests/inference/test_missing_outcomes.py::test_what_noise_or_few_records_hide_widens_the_interval"
    ),
    r"Widened: one record could weigh more than \.4 of a standard error, .* or a narrower range of outcomes\.": (
        "tests/inference/test_effects.py::test_rare_events_in_a_rare_arm_widen_the_interval_where_noise_is_small"
    ),
    r"few are in one arm": "tests/inference/test_effects.py::test_nightly_intervals_of_trials",
    r"The ratio is the mean outcome of those assigned to treatment divided by .* is of a ratio of 1\.": (
        f"{ROWS}inference.effects_by_site: ratios of risks"
    ),
    r"No course was given, so this table does not state what was declared before the first session\.": _EFFECTS,
    r"Outcomes are missing at random given the arm and the columns named in the plan: no sum can test this\.": (
        "tests/inference/test_missing_outcomes.py::test_the_table_is_of_all_records_and_says_first_what_no_sum_can_test"
    ),
    r"\d+% of records are in this population, with and without an outcome; .* of being observed below [\d.]+\.": (
        "tests/inference/test_missing_outcomes.py::test_the_table_is_of_all_records_and_says_first_what_no_sum_can_test"
    ),
    "one outcome per record; the propensity of being observed or the outcome models are right for the records "
    "included": (_INCOMPLETE),
    r"Between \d+ groups of \d+ sites: Q .* No estimate of a single site is released\.": (
        f"{ROWS}inference.effects_by_site: the same effect at all sites"
    ),
    r"Excluded records and those analysed make up an arm\. .* belong in the flow chart\.": _LEFT_OUT,
    r"if targets are normal, [\d.]+% of them are beyond target_bound and were clipped, .* by public knowledge": (
        "tests/inference/test_clipping.py::test_the_share_of_clipped_targets_is_found_however_large_it_is"
    ),
    r"columns are collinear: .* cannot be distinguished": (
        "tests/inference/test_regression.py::test_clipped_targets_a_coarse_grid_and_collinear_columns_are_noted"
    ),
    "the residual variance is estimated over all targets together: intervals are conservative": (
        "tests/inference/test_regression.py::test_one_of_several_targets_has_wider_intervals_and_says_so"
    ),
    r"\d+ of \d+ released contrasts shown\.": _PLAN,
    r"gaps in .* so none is reported: plan Cells.* with its gap cells": f"{EDGE}few gaps that noise hides",
    r"gaps in .* intervals are for this regression with its gap cells, and do not cover effects": (
        f"{EDGE}beyond the edge, gaps as cells"
    ),
    r"Each odds ratio is per unit of its column; the constant is no ratio and is excluded\.": (
        "tests/inference/test_exponentiated.py::test_every_form_says_what_the_number_is"
    ),
    "cells of different columns are collinear: their contrasts cannot be distinguished": (
        "tests/inference/test_cells.py::test_columns_that_say_the_same_are_not_told_and_the_others_are"
    ),
    r"no more records than noise could show( \(about [\d,]+\))? in .*: not reported, and excluded from the fit; all "
    "other rows assume that no record is there": (
        "tests/inference/test_cells.py::test_empty_cells_under_noise_hide_nothing_but_themselves"
    ),
    r"Each is the odds ratio of a cell against its column's reference cell, .* of its logarithm\.": (
        "tests/inference/test_exponentiated.py::test_cells_are_ratios_to_their_reference"
    ),
    r"This head predicts one class, '\w+', for every record, up to noise: .* which costs no privacy\.": (
        "tests/inference/test_head_scores.py::test_a_head_that_predicts_one_class_is_said_to"
    ),
    "noise hides the Gram matrix: scale the columns to their public ranges with Scale, read fewer columns, or release "
    "more records": "tests/inference/test_regression.py::test_small_cohorts_under_strong_noise_are_not_told",
    r"the grid is coarse relative to a column's spread: raise grid_bits from \d+": (
        "tests/inference/test_regression.py::test_clipped_targets_a_coarse_grid_and_collinear_columns_are_noted"
    ),
    r"Nothing was declared before the first session: all is exploratory\.": _EFFECTS,
    r"few are in one arm: set estimand='overlap', or 'att'": f"{ROWS}inference.effects: beyond the trim",
    r"Not reported: noise hides how many records there are: plan more records, or a larger epsilon\.": (
        "tests/inference/test_adjusted.py::test_noise_hides_them_where_it_hides_the_effect_or_an_arm"
    ),
    r"Not reported: [\d,]+ records are treated and [\d,]+ are not, .* how it was assigned\.": (
        "tests/inference/test_effects.py::test_a_trial_whose_arms_its_probability_does_not_give_is_not_told"
    ),
    r"a next round could move a coefficient by up to [\d.]+ standard errors, which intervals include": (
        "tests/inference/test_last_step.py::test_of_hundreds_of_releases_no_more_are_told_and_missed_than_is_claimed"
    ),
    r"n \(%\): number of ones and their share of the group, with the interval of the %\.": (
        f"{_FIRST}::test_shares_tests_and_differences_of_0_and_1_hold_under_noise"
    ),
    r"Accuracy says little here: .* how many records of each class are recognised\.": (
        "tests/inference/test_head_scores.py::test_a_score_leads_with_the_order_and_says_what_accuracy_is_worth"
    ),
}
"""Each printed sentence, or assumption, as a pattern, and the world or the test that tries it at its edge."""


def _rates(errors: Any) -> Any:
    schema = ps.ScoreSchema(
        2, 2.0, family="poisson", target_bound=9.0, transform=(ConstantFeature(1.0),), errors=errors
    )
    promise = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4_000, 1))
    y = rng.poisson(np.exp(X[:, 0]))
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 8_000), promise)
    return inf.poisson(ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=ps.randomness.seeded(0)))


def _sites(groups: int) -> Any:
    schema = ps.SitesSchema(2, clip_norm=16.0, groups=groups)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(20, 20, 2_000), privacy=ps.NoPrivacy())
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(20):
        x = rng.uniform(-1, 1, (50, 1))
        parts.append(ps.measure(schema, x, x[:, 0] + rng.normal(size=50)))
    return inf.fixed_effects(ps.session.aggregate_unmasked(plan, parts))


def _folds() -> Any:
    X = np.random.default_rng(0).uniform(-1, 1, (4_000, 2))
    schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=4.0, folds=10, transform=(ConstantFeature(1.0),))
    y = X @ [1.0, 0.5] + np.random.default_rng(1).normal(size=4_000) / 9
    return inf.ols(ps.Release.exact(schema, ps.measure(schema, X, y)))


_NOISY = (
    ("curves", "epsilon 8"),
    ("table one of counts, tests", "epsilon 8"),
    ("table one of means, tests", "epsilon 8"),
    ("line, 20 folds", "epsilon 1"),
)
"""Tables whose counts are noisy, by maker and world of ``tests/inference/test_descriptions.py``."""

TABLES: dict[str, Callable[[], Any]] = {
    **EXAMPLES,
    "Regression of rates, robust": lambda: _rates("robust"),
    "Regression of rates, by the model": lambda: _rates("model"),
    "Regression over sites": lambda: _sites(1),
    "Regression over groups of sites": lambda: _sites(6),
    "Regression with folds": _folds,
    **VARIANTS,
    **{f"{name}, {world}": partial(MAKERS[name], *DESCRIBED[world]) for name, world in _NOISY},
}


class _Sentences(NamedTuple):
    """A table's kind and the sentences above and under it."""

    kind: str
    lines: tuple[str, ...]


def _printed(table: Any) -> _Sentences:
    if not isinstance(table, inf.Summary) and not hasattr(table, "summary"):
        return _Sentences("", ())
    summary = table if isinstance(table, inf.Summary) else table.summary()
    # A title names the table, then what it is of, which differs from table to table.
    kind = re.split(r" (?:of|from|at) ", summary.title.removeprefix("TEST NOISE, not private: "))[0]
    return _Sentences(kind, (*filter(None, [summary.caution]), *summary.foot))


def _unheld(line: str) -> tuple[set[str], str]:
    """Return the patterns that a line holds, and what they leave of it."""
    held = set()
    for pattern in sorted(WORLDS, key=len, reverse=True):
        line, count = re.subn(pattern, "", line)
        held |= {pattern} if count else set()
    return held, re.sub(r"^(Assumed|Warning):|[\s,;.]", "", line)


@pytest.fixture(scope="module")
def printed() -> dict[str, _Sentences]:
    return {name: _printed(make()) for name, make in TABLES.items()}


def test_each_printed_sentence_has_its_world(printed: dict[str, _Sentences]) -> None:
    lines = {line for several in printed.values() for line in several.lines}
    without = {line: rest for line in lines if (rest := _unheld(line)[1])}
    assert not without, "name in WORLDS the world that tries it at its edge"


def test_no_world_is_named_for_a_sentence_that_no_table_prints(printed: dict[str, _Sentences]) -> None:
    held = set().union(*(_unheld(line)[0] for several in printed.values() for line in several.lines))
    assert set(WORLDS) == held


WITHOUT = 10
"""Sentences that no planted world or table contradicts, and that every table of their kind prints; it only shrinks."""


def test_nearly_each_sentence_has_a_world_or_a_table_that_makes_its_check_fail(printed: dict[str, _Sentences]) -> None:
    """By a world past its edge, a table that is printed wrongly, or one of its kind that does not print it.

    What a promise rests on is left to its own tests, because no draw of records can try it.
    """
    checks = {check.__name__ for check, *_ in WRONG.values()}
    seen = {*CHEAP, *COURSES, *(each for each, holder in WORLDS.items() if holder.rpartition("::")[2] in checks)}
    for kind in {each.kind for each in printed.values() if each.lines}:
        held = [_patterns(each.lines) for each in printed.values() if each.kind == kind]
        seen |= set().union(*held) - set.intersection(*held)
    left = {each for each, holder in WORLDS.items() if each not in seen and not holder.startswith(TRUST)}
    assert len(left) <= WITHOUT, sorted(left)


def _patterns(lines: tuple[str, ...]) -> set[str]:
    return set().union(*(_unheld(line)[0] for line in lines))


@cache
def _functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("holder", sorted(set(WORLDS.values())))
def test_each_world_exists(holder: str) -> None:
    """A world of the benchmark keeps the claim in its committed results; a test is in its file."""
    if holder.startswith(EDGE):
        title = holder.removeprefix(EDGE)
        assert title in EDGES
        rows = results("inference.stretched")[title]
        assert len(rows) == len(EDGES[title])
        if title.startswith("beyond"):
            assert all(row["low end"] > 0.05 for row in rows), "a warning needs a world in which it is true"
        else:
            assert all(row["low end"] <= 0.05 for row in rows), "the claim is refuted there"
        return
    if holder.startswith(ROWS):
        benchmark, _, title = holder.removeprefix(ROWS).partition(": ")
        ends = [value for row in results(benchmark)[title] for key, value in row.items() if key.endswith("low end")]
        assert ends
        assert max(ends) <= 0.05, "the claim is refuted there"
        return
    file, _, name = holder.removeprefix(TRUST).partition("::")
    functions = _functions(file)
    assert functions if holder.startswith(TRUST) else name in functions
