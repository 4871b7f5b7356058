"""A party in a course: it works out what each node must be, and hands what belongs to the node's session to that.

It keeps what it was shown, and takes part in nothing that does not follow from it. No promise rests on that: a server
that makes releases up leads to plans that follow. Over ``party``, which answers for one session.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from privstats.course import verify_next
from privstats.course.kinds import kind_of
from privstats.engines.network import statements
from privstats.engines.network.announcement import Envelope, RoundAnnouncement, SignedAnnouncement, digest_of
from privstats.engines.network.between import BETWEEN
from privstats.engines.network.course_folder import CourseFolder, NodeFolder
from privstats.engines.network.course_transport import BEHIND
from privstats.engines.network.measuring import Records
from privstats.engines.network.party import Party, code_of_error, logged, reason_of
from privstats.engines.network.roles import ClientRole
from privstats.engines.network.status_codes import FAILED, Declined
from privstats.engines.network.transport import Answer
from privstats.errors import LocalProtocolError, PlanError, PrivstatsError, ReleaseError
from privstats.plan import Plan

__all__ = ["CourseParty"]

_LOOK = "compare the course and the releases with the other parties"


@dataclass(frozen=True)
class CourseParty:
    """A party's or a helper's folder of a course.

    Args:
        folder: the folder.
        say: told what went wrong, in a sentence, or whole where it was not foreseen.
    """

    folder: CourseFolder
    say: Callable[[str], None]

    @classmethod
    def open(cls, home: str | Path, say: Callable[[str], None] | None = None) -> CourseParty:
        """Open a folder.

        Raises:
            PrivstatsError: what is in it does not fit, or others could read it.
        """
        party = cls(CourseFolder.open(home), say or logged)
        for place in party.folder.nodes[-1:]:  # those before it were given up with it
            Party(party.folder.node(place), party.say).forget_old()
        return party

    @property
    def first(self) -> Party:
        """Its side of the first node, which is known beforehand."""
        return self.at(self.folder.keep(0, self.folder.course.first))

    def prepare(self, *, anew: bool = False, progress: bool = False) -> Records | None:
        """What ``check`` and ``join`` do before anything is sent, for the first node; as of a party of one session."""
        return self.first.prepare(anew=anew, progress=progress)

    def answer(self, kind: str, data: bytes) -> Answer:
        """Answer one message; never raises."""
        said = b""
        try:
            if kind != "node":
                raise Declined(FAILED, "the server runs one session and no course, or another version of this engine")
            envelope = _opened(data)
            said = envelope.data
            party = self.at(self._node(envelope))
        except Exception as error:  # only a code leaves, whatever it is
            code = code_of_error(error)
            self.say(reason_of(error))
            return Answer(code, self._signed(code, said))
        return party.answer(envelope.kind, envelope.data)

    def at(self, node: NodeFolder) -> Party:
        """Its side of one node."""
        return Party(node, self.say)

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
        if envelope.place not in self.folder.nodes:
            raise Declined("lost", f"{self.folder.home.name}/nodes/{envelope.place} is gone, or was never told of here")
        return self.folder.node(envelope.place)

    def _admitted(self, envelope: Envelope, signed: SignedAnnouncement) -> NodeFolder:
        try:
            announcement = signed.opened(self.folder.roster.server)
        except LocalProtocolError as error:
            raise Declined("damaged", str(error)) from None
        self._require_same(announcement, envelope.place)
        known = self.folder.node(announcement.place) if announcement.place in self.folder.nodes else None
        admitted = known is not None and known.plan.to_toml() == announcement.plan
        node = known if known is not None and admitted else self._followed(announcement, signed)
        _require_fresh(node, envelope.kind)
        return node

    def _require_same(self, announcement: RoundAnnouncement, place: int) -> None:
        """Refuse another course, another roster, and a node that is none."""
        folder = self.folder
        for code, theirs, ours in (
            ("wrong_course", announcement.course, bytes.fromhex(folder.course.digest)),
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
        kind = kind_of(folder.course)
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


def _opened(data: bytes) -> Envelope:
    try:
        return Envelope.decode(data)
    except LocalProtocolError as error:
        raise Declined("damaged", str(error)) from None


def _require_fresh(node: NodeFolder, kind: str) -> None:
    """Refuse to open a node that was marked here and whose journal is gone: it is lost, and never begun again."""
    role = Party(node, logged).role
    if kind == "open" and isinstance(role, ClientRole) and node.begun and not role.there:
        raise Declined("begun", f"node {node.place} was begun here and cut short before it was on disk: it is lost")
