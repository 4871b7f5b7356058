"""Check messages: each function prevents one kind of lie, by raising ``Refusal``.

A client then ends, unless it refused an opening. The server refuses only that message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.errors import RemoteProtocolError
from privstats.files.signing import verify
from privstats.secagg import kem, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.dealing import part
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import advert_statement, context_of, open_statement, survivors_statement
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.interactive.state import ClientState
from privstats.secagg.keys import agree
from privstats.secagg.machines import opening
from privstats.secagg.roster import Roster
from privstats.secagg.wire import Refusal, members

Dealt = Callable[[int, bytes], bool]
_ANY = X25519PrivateKey.from_private_bytes(bytes(range(32)))
"""An arbitrary private key: a point of low order yields a zero secret with every private key."""


def check_open(message: messages.Open, graph: Graph) -> None:
    """Require the roster's server's signature for this plan, parameters and roster."""
    if message.parameters != graph.parameters.digest:
        raise Refusal("wrong_plan", "the server runs another plan or other parameters")
    if message.roster != graph.roster.digest:
        raise Refusal("wrong_roster", "the server runs another roster")
    statement = open_statement(context_of_open(message, graph))
    if not verify(graph.roster.server, message.signature, statement):
        raise Refusal("bad_signature", "the server on the roster did not sign this opening")


def context_of_open(message: messages.Open, graph: Graph) -> bytes:
    """Return an opening's context, as its receiver computes it."""
    return context_of(graph, message.session, message.server_key, message.kem_key)


def check_adverts(message: messages.Adverts, graph: Graph, index: int, state: ClientState) -> None:
    """Require keys of this client's neighbours, signed for this session."""
    _check_clients([advert.sender for advert in message.adverts], graph.neighbours(index))
    _check_quorum(len(message.adverts), graph, "advertised")
    for advert in message.adverts:
        if advert.session != state.session:
            raise Refusal("wrong_session", f"the keys of client {advert.sender} are labelled with another session")
        statement = advert_statement(state.context, advert.sender, *advert.keys)
        if not verify(graph.roster.publics[advert.sender], advert.signature, statement):
            raise Refusal("bad_signature", f"client {advert.sender} did not sign these keys for this session")


def check_deliver(message: messages.Deliver, graph: Graph, state: ClientState) -> None:
    """Require dealings of enough advertised neighbours to remove masks later."""
    count = len(message.sharers)
    _check_clients(message.sharers, state.adverts)
    _check_quorum(count, graph, "shared")
    _check_length(message.boxes, messages.BOX_BYTES * count)
    for pairs in (message.commitments, message.responses, message.challenges):
        _check_length(pairs, messages.PAIR_BYTES * count)


def check_dealers(bitmap: bytes, graph: Graph, index: int, state: ClientState) -> None:
    """Require a list with this client and enough neighbours, all of which shared.

    An excluded neighbour may not be on the survivor list (:func:`check_survivors`).
    """
    dealers = _members(bitmap, graph)
    here = dealers.intersection(graph.neighbours(index))
    if index not in dealers or not here <= set(state.sharers):
        raise Refusal("strangers", "listed clients did not share, or this client is not listed")
    _check_quorum(len(here), graph, "go on")


def check_refused(graph: Graph, state: ClientState) -> None:
    """Require enough neighbours without a dispute with this client.

    Pairs in dispute share no mask. A server can invent disputes, so a random graph limits them to what its bounds
    assume.
    """
    _check_clients(state.refused, state.dealers)
    unmasked = unproven(state)
    _check_quorum(len(set(state.dealers) - unmasked), graph, "share a mask with this client")
    if not graph.parameters.complete and len(unmasked) > graph.parameters.disputes:
        raise Refusal(
            "too_many_disputes",
            f"{len(unmasked)} continuing neighbours share no mask with this client, and its graph allows "
            f"{graph.parameters.disputes}",
            proven=False,  # liars among the clients can do that too
        )


def unproven(state: ClientState) -> frozenset[int]:
    """Return the dealers that proved nothing to this client or share no mask with it."""
    return frozenset(state.dealers).difference(state.held).union(state.refused)


