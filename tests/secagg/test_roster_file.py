"""The file of a roster: everything comes back, everything else is one sentence, and the digits that people compare."""

import hashlib
import re
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.errors import LocalProtocolError
from privstats.secagg import Roster
from privstats.secagg.roster_file import _MAX_BYTES
from privstats.secagg.upload.parameters import MAX_CLIENTS
from tests.secagg.interactive.cohorts import stream

SERVER = b"s" * 32
KEYS = tuple(bytes([place]) * 32 for place in range(1, 4))
NAMES = ("Bonn", "St. Mary", 'Köln "Süd" \\')
RANDOM = Roster(KEYS, server=SERVER, run=b"r" * 16, names=NAMES)
NUMBERED = Roster.numbered(KEYS, server=SERVER, label="study", counter=2, names=NAMES)
TEXT = RANDOM.to_toml()
HEAD = TEXT.partition("[[client]]")[0]


@given(
    publics=st.lists(
        st.binary().map(lambda drawn: hashlib.sha256(drawn).digest()), min_size=1, max_size=5, unique=True
    ),
    run=st.one_of(st.binary(max_size=64), st.tuples(st.text(min_size=1, max_size=9), st.integers(0, 2**63 - 1))),
    named=st.booleans(),
)
def test_every_roster_comes_back_from_its_text(publics, run, named) -> None:
    names = tuple(f"party {place}" for place in range(len(publics))) if named else ()
    server = hashlib.sha256(b"".join(publics)).digest()
    if isinstance(run, bytes):
        roster = Roster(publics, server=server, run=run, names=names)
    else:
        try:
            roster = Roster.numbered(publics, server=server, label=run[0], counter=run[1], names=names)
        except LocalProtocolError:  # a lone surrogate
            return
    again = Roster.from_toml(roster.to_toml())
    assert again == roster
    assert (again.label, again.counter, again.digest) == (roster.label, roster.counter, roster.digest)


@pytest.mark.parametrize("roster", [RANDOM, NUMBERED], ids=["random", "numbered"])
def test_a_roster_comes_back_from_its_file(tmp_path, roster) -> None:
    path = tmp_path / "roster.toml"
    roster.save(path)
    assert Roster.load(path) == roster
    path.write_text("\ufeff" + path.read_text("utf-8"), "utf-8")
    assert Roster.load(str(path)) == roster


@pytest.mark.parametrize("name", ["roster.toml", "roster.bin"])
def test_a_file_has_every_field_of_a_roster(tmp_path, name) -> None:
    unset = [each.name for each in fields(NUMBERED) if getattr(NUMBERED, each.name) == each.default]
    assert unset == [], "give NUMBERED another value there"
    NUMBERED.save(tmp_path / name)
    again = Roster.load(tmp_path / name)
    for each in fields(Roster):
        assert getattr(again, each.name) == getattr(NUMBERED, each.name)


