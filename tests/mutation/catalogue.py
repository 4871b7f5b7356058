"""The deliberate bugs: what is wrong, where it shows, which unit test and which audit must see it.

A table, with what stands around the sum in ``machines``. ``python -m tests.mutation`` fills in what was measured; a bug
that neither side sees fails the nightly run. How many there are: ``len(MUTANTS)``.
"""

from privstats import dp, encoding, release, session
from privstats.course.planned import Phased
from privstats.dp import privacy as models
from privstats.dp.calibration import Noise
from privstats.kinds.effect.sums import EffectMoments
from privstats.moments import record_sums
from privstats.moments.grid import Grid
from privstats.plan import Plan
from privstats.randomness import Generator, checked, secure
from privstats.secagg.exclusive import Exclusive
from privstats.session.machines import Contribution
from privstats.transforms.cells import Cells
from tests.brought import bring_modules
from tests.mutation import bugs
from tests.mutation.accelerator_catalogue import ACCELERATOR_MUTANTS
from tests.mutation.devices_catalogue import DEVICES_MUTANTS
from tests.mutation.http_catalogue import HTTP_MUTANTS
from tests.mutation.inside_catalogue import INSIDE_MUTANTS
from tests.mutation.ledger_catalogue import LEDGER_MUTANTS
from tests.mutation.machines import MACHINES
from tests.mutation.mutant import Mutant, bug, of_present_rooms
from tests.mutation.noise_layers_catalogue import NOISE_LAYERS_MUTANTS
from tests.mutation.panel_catalogue import PANEL_MUTANTS
from tests.mutation.persons_catalogue import PERSONS_MUTANTS
from tests.mutation.planting import both, everywhere, everywhere_new, member, name_in, square_of
from tests.mutation.proof_catalogue import PROOF_MUTANTS
from tests.mutation.readers import READERS
from tests.mutation.reading_catalogue import READING_MUTANTS
from tests.mutation.site_levels_catalogue import SITE_LEVELS_MUTANTS
from tests.mutation.stream_catalogue import STREAM_MUTANTS
from tests.mutation.updates_catalogue import UPDATES_MUTANTS

bring_modules()  # bugs are planted in it


_PATH = "tests/test_release_path.py::"
_CALIBRATION = "tests/dp/test_calibration.py::"
_SENSITIVITY = "tests/dp/test_sensitivities.py::"
_MECHANISMS = "tests/dp/test_mechanisms.py::"
_WRAPPING = "tests/session/test_wrapping_client.py::"
_SESSION = "tests/session/test_session.py::"
_ALONE = "tests/secagg/interactive/test_one_at_a_time.py::"
_TEMPERATURE = "tests/moments/test_calibration.py::"
_PARTIES = "tests/moments/test_parties.py::"
_MODULE = "tests/modules/test_gradients.py::"
_SEAM = "tests/modules/test_seam.py::"
_GRADIENTS = "tests/threat_models/audits/test_gradients.py::"
_MEAN = "tests/moments/test_mean.py::"
_EFFECT = "tests/moments/test_effect.py::"
_RATIO = "tests/inference/test_risk_ratios.py::"
_CENTRED = "tests/course/test_centred.py::"
_SOFTMAX = "tests/estimates/test_softmax.py::"
_BINNED = "tests/course/test_binned.py::"
_PHASES = "tests/course/test_phases.py::"
_POSITIONS = "tests/course/test_positions.py::"
_LEVELS = "tests/moments/test_levels.py::"
_READABLE = "tests/moments/test_readable.py::"
_SEARCH = ("budget", "sensitivity", "noise")