def check_survivors(bitmap: bytes, graph: Graph, index: int, state: ClientState) -> None:
    """Require a list with this client and enough others, none isolated; listed neighbours must have continued.

    Each listed client needs t listed neighbours of its k on the circle. As t > k/2, one is on each side, so listed
    clients are connected. So a server cannot isolate a client by listing its neighbours as dropped; SecAgg+ requires
    less. With ``only`` or ``full_list`` (several sums over one list) the client also requires masks with all listed
    neighbours: a lying server could omit clients in dispute from one sum.
    """
    survivors = _members(bitmap, graph)
    if state.only and bitmap != state.only:
        raise Refusal(
            "other_survivors",
            "the survivor list differs from the earlier sum's, so the two sums' difference would reveal single clients",
            proven=False,  # a client may have vanished
        )
    if (state.only or state.full_list) and survivors & unproven(state):
        raise Refusal(
            "unproven_survivors",
            "listed clients share no mask with this one, so a lying server could exclude them from this sum, and learn "
            "them from the difference to another sum over the list",
            proven=False,  # liars among the clients can do that too
        )
    if index not in survivors or not survivors.intersection(graph.neighbours(index)) <= set(state.dealers):
        raise Refusal("strangers", "the survivor list has clients that did not continue, or lacks this client")
    if len(survivors) < graph.parameters.min_listed:
        raise Refusal("too_few_survivors", f"{len(survivors)} are listed, the plan needs {graph.parameters.min_listed}")
    if graph.min_degree(survivors) < graph.parameters.quorum:
        raise Refusal("isolated", "the survivor list leaves a client with too few surviving neighbours")
    check_proven(survivors, graph, index, unproven(state))


def check_proven(survivors: frozenset[int], graph: Graph, index: int, failed: Collection[int]) -> None:
    """Require enough listed clients that proved to ``index`` that they take part.

    Clients in ``failed`` sealed no good box or are in dispute with ``index``. A box that opens is proof:
    it is keyed by this client's fresh key. An old signed advertisement proves nothing: a server that repeats its
    session name and key could replay it after its client left. A neighbour that seals garbage looks absent too, so no
    client is accused.
    """
    absent = survivors.intersection(failed)
    neighbours = len(survivors.intersection(graph.neighbours(index)))
    if (
        len(survivors) - len(absent) < graph.parameters.min_survivors
        or neighbours - len(absent) < graph.parameters.quorum
    ):
        raise Refusal(
            "unproven_survivors",
            f"{len(survivors)} are listed, but clients {sorted(absent)} did not prove to this client that they take "
            "part: either they sealed no good box, or the server passes them off as survivors",
            proven=False,
        )


def check_agreement(message: messages.Agreement, graph: Graph, index: int, state: ClientState) -> None:
    """Require signatures on this client's list, of a quorum of its neighbours and of enough of the committee.

    Enough of the committee are so many that no other client can be shown as many on another list.
    """
    _check_clients(message.signers, _members(state.survivors, graph) - {index})
    _check_quorum(len(set(message.signers).intersection(graph.neighbours(index))), graph, "signed")
    signed = len(graph.committee.intersection((*message.signers, index)))
    if signed < graph.parameters.signatures:
        raise Refusal("too_few_signatures", f"{signed} clients signed, {graph.parameters.signatures} are needed")
    _check_length(message.signatures, wire.SIGNATURE_BYTES * len(message.signers))
    statement = survivors_statement(state.transcript, state.survivors)
    for place, signer in enumerate(message.signers):
        signature = message.signatures[place * wire.SIGNATURE_BYTES : (place + 1) * wire.SIGNATURE_BYTES]
        if not verify(graph.roster.publics[signer], signature, statement):
            raise Refusal("other_list", f"client {signer} did not sign the survivor list shown to this client")


def _check_clients(listed: Collection[int], allowed: Collection[int]) -> None:
    if sorted(set(listed)) != list(listed):
        raise Refusal("out_of_order", "clients must be listed once each, in increasing order")
    if not set(listed) <= set(allowed):
        raise Refusal("strangers", "the message lists clients that cannot be part of it")


