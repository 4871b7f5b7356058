"""List a plan's settings, one row each: all that the package states of a setting is read from its row.

From the rows follow: which keys a plan file may have and how it writes them; the canonical tables, and with them the
digest; the refusal of a value, alone and next to other settings; the conditions of every claim; the tables of
docs/plan.md; choices and help of ``plan init``; and the tests of all these.

A setting's default is that of its class, and its effect is where it acts. The settings of ``[schema]`` belong to the
kinds of schema. Words, ranges and refusals that other modules hold are named by their place, ``module:name``, because
help of the command line reads these rows and loads nothing that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from privstats.plan.forms import (
    AsciiName,
    CheckedThere,
    ClassPairs,
    Integer,
    Key,
    Keys,
    Levels,
    Name,
    Names,
    Number,
    PageTexts,
    Sentence,
    Words,
)
from privstats.plan.provers import PROVERS
from privstats.plan.setting import Assumes, Fields, Setting, StatedBy
from privstats.tables import by_name

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

KeyAgreement: TypeAlias = Literal["mlkem768-x25519"]
"""How parties agree on keys: X25519 and ML-KEM-768 together."""

_KEY_REMEDY = (
    'write key_agreement = "mlkem768-x25519" in every party\'s file and renew the roster: the plan then has another '
    "digest, to be approved again. Under X25519 alone, anyone who records all messages and breaks it later reads each "
    "party's sums"
)

EXACT = "the leader is trusted with the sum"
PER_RECORD = "per record"
TRUSTED_REGISTRAR = "the registrar is trusted with every answer"


_PANEL = tuple(character * 64 for character in "ab")
_SPLIT: Fields = {"aggregation": {"protocol": "split", "panel": _PANEL}}
_DISTRIBUTED: Fields = {"privacy": {"model": "distributed"}}
_OF_CLIENTS: Fields = {"privacy": {"unit": "client", "max_records_per_client": 4}}
_OF_PERSONS: Fields = {"privacy": {"unit": "person", "person_clip": 2.0, "max_records_per_person": 4}}
_PROVED: Fields = {**_SPLIT, "validity": {"level": "norm", "most_records": 9}}
_ON_DEVICES: Fields = {
    **_SPLIT,
    "privacy": {"model": "panel", "unit": "client", "max_records_per_client": 1},
    "devices": {
        "organisations": ("Ulm", "Bonn"),
        "registrar": "Trier",
        "registrar_key": "c" * 64,
        "page": "Kiel",
        "most_runs": 1,
        "stated_epsilon": 9.0,
    },
}

_party = partial(Setting, table="cohort", omitted=False)
_promise = partial(Setting, table="privacy")
_summed = partial(Setting, table="aggregation")
_proof = partial(Setting, table="validity", around=_PROVED)
_people = partial(Setting, table="devices", around=_ON_DEVICES)


def _of_noise(plan: Plan) -> str:
    return plan.noise.trust.condition if plan.noise else ""


_COHORT = (
    _party(
        name="clients",
        meaning="parties on the roster",
        form=Integer(2),
        fits=("cohort_rules:check_kind", "cohort_rules:check_parties"),
        condition=StatedBy("aggregation.protocol"),
        example={"cohort": {"clients": 7}},
    ),
    _party(
        name="min_survivors",
        meaning="with fewer survivors the session aborts and there is no sum; random graphs need more on the list of "
        "survivors, and `plan check` states how many may vanish",
        form=Integer(1),
        bounds="at most `clients`, and at least the number of clients that sign the list of survivors: floor(("
        "`clients` + `colluders`) / 2) + 1 of up to 1,024 clients, and as large a share of more",
        joins=("cohort_rules:check_survivors",),
        fits=("cohort_rules:check_kind",),
        condition=None,
        example={"cohort": {"min_survivors": 6}},
    ),
    _party(
        name="max_records",
        meaning="maximum number of records over all clients together; it determines the size of the rings; a client "
        "holding more declines to take part",
        form=Integer(1),
        fits=("cohort_rules:check_parties",),
        condition=None,
        example={"cohort": {"max_records": 501}},
    ),
    _party(
        name="colluders",
        meaning="number of clients that may work with the server and still learn nothing; distributed noise does not "
        "count their shares",
        form=Integer(0),
        bounds="at most `clients` - 2, and below `min_survivors`",
        joins=("cohort_rules:check_colluders",),
        fits=("cohort_rules:check_kind",),
        condition=StatedBy("aggregation.protocol"),
        example={"cohort": {"colluders": 1}},
    ),
)

_PRIVACY = (
    _promise(
        name="model",
        meaning='who adds the noise: `"central"` the server, `"distributed"` the clients together, `"local"` each '
        'client in full, `"panel"` the leader and each helper of `protocol="split"` in full',
        form=Words("privstats.dp.privacy:MODELS"),
        fits=("feasibility:check_noise",),
        condition=Assumes("noise", _of_noise),
        example={"privacy": {"model": "distributed"}},
    ),
    _promise(
        name="unit",
        meaning='what is protected: one `"record"`, one `"person"` with all rows at one party, or one `"client"` with '
        "all its records",
        form=Words("privstats.dp.privacy:Unit"),
        condition=None,
        example=_OF_CLIENTS,
    ),
    _promise(
        name="adjacency",
        meaning='neighbouring data sets differ by one unit more or less (`"add-remove"`) or by one replaced unit '
        '(`"replace-one"`, for records and persons, and for clients under `task = "party-softmax"` or '
        '`"party-update"`)',
        form=Words("privstats.schema.base:Adjacency"),
        fits=("cohort_rules:check_parties",),
        condition=None,
        example={"privacy": {"adjacency": "replace-one"}},
    ),
    _promise(
        name="epsilon",
        meaning="the promise's epsilon, for the full release",
        form=Number("privstats.dp.privacy:EPSILON_RANGE"),
        condition=None,
        example={"privacy": {"epsilon": 2.0}},
    ),
    _promise(
        name="delta",
        meaning="the promise's delta; well below 1 / `max_records`; 0 is [pure epsilon](proofs/pure_epsilon.md)",
        form=Number("privstats.dp.privacy:DELTA_RANGE", zero=True),
        condition=None,
        example={"privacy": {"delta": 1e-7}},
    ),
    _promise(
        name="shares",
        meaning="part of the budget (of mu²) that each statistic gets, for example `{ N = 0.02, A = 0.85, B = 0.13 }`; "
        "`privstats plan suggest` prints suitable ones",
        form=CheckedThere("exactly the sent statistics, each above 0, summing to 1"),
        usual="N .02, A .85, the remainder over B, S, D; ridge G .5, h .48, q .02",
        condition=None,
        example={"privacy": {"shares": {"N": 0.5, "A": 0.25, "B": 0.25}}},
    ),
    _promise(
        name="max_records_per_client",
        meaning='maximum number of records of one client, required with `unit = "client"` and only there; a client '
        "holding more declines to take part",
        form=Integer(1),
        fits=("cohort_rules:check_parties",),
        condition=None,
        example={"privacy": {"max_records_per_client": 5}},
        around=_OF_CLIENTS,
    ),
    _promise(
        name="client_clip",
        meaning='with `unit = "client"`: clip a client\'s full vector to the norm of this number of worst-case '
        "records, and pay for these",
        form=Number((1, None)),
        bounds="at most `max_records_per_client`",
        usual="no clip",
        condition=None,
        example={"privacy": {"client_clip": 2.0}},
        around=_OF_CLIENTS,
    ),
    _promise(
        name="max_records_per_person",
        meaning="number of rows of a person that count in full, required with a number as `person_clip` and only "
        "there; all rows of a person with more rows shrink together",
        form=Integer(1),
        condition=None,
        example={"privacy": {"max_records_per_person": 5}},
        around=_OF_PERSONS,
    ),
    _promise(
        name="person_clip",
        meaning='how the rows of a person count, required with `unit = "person"`: `"average"` counts a person as one '
        "record; a number is the maximum weight of a person in worst-case rows; noise grows with it",
        form=CheckedThere('`"average"`, or 1 to `max_records_per_person`'),
        condition=None,
        example={"privacy": {"person_clip": 3.0}},
        around=_OF_PERSONS,
    ),
)

_AGGREGATION = (
    _summed(
        name="min_count",
        meaning="classes with a smaller *noisy* count are dropped; classes only",
        form=Integer(0),
        bounds="at most `max_records`; 0 keeps all",
        omitted=False,
        fits=("feasibility:check_min_count",),
        condition=None,
        example={"aggregation": {"min_count": 1}},
    ),
    _summed(
        name="merge",
        meaning="for a class that would be dropped, the class that receives its sums instead, for example `{ 3 = 0 }`; "
        "a parent is not itself merged",
        form=ClassPairs(),
        bounds="needs `min_count` above 0",
        usual="nothing is merged",
        fits=("feasibility:check_merge",),
        condition=None,
        example={"aggregation": {"merge": {2: 0}}},
        around={"aggregation": {"min_count": 1}},
    ),
    _summed(
        name="graph",
        meaning="who masks with whom, see below",
        # Each protocol has graphs of its own, and refuses others.
        form=AsciiName("auto"),
        omitted=False,
        condition=StatedBy("aggregation.protocol"),
        example={"aggregation": {"graph": "complete"}},
    ),
    _summed(
        name="protocol",
        meaning="how the sum is masked ([Which protocol](which_protocol.md))",
        form=Words("privstats.secagg.protocols:PROTOCOLS"),
        fits=("feasibility:check_panel", "feasibility:check_noise"),
        condition=Assumes("masks", lambda plan: plan.masking.condition),
        example=_SPLIT,
    ),
    _summed(
        name="panel",
        meaning="Ed25519 identities of the leader and of each helper, the leader first",
        form=Keys(),
        bounds='2 to 256 with `"split"`, otherwise none',
        usual="none",
        follows="protocol",
        fits=("feasibility:check_panel",),
        condition=StatedBy("aggregation.protocol"),
        example={"aggregation": {"panel": _PANEL[::-1]}},
        around=_SPLIT,
    ),
    _summed(
        name="excess_noise",
        meaning="distributed noise: whether the surplus noise is removed when more than `min_survivors` survive "
        "([privacy](proofs/noise.md#who-adds-the-noise))",
        form=Words("privstats.plan.feasibility:EXCESS"),
        bounds='`"removed"` with `"interactive"` on the complete graph',
        fits=("feasibility:check_excess",),
        condition=None,
        example={"aggregation": {"excess_noise": "removed"}},
        around=_DISTRIBUTED,
    ),
    _summed(
        name="key_agreement",
        meaning="how parties agree on keys: by X25519 and ML-KEM-768 together, so nobody who records all messages and "
        "later breaks X25519 reads a party's sums ([protocol](wire/interactive.md#key-agreement)). A plan without the "
        "line has the digest that versions until 2026-11-30 run under X25519 alone: write the line, or have every "
        "party install this version",
        form=Words("privstats.plan.settings:KeyAgreement", remedy=_KEY_REMEDY),
        usual="the same, unnamed",
        new="mlkem768-x25519",
        condition=None,
        example={"aggregation": {"key_agreement": "mlkem768-x25519"}},
    ),
    _summed(
        name="spare_bits",
        meaning="extra bits of the ring, for a central server that weighs the sums of several sessions before it adds "
        "noise",
        form=Integer(0, 32),
        condition=None,
        example={"aggregation": {"spare_bits": 1}},
    ),
)

_VALIDITY = (
    _proof(
        name="level",
        meaning="what every client proves of its sums",
        form=Levels(PROVERS, remedy="omit validity for no proof"),
        condition=None,
        example={"validity": {"level": "moments"}},
    ),
    _proof(
        name="most_records",
        meaning="maximum number of records of one client, public; a client holding more declines to take part. The "
        "largest client sets how much harm every liar can do",
        form=Integer(1),
        bounds="at most `cohort.max_records`, at least `privacy.max_records_per_client`, and what the field has "
        "room for",
        condition=None,
        example={"validity": {"most_records": 8}},
    ),
)

_DEVICES = (
    _people(
        name="organisations",
        meaning="who runs each member of the panel, the leader first",
        form=Names(),
        bounds="one name per member, all different",
        joins=("device_rules:check_distinct",),
        fits=("device_rules:check_panel", "device_rules:check_one_message"),
        condition=None,
        example={"devices": {"organisations": ("Ulm", "Graz")}},
    ),
    _people(
        name="registrar",
        meaning="who invites people and signs the roster",
        form=Name(),
        bounds="not one of the panel's",
        joins=("device_rules:check_distinct",),
        condition=None,
        example={"devices": {"registrar": "Graz"}},
    ),
    _people(
        name="registrar_key",
        meaning="the registrar's Ed25519 key",
        form=Key(),
        bounds="not one of the panel's",
        fits=("device_rules:check_panel",),
        condition=None,
        example={"devices": {"registrar_key": "d" * 64}},
    ),
    _people(
        name="page",
        meaning="who serves the page. This party can read every answer by serving another script",
        form=Name(),
        bounds=f'not one of the panel\'s; if the registrar serves it, the sentence `"{TRUSTED_REGISTRAR}"` instead',
        joins=("device_rules:check_distinct",),
        condition=None,
        example={"devices": {"page": "Graz"}},
    ),
    _people(
        name="most_runs",
        meaning="maximum number of runs to which one person is invited",
        form=Integer(1, 10_000),
        condition=None,
        example={"devices": {"most_runs": 2}},
    ),
    _people(
        name="stated_epsilon",
        meaning="the epsilon stated to each person: all `most_runs` runs together, one answer compared with another, "
        "at the plan's `delta`. The page shows this number and computes none",
        form=Number((0, 1e9), above=True),
        bounds="at least what the plan derives; the refusal states it",
        usual="required with a promise, refused without",
        fits=("device_rules:check_noise", "device_rules:check_unit", "device_rules:check_stated"),
        condition=None,
        example={"devices": {"stated_epsilon": 10.0}},
    ),
    _people(
        name="words",
        meaning="the page states this",
        form=Sentence(PER_RECORD),
        usual='required with `unit = "record"`, refused otherwise',
        fits=("device_rules:check_unit",),
        condition=None,
        example={
            "privacy": {"unit": "record", "max_records_per_client": None},
            "devices": {"words": PER_RECORD},
        },
    ),
    _people(
        name="exact",
        meaning="the leader sees the exact sum",
        form=Sentence(EXACT),
        usual="required without panel noise, with `colluders` of at least 1; refused with it",
        fits=("device_rules:check_noise",),
        condition=None,
        example={
            "cohort": {"colluders": 1},
            "privacy": {"model": "central"},
            "devices": {"exact": EXACT},
        },
    ),
    _people(
        name="texts",
        meaning="the page's texts in place of the names of variables and values, by language: see below",
        form=PageTexts(),
        fits=("device_rules:check_texts",),
        condition=None,
        example={"devices": {"texts": {"de": {"title": "Ulm"}}}},
    ),
)

SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    table[0].table: by_name(table, lambda row: row.name, "setting")
    for table in (_COHORT, _PRIVACY, _AGGREGATION, _VALIDITY, _DEVICES)
}
"""The settings by table and by name, in the order of files; those of ``[aggregation]`` are fields of ``Plan``."""


def rows() -> Iterator[Setting]:
    """Return all settings that have a row."""
    for table in SETTINGS.values():
        yield from table.values()


def new_plans() -> dict[str, Any]:
    """Return the settings of ``[aggregation]`` that commands write into new plans."""
    return {row.name: row.new for row in SETTINGS["aggregation"].values() if row.new is not None}


def check(table: str, part: Any) -> None:
    """Refuse values that settings of a table cannot have, alone and together; store each as its form returns it."""
    for row in SETTINGS[table].values():
        value = getattr(part, row.name)
        if value is not None or row.default(part) is not None:
            object.__setattr__(part, row.name, row.checked(value))
    for place in dict.fromkeys(place for row in SETTINGS[table].values() for place in row.joins):
        refusal(place)(part)


def check_fits(plan: Plan, *tables: str) -> None:
    """Refuse settings of these tables that contradict the rest of the plan."""
    for place in dict.fromkeys(place for table in tables for row in SETTINGS[table].values() for place in row.fits):
        refusal(place)(plan)


def refusal(name: str) -> Callable[[Any], None]:
    """Return the function of a room's module that a row names."""
    function: Callable[[Any], None] = resolve_name(f"privstats.plan.{name}")
    return function


def table_of(table: str, part: Any) -> dict[str, Any]:
    """Return a table as plain values, without what the canonical tables omit."""
    known = SETTINGS[table]
    written = (row for row in known.values() if known[row.follows or row.name].is_written(part))
    return {row.name: row.form.written(getattr(part, row.name)) for row in written}


def arguments_of(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a table's class in a plan file."""
    return {name: SETTINGS[table][name].form.read(name, value) for name, value in values.items()}