MUTANTS: dict[str, Mutant] = of_present_rooms({
    "sigma a tenth too small": bug("the plan's noise is calibrated 10 % too small",
        name_in("privstats.plan.plan", "calibrate", bugs.scaled_sigma(0.9)),
        _PATH + "test_the_noise_of_a_plan_keeps_its_promise", plan="shares", audits=(*_SEARCH, "canary")),
    "sigma ten times too small": bug("the plan's noise is calibrated ten times too small",
        name_in("privstats.plan.plan", "calibrate", bugs.scaled_sigma(0.1)),
        _PATH + "test_the_noise_of_a_plan_keeps_its_promise", plan="central", audits=(*_SEARCH, "canary")),
    "shares for all": bug("shares are sized for all clients instead of the honest survivors",
        member(Plan, "noise", bugs.shares_of(lambda cohort: cohort.clients)),
        _PATH + "test_the_honest_survivors_alone_carry_the_noise_of_a_plan", plan="shares", audits=("noise", "canary")),
    "colluders ignored": bug("the shares of colluders are counted on",
        member(Plan, "noise", bugs.shares_of(lambda cohort: cohort.min_survivors)),
        _PATH + "test_the_honest_survivors_alone_carry_the_noise_of_a_plan", plan="shares", audits=("noise", "canary")),
    "dropouts ignored": bug("shares are sized as if nobody could vanish",
        member(Plan, "noise", bugs.shares_of(lambda cohort: cohort.clients - cohort.colluders)),
        _PATH + "test_the_honest_survivors_alone_carry_the_noise_of_a_plan", plan="shares", audits=("noise", "canary")),
    "minimum on exact counts": bug("the minimum count is applied to the exact counts",
        everywhere(session.release, bugs.minimum_on_exact_counts),
        _PATH + "test_the_minimum_count_is_decided_by_the_noisy_count", plan="central", audits=("canary",)),
    "cut at three sigma": bug("noise is cut at three sigma",
        name_in("privstats.dp.mechanisms", "_sample", lambda right: bugs.draw_of(bugs.cut_at_three_sigma)),
        _PATH + "test_noise_has_the_tails_of_a_gaussian", plan="central", audits=("noise",)),
    "record clip skipped": bug("records are rounded but not clipped", member(Grid, "outside", bugs.unclipped("X")),
        "tests/moments/test_grid.py::test_grid_vectors_stay_in_the_ball_as_integers", plan="central",
        audits=("canary",)),
    "target clip skipped": bug("regression targets are not clipped", member(Grid, "outside", bugs.unclipped("y")),
        _PATH + "test_a_target_beyond_its_bound_is_clipped", plan="ridge", audits=("canary",)),
    "client clip skipped": bug("a client's whole vector is not clipped",
        everywhere(dp.clip_client, lambda schema, privacy, vector: vector),
        "tests/session/test_session.py::test_a_client_beyond_its_clip_is_shrunk_as_a_whole", plan="clip",
        audits=("canary",)),
    "fold by position": bug("the fold of a record is its place in the array",
        everywhere(record_sums.fold_of_key, bugs.by_position),
        "tests/moments/test_folds.py::test_removing_a_record_changes_only_its_own_fold", plan="ridge",
        audits=("canary",)),
    "one stream for all segments": bug("every segment's noise starts at the same place of the stream",
        name_in("privstats.dp.mechanisms", "_sample", lambda right: bugs.one_stream),
        _PATH + "test_the_segments_of_a_release_have_independent_noise", plan="central", audits=("noise",)),
    "all-zero seed": bug("the system's generator starts from 32 zero bytes",
        everywhere(secure, lambda: Generator(bytes(32))), "tests/test_randomness.py::test_secure_generators_differ",
        plan="central", audits=("noise",)),
    "half the central noise": bug("the session halves what the mechanism drew",
        name_in("privstats.dp.mechanisms", "draw_central", bugs.halved),
        "tests/workflows/simulate/test_simulation.py::test_the_noise_in_the_release_is_as_wide_as_it_says",
        plan="central", audits=("noise", "canary")),
    "off-diagonal noise missing": bug("entries off the diagonal get no noise",
        name_in("privstats.dp.mechanisms", "_sample", lambda right: bugs.draw_of(bugs.no_off_diagonal)),
        _MECHANISMS + "test_every_segment_carries_its_own_noise", plan="central", audits=("noise", "canary")),
    "sensitivity of B": bug("B's sensitivity is too small by sqrt 2",
        square_of("classes", bugs.half_of_b),
        _SENSITIVITY + "test_the_single_sensitivities_are_the_tables", plan="shares", audits=_SEARCH),
    "replace priced as add-remove": bug("noise for replace-one is calibrated by add-remove",
        name_in("privstats.dp.calibration", "allocate", bugs.allocated_as_added),
        _CALIBRATION + "test_the_joint_mu_of_the_noise_is_the_promise_and_not_a_hair_more", plan="swap",
        audits=(*_SEARCH, "canary")),
    "lift before noise": bug(
        "the exact sum is lifted out of the ring before it meets the noise, and nothing is refused",
        both(
            name_in("privstats.session.unmasked", "with_central_noise", lambda right: bugs.LiftedFirst),
            name_in("privstats.session.unmasked", "check_plausible", lambda right: bugs.unchecked),
        ),
        _WRAPPING + "test_an_entry_just_below_the_wrap_tells_nothing_about_the_victim",
        plan="central",
        audits=("canary",),
    ),
    "survivors fewer": bug("a release of fewer survivors than the plan asks for is made",
        everywhere(release.require_survivors, lambda plan, survivors: None),
        "tests/test_release.py::test_nothing_is_a_release_with_fewer_survivors_than_the_promise_rests_on",
        plan="shares", audits=("noise",)),
    "one share missing": bug("every fourth client forgets its noise",
        everywhere_new(dp.draw_share, bugs.forgotten_share), _MECHANISMS + "test_every_segment_carries_its_own_noise",
        plan="shares", audits=("noise", "canary")),
    "share repeated": bug("the first share that was drawn is used again and again",
        everywhere_new(dp.draw_share, bugs.repeated_share),
        _MECHANISMS + "test_shares_of_six_clients_sum_to_the_noise_of_one_server", plan="shares", audits=("noise",)),
    "delta forgotten": bug("noise is calibrated at delta 1e-2 whatever the plan says",
        name_in("privstats.dp.calibration", "gaussian_mu", lambda right: bugs.mu_without_delta),
        _CALIBRATION + "test_the_joint_mu_of_the_noise_is_the_promise_and_not_a_hair_more", plan="shares",
        audits=(*_SEARCH, "canary")),
    "textbook formula": bug("sqrt(2 log(1.25 / delta)) / epsilon at epsilon 10",
        name_in("privstats.dp.calibration", "gaussian_mu", lambda right: bugs.textbook_mu),
        _CALIBRATION + "test_the_joint_mu_of_the_noise_is_the_promise_and_not_a_hair_more", plan="loose",
        audits=_SEARCH),
    "wrong grid scale": bug("noise on second moments is laid out on another grid than the sums",
        member(Noise, "grid_sigma", bugs.coarse_grid_sigma), _PATH + "test_noise_is_laid_out_on_the_grid_of_its_sums",
        plan="central", audits=("noise", "canary")),
    "client priced as a record": bug("the client unit is calibrated for one record",
        name_in("privstats.dp.calibration", "_levels", bugs.priced_as_a_record),
        _CALIBRATION + "test_the_client_unit_multiplies_the_noise", plan="client", audits=(*_SEARCH, "canary")),
    "record limit skipped": bug("a client with more records than it may hold is accepted",
        name_in("privstats.session.machines", "require_moments", lambda right: lambda plan, moments: None),
        "tests/workflows/simulate/test_simulation.py::test_a_client_with_more_records_than_it_may_hold_is_refused",
        plan="client", audits=("canary",)),
    "signed taken for non-negative": bug("signed features are priced as non-negative ones",
        square_of("classes", bugs.as_if_nonnegative),
        _SENSITIVITY + "test_the_single_sensitivities_are_the_tables", plan="swap", audits=_SEARCH),
    "folds forgotten": bug("a record that changes fold is priced as one that stays",
        square_of("ridge", bugs.as_if_one_fold),
        _SENSITIVITY + "test_a_record_that_changes_fold_moves_q_in_two_places", plan="ridge swap", audits=_SEARCH),
    "local noise divided": bug("local noise is divided among the clients",
        member(Noise, "share_sigma", bugs.shared_local_sigma), _PATH + "test_one_local_upload_carries_all_of_its_noise",
        plan="local", audits=("noise", "canary")),
    "noise without sign": bug("noise is never negative",
        name_in("privstats.dp.mechanisms", "_sample", lambda right: bugs.draw_of(bugs.without_sign)),
        _MECHANISMS + "test_every_segment_carries_its_own_noise", plan="central", audits=("noise",)),
    "cells by the type of a column": bug(
        "a value's cell follows from the type of its column, so that one text or gap moves every other record",
        name_in("privstats.records.cells", "read", bugs.read_by_type),
        _READABLE + "test_one_blank_moves_no_other_record",
        "tests/threat_models/test_inference.py::test_cells_that_follow_from_the_type_of_a_column_are_flagged"),
    "declared columns by their type": bug(
        "the code of a value follows from the type of its column, so that one text or gap moves every other record",
        name_in("privstats.intake.declared.categories", "read", bugs.read_by_type),
        "tests/moments/test_table.py::test_every_container_gives_the_same_integers",
        "tests/threat_models/audits/test_sensitivity_audit.py::test_no_record_of_a_table_moves_more_than_the_claim"),
    "features of a table by their type": bug(
        "the number that a feature of a table says follows from the type of its column",
        name_in("privstats.intake.tables", "read", bugs.unread_by_type),
        "tests/moments/test_frames.py::test_one_odd_value_moves_its_own_record_only_in_every_container"),
    "steps of cells rounded up": bug(
        "the step of a column's signs is rounded up, so that a row may be longer than the grid says",
        name_in("privstats.transforms.cells", "step_of", bugs.one_more),
        "tests/transforms/test_cells.py::test_every_cell_of_every_column_keeps_the_norm"),
    "a gap is below every cut": bug("a gap is taken for a value below every cut, and has no cell of its own",
        member(Cells, "indices", bugs.gaps_below), "tests/transforms/test_cells.py::test_the_map_is_what_it_says"),
    "labels by the type of a column": bug("a label's class follows from the type of all labels",
        name_in("privstats.records.labels", "read", bugs.read_by_type),
        _READABLE + "test_labels_of_parts_add_up_whatever_stands_beside_them"),
    "one record ends its party's part": bug(
        "a record that cannot be read is refused under a promise, and the server sees who is absent",
        member(Plan, "unreadable", "refuse"), _READABLE + "test_a_promise_leaves_out_what_a_plan_without_one_refuses"),
    "counts doubled": bug("counts enter the flat vector at twice their scale",
        everywhere(encoding.flatten, bugs.doubled_counts),
        "tests/encoding/test_layout.py::test_flatten_and_unflatten_are_inverse", plan="central", audits=("canary",)),
    "rounding not paid": bug("shares are sized without the variance that discreteness costs",
        everywhere(models.MODELS, bugs.without_surplus(models.MODELS)),
        _CALIBRATION + "test_shares_of_the_fewest_honest_survivors_sum_to_the_guarantee", plan="shares"),
    "plausibility on the exact sum": bug(
        "whether a sum is plausible is decided before the noise: an oracle",
        both(
            name_in("privstats.session.unmasked", "with_central_noise", bugs.checked_before_noise),
            name_in("privstats.session.unmasked", "check_plausible", lambda right: bugs.unchecked),
        ),
        _WRAPPING + "test_an_abort_for_an_implausible_entry_tells_no_more_than_the_release",
        plan="central",
        audits=("canary",),
    ),
    "plausibility check missing": bug("a sum that no honest cohort has is released",
        name_in("privstats.session.unmasked", "check_plausible", lambda right: bugs.unchecked),
        _WRAPPING + "test_without_noise_a_sum_beyond_what_honest_clients_can_hold_is_refused", plan="central"),
    "contribution used twice": bug("a contribution serves as many sessions as one likes",
        member(Contribution, "take", lambda contribution: contribution.vector),
        _SESSION + "test_a_noisy_vector_reused_after_a_claimed_abort_is_refused", plan="shares", audits=("noise",)),
    "gradients replaced as if added": bug("a round is calibrated as if no two records could oppose each other",
        square_of("gradients", bugs.as_added),
        _GRADIENTS + "test_the_claim_is_nearly_attained_and_never_beaten", plan="shares"),
    "module gradients not shortened": bug(
        "the gradient of a module is twice as long as the bound, and nothing checks its integers",
        both(
            name_in("hidden_layer.gradients", "shortened", bugs.gradients_not_shortened),
            name_in("privstats.schema.modules", "_module_within", lambda right: bugs.gradients_not_checked),
        ),
        _MODULE + "test_no_record_and_no_weights_break_the_bound",
        plan="shares",
    ),
    "module rows not held to their norm": bug("what a module of another package gives is summed as it comes",
        name_in("privstats.schema.modules", "_module_within", lambda right: bugs.gradients_not_checked),
        _SEAM + "test_a_row_longer_than_the_norm_counts_as_zero", plan="shares"),
    "module mixes rows": bug("a module takes the mean of the batch out of its rows, as a normalisation of batches does",
        name_in("hidden_layer", "measured", bugs.rows_mixed),
        _MODULE + "test_a_record_adds_the_same_integers_whatever_the_batch_holds_beside_it", plan="shares"),
    "calibration replaced as if added": bug(
        "a calibration is calibrated as if two records were no further apart than one is from none",
        square_of("calibration", bugs.as_added),
        _TEMPERATURE + "test_two_records_are_further_apart_than_one_is_from_none", plan="shares"),
    "confidence of one half": bug(
        "a calibration of any number of classes is calibrated as if no model could be less sure than of one in two",
        square_of("calibration", bugs.confidence_of_one_half),
        "tests/dp/test_sensitivities.py::test_no_shape_of_a_calibration_is_further_away", plan="shares"),
    "confidences instead of gains": bug(
        "a record sends eleven confidences, and not one and what the others are above it",
        name_in("privstats.kinds.calibration", "calibration_map", bugs.confidences_for_gains),
        _TEMPERATURE + "test_no_record_and_no_published_value_breaks_the_bound", plan="shares"),
    "parties replaced as if added": bug("the exchange of two parties is calibrated as if one had come",
        square_of("party-softmax", bugs.as_added),
        _PARTIES + "test_the_noise_is_one_over_mu_for_a_party_that_comes_and_twice_that_for_an_exchange",
        plan="parties", audits=(*_SEARCH, "canary")),
    "directions rounded and not shortened": bug(
        "a party's direction is rounded to the nearest steps, and nothing bounds the integers",
        name_in("privstats.kinds.party", "truncated", bugs.directions_not_shortened),
        _PARTIES + "test_no_records_break_the_bound", plan="shares"),
    "influences replaced as if added": bug("the exchange of two influences is calibrated as if one had come",
        square_of("effect", bugs.as_added), _EFFECT + "test_the_search_reaches_the_bound_and_never_passes_it",
        plan="shares"),
    "an influence left out for nothing": bug(
        "an influence whose neighbour cannot be read, and is in no sum, is priced as if both counted one",
        square_of("effect", bugs.left_out_for_nothing),
        _EFFECT + "test_a_record_that_is_left_out_moves_no_more_than_the_promise",
        "tests/threat_models/audits/test_effect.py::test_the_search_tries_a_neighbour_that_is_left_out", plan="shares"),
    "rows that a map loses": bug(
        "a record of declared columns that a map behind their cells loses is no record that cannot be read",
        name_in("privstats.records.readable", "_features", bugs.lost_rows_kept),
        _READABLE + "test_a_map_behind_declared_columns_that_loses_a_row_costs_no_other"),
    "a stranger's bound under delta 0": bug(
        "a kind of another package may state more than the bound of one record, of which no claim tells",
        name_in("privstats.kinds.admission", "_check_stated", lambda right: lambda row: None),
        "tests/plan/test_packages.py::test_a_kind_that_states_more_or_less_than_a_records_bound_is_refused"),
    "a map's error ends a session": bug(
        "an error of another package's map at one record reaches the session of the party that holds the record",
        name_in("privstats.transforms.base", "attempted", lambda right: lambda code, *given: code(*given)),
        "tests/moments/test_strange_maps.py::test_a_record_at_which_a_map_fails_is_excluded_alone"),
    "square of an influence apart": bug(
        "what the square of an influence leaves of 1 is formed from the real influence and not from the whole one",
        name_in("privstats.kinds.effect.influences", "_steps", lambda right: bugs.square_apart),
        _EFFECT + "test_every_record_keeps_the_bound_whatever_is_published", plan="shares"),
    "outcome lines not cut": bug(
        "a published line may leave the range of outcomes, and the influence is cut in its stead",
        name_in("privstats.kinds.effect.influences", "_truncated", lambda right: lambda fitted: fitted),
        _EFFECT + "test_outcomes_and_lines_are_cut_to_the_public_range", plan="shares"),
    "what lies below a ratio in 0..1": bug(
        "an exchange below the line of a ratio is calibrated as if it were of weights from 0 to 1",
        name_in("privstats.kinds.effect.schema", "_below", lambda right: lambda schema: 1.0),
        _RATIO + "test_every_pair_below_the_line_keeps_the_bound_and_the_ends_meet_it", plan="shares"),
    "all sites at one probability": bug("a site's records count at the first probability, whichever place it has",
        member(EffectMoments, "for_client", lambda moments, index: moments._in_group(index)),
        _RATIO + "test_a_site_counts_at_the_probability_of_its_place"),
    "numbers pass for texts": bug(
        "a value that is neither of a column's two declared texts counts as the number that it is",
        name_in("privstats.records.readable", "_parsed", bugs.numbers_for_texts),
        _LEVELS + "test_numbers_do_not_pass_for_texts"),
    "mean replaced as if added": bug("a mean is calibrated as if two rows could not oppose each other",
        square_of("mean", bugs.as_added),
        _MEAN + "test_some_two_records_are_as_far_apart_as_it_says", plan="shares"),
    "count sessions priced as one": bug("each count session of cut points spends what all of them may",
        name_in("privstats.course.binned", "_count_plan", bugs.sessions_as_one),
        _BINNED + "test_all_sessions_together_cost_the_promise_and_no_more", plan="shares"),
    "later counts unpriced": bug("the price of cut points has their first count session in it and no other",
        member(Phased, "priced", property(bugs.later_counts_unpriced)),
        _BINNED + "test_a_course_over_raw_tables_runs_to_a_head_with_all_of_its_promise", plan="shares"),
    "a retry priced as the cheapest session": bug(
        "a place costs what the cheapest session does that a retry may move there",
        member(Phased, "priced", property(bugs.cheapest_in_its_place)),
        _PHASES + "test_every_history_keeps_to_its_order_its_price_and_its_bytes[effect]"),
    "lost sessions uncharged": bug("the epsilon of a table leaves out the sessions without a sum",
        name_in("privstats.inference.reporting", "charged_mu", bugs.lost_uncharged),
        _BINNED + "test_counts_that_are_all_lost_are_in_every_printed_epsilon"),
    "lost sessions uncharged in a head": bug("the promise of a head leaves out the sessions without a sum",
        name_in("privstats.heads.provenance", "charged_mu", bugs.lost_uncharged),
        _BINNED + "test_counts_that_are_all_lost_are_in_every_printed_epsilon"),
    "a session's name unchecked": bug("a course takes a release of its plan that names another course or place",
        member(Phased, "_require_own", lambda course, releases: None),
        _POSITIONS + "test_attack_a_release_of_a_sibling_course_of_the_same_plans_is_refused"),
    "cells by counts": bug("how many cells the next session counts follows from the counts before",
        name_in("privstats.course.binned", "_refined", bugs.cells_by_counts),
        _BINNED + "test_no_record_and_no_cut_point_decides_a_price_a_size_or_a_width", plan="shares"),
    "counts closed at the right": bug("a value on a cut is counted below it and summed above",
        name_in("privstats.course.binned", "Bins", bugs.closed_at_the_right),
        _BINNED + "test_a_value_counts_in_the_cell_that_its_signs_say", plan="shares"),
    "rare classes stepping on noise": bug(
        "a rare class has the curvature of its share, and the noise of the round does not bound it",
        name_in("privstats.estimates.softmax", "class_curvature", bugs.curvature_without_noise),
        _SOFTMAX + "test_no_class_has_more_curvature_than_the_mean_of_all_or_less_than_its_noise_allows",
        plan="shares"),
    "noisy mean trusted whole": bug("rows are centred by a mean that is nothing but noise",
        name_in("privstats.course.centred", "shrunk_mean", bugs.unshrunk_mean),
        _CENTRED + "test_noise_that_hides_the_mean_leaves_the_plan_as_it_stands", plan="shares"),
    "reproducible generator accepted": bug("noise and keys may come from a generator whose stream others know",
        everywhere(checked, bugs.any_generator),
        _SESSION + "test_a_seeded_generator_reaches_a_real_machine_only_where_it_is_asked_for", plan="shares",
        audits=("noise",)),
    "re-entry lock missing": bug("a machine serves two callers at once", member(Exclusive, "_alone", bugs.anybody),
        _ALONE + "test_one_mask_delivered_twice_at_once_is_added_once", plan="shares"),
    "survivors counted after the charge": bug(
        "a release with too few survivors is charged and its noise drawn before it is refused",
        name_in("privstats.session.unmasked", "require_survivors", lambda right: bugs.unrequired),
        _SESSION + "test_too_few_survivors_cost_nothing_and_no_noise_is_drawn", plan="central"),
    **ACCELERATOR_MUTANTS,
    **DEVICES_MUTANTS,
    **LEDGER_MUTANTS,
    **NOISE_LAYERS_MUTANTS,
    **MACHINES,
    **HTTP_MUTANTS,
    **INSIDE_MUTANTS,
    **PANEL_MUTANTS,
    **PERSONS_MUTANTS,
    **PROOF_MUTANTS,
    **READING_MUTANTS,
    **READERS,
    **SITE_LEVELS_MUTANTS,
    **STREAM_MUTANTS,
    **UPDATES_MUTANTS,
})  # fmt: skip
