"""Two declared texts of a column count as 0 and 1, any other value leaves its record out, and nobody else's moves."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.course.effect import propensity_schema
from privstats.errors import RecordError, SchemaError, UnreadableRecordsWarning
from privstats.records.from_file import records_in
from privstats.schema.public_values import Published, Values
from tests.made import refused

pandas = pytest.importorskip("pandas")

TEXTS: dict[str, Any] = {
    "columns": {"age": (20, 90), "sex": ("female", "male")},
    "treatment": {"arm": ("placebo", "drug")},
    "outcome": {"recovered": ("no", "yes"), "fell": (0, 1)},
}
NUMBERS: dict[str, Any] = {
    "columns": {"age": (20, 90), "sex": (0, 1)},
    "treatment": "arm",
    "outcome": {"recovered": (0, 1), "fell": (0, 1)},
}
BY_SEX = {True: ps.Categories("sex", ("male", "female")), False: ps.Categories("sex", (1, 0))}


def schema_of(said: dict[str, Any], **design: Any) -> ps.EffectSchema:
    columns, *rest = said.values()
    return ps.EffectSchema.of(columns, treatment=rest[0], outcome=rest[1], **design)


def table(n: int, *, texts: bool) -> Any:
    rng = np.random.default_rng(n)
    columns = {"age": rng.uniform(20, 90, n).round(), **{name: rng.integers(0, 2, n) for name in ("sex", "arm")}}
    frame = pandas.DataFrame(columns | {name: rng.integers(0, 2, n) for name in ("recovered", "fell")})
    if texts:
        for name, told in {"sex": ("female", "male"), "arm": ("placebo", "drug"), "recovered": ("no", "yes")}.items():
            frame[name] = np.array(told)[frame[name]]
    return frame


def parts(frame: Any) -> tuple[Any, Any]:
    return frame[["age", "sex", "arm"]], frame[["recovered", "fell"]].to_numpy()


def measured(schema: Any, X: Any, y: Any = None) -> Any:
    said = None
    if schema.needs:
        said = Published.of({name: Values.rounded(np.full(shape, 0.1)) for name, shape in schema.needs.items()})
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        return ps.measure(schema, X, y, published=said, unreadable="leave out")


def sums(moments: Any) -> dict[str, Any]:
    return {row.letter: np.asarray(moments.sums(row)).tolist() for row in moments.schema.sent}


@pytest.mark.parametrize("design", [{"probability": 0.5}, {"estimand": "overlap", "trim": 0.1}])
def test_texts_are_the_numbers_that_they_count_as_in_every_session(design: dict[str, Any]) -> None:
    said, coded = (schema_of(each, subgroups=(BY_SEX[each is TEXTS],), **design) for each in (TEXTS, NUMBERS))
    sessions = [(said, coded), (said.rows, coded.rows)]
    if "trim" in design:
        sessions.append((propensity_schema(said), propensity_schema(coded)))
    for texts, numbers in sessions:
        assert sums(measured(texts, *parts(table(60, texts=True)))) == sums(
            measured(numbers, *parts(table(60, texts=False)))
        )


def test_a_file_is_read_as_the_frame_is(tmp_path: Path) -> None:
    schema, frame = schema_of(TEXTS, probability=0.5), table(50, texts=True)
    frame.loc[3, "arm"], frame.loc[4, "recovered"], frame.loc[5, "age"] = "Drug", None, np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    file = ps.moments.RecordFile(tmp_path / "t.csv", ("recovered", "fell"))
    found = [measured(schema, *records_in(file, schema.reading, "leave out", at_once=each)) for each in (False, True)]
    assert found[0] == found[1] == measured(schema, *parts(frame))
    assert found[0].records == 47


cells = st.sampled_from(
    ["drug", "placebo", " drug", "Drug", "", None, "NA", 0, 1, "1", True, 0.5, "x" * 2_000, b"drug"]
)


@given(st.lists(st.tuples(st.integers(20, 90), cells, st.sampled_from(["no", "yes", "Yes", None, 1])), max_size=6))
def test_what_a_record_adds_follows_from_it_alone(records: list[tuple[Any, ...]]) -> None:
    """One cell, whatever it holds, moves no other record, in frames of objects, lists and batches."""
    schema = ps.EffectSchema.of(
        {"age": (20, 90)}, treatment={"arm": ("placebo", "drug")}, outcome={"well": ("no", "yes")}, probability=0.5
    )
    frame = pandas.DataFrame({"age": [each[0] for each in records], "arm": [each[1] for each in records]}, dtype=object)
    goals = np.array([each[2] for each in records], object)
    whole = measured(schema, frame, goals)
    alone = [measured(schema, frame[i : i + 1], goals[i : i + 1]) for i in range(len(records))]
    counted = [
        i
        for i, each in enumerate(records)
        if each[1] in ("drug", "placebo", " drug", b"drug") and each[2] in ("no", "yes")
    ]
    assert ([i for i, each in enumerate(alone) if each.records], whole.records) == (counted, len(counted))
    assert np.array_equal(whole.e, sum((each.e for each in alone), np.zeros_like(whole.e)))
    assert whole == measured(schema, [list(each[:2]) for each in records] or np.empty((0, 2)), goals)
    if records:
        assert whole == measured(schema, ((frame[i : i + 1], goals[i : i + 1]) for i in range(len(records))))


def test_what_is_left_out_is_told_by_column_and_never_by_one_persons_value() -> None:
    frame = table(40, texts=True)
    frame.loc[0:4, "arm"], frame.loc[2:3, "age"], frame.loc[9, "recovered"] = "Secret", None, "private"
    plain = schema_of(NUMBERS, probability=0.5)
    for schema, left, said in (
        (schema_of(TEXTS, probability=0.5), 6, "'arm': 5 hold none of the values that the plan declares"),
        (plain, 40, "'arm': 40 hold a text where a number belongs"),
    ):
        with pytest.warns(UnreadableRecordsWarning, match=f"{left} of the records cannot be read") as caught:
            ps.measure(schema.rows, *parts(frame), unreadable="leave out")
        (remark,) = (str(each.message) for each in caught)
        assert said in remark
        assert "'age': 2 hold nothing" in remark
        assert not any(word in remark for word in ("Secret", "private"))
        shared = ("drug", "placebo", "yes")  # ten records or more share these, and the plan does not declare them
        assert any(word in remark for word in shared) == (schema is plain)
    # A refusal excludes nothing, so it reports no exclusion.
    refused(RecordError, r"read\. .*'arm': 5 hold", ps.measure, schema_of(TEXTS, probability=0.5).rows, *parts(frame))


def test_decimal_commas_are_named_with_what_to_do() -> None:
    frame = table(40, texts=False)
    frame["age"] = frame["age"].astype(object)
    frame.loc[0:11, "age"] = "61,5"
    frame.loc[12, "age"] = "sixty"
    with pytest.warns(UnreadableRecordsWarning) as told:
        ps.measure(schema_of(NUMBERS, probability=0.5).rows, *parts(frame), unreadable="leave out")
    remark = str(told[0].message)
    assert "'age': 12 hold a number with a decimal comma, 1 hold a text where a number belongs" in remark
    assert "read the file with --decimal , or write decimals with a point" in remark


def test_an_unknown_text_of_three_is_named_by_its_own_column() -> None:
    schema = ps.EffectSchema.of(
        {"age": (20, 90), "smoking": ("never", "former", "current")},
        treatment={"arm": ("placebo", "drug")},
        outcome=(0, 1),
        probability=0.5,
    ).rows
    frame = table(40, texts=True)
    frame.insert(1, "smoking", np.array(["never", "former", "current", "not asked"])[np.arange(40) % 4])
    with pytest.warns(UnreadableRecordsWarning) as told:
        ps.measure(schema, frame[["age", "smoking", "arm"]], frame["fell"], unreadable="leave out")
    assert "'smoking': 10 hold none of the values that the plan declares" in str(told[0].message)
    assert "'arm'" not in str(told[0].message)


def test_numbers_do_not_pass_for_texts() -> None:
    schema = schema_of(TEXTS, probability=0.5)
    assert measured(schema, *parts(table(30, texts=False))).records == 0
    assert (
        measured(schema, table(30, texts=False)[["age", "sex", "arm"]].to_numpy(float), np.ones((30, 2))).records == 0
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"treatment": {"arm": ("drug", "drug")}}, "holds 'drug' twice"),
        ({"treatment": {"arm": (0, 1)}}, "treatment must name the column of arms"),
        ({"treatment": {"arm": ("a", "b"), "dose": ("a", "b")}}, "treatment must name the column of arms"),
        ({"treatment": {"age": ("a", "b")}}, "must not be among the columns"),
        ({"treatment": {"arm": ("a", "b", "c")}}, "treatment must name the column of arms"),
        ({"outcome": {"well": ("no", "some", "yes")}}, "'well' must be a range or two texts, got 3 texts"),
        ({"outcome": ("no", "yes")}, "outcome must name the column"),
        ({"outcome": {"well": ("no", "yes"), "days": (0, 30)}}, "must share one public range"),
        ({"subgroups": (ps.Categories("sex", (0, 1)),)}, "must be of its texts"),
        ({"subgroups": (ps.Categories("age", ("old", "young")),)}, "must be of integers"),
    ],
)
def test_texts_that_could_tell_nothing_are_refused(change: dict[str, Any], words: str) -> None:
    columns, treatment, outcome = TEXTS.values()
    said = {"treatment": treatment, "outcome": outcome, "probability": 0.5, **change}
    refused(SchemaError, words, ps.EffectSchema.of, columns, **said)


@pytest.mark.parametrize(
    ("columns", "outcomes", "words"),
    [
        ((), (), "must declare two texts"),
        ((ps.Categories("arm", ("a", "b", "c")),), (), "one place for each of the 1 columns of more than two texts"),
        ((ps.Categories("arm", tuple(map(str, range(17)))),), (), "must be Categories of 2 to 16 values"),
        ((ps.Categories("arm", ("a", "b"), other=True),), (), "must be Categories of 2 to 16 values"),
        ((ps.Categories("ward", ("042", "42"), as_text=True),), (), "columns: as_text of ward belongs to Cells"),
        ((), (ps.Categories("well", ("0", "1"), as_text=True),), "outcomes: as_text of well belongs to Cells"),
        ((ps.Numeric("age"),), (), "must be Categories of 2 to 16 values"),
        ((), (ps.Dates("well"),), "must be Categories of 2 to 16 values, or a Numeric without edges"),
        ((ps.Categories("arm", ("a", "b")),), (ps.Numeric("Arm"),), "one name in any case"),
        ("arm", (), "must be a tuple"),
    ],
)
def test_a_declaration_of_anything_else_is_refused(columns: Any, outcomes: Any, words: str) -> None:
    refused(SchemaError, words, ps.transforms.Levels, columns, outcomes)


def test_only_effects_hazards_and_scores_read_them() -> None:
    levels = ps.transforms.Levels((ps.Categories("arm", ("a", "b")),))
    with pytest.raises(SchemaError, match="first map of an effect, of hazards or of a score"):
        ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0, transform=(levels,), feature_names=("arm", "age"))
    with pytest.raises(SchemaError, match="which feature_names does not name"):
        ps.EffectSchema(
            4,
            2.0,
            outcome=(0, 1),
            probability=0.5,
            feature_names=("age", "drug"),
            transform=(levels, ps.transforms.ConstantFeature(1.0), ps.transforms.ByArm(1)),
        )


def test_a_plan_with_texts_is_the_same_from_its_file_and_has_another_digest() -> None:
    cohort = ps.Cohort(2, 2, 1_000)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
    swapped = {**TEXTS, "treatment": {"arm": ("drug", "placebo")}}
    plans = [ps.Effect.start(schema_of(each, probability=0.5), cohort, privacy).plan for each in (TEXTS, swapped)]
    assert ps.Plan.from_toml(plans[0].to_toml()) == plans[0]
    assert plans[0].digest != plans[1].digest


def test_hazards_read_them_too() -> None:
    rng, n = np.random.default_rng(1), 80
    frame = pandas.DataFrame({"age": rng.uniform(20, 90, n), "months": rng.uniform(0, 12, n)})
    arm, died = rng.integers(0, 2, n), rng.integers(0, 2, n)
    levels = ps.transforms.Levels(
        (ps.Categories("arm", ("placebo", "drug")),), (ps.Categories("died", ("alive", "dead")),)
    )
    maps = (ps.transforms.Scale((90.0, 1.0)), ps.transforms.ConstantFeature(1.0))
    told = {"bins": ps.Bins("months", (0, 6, 12)), "event": "died", "feature_names": ("age", "arm")}
    numbers, texts = (ps.HazardSchema(3, 2.0, transform=each, **told) for each in (maps, (levels, *maps)))
    coded = frame.assign(arm=arm, died=died)
    said = frame.assign(arm=np.array(["placebo", "drug"])[arm], died=np.array(["alive", "dead"])[died])
    assert sums(measured(numbers, coded)) == sums(measured(texts, said))
    by = [measured(each.counted("arm"), table) for each, table in ((numbers, coded), (texts, said))]
    assert np.array_equal(by[0].T, by[1].T)
    said.loc[0, "arm"] = "unknown"
    with pytest.warns(UnreadableRecordsWarning, match="'arm': 1 hold none of the values"):
        left = ps.measure(
            texts, said, published=Published.of({"w": Values.rounded(np.full(4, 0.1))}), unreadable="leave out"
        )
    assert left.records == n - 1
