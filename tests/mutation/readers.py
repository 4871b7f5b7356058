"""Deliberate bugs of what is read from a release, and of the bounds of what is measured for it.

Rows of the table in ``catalogue``. No audit of sessions sees the first ones: those look at what is drawn and released,
and ``audit inference`` is not among them.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from privstats.course.effect import Effect
from privstats.inference.inversion import Inversion, quantile
from privstats.inference.treatment_effects.adjusted import Standardisation
from privstats.kinds import ClassSchema
from privstats.records.tiles import Tile
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member, name_in, square_of

_INVERSION = "tests/inference/test_inversion.py::"
_LAST_STEP = "tests/inference/test_last_step.py::"
_CLIPPING = "tests/inference/test_clipping.py::"
_COUNTS = "tests/inference/test_counts.py::"
_POWERS = "tests/moments/test_power_sums.py::"
_LINES = "tests/intake/test_csv_lines.py::"
_SCORE = "tests/inference/test_score.py::"
_EFFECTS = "tests/inference/test_effects.py::"
_INFLUENCES = "tests/moments/test_effect.py::"
_GAPS = "tests/moments/test_missing_outcomes.py::"
_INCOMPLETE = "tests/inference/test_missing_outcomes.py::"
_ANALYSIS = "tests/course/test_analysis.py::"
_HETEROGENEITY = "tests/inference/test_heterogeneity.py::"
_RATIOS = "tests/inference/test_risk_ratios.py::"
_CARDS = "tests/inference/test_scorecards.py::"
_CELLS = "tests/inference/test_cells.py::"
_HAZARD = "tests/hazard/test_sums.py::"
_SCORED = "tests/heads/test_scoring.py::"
_HEAD_SCORES = "tests/inference/test_head_scores.py::"
_ADJUSTED = "tests/inference/test_adjusted.py::"


_all_facts: Any = vars(Effect)["_facts"].fget


def _without_analysis(course: Effect) -> dict[str, Any]:
    return {name: value for name, value in _all_facts(course).items() if name != "analysis"}


def _nothing(inversion: Inversion) -> Any:
    return np.zeros(len(inversion.contrasts))


def _filled_in(right: Any) -> Any:
    """Missing outcomes as 1/2, the middle of 0 to 1."""
    return lambda *given, **how: np.nan_to_num(right(*given, **how), nan=0.5)


def _kept_as_zero(tile: Tile) -> Tile:
    return tile._replace(targets=np.nan_to_num(np.asarray(tile.targets, np.float64)))


def _of_no_error(right: Any) -> Any:
    return lambda *given: replace(right(*given), variance=0.0)


def _half(right: Any) -> Any:
    return lambda *given: [each / 2 for each in right(*given)]


def _without_noise(right: Any) -> Any:
    return lambda release, *names: replace(right(release, *names), sigma=0.0)


def _of_the_clipped(mean: float, square: float, bound: float) -> float:
    deviation = max(square - mean**2, 1e-12) ** 0.5
    return float(ndtr((-bound - mean) / deviation) + ndtr((mean - bound) / deviation))


def _cut_at_the_cap(right: Any) -> Any:
    """Hazards cut so that their sum ends at the cap: nobody leaves."""

    def periods(schema: Any, mu: Any, persons: Any, seen: Any) -> Any:
        most = schema.cap * 2.0**32
        before = np.cumsum(mu, axis=1) - mu
        return right(schema, np.floor(np.clip(most - before, 0.0, mu)), persons, seen)

    return periods


def _staying_for_the_event(right: Any) -> Any:
    """Hazards of those who have the event are halved until the cap lets them stay."""

    def periods(schema: Any, mu: Any, persons: Any, seen: Any) -> Any:
        over = np.maximum(mu.sum(axis=1, keepdims=True) / (schema.cap * 2.0**32), 1.0)
        return right(schema, np.where(persons.events[:, None], np.floor(mu / over), mu), persons, seen)

    return periods


def _sure_of_squares(right: Any) -> Any:
    """A ratio whose variance has all the degrees of freedom that there are."""
    return lambda *given: right(*given[:-1], 1e9)


def _about_all_records(right: Any) -> Any:
    """Squares about the mean over all records, also where only the treated weigh."""
    return lambda schema, sums, C: right(schema, replace(sums, W=sums.n), C)


def _of_what_is_shown(right: Any) -> Any:
    """The rows of a family that are told."""
    return lambda tables, family: [place for place in right(tables, family) if tables[place].reported]


def _of_one_outcome(right: Any) -> Any:
    """As if an outcome had sums of its own records: the largest square, and not all of them."""

    def square(schema: Any, weights: Any, adjacency: Any) -> float:
        several = [letter for letter in weights if letter not in "NW"]
        counts = {letter: weight for letter, weight in weights.items() if letter in "NW"}
        return max(float(right(schema, {**counts, letter: weights[letter]}, adjacency)) for letter in several or ["N"])

    return square


def _in_one_subgroup(right: Any) -> Any:
    """As if nobody could change subgroups: the exchange of two records of one."""
    return lambda schema, weights, adjacency: right(replace(schema, subgroups=None), weights, adjacency)


def _cut_to_the_trim(right: Any) -> Any:
    """Propensities that are cut to the edge, so that no record lies beyond it."""
    return lambda x, w, step: np.clip(right(x, w, step), 0.1, 0.9)


def _in_batches(_: Any) -> Any:
    """Scores of all rows in one product."""

    def scores(head: Any, rows: Any) -> Any:
        found = head.rule_.scores(head.preprocessing_.apply(rows))
        return found, head._probabilities(found)

    return scores


def _one_table(right: Any) -> Any:
    return lambda schema, weights, adjacency: right(schema, weights, adjacency) / len(schema.tables)


def _of_their_own(right: Any) -> Any:
    """Groups' variances without what their mean says, and as if they were known."""

    def own(sums: Any, estimates: Any) -> tuple[Any, Any]:
        _, degrees = right(sums, estimates)
        second = np.maximum(sums.second - sums.S**2 / sums.W, sums.deviation)
        return (second + sums.noise) / sums.W**2, np.full_like(degrees, 1e9)

    return own


