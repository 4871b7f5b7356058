"""A FLARE filter that adds noise to another program's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply

from privstats.contrib.nvflare.executor import home_of
from privstats.dp import Ledger
from privstats.errors import DataError
from privstats.session import ClientUpdates

LEDGER = "ledger"
"""The ledger's name in the folder of the site."""

_DATA_KINDS = (DataKind.WEIGHT_DIFF, DataKind.WEIGHTS)


class PrivateWeights(Filter):
    """Clips a site's weights to a public norm and adds all the noise that the promise needs, before they leave.

    The noise is *local*: no other party is trusted. Weights are clipped around zero, so send differences
    (``params_transfer_type="DIFF"``).

    The site's ledger, ``ledger`` in the folder that ``PRIVSTATS_HOME`` names (in a simulator, below
    ``PRIVSTATS_PARTIES``), is charged for every result. A result beyond its cap stays here, and the server gets
    ``TASK_RESULT_FILTER_ERROR``.

    Only arrays leave: metrics, step counts and all else are dropped, so every site weighs the same. A result that is no
    DXO of weights is refused, so name the tasks that train. Data that a script streams to the server
    (``SummaryWriter``) pass no filter.

    Not protected, and charged to no account: the fact that a task failed. A script with a failure that depends on its
    records reveals a bit about them per round; no filter can hide it.

    Guarantee:
        That of :class:`~privstats.session.client_updates.ClientUpdates`: unit one client, replace-one, for all results
        under the account together.

    Args:
        shapes, clip_norm, epsilon, delta, rounds: as for ``ClientUpdates``.
        account: the ledger's, per client under replace-one.

    Example:
        >>> from privstats.contrib.nvflare.weights import PrivateWeights  # doctest: +SKIP
        >>> PrivateWeights({"W": [2, 3]}, clip_norm=1.0, epsilon=8.0, delta=1e-5, rounds=10)  # doctest: +SKIP
    """

    def __init__(
        self,
        shapes: Mapping[str, Sequence[int]],
        clip_norm: float,
        epsilon: float,
        delta: float,
        rounds: int,
        account: str = "weights",
    ) -> None:
        super().__init__()
        self.shapes, self.clip_norm, self.rounds = shapes, clip_norm, rounds
        self.epsilon, self.delta, self.account = epsilon, delta, account
        self._updates = ClientUpdates(
            {name: tuple(shape) for name, shape in shapes.items()}, clip_norm, epsilon, delta, rounds
        )

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Return the private form of a result; for a failed result only that it failed.

        Raises:
            DataError: no DXO of weights, or other arrays than ``shapes``.
            LedgerError: the account has no room for one more round, or is unsuitable.
        """
        if shareable.get_return_code() != ReturnCode.OK:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        dxo = _weights(shareable)
        ledger = Ledger.open(home_of(fl_ctx.get_identity_name()) / LEDGER)
        sent = DXO(dxo.data_kind, data=self._updates.released(dxo.data, ledger, self.account)).to_shareable()
        sent.set_return_code(ReturnCode.OK)
        return sent


def _weights(shareable: Shareable) -> DXO:
    try:
        dxo = from_shareable(shareable)
    except ValueError:
        raise DataError("this result is no DXO, so it stays here: name the tasks that train, tasks=['train']") from None
    if dxo.data_kind not in _DATA_KINDS or not isinstance(dxo.data, dict):
        raise DataError(f"a DXO of kind {dxo.data_kind} holds no weights, so it stays here: name the tasks that train")
    return dxo
