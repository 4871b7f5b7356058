"""Check a plan's table ``[devices]``: organisations, the registrar's key and a cap, for devices of invited people."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privstats.dp import Noise, NoPrivacy, Privacy, client_mu, gaussian_epsilon, group_mu
from privstats.errors import PlanError
from privstats.files.signing import require_order
from privstats.python_values import python_fields
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

EXACT = "the leader is trusted with the sum"
PER_RECORD = "per record"
TRUSTED_REGISTRAR = "the registrar is trusted with every answer"

_LONGEST_NAME = 120
_MAX_RUNS = 10_000
_MAX_EPSILON = 1e9


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Organisations, limits and page texts of a study on invited people's devices: see docs/privacy.md.

    Args:
        organisations: who runs each panel member, the leader's first; all different.
        registrar: the organisation that invites; none of the panel's.
        registrar_key: the registrar's Ed25519 public key, 64 hex digits, which verifies the signed roster.
        page: the organisation that serves the page; none of the panel's. If the registrar does, set ``"the registrar
            is trusted with every answer"``.
        most_runs: maximum runs to which a person is invited.
        stated_epsilon: the epsilon shown to a person, needed under a ``Privacy``. It covers one answer exchanged for
            another in all ``most_runs`` runs, at the plan's delta, and is at least :func:`min_stated_epsilon`.
        words: must be ``"per record"`` under the record unit: a device may hold several records.
        exact: ``"the leader is trusted with the sum"``, required where the panel adds no noise.
        texts: shown instead of variables' names; see :func:`privstats.files.page_texts.checked_texts`.

    Example:
        >>> key = ps.secagg.Identity.generate(os.urandom).public.hex()
        >>> people = {"organisations": ("Ulm", "Bonn"), "registrar": "Trier", "registrar_key": key, "page": "Kiel"}
        >>> ps.plan.Devices(**people, most_runs=2, stated_epsilon=2.9).page
        'Kiel'
    """

    organisations: tuple[str, ...]
    registrar: str
    registrar_key: str
    page: str
    most_runs: int
    stated_epsilon: float | None = None
    words: str | None = None
    exact: str | None = None
    texts: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        python_fields(self)
        if not isinstance(self.organisations, list | tuple):
            raise PlanError("devices.organisations must be a list of names, one for each member of the panel")
        object.__setattr__(self, "organisations", tuple(self.organisations))
        for field, name in self._named():
            _check_name(field, name)
        self._check_distinct()
        _check_key(self.registrar_key)
        if type(self.most_runs) is not int or not 1 <= self.most_runs <= _MAX_RUNS:
            raise PlanError(f"devices.most_runs must be an integer from 1 to {_MAX_RUNS}, got {self.most_runs!r}")
        self._check_sentences()
        if self.stated_epsilon is not None:
            object.__setattr__(self, "stated_epsilon", _checked_epsilon(self.stated_epsilon))
        if self.texts is not None:
            from privstats.files.page_texts import checked_texts

            object.__setattr__(self, "texts", checked_texts(self.texts))

    @property
    def registrar_serves(self) -> bool:
        """Whether the registrar serves the page, and so can read every answer."""
        return self.page == TRUSTED_REGISTRAR

    @property
    def runs(self) -> str:
        """Maximum number of runs per person, in words."""
        return "1 run" if self.most_runs == 1 else f"{self.most_runs} runs"

    def _named(self) -> Iterator[tuple[str, object]]:
        yield from ((f"devices.organisations[{place}]", name) for place, name in enumerate(self.organisations))
        yield "devices.registrar", self.registrar
        yield "devices.page", self.page

    def _check_distinct(self) -> None:
        panel = {}
        for place, name in enumerate(self.organisations):
            if _folded(name) in panel:
                raise PlanError(
                    f"devices.organisations[{place}] is {name!r} again: two panel members under one name are one "
                    "party, which reads every answer; name another organisation"
                )
            panel[_folded(name)] = name
        if len(panel) < 2:
            raise PlanError("devices.organisations must name at least two, because one could read all answers")
        if _folded(self.registrar) in panel:
            raise PlanError(
                f"devices.registrar is {panel[_folded(self.registrar)]!r}, a member of the panel, which would also "
                "hold every person's code; name a separate organisation"
            )
        if _folded(self.page) in panel:
            raise PlanError(
                f"devices.page is served by {panel[_folded(self.page)]!r}, a member of the panel, which could "
                "then read every answer alone; name another organisation"
            )
        if _folded(self.page) == _folded(self.registrar):
            raise PlanError(
                f"devices.page is served by the registrar, which can then read every answer: write devices.page = "
                f"{TRUSTED_REGISTRAR!r}, or name another organisation"
            )

    def _check_sentences(self) -> None:
        for field, value, sentence in (("words", self.words, PER_RECORD), ("exact", self.exact, EXACT)):
            if value is not None and value != sentence:
                raise PlanError(f"devices.{field} must be {sentence!r} to the letter, or omitted, got {value!r:.80}")


