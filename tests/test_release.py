"""A release file holds together or is refused with one sentence."""

import json
import os
import struct
import tracemalloc
from dataclasses import fields, replace

import numpy as np
import pytest

import privstats as ps
from privstats.files.envelope import Content
from privstats.randomness import seeded
from privstats.release_file import FORMAT, _Manifest
from tests import made
from tests.schema.changed import change_kind


@pytest.fixture(scope="module")
def release():
    plan = made.plan(
        ps.ClassSchema(classes=3, features=4, statistics="NABD", clip_norm=2.0),
        ps.Cohort(clients=4, min_survivors=3, max_records=200),
        made.promise("distributed", epsilon=2.0),
    )
    return released(plan)


@pytest.fixture
def layered(release):
    """Of a plan whose clients take excess noise back."""
    return released(replace(release.plan, excess_noise="removed"))


def released(plan):
    rng = np.random.default_rng(0)
    shards = [(rng.normal(size=(20, 4)), rng.integers(0, 3, 20)) for _ in range(4)]
    return ps.simulate(plan, shards, rng=seeded(1))


def test_a_release_survives_its_file(release, tmp_path):
    release.save(tmp_path / "r")
    again = ps.Release.load(tmp_path / "r")
    assert again == release
    assert again.sigma == release.sigma
    np.testing.assert_array_equal(again.moments.B, release.moments.B)


def other(release, field):
    """The same release but for one field."""
    values = {
        "plan": replace(release.plan, min_count=3),
        "vector": release.vector + 1,
        "survivors": (0, 1, 2),
        "suppressed": (1,),
        "reproducible": False,
        "left_for": (4, 4, 3, 4),
        "run": b"may",
        "position": ps.release.Position("c0" * 32, "round", 1, 9.0, 9.5),
    }
    vector = dropped(release) if field == "suppressed" else release.vector
    return replace(release, **{"vector": vector, field: values[field]})


def dropped(release):
    """The sums without those of class 1."""
    vector, classes = release.vector.copy(), release.plan.schema.classes
    for segment, place in zip(release.plan.layout.segments, release.plan.layout.slices, strict=True):
        if not segment.pooled:
            vector[place].reshape(classes, -1)[1] = 0
    return vector


COMPARED = [each.name for each in fields(ps.Release) if each.compare]


@pytest.mark.parametrize("field", COMPARED)
def test_every_field_is_compared_named_and_kept(release, layered, tmp_path, field):
    """Comparison, digest, manifest and reader list the fields one by one: one that they lack would be lost unseen."""
    release = layered if field == "left_for" else release
    changed = other(release, field)
    assert changed != release
    assert changed.digest != release.digest
    changed.save(tmp_path / "r")
    again = ps.Release.load(tmp_path / "r")
    for name in COMPARED:
        np.testing.assert_array_equal(getattr(again, name), getattr(changed, name))


def test_a_release_knows_the_version_that_wrote_its_file(release, tmp_path):
    release.save(tmp_path / "r")
    again = ps.Release.load(tmp_path / "r")
    assert (release.written_by, again.written_by) == ("", ps.__version__)
    assert (again, again.digest) == (release, release.digest)


@pytest.mark.parametrize("field", [name for name in _Manifest.__struct_fields__ if name != "privstats"])
def test_no_field_of_a_manifest_can_be_edited_unseen(release, layered, tmp_path, field):
    """But for the version that wrote it, of which only a page's sentence on recordings follows."""
    release = layered if field == "left_for" else release
    values = {
        "plan": other(release, "plan").plan.to_toml(),
        "plan_digest": "00",
        "survivors": [0, 1, 2],
        "suppressed": [1],
        "sigma": {},
        "epsilon": 0.1,
        "delta": 0.5,
        "mu": None,
        "reproducible": False,
        "left_for": [4, 4, 3, 4],
        "run": "6d6179",
        "position": {"course": "c0" * 32, "step": "round", "place": 1, "spent": 9.0, "mu": 9.5},
    }
    path = tmp_path / "r"
    release.save(path)
    rewrite(path, edit_manifest(**{field: values[field]}))
    try:
        digest = ps.Release.load(path).digest
    except ps.ReleaseError:
        return
    assert digest != release.digest