def _at_the_guess(right: Any) -> Any:
    """A ratio below whose line nothing varies."""
    return lambda *given, **named: right(*given, **{**named, "below": 0.0})


_MEANS, _NOISE = vars(Standardisation)["means"], Standardisation.noise


def _by_the_other_line(both: Standardisation) -> Any:
    """Each arm's mean is adjusted by the line of the other arm."""
    return _MEANS.fget(replace(both, lines=both.lines[::-1]))


def _noise_of_outcomes_alone(both: Standardisation, weights: Any) -> float:
    """The noise in the sums of columns, and in the lines that follow from them, is omitted."""
    return _NOISE(replace(both, sigma_G=0.0), weights)


def _as_if_halves(right: Any) -> Any:
    """The sampling variance takes each arm for half of the records, whatever the plan's probability is."""

    def interval(both: Standardisation, *given: Any) -> Any:
        sums = both.sums
        scales = [sum(sums.records) / 2 / n for n in sums.records]
        G, h = ([scale * each for scale, each in zip(scales, of, strict=True)] for of in (sums.G, sums.h))
        return right(replace(both, sums=replace(sums, G=tuple(G), h=tuple(h))), *given)

    return interval


def _by_visit(right: Any) -> Any:
    class ByVisit(right):  # type: ignore[misc]
        def held_out(self, X: Any, y: Any, persons: Any = None) -> Any:
            return super().held_out(X, y)

    return ByVisit


