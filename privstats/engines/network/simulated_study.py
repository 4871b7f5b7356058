"""The folders of a study for a simulation: a host and all its parties on one machine, under keys made for it.

Whoever can read them has every key, so they are for trying an app, and a study between people starts from
``privstats flower new``. Their roster says so: a node that its operator gave such a folder refuses every message.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from privstats.course import Course, Single, document
from privstats.course.kinds import course_kind
from privstats.course.promise import Promise
from privstats.dp import Ledger, Privacy
from privstats.engines.network.folder_documents import COURSE, PLAN, SIMULATION, check_course
from privstats.engines.network.measuring import SCRIPT
from privstats.errors import DataError, PlanError, PrivstatsError
from privstats.files.atomic import read_whole, write_new
from privstats.plan import Plan
from privstats.secagg import Identity, Roster

__all__ = ["simulated_study"]


def simulated_study(
    folder: str | os.PathLike[str],
    plan: Plan | Course,
    records: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
) -> None:
    """Write ``host`` and ``parties/0``, ``parties/1``, ... of a plan or a course, with throwaway keys and full ledgers.

    Args:
        folder: does not exist.
        plan: without helpers; ``cohort.clients`` parties are made. Under a promise each gets an account that it fills.
        records: a ``records.py`` for every party; ``Path(__file__).parent.name`` in it is the name of its folder.
        names: of the parties' folders, in order; for FLARE's simulator ``["site-1", "site-2", ...]``.

    Raises:
        PlanError: the plan has helpers, or its parties bring changes and no records; or there is not a name for each.
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
    course = Single(plan) if isinstance(plan, Plan) else plan
    _check(course)
    called = _checked_names(names, course.first.cohort.clients)
    place, script = Path(folder), read_whole(records, DataError, "an editor")
    server, *parties = (Identity.generate(os.urandom) for _ in range(1 + len(called)))
    roster = Roster.numbered((each.public for each in parties), server=server.public, label=SIMULATION, counter=0)
    check_course(course, roster)
    given = {PLAN: plan.to_toml().encode()} if isinstance(plan, Plan) else document.texts(COURSE, plan)  # type: ignore[arg-type]
    homes = {place / "host": server}
    homes |= {place / "parties" / name: each for name, each in zip(called, parties, strict=True)}
    _make((place, place / "parties", *homes))
    for home, identity in homes.items():
        for name, text in given.items():
            write_new(home / name, text)
        roster.save(home / "roster.toml")
        identity.save(home / "identity.pem")
        if identity is not server:
            write_new(home / SCRIPT, script)
            _open_account(home, course)


def _check(course: Course) -> None:
    """Refuse what has no folders of this kind."""
    if course_kind(course).part != "records":
        raise PlanError("a simulated study is of records, and parties of a stream bring changes: see `stream new`")
    if course.first.panel:
        raise PlanError("a simulated study has no helpers, and this plan names them: use the interactive protocol")


def _checked_names(names: Sequence[str] | None, clients: int) -> tuple[str, ...]:
    """The names of the parties' folders."""
    called = tuple(map(str, range(clients))) if names is None else tuple(names)
    plain = all(isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name for name in called)
    if len(set(called)) != clients or len(called) != clients or not plain:
        raise PlanError(f"names must be {clients} different names of folders, one for each party of the plan")
    return called


def _open_account(home: Path, course: Course) -> None:
    """A ledger with room for one run of the plan, or of the course."""
    privacy = course.first.privacy
    if isinstance(privacy, Privacy):
        whole = None if isinstance(course, Single) else Promise.covering(course.mu, course.first)
        epsilon = privacy.epsilon if whole is None else whole.epsilon
        unit, adjacency, delta = privacy.unit, privacy.adjacency, privacy.delta
        ledger = Ledger.create(home / "ledger")
        ledger.set_cap("records", unit=unit, adjacency=adjacency, epsilon=epsilon, delta=delta)


def _make(folders: Iterable[Path]) -> None:
    for folder in folders:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise PrivstatsError(f"{folder} exists; name another folder, or move that one away first") from None
        except OSError as error:
            raise PrivstatsError(f"cannot make {folder}: {error.strerror}; name another folder") from None