def test_a_release_under_shares_with_rounded_decimals_survives_its_file(tmp_path):
    """Divided by their sum once more, such shares change in the last bit, and with them the digest in the file."""
    privacy = made.promise(epsilon=2.0, shares={"N": 0.336012, "A": 0.124643, "B": 0.539344})
    plan = made.plan(ps.ClassSchema(3, 4, "NAB", 1.0), ps.Cohort(3, 3, 200), privacy)
    release = ps.session.aggregate_unmasked(plan, [plan.ring.zeros()] * 3, seeded(1))
    release.save(tmp_path / "r")
    assert ps.Release.load(tmp_path / "r") == release


def test_a_release_is_immutable_and_tells_what_it_is(release):
    with pytest.raises(ValueError, match="read-only"):
        release.vector[0] = 1
    assert "survivors=4" in repr(release)
    assert release != "a release"
    with pytest.raises(TypeError):
        hash(release)


def test_a_file_that_is_no_release_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are not the bytes you are looking for")
    with pytest.raises(ps.ReleaseError, match="is not a privstats release"):
        ps.Release.load(path)
    with pytest.raises(ps.ReleaseError, match="cannot read .*No such file"):
        ps.Release.load(tmp_path / "nothing")


def test_what_is_no_plain_file_is_refused(tmp_path, release):
    with pytest.raises(ps.ReleaseError, match="not a plain file"):
        ps.Release.load("/dev/zero")
    with pytest.raises(ps.ReleaseError, match="null character"):
        ps.Release.load("r\0")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ps.ReleaseError, match="not a plain file"):
        ps.Release.load(tmp_path / "pipe")