def _check_quorum(count: int, graph: Graph, did: str) -> None:
    if count < graph.parameters.quorum:
        raise Refusal("too_few_neighbours", f"{count} neighbours {did}, {graph.parameters.quorum} are needed")


def _check_length(field: bytes, expected: int) -> None:
    if len(field) != expected:
        raise Refusal("wrong_length", f"a field has {len(field)} bytes instead of {expected}")


def _members(bitmap: bytes, graph: Graph) -> frozenset[int]:
    try:
        return members(bitmap, graph.parameters.clients)
    except ValueError:
        raise Refusal("wrong_length", "a list of clients is not a bitmap of the roster") from None


def check_advertise(message: messages.Advertise, public: bytes, context: bytes, private: X25519PrivateKey) -> None:
    """Require valid keys that the roster's identity signed for this session."""
    statement = advert_statement(context, message.sender, *message.keys)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature")
    try:
        kem.parsed(message.kem_key)
        agree(private, message.box_key)
    except ValueError:
        raise Refusal("bad_key") from None


def check_share(message: messages.Share, length: int) -> None:
    """Require boxes of this length; ``dealing.verified`` checks the public part."""
    if len(message.boxes) != length:
        raise Refusal("wrong_length")


def check_check(message: messages.Check, owners: Collection[int]) -> None:
    """Require reports of shares that were dealt to the client, and a link per usable owner above it."""
    _check_owners(message.failed, owners)
    above = sum(owner > message.sender for owner in set(owners).difference(message.failed))
    _check_length(message.links, wire.HASH_BYTES * above)


def check_mask(message: messages.Mask, wire_bytes: int) -> None:
    """Require a vector of the ring's length."""
    if len(message.vector) != wire_bytes:
        raise Refusal("wrong_length")


def check_agree(message: messages.Agree, public: bytes, statement: bytes) -> None:
    """Require a signature over the session's one survivor list."""
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature")


def check_unmask(
    message: messages.Unmask, *, is_self_key: Callable[[bytes], bool], owners: Collection[int], dealt: Dealt
) -> None:
    """Require the sender's self-mask key, and only dealt shares, each of the kind due.

    Args:
        owners: owners of usable shares: one share each is due.
        dealt: returns whether an owner dealt a share.
    """
    size = messages.SECRET_BYTES
    if not is_self_key(message.self_key):
        raise Refusal("bad_self_key")
    _check_owners(message.owners, owners)
    if len(message.shares) != size * len(message.owners):
        raise Refusal("wrong_length")
    if not all(dealt(owner, part(message.shares, place, size)) for place, owner in enumerate(message.owners)):
        raise Refusal("bad_share")
    if len(message.owners) < len(owners):
        raise Refusal("withheld", "it reported usable shares of more clients than it sends")


def check_layers(message: messages.UnmaskWithOpening, opened: int, commitment: bytes) -> None:
    """Require the value committed to before survivors were known."""
    if opening(message.opening, opened, 0) != commitment:
        raise Refusal("bad_opening", "its seeds of noise are not those that it committed to")


def _check_owners(listed: tuple[int, ...], owners: Collection[int]) -> None:
    if tuple(sorted(set(listed))) != listed or not set(listed) <= set(owners):
        raise Refusal("strangers")


def check_opening(parameters: Parameters, opening: bytes, *, roster: Roster) -> None:
    """Refuse an opening that the roster's server did not sign for this plan and roster.

    Engines call it before foreign bytes can cost budget or noise.

    Raises:
        RemoteProtocolError: not so signed, malformed, or with an invalid key.
    """
    graph, view = Graph(parameters, roster), wire.view_of(opening)
    try:
        messages.check_header(view, messages.Open, parameters)
        message = messages.decode(view, messages.Open)
        check_open(message, graph)
        _check_keys(message)
    except Refusal as refusal:
        raise RemoteProtocolError("server", "advertise", refusal.code, refusal.detail, proven=False) from None


def _check_keys(message: messages.Open) -> None:
    try:
        agree(_ANY, message.server_key)
        kem.parsed(message.kem_key)
    except ValueError:
        raise Refusal("bad_key", "a public key is a point of low order, or no key of ML-KEM") from None
