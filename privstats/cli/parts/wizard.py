"""``privstats plan init``: build the plan file from a person's answers or options.

Neither clip norm, target bound nor number of records is ever computed from data.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import tomli_w
import typer

import privstats as ps
from privstats.cli.parts.next_command import next_command, this_command
from privstats.cli.parts.plan_tasks import TASKS, Question
from privstats.cli.parts.questions import completed, governs, questions, values
from privstats.cli.parts.terminal import say, writable
from privstats.errors import PlanError, PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.plan.device_rules import min_stated_epsilon
from privstats.plan.feasibility import require_panel
from privstats.plan.settings import SETTINGS, new_plans
from privstats.printable import printable
from privstats.schema import Variable

if TYPE_CHECKING:
    from privstats.cli.parts.declaring import Declaration
    from privstats.cli.parts.plan_tasks import Declared
    from privstats.intake import RecordFile

Answers: TypeAlias = dict[str, Any]
Fields: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_DROPOUTS: tuple[Answers, ...] = ({}, {"vanish": 2})
"""Stand-ins for an open number of dropouts: a random graph needs some."""


def _no_fields(_: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema fields without declared columns."""
    return {}


def answer_all(
    answers: Answers,
    given: Mapping[str, Any],
    ask: Callable[[Question, Answers], Any] | None,
    fields: Fields = _no_fields,
) -> None:
    """Add an answer to every open question: the given one, or the one that ``ask`` returns.

    Args:
        answers: filled in order, so that a person who stops loses none.
        fields: schema fields that follow from declared columns and the answers.
    """
    asked = {question.name for question in questions()}
    answers |= {name: value for name, value in given.items() if name not in asked}  # what columns declare
    missing = []
    for question in questions():
        value = given.get(question.name)
        if not question.belongs(answers):
            if value is not None:
                raise PlanError(f"{question.option} does not go with the other answers; omit it")
            continue
        value = question.usual if value is None else value
        if value is None and ask is None:
            missing.append(question.option)
        if value is not None:
            _check_option(question, value, answers, None if ask is None else fields)
        answers[question.name] = ask(question, answers) if value is None and ask is not None else value
    if missing:
        raise PlanError(
            f"missing: {', '.join(missing)}; pass these, or run the command on a terminal without --yes; no choice "
            "of privacy has a default"
        )


def _check_option(question: Question, value: Any, answers: Answers, fields: Fields | None) -> None:
    """Check first the options on which other questions depend; where a person is asked, check all."""
    if governs(question) and question.offered and value not in question.offered:
        choices = " or ".join(map(repr, question.offered))
        raise PlanError(f"{question.name} must be {choices}, got {value!r}: {question.why}")
    if fields is not None:
        check_answer(question, value, answers, fields)


def check_answer(question: Question, value: Any, answers: Answers, fields: Fields = _no_fields) -> None:
    """Refuse an answer that is out of bounds, or with which no plan follows although one did before it."""
    with_it = {**answers, question.name: value}
    if question.part:
        _PARTS[question.part](completed(with_it) | {"model": "central"})
    refusal = _refusal(with_it, fields)
    if refusal is not None and _refusal(answers, fields) is None:
        raise refusal


def _refusal(answers: Answers, fields: Fields) -> PrivstatsError | None:
    """Return why no plan follows from these answers, whatever the open ones are; None where one does."""
    refusal: PrivstatsError | None = None
    for dropouts in _DROPOUTS:
        full = completed({**dropouts, **answers})
        if any(full.get(each.name, "") is None for each in questions() if each.belongs(full)):
            return None  # no stand-in is known, as for a head's file
        try:
            _plan(full, fields(full))
        except PrivstatsError as error:
            refusal = refusal or error
        else:
            return None
    return refusal


