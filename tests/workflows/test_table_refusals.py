"""A reader refuses a plan and its releases in one sentence, and a wrong row of a package stops no other reader."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.cli.table import _options
from privstats.errors import BrokenPackageWarning, PlanError, PrivstatsError, ReleaseError
from privstats.randomness import seeded
from privstats.row_options import Option, left_out
from privstats.workflows.readers import possible, reads
from privstats.workflows.tables import READERS, Options, TableReader, TableResult, read
from privstats.workflows.tables.reading import fitting
from tests import made
from tests.lengths import first_by_day
from tests.moments.test_readable import published_of, records_of
from tests.planted import plant, plant_entries
from tests.schema.samples import SCHEMAS as SAMPLES
from tests.without import needing
from tests.workflows.test_plans_and_readers import COHORT, ROOM, STUDIES, Study, asked, planned, shards


@dataclass(frozen=True)
class Digits(Options):
    digits: Annotated[int, Option("digits after the point.")] = 0


def total(releases: Sequence[ps.Release], options: Digits) -> TableResult:
    n = float(releases[0].moments.N.sum())
    summary = ps.inference.Summary("All records", (), ("", "records"), (("all", f"{n:.{options.digits}f}"),), ())
    return TableResult(summary, [{"term": "all", "n": n}], reported=True)


def never(*_: Any) -> TableResult:
    raise AssertionError("the reader's code ran")


TOTALS = TableReader("totals", {"classes": "NA"}, f"{__name__}:total", Digits)
ROWS: dict[str, TableReader] = {}
Brings = Callable[..., None]


def __getattr__(name: str) -> TableReader:
    """Return the row that a planted entry point names."""
    if not name.startswith("row_"):
        raise AttributeError(name)
    return ROWS[name.removeprefix("row_")]


@pytest.fixture
def brings(monkeypatch: pytest.MonkeyPatch) -> Brings:
    """Announce rows as rows of a stranger's package."""

    def announce(*rows: Any) -> None:
        for row in rows:
            monkeypatch.setitem(ROWS, row.name, row)
        plant_entries(monkeypatch, READERS.group, {row.name: f"{__name__}:row_{row.name}" for row in rows}, "stranger")

    return announce


def released(schema: Any, count: int = 60) -> ps.Release:
    plan = made.plan(schema, COHORT, ps.NoPrivacy(), published=published_of(schema))
    return ps.simulate(plan, [records_of(schema, count), records_of(schema, count)])


def sentence_of(call: Callable[[], object]) -> str:
    """Return a refusal, which is one sentence; empty where the call is not refused."""
    try:
        call()
    except PrivstatsError as error:
        assert "\n" not in str(error)
        return str(error)
    return ""


CLASSES = ps.ClassSchema(2, 3, "NAB", 1.0)
OF_SAMPLES = [(planned(f"sample {place} {each.task}", each), each.task) for place, each in enumerate(SAMPLES)]
"""A sample of each installed kind, and its task; the plans of some samples belong to a course, which studies have."""


@pytest.mark.parametrize(
    ("study", "task"),
    first_by_day([*((each, each.name) for each in STUDIES), *OF_SAMPLES], lambda _, task: task),
    ids=lambda each: getattr(each, "name", None),
)
def test_every_reader_reads_a_release_of_every_kind_or_refuses_it_as_its_plan(
    study: Study, task: str, brings: Brings
) -> None:
    """``--reader totals`` of a regression ended in a traceback."""
    brings(TOTALS)
    try:
        what = study.start(made.promise(epsilon=40.0) if study.name == "hazard" else ps.NoPrivacy())
        found = ps.simulate(what, list(shards(study, None)), rng=seeded(0))
    except PrivstatsError:
        pytest.skip("no session of one plan releases it")
    releases = [found] if isinstance(found, ps.Release) else [each for each in found if each is not None]
    plan = releases[-1].plan
    kind = type(plan.schema).__name__
    for name in READERS:
        row, title = READERS[name], f"{name}{' of stranger 0.1' if name == 'totals' else ''}"
        several = len(releases) > 1 and not row.of_courses
        shown, options = (
            (releases[-1:] if several else releases),
            asked(name, plan.schema) if row.fits(plan.schema) else {},
        )
        after = sentence_of(partial(read, name, shown, **options))
        before = sentence_of(partial(reads, name, plan))
        assert not before or after == before
        if not row.fits(plan.schema):
            others = [each for each in READERS if READERS[each].fits(plan.schema)]
            listed = f"which is read by {', '.join(others)}: name one" if others else "which no table reader reads: fit"
            assert after.startswith(f"{title} reads ")
            assert kind in after
            assert listed in after


