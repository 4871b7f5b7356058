"""Deliberate bugs of promises per person: who is one, how far one counts, and how far two are apart."""

from typing import Any

import numpy as np

from privstats.contrib.streams import PersonRegistry
from privstats.course.base import mu_of
from privstats.course.planned import Planned
from privstats.dp import joint_mu
from privstats.dp import sensitivities as units
from privstats.encoding import PersonClip
from privstats.encoding.client_clip import ClippedSums
from privstats.encoding.persons import AveragedSums
from privstats.inference import evidence
from privstats.intake.splits import Split
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import everywhere, member, name_in

_BOUNDS = "tests/dp/test_persons.py::"
_ROUNDS = "tests/course/test_persons.py::"
_STREAMS = "tests/contrib/streams/test_person_streams.py::"
_INBOX = "tests/contrib/streams/test_person_inbox.py::"
_AVERAGES = "tests/dp/test_averages.py::"
_SUMS = "tests/moments/test_persons.py::"
_SPLIT = "tests/moments/test_persons_split.py::"


def _in_full(_: PersonClip, __: Any, ___: int, squares: Any) -> ClippedSums:
    none = np.zeros(len(next(iter(squares.of_all().values()))), np.int64)
    return ClippedSums(none, none)


def _each_apart(_: Any) -> Any:
    return lambda ids: np.arange(len(ids))


def _as_they_stand(_: Any) -> Any:
    """Texts and numbers tell persons apart by how they are written."""

    def places(ids: Any) -> Any:
        known: dict[str, int] = {}
        return np.array([known.setdefault(str(each), len(known)) for each in ids], np.intp)

    return places


def _by_rows(_: Any) -> Any:
    return lambda ids, share, seed, _: Split(share, seed).held_out(np.arange(len(ids)), np.zeros(len(ids))).astype(int)


def _largest(course: Any) -> float:
    return max(map(mu_of, course.priced))


def _as_records(plan: Any, noise: Any) -> float:
    one, two = (joint_mu(plan.schema, noise.sigma, how) for how in ("add-remove", "replace-one"))
    return (one / two) ** 2


def _any_rows(*_: Any) -> None:
    return None


def _all_rows(right: Any) -> Any:
    return lambda batch, seen: right(batch, ())


def _undivided(_: AveragedSums, sums: Any, __: Any) -> Any:
    return sums


def _away_from_zero(of: AveragedSums, sums: Any, _: Any) -> Any:
    return np.sign(sums) * np.ceil(np.abs(sums) / of.rows)


PERSONS_MUTANTS: dict[str, Mutant] = {
    "person clip skipped": bug("a person's rows all count in full, however many there are",
        member(PersonClip, "clip_many", _in_full),
        _BOUNDS + "test_no_person_and_no_exchange_of_persons_passes_the_promise",
        plan="persons", audits=("canary",)),
    "every row a person": bug("every row counts as a person of its own",
        name_in("privstats.intake.person_ids", "persons_of", _each_apart),
        _SUMS + "test_persons_of_few_rows_count_in_full_and_others_shrink_as_a_whole", plan="persons",
        audits=("canary",)),
    "ids by spelling": bug("an id that is written in two ways is two persons",
        name_in("privstats.intake.person_ids", "persons_of", _as_they_stand),
        _SUMS + "test_an_id_says_the_same_in_every_container_and_beside_whatever_else", plan="persons"),
    "lost characters": bug("an id that lost a character in decoding is a person, whoever else lost one",
        name_in("privstats.intake.person_ids", "LOST", lambda right: "no character"),
        "tests/moments/test_person_ids.py::test_a_file_without_one_person_or_with_another_moves_by_the_promise",
        plan="persons"),
    "average not divided": bug("a person whose rows are averaged adds their sum",
        member(AveragedSums, "of", _undivided),
        _AVERAGES + "test_no_average_and_no_exchange_of_averages_passes_the_bound", plan="averages",
        audits=("canary",)),
    "average away from zero": bug(
        "an average is cut away from zero, so that many small parts add up to more than a record",
        member(AveragedSums, "of", _away_from_zero),
        _AVERAGES + "test_no_average_passes_the_distance_that_laplace_noise_pays", plan="averages"),
    "averages without a cut": bug("two averages are taken to be no further apart than two records",
        everywhere(units.averaged_mu, joint_mu),
        "tests/plan/test_persons.py::test_every_kind_certifies_averages_or_refuses_them_by_name", plan="averages"),
    "intervals of shortened persons": bug("readers take sums in which persons were shortened for averages",
        everywhere(evidence.require_records, lambda release: release),
        "tests/plan/test_persons.py::test_no_interval_is_told_of_rows_that_are_not_independent", plan="persons"),
    "intervals forget the cut": bug("means of averages reckon with the noise alone",
        name_in("privstats.inference.groups.means", "reckoned_sigma", lambda right: lambda release: release.sigma),
        "tests/inference/test_persons.py::test_what_the_cut_takes_of_many_persons_is_in_their_intervals",
        plan="persons"),
    "persons never opposed": bug("two persons are taken to be no further apart than one is long",
        everywhere(units.apart, lambda schema, statistic, adjacency: 1.0),
        _BOUNDS + "test_the_worst_exchange_is_attained", plan="persons swap",
        audits=("budget", "sensitivity", "canary")),
    "rounds of a person priced as one": bug("a course costs a person as much as its largest round",
        member(Planned, "mu", property(_largest)),
        _ROUNDS + "test_one_person_moves_all_rounds_together_by_no_more_than_the_course_promises", plan="persons"),
    "rows pass for persons": bug("a session takes sums in which nobody was shortened",
        name_in("privstats.session.validation", "_require_persons", lambda right: lambda plan, moments: None),
        _SUMS + "test_a_session_takes_one_partys_persons_and_nothing_else", plan="persons"),
    "a split of persons by rows": bug("a split holds out rows, so a head is scored on persons that made it",
        name_in("privstats.intake.person_ids", "sides_of", _by_rows),
        _SPLIT + "test_a_file_has_no_person_on_both_sides", plan="persons"),
    "persons of a stream exchanged as records": bug(
        "an exchange of persons who stand in different epochs is priced as one of records",
        name_in("privstats.contrib.streams.stream", "_alone", lambda _: _as_records),
        _STREAMS + "test_one_who_enters_where_the_other_leaves_is_paid_for"),
    "other rows leave than entered": bug("a person leaves a stream with whatever rows there are that day",
        member(PersonRegistry, "_check_rows", _any_rows),
        _STREAMS + "test_a_changed_row_is_refused_when_its_person_leaves"),
    "later rows of a person enter": bug(
        "rows of a person who is in a stream already are added to those that came first",
        name_in("privstats.contrib.streams.inbox", "_first", _all_rows),
        _INBOX + "test_who_comes_again_is_left_out_and_counted_and_everybody_else_enters"),
}  # fmt: skip