def plan_from(given: Mapping[str, Any], declared: Declaration | Declared | None, *, ask: bool) -> tuple[ps.Plan, str]:
    """Return the plan that the answers make, and its text."""
    read = {} if declared is None else declared.answers
    if twice := [question.option for question in questions() if question.name in read and question.name in given]:
        raise PlanError(f"the declared columns answer {', '.join(twice)}: omit these options")
    fields_of: Fields = _no_fields if declared is None else declared.fields
    answers: Answers = {}
    try:
        answer_all(answers, {**read, **given}, partial(_ask, fields=fields_of) if ask else None, fields_of)
        fields = fields_of(answers)
        plan = _plan(answers, fields)
        return plan, plan_text(plan, answers, fields)
    except (PrivstatsError, click.Abort):
        if ask:
            typer.echo(f"\nyour answers, to correct and run: {printable(_again(answers, read))}", err=True)
        raise


def plan_text(plan: ps.Plan, answers: Answers, fields: Mapping[str, Any]) -> str:
    """Return the plan file, with a comment at every asked key."""
    follows = "transform" in fields or "features" not in answers  # from the columns, which say it better
    silent = ("features", "clip_norm") if follows else ()
    asked = {each.name: each for each in questions() if each.name in answers and each.name not in silent}
    lines = ["# The plan of one aggregation, as `privstats plan init` was answered; every party reads it beforehand."]
    for section, table in plan.tables.items():
        if not isinstance(table, dict):
            lines.append(tomli_w.dumps({section: table}).strip())
            continue
        lines += ["", f"[{section}]"]
        for key, value in sorted(table.items(), key=lambda item: _is_tables(item[1])):
            question = asked.get(key)
            lines += [f"# {question.asks} {question.why}"] if question else [""] if _is_tables(value) else []
            lines.append(tomli_w.dumps({section: {key: value}} if _is_tables(value) else {key: value}).strip())
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return tomli_w.dumps({"key": value}).startswith("[")


def _plan(answers: Answers, fields: Mapping[str, Any]) -> ps.Plan:
    """Values that follow from the schema alone are published with the plan."""
    terms: dict[str, Any] = {"cohort": cohort_of(answers), "privacy": privacy_of(answers)}
    terms |= new_plans() | values("aggregation", answers)
    if answers["task"] == "score":
        return _scoring(answers).plan(**terms)
    if answers["task"] == "survey":
        return _survey(answers, **terms)
    if (task := answers["task"]) in TASKS:
        with TASKS.using(task):
            return TASKS[task].plan(answers, fields, terms)
    plan: ps.Plan = _FULL_PLANS.get(answers["task"], ps.Plan)(schema=_schema(answers, **fields), **terms)
    return plan


_FULL_PLANS: Mapping[str, Callable[..., ps.Plan]] = {
    "effect": ps.Effect.full_plan,
    "hazard": ps.Hazard.full_plan,
    "rates": ps.Newton.full_plan,
}
"""The function that publishes the values with which a course of that task begins."""


def _schema(answers: Answers, **fields: Any) -> ps.schema.Schema:
    makes: Any = _SCHEMAS[answers["task"]]
    schema: ps.schema.Schema = makes(**values("schema", answers), **fields)
    return schema


def _effect(ranges: Any, **design: Any) -> ps.EffectSchema:
    return ps.EffectSchema.of(ranges, **design)


def _hazards(
    ranges: Mapping[str, Any],
    bins: ps.Bins,
    event: tuple[str, tuple[str, ...]],
    interactions: Sequence[tuple[str, str]] = (),
    **more: Any,
) -> ps.HazardSchema:
    """Return the schema of hazards, whose event may hold texts."""
    name, texts = event
    features, norm, rows = _rows(ranges, interactions, (ps.Categories(name, texts),) if texts else ())
    return ps.HazardSchema(features, norm, bins=bins, event=name, **more, **rows)


def _rates(
    ranges: Mapping[str, Any],
    exposure: tuple[str, float] | None = None,
    interactions: Sequence[tuple[str, str]] = (),
    **more: Any,
) -> ps.ScoreSchema:
    features, norm, rows = _rows(ranges, interactions)
    name, bound = exposure or (None, None)
    return ps.ScoreSchema(features, norm, family="poisson", exposure=name, exposure_bound=bound, **more, **rows)


