"""Limits on connections of strangers and of known keys: which are accepted, and for how long.

A *stranger* is a connection on which no known key has signed yet. Strangers get little time, and a key's share is
bounded.
"""

from __future__ import annotations

import ipaddress
import math
import re
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, TypeVar

from privstats.engines.door.ports import raise_open_files
from privstats.engines.network.operator_log import HOST
from privstats.engines.network.status_file import ConnectionStatus

CONNECTION = "privstats.connection"
"""Key of the :class:`AdmittedConnection` in the state of a request's scope."""

PROVED = "privstats.proved"
"""Key of a function in a request's scope: call it with the known key that has signed on this connection."""

MOST_HEADER_BYTES = 16 << 10
"""The most bytes of a request before its body: its address and its headers."""

PATIENCE_SECONDS = 20.0
"""Limit on TLS and a request's headers, on its body, and on reading an answer; bytes in transit extend it."""

BYTES_A_SECOND = 16 << 10
"""The slowest line that is waited for: a piece of 5 MiB in some 6 minutes."""

Why: TypeAlias = Literal[
    "full", "address", "proxy", "node", "slow", "size", "malformed", "login", "unknown", "descriptors"
]
"""Why a connection was closed, or a request refused."""

_WORDS: Final[dict[Why, str]] = {
    "full": "too many in all: for each new one, one without a known signature is closed",
    "address": "too many from one address without a known signature",
    "proxy": "too many in all, and new ones of a proxy are closed: let the proxy limit the connections of each client",
    "node": "too many, or too many requests at once, of one key",
    "slow": "a handshake, a request or the reading of an answer was held back",
    "size": "a request, or its headers, are larger than its sender may send",
    "malformed": "a request is no HTTP, or came before the answer to the one before",
    "login": "no valid signature of a node, or its clock is wrong",
    "unknown": "too many requests signed by keys that are not registered",
    "descriptors": "the system has no descriptor left: raise the limit of open files",
}
_SAY_SECONDS = 60.0
_GREETING_SECONDS = 3.0  # for TLS and the first headers of an honest node, also while hundreds come at once
_FOR = re.compile(r'(?i)(?:^|;)\s*for="?(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::\d+)?"?\s*(?:;|$)')
_BETWEEN_SECONDS, _AT_ONCE = 1.0, 64  # requests of unregistered keys: each costs Flower's database and lines of its log

