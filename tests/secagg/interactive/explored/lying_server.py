"""A server that may say anything: every list that it can show to each client, and what the clients' answers reveal.

It opens one session, for the counter in the run's name allows no second one. What a client answers depends on nothing
but what it is told, so each client is walked through alone, against everything that the others can be brought to say;
then every choice of one walk for each client is held together, as far as the signatures that it needs exist in it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from privstats.secagg.interactive import messages as kinds
from privstats.secagg.interactive import messages as said
from privstats.secagg.interactive.dealing import Public, part, verified
from privstats.secagg.interactive.state import STEPS, answers_of
from privstats.secagg.machines import ENDS, opening
from privstats.secagg.transcript import MerkleTree
from privstats.secagg.wire import members, to_bitmap
from tests.secagg.interactive.cohorts import Cohort, read
from tests.secagg.interactive.explored.automata import ClientAutomaton, Messages
from tests.secagg.interactive.explored.lies import subsets
from tests.secagg.interactive.inside import inside

_FORGOTTEN = frozenset(
    {"reply_to", "answered", "answer", "upload", "uploaded"}
)  # which message it was, of several alike
Statement = tuple[bytes, bytes]
"""A transcript and a list of survivors."""


@dataclass(frozen=True)
class Walk:
    """What the server has of one honest client at some point.

    Attributes:
        masked: with whom its vector was masked, or None before it was sent.
        signed: the one list that it signed, with its transcript.
        signers: whose signatures it was shown before it gave shares, or None where it gave none.
        shares: what it gave: owners, and 0 for a share of g, 1 for one of f.
        opened: how many layers of its noise it opened.
    """

    masked: frozenset[int] | None = None
    signed: Statement | None = None
    signers: frozenset[int] | None = None
    shares: frozenset[tuple[int, int]] = frozenset()
    opened: int = 0


@dataclass
class LyingServer:
    """The walks that it can lead each honest client on.

    Args:
        cohort: the session.
        colluders: clients that sign every list and tell every share.
    """

    cohort: Cohort
    colluders: frozenset[int] = frozenset()
    told: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.messages, n = Messages(), self.cohort.parameters.clients
        self.honest = [k for k in range(n) if k not in self.colluders]
        self.clients = {k: ClientAutomaton(self.cohort, self.messages, k, _FORGOTTEN) for k in range(n)}
        opening = dict(self.cohort.server.start())
        self.opened, self.adverts = {}, {}
        for k, client in self.clients.items():
            sent = client.received(0, self.messages.number(opening[k]))
            self.opened[k] = sent.state
            self.adverts[k] = read(self.cohort, k, self.messages.data[sent.answers[0]], kinds.Advertise).known
        self.shares: dict[tuple[int, bytes], set[int]] = {}
        self.signatures: dict[Statement, dict[int, bytes]] = {}

    def walks(self) -> Mapping[int, set[Walk]]:
        """Of each honest client, after as many passes as bring something new to say."""
        while True:
            before = sum(map(len, self.shares.values())), sum(map(len, self.signatures.values()))
            found = {k: self._walks(k) for k in range(self.cohort.parameters.clients)}
            if before == (sum(map(len, self.shares.values())), sum(map(len, self.signatures.values()))):
                return {k: found[k] for k in self.honest}

    @property
    def states(self) -> int:
        """Of all clients, that were met."""
        return sum(client.states for client in self.clients.values())

    def _walks(self, k: int) -> set[Walk]:
        found, known = set(), set()
        waiting = [(self.opened[k], Walk())]
        while waiting:
            state, walk = waiting.pop()
            found.add(walk)
            machine = self.clients[k].machine(state)
            if machine.step in ENDS:
                continue
            for message in self._tellable(k, machine):
                self.told += 1
                sent = self.clients[k].received(state, message)
                if sent.answers:
                    after = sent.state, self._noted(k, state, sent.answers[0], message, walk)
                    if after not in known:
                        known.add(after)
                        waiting.append(after)
        return found

    def _tellable(self, k: int, machine) -> Iterator[int]:
        say = {
            "share": self._adverts,
            "check": self._deliveries,
            "mask": self._dealers,
            "agree": self._survivors,
            "unmask": self._agreements,
        }[machine.step]
        channel = self.cohort.channel(k)
        for message in say(k, inside(machine).state):
            yield self.messages.number(channel.seal(kinds.encode(message)))

    def _adverts(self, k: int, state) -> Iterator[kinds.Adverts]:
        """Any tree of advertisements, and any of the clients in it."""
        n = self.cohort.parameters.clients
        for tree in subsets(each for each in range(n) if each != k):
            leaves = {each: said.advert_leaf(self.adverts[each]) for each in (*tree, k)}
            for shown in subsets(tree):
                proof = MerkleTree(leaves, n).proof(frozenset((k, *shown)))
                yield kinds.Adverts(state.session, tuple(self.adverts[each] for each in shown), proof)

    def _deliveries(self, k: int, state) -> Iterator[kinds.Deliver]:
        """Of any clients, their dealings under this transcript, each with its box or with another."""
        for sharers in subsets(state.adverts):
            options = [list(self._dealt(owner, k, state.transcript)) for owner in sharers]
            for dealt in product(*options):
                fields = (b"".join(each) for each in zip(*dealt, strict=True)) if dealt else (b"",) * 4
                yield kinds.Deliver(state.session, sharers, *fields)

    def _dealt(self, owner: int, k: int, transcript: bytes) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
        graph = inside(self.cohort.server).graph
        for number in sorted(self.shares.get((owner, transcript), ())):
            share = read(self.cohort, owner, self.messages.data[number], kinds.Share)
            at = graph.point(owner, k) - 1
            public = self._public(owner, share, transcript)
            for box in self._boxes(share):
                yield box, part(public.commitments, at), part(public.responses, at), public.challenges

    def _public(self, owner: int, share: kinds.Share, transcript: bytes) -> Public:
        sent, weights = (share.commitments, share.responses, share.proofs), inside(self.cohort.server).weights()
        return verified(*sent, owner=owner, transcript=transcript, weights=weights)

    def _boxes(self, share: kinds.Share) -> Iterator[bytes]:
        """All of a dealing, for whomever they are, and one that nobody opens."""
        size = kinds.BOX_BYTES
        yield bytes(size)
        yield from (part(share.boxes, at, size) for at in range(len(share.boxes) // size))

    def _dealers(self, k: int, state) -> Iterator[kinds.Dealers]:
        """Any clients that continue, and any of these that could not use this one's dealing."""
        n = self.cohort.parameters.clients
        for chosen in subsets(range(n)):
            for refused in subsets(set(chosen) - {k}):
                yield kinds.Dealers(state.session, to_bitmap(chosen, n), refused)

    def _survivors(self, k: int, state) -> Iterator[kinds.Survivors]:
        n = self.cohort.parameters.clients
        yield from (kinds.Survivors(state.session, to_bitmap(chosen, n)) for chosen in subsets(range(n)))

    def _agreements(self, k: int, state) -> Iterator[kinds.Agreement]:
        statement = state.transcript, state.survivors
        known = dict(self.signatures.get(statement, {}))
        text = said.survivors_statement(*statement)
        known |= {each: self.cohort.identities[each].sign(text) for each in self.colluders}
        for shown in subsets(each for each in known if each != k):
            yield kinds.Agreement(state.session, shown, b"".join(known[each] for each in shown))

    def _noted(self, k: int, state: int, answer: int, message: int, walk: Walk) -> Walk:
        """The walk one answer further; what it brings to say is kept."""
        before = inside(self.clients[k].machine(state)).state
        data, step = self.messages.data[answer], before.step
        if step == "share":
            after = inside(self.clients[k].machine(self.clients[k].received(state, message).state)).state
            self.shares.setdefault((k, after.transcript), set()).add(answer)
        elif step == "mask":
            told = read(self.cohort, k, self.messages.data[message], kinds.Dealers)
            here = members(told.dealers, self.cohort.parameters.clients)
            here = here.intersection(before.held).difference(told.refused)
            return Walk(frozenset(other for other in before.sharers if other in here))
        elif step == "agree":
            told = read(self.cohort, k, self.messages.data[message], kinds.Survivors)
            signature = read(self.cohort, k, data, kinds.Agree).signature
            self.signatures.setdefault((before.transcript, told.survivors), {})[k] = signature
            return Walk(walk.masked, (before.transcript, told.survivors))
        elif step == "unmask":
            shown = read(self.cohort, k, self.messages.data[message], kinds.Agreement).signers
            given = read(self.cohort, k, data, answers_of(step, self.cohort.parameters))
            pairs = {
                (owner, int(part(given.shares, at, 32) != part(before.held[owner], 0, 32)))
                for at, owner in enumerate(given.owners)
            }
            return Walk(walk.masked, walk.signed, frozenset(shown), frozenset(pairs), self._opened(k, given))
        assert step in STEPS
        return walk

    def _opened(self, k: int, given: kinds.Unmask) -> int:
        """By the value that it sent, of all that its chain has."""
        layers = len(self.cohort.parameters.levels) - 1
        if not isinstance(given, kinds.UnmaskWithOpening):
            return 0
        chain = [opening(self.cohort.noise_root(k), layers, opened) for opened in range(layers + 1)]
        return chain.index(given.opening)


