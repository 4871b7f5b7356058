"""The transcript: every client computes the same root from its own part, and from nothing else."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.secagg.transcript import MerkleTree, root_of
from privstats.secagg.wire import Refusal


def leaf(place: int) -> bytes:
    return hashlib.sha256(bytes([place])).digest()


trees = st.integers(1, 70).flatmap(
    lambda size: st.tuples(st.just(size), st.frozensets(st.integers(0, size - 1), min_size=1)).flatmap(
        lambda case: st.tuples(
            st.just(case[0]), st.just(case[1]), st.frozensets(st.sampled_from(sorted(case[1])), min_size=1)
        )
    )
)


@given(trees)
def test_any_part_with_its_proof_gives_the_root_of_the_whole(case) -> None:
    size, present, known = case
    leaves = {place: leaf(place) for place in present}
    tree = MerkleTree(leaves, size)
    assert root_of({place: leaves[place] for place in known}, size, tree.proof(known)) == tree.root


@given(trees, st.data())
def test_any_other_leaf_or_proof_gives_another_root(case, data) -> None:
    size, present, known = case
    leaves = {place: leaf(place) for place in present}
    tree = MerkleTree(leaves, size)
    part, proof = {place: leaves[place] for place in known}, tree.proof(known)
    other = dict(part) | {data.draw(st.sampled_from(sorted(known))): b"!" * 32}
    assert root_of(other, size, proof) != tree.root
    if proof:
        at = data.draw(st.integers(0, len(proof) - 1))
        assert root_of(part, size, proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :]) != tree.root
        with pytest.raises(Refusal, match="wrong_length"):
            root_of(part, size, proof[:-1])
    with pytest.raises(Refusal, match="wrong_length"):
        root_of(part, size, proof + b"!")


def test_a_place_without_an_advertisement_differs_from_one_with() -> None:
    roots = {MerkleTree({place: leaf(9) for place in places}, 4).root for places in ((), (0,), (1,), (0, 1), (0, 1, 2))}
    assert len(roots) == 5
