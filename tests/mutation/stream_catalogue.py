"""The deliberate bugs of streams, rounds and one party alone: rows as in ``catalogue``, which takes them over.

The audits of one plan see none of them; those of a course and of a stream do, in the tests that are named here.
"""

from privstats.course.planned import Phased
from privstats.course.recipes import RidgeRounds
from privstats.plan import Plan
from tests.mutation import stream_bugs
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member, name_in

_WEIGHING = "tests/contrib/streams/test_weighing.py::"
_ROUNDS = "tests/course/test_rounds.py::"
_ROUNDS_MEAN = "tests/course/test_rounds_mean.py::"
_PARTY_ROUNDS = "tests/course/test_party_rounds.py::"
_REGISTRY = "tests/contrib/streams/test_registry.py::"
_ALONE = "tests/course/test_alone.py::"
_FOUND = "tests/threat_models/audits/test_stream.py::"

STREAM_MUTANTS: dict[str, Mutant] = {
    "one square-root noise": bug("a correlated stream draws the same noise in every epoch",
        name_in("privstats.contrib.streams.stream", "_noise", stream_bugs.of_the_first_epoch),
        _WEIGHING + "test_the_noise_of_every_epoch_is_fresh",
        _FOUND + "test_the_noise_of_a_correct_stream_is_whole_and_new_in_every_epoch", plan="central"),
    "square-root noise a tenth too small": bug("a correlated stream draws noise that is 10 % too small",
        name_in("privstats.contrib.streams.stream", "_noise", stream_bugs.a_tenth_too_small),
        _WEIGHING + "test_the_noise_of_every_epoch_is_as_large_as_it_says",
        _FOUND + "test_the_noise_of_a_correct_stream_is_whole_and_new_in_every_epoch", plan="central"),
    "correlated noise of the seed alone": bug("the kept seed of a correlated stream draws one noise whatever the sums",
        name_in("privstats.contrib.streams.stream", "bytes_of_sums", stream_bugs.of_the_seed_alone),
        _WEIGHING + "test_attack_a_copy_of_the_seed_beside_other_sums", plan="central"),
    "one noise for one party": bug("all nodes that one party alone releases have the same noise",
        name_in("privstats.course.alone", "session", stream_bugs.one_noise_for_all),
        _ALONE + "test_every_node_of_one_party_has_noise_of_its_own", plan="central"),
    "rounds for all clients": bug("the shares of a round are sized for all clients instead of the honest survivors",
        member(Plan, "noise", stream_bugs.rounds_for_all_clients()),
        _ROUNDS + "test_the_honest_survivors_alone_carry_the_noise_of_a_round", plan="shares"),
    "a stream for one party": bug("one party alone releases the same records in every epoch of a stream",
        name_in("privstats.course.alone", "DisjointRounds", lambda right: stream_bugs.NeverDisjoint),
        _ALONE + "test_a_stream_is_not_released_over_the_same_records", plan="central"),
    "a stream without a registry": bug("the ledger begins nodes of a stream that no registry has seen",
        name_in("privstats.dp.ledger.book", "check_mark", stream_bugs.anybody_begins),
        _REGISTRY + "test_a_charge_that_somebody_makes_by_hand_is_refused_by_the_ledger", plan="central"),
    "mean of a course not charged": bug("a regression's course is priced without the mean of its rows' directions",
        member(Phased, "priced", property(stream_bugs.without_the_mean)),
        _ROUNDS_MEAN + "test_the_mean_takes_a_twentieth_and_the_whole_keeps_its_promise"),
    "mean of rows and not of directions": bug(
        "the mean of a regression sums rows as they are, without UnitNorm before them",
        member(RidgeRounds, "mean", property(stream_bugs.mean_of_rows)),
        _ROUNDS_MEAN + "test_what_it_sums_are_the_rows_directions"),
    "both rounds of parties at the whole promise": bug(
        "each of two rounds of parties has the noise of the promise for both",
        name_in("privstats.course.rounds", "part_of", stream_bugs.undivided),
        _PARTY_ROUNDS + "test_both_rounds_keep_the_promise_and_share_it_equally"),
}  # fmt: skip