@pytest.mark.parametrize("promise", [{"delta": 0.0}, {"unit": "client", "client_clip": 1.0, **ROOM}, {}])
@pytest.mark.parametrize("name", [*READERS, "totals"])
def test_a_plan_without_intervals_is_refused_as_its_release(name: str, promise: Any, brings: Brings) -> None:
    brings(TOTALS)
    schema = replace(CLASSES, statistics="NAD")
    plan = made.plan(schema, COHORT, made.promise(**{"epsilon": 40.0, **promise}))
    release = ps.simulate(plan, [records_of(schema, 60), records_of(schema, 60)])
    before = sentence_of(lambda: reads(name, plan))
    assert bool(before) == (bool(promise) or name not in ("table-one", "totals"))
    assert not before or sentence_of(lambda: read(name, release)) == before


@pytest.mark.parametrize("alpha", [2, 0, -1, 0.6, float("nan"), float("inf"), True, "0.05", None])
@pytest.mark.parametrize("name", [*READERS, "totals"])
def test_a_wrong_level_is_refused_before_any_readers_code(name: str, alpha: Any, brings: Brings) -> None:
    brings(replace(TOTALS, place=never, check=never))
    release = ps.Release.exact(CLASSES, ps.measure(CLASSES, *records_of(CLASSES, 60)))
    with pytest.raises(ReleaseError, match="alpha must be above 0 and at most 0.5, got"):
        read(name, release, alpha=alpha)


@pytest.mark.parametrize("name", [*READERS, "totals"])
@pytest.mark.parametrize("releases", [[], "a.release", None, [1]])
def test_what_is_no_release_is_refused(name: str, releases: Any, brings: Brings) -> None:
    brings(replace(TOTALS, place=never, check=never))
    assert "releases must be a Release, or a course's in order" in sentence_of(
        lambda: read(name, releases if releases is not None else [None])
    )


@dataclass(frozen=True)
class NoOptions:
    alpha: float = 0.05


@dataclass(frozen=True)
class Bare(Options):
    digits: int = 0


@dataclass(frozen=True)
class Unread(Options):
    digits: Annotated[dict[str, int] | None, Option("digits.")] = None


@dataclass(frozen=True)
class Unknown(Options):
    digits: "Annotated[Nowhere, Option('digits.')]" = 0  # type: ignore[name-defined]  # noqa: F821


@dataclass(frozen=True)
class Unlike(Options):
    columns: Annotated[int, Option("a number of columns.")] = 0


@dataclass(frozen=True)
class SameFlag(Options):
    digits: Annotated[int, Option("digits.", flag="--column")] = 0


@dataclass(frozen=True)
class OfTheCommand(Options):
    out: Annotated[int, Option("digits.")] = 0


@dataclass(frozen=True)
class FlagOfTheCommand(Options):
    digits: Annotated[int, Option("digits.", flag="--format")] = 0


def plain(*_: Any) -> str:
    return "no table"


UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "no options": ({"options": NoOptions}, "its options is the class NoOptions, and must be a dataclass over Options"),
    "options are a value": ({"options": Digits()}, "its options is a Digits, and must be a class"),
    "options are a dict": ({"options": {"digits": 3}}, "its options is a dict, and must be a class"),
    "an option without help": ({"options": Bare}, "the option 'digits' of its options has no help: annotate it with"),
    "an option of no type": ({"options": Unread}, "the option 'digits' of its options is of no type that a command"),
    "an option of an unknown type": ({"options": Unknown}, "the annotations of its options fail with NameError"),
    "letters are a text": ({"letters": "classes"}, "its letters is 'classes', and must be a dict, each value a text"),
    "letters are a list": ({"letters": {"classes": ["N"]}}, "its letters is a dict, and must be a dict, each value a"),
    "no letters": ({"letters": {}}, "its letters are empty, and must state statistics by task, such as"),
    "place is no name": ({"place": "totals"}, "its place is 'totals', and must be a function of 2 arguments or a text"),
    "place is none": ({"place": None}, "its place is None, and must be a function of 2 arguments or a text"),
    "check is no name": ({"check": "a b:c"}, "its check is 'a b:c', and must be a function of 1 argument or a text"),
    "requested by nothing": ({"requested_by": "time"}, "its requested_by is 'time', and must be an option of its own"),
    "requested by one of ours": (
        {"requested_by": "alpha"},
        "its requested_by is 'alpha', an option of the table reade",
    ),
}
"""Rows that are refused when they are loaded, before any of their functions."""
FAILING: dict[str, tuple[dict[str, Any], str]] = {
    "place in no module": (
        {"place": "nowhere.far:total"},
        "the place of the table reader 'late' of stranger 0.1 failed with ModuleNotFoundError: ",
    ),
    "place of no name": ({"place": f"{__name__[:-1]}:total"}, "the place of the table reader 'late' of stranger 0.1"),
    "place is no function": ({"place": f"{__name__}:CLASSES"}, "failed with TypeError: it is no function"),
    "check in no module": (
        {"check": "nowhere.far:check"},
        "the check of the table reader 'late' of stranger 0.1 failed with ModuleNotFoundError: ",
    ),
    "check fails": ({"check": lambda plan: plan.colour}, "the check of the table reader 'late' of stranger 0.1 failed"),
    "an unknown letter": ({"letters": {"classes": "NX"}}, "its letters 'NX' for the task 'classes' are in no plan alo"),
    "a letter alone": ({"letters": {"classes": "A"}}, "its letters 'A' for the task 'classes' are in no plan alone"),
    "an unknown task": ({"letters": {"clases": "NA"}}, "late of stranger 0.1 reads the task 'clases', which no insta"),
}
"""Rows that are refused when their reader is used by name: their fault is in another module, or depends on the plan."""


@pytest.fixture
def folder(tmp_path: Any) -> Any:
    release = released(ps.ClassSchema(2, 3, "NAD", 1.0))
    release.save(tmp_path / "r.release")
    (tmp_path / "plan.toml").write_text(release.plan.to_toml())
    return tmp_path


def said(folder: Any, *words: str) -> tuple[int, str]:
    """Return a command's exit code and what it prints, in one line."""
    placed = [str(folder / word) if word in ("r.release", "plan.toml") else word for word in words]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        done = CliRunner().invoke(app, placed, env={"COLUMNS": "400"})
    if done.exception is not None and not isinstance(done.exception, SystemExit | PrivstatsError):
        raise done.exception
    error = done.exception if isinstance(done.exception, PrivstatsError) else ""
    text = f"{done.output} {error} {' '.join(str(each.message) for each in found)}"
    return done.exit_code, " ".join(text.split())


@pytest.mark.parametrize("fault", UNUSABLE)
def test_a_wrong_row_is_refused_by_its_package_and_stops_no_other_reader(
    fault: str, brings: Brings, folder: Any
) -> None:
    """One option without an ``Option`` stopped every ``privstats table``, without the name of its package."""
    fields, words = UNUSABLE[fault]
    brings(replace(TOTALS, name="late", **fields), replace(TOTALS, name="totals"))
    release = ps.Release.load(folder / "r.release")
    for call in (lambda: read("late", release), lambda: reads("late", release.plan)):
        why = sentence_of(call)
        assert "the table reader 'late'" in why
        assert "stranger 0.1" in why
        assert words in why
    with pytest.warns(
        BrokenPackageWarning, match=r"stranger 0\.1.*the table reader 'late'|the table reader 'late' of stranger 0\.1"
    ):
        assert fitting([release], ()) == "table-one"
    with pytest.warns(BrokenPackageWarning):
        assert {"table-one", "totals"} <= set(possible(release.plan))
    assert read("totals", release).rows[0]["n"] == 120
    for name, code in (("late", 1), ("totals", 0), ("table-one", 0)):
        ending, text = said(folder, "table", "r.release", "--reader", name)
        assert ending == code, text
        assert words in text
    assert "totals: digits after the point." in said(folder, "table", "--help")[1]
    assert said(folder, "plan", "check", "plan.toml")[0] == 0
    assert words in said(folder, "plan", "check", "plan.toml", "--for", "late")[1]


