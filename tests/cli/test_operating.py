"""What an operator does: identities, rosters, ledgers and releases, from the first key to a verified file."""

import dataclasses
import inspect
import json
import re
import stat
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import privstats as ps
from privstats import dp
from privstats.cli.ledger import history
from privstats.cli.parts import verifying as passphrases
from privstats.cli.parts.party_facts import standing
from privstats.dp.ledger.rules import room
from privstats.printable import at_most
from privstats.secagg import Identity, Roster
from tests.ledger.test_book import no_file_may_grow_beyond
from tests.made import refused

PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
PLAN = ps.Plan(schema=ps.ClassSchema(2, 3, "NAB", 4.0), cohort=ps.Cohort(3, 2, 99), privacy=PRIVACY)
CLIENTS = {"Bonn": b"\1" * 32, "St. Mary": b"\2" * 32, "Ulm": b"\3" * 32}
SERVER = Identity(b"\4" * 32)


@pytest.fixture
def run(privstats, tmp_path):
    """A command in a folder with everybody's public keys and the plan; it must end well, or as ``code`` says."""
    for name, private in CLIENTS.items():
        (tmp_path / f"{name}.pub").write_text(Identity(private).public_pem)
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())

    def run(*words: str, code: int = 0):
        return privstats(*words, cwd=tmp_path, code=code)

    return run


def made(run, *words: str):
    clients = [f"{name}={name}.pub" for name in CLIENTS]
    return run("roster", "make", "roster.toml", "--label", "study", "--server", SERVER.public.hex(), *clients, *words)


def test_a_new_identity_is_a_file_of_ones_own_and_a_key_for_everybody(run, tmp_path):
    done = run("identity", "new", "me.pem")
    me = Identity.load(tmp_path / "me.pem")
    assert done.stdout.strip() == me.public.hex() == run("identity", "show", "me.pem").stdout.strip()
    assert run("identity", "show", "me.pem", "--pem").stdout == me.public_pem
    assert (tmp_path / "me.pub").read_text() == me.public_pem
    assert stat.S_IMODE((tmp_path / "me.pem").stat().st_mode) == 0o600
    shown = json.loads(run("identity", "show", "me.pub", "--json").stdout)
    assert shown == {"public": me.public.hex(), "pem": me.public_pem}
    (tmp_path / "me.pub").unlink()
    assert "me.pem exists" in run("identity", "new", "me.pem", code=2).stderr
    assert not (tmp_path / "me.pub").exists()


@pytest.mark.parametrize("name", ["other.pem", "other.pub"])
def test_a_public_key_that_is_there_is_not_replaced(run, tmp_path, name):
    (tmp_path / "other.pub").write_text("somebody's")
    assert "the public key would go to other.pub, which exists" in run("identity", "new", name, code=2).stderr
    assert (tmp_path / "other.pub").read_text() == "somebody's"
    assert not (tmp_path / "other.pem").exists()


