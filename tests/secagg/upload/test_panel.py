"""Who may sit on a panel: identities from the plan, box keys from anywhere, each signed for one run."""

from dataclasses import replace

import pytest

from privstats.errors import LocalProtocolError
from privstats.secagg import Identity, Offer, Panel, Roster
from tests.secagg.interactive.cohorts import stream
from tests.secagg.upload.cohorts import UNTIL, uploads_of

RUN = uploads_of()
IDENTITIES, OFFERS = RUN.panel.identities, RUN.panel.offers


def test_offers_come_in_any_order_and_travel_as_bytes_of_one_length() -> None:
    run = uploads_of()
    offers = run.panel.offers
    assert Panel(run.panel.identities, offers[::-1]) == run.panel
    assert [len(offer.encode()) for offer in offers] == [1_321] * 3
    assert tuple(Offer.decode(offer.encode()) for offer in offers) == offers
    for data in (b"", bytes(137), bytes(1_320), offers[0].encode()[:-1], "text"):
        with pytest.raises(LocalProtocolError, match="an offer has 1,321 bytes"):
            Offer.decode(data)


def test_a_box_key_with_a_half_to_which_nothing_can_be_sealed_is_refused() -> None:
    panel = uploads_of().panel
    right = panel.offers[1].box_key
    for bad in (b"\xff" * 1184 + right[1184:], right[:1184] + bytes(32), right[:-1], right[1184:], bytes(1216)):
        offers = (panel.offers[0], replace(panel.offers[1], box_key=bad), panel.offers[2])
        with pytest.raises(LocalProtocolError, match="the box key of panel member 1 is no key, or of low order"):
            Panel(panel.identities, offers)


@pytest.mark.parametrize(
    ("identities", "offers", "told"),
    [
        (IDENTITIES[:1], OFFERS[:1], "at least one helper"),
        ((IDENTITIES[0],) * 2, OFFERS[:2], "no identity twice"),
        (IDENTITIES, OFFERS[:2], "one offer for each of the places 0 to 2"),
        (IDENTITIES, (*OFFERS[:2], OFFERS[1]), "one offer for each"),
        ((*IDENTITIES[:2], bytes(32)), OFFERS, "place 2 is not of the identity that the plan names"),
        (IDENTITIES, (*OFFERS[:2], replace(OFFERS[2], box_key=OFFERS[1].box_key)), "offer one box key"),
        (IDENTITIES, (*OFFERS[:2], replace(OFFERS[2], box_key=bytes(32))), "panel member 2 is no key, or of low order"),
    ],
)
def test_a_panel_that_is_none(identities, offers, told: str) -> None:
    with pytest.raises(LocalProtocolError, match=told):
        Panel(identities, offers)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_swapped_box_keys_are_not_what_was_signed(place: int) -> None:
    fresh = Offer.make(
        place, Identity.generate(stream("x")), stream("y")(32), RUN.parameters, RUN.roster, until=UNTIL
    ).box_key
    offers = tuple(replace(offer, box_key=fresh) if offer.place == place else offer for offer in OFFERS)
    with pytest.raises(LocalProtocolError, match=f"place {place} is not signed for this plan and this run"):
        Panel(IDENTITIES, offers).context(RUN.parameters, RUN.roster)


def test_an_offer_is_for_one_run_and_one_plan() -> None:
    for other in (uploads_of(run=b"another run 1234"), uploads_of(min_survivors=5)):
        with pytest.raises(LocalProtocolError, match="not signed for this plan and this run"):
            RUN.panel.context(other.parameters, other.roster)


def test_the_panel_and_the_roster_are_different_parties() -> None:
    publics = RUN.roster.publics
    crowd = Roster((*publics[:5], IDENTITIES[1]), server=IDENTITIES[0], run=RUN.run)
    with pytest.raises(LocalProtocolError, match="among the roster's clients"):
        RUN.panel.context(RUN.parameters, crowd)
    other = Roster(publics, server=Identity.generate(stream("z")).public, run=RUN.run)
    with pytest.raises(LocalProtocolError, match="not the server on the roster"):
        RUN.panel.context(RUN.parameters, other)
    with pytest.raises(LocalProtocolError, match="for 6 clients, the roster has 5"):
        RUN.panel.context(RUN.parameters, Roster(publics[:5], server=IDENTITIES[0], run=RUN.run))
