"""Seconds are added up by name, also of what failed."""

import pytest

from privstats.stopwatch import Stopwatch


def test_parts_of_one_name_add_up_in_order_and_a_failure_counts():
    ticks = iter([0.0, 1.0, 1.0, 3.0, 10.0, 14.0])
    watch = Stopwatch(lambda: next(ticks))
    for name in ("read", "write"):
        with watch.timing(name):
            pass
    with pytest.raises(KeyError), watch.timing("read"):
        raise KeyError
    assert list(watch.seconds.items()) == [("read", 5.0), ("write", 2.0)]