@pytest.mark.ci
def test_a_locked_identity_asks_for_its_passphrase(run, tmp_path, monkeypatch):
    asked = []

    def prompt(text, **options):
        asked.append(options.get("confirmation_prompt", False))
        assert options["hide_input"]
        return "correct horse"

    monkeypatch.setattr(passphrases.typer, "prompt", prompt)
    monkeypatch.setattr(passphrases.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    run("identity", "new", "me.pem", "--locked")
    me = Identity.load(tmp_path / "me.pem", "correct horse")
    assert (run("identity", "show", "me.pem").stdout.strip(), asked) == (me.public.hex(), [True, False])
    (tmp_path / "words").write_text("correct horse\nanother line\n")
    assert run("identity", "show", "me.pem", "--passphrase-file", "words").stdout.strip() == me.public.hex()
    run("identity", "new", "other.pem", "--passphrase-file", "words")
    assert Identity.load(tmp_path / "other.pem", "correct horse").public != me.public
    (tmp_path / "words").write_text("\ncorrect horse")
    assert "is empty" in run("identity", "show", "me.pem", "--passphrase-file", "words", code=2).stderr
    assert len(asked) == 2


def test_where_nobody_can_be_asked_a_file_is_wanted(run, tmp_path):
    done = run("identity", "new", "me.pem", "--locked", code=2)
    assert "there is no terminal to ask for the passphrase; pass --passphrase-file" in done.stderr
    assert not (tmp_path / "me.pem").exists()
    (tmp_path / "words").write_text("correct horse")
    run("identity", "new", "me.pem")
    done = run(
        "identity", "lock", "me.pem", "--passphrase-file", "words", code=2
    )  # which unlocks, and it is not locked
    assert "pass --new-passphrase-file" in done.stderr
    run("identity", "lock", "me.pem", "--new-passphrase-file", "words")
    (tmp_path / "no.key").write_text("-")
    assert "terminal" not in run("identity", "lock", "no.key", code=2).stderr


def test_a_roster_is_made_shown_and_renewed(run, tmp_path):
    fingerprint = made(run, "--plan", "plan.toml").stdout.strip()
    roster = Roster.load(tmp_path / "roster.toml")
    publics = [Identity(private).public for private in CLIENTS.values()]
    assert roster == Roster.numbered(publics, server=SERVER.public, label="study", counter=0, names=tuple(CLIENTS))
    assert fingerprint == roster.fingerprint
    shown = run("roster", "show", "roster.toml", "--plan", "plan.toml").stdout
    for words in (*CLIENTS, SERVER.public.hex(), roster.digest.hex(), fingerprint, "'study', number 0"):
        assert words in shown
    document = json.loads(run("roster", "show", "roster.toml", "--json").stdout)
    assert [client["name"] for client in document["clients"]] == list(CLIENTS)
    assert (document["counter"], document["run"], document["fingerprint"]) == (0, roster.run.hex(), fingerprint)
    again = run("roster", "renew", "roster.toml").stdout.strip()
    assert Roster.load(tmp_path / "roster.toml") == roster.renewed()
    assert again == roster.renewed().fingerprint != fingerprint
    run("roster", "renew", "roster.toml", "--out", "next.toml")
    assert Roster.load(tmp_path / "next.toml").counter == 2
    assert Roster.load(tmp_path / "roster.toml").counter == 1


def test_a_roster_is_made_of_a_folder_of_public_keys(run, tmp_path):
    (tmp_path / "keys").mkdir()
    start = ("roster", "make", "roster.toml", "--label", "study", "--server", SERVER.public.hex(), "keys")
    assert "keys holds no public key: put each party's NAME.pub there" in run(*start, code=2).stderr
    for name, private in CLIENTS.items():
        key = Identity(private)
        (tmp_path / "keys" / f"{name}.pub").write_text(key.public.hex() if name == "Bonn" else key.public_pem)
    assert run("identity", "show", "keys/Bonn.pub", "--pem").stdout == Identity(CLIENTS["Bonn"]).public_pem
    (tmp_path / "keys" / "notes.txt").write_text("-")
    run(*start, "--plan", "plan.toml")
    roster = Roster.load(tmp_path / "roster.toml")
    assert roster.names == tuple(sorted(CLIENTS))
    assert roster.publics == tuple(Identity(CLIENTS[name]).public for name in sorted(CLIENTS))


def test_clients_are_sorted_by_key_on_request_and_every_party_sees_the_order(run, tmp_path):
    """The order of the keys decides a random graph, so a coordinator must not be free to choose it."""
    publics = [Identity(private).public for private in CLIENTS.values()]
    for words, order in (((), publics), (("--by-key",), sorted(publics))):
        made(run, *words, "--force")
        roster = Roster.load(tmp_path / "roster.toml")
        assert roster.publics == tuple(order)
        assert {name: roster.publics[place] for place, name in enumerate(roster.names)} == dict(
            zip(CLIENTS, publics, strict=True)
        )
        stated = "by key" if order == sorted(publics) else "not by key"
        assert re.search(rf"^order +{stated}$", run("roster", "show", "roster.toml").stdout, re.MULTILINE)


def test_a_roster_is_replaced_only_on_purpose(run):
    made(run)
    assert "pass --force to replace it" in made_wrong(run)
    made(run, "--force")


def made_wrong(run, *words: str) -> str:
    clients = [f"{name}={name}.pub" for name in CLIENTS]
    start = ("roster", "make", "roster.toml", "--label", "study", "--server", SERVER.public.hex())
    return run(*start, *(words or clients), code=2).stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("Bonn.pub",), "name each client as NAME=KEY with its public key, for example Bonn=bonn.pub"),
        (("=Bonn.pub",), "name each client as NAME=KEY"),
        (("Bonn=",), "name each client as NAME=KEY"),
        (("Bonn=nowhere",), "cannot read nowhere"),
        ((f"Bonn={'zz' * 32}",), "cannot read zzzz"),
        (("Bonn=plan.toml",), "holds no Ed25519 public key"),
        (("Bonn=Bonn.pub", "Ulm=Bonn.pub"), "must not list one public key twice"),
        (("Bonn=Bonn.pub", "Bonn=Ulm.pub"), "must not give two clients one name"),
        ((f"Bonn={SERVER.public.hex()}",), "the server must not be one of the roster's clients"),
        (("Bonn=Bonn.pub", "--plan", "plan.toml"), "the roster has 1 clients and the plan 3"),
    ],
)
def test_what_is_no_list_of_clients_is_one_sentence(run, words, sentence):
    assert sentence in made_wrong(run, *words)


