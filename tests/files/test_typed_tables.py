"""Tables of a file as a declared type: every setting that does not fit is named, with the remedy."""

from datetime import date, datetime
from typing import Any, Literal

import msgspec
import pytest

from privstats.errors import PlanError
from privstats.files.typed_tables import tables_as, unknown_keys


class Item(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    edges: tuple[float, ...] = ()
    codes: tuple[int | str, ...] = ()


class File(msgspec.Struct, forbid_unknown_fields=True):
    view: str
    first: date | None = msgspec.field(default=None, name="from")
    domain: Literal["drug", "visit"] = "drug"
    days: int = 0
    sex: bool = True
    age: Item | None = None
    items: tuple[Item, ...] = ()
    texts: dict[str, Item] = {}


FIT = {
    "view": "v",
    "from": date(2020, 1, 31),
    "domain": "visit",
    "days": 3,
    "sex": False,
    "age": {"name": "age", "edges": [1, 2.5]},
    "items": [{"name": "a", "codes": [1, "x"]}],
    "texts": {"en": {"name": "b"}},
}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"view": 3}, "view must be a text, got 3; write it in quotes"),
    ({"veiw": "v"}, "the file has unknown keys 'veiw'; did you mean view?"),
    ({"from": 2020}, "from must be a date, got 2020; write it without quotes, such as 2020-01-31"),
    (
        {"from": datetime(2020, 1, 31)},
        "from must be a date, got 2020-01-31T00:00:00; write it without quotes, such as 2020-01-31",
    ),
    ({"domain": "drugs"}, "domain must be one of drug, visit; got 'drugs'"),
    ({"domain": []}, "domain must be one of drug, visit; got []"),
    ({"days": "a year"}, "days must be an integer, got 'a year'; write digits without quotes"),
    ({"days": 3.5}, "days must be an integer, got 3.5; write digits without quotes"),
    ({"days": True}, "days must be an integer, got True; write digits without quotes"),
    ({"sex": "no"}, "sex must be true or false, got 'no'; write it without quotes"),
    ({"sex": 0}, "sex must be true or false, got 0; write it without quotes"),
    ({"age": []}, "age must be a table, got []; write [age]"),
    ({"age": {}}, "age lacks name; add it"),
    ({"age": {"name": "a", "edges": 1}}, "age.edges must be a list, got 1; write it in square brackets"),
    (
        {"items": [{"name": "a"}, {"name": "b", "edges": [1, "2"]}]},
        "item 2 of items.b.edges must be a number, got '2'; write it without quotes, with a decimal point",
    ),
    ({"items": [{"name": "a", "codes": [1.5]}]}, "item 1 of items.a.codes must be an integer or a text, got 1.5"),
    ({"items": [{"name": "a"}, {"edges": []}]}, "items 2 lacks name; add it"),
    ({"items": {"name": "a"}}, "items must be a list, got {'name': 'a'}; write [[items]] for each"),
    ({"items": ["a"]}, "items must hold tables, got 'a'; write [[items]] for each"),
    ({"texts": {"en": "b"}}, "texts.en must be a table, got 'b'; write [texts.en]"),
    ({"texts": {3: {}}}, "names in texts must be texts, got 3; write them in quotes"),
]


def test_what_fits_is_converted() -> None:
    file = tables_as(FIT, File)
    assert (file.view, file.first, file.days, file.sex) == ("v", date(2020, 1, 31), 3, False)
    assert file.items[0].codes == (1, "x")


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=lambda each: str(each)[:40])
def test_what_does_not_fit_is_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PlanError) as refusal:
        tables_as(FIT | change, File)
    assert str(refusal.value) == sentence


def test_a_long_value_is_shortened() -> None:
    with pytest.raises(PlanError, match=r"^view must be a text, got \[0, 0.{0,40}\.\.\.; write it in quotes$"):
        tables_as(FIT | {"view": [0] * 10_000}, File)


def test_a_table_by_itself_is_named() -> None:
    with pytest.raises(PlanError, match=r"^devices.texts must be a table, got 3; write \[devices.texts\]$"):
        tables_as(3, dict[str, Item], "devices.texts")


def test_known_keys_have_no_sentence() -> None:
    assert unknown_keys("cohort", {"clients": 3}, ("clients",)) == ""
    assert unknown_keys("cohort", {"x": 3}, ("clients",)) == "cohort has unknown keys 'x'; the keys are clients"
