"""The deliberate bugs of what is charged: ledger, run names, refunds. Rows as in ``catalogue``, which takes them over.

The audits of one plan measure noise and see none of them; the unit tests do, and of courses the audit named here.
"""

from privstats import dp
from privstats.dp import Cost
from privstats.files.outside import Outside
from privstats.heads.private import RowCount
from privstats.session.charges import RoundCharge
from tests.mutation import bugs
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import both, member, name_in

_PRIVATE = "tests/heads/test_private.py::"
_RESAMPLED = "tests/heads/test_resampling.py::"
_SESSION = "tests/session/test_session.py::"
_IN_PLACE = "tests/engines/test_journal_in_place.py::"
_RUNS = "tests/ledger/test_runs.py::"
_WITHDRAWN = "tests/test_withdrawn.py::"
_PRICE = "tests/ledger/test_price.py::"
_HELD_OUT = "tests/engines/network/test_held_out.py::"
_NODES = "tests/course/test_nodes.py::"
_PHASES = "tests/course/test_phases.py::"
_COURSE = "tests/threat_models/audits/test_course.py::"

LEDGER_MUTANTS: dict[str, Mutant] = {
    "wrong adjacency in the ledger": bug("the ledger charges an account under the adjacency that it does not have",
        name_in("privstats.dp.ledger.price", "joint_mu", bugs.charged_by_the_other),
        "tests/ledger/test_book.py::test_another_adjacency_is_charged_what_it_costs_here", plan="shares"),
    "repeated record charged as one row": bug(
        "a record that may be in k rows of a fit is charged k times the square of mu, and not k squared",
        member(Cost, "repeated", staticmethod(bugs.charged_by_rows)),
        _RESAMPLED + "test_every_fit_is_charged_for_the_record", plan="shares"),
    "repeated record promised as one row": bug(
        "the noise of a fit is that of one row, and the promise is said of a record in k of them",
        name_in("privstats.heads.private_estimator", "_of_one_row", lambda right: lambda *terms: {}),
        _RESAMPLED + "test_a_record_in_all_of_its_rows_has_the_promise", plan="shares"),
    "exact count in a course": bug("the rounds of one party alone have the exact number of its rows in their plans",
        member(RowCount, "of", classmethod(bugs.counted)),
        _PRIVATE + "test_attack_the_number_of_rows_is_not_read_in_silence_where_a_record_may_be_absent", plan="shares"),
    "a letter without noise is free": bug(
        "the ledger prices the noise that there is, whatever the schema sends beside it",
        name_in("privstats.dp.ledger.price", "_check_named", lambda right: lambda schema, noise: None),
        _PRICE + "test_third_and_fourth_powers_are_not_for_nothing", plan="shares"),
    "noise is taken at its word": bug(
        "the ledger charges what the noise says of itself, also where it was sized for another schema",
        name_in("privstats.dp.ledger.price", "_check_sized", lambda right: lambda schema, privacy, noise: None),
        _PRICE + "test_noise_of_another_schema_is_refused", plan="shares"),
    "a broken promise stands": bug("rounds state any promise for all of them together",
        name_in("privstats.course.planned", "require_promise", lambda right: lambda promise, mu: None),
        "tests/course/test_contract.py::test_a_promise_that_the_rounds_break_is_refused_in_one_sentence",
        plan="shares"),
    "a retry at another session's price": bug(
        "a session that a retry moved is priced as the session whose place it takes",
        name_in("privstats.course.phases", "_dearest", lambda right: lambda phases: phases[-1].plan),
        _PHASES + "test_a_place_costs_what_the_dearest_session_costs_that_a_retry_may_move_there", plan="shares"),
    "a split under replace-one": bug(
        "a party holds records out of sums whose noise does not hide one record more or less",
        name_in("privstats.engines.network.measuring", "require_hidden", lambda right: lambda course: None),
        _HELD_OUT + "test_the_command_and_the_party_refuse_a_split_that_the_plan_does_not_hide", plan="shares"),
    "an older ledger in its folder": bug(
        "a ledger that was restored together with its folder is not held against the head outside",
        name_in("privstats.dp.ledger.file", "check_outside", lambda right: lambda *_: None),
        "tests/ledger/test_chain.py::test_attack_a_folder_restored_in_place_spends_a_second_time", plan="shares"),
    "an unreadable counter counts as none": bug(
        "a counter or head outside that exists and cannot be read counts as missing",
        member(Outside, "read", bugs.read_or_none),
        _IN_PLACE + "test_a_counter_that_cannot_be_read_admits_no_older_folder",
        "tests/ledger/test_chain.py::test_a_head_outside_that_cannot_be_read_admits_no_older_copy", plan="shares"),
    "a damaged counter counts as none": bug("a counter that holds no number counts as missing",
        name_in("privstats.engines.journal.rollback", "_number", bugs.number_or_none),
        _IN_PLACE + "test_a_damaged_counter_admits_no_older_folder", plan="shares"),
    "ledger keeps the largest": bug("the ledger counts the dearest release instead of all of them",
        name_in("privstats.dp.ledger.accounts", "compose", lambda right: lambda mus: max(mus, default=0.0)),
        "tests/ledger/test_book.py::test_totals_compose_like_gaussians_and_by_statistic", plan="shares"),
    "charge skipped": bug(
        "sessions and releases never ask the ledger that they are given",
        both(
            name_in("privstats.session.machines", "register_run", lambda right: lambda plan, account, roster: None),
            name_in("privstats.session.unmasked", "charged", lambda right: bugs.never_charged),
        ),
        _SESSION + "test_the_ledger_is_told_before_the_masked_vector_leaves",
        _SESSION + "test_a_hundred_releases_of_one_total_leave_a_tenth_of_the_noise_and_are_stopped_by_the_cap",
        plan="shares",
    ),
    "run name not checked": bug(
        "a run's name is good for a second upload and for another plan",
        both(
            name_in("privstats.dp.ledger.book", "same_spend", lambda right: lambda earlier, *asked: earlier),
            name_in("privstats.dp.ledger.book", "check_name_unused", lambda right: lambda accounts, run: None),
        ),
        _RUNS + "test_a_retry_after_the_upload_has_left_is_a_second_release",
        _RUNS + "test_one_run_name_serves_one_plan",
        plan="shares",
    ),
    "counter not checked": bug("the ledger accepts any number of a run",
        member(dp.Ledger, "_count", lambda ledger, log, members, counter, run: None),
        _RUNS + "test_a_run_number_is_accepted_only_if_it_is_the_next",
        _SESSION + "test_run_names_cannot_be_ground_because_a_ledger_takes_only_the_next_number", plan="shares"),
    "node mark missing": bug("a party takes part in a node of a course as often as it is asked",
        member(RoundCharge, "spend", lambda charge, plan, run, number=None: charge.entry),
        _NODES + "test_two_invented_releases_for_one_node_and_the_second_is_refused_although_its_digest_is_new",
        _COURSE + "test_a_canary_over_a_whole_course_ends_at_or_below_the_claim", plan="shares"),
    "withdrawn although it left": bug("a ledger gives back what was spent for an upload that has left",
        name_in("privstats.dp.ledger.book", "check_waiting", lambda right: lambda entry: None),
        _WITHDRAWN + "test_what_has_left_is_not_withdrawn", plan="shares"),
    "upload after its withdrawal": bug("an upload leaves under a spend that was given back",
        name_in("privstats.dp.ledger.book", "check_unsent", lambda right: lambda entry: None),
        _WITHDRAWN + "test_a_second_machine_of_a_withdrawn_run_never_speaks", plan="shares"),
}  # fmt: skip
