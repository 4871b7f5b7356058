"""Masks from shares, and keys from X25519 with ML-KEM-768: exact under loss and disputes; what liars try by them."""

from collections.abc import Collection
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats.encoding import RingVector
from privstats.errors import AggregationError, LocalProtocolError, PlanError, RemoteProtocolError
from privstats.secagg import Client, Parameters, Server, kem
from privstats.secagg.interactive import client_secrets as schedule
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.dealing import part
from privstats.secagg.interactive.messages import advert_statement, open_statement
from privstats.secagg.interactive.random_graph import excludable
from privstats.secagg.interactive.state import STEPS, answers_of
from privstats.secagg.keys import derive, public_of
from privstats.secagg.prg import add_masks, reduce
from privstats.secagg.scalars import ORDER, to_bytes
from tests.secagg.interactive.cohorts import PLAN, RING, Cohort, cohort_of, finish, forge, lie, play_until, read
from tests.secagg.interactive.inside import inside
from tests.secagg.interactive.transcripts import spoil

KEY = bytes(32)
LIAR, HONEST = 5, (0, 1, 2, 3, 4)
Sum = tuple[np.ndarray, tuple[int, ...]]


def answer(cohort: Cohort, outbox: dict[int, bytes], client: int = LIAR) -> Any:
    """A client's honest answer, opened, so that it can be altered."""
    kind = answers_of(cohort.server.step, cohort.parameters)
    return read(cohort, client, cohort.clients[client].receive(outbox[client])[0][1], kind)


def exact(cohort: Cohort, found: Sum, survivors: tuple[int, ...]) -> None:
    total, over = found
    assert over == survivors
    assert np.array_equal(total, cohort.sum_over(survivors))


def after_share(cohort: Cohort, disputes: Collection[tuple[int, int]], gone: Collection[int] = ()) -> dict[int, bytes]:
    """Everybody has dealt, and some boxes are spoilt on their way: what opens ``check``."""
    outbox = play_until(cohort, "share")
    cohort.answer(outbox, (client for client in outbox if client not in gone))
    for owner, holder in disputes:
        spoil(cohort.server, owner, holder)
    return dict(cohort.server.end_step())


def onwards(cohort: Cohort, outbox: dict[int, bytes], gone: dict[str, Collection[int]]) -> Sum:
    """To the end, without those that vanish at a step."""
    lost: set[int] = set()
    while cohort.server.step not in ("done", "failed"):
        lost |= set(gone.get(cohort.server.step, ()))
        cohort.answer(outbox, (client for client in outbox if client not in lost))
        outbox = dict(cohort.server.end_step())
    total, survivors = cohort.server.result
    return total.lift(), survivors


