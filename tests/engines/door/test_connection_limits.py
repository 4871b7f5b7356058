"""Who may connect to the address for parties, and for how long: by a clock that only a test moves."""

import logging

import pytest

from privstats.engines.door import connection_limits as module
from privstats.engines.door.connection_limits import BYTES_A_SECOND, PATIENCE_SECONDS, ConnectionLimiter, Limits

LIMITS = Limits(connections=6, unsigned=4, of_address=2, of_node=2, requests=2)
YOUNG = module._GREETING_SECONDS


class Clock:
    seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def limiter(clock):
    return ConnectionLimiter(LIMITS, clock)


def ended(admitted):
    """A list that grows when the connection is closed."""
    ends = []
    admitted.end = lambda: ends.append(admitted)
    return ends


class TestArrive:
    def test_one_address_has_so_many_strangers_and_no_more(self, limiter):
        assert all(limiter.arrive("10.0.0.1") for _ in range(2))
        assert limiter.arrive("10.0.0.1") is not None, "another one has made room"
        assert limiter.status.unsigned == 2
        assert limiter.arrive("10.0.0.2") is not None
        assert limiter.status.closed == {"address": 1}

    def test_the_oldest_of_an_address_makes_room_for_its_next(self, limiter, clock):
        """Who shares an address with an attacker that holds connections open is let in."""
        oldest, other = limiter.arrive("10.0.0.1"), limiter.arrive("10.0.0.1")
        ends = ended(oldest), ended(other)
        clock.seconds += YOUNG + 1
        assert limiter.arrive("10.0.0.1") is not None
        assert ends == ([oldest], [])
        assert limiter.status.unsigned == 2

    def test_all_strangers_have_so_many_places_and_the_oldest_of_all_makes_room(self, limiter, clock):
        first, *_ = (limiter.arrive(f"10.0.0.{k}") for k in range(4))
        ends = ended(first)
        clock.seconds += YOUNG + 1
        assert limiter.arrive("10.0.0.9") is not None
        assert ends == [first]
        assert limiter.status.closed == {"full": 1}

    def test_a_flood_of_a_few_addresses_makes_room_for_a_node_at_another_and_never_meets_it(self, limiter):
        """300 connections a second without a byte, from five addresses, kept every node out: 0 of 20 were answered."""
        flood = [limiter.arrive(f"10.0.0.{k % 2}") for k in range(4)]
        node = limiter.arrive("10.0.0.9")
        assert node is not None
        ends = ended(node)
        flood += [limiter.arrive(f"10.0.0.{k % 2}") for k in range(100)]
        assert all(flood)
        assert ends == []
        assert limiter.status.unsigned == 4

    def test_in_a_flood_of_many_addresses_chance_finds_a_newcomer_as_seldom_as_any(self, clock):
        """The oldest would be gone after as many arrivals as there are places; chance leaves some of them, so many."""
        limiter = ConnectionLimiter(Limits(), clock)
        nodes = [limiter.arrive(f"10.0.0.{k}") for k in range(100)]
        ends = [ended(node) for node in nodes]
        for k in range(2 * Limits().unsigned):
            assert limiter.arrive(f"10.{k // 250 + 1}.0.{k % 250}") is not None
        assert 5 < ends.count([]) < 95, "24 to 28 in the mean"
        assert limiter.status.unsigned == Limits().unsigned

    def test_nodes_never_make_room(self, limiter, clock):
        for k in range(6):
            with limiter.request(limiter.arrive(f"10.0.0.{k}"), b"%d" % k) as may:
                assert may
        clock.seconds += YOUNG + 1
        assert limiter.arrive("10.0.0.9") is None
        assert limiter.status.nodes == 6

    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("2001:db8::1", "2001:db8::ffff", True),
            ("2001:db8::1", "2001:db8:0:1::1", False),
            ("fe80::1%eth0", "fe80::2%eth0", True),
            ("::ffff:10.0.0.1", "10.0.0.1", True),
            ("10.0.0.1", "10.0.0.2", False),
            ("", "", True),
        ],
    )
    def test_who_has_one_address_of_ipv6_has_its_64_bits(self, limiter, one, other, same):
        assert (limiter.arrive(one).host == limiter.arrive(other).host) is same


class TestLeave:
    def test_a_place_is_free_again_and_only_once(self, limiter):
        admitted = limiter.arrive("10.0.0.1")
        for _ in range(2):
            limiter.leave(admitted)
        assert limiter.status.unsigned == 0
        assert not limiter._of_address, "an address of which nobody is left is forgotten"

    def test_of_a_node_as_well(self, limiter):
        admitted = limiter.arrive("10.0.0.1")
        with limiter.request(admitted, b"key"):
            pass
        for _ in range(2):
            limiter.leave(admitted)
        assert limiter.status.nodes == 0
        assert not limiter._of_node
        assert not limiter._requests


