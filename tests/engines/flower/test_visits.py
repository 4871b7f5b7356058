"""Who may connect to the address for parties, and for how long: by a clock that only a test moves."""

import logging

import pytest

from privstats.engines.flower import visits as module
from privstats.engines.flower.visits import BYTES_A_SECOND, PATIENCE_SECONDS, Limits, Visits

LIMITS = Limits(connections=6, strangers=4, of_address=2, of_node=2, requests=2)
YOUNG = module._GREETING_SECONDS


class Clock:
    seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def visits(clock):
    return Visits(LIMITS, clock)


def ended(visit):
    """A list that grows when the visit is closed."""
    ends = []
    visit.end = lambda: ends.append(visit)
    return ends


class TestArrive:
    def test_one_address_has_so_many_strangers_and_no_more(self, visits):
        assert all(visits.arrive("10.0.0.1") for _ in range(2))
        assert visits.arrive("10.0.0.1") is not None, "another one has made room"
        assert visits.status.strangers == 2
        assert visits.arrive("10.0.0.2") is not None
        assert visits.status.closed == {"address": 1}

    def test_the_oldest_of_an_address_makes_room_for_its_next(self, visits, clock):
        """Who shares an address with an attacker that holds connections open is let in."""
        oldest, other = visits.arrive("10.0.0.1"), visits.arrive("10.0.0.1")
        ends = ended(oldest), ended(other)
        clock.seconds += YOUNG + 1
        assert visits.arrive("10.0.0.1") is not None
        assert ends == ([oldest], [])
        assert visits.status.strangers == 2

    def test_all_strangers_have_so_many_places_and_the_oldest_of_all_makes_room(self, visits, clock):
        first, *_ = (visits.arrive(f"10.0.0.{k}") for k in range(4))
        ends = ended(first)
        clock.seconds += YOUNG + 1
        assert visits.arrive("10.0.0.9") is not None
        assert ends == [first]
        assert visits.status.closed == {"full": 1}

    def test_a_flood_of_a_few_addresses_makes_room_for_a_node_at_another_and_never_meets_it(self, visits):
        """300 connections a second without a byte, from five addresses, kept every node out: 0 of 20 were answered."""
        flood = [visits.arrive(f"10.0.0.{k % 2}") for k in range(4)]
        node = visits.arrive("10.0.0.9")
        assert node is not None
        ends = ended(node)
        flood += [visits.arrive(f"10.0.0.{k % 2}") for k in range(100)]
        assert all(flood)
        assert ends == []
        assert visits.status.strangers == 4

    def test_in_a_flood_of_many_addresses_chance_finds_a_newcomer_as_seldom_as_any(self, clock):
        """The oldest would be gone after as many arrivals as there are places; chance leaves some of them, so many."""
        visits = Visits(Limits(), clock)
        nodes = [visits.arrive(f"10.0.0.{k}") for k in range(100)]
        ends = [ended(node) for node in nodes]
        for k in range(2 * Limits().strangers):
            assert visits.arrive(f"10.{k // 250 + 1}.0.{k % 250}") is not None
        assert 5 < ends.count([]) < 95, "24 to 28 in the mean"
        assert visits.status.strangers == Limits().strangers

    def test_nodes_never_make_room(self, visits, clock):
        for k in range(6):
            with visits.request(visits.arrive(f"10.0.0.{k}"), b"%d" % k) as may:
                assert may
        clock.seconds += YOUNG + 1
        assert visits.arrive("10.0.0.9") is None
        assert visits.status.nodes == 6

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
    def test_who_has_one_address_of_ipv6_has_its_64_bits(self, visits, one, other, same):
        assert (visits.arrive(one).host == visits.arrive(other).host) is same


class TestLeave:
    def test_a_place_is_free_again_and_only_once(self, visits):
        visit = visits.arrive("10.0.0.1")
        for _ in range(2):
            visits.leave(visit)
        assert visits.status.strangers == 0
        assert not visits._of_address, "an address of which nobody is left is forgotten"

    def test_of_a_node_as_well(self, visits):
        visit = visits.arrive("10.0.0.1")
        with visits.request(visit, b"key"):
            pass
        for _ in range(2):
            visits.leave(visit)
        assert visits.status.nodes == 0
        assert not visits._of_node
        assert not visits._requests