def test_a_numbered_rosters_file_cannot_name_its_run() -> None:
    assert "run" not in NUMBERED.to_toml()
    with pytest.raises(LocalProtocolError, match="the roster has unknown keys 'run'; remove them"):
        Roster.from_toml(NUMBERED.to_toml().replace("counter", 'run = "00"\ncounter'))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"bytes", "Roster.from_toml needs the text of a roster, got bytes"),
        ("= 3", "the roster is not TOML: "),
        ("a = " + "[" * 5000, "the roster is not TOML: "),
        ("", "the roster's version must be 1, got None; write it anew with `privstats roster make`"),
        (TEXT.replace("version = 1", "version = true"), "the roster's version must be 1, got True"),
        (TEXT.replace("version = 1", "version = 2"), "the roster's version must be 1, got 2"),
        (TEXT.replace("server", "sever"), "the roster lacks server"),
        (TEXT.replace("run", "panel = []\nrun"), "the roster has unknown keys 'panel'; remove them"),
        (TEXT.replace('run = "', 'run = "xx'), "run must be a text of hexadecimal digits"),
        (TEXT.replace('server = "', 'server = "00'), "the server's key on a roster must be 32 bytes, got 33"),
        (re.sub(r"server = .*", "server = 5", TEXT), "server must be a text of hexadecimal digits"),
        (HEAD + "client = 5", "client must be a list of tables: write [[client]] over each client's key and name"),
        (HEAD + "client = [5]", "client must be a list of tables"),
        (TEXT.replace("0101", "01", 1), "every public key on a roster must be 32 bytes, got 31"),
        (TEXT.replace("02" * 32, "zz" * 32), "the key of client 1 must be a text of hexadecimal digits"),
        (TEXT.replace("01" * 32, "02" * 32), "a roster must not list one public key twice"),
        (TEXT.replace("01" * 32, SERVER.hex()), "the server must not be one of the roster's clients"),
        (TEXT.replace('name = "Bonn"', ""), "client 0 lacks name"),
        (TEXT.replace("name = ", "city = "), "client 0 has unknown keys 'city'; remove them"),
        (TEXT.replace("St. Mary", "Bonn"), "must not give two clients one name"),
        (TEXT.replace("St. Mary", ""), "a client's name has 1 to 64 printable characters"),
        (TEXT.replace("St. Mary", r"a\nb"), "a client's name has 1 to 64 printable characters"),
        (TEXT.replace('"St. Mary"', "5"), "a client's name has 1 to 64 printable characters"),
        (NUMBERED.to_toml().replace("counter = 2", "counter = true"), "integer number of earlier runs, got bool"),
        (NUMBERED.to_toml().replace("counter = 2", 'counter = "2"'), "integer number of earlier runs, got str"),
        (NUMBERED.to_toml().replace("counter = 2", ""), "the roster lacks counter"),
        (NUMBERED.to_toml().replace('"study"', "5"), "label must have 1 to 255 bytes"),
    ],
)
def test_a_text_that_is_no_roster_is_one_sentence(text, sentence: str) -> None:
    with pytest.raises(LocalProtocolError, match=re.escape(sentence)):
        Roster.from_toml(text)


def test_a_file_that_is_no_roster_is_one_sentence(tmp_path) -> None:
    path = tmp_path / "roster.toml"
    path.write_bytes(b"\xff\xfe")
    for wrong, sentence in (
        (path, "is not UTF-8 text; give a file written by privstats roster make"),
        (tmp_path / "missing", "cannot read .*missing: No such file"),
        (tmp_path, "Is a directory"),
        (5, "Roster.load needs the path of a roster's file, got int"),
        ("a\0b", "must not hold a null character"),
    ):
        with pytest.raises(LocalProtocolError, match=sentence):
            Roster.load(wrong)
    with path.open("wb") as file:
        file.truncate(_MAX_BYTES + 1)
    with pytest.raises(LocalProtocolError, match="bytes, which no roster has"):
        Roster.load(path)


@pytest.mark.parametrize("character", ["x", "ü", "\U00020000", '"', "\\"])
def test_as_many_clients_as_a_protocol_takes_fit_into_a_file_with_the_longest_names(character: str) -> None:
    """A limit of 64 MiB refused what ``to_toml`` had written from 790,000 clients on."""
    name = 60 * character
    few, more = (
        len(Roster(KEYS[:count], server=SERVER, names=[f"{k:04}{name}" for k in range(count)]).to_toml().encode())
        for count in (1, 2)
    )
    assert few + MAX_CLIENTS * (more - few) <= _MAX_BYTES


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("abc", "names must be a list of texts, one per client, got str"),
        (5, "names must be a list of texts, one per client, got int"),
        (("a", "b"), "the roster has 3 clients and 2 names"),
        (("a", "b", "b"), "must not give two clients one name"),
        (("a", "b", "x" * 65), "1 to 64 printable characters"),
        (("a", "b", b"c"), "1 to 64 printable characters"),
    ],
)
def test_names_are_one_per_client_printable_and_different(names, sentence: str) -> None:
    with pytest.raises(LocalProtocolError, match=sentence):
        Roster(KEYS, server=SERVER, names=names)