def test_attack_a_file_is_no_larger_than_its_plan_allows_whatever_its_holes_claim(tmp_path, release):
    """Five GB that no disk holds took 21 GB of memory, before the plan was looked at."""
    release.save(tmp_path / "r")
    size, claimed = (tmp_path / "r").stat().st_size, 5 << 30
    with (tmp_path / "r").open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["vector"] |= {"shape": [claimed // 8], "data_offsets": [0, claimed]}
        text = json.dumps(header).encode()
        file.seek(0)
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + claimed)
    tracemalloc.start()
    with pytest.raises(ps.ReleaseError, match="has more than .* bytes"):
        ps.Release.load(tmp_path / "r")
    assert tracemalloc.get_traced_memory()[1] < (16 << 20) + 100 * size
    tracemalloc.stop()


def rewrite(path, change):
    """Edit the header the way a careful forger would: the checksum is made to fit."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    tensors = data[8 + length :]
    meta = header["__metadata__"]
    change(meta)
    content = Content(meta["manifest"].encode(), {"vector": np.frombuffer(tensors, "<i8").astype(np.int64)})
    meta["sha256"] = FORMAT.checksum(content)
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + tensors)


def edit_manifest(**changes):
    def change(meta):
        meta["manifest"] = json.dumps({**json.loads(meta["manifest"]), **changes})

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit_manifest(epsilon=0.1), "claims a digest or a budget"),
        (edit_manifest(mu=None), "claims a digest or a budget"),
        (edit_manifest(plan_digest="00"), "claims a digest or a budget"),
        (edit_manifest(sigma={"N": 0.0, "A": 0.0, "B": 0.0, "D": 0.0}), "claims classes or noise"),
        (edit_manifest(survivors=[0, 1, 2]), "claims classes or noise"),
        (edit_manifest(survivors=[0, 1, 2, 2]), "does not hold together: survivors must be"),
        (edit_manifest(survivors=[0, 1, 2, 9]), "does not hold together: survivors must be"),
        (edit_manifest(suppressed=[7]), "claims classes or noise"),
        (edit_manifest(suppressed=[1, 1]), "claims classes or noise"),
        (edit_manifest(suppressed=[2, 1]), "claims classes or noise"),
        (edit_manifest(suppressed=[1]), "holds sums of a class that it calls suppressed"),
        (edit_manifest(plan="version = 1"), "does not hold together"),
        (edit_manifest(extra=1), "does not hold together"),
        (lambda meta: meta.update(version="99"), "has release format '99'"),
        (lambda meta: meta.update(format="something-else"), "is not a privstats release"),
    ],
)
def test_a_manifest_that_contradicts_its_plan_is_refused(release, tmp_path, change, message):
    path = tmp_path / "r"
    release.save(path)
    rewrite(path, change)
    with pytest.raises(ps.ReleaseError, match=message):
        ps.Release.load(path)


def test_a_release_with_another_versions_noise_is_refused_and_names_it(tmp_path, monkeypatch):
    """Counts next to numbers of averaged persons had up to a third more noise, under the same digest of the plan."""
    schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),), numbers=(ps.Number("hours", 0, 80),))
    promise = made.promise(adjacency="replace-one", unit="person", person_clip="average")

    def planned():
        return made.plan(schema, ps.Cohort(3, 3, 200), promise)

    with monkeypatch.context() as patch:
        change_kind(patch, "counts", nearer=lambda _: False)
        patch.setattr("privstats.release_file.__version__", "0.1.9")
        plan = planned()
        release = ps.session.aggregate_unmasked(plan, [plan.ring.zeros()] * 3, seeded(1))
        release.save(tmp_path / "r")
    now = ps.Release(planned(), release.vector, (0, 1, 2))
    assert now.plan.digest == plan.digest
    assert all(now.sigma[letter] < release.sigma[letter] for letter in now.sigma)
    with pytest.raises(
        ps.ReleaseError, match=r"classes or noise that its own plan does not give.*with version 0\.1\.9"
    ):
        ps.Release.load(tmp_path / "r")


@pytest.mark.parametrize(("moved", "read"), [(1e-12, True), (1e-8, False)])
def test_the_last_digits_of_a_noise_level_may_be_of_another_version(release, tmp_path, moved, read):
    """Noise of central and local plans was smaller by 1e-12 before it had a margin; their files stay good."""
    path = tmp_path / "r"
    release.save(path)
    levels = {name: level * (1 - moved) for name, level in release.sigma.items()}
    rewrite(path, edit_manifest(sigma=levels, mu=release.budget.mu * (1 + moved)))
    if read:
        assert ps.Release.load(path).plan == release.plan
    else:
        with pytest.raises(ps.ReleaseError, match="claims a digest"):
            ps.Release.load(path)


@pytest.mark.parametrize(
    "schema", [ps.ClassSchema(3, 4, "NAB", 2.0), ps.RidgeSchema(4, clip_norm=2.0, target_bound=1.0)]
)
@pytest.mark.parametrize("noisy", [False, True])
def test_sums_that_the_plans_ring_cannot_hold_are_refused_and_all_others_read(schema, noisy, tmp_path):
    """A forged vector of 2**62 loaded, although no session under its plan can have that sum."""
    privacy = made.promise(epsilon=2.0) if noisy else ps.NoPrivacy()
    plan, path = made.plan(schema, ps.Cohort(2, 2, 50), privacy), tmp_path / "r"
    vector = np.zeros(plan.layout.size, np.int64)
    for room, place in zip(plan.headroom, plan.layout.slices, strict=True):
        limit = 1 << (room.bits - 1)
        for value, read in ((limit - 1, True), (-limit, True), (limit, False), (-limit - 1, False), (-(2**63), False)):
            sums = vector.copy()
            sums[place.stop - 1] = value
            assert (plan.ring.encode(sums).lift() == sums).all() == read  # what a session's lift returns
            ps.Release(plan, sums, (0, 1)).save(path)
            if read:
                assert (ps.Release.load(path).vector == sums).all()
                continue
            with pytest.raises(ps.ReleaseError, match=f"sums of {room.segment.name} that need more than"):
                ps.Release.load(path)


def test_tensors_of_another_kind_are_refused(release, tmp_path):
    from safetensors.numpy import save

    path = tmp_path / "r"
    vector = np.zeros(3, np.int64)
    for tensors in ({"vector": vector.astype(np.float32)}, {"vector": vector[None]}, {"v": vector}, {}):
        meta = {"format": "privstats-release", "version": "3", "manifest": "{}"}
        path.write_bytes(save(tensors, metadata={**meta, "sha256": FORMAT.checksum(Content(b"{}", tensors))}))
        with pytest.raises(ps.ReleaseError, match="one int64 vector"):
            ps.Release.load(path)


def test_a_release_of_fewer_clients_than_a_list_needs_is_refused() -> None:
    """On random graphs a list needs more clients than the sum, so no session releases a shorter one."""
    cohort = ps.Cohort(300, 275, 5_000, colluders=3)
    plan = made.plan(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), cohort)
    sums = np.zeros(plan.layout.size, np.int64)
    assert len(ps.Release(plan, sums, tuple(range(296))).survivors) == 296
    with pytest.raises(ps.ReleaseError, match="survivors must be at least 296 different clients"):
        ps.Release(plan, sums, tuple(range(295)))


@pytest.mark.parametrize("survivors", [(), (0, 1), (0, 0, 0), (0, 1, 9), (-1, 0, 1)])
def test_nothing_is_a_release_with_fewer_survivors_than_the_promise_rests_on(release, survivors):
    with pytest.raises(ps.ReleaseError, match="survivors must be at least 3"):
        ps.Release(release.plan, release.vector, survivors)
    with pytest.raises(ps.ReleaseError, match="survivors must be at least 3"):
        ps.session.release(release.plan, release.plan.ring.zeros(), survivors, charge="uncharged")


def test_a_vector_of_the_wrong_size_is_refused(release):
    with pytest.raises(ps.ReleaseError, match="holds int64 of shape"):
        ps.Release(release.plan, np.zeros(3, np.int64), (0, 1, 2))


@pytest.mark.parametrize(
    ("schema", "targets"),
    [
        (ps.ClassSchema(3, 4, "NAB", 2.0), [0, 1, 2] * 3),
        (ps.RidgeSchema(4, clip_norm=2.0, target_bound=1.0), [0.5] * 9),
    ],
)
def test_exact_moments_are_a_release_without_noise(schema, targets):
    moments = ps.measure(schema, np.ones((9, 4)), targets)
    release = ps.Release.exact(schema, moments)
    assert np.array_equal(release.vector, ps.encoding.flatten(moments))
    assert set(release.sigma.values()) == {0.0}
    assert release.plan.cohort.max_records == 9


def test_exact_moments_of_another_schema_or_of_nothing_are_no_release():
    schema = ps.ClassSchema(3, 4, "NAB", 2.0)
    some = ps.measure(schema, np.ones((9, 4)), [0, 1, 2] * 3)
    with pytest.raises(ps.ReleaseError, match="another schema"):
        ps.Release.exact(ps.ClassSchema(3, 4, "NAB", 3.0), some)
    with pytest.raises(ps.ReleaseError, match="no record"):
        ps.Release.exact(schema, ps.measure(schema, np.ones((0, 4)), np.zeros(0, int)))


def test_a_release_made_with_a_reproducible_generator_says_so_for_ever(release, tmp_path):
    assert release.reproducible
    assert "REPRODUCIBLE NOISE" in repr(release)
    release.save(tmp_path / "r")
    assert ps.Release.load(tmp_path / "r").reproducible


def test_a_release_with_secret_noise_and_its_file_are_as_they_were(release, tmp_path):
    secret = ps.Release(release.plan, release.vector, release.survivors)
    assert "REPRODUCIBLE" not in repr(secret)
    assert secret != release
    secret.save(tmp_path / "r")
    assert b"reproducible" not in (tmp_path / "r").read_bytes()
    assert not ps.Release.load(tmp_path / "r").reproducible


def test_without_noise_there_is_nothing_that_a_seed_could_take_off(release):
    import dataclasses

    plan = dataclasses.replace(release.plan, privacy=ps.NoPrivacy())
    empty = [(np.zeros((0, 4)), np.zeros(0, np.int64))] * 4
    assert not ps.simulate(plan, empty, rng=seeded(1)).reproducible
