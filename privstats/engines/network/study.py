"""The files that the coordinator distributes.

These files hold no key. :func:`simulated_study` is the exception: a reader of its folders has every key, so its roster
is labelled, and network nodes refuse such folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from privstats.course import Course, Single, document
from privstats.course.base import checked_mu
from privstats.course.kinds import course_kind
from privstats.course.promise import Promise
from privstats.dp import Ledger, Privacy
from privstats.engines.network.folder_documents import COURSE, PLAN, SIMULATION, check_course
from privstats.engines.network.measuring import SCRIPT
from privstats.engines.network.party import answer
from privstats.engines.network.transport import MessageKind, Reply
from privstats.errors import DataError, LocalProtocolError, PlanError, PrivstatsError
from privstats.files.atomic import MOST_SIGNED, read_bounded, write_new
from privstats.plan import Plan
from privstats.printable.command_line import command_line
from privstats.review.special_facts import needs_course
from privstats.schema.public_values import values_path
from privstats.secagg import Identity, Roster

_OWNER_ONLY, _STUDY = 0o700, 0o755


def write_study(
    plan: str | os.PathLike[str], roster: str | os.PathLike[str], study: Path, template: Traversable
) -> tuple[Path, ...]:
    """Write a study's folders and return them: ``app``, ``host``, ``party``, and ``helper`` where the plan has helpers.

    Args:
        plan, roster: the files; a course's instead of a plan's is valid.
        template: the carrier's, with folders ``app`` and ``party``.

    Raises:
        PlanError, LocalProtocolError, SchemaError, DataError: the files are invalid.
        PrivstatsError: the folder exists, or cannot be written.
    """
    course, documents = _read(plan)
    check_course(course, Roster.load(roster))
    if study.exists():
        raise PrivstatsError(f"{study} exists; name another folder, or move that one away first")
    documents["roster.toml"] = read_bounded(roster, LocalProtocolError, "privstats roster make")
    homes = ("host", "party", *(("helper",) if course.first.panel else ()))
    contents = {f"app/{name}": data for name, data in _tree(template.joinpath("app"))}
    contents |= {f"{home}/{name}": data for home in homes for name, data in documents.items()}
    if course_kind(course).changing is None:  # parties that send changes have no records.py
        contents |= {f"party/{name}": data for name, data in _tree(template.joinpath("party"))}
    for name, data in contents.items():
        _folder(study, (study / name).parent)
        write_new(study / name, data)
    return tuple(study / name for name in ("app", *homes))


def _read(path: str | os.PathLike[str]) -> tuple[Course, dict[str, bytes]]:
    if document.is_course(path):
        course = document.read(path)
        return course, dict(document.texts(COURSE, course))
    plan = Plan.read(path)
    if plan.schema.open_columns and (cells := plan.schema.reading.declaration) is not None:
        cells.require_closed()
    if needs_course(plan):
        raise PlanError(
            f"{path} never runs alone, because its promise is for several sessions: pass its course, which "
            f"`{command_line('course', 'init', 'study.toml', options={'--plan': path})}` writes"
        )
    documents = {"plan.toml": read_bounded(path, LocalProtocolError, "privstats plan init")}
    if values_path(path).exists():  # values that a schema reads in addition to the records
        documents["plan.values"] = read_bounded(values_path(path), LocalProtocolError, "Published.save", MOST_SIGNED)
    return Single(plan), documents


def _folder(study: Path, folder: Path) -> None:
    try:
        study.mkdir(mode=_STUDY, exist_ok=True)
        for each in (*reversed(folder.relative_to(study).parents), folder.relative_to(study)):
            (study / each).mkdir(mode=_OWNER_ONLY, exist_ok=True)
    except OSError as error:
        raise PrivstatsError(f"cannot make {folder}: {error.strerror}; name another folder") from None


def _tree(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_file():
            yield f"{above}{entry.name}", entry.read_bytes()
        elif entry.name != "__pycache__":  # installers make these folders for every module
            yield from _tree(entry, f"{above}{entry.name}/")


def simulated_study(
    folder: str | os.PathLike[str],
    plan: Plan | Course,
    records: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
) -> None:
    """Write ``host`` and ``parties/0``, ``parties/1``, ... of a plan or a course, with throwaway keys and ledgers.

    Args:
        folder: does not exist.
        plan: without helpers. Under DP each of its ``cohort.clients`` parties gets an account with room for one run.
        records: a ``records.py`` for every party; ``Path(__file__).parent.name`` in it is its folder's name.
        names: the parties' folders, in order; for FLARE's simulator ``["site-1", "site-2", ...]``.

    Raises:
        PlanError: the plan has helpers or is a stream; or wrong names.
        DataError: there is no such script.
        PrivstatsError: the folder exists, or cannot be written.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import simulated_study
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> sorted(each.name for each in Path("study/parties/2").iterdir())
        ['identity.pem', 'plan.toml', 'records.py', 'roster.toml']
    """
    course = Single(plan) if isinstance(plan, Plan) else plan
    _check(course)
    called = _checked_names(names, course.first.cohort.clients)
    place, script = Path(folder), read_bounded(records, DataError, "an editor")
    server, *parties = (Identity.generate(os.urandom) for _ in range(1 + len(called)))
    roster = Roster.numbered((each.public for each in parties), server=server.public, label=SIMULATION, counter=0)
    check_course(course, roster)
    documents = _plan_files(plan) if isinstance(plan, Plan) else document.texts(COURSE, plan)  # type: ignore[arg-type]
    homes = {place / "host": server}
    homes |= {place / "parties" / name: each for name, each in zip(called, parties, strict=True)}
    _make((place, place / "parties", *homes))
    for home, identity in homes.items():
        for name, text in documents.items():
            write_new(home / name, text)
        roster.save(home / "roster.toml")
        identity.save(home / "identity.pem")
        if identity is not server:
            write_new(home / SCRIPT, script)
            _open_account(home, course)


def _plan_files(plan: Plan) -> dict[str, bytes]:
    """Return a plan's file, and that of the values that it publishes."""
    values = plan.published if plan.published is not None and plan.published.values is not None else None
    return {PLAN: plan.to_toml().encode(), **({} if values is None else {values_path(PLAN).name: values.encode()})}


