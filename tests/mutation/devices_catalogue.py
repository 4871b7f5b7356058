"""The deliberate bugs around devices of invited people: rows as in ``catalogue``, which takes them.

No release shows them: they are about who may send, whom a page names, and what a person is told.
"""

from typing import Any

from privstats.contrib.http.invitations import Invitation
from privstats.secagg.upload.signed_statements import box_info
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import everywhere, member, name_in

_REGISTRAR = "tests/contrib/http/test_registrar.py::"
_PLAN = "tests/plan/test_devices.py::"
_INVITATIONS = "tests/contrib/http/test_invitations.py::"


def nothing(*_: Any, **__: Any) -> None:
    """A check that is left out."""


class _Any:
    """A digest that is every digest."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


DEVICES_MUTANTS: dict[str, Mutant] = {
    "a roster that nobody signed": bug(
        "leader and helpers take a roster without the registrar's signature: a leader's Sybils around one person",
        name_in("privstats.contrib.http.registrar", "verify", lambda right: lambda public, signature, said: True),
        _REGISTRAR + "test_a_party_takes_no_roster_that_its_registrar_did_not_sign"),
    "a roster signed for any plan": bug(
        "the registrar's signature is over the roster alone, so one of another plan passes",
        name_in("privstats.contrib.http.registrar", "_statement", lambda right: lambda plan, roster: roster.digest),
        _REGISTRAR + "test_a_party_takes_no_roster_that_its_registrar_did_not_sign"),
    "the leader serves the page": bug(
        "the registrar's folder is made for a page on the leader's host, which then reads every answer",
        name_in("privstats.contrib.http.registrar", "_check_page", lambda right: nothing),
        _REGISTRAR + "test_what_would_break_the_promise_is_refused_in_a_sentence"),
    "a code in a query": bug("a link has its code behind a question mark, so that it is in every log on the way",
        member(Invitation, "link", lambda self, page: f"{page}?{self.fragment}"),
        _REGISTRAR + "test_every_person_has_a_place_that_its_code_proves"),
    "a place outside of the check": bug(
        "a link's check is over the code alone: a mistyped place is somebody else's",
        name_in(
            "privstats.contrib.http.invitations", "_check_of", lambda right: lambda said: right(said.split(".")[2])
        ),
        _INVITATIONS + "test_a_code_gives_the_frozen_key_and_link",
    ),
    "a study of its plan alone": bug(
        "the page's digest leaves the roster out: one person can be shown a roster of Sybils",
        name_in(
            "privstats.contrib.http.invitations",
            "study_of",
            lambda right: lambda run, plan, roster: right(run, plan, bytes(32)),
        ),
        _INVITATIONS + "test_a_study_has_the_frozen_digest",
    ),
    "one answer as a neighbour": bug(
        "a person is told the plan's epsilon of being in or out, where one answer against another is asked for",
        name_in("privstats.plan.device_rules", "exchanged_mu", lambda right: lambda schema, privacy, noise: noise.mu),
        _PLAN + "test_a_person_is_told_at_least_what_one_answer_against_another_costs"),
    "one run of many": bug(
        "a person is told the epsilon of one run, and is invited to several",
        name_in(
            "privstats.plan.device_rules",
            "min_stated_epsilon",
            lambda right: lambda schema, privacy, noise, runs: right(schema, privacy, noise, 1),
        ),
        _PLAN + "test_what_no_device_can_be_asked_is_refused_in_a_sentence",
    ),
    "names to the letter": bug(
        "organisations are compared to the letter, so that 'ULM' may serve the page of the panel's 'Ulm'",
        name_in("privstats.plan.device_rules", "folded", lambda right: lambda name: name),
        _PLAN + "test_no_spelling_of_a_members_name_serves_the_page_or_invites"),
    "devices with distributed noise": bug("a plan lets devices add shares of the noise, which nobody can audit",
        name_in("privstats.plan.device_rules", "_refuse_own_noise", lambda right: nothing),
        _PLAN + "test_what_no_device_can_be_asked_is_refused_in_a_sentence"),
    "a manifest believed": bug("a device takes plan, ring and numbers of the manifest without the page's digest",
        name_in("privstats.contrib.http.device", "study_of", lambda right: lambda run, plan, roster: _Any()),
        "tests/contrib/http/test_hostile.py::test_a_panel_of_the_registrars_own_keys_well_signed_is_refused"),
    "a box without its place": bug(
        "boxes are not bound to the sender's index: one device's box counts in every place whose key an adversary has",
        everywhere(box_info, lambda context, sender, receiver: box_info(context, 0, receiver)),
        "tests/secagg/upload/test_adversarial_roster.py::test_a_box_in_another_place_does_not_open_whoever_signs_it"),
}  # fmt: skip
