"""Another machine computes otherwise: what claims the same bits has them, and what does not stays within its bounds."""

from __future__ import annotations

import json
import re

import pytest

from tests.lengths import sized
from tests.numerics.bits import digests
from tests.numerics.kernels import KERNELS, python

RECORDED = {  # on a Haswell kernel; every other machine has to find them too
    "transforms": "b1c1692a984395e58de5101caf221581",
    "norms_and_cosines": "70eed3f560c0efacc0cb8cc7be6906fb",
    "class_sums": "eabe136c700852ecdc24c1447dbbd036",
    "ridge_sums": "9ae8d294640c930b5a89f4de69643149",
    "within_sums": "846a2b23491b6e51218e1bbaf3552b78",
    "directions_of_parties": "a621402b3c0f18873636ddef6a2749cd",
    "updates_of_parties": "ba466233fdd96cc3debe950799839a4d",
    "rounds_of_a_refinement": "8fae8b064cfdc8fafad71480e3c43c10",
    "published_values": "d638f34a381bac100cbec919d0ea8a5e",
    "noise_of_rounded_gaussian": "e8055660d6eaa954dff37850ffa7c70b",
    "noise_of_discrete_gaussian": "d44bf577d98b931834c20e1c3da404d3",
    "noise_of_discrete_laplace": "bc9013818505ce90f183e8739772e97c",
    "weights_of_streams": "1143e272586e3b43e6fa333e8007a093",
    "plans": "d750962d53356b670c6fd22ad7fa8589",
    "pairs_of_synthetic_rows": "68392de68fb5bbcc0a00e5fdeb7459b5",
    "tensors": "ce742b8f7a24835d492b6877a8bd2b71",
    "rounds_of_a_module": "a312e02e92d00932ed6f19e99f8a0df3",
}

FURTHEST = [*KERNELS][-1:]
"""The oldest kernels without vector units: a slice runs the numeric tests under these alone.

They differ most from this processor's own kernels, under which these tests have run with all others.
"""
ROOMS = ("estimates", "heads", "transforms", "moments", "contrib/alignment", "dp")
WHOLE = ("tests/contrib/alignment/test_bures.py", *(f"tests/{room}" for room in ROOMS))


def as_recorded(found: dict[str, str]) -> bool:
    return {name: digest[:32] for name, digest in found.items()} == {name: RECORDED[name] for name in found}


def test_what_claims_the_same_bits_has_them_on_this_machine():
    found = digests()
    assert found.pop("no_claim")
    assert as_recorded(found)


@pytest.mark.nightly
def test_what_claims_the_same_bits_has_them_under_every_kernel():
    found = {}
    for kernel in KERNELS:
        done = python(kernel, "tests.numerics.bits", *(["--torch"] if kernel == "no vector units" else []))
        assert done.returncode == 0, (kernel, done.stderr)
        found[kernel] = json.loads(done.stdout)
    unclaimed = {each.pop("no_claim") for each in found.values()}
    assert len(unclaimed) > 1 or len(KERNELS) < 2  # they are different machines
    assert [kernel for kernel, each in found.items() if not as_recorded(each)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", sized(FURTHEST, [*KERNELS]))
def test_all_numeric_tests_pass_under_every_kernel(kernel):
    done = python(kernel, "pytest", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-seed=0", *WHOLE)
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 100