@pytest.mark.parametrize("options", [OfTheCommand, FlagOfTheCommand, Unlike, SameFlag])
def test_a_readers_option_is_none_of_the_commands_own_and_like_others(
    options: Any, brings: Brings, folder: Any
) -> None:
    brings(replace(TOTALS, name="late", options=options))
    words = "the table reader 'late' of stranger 0.1 cannot be used: its option"
    assert said(folder, "table", "r.release", "--reader", "table-one")[0] == 0
    code, text = said(folder, "table", "r.release", "--reader", "late")
    assert (code, words in text) == (1, True)


@pytest.mark.parametrize("fault", FAILING)
def test_a_wrong_field_of_a_row_is_one_sentence_with_its_package(fault: str, brings: Brings, folder: Any) -> None:
    fields, words = FAILING[fault]
    brings(replace(TOTALS, name="late", **fields))
    release = ps.Release.load(folder / "r.release")
    before = sentence_of(lambda: reads("late", release.plan))
    assert words in before
    assert "stranger 0.1" in before
    assert sentence_of(lambda: read("late", release)) == before
    code, text = said(folder, "table", "r.release", "--reader", "late")
    assert (code, words in text) == (1, True)
    assert said(folder, "plan", "check", "plan.toml")[0] == 0
    code, text = said(folder, "plan", "check", "plan.toml", "--for", "late")
    assert (code, words in text) == (1, True)


@pytest.mark.parametrize(
    ("place", "words"),
    [(lambda *_: {}["n"], "failed with KeyError: 'n'"), (plain, "returns no TableResult: return one")],
)
def test_a_reader_of_a_package_that_fails_is_named_with_its_package(place: Any, words: str, brings: Brings) -> None:
    brings(replace(TOTALS, name="late", place=place))
    why = sentence_of(lambda: read("late", released(CLASSES)))
    assert "the place of the table reader 'late' of stranger 0.1" in why
    assert words in why


@pytest.mark.parametrize("words", [("plan", "check"), ("plan", "suggest")])
def test_the_help_of_for_lists_the_readers_of_this_installation(words: Any, brings: Brings, folder: Any) -> None:
    brings(TOTALS)
    code, text = said(folder, *words, "--help")
    assert code == 0
    for name in (*READERS, *ps.heads.registry.HEADS):
        assert f" {name}," in text or f" {name}." in text, name


def test_another_family_of_one_kind_is_named() -> None:
    schema = ps.ScoreSchema(4, 1.0, family="poisson", target_bound=9)
    plan = made.plan(schema, COHORT, made.promise(), published=published_of(schema))
    with pytest.raises(PlanError, match="logit reads a ScoreSchema of the family logistic, .* of the family poisson"):
        reads("logit", plan)


@dataclass(frozen=True)
class UnlikeImputed(Options):
    interactions: Annotated[int, Option("a number of interactions.")] = 0


@needing("privstats.readers:imputed")
def test_no_package_takes_a_reader_of_a_room_away(brings: Brings) -> None:
    """A name in front of ours made that package's options the ones that ours must share."""
    brings(replace(TOTALS, name="aa", options=UnlikeImputed))
    said = "the table reader 'aa' of stranger 0.1 cannot be used: its option 'interactions', .* is unlike .* 'imputed'"
    with pytest.warns(BrokenPackageWarning, match=said):
        options = _options().joined()
    assert list(left_out(options)) == ["aa"]


def test_a_reader_that_two_packages_have_is_refused_by_their_names(
    brings: Brings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a KeyError."""
    brings(TOTALS)
    plant_entries(monkeypatch, READERS.group, {"totals": f"{__name__}:row_totals"}, "other")
    release = released(CLASSES)
    for call in (lambda: read("totals", release), lambda: reads("totals", release.plan)):
        why = sentence_of(call)
        assert why.startswith("stranger 0.1 and other 0.1 both have the table reader 'totals'")


def test_a_package_that_announces_a_name_of_ours_is_not_its_origin(
    brings: Brings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours was one sentence that told to uninstall that package."""
    brings(replace(TOTALS, name="ols"))
    assert (READERS.origin("ols"), READERS.titled("ols")) == ("", "the table reader 'ols'")
    plant(monkeypatch, READERS, "ols", replace(READERS["ols"], place=lambda *_: {}["n"]))
    with pytest.raises(KeyError, match="n"):
        READERS["ols"].read([], Options())
