"""The deliberate bugs of streams, rounds and one party alone: rows as in ``catalogue``, which takes them over.

The audits of one plan see none of them; those of a course and of a stream do, in the tests that are named here.
"""

from __future__ import annotations

from privstats.course import Rounds
from privstats.course.recipes import RidgeRounds
from privstats.plan import Plan
from tests.mutation import stream_bugs
from tests.mutation.mutant import Mutant
from tests.mutation.planting import member, name_in

__all__ = ["STREAM_MUTANTS"]

_WEIGHING = "tests/course/test_weighing.py::"
_ROUNDS = "tests/course/test_rounds.py::"
_ROUNDS_MEAN = "tests/course/test_rounds_mean.py::"
_PARTY_ROUNDS = "tests/course/test_party_rounds.py::"
_REGISTRY = "tests/course/test_registry.py::"
_ALONE = "tests/course/test_alone.py::"
_FOUND = "tests/threat_models/audits/test_stream.py::"

STREAM_MUTANTS: dict[str, Mutant] = {
    "one square-root noise": Mutant(
        "a correlated stream draws the same noise in every epoch",
        name_in("privstats.course.weighing", "_noise", stream_bugs.of_the_first_epoch),
        "central",
        (
            _WEIGHING + "test_the_noise_of_every_epoch_is_fresh",
            _FOUND + "test_the_noise_of_a_correct_stream_is_whole_and_new_in_every_epoch",
        ),
        (),
    ),
    "square-root noise a tenth too small": Mutant(
        "a correlated stream draws noise that is 10 % too small",
        name_in("privstats.course.weighing", "_noise", stream_bugs.a_tenth_too_small),
        "central",
        (
            _WEIGHING + "test_the_noise_of_every_epoch_is_as_large_as_it_says",
            _FOUND + "test_the_noise_of_a_correct_stream_is_whole_and_new_in_every_epoch",
        ),
        (),
    ),
    "correlated noise of the seed alone": Mutant(
        "the kept seed of a correlated stream draws one noise whatever the sums",
        name_in("privstats.course.weighing", "said_by", stream_bugs.of_the_seed_alone),
        "central",
        (_WEIGHING + "test_attack_a_copy_of_the_seed_beside_other_sums",),
        (),
    ),
    "one noise for one party": Mutant(
        "all nodes that one party alone releases have the same noise",
        name_in("privstats.course.alone", "session", stream_bugs.one_noise_for_all),
        "central",
        (_ALONE + "test_every_node_of_one_party_has_noise_of_its_own",),
        (),
    ),
    "rounds for all clients": Mutant(
        "the shares of a round are sized for all clients instead of the honest survivors",
        member(Plan, "noise", stream_bugs.rounds_for_all_clients()),
        "shares",
        (_ROUNDS + "test_the_honest_survivors_alone_carry_the_noise_of_a_round",),
        (),
    ),
    "a stream for one party": Mutant(
        "one party alone releases the same records in every epoch of a stream",
        name_in("privstats.course.alone", "DisjointRounds", lambda right: stream_bugs.NeverDisjoint),
        "central",
        (_ALONE + "test_a_stream_is_not_released_over_the_same_records",),
        (),
    ),
    "a stream without a registry": Mutant(
        "the ledger begins nodes of a stream that no registry has seen",
        name_in("privstats.ledger.book", "check_mark", stream_bugs.anybody_begins),
        "central",
        (_REGISTRY + "test_a_charge_that_somebody_makes_by_hand_is_refused_by_the_ledger",),
        (),
    ),
    "mean of a course not charged": Mutant(
        "a regression's course is priced without the mean of its rows' directions",
        member(Rounds, "priced", property(stream_bugs.without_the_mean)),
        "",
        (_ROUNDS_MEAN + "test_the_mean_takes_a_twentieth_and_the_whole_keeps_its_promise",),
        (),
    ),
    "mean of rows and not of directions": Mutant(
        "the mean of a regression sums rows as they are, without UnitNorm before them",
        member(RidgeRounds, "mean", property(stream_bugs.mean_of_rows)),
        "",
        (_ROUNDS_MEAN + "test_what_it_sums_are_the_rows_directions",),
        (),
    ),
    "both rounds of parties at the whole promise": Mutant(
        "each of two rounds of parties has the noise of the promise for both",
        name_in("privstats.course.party_rounds", "part_of", stream_bugs.undivided),
        "",
        (_PARTY_ROUNDS + "test_both_rounds_keep_the_promise_and_share_it_equally",),
        (),
    ),
}