def test_a_roster_must_fit_the_panel_of_its_plan(run, tmp_path):
    schema, cohort = PLAN.schema, ps.Cohort(3, 2, 99)

    def fitting(*panel: bytes) -> str:
        publics = tuple(Identity(private).public.hex() for private in panel)
        plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy(), protocol="split", panel=publics)
        (tmp_path / "split.toml").write_text(plan.to_toml())
        return run("roster", "show", "roster.toml", "--plan", "split.toml", code=2).stderr

    made(run)
    assert "must be the leader of the plan's panel" in fitting(b"\5" * 32, b"\6" * 32)
    assert "a member of the plan's panel must not be a client" in fitting(b"\4" * 32, b"\1" * 32)


def test_a_roster_without_names_and_numbers_is_shown_and_renewed(run, tmp_path):
    roster = Roster([Identity(private).public for private in CLIENTS.values()], server=SERVER.public)
    roster.save(tmp_path / "roster.toml")
    assert "no name" in run("roster", "show", "roster.toml").stdout
    assert json.loads(run("roster", "show", "roster.toml", "--json").stdout)["clients"][0]["name"] is None
    run("roster", "renew", "roster.toml")
    assert len(Roster.load(tmp_path / "roster.toml").run) == 16


def spent(ledger, run: bytes, plan: ps.Plan = PLAN, dataset: str = "beds", left: bool = True) -> None:
    entry = ledger.spend(dataset, plan=plan.digest, run=run, schema=plan.schema, privacy=plan.privacy, noise=plan.noise)
    if left:
        ledger.finish(entry, run)


def test_a_ledger_is_opened_capped_and_shown_with_its_whole_history(run, tmp_path):
    opened = run("ledger", "open", "ledger.db")
    assert opened.stderr.splitlines()[-1] == "its head, to be stored elsewhere:"
    assert "\\n" not in opened.stderr
    head = opened.stdout.strip()
    assert "no account yet" in run("ledger", "show", "ledger.db").stdout
    cap = ("ledger", "cap", "ledger.db", "beds", "--unit", "record", "--adjacency", "add-remove", "--delta", "1e-5")
    run(*cap, "--epsilon", "2")
    ledger = dp.Ledger.open(tmp_path / "ledger.db", expected_head=head)
    spent(ledger, b"first")
    spent(ledger, b"second", left=False)
    run(*cap, "--epsilon", "3")
    spent(ledger, b"bare", ps.Plan(schema=PLAN.schema, cohort=PLAN.cohort, privacy=ps.NoPrivacy()), "trees")
    shown = run("ledger", "show", "ledger.db").stdout
    for words in (PLAN.digest[:8], b"first".hex()[:8], "not yet", "spent epsilon", "exact sums were released", "inf"):
        assert words in shown
    assert shown.count("cap at delta") == 2
    assert re.search(r"epsilon\s+sent on", shown)
    account = ledger.account("beds")
    assert f"spent epsilon {at_most(account.spent)} of 3 at delta 1e-05" in shown
    assert "the squares of their mu do" in " ".join(shown.split())
    document = json.loads(run("ledger", "show", "ledger.db", "--dataset", "beds", "--json").stdout)
    (beds,) = document["accounts"]
    assert document["head"] == ledger.head
    assert [entry["plan"] for entry in beds["releases"]] == [PLAN.digest] * 2
    assert [entry["released"] is None for entry in beds["releases"]] == [False, True]
    assert ([cap["epsilon"] for cap in beds["caps"]], beds["epsilon"]) == ([2, 3], account.spent)
    run("ledger", "show", "ledger.db", "--expected-head", ledger.head)


