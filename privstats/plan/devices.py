"""Hold a plan's table ``[devices]``: organisations, the registrar's key and a cap, for devices of invited people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privstats.plan import settings
from privstats.plan.settings import TRUSTED_REGISTRAR
from privstats.python_values import python_fields


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Organisations, limits and page texts of a study on invited people's devices: see docs/proofs/one_upload.md.

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
        settings.check("devices", self)

    @property
    def registrar_serves(self) -> bool:
        """Whether the registrar serves the page, and so can read every answer."""
        return self.page == TRUSTED_REGISTRAR

    @property
    def page_server(self) -> str:
        """The organisation that serves the page."""
        return self.registrar if self.registrar_serves else self.page

    @property
    def runs(self) -> str:
        """Maximum number of runs per person, in words."""
        return "1 run" if self.most_runs == 1 else f"{self.most_runs} runs"
