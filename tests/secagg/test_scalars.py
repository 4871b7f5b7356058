"""Scalars have one encoding; ``test_shamir.py`` computes with them."""

import pytest

from privstats.secagg.scalars import ORDER, scalar_of, to_bytes


@pytest.mark.parametrize("number", [ORDER, 2**255, 2**256 - 1])
def test_a_number_has_one_form(number: int) -> None:
    assert scalar_of(to_bytes(ORDER - 1)) == ORDER - 1
    with pytest.raises(ValueError, match="not below the order"):
        scalar_of(to_bytes(number))