def test_the_room_that_is_shown_is_what_the_ledger_admits(run, tmp_path):
    run("ledger", "open", "ledger.db")
    cap = ("--unit", "record", "--adjacency", "add-remove", "--epsilon", "2", "--delta", "1e-5")
    run("ledger", "cap", "ledger.db", "beds", *cap)
    ledger = dp.Ledger.open(tmp_path / "ledger.db")
    spent(ledger, b"first")
    shown = run("ledger", "show", "ledger.db").stdout
    most = float(re.search(r"room for one more release of at most epsilon (\S+) at delta 1e-05", shown)[1])
    larger = dataclasses.replace(PLAN, privacy=dataclasses.replace(PRIVACY, epsilon=most * 1.001))
    refused(ps.LedgerError, f"at most epsilon {most:g} at delta 1e-05 is left", spent, ledger, b"larger", larger)
    spent(ledger, b"second", dataclasses.replace(PLAN, privacy=dataclasses.replace(PRIVACY, epsilon=most)))
    noted = run("audit", "ledger", "ledger.db").stdout
    assert room(ledger.account("beds")) in " ".join(noted.split())


def test_a_new_account_beside_others_and_an_earlier_cap_are_told(run):
    run("ledger", "open", "ledger.db")
    terms = ("--unit", "record", "--adjacency", "add-remove", "--delta", "1e-5")
    assert "new account" not in run("ledger", "cap", "ledger.db", "hips", *terms, "--epsilon", "3").stdout
    assert (
        "hips: was epsilon 3 at delta 1e-05"
        in run("ledger", "cap", "ledger.db", "hips", *terms, "--epsilon", "9").stdout
    )
    other = ("--unit", "client", "--adjacency", "add-remove", "--delta", "1e-5", "--epsilon", "9")
    changed = run("ledger", "cap", "ledger.db", "hips", *other).stdout
    assert "hips: was epsilon 9 at delta 1e-05, add-remove, per record" in changed
    typo = run("ledger", "cap", "ledger.db", "hip", *terms, "--epsilon", "9").stdout
    assert "hip is a new account, with nothing spent; this ledger also has: hips" in typo
    told = run("ledger", "show", "ledger.db", "--dataset", "hops", code=2).stderr
    assert "no account 'hops', but 'hip', 'hips': open it with `privstats ledger cap`" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ledger", "show", "plan.toml"), "may be no ledger at all: name the file that `privstats ledger open` wrote"),
        (("ledger", "show", "leger.db"), "make a new one with `privstats ledger open leger.db`"),
        (("identity", "sign", "plan.toml", "--key", "Bonn.pub"), "Bonn.pub holds a public key; give the file that"),
        (("identity", "verify", "plan.toml", "--signed-by", "Bonn.pub"), "`privstats identity sign plan.toml --key"),
        (("plan", "check", "hips.csv"), "hips.csv: the plan is not valid TOML: "),
        (("plan", "diff", "plan.toml", "hips.csv"), "a plan is a text file with [schema], [cohort] and [privacy]"),
        (("plan", "check", "comma.toml"), "write numbers with a decimal point: epsilon = 1.0"),
    ],
)
def test_the_wrong_file_is_told_what_it_is(run, tmp_path, words, told):
    (tmp_path / "hips.csv").write_text("patient,age\n1,51\n")
    (tmp_path / "comma.toml").write_text(PLAN.to_toml().replace("epsilon = 1.0", "epsilon = 1,0"))
    assert told in run(*words, code=2).stderr


def test_no_room_is_said_too():
    account = dp.Account("beds", (dp.Cap("2026", "record", "add-remove", 0.1, 1e-5),), entries())
    assert room(account) == "no room for another release"