class TestRequest:
    def test_a_node_leaves_the_strangers_places_to_others(self, limiter):
        for k in range(2):
            with limiter.request(limiter.arrive("10.0.0.1"), b"%d" % k):
                pass
        assert limiter.arrive("10.0.0.1") is not None
        assert (limiter.status.nodes, limiter.status.unsigned) == (2, 1)

    def test_a_node_has_so_many_connections(self, limiter):
        given = []
        for k in range(3):
            with limiter.request(limiter.arrive(f"10.0.0.{k}"), b"key") as may:
                given.append(may)
        assert given == [True, True, False]
        assert limiter.status.closed == {"node": 1}

    def test_a_node_has_so_many_requests_at_once(self, limiter):
        admitted = limiter.arrive("10.0.0.1")
        with limiter.request(admitted, b"key") as first, limiter.request(admitted, b"key") as second:
            with limiter.request(admitted, b"key") as third:
                assert (first, second, third) == (True, True, False)
            with limiter.request(limiter.arrive("10.0.0.2"), b"other") as other:
                assert other
        with limiter.request(admitted, b"key") as again:
            assert again

    def test_a_connection_of_a_proxy_belongs_to_whoever_signed_last(self, limiter):
        admitted = limiter.arrive("127.0.0.1")
        for key in (b"one", b"two", b"one"):
            with limiter.request(admitted, key) as may:
                assert may
        assert (admitted.node, dict(limiter._of_node)) == (b"one", {b"one": 1})

    def test_a_closed_connection_has_no_request(self, limiter):
        admitted = limiter.arrive("10.0.0.1")
        limiter.leave(admitted)
        with limiter.request(admitted, b"key") as may:
            assert not may
        assert limiter.status.nodes == 0


class TestForget:
    def test_a_connection_that_was_proved_is_a_strangers_again_and_the_youngest(self, limiter, clock):
        first, second = limiter.arrive("10.0.0.1"), limiter.arrive("10.0.0.2")
        assert limiter.prove(first, b"key")
        clock.seconds += YOUNG + 1
        third = limiter.arrive("10.0.0.3")
        assert limiter.forget(first)
        assert list(limiter._unsigned) == [second, third, first]
        assert (first.node, first.began, dict(limiter._of_node)) == (None, clock.seconds, {})

    def test_there_is_none_where_others_have_taken_its_place(self, limiter):
        first = limiter.arrive("10.0.0.1")
        limiter.prove(first, b"key")
        assert all(limiter.arrive("10.0.0.1") for _ in range(2))
        assert not limiter.forget(first)
        assert (limiter.status.nodes, limiter.status.unsigned) == (0, 2)

    def test_a_stranger_stays_what_it_is(self, limiter, clock):
        first = limiter.arrive("10.0.0.1")
        clock.seconds += 1
        assert limiter.forget(first)
        assert first.began < clock.seconds


class TestMayStay:
    """Connections that ask again and again left no time for newcomers."""

    def test_a_stranger_waits_for_its_next_request_while_half_the_places_of_its_address_are_free(self, clock):
        limiter = ConnectionLimiter(Limits(of_address=4, unsigned=100), clock)
        here = [limiter.arrive("10.0.0.1") for _ in range(2)]
        assert limiter.may_stay(here[0])
        last = limiter.arrive("10.0.0.1")
        assert not limiter.may_stay(here[0])
        assert limiter.may_stay(limiter.arrive("10.0.0.2")), "others at another address do not matter"
        limiter.leave(last)
        assert limiter.may_stay(here[0])

    def test_and_half_of_all_places(self, clock):
        limiter = ConnectionLimiter(Limits(of_address=4, unsigned=8), clock)
        came = [limiter.arrive(f"10.0.0.{k}") for k in range(5)]
        assert not limiter.may_stay(came[0])
        limiter.leave(came[4])
        assert limiter.may_stay(came[0])

    def test_who_has_signed_or_comes_through_a_proxy_may_always(self, clock):
        limiter = ConnectionLimiter(LIMITS, clock, proxies=["10.0.0.9"])
        node, proxied = limiter.arrive("10.0.0.1"), limiter.arrive("10.0.0.9")
        limiter.prove(node, b"key")
        for k in range(4):
            limiter.arrive(f"10.0.1.{k}")
        assert limiter.may_stay(node)
        assert limiter.may_stay(proxied)


