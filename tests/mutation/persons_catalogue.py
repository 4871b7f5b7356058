"""Deliberate bugs of promises per person: who is one, how far one counts, and how far two are apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from privstats.course import PersonRegistry
from privstats.course.base import mu_of
from privstats.course.planned import Planned
from privstats.dp import joint_mu, units
from privstats.encoding import PersonClip
from privstats.encoding.client_clip import ClippedSums
from privstats.encoding.person_average import AveragedSums
from privstats.inference import evidence
from privstats.moments.record_files import held_out
from tests.mutation.mutant import Mutant
from tests.mutation.planting import everywhere, member, name_in

__all__ = ["PERSONS_MUTANTS"]

_BOUNDS = "tests/dp/test_persons.py::"
_ROUNDS = "tests/course/test_persons.py::"
_STREAMS = "tests/course/test_person_streams.py::"
_INBOX = "tests/engines/network/test_person_inbox.py::"
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
    return lambda ids, share, seed: held_out(np.arange(float(len(ids)))[:, None], share, seed)


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
    "person clip skipped": Mutant(
        "a person's rows all count in full, however many there are",
        member(PersonClip, "cut", _in_full),
        "persons",
        (_BOUNDS + "test_no_person_and_no_exchange_of_persons_passes_the_promise",),
        ("canary",),
    ),
    "every row a person": Mutant(
        "every row counts as a person of its own",
        name_in("privstats.moments.person_ids", "persons_of", _each_apart),
        "persons",
        (_SUMS + "test_persons_of_few_rows_count_in_full_and_others_shrink_as_a_whole",),
        ("canary",),
    ),
    "ids by spelling": Mutant(
        "an id that is written in two ways is two persons",
        name_in("privstats.moments.person_ids", "persons_of", _as_they_stand),
        "persons",
        (_SUMS + "test_an_id_says_the_same_in_every_container_and_beside_whatever_else",),
        (),
    ),
    "lost characters": Mutant(
        "an id that lost a character in decoding is a person, whoever else lost one",
        name_in("privstats.moments.person_ids", "LOST", lambda right: "no character"),
        "persons",
        ("tests/moments/test_person_ids.py::test_a_file_without_one_person_or_with_another_moves_by_the_promise",),
        (),
    ),
    "average not divided": Mutant(
        "a person whose rows are averaged adds their sum",
        member(AveragedSums, "of", _undivided),
        "averages",
        (_AVERAGES + "test_no_average_and_no_exchange_of_averages_passes_the_bound",),
        ("canary",),
    ),
    "average away from zero": Mutant(
        "an average is cut away from zero, so that many small parts add up to more than a record",
        member(AveragedSums, "of", _away_from_zero),
        "averages",
        (_AVERAGES + "test_no_average_passes_the_distance_that_laplace_noise_pays",),
        (),
    ),
    "averages without a cut": Mutant(
        "two averages are taken to be no further apart than two records",
        everywhere(units.averaged_mu, joint_mu),
        "averages",
        ("tests/plan/test_persons.py::test_every_kind_certifies_averages_or_refuses_them_by_name",),
        (),
    ),
    "intervals of shortened persons": Mutant(
        "readers take sums in which persons were shortened for averages",
        everywhere(evidence.require_records, lambda release: release),
        "persons",
        ("tests/plan/test_persons.py::test_no_interval_is_told_of_rows_that_are_not_independent",),
        (),
    ),
    "intervals forget the cut": Mutant(
        "means of averages reckon with the noise alone",
        name_in("privstats.inference.groups.means", "reckoned_sigma", lambda right: lambda release: release.sigma),
        "persons",
        ("tests/inference/test_persons.py::test_what_the_cut_takes_of_many_persons_is_in_their_intervals",),
        (),
    ),
    "persons never opposed": Mutant(
        "two persons are taken to be no further apart than one is long",
        everywhere(units.apart, lambda schema, statistic, adjacency: 1.0),
        "persons swap",
        (_BOUNDS + "test_the_worst_exchange_is_attained",),
        ("budget", "sensitivity", "canary"),
    ),
    "rounds of a person priced as one": Mutant(
        "a course costs a person as much as its largest round",
        member(Planned, "mu", property(_largest)),
        "persons",
        (_ROUNDS + "test_one_person_moves_all_rounds_together_by_no_more_than_the_course_promises",),
        (),
    ),
    "rows pass for persons": Mutant(
        "a session takes sums in which nobody was shortened",
        name_in("privstats.session.validation", "_require_persons", lambda right: lambda plan, moments: None),
        "persons",
        (_SUMS + "test_a_session_takes_one_partys_persons_and_nothing_else",),
        (),
    ),
    "a split of persons by rows": Mutant(
        "a split holds out rows, so a head is scored on persons that made it",
        name_in("privstats.moments.person_ids", "persons_held_out", _by_rows),
        "persons",
        (_SPLIT + "test_a_file_has_no_person_on_both_sides",),
        (),
    ),
    "persons of a stream exchanged as records": Mutant(
        "an exchange of persons who stand in different epochs is priced as one of records",
        name_in("privstats.course.stream", "_alone", lambda _: _as_records),
        "",
        (_STREAMS + "test_one_who_enters_where_the_other_leaves_is_paid_for",),
        (),
    ),
    "other rows leave than entered": Mutant(
        "a person leaves a stream with whatever rows there are that day",
        member(PersonRegistry, "_check_rows", _any_rows),
        "",
        (_STREAMS + "test_a_changed_row_is_refused_when_its_person_leaves",),
        (),
    ),
    "later rows of a person enter": Mutant(
        "rows of a person who is in a stream already are added to those that came first",
        name_in("privstats.engines.network.person_inbox", "_first", _all_rows),
        "",
        (_INBOX + "test_who_comes_again_is_left_out_and_counted_and_everybody_else_enters",),
        (),
    ),
}
