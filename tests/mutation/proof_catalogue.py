"""The deliberate bugs of reports that carry proofs: rows as in ``catalogue``, which takes them.

No audit sees them: audits look at what a plan's sessions draw and release, and a proof changes neither. The unit tests
are lies that pass, and answers that say too much.
"""

from typing import Any

from privstats.contrib.proofs.field import Prime
from privstats.contrib.proofs.gadgets import Bits
from privstats.contrib.proofs.moments import Moments
from privstats.contrib.proofs.statement import Statement
from privstats.secagg.upload.batching import ReportBatches
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.signed_statements import derive
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member, name_in

_PROOF = "tests/contrib/proofs/"
_DOUBLES = _PROOF + "test_doubles.py::test_"
_MACHINES = "tests/contrib/proofs/test_proved.py::test_"

right_accepted, right_encode = Helper._accepted, Prime.encode


def _of_the_number(book: ReportBatches, number: int, part: Any) -> bytes:
    return derive(book._state.private, f"rho/{number}", book._context)


def _accepted_anew(helper: Helper, view: memoryview) -> Any:
    helper._parts.clear()
    helper._seen[:] = bytes(len(helper._seen))
    return right_accepted(helper, view)


def _without_factors(group: Prime, values: Any) -> Any:
    return right_encode(Prime(tuple((size, 1) for size, _ in group.parts)), values)


PROOF_MUTANTS: dict[str, Mutant] = {
    "products unproved": bug("the leader accepts every product of a matrix with itself",
        name_in("privstats.contrib.proofs.verifier", "gram_accepts", lambda right: lambda answer: True),
        _DOUBLES + "1_without_the_gram_of_the_factor_any_second_moments_pass"),
    "bits unproved": bug("the leader accepts any values in the place of bits",
        member(Bits, "accepts", lambda bits, values, quotients, gamma, point: True),
        _DOUBLES + "2_without_the_bits_check_values_in_their_place_make_every_relation_true"),
    "eight range tests": bug("a report is tested with 8 random sums instead of 128", member(Statement, "tests", 8),
        _PROOF + "test_statements.py::test_the_lengths_are_those_of_the_specification"),
    "cones forgotten": bug("no class's mean is shown to lie in the ball", member(Moments, "cones", 0),
        _DOUBLES + "13_without_cones_a_class_of_its_own_holds_a_record_of_any_norm"),
    "query not skipped": bug("a query may be one that reads a factor or a bit as it is",
        name_in("privstats.contrib.proofs.verifier", "_first_from", lambda right: lambda words, at, least: at),
        _DOUBLES + "12_a_query_never_reads_a_factor_or_a_bit_as_it_is"),
    "parts unblinded": bug(
        "the hash of a report's first stage has no blind, so all helpers together can test guesses of it",
        name_in(
            "privstats.contrib.proofs.transcript",
            "first_part",
            lambda right: lambda context, sender, blind, stage: right(context, sender, bytes(32), stage),
        ),
        _DOUBLES + "11_a_part_is_no_test_of_guesses",
    ),
    "bodies unhashed": bug("the leader does not hold a body against the parts that its client signed",
        name_in("privstats.secagg.upload.checks", "check_body", lambda right: lambda claim, body, message: None),
        _MACHINES + "a_body_that_is_not_the_signed_one_is_refused_and_its_client_may_send_again"),
    "coins of a number": bug("the coins of a part follow from its number and not from its reports",
        member(ReportBatches, "_coins", _of_the_number),
        _MACHINES + "coins_follow_from_every_report_of_their_part_with_its_body"),
    "two queries answered": bug("a helper answers every batch as if it were the first",
        member(Helper, "_accepted", _accepted_anew), _MACHINES + "a_helper_answers_one_rho_for_a_report_ever"),
    "witness not hedged": bug(
        "a report's secret does not depend on its witness, so two machines may use one mask for two of them",
        name_in(
            "privstats.contrib.proofs.field_streams",
            "secret_of",
            lambda right: lambda root, context, sender, vector, witness=b"": right(root, context, sender, vector),
        ),
        _MACHINES + "a_report_with_another_witness_has_other_shares_and_masks",
    ),
    "verdict ignored": bug("the leader adds reports whose proof failed",
        member(Leader, "_proved", lambda leader, part, accepted: accepted),
        _MACHINES + "a_lie_is_refused_and_named_and_the_sum_is_of_the_others"),
    "wire factors forgotten": bug(
        "entries travel in grid steps, so that a statement reads some of them with fractional coefficients",
        member(Prime, "encode", _without_factors), _PROOF + "test_group.py"),
}  # fmt: skip
