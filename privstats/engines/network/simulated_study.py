"""The folders of a study for a simulation: a host and all its parties on one machine, under keys made for it.

Whoever can read them has every key, so they are for trying an app, and a study between people starts from
``privstats flower new``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from privstats.dp import Ledger, Privacy
from privstats.engines.network.folder_documents import PLAN
from privstats.engines.network.measuring import SCRIPT
from privstats.errors import DataError, PlanError, PrivstatsError
from privstats.files.atomic import read_whole, write_new
from privstats.plan import Plan
from privstats.secagg import Identity, Roster

__all__ = ["simulated_study"]


def simulated_study(folder: str | os.PathLike[str], plan: Plan, records: str | os.PathLike[str]) -> None:
    """Write ``host`` and ``parties/0``, ``parties/1``, ... of a plan, with throwaway keys and full ledgers.

    Args:
        folder: does not exist.
        plan: without helpers; ``cohort.clients`` parties are made. Under a promise each gets an account that it fills.
        records: a ``records.py`` for every party; ``Path(__file__).parent.name`` in it is the party's number.

    Raises:
        PlanError: the plan has helpers.
        DataError: there is no such script.
        PrivstatsError: the folder exists, or cannot be written.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines import flower
        >>> _ = Path("records.py").write_text("def load():\\n    return [[0.1, 0.2], [0.3, 0.4]], [0, 1]\\n")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> flower.simulated_study("study", plan, "records.py")
        >>> sorted(each.name for each in Path("study/parties/2").iterdir())
        ['identity.pem', 'plan.toml', 'records.py', 'roster.toml']
    """
    if plan.panel:
        raise PlanError("a simulated study has no helpers, and this plan names them: use the interactive protocol")
    place, script = Path(folder), read_whole(records, DataError, "an editor")
    server, *parties = (Identity.generate(os.urandom) for _ in range(1 + plan.cohort.clients))
    roster = Roster.numbered((each.public for each in parties), server=server.public, label="simulation", counter=0)
    homes = {place / "host": server} | {place / "parties" / str(number): each for number, each in enumerate(parties)}
    _make((place, place / "parties", *homes))
    for home, identity in homes.items():
        write_new(home / PLAN, plan.to_toml().encode())
        roster.save(home / "roster.toml")
        identity.save(home / "identity.pem")
        if identity is not server:
            write_new(home / SCRIPT, script)
            _open_account(home, plan)


def _open_account(home: Path, plan: Plan) -> None:
    """A ledger with room for one run of the plan."""
    if isinstance(plan.privacy, Privacy):
        unit, adjacency = plan.privacy.unit, plan.privacy.adjacency
        cap = {"epsilon": plan.privacy.epsilon, "delta": plan.privacy.delta}
        Ledger.create(home / "ledger").set_cap("records", unit=unit, adjacency=adjacency, **cap)


def _make(folders: Iterable[Path]) -> None:
    for folder in folders:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise PrivstatsError(f"{folder} exists; name another folder, or move that one away first") from None
        except OSError as error:
            raise PrivstatsError(f"cannot make {folder}: {error.strerror}; name another folder") from None
