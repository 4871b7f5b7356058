"""A word and some bytes through Flower's own records, and what anybody else may put there."""

import os

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from privstats.engines.flower import records
from privstats.errors import RemoteProtocolError


@pytest.mark.parametrize("data", [b"", b"\x00", bytes(range(256)) * 40_000])
def test_a_word_and_its_bytes_come_back_through_flowers_own_form(data):
    record = recorddict_from_proto(recorddict_to_proto(records.pack("step", data)))
    assert records.unpack(record, "server") == ("step", data)


def test_a_small_message_is_two_pieces_and_a_large_one_an_array_that_flower_cuts():
    """Each piece is a request of its own; as bytes in a ConfigRecord, 512 MB took 64.7 s instead of 13.7 s."""
    assert len(get_all_nested_objects(records.pack("step", bytes(1 << 20)))) == 2
    assert len(get_all_nested_objects(records.pack("step", os.urandom((1 << 20) + 1)))) == 4
    (arrays,) = records.pack("step", bytes(12_000_000)).values()
    assert (arrays["step"].dtype, arrays["step"].shape) == ("uint8", (12_000_000,))
    assert len(arrays["step"].slice_array()) == 3


def test_a_small_array_is_read_as_well():
    assert records.unpack(RecordDict({"privstats": ArrayRecord({"step": array()})}), "server") == ("step", b"abc")


def array(**changed):
    fields = {"dtype": "uint8", "shape": (3,), "stype": "privstats.bytes", "data": b"abc"} | changed
    return Array(**fields)


FOREIGN = {
    "nothing": RecordDict(),
    "another name": RecordDict({"weights": ArrayRecord({"step": array()})}),
    "two records": RecordDict({"privstats": ArrayRecord({"step": array()}), "more": ConfigRecord({"a": 1})}),
    "another kind": RecordDict({"privstats": MetricRecord({"step": 1})}),
    "text": RecordDict({"privstats": ConfigRecord({"step": "abc"})}),
    "a list of bytes": RecordDict({"privstats": ConfigRecord({"step": [b"abc"]})}),
    "no bytes": RecordDict({"privstats": ConfigRecord()}),
    "two rows of bytes": RecordDict({"privstats": ConfigRecord({"step": b"abc", "open": b"abc"})}),
    "bytes without a word": RecordDict({"privstats": ConfigRecord({"": b"abc"})}),
    "no array": RecordDict({"privstats": ArrayRecord()}),
    "two arrays": RecordDict({"privstats": ArrayRecord({"step": array(), "open": array()})}),
    "numpy's form": RecordDict({"privstats": ArrayRecord({"step": Array(np.zeros(3, np.uint8))})}),
    "another type": RecordDict({"privstats": ArrayRecord({"step": array(dtype="float64")})}),
    "another shape": RecordDict({"privstats": ArrayRecord({"step": array(shape=(1 << 40,))})}),
    "no word": RecordDict({"privstats": ArrayRecord({"": array()})}),
    "a sentence": RecordDict({"privstats": ArrayRecord({"record 17 has the value 3.14, which is not": array()})}),
}


@pytest.mark.parametrize("record", FOREIGN.values(), ids=FOREIGN)
def test_what_no_party_of_ours_sends_is_malformed(record):
    with pytest.raises(RemoteProtocolError, match="malformed") as caught:
        records.unpack(record, "node st-mary")
    assert caught.value.peer == "node st-mary"
    assert "3.14" not in str(caught.value)


def test_the_size_is_looked_at_before_anything_else():
    with pytest.raises(RemoteProtocolError, match="too_large"):
        records.unpack(RecordDict({"privstats": ArrayRecord({"": array(data=bytes(101), dtype="object")})}), 3, 100)
    with pytest.raises(RemoteProtocolError, match="too_large"):
        records.unpack(RecordDict({"privstats": ConfigRecord({"": bytes(101)})}), 3, 100)
    assert records.unpack(records.pack("ok", bytes(100)), 3, 100) == ("ok", bytes(100))


@pytest.mark.parametrize("data", [b"", b"x", bytes(1 << 21)])
def test_flowers_own_mods_can_count_what_a_message_holds(data):
    """``message_size_mod`` raises on an empty value of a ConfigRecord, and a reply that raises is asked for again."""
    assert sum(record.count_bytes() for record in records.pack("over", data).values()) >= len(data)
