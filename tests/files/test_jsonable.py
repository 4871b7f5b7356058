"""Documents are JSON to the strictest reader, whatever numbers are in them."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from privstats.files.jsonable import json_text, json_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_every_document_is_read_by_a_reader_that_knows_no_infinity(document):
    def refuse(word):
        raise AssertionError(word)

    assert json.loads(json_text(document), parse_constant=refuse) == json_value(document)


def test_null_stands_for_numbers_that_json_cannot_hold_however_deep_they_are():
    assert json_value({"a": (math.inf, [-math.inf, {"b": math.nan}]), "c": 0.5}) == {
        "a": [None, [None, {"b": None}]],
        "c": 0.5,
    }