@dataclass(frozen=True)
class Judgement:
    """Every choice of one walk for each honest client, together.

    Attributes:
        choices: how many can be together.
        unmasked: how many of them have a client that gave shares.
        breaches: what the server has of them that it must not have, in words.
    """

    choices: int
    unmasked: int
    breaches: frozenset[str]


def judged(server: LyingServer, walks: Mapping[int, set[Walk]]) -> Judgement:
    """Hold all walks together that can be: who showed a signature of a client needs that client to have made it."""
    honest, choices, unmasked = sorted(walks), 0, 0
    seen: dict[tuple[Walk, ...], dict[int, Walk]] = {}
    for alike in product(*(_by_signatures(walks[k]) for k in honest)):
        if not _can_be({k: each[0] for k, each in zip(honest, alike, strict=True)}):
            continue
        count = math.prod(map(len, alike))
        choices += count
        if any(each[0].signers is not None for each in alike):
            unmasked += count
            for chosen in product(*(dict.fromkeys(map(_judged_by, each)) for each in alike)):
                seen.setdefault(chosen, dict(zip(honest, chosen, strict=True)))
    breaches = {breach for together in seen.values() for breach in _breaches(server, together)}
    return Judgement(choices, unmasked, frozenset(breaches))


def _by_signatures(walks: set[Walk]) -> list[list[Walk]]:
    """Group walks that can be together with the same walks of others."""
    found: dict[tuple[Statement | None, frozenset[int] | None], list[Walk]] = {}
    for walk in walks:
        found.setdefault((walk.signed, walk.signers), []).append(walk)
    return list(found.values())