def _rows(
    ranges: Mapping[str, Any], interactions: Sequence[tuple[str, str]], outcomes: tuple[ps.Categories, ...] = ()
) -> tuple[int, float, dict[str, Any]]:
    """Return width, norm, names and maps of rows: columns from -1 to 1, then products and a constant of 1."""
    worded = {name: each for name, each in ranges.items() if isinstance(each[0], str)}
    spread = tuple(place for place, each in enumerate(ranges.values()) if len(each) > 2)
    further = sum(max(len(each) - 2, 0) for each in ranges.values())
    coded = {name: (0.0, 1.0) if len(each) == 2 else (-1.0, 1.0) for name, each in worded.items()}
    ends = [*{**ranges, **coded}.values(), *[(-1.0, 1.0)] * further]
    columns = tuple(ps.Categories(name, each) for name, each in worded.items())
    levels = (ps.transforms.Levels(columns, outcomes, spread),) if columns or outcomes else ()
    products = _products(tuple(ranges), interactions, *levels)
    maps = (
        *levels,
        ps.transforms.Centre(tuple((low + high) / 2 for low, high in ends)),
        ps.transforms.Scale(tuple((high - low) / 2 for low, high in ends)),
        *products,
        ps.transforms.ConstantFeature(1.0),
    )
    features = len(ranges) + further + sum(len(each.pairs) for each in products) + 1
    norm = math.sqrt(len(ranges) + len(interactions) + 1)
    return features, norm, {"feature_names": tuple(ranges), "transform": maps}


def _products(
    names: tuple[str, ...], pairs: Sequence[tuple[str, str]], levels: ps.transforms.Levels | None = None
) -> tuple[ps.transforms.Interactions, ...]:
    if not pairs:
        return ()
    if any(len(pair) != 2 for pair in pairs):
        raise PlanError("interactions must be pairs of columns, as arm*sex,arm*age")
    return (ps.transforms.Interactions.between(names, pairs, levels),)


def _counted(
    questions: tuple[Variable | ps.Number, ...], tables: tuple[tuple[str, ...], ...] | None = None
) -> ps.CountSchema:
    numbers = tuple(each for each in questions if isinstance(each, ps.Number))
    counted = tuple(each for each in questions if not isinstance(each, ps.Number))
    return ps.CountSchema(counted, tables or tuple((each.name,) for each in counted), numbers=numbers or None)


def _survey(answers: Answers, **terms: Any) -> ps.Plan:
    """The plan states the minimum epsilon of all runs together, rounded up to two digits."""
    devices = values("devices", answers)
    most_runs, schema = devices["most_runs"], _schema(answers)
    plan = partial(ps.Plan, schema=schema, protocol="split", panel=devices.pop("panel"), **terms)
    noise = plan().noise
    assert noise is not None  # noqa: S101  a survey has a promise
    least = min_stated_epsilon(schema, terms["privacy"], noise, most_runs)
    return plan(devices=ps.plan.Devices(**devices, stated_epsilon=math.ceil(100 * least) / 100))


def _devices(answers: Answers) -> object:
    devices = values("devices", answers)
    panel = SETTINGS["aggregation"]["panel"].checked(devices.pop("panel"))
    require_panel("split", panel)
    return panel, ps.plan.Devices(**devices)


def _aggregation(answers: Answers) -> object:
    return [SETTINGS["aggregation"][name].checked(value) for name, value in values("aggregation", answers).items()]


_SCHEMAS: Mapping[str, Callable[..., ps.schema.Schema]] = {
    "classes": partial(ps.ClassSchema, statistics="NAB"),
    "ridge": ps.RidgeSchema,
    "effect": _effect,
    "hazard": _hazards,
    "rates": _rates,
    "survey": _counted,
}


def _scoring(answers: Answers) -> ps.Scoring:
    return ps.Scoring(ps.heads.load(answers["head"]))


