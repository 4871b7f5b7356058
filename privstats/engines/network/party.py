"""A party: one folder, and an answer to every message; it works out what each node must be, and lets that answer.

It keeps what it was shown, and takes part in nothing that does not follow from it. No promise rests on that: a server
that makes releases up leads to plans that follow. Over ``node_party``, which answers for one session; whoever carries
messages begins here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from privstats.course import Single, verify_next
from privstats.engines.network import statements
from privstats.engines.network.announcement import ANNOUNCED, Envelope, RoundAnnouncement, SignedAnnouncement, digest_of
from privstats.engines.network.between import BETWEEN
from privstats.engines.network.folder import Folder, NodeFolder
from privstats.engines.network.folder_checks import check_course
from privstats.engines.network.measuring import Records
from privstats.engines.network.node_party import (
    ANOTHER_VERSION,
    NodeParty,
    code_of_error,
    logged,
    passing_code,
    reason_of,
)
from privstats.engines.network.node_transport import BEHIND
from privstats.engines.network.roles import ClientRole
from privstats.engines.network.status_codes import FAILED, VERSION, Declined
from privstats.engines.network.transport import Answer
from privstats.errors import LocalProtocolError, PlanError, PrivstatsError, ReleaseError
from privstats.plan import Plan
from privstats.secagg import Roster

__all__ = ["Party", "answer"]

_LOOK = "compare the course and the releases with the other parties"


@dataclass(frozen=True)
class Party:
    """A party's or a helper's folder.

    Args:
        folder: the folder.
        say: told what went wrong, in a sentence, or whole where it was not foreseen.
    """

    folder: Folder
    say: Callable[[str], None]

    @classmethod
    def open(cls, home: str | Path, say: Callable[[str], None] | None = None) -> Party:
        """Open a folder.

        Raises:
            PrivstatsError: what is in it does not fit, or others could read it.
        """
        party = cls(Folder.open(home), say or logged)
        for place in party.folder.nodes[-1:]:  # those before it were given up with it
            NodeParty(party.folder.node(place), party.say).forget_old()
        return party

    @property
    def first(self) -> NodeParty:
        """Its side of the first node, which is known beforehand."""
        return self.at(self.folder.keep(0, self.folder.course.first))

    def prepare(self, *, anew: bool = False) -> Records | None:
        """What ``check`` and ``join`` do before anything is sent, for the first node; see :meth:`NodeParty.prepare`."""
        return self.first.prepare(anew=anew)

    def of(self, plan: str | Path | None, roster: str | Path | None) -> NodeParty:
        """Its side of an earlier session, by the files that the folder had then; of its own where none are given.

        Raises:
            PrivstatsError: a file cannot be read, or the two do not fit each other; or the folder is of a course.
        """
        folder = self.folder
        if not folder.kind.single:
            raise PrivstatsError(
                "a course is spent as a whole before its first session, so no session of it is withdrawn"
            )
        course = folder.course if plan is None else Single(Plan.read(plan))
        roster_then = folder.roster if roster is None else Roster.load(roster)
        check_course(course, roster_then)
        return self.at(replace(folder, course=course, roster=roster_then).node(0))

    def answer(self, kind: str, data: bytes) -> Answer:
        """Answer one message; never raises."""
        said = b"" if kind == "node" else data
        try:
            if kind != "node":
                raise Declined(VERSION, ANOTHER_VERSION)
            envelope = _opened(data)
            said = envelope.data
            party = self.at(self._node(envelope))
        except Exception as error:  # only a code leaves, whatever it is
            code = code_of_error(error)
            self.say(reason_of(error))
            return Answer(code, self._signed(code, said))
        return party.answer(envelope.kind, envelope.data)

    def at(self, node: NodeFolder) -> NodeParty:
        """Its side of one node."""
        return NodeParty(node, self.say)

    def _signed(self, code: str, question: bytes) -> bytes:
        """Who says so, where the code is about a party of this roster."""
        public, publics = self.folder.identity.public, self.folder.publics
        if public not in publics or code == BEHIND:
            return b""
        return statements.sign_reply(self.folder.identity, publics.index(public), question, code)

    def _node(self, envelope: Envelope) -> NodeFolder:
        """The folder of the node that a message is of, once its plan was found to follow."""
        if envelope.signed is not None:
            return self._admitted(envelope, envelope.signed)
        if envelope.kind in ANNOUNCED:
            raise Declined("damaged", "a message that may be the first of its session came without its announcement")
        if envelope.place not in self.folder.nodes:
            raise Declined("lost", f"{self.folder.home.name}/nodes/{envelope.place} is gone, or was never told of here")
        return self.folder.node(envelope.place)

    def _admitted(self, envelope: Envelope, signed: SignedAnnouncement) -> NodeFolder:
        try:
            announcement = signed.opened(self.folder.roster.server)
        except LocalProtocolError as error:
            raise Declined("damaged", str(error)) from None
        self._require_same(announcement, envelope.place)
        folder, place = self.folder, announcement.place
        known = folder.node(place) if place in folder.nodes else None
        same = known is not None and (folder.kind.single or known.plan.to_toml() == announcement.plan)
        node = known if known is not None and same else self._followed(announcement, signed)
        _require_fresh(node, envelope.kind)
        return node

    def _require_same(self, announcement: RoundAnnouncement, place: int) -> None:
        """Refuse another course, another roster, and a node that is none."""
        folder = self.folder
        for code, theirs, ours in (
            (f"wrong_{folder.noun}", announcement.course, bytes.fromhex(folder.digest)),
            ("wrong_roster", announcement.roster, folder.roster.digest),
        ):
            if theirs != ours:
                noun, a, b = code.removeprefix("wrong_"), theirs.hex()[:8], ours.hex()[:8]
                raise Declined(code, f"the server runs another {noun} ({a}...), ours is {b}...: nothing was sent")
        if place != announcement.place or place != len(announcement.outcomes) or place >= folder.course.most:
            raise Declined("damaged", f"what came as node {place} of the course is none of its nodes")

    def _followed(self, announcement: RoundAnnouncement, signed: SignedAnnouncement) -> NodeFolder:
        """Admit a node that is new here, keep its plan, and give up what is left of the nodes before it."""
        folder = self.folder
        for place, outcome in enumerate(announcement.outcomes):
            self._shown(place, outcome, signed.releases.get(place))
        kind = folder.kind
        between = BETWEEN[kind.part]
        between.settle(folder, signed.words, self.say)
        try:
            plan = self._plan(announcement, signed)
            before = [folder.release(place) if kind.follows else None for place in range(announcement.place)]
            verify_next(folder.course, plan, before)
        except PlanError as error:
            raise Declined("not_next", str(error)) from None
        if announcement.place in folder.nodes:
            raise Declined("not_next", f"the server sent another plan for node {announcement.place} before; {_LOOK}")
        node = folder.keep(announcement.place, plan)
        for place in between.left_over(folder, node.place):
            with suppress(PrivstatsError):  # what somebody is at now is given up with the next node
                self.at(folder.node(place)).role.session_ended()
        return node

    def _shown(self, place: int, outcome: bytes, file: bytes | None) -> None:
        """Hold what the server says came of a node against what it said before, or look at it and keep it.

        Raises:
            Declined: it is something else, of another plan than the node's, or not here.
        """
        folder = self.folder
        if folder.told(place):
            if digest_of(folder.shown(place)) != outcome:
                raise Declined("not_next", f"the server showed another release of node {place} before; {_LOOK}")
            return
        if not outcome:
            folder.keep_shown(place, None)
            return
        if file is None or digest_of(file) != outcome:
            raise Declined(BEHIND, f"the release of node {place} was not shown here yet; the server sends it again")
        try:
            release = folder.read_shown(place, file)
        except ReleaseError as error:
            raise Declined("not_next", str(error)) from None
        if place in folder.nodes and folder.node(place).plan != release.plan:
            raise Declined("not_next", f"what is shown as the release of node {place} is of another plan; {_LOOK}")
        folder.keep_shown(place, file)

    def _plan(self, announcement: RoundAnnouncement, signed: SignedAnnouncement) -> Plan:
        plan = Plan.from_toml(announcement.plan)
        if plan.published is None or not signed.values:
            return plan
        return plan.with_values(self.folder.read_values(announcement.place, signed.values).read())


def answer(home: str | Path, kind: str, data: bytes) -> Answer:
    """Answer one message from a party's folder; never raises, and tells the folder's operator on standard error why.

    Args:
        home: the folder.
        kind: what kind of message it is.
        data: the message.
    """
    try:
        party = Party.open(home)
    except Exception as error:  # the message is the server's: it gets a code whatever happens
        logged(reason_of(error))
        return Answer(passing_code(error) or FAILED)
    return party.answer(kind, data)


def _opened(data: bytes) -> Envelope:
    try:
        return Envelope.decode(data)
    except LocalProtocolError as error:
        raise Declined("damaged", str(error)) from None


def _require_fresh(node: NodeFolder, kind: str) -> None:
    """Refuse to open a node that was marked here and whose journal is gone: it is lost, and never begun again."""
    if kind != "open" or not node.begun:
        return
    role = NodeParty(node, logged).role
    if isinstance(role, ClientRole) and not role.there:
        raise Declined("begun", f"node {node.place} was begun here and cut short before it was on disk: it is lost")