def test_names_are_for_people_and_in_no_digest() -> None:
    unnamed = Roster(KEYS, server=SERVER, run=RANDOM.run)
    assert (unnamed.digest, unnamed.fingerprint) == (RANDOM.digest, RANDOM.fingerprint)
    assert (unnamed.called(1), RANDOM.called(1)) == ("1", "1 (St. Mary)")
    assert Roster(KEYS, server=SERVER, names=iter(NAMES)).names == NAMES


def test_a_fingerprint_is_thirty_digits_of_scrypt_over_the_digest() -> None:
    wide = hashlib.scrypt(RANDOM.digest, salt=b"privstats roster fingerprint", n=2**14, r=8, p=1, dklen=32)
    digits = str(int.from_bytes(wide, "big"))[-30:]
    assert RANDOM.fingerprint.replace(" ", "") == digits
    assert re.fullmatch(r"\d{5}( \d{5}){5}", RANDOM.fingerprint)
    others = {Roster(KEYS[::-1], server=SERVER, run=RANDOM.run), Roster(KEYS, server=SERVER), RANDOM.renewed()}
    assert len({roster.fingerprint for roster in others} | {RANDOM.fingerprint}) == 4


def test_renewing_names_the_next_run_and_keeps_everybody() -> None:
    following = NUMBERED.renewed()
    assert following == Roster.numbered(KEYS, server=SERVER, label="study", counter=3, names=NAMES)
    other = RANDOM.renewed(stream("renewed"))
    assert (other.members, other.names, len(other.run)) == (RANDOM.members, NAMES, 16)
    assert other.run not in (RANDOM.run, RANDOM.renewed().run)
    with pytest.raises(LocalProtocolError, match="got 3: give os.urandom"):
        RANDOM.renewed(lambda size: b"abc")
    with pytest.raises(LocalProtocolError, match="from 0 to 2"):
        Roster.numbered(KEYS, server=SERVER, label="study", counter=2**64 - 1).renewed()


@pytest.mark.parametrize("roster", [RANDOM, NUMBERED, Roster(KEYS, server=SERVER)], ids=["random", "numbered", "bare"])
def test_a_roster_comes_back_from_its_binary_file(tmp_path, roster) -> None:
    path = tmp_path / "roster.bin"
    roster.save(path)
    again = Roster.load(path)
    assert (again, again.label, again.counter) == (roster, roster.label, roster.counter)
    assert again.digest == roster.digest
    assert len(path.read_bytes()) < len(roster.to_toml()) + 100
    assert Roster.load(path.rename(tmp_path / "roster.toml")) == roster


def test_no_changed_or_lost_byte_of_a_binary_roster_is_read(tmp_path) -> None:
    path = tmp_path / "roster.bin"
    NUMBERED.save(path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        for content in (bytes(changed), whole[:at]):
            path.write_bytes(content)
            with pytest.raises(LocalProtocolError):
                Roster.load(path)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("clients = 4", "damaged"),
        ("clients = -1", "damaged"),
        ("clients = true", "damaged"),
        ("clients = 3\nx = 1", "unknown keys 'x'"),
        ("", "lacks clients"),
        ("clients = 3\nversion = 2", "not TOML|version"),
    ],
)
def test_a_binary_roster_that_no_version_wrote_is_one_sentence(tmp_path, head: str, said: str) -> None:
    """Its checksum is no signature: anybody can make a whole file."""
    text = f'version = 1\nrun = ""\nserver = "{SERVER.hex()}"\n{head}\n'.encode()
    content = b"\x93privstats roster 1\n" + len(text).to_bytes(4, "big") + text + b"".join(KEYS)
    path = tmp_path / "roster.bin"
    path.write_bytes(content + hashlib.sha256(content).digest())
    with pytest.raises(LocalProtocolError, match=said):
        Roster.load(path)


@pytest.mark.nightly
def test_a_roster_of_a_million_is_read_as_it_was_written(tmp_path) -> None:
    keys = [hashlib.sha256(place.to_bytes(4, "big")).digest() for place in range(1_000_000)]
    roster = Roster(keys, server=SERVER, run=b"r" * 16)
    roster.save(tmp_path / "roster.bin")
    assert (tmp_path / "roster.bin").stat().st_size < 32_001_000
    assert Roster.load(tmp_path / "roster.bin") == roster
