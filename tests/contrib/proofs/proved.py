"""A small cohort whose reports carry proofs of class sums, and a client that proves something else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.proofs.claims import Claim
from privstats.contrib.proofs.field import Field, P, Prime, elements, lift
from privstats.contrib.proofs.field_streams import FieldStreams
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.parameters import UploadParameters
from tests.contrib.proofs.cases import BITS, STEP, nab
from tests.secagg.interactive.cohorts import PLAN
from tests.secagg.upload.cohorts import Uploads
from threat_models.attacks.poisoned_sums import Insisting

CLASSES, FEATURES, MOST = 3, 4, 9
CLAIM = Claim("classes", (CLASSES, FEATURES), 4**BITS, MOST, BITS)
GROUP = Prime(((CLASSES, STEP**2 // 4096), (CLASSES * FEATURES, STEP), (FEATURES, 1), (6, 1)))
FACTORS = np.repeat([factor for _, factor in GROUP.parts], [size for size, _ in GROUP.parts])


@dataclass
class Proved(Uploads):
    """A run whose clients hold sums of at most nine records each."""

    def drawn(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Sums in grid steps."""
        return [nab(rng, CLASSES, FEATURES, n=2 + i % 8).x // FACTORS for i in range(self.parameters.clients)]


def proved_of(helpers: int = 2, clients: int = 6, min_survivors: int = 4, colluders: int = 1, **other: Any) -> Proved:
    """A cohort with solved parameters."""
    cohort = {"clients": clients, "min_survivors": min_survivors, "colluders": colluders, "helpers": helpers}
    solved = UploadParameters.solve(
        **cohort, ring=GROUP, plan_digest=PLAN, claim=CLAIM, noisy_helpers=other.pop("noisy_helpers", False)
    )
    return Proved(solved, other.pop("label", "proved"), **other)


Change = Callable[[Field, Field], tuple[Field, Field]]
"""From the honest elements and witness to those that a liar puts into its report."""


class Lying(Insisting):
    """An honest client's witness, and a report about other numbers with the bits that they have."""

    change: Change

    def told(self, x: Field) -> tuple[Field, Field]:
        witness = self._statement.witness(lift(x), lift(x)[:0], lambda number, size: np.zeros(size, np.uint64))
        return self.change(x, elements(witness))


def covering(kind: type[FieldStreams]) -> type[Client]:
    """A class of clients with a masking scheme of their own."""

    class Other(Client):
        def _bind(self, *args: Any) -> None:
            super()._bind(*args)
            self._scheme = kind(GROUP, self.parameters.statement, self.parameters.helpers, self._context)

    return Other


def lying(change: Change) -> type[Client]:
    """A class of clients that prove what ``change`` makes of their sums."""
    return covering(type("Changed", (Lying,), {"change": staticmethod(lambda x, w: change(x.copy(), w.copy()))}))


def doubled() -> type[Client]:
    """A class of clients that prove twice their sums."""
    return lying(lambda x, w: (x * np.uint64(2) % np.uint64(P), w))


def with_client(run: Proved, index: int, kind: type[Client]) -> Proved:
    """The run with one client of another class."""
    run.client_class = kind
    run.clients[index] = run.client(index)
    run.client_class = Client
    return run