class TestRequest:
    def test_a_node_leaves_the_strangers_places_to_others(self, visits):
        for k in range(2):
            with visits.request(visits.arrive("10.0.0.1"), b"%d" % k):
                pass
        assert visits.arrive("10.0.0.1") is not None
        assert (visits.status.nodes, visits.status.strangers) == (2, 1)

    def test_a_node_has_so_many_connections(self, visits):
        given = []
        for k in range(3):
            with visits.request(visits.arrive(f"10.0.0.{k}"), b"key") as may:
                given.append(may)
        assert given == [True, True, False]
        assert visits.status.closed == {"node": 1}

    def test_a_node_has_so_many_requests_at_once(self, visits):
        visit = visits.arrive("10.0.0.1")
        with visits.request(visit, b"key") as first, visits.request(visit, b"key") as second:
            with visits.request(visit, b"key") as third:
                assert (first, second, third) == (True, True, False)
            with visits.request(visits.arrive("10.0.0.2"), b"other") as other:
                assert other
        with visits.request(visit, b"key") as again:
            assert again

    def test_a_connection_of_a_proxy_belongs_to_whoever_signed_last(self, visits):
        visit = visits.arrive("127.0.0.1")
        for key in (b"one", b"two", b"one"):
            with visits.request(visit, key) as may:
                assert may
        assert (visit.node, dict(visits._of_node)) == (b"one", {b"one": 1})

    def test_a_closed_connection_has_no_request(self, visits):
        visit = visits.arrive("10.0.0.1")
        visits.leave(visit)
        with visits.request(visit, b"key") as may:
            assert not may
        assert visits.status.nodes == 0


class TestIntroduce:
    def test_one_a_second_and_some_at_once(self, visits, clock):
        visit = visits.arrive("10.0.0.1")
        assert [visits.introduce(visit) for _ in range(66)] == [True] * 64 + [False] * 2
        clock.seconds += 3
        assert [visits.introduce(visit) for _ in range(4)] == [True] * 3 + [False]
        clock.seconds += 1e6
        assert [visits.introduce(visit) for _ in range(65)] == [True] * 64 + [False]
        assert visits.status.closed == {"unknown": 4}


class TestTick:
    def test_what_is_held_back_is_closed_and_nothing_sooner(self, visits, clock):
        stranger, node = visits.arrive("10.0.0.1"), visits.arrive("10.0.0.2")
        with visits.request(node, b"key"):
            visits.allow(node, 10 * BYTES_A_SECOND)
        ends = ended(stranger), ended(node)
        clock.seconds += PATIENCE_SECONDS
        visits.tick()
        assert ends == ([], [])
        clock.seconds += 1
        visits.tick()
        assert ends == ([stranger], [])
        clock.seconds += 10
        visits.tick()
        assert ends == ([stranger], [node])
        assert visits.status.closed == {"slow": 2}

    def test_the_operator_is_told_once_a_minute_how_many_and_why(self, visits, clock, caplog, monkeypatch):
        caplog.set_level(logging.WARNING, "privstats")
        monkeypatch.setattr(logging.getLogger("privstats"), "propagate", True)
        for _ in range(50):
            visits.turn_away("address", "10.0.0.1")
        visits.tick()
        visits.turn_away("address", "10.0.0.2")
        visits.turn_away("login", "10.0.0.3")
        visits.tick()
        clock.seconds += 60
        visits.tick()
        visits.tick()
        said = [record.getMessage().removeprefix("connections or requests turned away: ") for record in caplog.records]
        assert said == [
            "50: too many from one address without a node's signature; last 10.0.0.1",
            "1: no valid signature of a node, or its clock is wrong; last 10.0.0.3",
            "1: too many from one address without a node's signature; last 10.0.0.2",
        ]


class TestLimits:
    @pytest.mark.parametrize(
        ("files", "connections", "strangers"), [(65536, 4096, 256), (1024, 768, 256), (256, 128, 128), (1, 1, 1)]
    )
    def test_a_part_of_the_descriptors_stays_for_the_database_and_programs(self, files, connections, strangers):
        limits = Limits.of_descriptors(files)
        assert (limits.connections, limits.strangers) == (connections, strangers)

    def test_flowers_node_fits(self):
        """Two pieces at once, a heartbeat and the loop; the other two connections are of before a restart."""
        from flwr.supercore import constant

        pieces = max(constant.FLWR_PRIVATE_MAX_CONCURRENT_OBJ_PUSHES, constant.FLWR_PRIVATE_MAX_CONCURRENT_OBJ_PULLS)
        assert Limits().requests >= pieces + 2
        assert Limits().of_node >= 2 * (pieces + 2)