def test_a_spend_that_was_freed_by_proof_costs_nothing_and_says_so(capsys):
    entry = dataclasses.replace(entries()[0], released="2026-11-20", freed="2026-11-21T00:00", proof=b"proof")
    account = dp.Account("beds", (dp.Cap("2026", "record", "add-remove", 1.0, 1e-5),), (entry,))
    Console(width=160).print(history(account))
    shown = capsys.readouterr().out
    assert "in no sum: freed 2026-11-21" in shown
    assert re.search(r"│?\s0\s+2026-11-20", shown)


def test_every_field_of_a_spend_has_a_column_or_is_in_the_json_alone():
    shown = inspect.getsource(inspect.getmodule(history))
    json_alone = {"mu", "parts", "upload", "nodes", "masking_failure", "proof", "apart", "pure", "uploads", "condition"}
    found = {field.name for field in dataclasses.fields(dp.Spend) if f"event.{field.name}" not in shown}
    assert found == json_alone, "show the field in `history` of privstats/cli/ledger.py, or add it to `json_alone`"


def test_a_ledger_that_was_made_to_exceed_its_cap_says_so():
    said = standing(dp.Account("beds", (dp.Cap("2026", "record", "add-remove", 0.1, 1e-5),), entries()))
    assert "MORE THAN THE CAP ADMITS" in said
    assert "at delta 1.0001e-05 (1e-09 of it for the masking)" in said


def entries() -> tuple[dp.Spend, ...]:
    return (dp.Spend(1, "2026", PLAN.digest, b"run", "release", "central", 1.0, (), masking_failure=1e-9),)


def test_a_ledger_that_is_there_without_accounts_may_be_opened_again(run, tmp_path):
    first = run("ledger", "open", "ledger.db")
    again = run("ledger", "open", "ledger.db")  # as after `flower records`, which makes the party's
    assert again.stdout == first.stdout
    assert "found an empty ledger at ledger.db; open an account" in again.stderr
    dp.Ledger.open(tmp_path / "ledger.db").set_cap("beds", unit="record", adjacency="add-remove", epsilon=1, delta=1e-6)
    refused = run("ledger", "open", "ledger.db", code=2).stderr
    assert "ledger.db is a ledger already, with accounts for 'beds': go on with privstats ledger show" in refused


def test_a_full_disk_is_no_wrong_file(run):
    with no_file_may_grow_beyond(200):
        full = run("ledger", "open", "ledger.db", code=2)
    assert "the disk is full or failing, free some space" in full.stderr
    assert "is empty, as a full disk leaves a ledger" in run("ledger", "show", "ledger.db", code=2).stderr
    run("ledger", "open", "ledger.db")


def test_missed_runs_are_skipped_by_a_persons_word(run, tmp_path):
    made(run)
    run("ledger", "open", "ledger.db")
    for _ in range(2):
        run("roster", "renew", "roster.toml")
    ledger, roster = dp.Ledger(tmp_path / "ledger.db"), Roster.load(tmp_path / "roster.toml")
    refused(ps.LedgerError, "skip_to_counter", ledger.accept_counter, roster.members, roster.counter, roster.run)
    run("ledger", "skip", "ledger.db", "roster.toml")
    ledger.accept_counter(roster.members, roster.counter, roster.run)
    Roster(roster.publics, server=roster.server, run=b"x").save(tmp_path / "roster.toml")
    assert "nothing to skip" in run("ledger", "skip", "ledger.db", "roster.toml", code=2).stderr


@pytest.fixture
def released(tmp_path):
    rng = np.random.default_rng(0)
    release = ps.simulate(PLAN, [(rng.normal(size=(20, 3)), np.arange(20) % 2) for _ in range(3)])
    release.save(tmp_path / "release.safetensors", signer=SERVER)
    return release


def test_a_release_is_shown(run, released, tmp_path):
    shown = run("release", "show", "release.safetensors").stdout
    for words in (
        PLAN.digest,
        "0, 1, 2",
        "central",
        "signed         yes",
        "suppressed     none",
        f"{released.sigma['A']:.4g}",
    ):
        assert words in shown
    facts = json.loads(run("release", "show", "release.safetensors", "--json").stdout)
    assert facts["sigma"] == dict(released.sigma)
    assert (facts["survivors"], facts["signed"], facts["reproducible"]) == ([0, 1, 2], True, False)