def _judged_by(walk: Walk) -> Walk:
    """Return a walk without what no breach depends on: whose signatures it saw, and a list that it signed in vain."""
    if walk.signers is None:
        return replace(walk, signed=None)
    return replace(walk, signers=frozenset())


def _can_be(together: Mapping[int, Walk]) -> bool:
    return all(
        together[signer].signed == walk.signed
        for walk in together.values()
        for signer in walk.signers or ()
        if signer in together
    )


def _breaches(server: LyingServer, together: Mapping[int, Walk]) -> Iterator[str]:
    parameters, liars = server.cohort.parameters, server.colluders
    if len({walk.signed for walk in together.values() if walk.signers is not None}) > 1:
        yield "two lists were unmasked"
    held = {
        (owner, kind): len(liars) + sum((owner, kind) in walk.shares for walk in together.values())
        for owner in together
        for kind in (0, 1)
    }
    bare = {
        owner
        for owner, walk in together.items()
        if walk.masked is not None and (walk.signers is not None or held[owner, 0] >= parameters.threshold)
    }
    if any(held[owner, 1] >= parameters.threshold for owner in bare):
        yield "both keys of a client are known"
    unknown = {owner for owner in together if held[owner, 1] < parameters.threshold}
    for group in _sums(together, bare, unknown):
        if len(group) + len(liars) < parameters.min_survivors:
            yield "a sum over too few is known"
        if parameters.levels:
            sized = [parameters.levels[together[owner].opened] - len(liars) for owner in group]
            if sum(Fraction(1, honest) for honest in sized) < 1:
                yield "a sum has too little noise"


def _sums(together: Mapping[int, Walk], bare: set[int], unknown: set[int]) -> Iterator[set[int]]:
    """The least groups whose sum shows: each is without its own mask, and every other mask is in the group twice.

    A pair's mask follows from either's f, so it hides a client only where both are unknown. The one share of f that
    lies between the two is enough, in whichever direction.
    """

    def given(one: int, other: int) -> bool:
        return (other, 1) in together[one].shares or (one, 1) in together[other].shares

    hidden_by = {
        one: {other for other in walk.masked or () if {one, other} <= unknown and not given(one, other)}
        for one, walk in together.items()
    }
    for start in bare:
        group, waiting = {start}, [start]
        while waiting:
            further = hidden_by[waiting.pop()] - group
            group |= further
            waiting += further
        if group <= bare and all(one in hidden_by[other] for one in group for other in hidden_by[one]):
            yield group