class TestExact:
    @settings(max_examples=25, deadline=None)
    @given(data=st.data())
    def test_a_sum_is_exact_or_there_is_a_named_abort(self, data: st.DataObject) -> None:
        """Over losses at every step, and disputes between any two."""
        n = data.draw(st.integers(2, 6), "clients")
        least = data.draw(st.integers(n // 2 + 1, n), "min_survivors")
        cohort = cohort_of(n, least, data.draw(st.integers(0, max(0, 2 * least - n - 2)), "colluders"))
        steps = st.sampled_from(("check", "mask", "agree", "unmask"))
        lost = data.draw(st.dictionaries(steps, st.sets(st.integers(0, n - 1), max_size=1), max_size=2), "lost")
        pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
        outbox = after_share(cohort, data.draw(st.sets(pairs, max_size=2), "disputes"))
        try:
            found = onwards(cohort, outbox, lost)
        except AggregationError as abort:
            assert abort.code in messages.ABORTS
            assert abort.code != "misdealt"
            return
        except RemoteProtocolError as refusal:  # a client that has too few to mask with, or who prove nothing to it
            assert refusal.code in ("unproven_survivors", "too_few_neighbours")
            return
        exact(cohort, found, found[1])
        assert len(found[1]) >= least

    @pytest.mark.parametrize("disputes", [[], [(1, 3)], [(3, 1)], [(1, 3), (3, 1)]])
    @pytest.mark.parametrize("lost", [{}, {"mask": [3]}, {"mask": [1]}, {"unmask": [0]}, {"mask": [2], "unmask": [4]}])
    def test_with_and_without_a_dispute(self, disputes: list[tuple[int, int]], lost: dict[str, list[int]]) -> None:
        """Owner and holder of a spoilt box do not mask with each other, whoever of them vanishes."""
        cohort = cohort_of(7, 4, 0)
        found = onwards(cohort, after_share(cohort, disputes), lost)
        exact(cohort, found, tuple(client for client in range(7) if client not in lost.get("mask", ())))

    @pytest.mark.parametrize("step", list(STEPS))
    def test_after_a_kill_of_everybody_before_every_step(self, step: str) -> None:
        cohort = cohort_of(5, 3, 0)
        outbox = play_until(cohort, step, {"mask": {4}})
        for client in outbox:
            sealed = cohort.clients[client].export(KEY)
            cohort.clients[client] = Client.resume(sealed, KEY, **cohort.place(client))
        cohort.server = Server.resume(cohort.server.export(KEY), KEY, **cohort.place())
        assert dict(cohort.server.outbox) == outbox
        lost = {"mask": [4]} if step in ("advertise", "share", "check", "mask") else {}
        exact(cohort, onwards(cohort, outbox, lost), (0, 1, 2, 3))


class TestRepeats:
    def dealt(self, cohort: Cohort, sealed: bytes, message: bytes) -> tuple[bytes, messages.Share]:
        client = Client.resume(sealed, KEY, **cohort.place(0))
        ((_, data),) = client.receive(message)
        return data, messages.decode(inside(client).channel().open(memoryview(data)), messages.Share)

    def test_a_dealing_that_is_made_again_is_the_same_in_other_boxes_under_another_nonce(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "share")
        sealed = cohort.clients[0].export(KEY)
        (one, first), (other, second) = (self.dealt(cohort, sealed, outbox[0]) for _ in range(2))
        public = [(each.commitments, each.responses, each.proofs) for each in (first, second)]
        assert public[0] == public[1]
        assert first.boxes != second.boxes
        nonces = [data[37 : 37 + messages.NONCE_BYTES] for data in (one, other)]
        assert nonces[0] != nonces[1]

    def test_a_client_that_is_restored_deals_other_polynomials_in_another_session(self) -> None:
        """Of its first session others hold shares: they must be of nothing that it uses in the second."""
        held = []
        for run in ("first", "second"):
            cohort = cohort_of()
            cohort.server = Server(**cohort.place(), entropy=lambda size, run=run: derive(run.encode(), "x", size=size))
            outbox = after_share(cohort, ())
            cohort.clients[1].receive(outbox[1])
            held.append(inside(cohort.clients[1]).state.held[0])
        assert held[0][:32] != held[1][:32]
        assert held[0][32:] != held[1][32:]


@pytest.mark.parametrize("levels", [(), (4, 5, 6)])
def test_the_largest_messages_are_as_long_as_their_limits(levels: tuple[int, ...]) -> None:
    """To the byte, but for lists that nobody is on here, five names, and signatures and hashes that are not needed."""
    cohort = Cohort(Parameters(6, 4, 4, 1, 5, RING, PLAN, levels=levels))
    outbox, most = dict(cohort.server.start()), dict[int, int]()
    for step in STEPS:
        following = {client: cohort.clients[client].receive(message)[0][1] for client, message in outbox.items()}
        for data in (*outbox.values(), *following.values()):
            most[data[2]] = max(most.get(data[2], 0), len(data))
        for client, data in following.items():
            cohort.server.receive(client, data)
        if step != "unmask":
            outbox = dict(cohort.server.end_step())
    kinds = get_args(messages.ClientMessage) + get_args(messages.ServerMessage)
    left = {
        kind: messages.size_limit(kind, cohort.parameters) - most[kind.__struct_config__.tag]
        for kind in kinds
        if kind.__struct_config__.tag in most
    }
    shorter = {messages.Dealers: 5, messages.Agreement: 2 * 65 + 1}
    shorter |= {messages.CheckWithCommitment if levels else messages.Check: 5}
    assert left.pop(messages.Adverts) % 32 == 0
    assert {kind: size for kind, size in left.items() if size} == shorter
    assert len(left) == 11


@pytest.mark.parametrize("step", list(STEPS))
def test_a_message_of_another_version_is_refused_by_name_and_changes_nothing(cohort: Cohort, step: str) -> None:
    """Version 3 agreed on keys by X25519 alone."""
    outbox = play_until(cohort, step)
    answers = {client: cohort.clients[client].receive(message)[0][1] for client, message in outbox.items()}
    fresh = cohort_of()
    opening = play_until(fresh, step)[0]
    for version in (b"\x03", b"\x05"):
        with pytest.raises(RemoteProtocolError, match="wrong_version"):
            fresh.clients[0].receive(version + opening[1:])
        with pytest.raises(RemoteProtocolError, match="wrong_version") as refusal:
            cohort.server.receive(0, version + answers[0][1:])
        assert not refusal.value.proven
    assert fresh.clients[0].receive(opening)
    for client, data in answers.items():
        cohort.server.receive(client, data)
    exact(cohort, finish(cohort, dict(cohort.server.end_step())), (0, 1, 2, 3, 4, 5))


def test_a_machine_without_mlkem_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = cohort_of()

    def lacking() -> None:
        raise LocalProtocolError("a session needs ML-KEM")

    monkeypatch.setattr(kem, "require_support", lacking)
    spent: list[bytes] = []
    with pytest.raises(LocalProtocolError, match="needs ML-KEM"):
        cohort.client(0, on_upload=spent.append)
    with pytest.raises(LocalProtocolError, match="needs ML-KEM"):
        Client.check_place(cohort.parameters, index=0, identity=cohort.identities[0], roster=cohort.roster)
    with pytest.raises(LocalProtocolError, match="needs ML-KEM"):
        Server(**cohort.place())
    assert spent == []


def on_a_ring() -> Cohort:
    """Fourteen clients with ten neighbours each: at least eight in a sum, so that ten must be listed."""
    return Cohort(Parameters(14, 6, 8, 1, 10, RING, PLAN))


class TestRandomGraph:
    """What a random graph asks for beside: few disputes a client, and longer lists."""

    def test_the_list_is_longer_than_the_sum_by_what_disputes_may_hide(self) -> None:
        assert (on_a_ring().parameters.disputes, on_a_ring().parameters.min_listed) == (1, 10)
        assert (cohort_of(14, 8).parameters.disputes, cohort_of(14, 8).parameters.min_listed) == (0, 8)

    @pytest.mark.parametrize("disputes", [0, 1])
    @pytest.mark.parametrize(
        "lost", [{}, {"mask": [3]}, {"mask": [1, 3]}, {"unmask": [0]}, {"mask": [2], "unmask": [4]}]
    )
    def test_a_sum_is_exact(self, disputes: int, lost: dict[str, list[int]]) -> None:
        cohort = on_a_ring()
        spoilt = [(1, holder) for holder in inside(cohort.server).graph.neighbours(1)[:disputes]]
        found = onwards(cohort, after_share(cohort, spoilt), lost)
        exact(cohort, found, tuple(client for client in range(14) if client not in lost.get("mask", ())))

    def test_whoever_is_in_more_disputes_is_left_out(self) -> None:
        cohort = on_a_ring()
        spoilt = [(1, holder) for holder in inside(cohort.server).graph.neighbours(1)[:2]]
        exact(
            cohort,
            onwards(cohort, after_share(cohort, spoilt), {}),
            tuple(client for client in range(14) if client != 1),
        )

    def test_the_session_ends_where_fewer_would_be_listed(self) -> None:
        cohort = on_a_ring()
        with pytest.raises(AggregationError, match="9 answered, the plan needs 10"):
            onwards(cohort, after_share(cohort, []), {"mask": [1, 2, 3, 4, 5]})

    def test_attack_disputes_that_the_server_makes_up(self) -> None:
        """With more it could leave so many of the listed out of the sum that it falls below ``min_survivors``."""
        cohort = on_a_ring()
        outbox = play_until(cohort, "mask")
        message = read(cohort, 0, outbox[0], messages.Dealers)
        refused = inside(cohort.server).graph.neighbours(0)[:2]
        with pytest.raises(RemoteProtocolError, match="too_many_disputes"):
            cohort.clients[0].receive(lie(cohort, 0, msgspec.structs.replace(message, refused=refused)))
        assert cohort.clients[0].upload == b""

    def test_attack_boxes_of_clients_that_left(self) -> None:
        """They continue, as the server says, and nobody can mask with them: their boxes open nowhere."""
        cohort = on_a_ring()
        outbox = after_share(cohort, [(owner, 0) for owner in inside(cohort.server).graph.neighbours(0)[:2]])
        checks = {client: cohort.clients[client].receive(message)[0][1] for client, message in outbox.items()}
        for client, data in checks.items():
            if client:
                cohort.server.receive(client, data)
        dealers = messages.wire.to_bitmap(range(14), 14)
        said = messages.Dealers(inside(cohort.server).state.session, dealers, ())
        with pytest.raises(RemoteProtocolError, match="too_many_disputes"):
            cohort.clients[0].receive(lie(cohort, 0, said))

    @pytest.mark.parametrize("spoilt", [False, True])
    def test_attack_a_second_client_left_out_near_the_first(self, spoilt: bool) -> None:
        """All near them would have to dispute with both, by boxes that do not open or by what the server says."""
        cohort = on_a_ring()
        graph = inside(cohort.server).graph
        victims = (3, next(other for other in range(14) if other != 3 and other not in graph.neighbours(3)))
        both = sorted(set(graph.neighbours(victims[0])).intersection(graph.neighbours(victims[1])))
        assert both
        outbox = after_share(cohort, [(victims[0], holder) for holder in both] if spoilt else [])
        for client, message in outbox.items():
            cohort.clients[client].receive(message)
        said = victims[1:] if spoilt else tuple(sorted(victims))
        state = inside(cohort.server).state
        dealers = messages.Dealers(state.session, messages.wire.to_bitmap(range(14), 14), said)
        for client in both:
            with pytest.raises(RemoteProtocolError, match="too_many_disputes"):
                cohort.clients[client].receive(lie(cohort, client, dealers))
            assert cohort.clients[client].upload == b""

    def test_attack_one_client_left_out_by_all_near_it(self) -> None:
        """Each hears of one dispute and signs, and the sum is over the others: for that the list is longer."""
        cohort, victim = on_a_ring(), 3
        near, state = inside(cohort.server).graph.neighbours(victim), inside(cohort.server).state
        outbox = play_until(cohort, "mask")
        for client, message in outbox.items():
            said = read(cohort, client, message, messages.Dealers)
            told = lie(cohort, client, msgspec.structs.replace(said, refused=(victim,) if client in near else ()))
            upload = cohort.clients[client].receive(told)[0][1]
            if client != victim:
                cohort.server.receive(client, upload)
        state.survivors.add(victim)
        for step in ("mask", "agree"):
            assert cohort.server.step == step
            cohort.answer(dict(cohort.server.end_step()))
        assert len(state.answers) == 14
        key = state.answers[victim].self_key
        cohort.server.end_step()
        total, _ = cohort.server.result
        add_masks(total, plus=[schedule.self_stream(key, state.transcript)])  # that of an upload which is not there
        reduce(total)
        others = tuple(client for client in range(14) if client != victim)
        assert len(others) >= cohort.parameters.min_survivors
        assert np.array_equal(total.lift(), cohort.sum_over(others))

    def test_attack_a_list_of_too_few(self) -> None:
        cohort = on_a_ring()
        outbox = play_until(cohort, "agree")
        state = inside(cohort.server).state
        short = messages.wire.to_bitmap([client for client in range(14) if client not in (1, 2, 3, 4, 5)], 14)
        assert outbox
        with pytest.raises(RemoteProtocolError, match="too_few_survivors"):
            cohort.clients[0].receive(lie(cohort, 0, messages.Survivors(state.session, short)))

    def test_a_plan_that_leaves_no_room_for_them_is_refused(self) -> None:
        sizes = {"clients": 300, "min_survivors": 299, "colluders": 2, "ring": RING, "plan_digest": PLAN}
        with pytest.raises(PlanError, match="min_survivors=299 of 300 clients leaves .* write min_survivors = 298$"):
            Parameters.solve(**sizes)
        assert Parameters.solve(**{**sizes, "min_survivors": 270}).min_listed > 270

    def test_a_larger_graph_is_chosen_where_the_smallest_leaves_no_room(self) -> None:
        """Degrees below 36 have small bounds, too, and let a lying server exclude more than the 15 that may vanish."""
        sizes = {"clients": 300, "min_survivors": 285, "colluders": 3, "ring": RING, "plan_digest": PLAN}
        parameters = Parameters.solve(**sizes)
        assert (parameters.neighbours, parameters.min_listed) == (36, 300)
        assert excludable(300, 34, parameters.disputes) > 15
        assert parameters.failure <= 4 * 2.0**-40


class TestLyingClient:
    """The rows of the design's table: what each lie does, and who pays."""

    @pytest.mark.parametrize(
        ("field", "place", "code"),
        [("responses", 0, "misdealt"), ("responses", 32, "misdealt"), ("proofs", 32, "misdealt"),
         ("responses", 31, "malformed"), ("proofs", 63, "malformed")],
    )  # fmt: skip
    def test_shares_of_no_polynomial_are_refused_before_any_upload(
        self, cohort: Cohort, field: str, place: int, code: str
    ) -> None:
        outbox = play_until(cohort, "share")
        message = answer(cohort, outbox)
        mutated = bytearray(getattr(message, field))
        mutated[place] ^= 0x80 if code == "malformed" else 1
        with pytest.raises(RemoteProtocolError, match=code) as refusal:
            cohort.server.receive(
                LIAR, forge(cohort, LIAR, msgspec.structs.replace(message, **{field: bytes(mutated)}))
            )
        assert (refusal.value.peer, refusal.value.proven) == (LIAR, True)
        exact(cohort, finish(cohort, {client: outbox[client] for client in HONEST}), HONEST)

    @pytest.mark.parametrize(("field", "place"), [("commitments", 0), ("commitments", 40), ("proofs", 0)])
    def test_other_commitments_fit_no_holder_and_the_dealer_is_left_out(
        self, cohort: Cohort, field: str, place: int
    ) -> None:
        """Each is under the challenge of both polynomials, so no holder finds its blind."""
        outbox = play_until(cohort, "share")
        message = answer(cohort, outbox)
        mutated = bytearray(getattr(message, field))
        mutated[place] ^= 1
        cohort.server.receive(LIAR, forge(cohort, LIAR, msgspec.structs.replace(message, **{field: bytes(mutated)})))
        cohort.answer(outbox, HONEST)
        exact(cohort, finish(cohort, dict(cohort.server.end_step())), HONEST)
        assert cohort.clients[LIAR].upload == b""

    @pytest.mark.parametrize("vanishes", [False, True])
    @pytest.mark.parametrize("victim", [0, 3])
    def test_a_false_complaint_costs_one_mask(self, cohort: Cohort, victim: int, vanishes: bool) -> None:
        outbox = after_share(cohort, ())
        cohort.answer(outbox, HONEST)
        message = answer(cohort, outbox)
        del inside(cohort.clients[LIAR]).state.held[victim]
        false = msgspec.structs.replace(message, failed=(victim,))
        cohort.server.receive(LIAR, forge(cohort, LIAR, false))
        outbox = dict(cohort.server.end_step())
        assert read(cohort, victim, outbox[victim], messages.Dealers).refused == (LIAR,)
        found = onwards(cohort, outbox, {"mask": [LIAR]} if vanishes else {})
        exact(cohort, found, HONEST if vanishes else (*HONEST, LIAR))
        named = {(fault.peer, fault.code) for fault in cohort.server.faults}
        assert named == {(victim, "accused"), (LIAR, "accuser")}

    @pytest.mark.parametrize("lost", [(), (5,)])
    def test_a_false_link_spoils_the_liars_own_input_alone(self, cohort: Cohort, lost: tuple[int, ...]) -> None:
        """The link of 0 to 5: used only where 5 vanishes, and then the sum is off by one mask of the liar's."""
        outbox = after_share(cohort, ())
        message = answer(cohort, outbox, 0)
        true = message.links[-32:]
        false = msgspec.structs.replace(message, links=message.links[:-32] + bytes(32))
        cohort.server.receive(0, forge(cohort, 0, false))
        cohort.answer(outbox, (1, 2, 3, 4, 5))
        state = inside(cohort.clients[0]).state
        ((_, seed),) = inside(cohort.clients[0]).secrets().pair_seeds([5], state)
        total, survivors = onwards(cohort, dict(cohort.server.end_step()), {"mask": lost})
        off = RING.encode(cohort.sum_over(survivors))
        if lost:
            taken = to_bytes(int.from_bytes(seed, "little") ^ int.from_bytes(true, "little"))
            add_masks(off, plus=[seed], minus=[taken])
        assert np.array_equal(total, lifted(off))
        assert survivors == tuple(client for client in range(6) if client not in lost)

    @pytest.mark.parametrize("change", [b"!" * 32, None])
    def test_links_of_the_wrong_length(self, cohort: Cohort, change: bytes | None) -> None:
        outbox = after_share(cohort, ())
        message = answer(cohort, outbox, 0)
        links = message.links[:-32] if change is None else message.links + change
        with pytest.raises(RemoteProtocolError, match="wrong_length|too_large"):
            cohort.server.receive(0, forge(cohort, 0, msgspec.structs.replace(message, links=links)))

    @pytest.mark.parametrize(
        ("key", "code"), [(bytes(kem.PUBLIC_BYTES), ""), (b"\xff" * kem.PUBLIC_BYTES, "bad_key")], ids=["zeros", "ones"]
    )
    def test_a_weak_kem_key_is_the_liars_own_loss_and_one_that_is_none_is_refused(
        self, cohort: Cohort, key: bytes, code: str
    ) -> None:
        """FIPS 203 admits a key of zeros: boxes to the liar are readable, which hold its own shares."""
        outbox = play_until(cohort, "advertise")
        message = msgspec.structs.replace(answer(cohort, outbox), kem_key=key)
        statement = advert_statement(inside(cohort.server).context, LIAR, *message.keys)
        signed = msgspec.structs.replace(message, signature=cohort.identities[LIAR].sign(statement))
        data = bytes(messages.encode(signed))
        if code:
            with pytest.raises(RemoteProtocolError, match=code) as refusal:
                cohort.server.receive(LIAR, data)
            assert refusal.value.proven
        else:
            cohort.server.receive(LIAR, data)
        exact(cohort, finish(cohort, {client: outbox[client] for client in HONEST}), HONEST)

    @pytest.mark.parametrize("key", [bytes(32), b"\xff" * 32])
    def test_another_self_mask_key_than_the_one_dealt(self, cohort: Cohort, key: bytes) -> None:
        outbox = play_until(cohort, "unmask")
        false = msgspec.structs.replace(answer(cohort, outbox), self_key=key)
        with pytest.raises(RemoteProtocolError, match="bad_self_key"):
            cohort.server.receive(LIAR, forge(cohort, LIAR, false))
        exact(cohort, finish(cohort, {client: outbox[client] for client in HONEST}), (*HONEST, LIAR))

    def test_a_share_of_the_other_kind(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask")
        held = inside(cohort.clients[LIAR]).state.held
        message = answer(cohort, outbox)
        shares = b"".join(part(held[owner], 1, 32) for owner in message.owners)
        with pytest.raises(RemoteProtocolError, match="bad_share"):
            cohort.server.receive(LIAR, forge(cohort, LIAR, msgspec.structs.replace(message, shares=shares)))


class TestPassedLie:
    """A dealing whose f is of no low degree, which the server took: a hash that was hit, as if."""

    def dealt(self, cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
        """The liar's f is off at client 0's point; its commitments, boxes and responses say so truly."""
        secrets, liar = inside(cohort.clients[LIAR]).secrets(), cohort.clients[LIAR]
        honest = schedule.split

        def false(rows: Any, holders: int) -> Any:
            values = honest(rows, holders)
            if len(rows) == 4:
                values[0, 2] = (values[0, 2] + 1) % ORDER
            return values

        outbox = play_until(cohort, "share")
        cohort.answer(outbox, HONEST)
        inside(cohort.server).pair_weights_cache = [0] * len(HONEST)  # the test that it would not have passed
        with monkeypatch.context() as patch:
            patch.setattr(schedule, "split", false)
            cohort.server.receive(LIAR, liar.receive(outbox[LIAR])[0][1])
        assert secrets is inside(liar).secrets()
        return dict(cohort.server.end_step())

    def test_the_sum_is_exact_where_the_holder_answers(self, cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
        exact(cohort, onwards(cohort, self.dealt(cohort, monkeypatch), {"mask": [LIAR]}), HONEST)

    def test_the_session_ends_by_name_where_the_holder_is_silent(
        self, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outbox = self.dealt(cohort, monkeypatch)
        with pytest.raises(AggregationError, match=f"client {LIAR} dealt shares") as end:
            onwards(cohort, outbox, {"mask": [LIAR], "unmask": [0]})
        assert end.value.code == "misdealt"


def lifted(vector: RingVector) -> np.ndarray:
    reduce(vector)
    return vector.lift()


class TestLyingServer:
    @pytest.mark.parametrize(
        ("refused", "code"),
        [((0,), "strangers"), ((9,), "strangers"), ((2, 1), "out_of_order"), ((1, 2, 3), "too_few_neighbours")],
        ids=["a stranger refuses", "nobody on the roster refuses", "out of order", "too many refuse"],
    )
    def test_lies_about_who_refuses(self, cohort: Cohort, refused: tuple[int, ...], code: str) -> None:
        message = read(cohort, 0, play_until(cohort, "mask")[0], messages.Dealers)
        with pytest.raises(RemoteProtocolError, match=code):
            cohort.clients[0].receive(lie(cohort, 0, msgspec.structs.replace(message, refused=refused)))
        assert (cohort.clients[0].step, cohort.clients[0].upload) == ("failed", b"")

    @pytest.mark.parametrize("listed", [(0, 1, 2, 3), (0, 1, 2, 3, 4)])
    def test_a_list_of_too_few_that_share_a_mask_is_not_signed(self, cohort: Cohort, listed: tuple[int, ...]) -> None:
        """Whoever is said to refuse counts for nobody: neither for its quorum nor for ``min_survivors``."""
        outbox = play_until(cohort, "mask")
        message = read(cohort, 0, outbox[0], messages.Dealers)
        cohort.clients[0].receive(lie(cohort, 0, msgspec.structs.replace(message, refused=(1, 2))))
        bitmap = messages.wire.to_bitmap(listed, 6)
        state = inside(cohort.server).state
        with pytest.raises(RemoteProtocolError, match="unproven_survivors"):
            cohort.clients[0].receive(lie(cohort, 0, messages.Survivors(state.session, bitmap)))

    @pytest.mark.parametrize("first", [False, True])
    @pytest.mark.parametrize("ring", [False, True])
    def test_attack_a_second_sum_over_the_same_list_without_one_of_it(self, ring: bool, first: bool) -> None:
        """All but the victim hear that it refused them, so its upload is in no sum, though the list has its name.

        In the first sum of an alignment or in a round: either may lack the victim, and the difference is the victim's.
        """
        cohort, victim = on_a_ring() if ring else cohort_of(7, 5, 1), 3
        everybody, n = range(cohort.parameters.clients), cohort.parameters.clients
        near = inside(cohort.server).graph.neighbours(victim)
        bound = {"full_list": True} if first else {"only": tuple(everybody)}
        cohort.clients = [cohort.client(i, **bound) for i in everybody]
        outbox = play_until(cohort, "mask")
        state, bitmap = inside(cohort.server).state, messages.wire.to_bitmap(everybody, n)
        for client in near:
            message = read(cohort, client, outbox[client], messages.Dealers)
            told = msgspec.structs.replace(message, refused=(victim,))
            cohort.clients[client].receive(lie(cohort, client, told))
            with pytest.raises(RemoteProtocolError, match="unproven_survivors"):
                cohort.clients[client].receive(lie(cohort, client, messages.Survivors(state.session, bitmap)))

    @pytest.mark.parametrize("accused", [(0,), (0, 1), (0, 1, 2, 3)])
    def test_one_liar_and_one_drop_out_end_no_session_over_a_whole_list(self, accused: tuple[int, ...]) -> None:
        """Nobody in dispute goes on, so nobody has to refuse the list after the uploads."""
        cohort = cohort_of(10, 7, 2)
        cohort.server = Server(**cohort.place(), full_list=True)
        cohort.clients = [cohort.client(i, full_list=True) for i in range(10)]
        outbox = after_share(cohort, [(owner, 9) for owner in accused])
        total, survivors = onwards(cohort, outbox, {"check": [8]} if len(accused) > 1 else {})
        out = {8, 9} if len(accused) > 1 else {0}
        exact(cohort, (total, survivors), tuple(i for i in range(10) if i not in out))

    @pytest.mark.parametrize("bound", [{"only": tuple(range(7))}, {"full_list": True}])
    def test_the_same_list_again_is_signed_where_nobody_is_in_dispute(self, bound: dict[str, Any]) -> None:
        cohort = cohort_of(7, 5, 1)
        cohort.clients = [cohort.client(i, **bound) for i in range(7)]
        exact(cohort, finish(cohort, play_until(cohort, "mask")), tuple(range(7)))

    @pytest.mark.parametrize("key", [bytes(kem.PUBLIC_BYTES - 1) + b"\1", b"\xff" * kem.PUBLIC_BYTES])
    def test_another_kem_key_in_the_opening(self, cohort: Cohort, key: bytes) -> None:
        """Unsigned it is not the server's; signed it must be one. Neither changes the client."""
        outbox = play_until(cohort, "advertise")
        opening = read(cohort, 0, outbox[0], messages.Open)
        false = msgspec.structs.replace(opening, kem_key=key)
        with pytest.raises(RemoteProtocolError, match="bad_signature"):
            cohort.clients[0].receive(bytes(messages.encode(false)))
        context = messages.context_of(inside(cohort.server).graph, opening.session, opening.server_key, b"\xff" * 1184)
        signature = cohort.aggregator.sign(open_statement(context))
        signed = msgspec.structs.replace(opening, kem_key=b"\xff" * 1184, signature=signature)
        with pytest.raises(RemoteProtocolError, match="bad_key"):
            cohort.clients[0].receive(bytes(messages.encode(signed)))
        exact(cohort, finish(cohort, outbox), (0, 1, 2, 3, 4, 5))

    @pytest.mark.parametrize("field", ["box_key", "kem_key", "ciphertext_hash"])
    def test_a_neighbours_key_of_its_own_making(self, cohort: Cohort, field: str) -> None:
        """With a key that the server knows it would open the boxes; the neighbour's signature is over each."""
        outbox = play_until(cohort, "share")
        message = read(cohort, 0, outbox[0], messages.Adverts)
        own = {"kem_key": kem.public_of(kem.private_key(bytes(64)))}.get(field, bytes(32))
        adverts = (msgspec.structs.replace(message.adverts[0], **{field: own}), *message.adverts[1:])
        with pytest.raises(RemoteProtocolError, match="bad_signature"):
            cohort.clients[0].receive(lie(cohort, 0, msgspec.structs.replace(message, adverts=adverts)))

    def test_a_box_sealed_for_a_phantom_does_not_open(self, cohort: Cohort) -> None:
        """Whoever knows the ML-KEM key alone can encapsulate to it: the static X25519 secret names the sender."""
        outbox = after_share(cohort, ())
        message = read(cohort, 1, outbox[1], messages.Deliver)
        state, place = inside(cohort.server).state, message.sharers.index(0)
        secret, ciphertext = kem.encapsulate(state.adverts[1].kem_key)
        wrong = kem.combined(bytes(32), secret, ciphertext)
        cipher = AESGCM(derive(wrong, "box/0/1", salt=state.transcript))
        shares = cipher.encrypt(bytes(12), bytes(64), messages.box_context(state.session, 0, 1))
        size = messages.BOX_BYTES
        boxes = bytearray(message.boxes)
        boxes[place * size : (place + 1) * size] = ciphertext + shares
        cohort.clients[1].receive(lie(cohort, 1, msgspec.structs.replace(message, boxes=bytes(boxes))))
        assert [(fault.peer, fault.code) for fault in cohort.clients[1].faults] == [(0, "bad_box")]


def test_the_servers_two_keys_follow_from_its_secret_under_labels_of_their_own(cohort: Cohort) -> None:
    """A logarithm of the one gives neither the secret nor the other: no clamped bits to guess."""
    secret = bytes(inside(cohort.server).state.secret)
    opening = read(cohort, 0, dict(cohort.server.start())[0], messages.Open)
    private = derive(secret, "server-key")
    assert opening.server_key == public_of(private) != public_of(secret)
    for guess in (secret, private):
        assert opening.kem_key != kem.public_of(kem.private_key(derive(guess, "server-key", size=64)))
    assert opening.kem_key == kem.public_of(kem.private_key(derive(secret, "server-kem", size=64)))


def test_a_client_that_is_done_has_wiped_its_kem_secret(cohort: Cohort) -> None:
    """test_secrets.py tries what is printed before."""
    exact(cohort, finish(cohort, play_until(cohort, "unmask")), (0, 1, 2, 3, 4, 5))
    assert all(bytes(inside(client).state.kem_secret) == b"" for client in cohort.clients)