def cohort_of(answers: Mapping[str, Any]) -> ps.Cohort:
    """Return the cohort that the answers make."""
    clients, vanish = answers["clients"], answers["vanish"]
    if clients - vanish < 1 or vanish < 0:
        raise PlanError(f"vanish must be 0 to {clients - 1} of {clients}, got {vanish}")
    most = clients if answers.get("task") == "survey" else answers["max_records"]
    return ps.Cohort(clients, clients - vanish, most, answers["colluders"])


def privacy_of(answers: Mapping[str, Any]) -> ps.Privacy:
    """Return the promise that the answers make."""
    terms = values("privacy", answers)
    return ps.Privacy(**({**terms, **_ONE_ANSWER} if answers.get("task") == "survey" else terms))


_ONE_ANSWER = {"model": "panel", "unit": "client", "adjacency": "add-remove", "max_records_per_client": 1}
"""The promise of a survey: the whole answer of one person, by noise of leader and helpers."""


_PARTS: Mapping[str, Callable[[Answers], object]] = {
    "schema": _schema,
    "head": _scoring,
    "cohort": cohort_of,
    "privacy": privacy_of,
    "devices": _devices,
    "aggregation": _aggregation,
}
"""The function that checks the bounds of the answers of a part of the plan."""


def can_ask() -> bool:
    """Return whether stdin and stdout are both terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask(question: Question, answers: Answers, fields: Fields) -> Any:
    kind = click.Choice(question.offered) if question.offered else click.types.convert_type(question.kind)

    def checked(text: str) -> Any:
        value = kind(text)
        try:
            check_answer(question, value, answers, fields)
        except PrivstatsError as error:
            means = ", where min_survivors is clients minus this answer" if "min_survivors" in str(error) else ""
            raise click.UsageError(f"{error}{means}") from None
        return value

    typer.echo(f"\n{question.why}")
    return typer.prompt(question.asks, type=kind, value_proc=checked)


def _again(answers: Answers, read: Mapping[str, Any]) -> str:
    """Return this call with every answer as an option: columns, file and dialect stay as they were typed.

    It asks what is still open.
    """
    asked = [question.name for question in questions() if question.name in answers and question.name not in read]
    whole = all(each.name in answers for each in questions() if each.belongs(answers))
    return this_command(yes=whole or None, **{name: answers[name] for name in asked})


def columns_file(path: Path, file: RecordFile, drop: Sequence[str], *, ask: bool) -> str:
    """Show a table's column names; return their blank declaration once a person agrees."""
    from privstats.cli.parts.declared_columns import undeclared
    from privstats.cli.parts.declaring import names_of

    names = names_of(file, drop)
    say(f"column names of {file.path}, the only part that is used: {', '.join(names)}")
    if file.nameless:
        say(f"no name, and so never read: column {', '.join(map(str, file.nameless))}")
    if ask:
        typer.confirm(f"\nEvery party will read these names. Write them to {path}?", abort=True)
    return undeclared(names)


def write_scored(path: Path, plan: ps.Plan, text: str, *, force: bool) -> None:
    """Write a plan that scores a head, with the head; print the head's status and the next step."""
    from privstats.heads.scoring import published_provenance
    from privstats.inference.head_curves import expected_sentences
    from privstats.schema.public_values import values_path

    assert plan.published is not None  # noqa: S101  a plan of a score has one
    head = values_path(path)
    writable([path, head], force)
    atomic_write(path, text.encode(), shared=True)
    plan.published.save(head)
    promise = published_provenance(plan.published.read())
    if not promise.covered:
        say(f"WARNING: {head} publishes this head to all parties, and no promise covers it ({promise})")
    for sentence in expected_sentences(plan):
        say(sentence)
    check = next_command("plan", "check", path, without=("head",))
    say(f"wrote {path}, and {head} with the head; keep the two together. Check it: {check}")
    named = next_command("flower", "records", "PARTY", "FILE", split="SHARE", kept_out=True)
    say(f"each party then names its records with: {named}")