K = TypeVar("K")


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Limits:
    """Limits on the number of connections to the server.

    Attributes:
        connections: open at once.
        unsigned: open at once before a known key has signed, as every node's at first.
        of_address: strangers from one address, or one /64 of IPv6.
        of_node: open at once of one key; Flower's node uses four.
        requests: of one key at once; Flower's node sends two pieces and a heartbeat.

    Example:
        >>> from privstats.engines.carriers import Limits
        >>> Limits().within(1024).connections
        768
    """

    connections: int = 4096
    unsigned: int = 256
    of_address: int = 64
    of_node: int = 8
    requests: int = 4

    def within(self, files: int | None = None) -> Limits:
        """Return these limits for a process that may open ``files`` files, of which some are reserved.

        Args:
            files: None raises this process's limit of open files as far as allowed, and uses the new limit.
        """
        files = raise_open_files() if files is None else files
        most = max(1, min(self.connections, files - min(256, files // 2)))
        return replace(self, connections=most, unsigned=min(self.unsigned, most))


@dataclass(eq=False)
class AdmittedConnection:
    """One accepted connection.

    Attributes:
        host: its address without the port, or its IPv6 /64; a proxy's in full.
        until: when it is closed unless something happens.
        node: the known key that signed its last request; None for a stranger.
        end: closes it at once.
    """

    host: str
    began: float
    until: float
    node: bytes | None = None
    end: Callable[[], object] = field(default=_nothing, repr=False)


class ConnectionLimiter:
    """All open connections, and counts of those refused.

    Args:
        clock: seconds that never run backwards.
        proxies: addresses that carry many people's requests and count as signed. For IPv6 this address, not its /64.
        names: whether log lines name addresses.

    Example:
        >>> from privstats.engines.carriers import ConnectionLimiter, Limits
        >>> limiter = ConnectionLimiter(Limits())
        >>> limiter.arrive("2001:db8::7").host
        '2001:db8::/64'
    """

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        *,
        proxies: Collection[str] = (),
        names: bool = True,
    ) -> None:
        self._limits, self._clock, self._names = limits, clock, names
        self._proxies = frozenset(map(address_of, proxies))
        self._nodes: dict[AdmittedConnection, None] = {}
        self._unsigned: dict[AdmittedConnection, None] = {}  # in the order of arrival, as the lists by address are
        self._of_address: defaultdict[str, dict[AdmittedConnection, None]] = defaultdict(dict)
        self._of_node: Counter[bytes] = Counter()
        self._requests: Counter[bytes] = Counter()
        self._closed: Counter[Why] = Counter()
        self._last: dict[Why, str] = {}
        self._reported: dict[Why, tuple[int, float]] = {}
        self._introduced = -math.inf

    @property
    def status(self) -> ConnectionStatus:
        """The counts, for metrics."""
        return ConnectionStatus(len(self._nodes), len(self._unsigned), dict(sorted(self._closed.items())))

    def arrive(self, host: str) -> AdmittedConnection | None:
        """Register an accepted connection; return None where it is to be closed at once.

        At a limit the oldest stranger is closed, or a random one among recent ones.
        """
        if (proxy := address_of(host)) in self._proxies:
            return self._proxied(proxy)
        host = network_of(host)
        here = self._of_address.get(host, {})
        if len(here) >= self._limits.of_address and not self._make_room(here, "address", host):
            return None
        places = min(self._limits.unsigned, self._limits.connections - len(self._nodes))
        if len(self._unsigned) >= places and not self._make_room(self._unsigned, "full", host):
            return None
        admitted = self._new(host)
        self._unsigned[admitted] = self._of_address[host][admitted] = None
        return admitted

    def _proxied(self, host: str) -> AdmittedConnection | None:
        if len(self._nodes) + len(self._unsigned) >= self._limits.connections:
            if not self._unsigned:
                self.turn_away("proxy", host)
                return None
            self._make_room(self._unsigned, "full", host)
        admitted = self._new(host)
        self._nodes[admitted] = None
        return admitted

    def _new(self, host: str) -> AdmittedConnection:
        now = self._clock()
        return AdmittedConnection(host, now, now + PATIENCE_SECONDS)

    def _make_room(self, among: Collection[AdmittedConnection], why: Why, host: str) -> bool:
        oldest = next(iter(among), None)
        if oldest is None:
            self.turn_away(why, host)
            return False
        if oldest.began > self._clock() - _GREETING_SECONDS:
            # a flood: who refuses newcomers refuses every node; a node has signed before chance finds it, mostly
            oldest = secrets.choice(list(among if why == "address" else self._most_crowded()))
        self._close(oldest, why)
        return True

    def _most_crowded(self) -> Collection[AdmittedConnection]:
        most = max(map(len, self._of_address.values()))
        return secrets.choice([each for each in self._of_address.values() if len(each) == most])

    def introduce(self, admitted: AdmittedConnection) -> bool:
        """Return whether to pass on one more request of an unregistered key: one a second, after a burst."""
        now = self._clock()
        if self._introduced > now + (_AT_ONCE - 1) * _BETWEEN_SECONDS:
            self.turn_away("unknown", admitted.host)
            return False
        self._introduced = max(now, self._introduced) + _BETWEEN_SECONDS
        return True

    def leave(self, admitted: AdmittedConnection) -> None:
        """Note that a connection has ended. Idempotent."""
        if admitted in self._nodes:
            del self._nodes[admitted]
            if admitted.node is not None:
                _take(self._of_node, admitted.node)
        elif admitted in self._unsigned:
            del self._unsigned[admitted], self._of_address[admitted.host][admitted]
            if not self._of_address[admitted.host]:
                del self._of_address[admitted.host]

    @contextmanager
    def request(self, admitted: AdmittedConnection, node: bytes) -> Iterator[bool]:
        """Assign the connection to a known key, and yield whether its request may proceed."""
        may = self._requests[node] < self._limits.requests and self.prove(admitted, node)
        if not may:
            self.turn_away("node", admitted.host)
            yield False
            return
        self._requests[node] += 1
        try:
            yield True
        finally:
            _take(self._requests, node)

    def prove(self, admitted: AdmittedConnection, node: bytes) -> bool:
        """Assign the connection to the known key that signed on it; False if the key has too many."""
        if admitted in self._nodes and (admitted.node == node or admitted.host in self._proxies):
            return True
        if self._of_node[node] >= self._limits.of_node or not (admitted in self._nodes or admitted in self._unsigned):
            return False
        self.leave(admitted)
        self._nodes[admitted], admitted.node = None, node
        self._of_node[node] += 1
        return True

    def forget(self, admitted: AdmittedConnection) -> bool:
        """Make a connection the youngest stranger's again; return False at a limit."""
        if admitted.node is None or admitted not in self._nodes:
            return True
        self.leave(admitted)
        here, unsigned = len(self._of_address.get(admitted.host, ())), len(self._unsigned)
        if here >= self._limits.of_address or unsigned >= self._limits.unsigned:
            return False
        admitted.node, admitted.began = None, self._clock()
        self._unsigned[admitted] = self._of_address[admitted.host][admitted] = None
        return True

    def may_stay(self, admitted: AdmittedConnection) -> bool:
        """Return whether a connection may wait for its next request; strangers may below half the limits."""
        if admitted not in self._unsigned:
            return True
        here, places = len(self._of_address[admitted.host]), self._limits
        return 2 * here <= places.of_address and 2 * len(self._unsigned) <= places.unsigned

    def allow(self, admitted: AdmittedConnection, size: int = 0) -> None:
        """Extend a connection's deadline for ``size`` bytes on a slow line."""
        admitted.until = self._clock() + PATIENCE_SECONDS + size / BYTES_A_SECOND

    def tick(self) -> None:
        """Close connections past their deadline, and log refusals; call it every second."""
        now = self._clock()
        for admitted in [each for each in (*self._unsigned, *self._nodes) if each.until < now]:
            self._close(admitted, "slow")
        for why, number in self._closed.items():
            reported, when = self._reported.get(why, (0, -math.inf))
            if number > reported and now >= when + _SAY_SECONDS:
                self._reported[why] = number, now
                last = f"; last {self._last[why]}" if self._names else ""
                HOST.warning("connections or requests turned away: %d: %s%s", number - reported, _WORDS[why], last)

    def _close(self, admitted: AdmittedConnection, why: Why) -> None:
        self.leave(admitted)
        self.turn_away(why, admitted.host)
        admitted.end()

    def turn_away(self, why: Why, host: str) -> None:
        """Count a refused connection or request; :meth:`tick` reports it, once a minute per reason."""
        self._closed[why] += 1
        self._last[why] = host


def address_of(host: str) -> str:
    """Return an address in canonical spelling; other text unchanged."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def network_of(host: str) -> str:
    """Return the network that counts as one address: for IPv6 the /64 of one subscriber."""
    address = address_of(host)
    try:
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    except ValueError:  # no address of IPv6
        return address


def peer_of(address: str, headers: Mapping[str, str], proxies: Collection[str]) -> str:
    """Return the address to count: the client's, or a named proxy's ``Forwarded`` one; for IPv6 the network /64.

    Args:
        headers: of the request, by lower-case name.

    Example:
        >>> from privstats.engines.carriers import peer_of
        >>> peer_of("10.0.0.1", {"forwarded": 'for="[2001:db8::7]:443"'}, ("10.0.0.1",))
        '2001:db8::/64'
    """
    last = headers.get("forwarded", "").rpartition(",")[2]
    if address_of(address) in map(address_of, proxies) and (match := _FOR.search(last)):
        address = match[1] or match[2]
    return network_of(address)


def _take(counted: Counter[K], key: K) -> None:
    """Drop a key at zero: strangers could create zero keys by the million."""
    counted[key] -= 1
    if not counted[key]:
        del counted[key]