def _check(course: Course) -> None:
    kind = course_kind(course)
    if kind.changing is not None:
        raise PlanError(
            f"a simulated study is of records, and parties of {kind.what} bring changes: {kind.changing.alone}"
        )
    if course.first.panel:
        raise PlanError("a simulated study has no helpers, and this plan names them: use the interactive protocol")


def _checked_names(names: Sequence[str] | None, clients: int) -> tuple[str, ...]:
    called = tuple(map(str, range(clients))) if names is None else tuple(names)
    plain = all(isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name for name in called)
    if len(set(called)) != clients or len(called) != clients or not plain:
        raise PlanError(f"names must be {clients} different names of folders, one for each party of the plan")
    return called


def _open_account(home: Path, course: Course) -> None:
    privacy = course.first.privacy
    if isinstance(privacy, Privacy):
        total = None if isinstance(course, Single) else Promise.covering(checked_mu(course), course.first)
        epsilon = privacy.epsilon if total is None else total.epsilon
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


class LocalTransport:
    """A transport between folders, by node number; each answers at once, in this process.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import LocalTransport
        >>> nodes = LocalTransport({7: Path("study/parties/bonn")})
        >>> nodes.online(), nodes.name(7)
        ([7], 'bonn')
    """

    def __init__(self, homes: Mapping[int, Path]) -> None:
        self._homes = dict(homes)
        self._replies: dict[str, Reply] = {}
        self._count = 0

    def online(self) -> list[int]:
        """Return all nodes."""
        return list(self._homes)

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:  # noqa: ARG002 - nothing waits here
        """Let the folder answer."""
        reply = answer(self._homes[node], kind, data, simulated=True)
        self._count += 1
        name = str(self._count)
        self._replies[name] = Reply(reply.code, reply.data)
        return name

    def pull(self, message: str, most: int) -> Reply | None:
        """Return the answer, once; refuse one that is too large."""
        reply = self._replies.pop(message, None)
        return Reply("too_large") if reply is not None and len(reply.data) > most else reply

    def name(self, node: int) -> str:
        """Return the folder's name."""
        return self._homes[node].name