READERS: dict[str, Mutant] = {
    "a head scored in batches": bug("records are scored together, so that neighbours round one another's scores",
        name_in("privstats.heads.scoring", "scores_alone", _in_batches),
        _SCORED + "test_a_record_has_the_same_scores_in_any_company"),
    "tables of a score as one": bug("the sensitivity of a score is that of one table, whatever their number",
        square_of("scoring", _one_table), _SCORED + "test_the_sensitivity_is_what_one_record_moves"),
    "ties split in the bounds": bug("pairs of one bin are split evenly in the ends of an area's interval, too",
        name_in("privstats.inference.head_curves", "_beaten", lambda right: lambda others, _: right(others, 0.5)),
        _HEAD_SCORES + "test_the_area_is_that_of_all_pairs_and_lies_within_its_bounds"),
    "squares of the treated about all": bug(
        "second moments of influences on the treated are read about the mean over all records: S2 - S^2 / n",
        name_in("privstats.inference.treatment_effects.influence_sums", "_second_moment", _about_all_records),
        _EFFECTS + "test_the_effect_of_the_treated_has_their_influence_and_no_centred_square"),
    "Holm over what is shown": bug(
        "p-values are adjusted for the declared rows that are told, and not for all that were declared",
        name_in("privstats.inference.treatment_effects.rows", "_places", _of_what_is_shown),
        _ANALYSIS + "test_holm_is_over_what_was_declared_whatever_is_shown"),
    "analysis outside the digest": bug(
        "what was declared is in the course's file not in its digest, and can change after the first release",
        member(Effect, "_facts", property(_without_analysis)),
        _ANALYSIS + "test_after_the_first_release_another_analysis_is_refused"),
    "squares of outcomes not added": bug(
        "the noise of several outcomes is calibrated as if each had records of its own",
        square_of("effect", _of_one_outcome),
        _INFLUENCES + "test_the_search_reaches_the_bound_of_blocks_and_never_passes_it", plan="shares"),
    "a record that cannot change subgroups": bug("the exchange of two records is priced within one subgroup alone",
        square_of("effect", _in_one_subgroup),
        _INFLUENCES + "test_the_search_reaches_the_bound_of_blocks_and_never_passes_it", plan="shares"),
    "squares of influences taken for exact": bug(
        "the noise in the sum of squared influences costs no degrees of freedom",
        name_in("privstats.inference.treatment_effects.influence_sums", "RatioOfSums", _sure_of_squares),
        _EFFECTS + "test_the_noise_of_the_second_moment_costs_degrees_of_freedom"),
    "groups of sites by variances of their own": bug(
        "what noise does to a group's variance counts as its own, and the group that it makes small weighs most",
        name_in("privstats.inference.treatment_effects.heterogeneity", "_variances", _of_their_own),
        _HETEROGENEITY + "test_the_size_holds_where_noise_hides_the_groups_variances"),
    "ratios by the variance at their guess": bug(
        "the variance of what stands below a ratio's line is left out where the guess was far",
        name_in("privstats.inference.treatment_effects.influence_sums", "RatioOfMeans", _at_the_guess),
        _RATIOS + "test_a_course_s_ratio_holds_what_lies_below_its_line"),
    "propensities cut and not dropped": bug(
        "a record beyond the trim counts at the trim's propensity, which is a wrong one",
        name_in("privstats.kinds.effect.influences", "_propensity", _cut_to_the_trim),
        _INFLUENCES + "test_a_record_beyond_the_trim_is_dropped_and_not_cut"),
    "missing outcomes at the middle of their range": bug(
        "a record without an outcome counts as if it had one in the middle of the range",
        name_in("privstats.moments.rounds", "real_outcomes", _filled_in),
        _GAPS + "test_the_sums_are_those_of_weighted_aipw"),
    "observed by the other arm's propensity": bug(
        "records weigh by the probability that an outcome of the other arm is observed",
        name_in("privstats.kinds.effect.influences", "_by_arm", lambda right: lambda *given: right(*given)[::-1]),
        _GAPS + "test_the_sums_are_those_of_weighted_aipw"),
    "unobserved records among the lines": bug("a record without an outcome is in the Gram matrix of the outcome lines",
        member(Tile, "observed", _kept_as_zero),
        _GAPS + "test_the_propensity_is_of_being_observed_and_the_lines_are_of_those_who_are"),
    "errors of being observed left out": bug(
        "a trial with missing outcomes is told without the product of its nuisances' errors",
        name_in("privstats.inference.treatment_effects.influence_sums", "nuisances_of_missing", _of_no_error),
        _INCOMPLETE + "test_lines_and_propensity_that_are_both_poor_widen_the_interval"),
    "few heavy records as if they were many": bug(
        "an effect that one record could move by more than .4 of a standard error has the interval of many records",
        name_in("privstats.inference.treatment_effects.influence_sums", "_LIGHT", lambda right: np.inf),
        _EFFECTS + "test_rare_events_in_a_rare_arm_widen_the_interval_where_noise_is_small"),
    "intervals without the noise": bug("a regression's intervals leave the noise in the sums out",
        member(Inversion, "_noise", property(_nothing)),
        _INVERSION + "test_an_interval_about_the_exact_sums_is_of_the_noise_alone"),
    "counts taken for exact": bug("shares, quantiles and tests of count tables forget the noise in the counts",
        name_in("privstats.inference.counts.statistics", "count_table", _without_noise),
        _COUNTS + "test_shares_quantiles_and_independence_hold_under_noise"),
    "count tables priced as one": bug("a record is priced for one table, however many it counts in",
        square_of("counts", lambda right: lambda _, weights, __: weights["T"]),
        _COUNTS + "test_two_records_that_differ_everywhere_are_the_sensitivity"),
    "information always free": bug("the information beside a logistic score is never priced",
        name_in("privstats.kinds.score", "_logistic", lambda right: lambda score, information: score),
        _SCORE + "test_bounds_hold_on_a_grid_of_all_means"),
    "a person bounded by periods": bug(
        "the noise of hazards covers one period of a person, as if the others were other persons'",
        square_of(
            "hazard",
            lambda right: lambda schema, weights, adjacency: right(schema, weights, adjacency) / schema.periods,
        ),
        _HAZARD + "test_the_bounds_are_met_and_never_passed",
    ),
    "hazards priced as counts": bug(
        "hazards take the bound of a Poisson round under replace-one, whose information has rank one",
        square_of(
            "hazard",
            lambda right: (
                lambda schema, weights, adjacency: (
                    right(schema, weights, adjacency)
                    - (adjacency == "replace-one") * weights.get("H", 0.0) * schema.clip_norm**4
                )
            ),
        ),
        _HAZARD + "test_the_bounds_are_met_and_never_passed",
    ),
    "a cap that cuts": bug("a hazard beyond the cap is cut to it, and the event is kept",
        name_in("privstats.kinds.hazard_sums", "_periods", lambda right: _cut_at_the_cap(right)),
        _HAZARD + "test_who_passes_the_cap_leaves_with_the_event"),
    "a cap that knows the event": bug("who has the event stays at risk beyond the cap",
        name_in("privstats.kinds.hazard_sums", "_periods", lambda right: _staying_for_the_event(right)),
        _HAZARD + "test_who_is_at_risk_follows_from_columns_and_weights_and_not_from_the_event"),
    "powers without a proof are free": bug(
        "a statistic whose sensitivity nobody proved counts as if no record moved it",
        name_in("privstats.dp.sensitivities", "_proving", lambda right: lambda schema, weights: schema),
        _POWERS + "test_no_formula_counts_them_as_free"),
    "powers promised": bug("a class schema with third and fourth powers admits a promise",
        member(ClassSchema, "refusal", lambda schema, unit: ""), _POWERS + "test_no_promise_covers_them"),
    "early rounds told": bug("coefficients of rounds that ended before they arrived are told",
        name_in("privstats.inference.last_step", "_ARRIVED", lambda right: np.inf),
        _LAST_STEP + "test_rounds_that_may_leave_more_than_two_errors_are_not_told"),
    "falling information told": bug("coefficients are told whose information was still falling from round to round",
        name_in("privstats.inference.last_step", "_SETTLED", lambda right: np.inf),
        _LAST_STEP + "test_information_that_still_falls_is_not_told"),
    "noise in the information taken for none": bug("a measured change of the information forgets the noise in it",
        name_in("privstats.inference.last_step", "_SURE", lambda right: 0.0),
        _LAST_STEP + "test_noise_in_the_information_counts_as_change"),
    "intervals without what a step leaves": bug(
        "intervals of a logistic regression forget what the last step may have left",
        name_in(
            "privstats.inference.inversion", "folded_quantile", lambda right: lambda alpha, _: quantile(alpha, np.inf)
        ),
        _INVERSION + "test_the_worst_bias_is_missed_in_alpha_of_draws",
    ),
    "ramp among the counts": bug(
        "shares of a scorecard's cells are read with the ramp, which tells steps of one cell apart",
        name_in("privstats.inference.scorecard_points", "has_ramp", lambda right: lambda *_: False),
        _CARDS + "test_where_in_its_cell_a_value_lies_moves_no_share"),
    "ramp among the counts of a design": bug("the records in a cell of a regression are counted with the ramp",
        name_in("privstats.inference.cell_design", "has_ramp", lambda right: lambda *_: False),
        _CELLS + "test_behind_a_ramp_a_cell_is_empty_wherever_the_values_of_others_lie_in_theirs"),
    "noise taken for records of a cell": bug("a cell counts as filled as soon as its noisy count is above 0",
        name_in("privstats.inference.cell_design", "_SURE", lambda right: 0.0),
        _CELLS + "test_empty_cells_under_noise_hide_nothing_but_themselves"),
    "noise taken for records of a scorecard": bug("points are told of a cell that noise alone may have filled",
        name_in("privstats.inference.scorecard_points", "_SURE", lambda right: 0.0),
        _CARDS + "test_noise_alone_seldom_fills_a_cell"),
    "bands of half the noise": bug("the bands of a scorecard are half as wide as its noise",
        name_in("privstats.inference.scorecard_table", "half_widths", lambda right: _half(right)),
        _CARDS + "test_the_bands_of_a_closed_form_have_the_spread_of_its_noise"),
    "bands without the head's bias": bug(
        "the bands of a scorecard tell of the spread by noise, and not of what a head that knows it does to points",
        name_in("privstats.inference.scorecard_points", "_bias", lambda right: lambda cards, points: 0.0),
        _CARDS + "test_bands_hold_what_the_same_records_give_without_noise"),
    "counts left out of a table's promise": bug(
        "a table behind cut points that were found says the promise of its last session alone",
        name_in("privstats.inference.releases", "counted_before", lambda right: lambda given: ((), right(given)[1])),
        _CELLS + "test_the_promise_of_a_table_is_that_of_all_sessions_also_of_its_last_release_alone"),
    "clipped variance taken for the true one": bug(
        "the share of clipped targets follows from the variance that the clip left",
        name_in("privstats.inference.regression.clipping", "share_beyond", lambda right: _of_the_clipped),
        _CLIPPING + "test_the_share_of_clipped_targets_is_found_however_large_it_is"),
    "clipped targets told": bug("coefficients are told however many targets were clipped",
        name_in("privstats.inference.regression.clipping", "_MOST", lambda right: 1.0),
        _CLIPPING + "test_coefficients_of_clipped_targets_are_not_told_in_any_way"),
    "a first record told as names": bug("the error for a table without a row of names tells its first record",
        name_in("privstats.intake.first_line", "_is_value", lambda right: lambda text: False),
        _LINES + "test_a_first_record_in_the_place_of_names_is_not_told"),
    "kinds of a rehearsal kept": bug("the file that a rehearsal keeps says what it took the columns for",
        name_in("privstats.cli.parts.declared_columns", "OPEN", lambda right: "numeric"),
        "tests/cli/test_try.py::test_no_cell_of_a_file_is_told_but_the_lists_that_are_said"),
    "a plan of a rehearsal": bug("the plan on a rehearsal's page holds words that nobody chose",
        name_in("privstats.workflows.rehearsal.page", "_OPEN", lambda right: "local"),
        "tests/cli/test_try.py::test_the_plan_on_the_page_says_nothing_that_was_read_or_chosen_here"),
    "visits of a rehearsal split": bug(
        "a rehearsal for persons holds out some visits of a patient and sums the others",
        name_in("privstats.workflows.rehearsal.parties", "Split", _by_visit),
        "tests/workflows/rehearsal/test_persons.py::test_nobody_stands_on_both_sides_in_any_table",
    ),
    "cells lost in noise compared": bug(
        "groups are compared in a cell that noise could have filled",
        name_in("privstats.inference.groups.shares", "_CLEAR_CELL", lambda right: -1e9),
        "tests/inference/test_first_table.py::test_what_noise_hides_has_no_difference_and_what_is_shown_has_an_interval",
    ),
    "arms of any trial told": bug("a trial is told whatever share of its records is treated",
        name_in("privstats.inference.treatment_effects.table", "_CHANCE", lambda right: 1e9),
        "tests/inference/test_effects.py::test_a_trial_whose_arms_its_probability_does_not_give_is_not_told"),
    "an adjusted mean by the other arm's line": bug(
        "the mean of an arm is adjusted by the outcome line of the other arm",
        member(Standardisation, "means", property(_by_the_other_line)),
        _ADJUSTED + "test_without_noise_it_is_the_g_formula_of_the_pooled_records"),
    "adjusted means without the noise of columns": bug(
        "the interval of an adjusted mean holds the noise of outcomes, and omits that of columns and records",
        member(Standardisation, "noise", _noise_of_outcomes_alone),
        _ADJUSTED + "test_its_noise_is_the_derivative_of_both_sums"),
    "adjusted means of arms taken for halves": bug(
        "the interval of an adjusted mean ignores which share of the records an arm has",
        name_in("privstats.inference.treatment_effects.adjusted", "_interval", _as_if_halves),
        _ADJUSTED + "test_a_line_that_explains_outcomes_makes_the_interval_shorter_and_a_useless_one_does_not"),
}  # fmt: skip