def check_devices(plan: Plan) -> None:
    """Refuse a plan unfit for devices: its panel, noise, messages, unit, stated epsilon or texts."""
    devices = plan.devices
    if devices is None:
        return
    _check_panel(plan, devices)
    _check_noise(plan, devices)
    _check_one_message(plan)
    _check_unit(plan, devices)
    _check_stated(plan, devices)
    if devices.texts is not None:
        from privstats.files.page_texts import check_questions

        check_questions(devices.texts, plan.schema)


def min_stated_epsilon(schema: Schema, privacy: Privacy, noise: Noise, runs: int) -> float:
    """Return epsilon of ``runs`` runs together when one unit's data are exchanged, at the plan's delta.

    The respondents are public, so one answer is compared with another: a neighbour under replace-one. Under add-remove
    an exchange changes two units and at most doubles the mu (Dong, Roth and Su 2022, theorem 3). Without a clip the
    exchange costs at most replace-one's ``dp.client_mu`` or, for a record, ``dp.group_mu``. R runs compose to
    sqrt(R) mu (corollary 2 there). For a pure promise epsilons add up.

    Example:
        >>> from privstats.plan.devices import min_stated_epsilon
        >>> schema = ps.CountSchema(variables=(ps.Categories("smokes", ("yes", "no")),), tables=(("smokes",),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> noise = ps.dp.calibrate(schema, privacy, honest_shares=1)
        >>> [round(min_stated_epsilon(schema, privacy, noise, runs), 3) for runs in (1, 4)]
        [1.465, 3.186]
    """
    if noise.pure:
        return runs * privacy.epsilon * (1 if privacy.adjacency == "replace-one" else 2)
    return gaussian_epsilon(math.sqrt(runs) * exchanged_mu(schema, privacy, noise), privacy.delta)


def exchanged_mu(schema: Schema, privacy: Privacy, noise: Noise) -> float:
    """Return an upper bound on one run's mu when one unit's data are exchanged; for delta above 0."""
    if privacy.adjacency == "replace-one":
        return noise.mu
    if privacy.client_clip is not None:
        return 2 * noise.mu
    of_unit = client_mu if privacy.unit == "client" else group_mu
    return min(2 * noise.mu, of_unit(schema, noise.sigma, "replace-one", privacy.max_records_per_client or 1))


def _check_panel(plan: Plan, devices: Devices) -> None:
    if not plan.panel:
        raise PlanError(
            f"devices send one message and are gone, which protocol={plan.protocol!r} cannot do: choose "
            "protocol='split' with a panel, or omit devices"
        )
    if len(devices.organisations) != len(plan.panel):
        raise PlanError(
            f"devices.organisations names {len(devices.organisations)} and the panel has {len(plan.panel)} members: "
            "list one name for each, the leader's first"
        )
    if devices.registrar_key in plan.panel:
        raise PlanError(
            "devices.registrar_key is a panel member's key, and that member would also hold every person's code: the "
            "registrar needs a separate key"
        )


