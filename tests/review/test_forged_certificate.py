"""Certificates and plan files that lie: each is refused, by the name of what is false."""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w

import privstats as ps
from privstats.dp.exact import gaussian_delta_bounds
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, _check_consistent, check, main
from tests import made
from tests.made import refused
from tests.plan.every_kind import PLANS, certified, with_tables
from tests.plan.random_plans import MAKERS, random_plans
from tests.review.certified import COHORT, PARTY, PLAN, TEXT, lone, plan_of


def scaled(factor: Fraction, *path: str) -> Callable[[Any], None]:
    """Multiply a rational in a certificate, or every rational under a name."""

    def forge(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        inner = document[path[-1]]
        if isinstance(inner, dict):
            document[path[-1]] = {name: str(Fraction(value) * factor) for name, value in inner.items()}
        else:
            document[path[-1]] = str(Fraction(inner) * factor)

    return forge


def put(value: Any, *path: Any) -> Callable[[Any], None]:
    def forge(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return forge


def all_sigmas(factor: Fraction) -> Callable[[Any], None]:
    def forge(document: Any) -> None:
        for letter in document["statistics"]:
            scaled(factor, "statistics", letter, "sigma")(document)

    return forge


def narrower(*path: str) -> Callable[[Any], None]:
    """The upper half of an interval alone."""

    def forge(document: Any) -> None:
        for key in path:
            document = document[key]
        document["low"] = str(Fraction(document["high"]) * (1 - Fraction(1, 10**17)))

    return forge


def halves(letter: str, on: Fraction, off: Fraction) -> Callable[[Any], None]:
    """Other spreads on and off the diagonal, times those of the certificate."""

    def forge(document: Any) -> None:
        least = Fraction(next(iter(document["statistics"][letter]["sigma"].values())))
        document["statistics"][letter]["sigma"] = {"diag": str(least * on), "off": str(least * off)}

    return forge


def replanned(change: Callable[[Any], None]) -> Callable[[Any], None]:
    """Another plan's tables with their true digest."""

    def forge(document: Any) -> None:
        other = ps.Plan.from_toml(PLAN.to_toml().replace("epsilon = 1.0", "epsilon = 2.0"))
        honest = json.loads(certificate_text(other))
        document |= {name: honest[name] for name in ("plan", "plan_digest")}
        change(document)

    return forge


def nothing(_: Any) -> None:
    """What is forged already is enough."""


SHORT, LONG = Fraction(9, 10), Fraction(11, 10)
WORST = ("statistics", "A", "worst")
FORGED: dict[str, tuple[Callable[[Any], None], str]] = {
    "one sigma smaller": (scaled(SHORT, "statistics", "A", "sigma"), "sigma"),
    "one sigma larger": (scaled(LONG, "statistics", "N", "sigma"), "sigma"),
    "every sigma smaller": (all_sigmas(1 - Fraction(1, 10**6)), "promise"),
    "every sigma smaller by one part in a thousand million": (all_sigmas(1 - Fraction(1, 10**9)), "promise"),
    "every sigma larger": (all_sigmas(LONG), "sigma"),
    "sigma off the diagonal alone": (put({"off": "1000"}, "statistics", "B", "sigma"), "form"),
    "sigma off the diagonal smaller": (scaled(SHORT, "statistics", "B", "sigma", "off"), "sigma"),
    "sigma off the diagonal larger": (scaled(LONG, "statistics", "B", "sigma", "off"), "sigma"),
    "one sigma in place of diag and off": (put({"all": "1000"}, "statistics", "B", "sigma"), "form"),
    "a vector's sigma halved off a diagonal that it has not": (halves("A", Fraction(1000), Fraction(1, 2)), "form"),
    "sigma on a grid too coarse for the proof": (put({"all": "3"}, "statistics", "N", "sigma"), "sigma"),
    "a sensitivity smaller": (scaled(SHORT, "statistics", "A", "sensitivity_squared"), "sensitivity"),
    "a sensitivity between wide bounds": (put("0", "statistics", "A", "sensitivity_squared", "low"), "sensitivity"),
    "a worst record outside of the clip": (put([[0, 4097]], *WORST, "gone", 0, "x"), "pair"),
    "a worst record of a class that is not there": (put(3, *WORST, "gone", 0, "cell"), "pair"),
    "a worst record with a column that is not there": (put([[5, 4096]], *WORST, "gone", 0, "x"), "pair"),
    "a worst record that is no integer": (put([[0, 0.5]], *WORST, "gone", 0, "x"), "pair"),
    "a worst record of half a class": (put(0.5, *WORST, "gone", 0, "cell"), "pair"),
    "a worst case of two records": (put(2, *WORST, "come", 0, "times"), "pair"),
    "a worst case with records beside it": (
        lambda document: document["statistics"]["A"]["worst"].update(
            beside=document["statistics"]["A"]["worst"]["gone"]
        ),
        "pair",
    ),
    "a pair that is not the worst": (put([[1, 4096]], *WORST, "come", 0, "x"), "pair"),
    "a worst case that moves less": (put("1", *WORST, "moves", "A"), "pair"),
    "a joint worst case that moves more": (scaled(LONG, "joint", "worst", "moves", "A"), "pair"),
    "mu smaller": (scaled(SHORT, "joint", "mu_squared"), "mu"),
    "mu between narrow bounds": (narrower("joint", "mu_squared"), "mu"),
    "epsilon smaller": (put("1/2", "epsilon"), "epsilon"),
    "delta smaller": (put("1/1000000", "delta"), "delta"),
    "delta's interval smaller": (scaled(SHORT, "delta_at_epsilon"), "interval"),
    "delta's interval narrower": (narrower("delta_at_epsilon"), "interval"),
    "delta's interval wide": (put("0", "delta_at_epsilon", "low"), "interval"),
    "delta's interval above the promise": (put("100001/10000000000", "delta_at_epsilon", "high"), "interval"),
    "another model": (put("central", "model"), "model"),
    "another unit": (put("client", "unit"), "unit"),
    "another adjacency": (put("add-remove", "adjacency"), "adjacency"),
    "more honest shares": (put(14, "honest_shares"), "honest_shares"),
    "another plan's digest": (put(plan_of().digest, "plan_digest"), "plan_digest"),
    "another plan": (replanned(nothing), "plan"),
    "another plan with its epsilon": (replanned(put("2", "epsilon")), "plan"),
    "a statistic left out": (lambda document: document["statistics"].pop("N") and None, "form"),
    "a claim left out": (lambda document: document.pop("joint") and None, "form"),
    "a claim that nobody checks": (put("true", "audited"), "form"),
    "another version": (put(2, "version"), "form"),
    "a text in place of a record": (put("worst", *WORST), "form"),
    "a rational by zero": (put("1/0", "delta_at_epsilon", "high"), "form"),
    "a power in place of a rational": (put("1e999999999", "delta_at_epsilon", "high"), "form"),
    "a rational of a million digits": (put("9" * 10**6, "delta_at_epsilon", "high"), "form"),
}
TEXTS = {
    "truncated": TEXT[: len(TEXT) // 2],
    "empty": "",
    "a list": "[]",
    "a key twice": TEXT.replace('"version": 1,', '"version": 1, "version": 1,'),
    "a huge power": TEXT.replace('"honest_shares": 13', '"honest_shares": 1e999999999'),
    "a huge number": TEXT.replace('"honest_shares": 13', f'"honest_shares": {"9" * 10**6}'),
    "no number": TEXT.replace('"honest_shares": 13', '"honest_shares": NaN'),
    "deep": "[" * 10**6,
    "long": TEXT + " " * (1 << 23),
}


@pytest.mark.parametrize("lie", FORGED)
def test_a_forged_claim_is_refused_by_its_name(lie: str) -> None:
    forge, claim = FORGED[lie]
    document = json.loads(TEXT)
    forge(document)
    refused(Refused, rf"^{claim}: ", check, PLAN.to_toml(), json.dumps(document))


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_no_certificate_is_refused_at_once(text: str) -> None:
    refused(Refused, r"^form: ", check, PLAN.to_toml(), TEXTS[text])


@pytest.mark.parametrize(
    ("old", "new", "claim"),
    [
        ("epsilon = 1.0", "epsilon = 0.9", "plan"),
        ("clip_norm = 1.5", "clip_norm = 1.6", "plan"),
        ("min_survivors = 15", "min_survivors = 14", "plan"),
        ("epsilon = 1.0", "epsilon = 1e999999999", "form"),
        ("epsilon = 1.0", f"epsilon = {'9' * 5000}", "form"),
        ("[privacy]", "[privacy]\n[privacy]", "form"),
        ("version = 1", "version = 1\nnotes = 'approved'", "plan"),
        ('statistics = "NAB"', 'statistics = "NABTF"', "form"),  # without a bound, and not in the tables
    ],
)
def test_another_plan_file_is_refused(old: str, new: str, claim: str) -> None:
    text = PLAN.to_toml()
    assert old in text
    refused(Refused, rf"^{claim}: ", check, text.replace(old, new, 1), TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("colluders = 2", "colluders = -92"),
        ("min_survivors = 15", "min_survivors = 100"),
        ("max_records_per_client = 4", "max_records_per_client = 0"),
        ("max_records_per_client = 4\n", ""),
        ("client_clip = 3.0", "client_clip = 5.0"),
        ('adjacency = "add-remove"', 'adjacency = "neither"'),
        ("epsilon = 1.0", "epsilon = -1.0"),
        ("classes = 3", "classes = 0"),
        ("grid_bits = 12", "grid_bits = 21"),
        ("pulls = [0]", f"pulls = {list(range(250))}"),
    ],
)
def test_a_plan_that_the_library_refuses_is_refused(old: str, new: str) -> None:
    """Whoever forges writes the file and its tables alike, with the digest that is due to them."""
    text = plan_of(unit="client", max_records_per_client=4, client_clip=3.0).to_toml()
    if old not in text:
        text = plan_of("central", ps.SitesSchema(5, 1.0)).to_toml()
        text = re.sub(r"pulls = \[[^]]*]", "pulls = [0]", text)
    assert old in text
    text = text.replace(old, new, 1)
    refused((ps.PlanError, ps.SchemaError), "", ps.Plan.from_toml, text)
    tables = json.dumps(tomllib.loads(text))
    document = json.loads(TEXT) | {"plan": tables, "plan_digest": hashlib.sha256(tables.encode()).hexdigest()}
    refused(Refused, "^plan: ", check, text, json.dumps(document))


@pytest.mark.parametrize("sent", ["NABT", "TNAB", "NASF"])
def test_letters_without_a_bound_are_refused_in_the_file_and_its_tables(sent: str) -> None:
    text = PLAN.to_toml().replace('"NAB"', f'"{sent}"')
    tables = json.dumps(tomllib.loads(text))
    document = json.loads(TEXT) | {"plan": tables, "plan_digest": hashlib.sha256(tables.encode()).hexdigest()}
    document["statistics"] = dict.fromkeys(sent, document["statistics"]["A"])
    refused(Refused, "^form: ", check, text, json.dumps(document))


def of_sites_on_a_grid_of_one_step() -> tuple[str, str]:
    """A plan file that leaves out ``grid_bits``, which means 12, and a certificate for rows of norm one step.

    Tables, digest, pairs, bounds and delta all fit one another; of Q's noise there is a ten-millionth.
    """
    plan = plan_of("central", ps.SitesSchema(5, 1.0), epsilon=0.1)
    document, tables = json.loads(certificate_text(plan)), json.loads(json.dumps(plan.tables))
    del tables["schema"]["grid_bits"]
    squares = {"N": Fraction(4096**2), "Q": Fraction(9**2)}  # 4 R^2, and a step of cut in each of five rows
    weights = {
        letter: Fraction(share) * Fraction(plan.noise.mu) ** 2 for letter, share in {"N": 0.02, "Q": 0.98}.items()
    }
    drawn = {letter: Fraction(float(squares[letter] / weights[letter]) ** 0.5) for letter in squares}
    off = Fraction(float(drawn["Q"]) * 2**-0.5)
    sigma = {"N": {"all": str(drawn["N"])}, "Q": {"diag": str(drawn["Q"]), "off": str(off)}}
    least = {"N": drawn["N"] ** 2, "Q": min(drawn["Q"] ** 2, 2 * off**2)}
    whole = sum(squares[letter] / least[letter] for letter in squares)
    cases = [document["joint"]["worst"], *(row["worst"] for row in document["statistics"].values())]
    for record in (record for case in cases for side in ("beside", "gone", "come") for record in case[side]):
        record["x"] = [[place, value // abs(value)] for place, value in record["x"]]
    for case in cases:
        moved = {"N": 4096**2, "Q": int(Fraction(4 * case["beside"][0]["times"], case["beside"][0]["times"] + 1)) ** 2}
        case["moves"] = {letter: str(moved[letter]) for letter in case["moves"]}
    for letter, row in document["statistics"].items():
        row |= {"sigma": sigma[letter], "sensitivity_squared": around(squares[letter], squares[letter])}
    document["joint"]["mu_squared"] = around(whole, whole)
    mu = Fraction(float(whole) ** 0.5)
    (low, _), (_, high) = (gaussian_delta_bounds(mu * (1 + side), Fraction(1, 10)) for side in (-TINY, TINY))
    document["delta_at_epsilon"] = around(low, high)
    return tomli_w.dumps(tables), with_tables(document, tables)


TINY = Fraction(1, 10**14)


def around(low: Fraction, high: Fraction) -> dict[str, str]:
    ends = (math.floor(low * (1 - TINY) * 10**40), math.ceil(high * (1 + TINY) * 10**40))
    return {name: str(Fraction(end, 10**40)) for name, end in zip(("low", "high"), ends, strict=True)}


def test_a_certificate_of_sites_for_another_grid_than_the_files_is_refused() -> None:
    """It held: the bound took a grid of one step where the tables named none."""
    text, certificate = of_sites_on_a_grid_of_one_step()
    assert ps.Plan.from_toml(text).schema.grid_bits == 12
    refused(Refused, "^plan: schema lacks grid_bits, which is never left out", check, text, certificate)


@pytest.mark.parametrize("name", [name for name, plan in PLANS.items() if "grid_bits" in plan.tables["schema"]])
@pytest.mark.parametrize("bits", [1, 21, 10**9])
def test_a_grid_that_no_plan_has_is_refused_before_anything_is_computed(name: str, bits: int) -> None:
    """Of sites a billion bits kept the program busy for half a minute, and then it held."""
    _, _, tables, document = certified(name)
    tables["schema"]["grid_bits"] = bits
    with pytest.raises(Refused, match="^plan: grid_bits lies where no plan can have it"):
        check(tomli_w.dumps(tables), with_tables(document, tables))


BUSY = {
    "a key of many parts": "a" + ".a" * 20_000 + " = 1",
    "a table of many parts": "[a" + " . 'a'" * 20_000 + "]",
    "a key of many parts, of which one holds a quote": r'"\""' + ".a" * 5_000 + " = 1",
    "a key of many parts behind a byte-order mark": "\ufeffa" + ".a" * 5_000 + " = 1",
    "many keys of three parts": "".join(f"a{place}.b.c = 1\n" for place in range(5_000)),
    "a long text": "#" * (1 << 20) + "\n",
    "a number of many digits": f"epsilon = {'9' * 5000}",
    "deep": "a = " + "[" * 20_000,
}


@pytest.mark.parametrize("kind", BUSY)
def test_a_plan_file_that_would_keep_its_reader_busy_is_refused(kind: str) -> None:
    """Of a key of 500,000 parts, one megabyte, Python's reader of TOML makes a terabyte."""
    with pytest.raises(Refused, match="^form: (a key has too many parts|a text is too long|.*(Recursion|Value)Error)"):
        check(BUSY[kind], TEXT)


RATIO = ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.3, measure="ratio")
GRADIENTS = ps.GradientSchema(4, 3, residual_norm=0.3, expected_records=9, course_mu=1.0)


@pytest.mark.parametrize(
    ("schema", "without", "more"),
    [
        (RATIO, "probability", {"trim": Fraction(1, 10)}),  # a ratio of an observational study has no bound
        (RATIO, "", {"outcome_names": ["pain", "sleep"]}),  # nor has a ratio of several outcomes
        (GRADIENTS, "", {"target_bound": 1}),
        (GRADIENTS, "classes", {}),
    ],
)
def test_keys_that_exclude_or_need_one_another_are_refused(schema: Any, without: str, more: dict[str, Any]) -> None:
    """Tables that the library refuses to build; nothing but these keys is wrong with them."""
    published = ps.schema.public_values.Published("0" * 64)
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=made.promise(), published=published)
    tables = json.loads(json.dumps(plan.tables), parse_float=Fraction)
    _check_consistent(tables)
    changed = {key: value for key, value in tables["schema"].items() if key != without} | more
    with pytest.raises(Refused, match="^plan: its statements about a record contradict each other"):
        _check_consistent({**tables, "schema": changed})


class Counted(int):
    """An integer that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        Counted.hashed += 1
        return 0


def test_a_table_of_more_columns_than_a_plan_can_have_is_refused_before_they_are_compared() -> None:
    """A megabyte of multiples of 2**61 - 1, all of one hash, took 24 seconds."""
    tables = certified("tables").tables
    tables["schema"]["tables"] = [[Counted(place) for place in range(17)]]
    with pytest.raises(Refused, match="^plan: its statements about a record contradict each other"):
        _check_consistent(tables)
    assert not Counted.hashed


EMPTY: tuple[Any, ...] = ("", {})


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("empty", EMPTY)
def test_an_empty_value_of_another_type_is_no_list_of_records(name: str, empty: Any) -> None:
    """Sides of a worst case, and vectors of its records."""
    _, text, _, document = certified(name)
    worst = document["joint"]["worst"]
    lists = [worst[side] for side in ("beside", "gone", "come")]
    tables = [worst, *(record for side in lists for record in side)]
    places = [(table, key) for table in tables for key, value in table.items() if isinstance(value, list) and not value]
    assert places or document["unit"] == "client" or document["adjacency"] == "replace-one"
    for table, key in places:
        table[key] = empty
        refused(Refused, "^(form|pair): ", check, text, json.dumps(document))
        table[key] = []


def test_a_share_that_is_no_number_is_refused() -> None:
    _, _, tables, document = certified("tables")
    tables["privacy"]["shares"] = {"T": True}
    refused(Refused, "^plan: ", check, tomli_w.dumps(tables), with_tables(document, tables))


def test_no_more_is_read_of_a_file_than_a_text_may_have(tmp_path: Path) -> None:
    """A device has no size and does not end."""
    certificate = tmp_path / "certificate.json"
    certificate.write_text(TEXT)
    assert main(["/dev/zero", str(certificate)]) == 1


def test_tables_of_more_cells_than_a_plan_can_have_are_refused_uncounted() -> None:
    _, _, tables, document = certified("tables")
    tables["schema"]["tables"] = [["sex", "age", "ward"]] * 4_000
    with pytest.raises(Refused, match="^plan: its statements about a record contradict each other"):
        check(tomli_w.dumps(tables), with_tables(document, tables))


def test_a_tiny_share_is_compared_as_closely_as_a_large_one() -> None:
    schema = ps.ClassSchema(3, 20, "NAS", 1.0, grid_bits=16)
    one, other = (plan_of("central", schema, shares={"N": n, "A": 0.5, "S": 0.5 - n}) for n in (2e-5, 1.1e-5))
    refused(Refused, "^plan: ", check, other.to_toml(), certificate_text(one))


@pytest.mark.parametrize("text", [TEXTS["truncated"], b"\xff\xfe", TEXTS["long"]])
def test_the_program_ends_with_one_line_and_code_1(tmp_path: Path, text: str | bytes) -> None:
    done = lone(tmp_path, PLAN.to_toml(), text)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("refused: ")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("path", [("statistics", "N", "worst"), ("joint", "worst")])
def test_an_alignment_has_no_worst_records_to_make_up(path: Any) -> None:
    plan = next(random_plans(1, [MAKERS[-1]]))
    document = json.loads(certificate_text(plan))
    put("7", *path, "moves", "N")(document)
    refused(Refused, "^pair: ", check, plan.to_toml(), json.dumps(document))


def test_a_cell_of_a_table_is_a_whole_number() -> None:
    plan = next(random_plans(1, [MAKERS[2]]))
    document = json.loads(certificate_text(plan))
    put(0.5, "joint", "worst", "come", 0, "values", "age")(document)
    refused(Refused, "^pair: ", check, plan.to_toml(), json.dumps(document))


def test_a_model_less_sure_than_of_one_in_so_many_is_no_record() -> None:
    """Were the first confidence 0 and not 1 / 3, the pair would be further apart than the bound."""
    schema = ps.CalibrationSchema(4, 3, expected_records=9, course_mu=1.0)
    privacy, published = made.promise(adjacency="replace-one"), ps.schema.public_values.Published("0" * 64)
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=privacy, published=published)
    for value in (schema.grid_steps, schema.grid_steps - schema.grid_steps // 3 + 1):
        document = json.loads(certificate_text(plan))
        assert document["statistics"]["t"]["worst"]["gone"][0]["v"][0] == [
            0,
            schema.grid_steps - schema.grid_steps // 3,
        ]
        put(value, "statistics", "t", "worst", "gone", 0, "v", 0, 1)(document)
        refused(Refused, "^pair: not records", check, plan.to_toml(), json.dumps(document))


PERSONS = {"unit": "person", "max_records_per_person": 50, "person_clip": 7.5}
CLIPPED = {"unit": "client", "max_records_per_client": 50, "client_clip": 5.0}


@pytest.mark.parametrize(
    ("model", "schema", "changes"),
    [
        ("central", ps.ScoreSchema(4, 1.0), CLIPPED),
        ("local", ps.SitesSchema(5, 1.0), {"adjacency": "replace-one"}),
        ("distributed", ps.WithinSchema(3, 4, 1.0, pull=1.0, n_max=20), {"adjacency": "replace-one"}),
        ("central", ps.GradientSchema(4, 3, residual_norm=0.3, expected_records=9, course_mu=1.0), {}),
        ("central", ps.GradientSchema(4, 3, residual_norm=0.3, expected_records=9, course_mu=1.0, module="adapter/7"),
            {"adjacency": "replace-one"}),
        ("central", ps.CalibrationSchema(4, 3, expected_records=9, course_mu=1.0), {"adjacency": "replace-one"}),
        ("central", ps.MeanSchema(4, 1.0), {"adjacency": "replace-one"}),
        ("central", ps.MeanSchema(4, 1.0), {"adjacency": "replace-one", **PERSONS}),
        ("distributed", ps.RidgeSchema(4, clip_norm=1.0, target_bound=3.0, nonnegative=True), PERSONS),
        ("local", ps.ScoreSchema(4, 1.0), {"adjacency": "replace-one", **PERSONS}),
        ("distributed", ps.MeanSchema(4, 1.0, nonnegative=True), {"adjacency": "replace-one"}),
        ("central", ps.RidgeSchema(4, clip_norm=1.0, target_bound=3.0, folds=4), {"adjacency": "replace-one"}),
        ("distributed", ps.PartySchema(3, 4), PARTY),
        ("central", ps.PartyUpdateSchema(3, 4), {**PARTY, "adjacency": "replace-one"}),
        ("local", ps.PartySchema(3, 4), {**PARTY, "adjacency": "replace-one"}),
    ],
)  # fmt: skip
def test_noise_a_millionth_too_small_is_refused_of_every_kind(model: str, schema: Any, changes: Any) -> None:
    """The bound of each kind is tight to the promise: what floats and margin leave is a part in 10^12."""
    published = ps.schema.public_values.Published("0" * 64) if schema.needs else None
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=made.promise(model, **changes), published=published)
    document = json.loads(certificate_text(plan))
    all_sigmas(1 - Fraction(1, 10**6))(document)
    refused(Refused, r"^promise: ", check, plan.to_toml(), json.dumps(document))


@pytest.mark.parametrize("changes", [{"max_records_per_client": 2}, {"unit": "record"}, {"client_clip": 1.0}])
@pytest.mark.parametrize("schema", [ps.PartySchema(3, 4), ps.PartyUpdateSchema(3, 4)])
def test_of_parties_the_checker_takes_no_other_unit(schema: Any, changes: dict[str, Any]) -> None:
    """A plan that the library refuses to build: one record turns its whole party, and a second clip has no proof."""
    published = ps.schema.public_values.Published("0" * 64) if schema.needs else None
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=made.promise(**PARTY), published=published)
    document = json.loads(certificate_text(plan))
    tables = json.loads(document["plan"])
    tables["privacy"] |= changes
    if tables["privacy"]["unit"] == "record":
        del tables["privacy"]["max_records_per_client"]
    document["plan"] = msgspec.json.encode(tables, order="deterministic").decode()
    document["plan_digest"] = hashlib.sha256(document["plan"].encode()).hexdigest()
    refused(Refused, r"^unit: no sensitivity is proved for it", check, tomli_w.dumps(tables), json.dumps(document))


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"max_records_per_person": 2}, "plan"),
        ({"person_clip": 4.5}, "plan"),
        ({"person_clip": 2.0}, "pair|sensitivity|sigma|promise"),
        ({"unit": "record"}, "plan"),
        ({"unit": "client"}, "plan"),
        ({"adjacency": "add-remove"}, "adjacency|pair|sensitivity"),
    ],
)
def test_another_promise_per_person_is_refused(changes: dict[str, Any], claim: str) -> None:
    _, text, tables, document = certified("persons exchanged")
    tables["privacy"] = {**tables["privacy"], **changes}
    refused(Refused, f"^({claim}):", check, tomli_w.dumps(tables), with_tables(document, tables))
    check(text, json.dumps(document))


@pytest.mark.parametrize("kind", ["within", "sites", "hazard", "effect", "party-softmax"])
def test_of_kinds_without_a_proof_for_persons_the_checker_takes_none(kind: str) -> None:
    """Tables that the library refuses to make."""
    name = next(name for name in PLANS if name.endswith(f" {kind}"))
    _, _, tables, document = certified(name)
    kept = {key: value for key, value in tables["privacy"].items() if "client" not in key}
    tables["privacy"] = {**kept, "unit": "person", "max_records_per_person": 3, "person_clip": 2}
    with pytest.raises(Refused, match="^unit: no sensitivity is proved for it"):
        check(tomli_w.dumps(tables), with_tables({**document, "unit": "person"}, tables))


@pytest.mark.parametrize("graph", ["sparse", "robust"])
def test_layers_of_noise_need_the_complete_graph(graph: str) -> None:
    _, text, tables, document = certified("layers")
    tables = {**tables, "aggregation": {**tables["aggregation"], "graph": graph}}
    refused(Refused, "contradict each other", check, tomli_w.dumps(tables), with_tables(document, tables))
    check(text, json.dumps(document))
