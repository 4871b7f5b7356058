"""What the library asks of contrib is announced, and is asked for by a sentence where it is not."""

import pytest

from privstats import plug_ins
from privstats.errors import PrivstatsError
from privstats.plug_ins import announced, of_contrib


@pytest.mark.parametrize("name", [entry.name for entry in announced("privstats.contrib")])
def test_what_is_announced_is_there(name: str) -> None:
    assert of_contrib(name, "a test").__module__.startswith("privstats.contrib.")


def test_what_this_installation_does_not_announce_is_named_with_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plug_ins, "announced", lambda group: [])
    with pytest.raises(PrivstatsError, match=r"a collection of Dask needs 'parts' of privstats\.contrib, .* install"):
        of_contrib("parts", "a collection of Dask")