def test_a_release_is_verified_against_plan_and_signature(run, released, tmp_path):
    file = "release.safetensors"
    (tmp_path / "server.pub").write_text(SERVER.public_pem)
    for key in (SERVER.public.hex(), "server.pub"):
        done = run("release", "verify", file, "--plan", "plan.toml", "--signed-by", key)
        assert "NO" not in done.stdout
        assert done.stdout.count("good") == 4
    asked = run("release", "verify", file).stdout
    assert "not checked: pass --plan" in asked
    assert "the file has a signature" in asked
    released.save(tmp_path / "unsigned")
    assert "the file has no signature" in run("release", "verify", "unsigned").stdout


def test_a_release_of_another_plan_or_signer_contradicts_the_claim(run, released, tmp_path):
    file = "release.safetensors"
    other = ps.Plan(schema=PLAN.schema, cohort=ps.Cohort(3, 2, 98), privacy=PRIVACY)
    (tmp_path / "other.toml").write_text(other.to_toml())
    stranger = Identity(CLIENTS["Bonn"]).public.hex()
    for words, sentence in (
        (("--plan", "other.toml"), "NO: release.safetensors was made under another plan"),
        (("--signed-by", stranger), "NO: release.safetensors is not signed by the key you trust"),
    ):
        assert sentence in run("release", "verify", file, *words, code=1).stdout
        assert json.loads(run("release", "verify", file, *words, "--json", code=1).stdout)["violated"] is True
    assert json.loads(run("release", "verify", file, "--plan", "plan.toml", "--json").stdout)["violated"] is False


def test_attack_noise_that_others_can_draw_again_is_not_verified(run, tmp_path):
    """Signed and of the right plan, and whoever knows the seed takes the noise off."""
    shards = [(np.ones((20, 3)), np.arange(20) % 2) for _ in range(3)]
    ps.simulate(PLAN, shards, rng=ps.randomness.seeded(1)).save(tmp_path / "seeded", signer=SERVER)
    done = run("release", "verify", "seeded", "--signed-by", SERVER.public.hex(), code=1)
    assert "NO: its noise came from a reproducible generator (a test or a simulation)" in done.stdout


def test_attack_a_file_that_is_swapped_between_two_checks_is_not_verified(run, released, tmp_path, monkeypatch):
    """One file has the plan, another one the signature, and no release has both."""
    other = ps.Plan(schema=PLAN.schema, cohort=ps.Cohort(3, 2, 98), privacy=PRIVACY)
    rng = np.random.default_rng(0)
    release = ps.simulate(other, [(rng.normal(size=(20, 3)), np.arange(20) % 2) for _ in range(3)])
    path, load = tmp_path / "release.safetensors", ps.Release.load
    released.save(path)

    def swapped(name, *args, **expected):
        if "signed_by" in expected:
            release.save(path, signer=SERVER)
        return load(name, *args, **expected)

    monkeypatch.setattr(ps.Release, "load", swapped)
    done = run("release", "verify", path.name, "--plan", "plan.toml", "--signed-by", SERVER.public.hex(), code=1)
    assert "NO: release.safetensors was changed while it was read" in done.stdout


def test_a_damaged_release_is_no_release_and_no_contradiction(run, released, tmp_path):
    path = tmp_path / "release.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert "does not match its own checksum" in run("release", "verify", path.name, code=2).stderr


def test_a_release_is_loaded_only_under_the_plan_that_is_expected(released, tmp_path):
    path = tmp_path / "release.safetensors"
    for plan in (PLAN, PLAN.digest, PLAN.digest.upper()):
        assert ps.Release.load(path, plan=plan, signed_by=SERVER) == released
    other = ps.Plan(schema=PLAN.schema, cohort=ps.Cohort(3, 2, 98), privacy=PRIVACY)
    for plan in (other, other.digest):
        with pytest.raises(
            ps.ReleaseError, match=f"made under another plan, {PLAN.digest}, and not under {other.digest}"
        ):
            ps.Release.load(path, plan=plan)
    for wrong, got in (("plan.toml", "another text"), (5, "int"), (PLAN.to_toml(), "another text")):
        refused(ps.ReleaseError, f"plan must be a Plan or its digest, .* got {got}", ps.Release.load, path, plan=wrong)