class TestProxies:
    def test_a_proxy_is_no_stranger_and_its_connections_are_nobodys(self, clock):
        limiter = ConnectionLimiter(LIMITS, clock, proxies=["10.0.0.9"])
        through = [limiter.arrive("10.0.0.9") for _ in range(5)]
        assert all(through)
        assert limiter.prove(through[0], b"one")
        assert limiter.prove(through[0], b"other")
        assert limiter.forget(through[0])
        assert (limiter.status.nodes, limiter.status.unsigned, dict(limiter._of_node)) == (5, 0, {})
        stranger = limiter.arrive("10.0.0.1")
        ends = ended(stranger)
        clock.seconds += YOUNG + 1
        assert limiter.arrive("10.0.0.9") is not None, "a stranger makes room"
        assert ends == [stranger]
        assert limiter.arrive("10.0.0.9") is None
        assert limiter.status.closed == {"full": 1, "proxy": 1}, "the last one made no room: it was closed itself"
        limiter.leave(through[1])
        assert limiter.status.nodes == 5

    @pytest.mark.parametrize("named", ["2001:db8::9", "2001:DB8:0:0::9"])
    def test_attack_a_neighbour_of_a_proxy_in_its_64_bits_is_a_stranger(self, clock, named):
        limiter = ConnectionLimiter(LIMITS, clock, proxies=[named])
        assert all(limiter.arrive("2001:db8::9") for _ in range(5))
        assert all(limiter.arrive(f"2001:db8::{k}") for k in range(5))
        assert (limiter.status.nodes, limiter.status.unsigned) == (5, 1)


class TestIntroduce:
    def test_one_a_second_and_some_at_once(self, limiter, clock):
        admitted = limiter.arrive("10.0.0.1")
        assert [limiter.introduce(admitted) for _ in range(66)] == [True] * 64 + [False] * 2
        clock.seconds += 3
        assert [limiter.introduce(admitted) for _ in range(4)] == [True] * 3 + [False]
        clock.seconds += 1e6
        assert [limiter.introduce(admitted) for _ in range(65)] == [True] * 64 + [False]
        assert limiter.status.closed == {"unknown": 4}


class TestTick:
    def test_what_is_held_back_is_closed_and_nothing_sooner(self, limiter, clock):
        stranger, node = limiter.arrive("10.0.0.1"), limiter.arrive("10.0.0.2")
        with limiter.request(node, b"key"):
            limiter.allow(node, 10 * BYTES_A_SECOND)
        ends = ended(stranger), ended(node)
        clock.seconds += PATIENCE_SECONDS
        limiter.tick()
        assert ends == ([], [])
        clock.seconds += 1
        limiter.tick()
        assert ends == ([stranger], [])
        clock.seconds += 10
        limiter.tick()
        assert ends == ([stranger], [node])
        assert limiter.status.closed == {"slow": 2}

    def test_the_operator_is_told_once_a_minute_how_many_and_why(self, limiter, clock, caplog):
        caplog.set_level(logging.WARNING, "privstats")
        for _ in range(50):
            limiter.turn_away("address", "10.0.0.1")
        limiter.tick()
        limiter.turn_away("address", "10.0.0.2")
        limiter.turn_away("login", "10.0.0.3")
        limiter.tick()
        clock.seconds += 60
        limiter.tick()
        limiter.tick()
        said = [record.getMessage().removeprefix("connections or requests turned away: ") for record in caplog.records]
        assert said == [
            "50: too many from one address without a known signature; last 10.0.0.1",
            "1: no valid signature of a node, or its clock is wrong; last 10.0.0.3",
            "1: too many from one address without a known signature; last 10.0.0.2",
        ]


class TestLimits:
    @pytest.mark.parametrize(
        ("files", "connections", "unsigned"), [(65536, 4096, 256), (1024, 768, 256), (256, 128, 128), (1, 1, 1)]
    )
    def test_a_part_of_the_descriptors_stays_for_the_database_and_programs(self, files, connections, unsigned):
        limits = Limits().within(files)
        assert (limits.connections, limits.unsigned) == (connections, unsigned)

    def test_flowers_node_fits(self):
        """Two pieces at once, a heartbeat and the loop; the other two connections are of before a restart."""
        from flwr.supercore import constant

        pieces = max(constant.FLWR_PRIVATE_MAX_CONCURRENT_OBJ_PUSHES, constant.FLWR_PRIVATE_MAX_CONCURRENT_OBJ_PULLS)
        assert Limits().requests >= pieces + 2
        assert Limits().of_node >= 2 * (pieces + 2)