def _check_noise(plan: Plan, devices: Devices) -> None:
    sampled_by = None if plan.noise is None else plan.noise.trust.drawn_by
    if sampled_by == "client":
        raise PlanError(
            "devices add no noise, because no party can verify a device's noise, or knows how many invited people are "
            "honest: choose model='panel'"
        )
    if sampled_by == "member":
        if devices.exact is not None:
            raise PlanError("devices.exact is for plans without panel noise, and this plan has some: omit it")
        return
    if devices.exact is None:
        raise PlanError(
            "without model='panel' the leader sees the exact sum of all devices: choose model='panel', or write "
            f"devices.exact = {EXACT!r} and cohort.colluders of at least 1"
        )
    if plan.cohort.colluders < 1:
        raise PlanError(
            "cohort.colluders must be at least 1 with devices.exact: some mailed codes may be in wrong hands, and "
            "only min_survivors - colluders honest people hide each other's answers"
        )


def _check_one_message(plan: Plan) -> None:
    if plan.published is not None or plan.spare_bits:
        raise PlanError(
            "a device sends one message and is gone, and a round of a course needs the same devices again: omit "
            "devices, or the published values and spare_bits"
        )
    if plan.validity is not None:
        raise PlanError(
            "validity cannot be combined with devices, because no privacy proof covers a panel member that answers "
            "proofs of unlisted reports: omit validity, or devices"
        )


def _check_unit(plan: Plan, devices: Devices) -> None:
    if plan.person_clip is not None:
        raise PlanError(
            "a device is one person and sends one message, so unit='client' covers that person's complete answer: "
            "write it with max_records_per_client (and client_clip, where no browser answers) in place of unit='person'"
        )
    per_record = isinstance(plan.privacy, Privacy) and plan.privacy.unit == "record"
    if per_record and devices.words is None:
        raise PlanError(
            "privacy.unit='record' promises less to a device that holds several records: choose unit='client' with "
            f"max_records_per_client, or write devices.words = {PER_RECORD!r}, which the page then states"
        )
    if devices.words is not None and not per_record:
        raise PlanError("devices.words is for unit='record' only: omit it, or change the unit")


def _check_stated(plan: Plan, devices: Devices) -> None:
    if isinstance(plan.privacy, NoPrivacy) or plan.noise is None:
        if devices.stated_epsilon is not None:
            raise PlanError("devices.stated_epsilon is a promise, and this plan makes none: omit it")
        return
    minimum = min_stated_epsilon(plan.schema, plan.privacy, plan.noise, devices.most_runs)
    if devices.stated_epsilon is not None and devices.stated_epsilon >= minimum:
        return
    stated = "missing" if devices.stated_epsilon is None else f"{devices.stated_epsilon:g}"
    raise PlanError(
        f"devices.stated_epsilon is {stated}, and {devices.runs} of this plan cost epsilon {minimum:.6g} if one answer "
        f"is exchanged: write {math.ceil(minimum * 100) / 100!r}, or lower most_runs or epsilon"
    )


def _check_name(field: str, name: object) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable() or not _folded(name):
        raise PlanError(f"{field} must be a name of 1 to {_LONGEST_NAME} printable characters")


def _check_key(key: object) -> None:
    if not isinstance(key, str) or len(key) != 64 or not set(key) <= set("0123456789abcdef"):
        raise PlanError(
            "devices.registrar_key must be an Ed25519 key, 64 lower-case hex digits: see `privstats identity show`"
        )
    require_order(bytes.fromhex(key), "devices.registrar_key", PlanError)


def _checked_epsilon(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MAX_EPSILON:
        raise PlanError(f"devices.stated_epsilon must be a number above 0 and at most {_MAX_EPSILON:g}")
    return float(value)


def _folded(name: str) -> str:
    """Return a name for comparison: NFKC, case folded, with single blanks."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
