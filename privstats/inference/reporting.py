"""Write every table's title, claim, guarantee and Methods paragraph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privstats.course.positions import charged_mu, is_followed
from privstats.course.promise import epsilon_of
from privstats.dp import Privacy
from privstats.inference.description import Description
from privstats.inference.exclusions import assumed_of, notes_on_excluded
from privstats.inference.releases import averages_persons
from privstats.inference.summary import Summary
from privstats.kinds import CountSchema
from privstats.plan import Plan
from privstats.plan.conditions import joint_condition
from privstats.plan.position import Position
from privstats.printable import at_most, delta_text, levels_text
from privstats.release import Release
from privstats.version import __version__

HIDDEN = "-"
"""Shown in place of a number that is not reported."""

_ADJACENT = {
    "add-remove": "neighbouring data sets differ by one {unit} that is added or removed",
    "replace-one": "neighbouring data sets differ in what one {unit} holds",
}
_DIGITS = 16
_NEARLY = 1 - 1e-6  # epsilons of a course and of its last session differ in the last digits


@dataclass(frozen=True)
class Source:
    """A table's last release, the plans of all its sessions, and its assumptions.

    Attributes:
        plans: of every session; None for one without a sum.
        last: the last release of the sessions, where the table's own is not.
        ahead: whether the whole course is charged before its first session, so that sessions to come count.
        converged: whether the rounds have converged for all numbers; those for which they have not are not reported.
        known: for count tables, variables of which the reader uses the known values alone, by table.
        why: why a row is not reported, where neither noise nor the rounds are the reason.

    Example:
        >>> from privstats.extend.readers import Source
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> release = ps.Release.exact(schema, ps.measure(schema, [[0.5, 0.0], [0.25, 0.0]], [0, 1]))
        >>> table = Source(release, 0.05, "").summary("Records", ("", "records"), [("all", "2")], methods="")
        >>> table.title, table.promise
        ('Records from a release', 'Exact sums: no differential privacy.')
    """

    release: Release
    alpha: float
    assumed: str
    plans: tuple[Plan | None, ...] = ()
    last: Release | None = None
    ahead: bool = False
    converged: bool = True
    known: tuple[tuple[str, ...], ...] = ()
    why: str = ""

    def title(self, what: str) -> str:
        """Return the title of a table."""
        return self._test_noise + f"{what} from a release"

    @property
    def foot(self) -> list[str]:
        """Claim, total guarantee, last plan, assumptions, and excluded records."""
        plan = self.release.plan
        return [
            f"At most {self._percent(self.alpha)} of releases report an interval that misses, if the assumptions "
            f"hold. '{HIDDEN}' means not reported: {self._hides}{self._or_early}.",
            self.promise,
            f"Plan {plan.digest[:_DIGITS]}, {len(self.release.survivors)} of {plan.cohort.clients} clients.",
            *self.assumptions,
        ]

    @property
    def assumptions(self) -> list[str]:
        """Assumptions, also of excluded records, and the number of excluded records."""
        stated = [f"Assumed: {self._assumed}."] if self._assumed else []
        return stated + notes_on_excluded(self.release, self.known)

    def summary(
        self,
        what: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        methods: str,
        head: Iterable[tuple[str, str]] = (),
        notes: Iterable[str] = (),
        warnings: Iterable[str] = (),
        caution: str = "",
        remark: str = "",
        about: Description | None = None,
    ) -> Summary:
        """Return a table of these releases.

        ``notes`` and ``warnings`` follow the claim; ``remark`` explains a star, first below the table. Head, foot and
        methods begin with what ``about`` states of the rows.
        """
        described = about or Description()
        return Summary(
            title=self.title(what),
            head=(*described.head, *head),
            columns=tuple(columns),
            rows=tuple(map(tuple, rows)),
            foot=(
                *([f"* {remark}."] if remark else []),
                *self.foot,
                *described.foot,
                *notes,
                *(f"Warning: {each}." for each in warnings),
            ),
            methods=self.methods(f"{methods} {described.methods}".strip()) if methods else "",
            caution=caution,
            promise=self.promise,
            about=about,
        )

    def methods(self, what: str, *, claim: str = "", privacy: str = "") -> str:
        """Return a Methods paragraph about ``what``.

        Args:
            claim: intervals' meaning, if not the usual claim.
            privacy: the guarantee, if the plans alone do not state it.
        """
        sentences = [self._test_noise, what, self._parties, privacy or self._guarantee, claim or self._claim]
        sentences += [f"Assumed: {self._assumed}." if self._assumed else "", self._identity]
        return " ".join(each.strip() for each in sentences if each)

    @property
    def _assumed(self) -> str:
        own = self.assumed
        if averages_persons(self.release):
            text = "independent persons, each counted once, by the average of its rows, wherever a record is named; "
            own = text + own.replace("independent records, ", "")
        return "; ".join(filter(None, (own, assumed_of(self.release, self.known))))

    @property
    def _hides(self) -> str:
        """Why a row is not reported."""
        if self.why:
            return self.why
        return "noise hides it" if self.release.plan.noise is not None else "these sums do not determine it"

    @property
    def _or_early(self) -> str:
        return "" if self.converged else ", or the rounds have not converged"

    @property
    def _test_noise(self) -> str:
        return "TEST NOISE, not private: " if self.release.reproducible else ""

    @property
    def _sessions(self) -> tuple[Plan | None, ...]:
        return self.plans or (self.release.plan,)

    @property
    def _position(self) -> Position | None:
        return (self.last or self.release).position

    @property
    def _count(self) -> int:
        """Number of sessions, with a sum or not."""
        position = self._position
        return max(len(self._sessions), 1 if position is None else position.place + 1)

    @property
    def _followed(self) -> bool:
        """Whether sessions without a sum follow the last release; then the table states the whole course's promise."""
        return is_followed(self._sessions, self._position)

    @property
    def _parties(self) -> str:
        cohort, count = self.release.plan.cohort, self._count
        sessions = "one session" if count == 1 else f"each of {count} sessions"
        return (
            f"The records of {len(self.release.survivors)} of {cohort.clients} parties were not pooled: in {sessions} "
            "a party summed its own, in integers, and of the masked sums only the total over all parties was seen."
        )

    @property
    def _claim(self) -> str:
        percent = self._percent(1 - self.alpha)
        noisy = self.release.plan.noise is not None
        noise = "sampling and that noise" if noisy else "sampling"
        hides = "noise hides" if noisy else "the sums do not determine"
        return (
            f"Intervals ({percent}) and p-values include {noise}: at most {self._percent(self.alpha)} of releases "
            f"report an interval that misses the true value, if the assumptions hold, and what {hides} is not "
            f"reported{'' if self.converged else ', nor are coefficients for which the rounds have not converged'}."
        )

    @property
    def _identity(self) -> str:
        last = "" if self._count == 1 else " of the last session"
        return f"Plan{last} (SHA-256): {self.release.plan.digest}. Software: privstats {__version__}."

    @property
    def promise(self) -> str:
        """The guarantee for all releases."""
        plan, privacy = self.release.plan, self.release.plan.privacy
        if not isinstance(privacy, Privacy) or plan.noise is None:
            return "Exact sums: no differential privacy."
        of = ""
        if self._followed:
            of = ", all sessions of its course, those without a sum among them"
        elif self.ahead:
            of = ", all sessions of its course, those to come among them"
        elif self._count > 1:
            of = f", all {self._count} {self._called}"
        return (
            f"Privacy: epsilon {at_most(self._epsilon(privacy))}, delta {self._delta(privacy)}{of}, "
            f"unit {privacy.unit}, adjacency {privacy.adjacency}, model {privacy.model}, while {self._condition}."
            f"{self._of_course(privacy)}"
        )

    def _of_course(self, privacy: Privacy) -> str:
        """Return what the whole course costs, where the promise above is of a part of its sessions; else nothing."""
        position = self._position
        if position is None or self._followed or self.ahead or not privacy.delta:
            return ""
        whole = epsilon_of(position.mu, privacy.delta)
        if self._epsilon(privacy) >= whole * _NEARLY:
            return ""
        masking = " and the failure of each session's masking" if self.release.plan.masking.failure else ""
        part = "This is one session" if self._count == 1 else f"These are {self._count} sessions"
        return (
            f" {part} of a course that asks the same records again: all its sessions together cost epsilon "
            f"{at_most(whole)} at delta {delta_text(privacy.delta)}{masking}, which ledgers charge."
        )

    @property
    def _called(self) -> str:
        """The printed word for the sessions: rounds, sessions with their counts, or sessions without known sums."""
        plan, known = self.release.plan, [each for each in self._sessions if each is not None]
        if not isinstance(plan.schema, CountSchema) and any(isinstance(each.schema, CountSchema) for each in known):
            cells = " of its cut points" if any(map_.reads_cells for map_ in plan.schema.transform) else ""
            return f"sessions, the counts{cells} among them"
        return "rounds" if len(known) == self._count else "sessions"

    @property
    def _guarantee(self) -> str:
        plan, privacy = self.release.plan, self.release.plan.privacy
        if not isinstance(privacy, Privacy) or plan.noise is None:
            return "No noise was added: the sums are exact, without differential privacy."
        honest = str(plan.cohort.min_survivors - plan.cohort.colluders)
        trusted = privacy.trust.trusted.replace("min_survivors - colluders", honest)
        what = "The release is" if self._count == 1 else f"All {self._count} sessions together are"
        if self._followed or self.ahead:
            what = "All sessions of its course together are"
        return (
            f"{what} differentially private with epsilon = {at_most(self._epsilon(privacy))} and delta = "
            f"{self._delta(privacy)}; the protected unit is one {privacy.unit}, the adjacency {privacy.adjacency} "
            f"({_ADJACENT[privacy.adjacency].format(unit=privacy.unit)}). "
            f"This relies on, with {privacy.model} noise: {trusted}. It holds while {self._condition}."
            f"{self._of_course(privacy)}"
        )

    @property
    def _condition(self) -> str:
        return joint_condition(plan for plan in self._sessions if plan is not None)

    def _epsilon(self, privacy: Privacy) -> float:
        if self.ahead and self._position is not None:
            return epsilon_of(self._position.mu, privacy.delta)
        if self._count == 1:
            return privacy.epsilon
        return epsilon_of(charged_mu(self._sessions, self._position), privacy.delta)

    def _delta(self, privacy: Privacy) -> str:
        """Return delta with the failure probability of every session's masking (union bound), rounded up."""
        failures = [each.masking.failure for each in self._sessions if each is not None]
        lost = self._count - len(failures)
        return delta_text(privacy.delta + math.fsum(failures) + lost * max(failures, default=0.0))

    @staticmethod
    def _percent(share: float) -> str:
        return f"{100 * share:g}%"


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence."""
    *others, last = names or ("none",)
    return f"{', '.join(others)} and {last}" if others else last


def texts_of(release: Release) -> tuple[tuple[str, str], ...]:
    """Return a row on texts read as 0 and 1."""
    schema = release.plan.schema
    levels = schema.reading.levels
    stays = getattr(schema, "ratios", None) == "subdistribution"
    return () if levels is None else (("texts", levels_text(levels, stays=stays)),)
