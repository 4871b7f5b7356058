"""The officer's page holds every section that there is something for, and belongs to one plan."""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.party_facts import standing
from privstats.dp.ledger.rules import room
from privstats.printable import at_most
from privstats.workflows.report import Cell, Figure, Finding, Statement, Table, explanations, page_of
from privstats.workflows.report.spending import accounts_table
from tests import made

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
FINDING = Finding(
    title="Audit: <made up>",
    summary="Nothing was found.",
    tables=(Table("numbers", ("a", Cell("b", ("why",), "#eee")), [("1", "2")]),),
    notes=("A note.",),
    figures=(Figure.of_png("A dot", "One dot.", b"png"),),
)


def text_of(page):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.partition("<body>")[2])).split())


def ids(page):
    return set(re.findall(r'id="([^"]+)"', page))


def test_the_page_says_what_is_and_what_is_not_promised(plan):
    page = page_of(Statement(plan, at=AT))
    text = text_of(page)
    assert "not promised" in page.replace("\n", " ")  # with no markup between the words
    assert "At most 2 of 100 records found at 1 false alarm in 100" in text
    for part in (plan.digest, "2026-03-01 12:30 UTC", f"privstats {ps.__version__}, Python 3", "centre" * 0 + "numpy"):
        assert part in text
    assert {"collected", "promised", "not-promised", "budget", "dropouts", "origin"} == ids(page)
    assert ps.Plan.from_toml(html.unescape(re.search(r"<pre[^>]*>(.*?)</pre>", page, re.S)[1])) == plan


def test_warnings_stand_where_an_officer_reads(changed):
    weak = changed(privacy=made.promise(epsilon=20.0, model="distributed"))
    assert "WARNING: epsilon 20 promises almost nothing" in text_of(page_of(Statement(weak)))


def test_every_link_leads_somewhere_on_the_page(plan):
    page = page_of(Statement(plan, accounts=(), findings=(FINDING, FINDING), at=AT))
    links = re.findall(r'href="([^"]+)"', page.partition("<body>")[2])
    assert len(links) >= 9
    assert all(link.startswith("#") and link[1:] in ids(page) for link in links)


def test_nothing_is_fetched(plan):
    page = page_of(Statement(plan, findings=(FINDING,), at=AT))
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert "<script" not in page
    assert "url(" not in page


@pytest.mark.parametrize("survivors", [300, 296])
def test_the_epsilon_of_a_release_counts_only_noise_that_no_server_can_exclude(survivors):
    """On random graphs a lying server can exclude the clients beyond min_survivors that a list needs."""
    plan = made.plan(
        ps.ClassSchema(2, 4, "NA", clip_norm=1.0),
        ps.Cohort(clients=300, min_survivors=275, max_records=5_000, colluders=3),
        made.promise("distributed", epsilon=1.0),
    )
    surplus = plan.masking.min_listed - 275
    assert surplus == 21
    release = ps.Release(plan, np.zeros(plan.layout.size, np.int64), tuple(range(survivors)))
    epsilon = plan.noise.released_epsilon(survivors - surplus - 3)
    assert f"epsilon with these parties {at_most(epsilon)} (promised: 1)" in text_of(
        page_of(Statement(plan, release=release))
    )
    stated = (
        f"more than the sum is shown with probability {at_most(plan.masking.failure, '.2g')} at most, by the masking"
    )
    assert stated in text_of(page_of(Statement(plan, release=release)))
    assert at_most(plan.masking.failure, ".2g") in release._repr_html_()
    gone = {row.survivors: row.epsilon for row in explanations.plan_dropouts(plan, plan.noise)}
    assert gone[survivors] == epsilon, "plan check states the same"


def released(plan, **how):
    X, y = np.random.default_rng(0).normal(size=(300, 4)), np.arange(300) % 2  # nobody has the third class
    names = np.array(plan.schema.class_names)[y]
    shards = [(X[k::12], names[k::12]) for k in range(12)]
    return ps.simulate(plan, shards, {plan.masking.upload_step: {3, 7}}, **how)


def test_a_release_is_told_in_parties_and_classes(plan, changed):
    exact = changed(privacy=ps.NoPrivacy())
    text = text_of(page_of(Statement(exact, released(exact), at=AT)))
    assert "parties in it 10 of 12; 9 were needed" in text
    assert "the classes elm: too few records" in text
    assert "epsilon with these parties" not in text
    assert "more than the sum" not in text, "everyone masks with everyone: this masking does not fail"
    text = text_of(page_of(Statement(plan, released(plan), at=AT)))
    assert "epsilon with these parties 0.9375 (promised: 1)" in text
    assert "NOT SECRET" not in text
    assert "NOT SECRET" in text_of(page_of(Statement(plan, released(plan, rng=ps.randomness.seeded(1)), at=AT)))
    ridge = made.plan(ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0), ps.Cohort(2, 2, 9))
    sums = ps.simulate(ridge, [(np.eye(2), [1.0, 0.0])] * 2)
    assert "left out nothing" in text_of(page_of(Statement(ridge, sums, at=AT)))
    everything = ps.Release(changed(min_count=0), released(plan).vector, tuple(range(9)))
    assert "left out no class" in text_of(page_of(Statement(changed(min_count=0), everything, at=AT)))


def test_less_than_a_panel_promises_is_told_to_those_outside_it_alone(plan, changed):
    panel = {"protocol": "split", "panel": tuple(character * 64 for character in "ab")}
    by_panel = changed(privacy=replace(plan.privacy, model="panel"), **panel)
    release = ps.Release(by_panel, np.zeros(by_panel.layout.size, np.int64), tuple(range(9)))
    text = text_of(page_of(Statement(by_panel, release, at=AT)))
    assert "epsilon for a reader outside the panel 0.6" in text
    assert "epsilon with these parties" not in text
    assert "more than the sum" not in text, "everyone masks with everyone: this masking does not fail"


def test_a_release_of_another_plan_is_refused(plan, changed):
    with pytest.raises(ps.ReleaseError, match="made under another plan"):
        Statement(plan, released(changed(min_count=6)))


def test_a_ledger_is_told_by_data_set_and_by_plan(plan, tmp_path):
    ledger = ps.dp.Ledger.create(tmp_path / "spent.db", clock=lambda: AT)
    assert "The ledger has no account yet" in text_of(page_of(Statement(plan, accounts=ledger.accounts(), at=AT)))
    ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
    text = text_of(page_of(Statement(plan, accounts=ledger.accounts(), at=AT)))
    assert "Nothing was charged under this plan" in text
    terms = {"schema": plan.schema, "privacy": plan.privacy, "noise": plan.noise}
    entry = ledger.spend("ward", plan=plan.digest, run=b"may", **terms)
    text = text_of(page_of(Statement(plan, accounts=ledger.accounts(), at=AT)))
    assert "charged to 'ward' on 2026-03-01; whether anything was sent is not known." in text
    ledger.finish(entry, b"1")
    ledger.withdraw(ledger.spend("ward", plan=plan.digest, run=b"june", **terms))
    ledger.spend("lab", plan=plan.digest, run=b"may", schema=plan.schema, privacy=ps.NoPrivacy(), noise=None)
    text = text_of(page_of(Statement(plan, accounts=ledger.accounts(), at=AT)))
    assert "charged to 'ward' on 2026-03-01." in text
    assert "charged to 'ward' on 2026-03-01, and withdrawn on 2026-03-01: nothing was sent." in text
    assert "for the masking" not in text
    assert "ward one record, add-remove 1 1 4 1e-05" in text
    assert "exact sums: no cap can hold" in text


def test_a_page_states_what_masking_adds_to_the_delta_of_an_account(plan, tmp_path):
    ledger = made.ledger(tmp_path / "l.db", epsilon=4.0)
    terms = {"schema": plan.schema, "privacy": plan.privacy, "noise": plan.noise, "masking_failure": 1.04e-9}
    ledger.withdraw(ledger.spend("ward", plan="0" * 64, run=b"a", **terms))
    ledger.spend("ward", plan="0" * 64, run=b"b", **terms)
    text = text_of(page_of(Statement(plan, accounts=ledger.accounts(), at=AT)))
    assert "ward: 2.1e-09 of its delta is for the masking, by all runs that were begun on a random graph, with" in text
    assert "ward one record, add-remove 1 1 4 1.00021e-05" in text


def test_no_account_spends_more_than_its_cap_by_rounding(plan, tmp_path):
    """The spent epsilon was rounded up, and the cap to the nearest digit."""
    account = account_of(plan, 1.23442)
    (row,) = accounts_table([account]).rows
    assert row[3:5] == ("1.235", "1.235")
    assert "spent epsilon 1.235 of 1.235 at delta" in standing(account)
    moved = replace(account, caps=(*account.caps, replace(account.caps[0], epsilon=1.5, delta=1e-4)))
    spent, most = re.findall(r"spent epsilon ([0-9.]+) of ([0-9.]+) at", standing(moved))[0]
    assert float(spent) <= float(most)


def account_of(plan, epsilon):
    """An account that a release of a plan has used up."""
    cap = ps.dp.Cap("2026", "record", "add-remove", epsilon, 1e-5)
    spend = ps.dp.Spend(1, "2026", plan.digest, b"run", "release", "central", cap.mu, ())
    return ps.dp.Account("ward", (cap,), (spend,))


def accounts_of(plan, path, spends, *, charged=None, **how):
    """The accounts of a ledger in which the plan was charged so often, or another plan was."""
    ledger = ps.dp.Ledger.create(path, clock=lambda: AT)
    cap = {"unit": plan.privacy.unit, "adjacency": plan.privacy.adjacency, "epsilon": 9.0, "delta": 1e-5, **how}
    ledger.set_cap("hips", **cap)
    terms = {"schema": plan.schema, "privacy": plan.privacy, "noise": plan.noise}
    for run in range(spends):
        ledger.spend("hips", plan=charged or plan.digest, run=b"run %d" % run, **terms)
    return ledger.accounts()


def test_the_headline_speaks_of_all_releases_that_the_ledger_holds(plan, tmp_path):
    accounts = accounts_of(plan, tmp_path / "nine.db", 9)
    page = page_of(Statement(plan, accounts=accounts, at=AT))
    most = explanations.hits(ps.dp.Guarantee(3 * plan.budget().mu))  # the squares of mu add up
    assert most > explanations.hits(plan.noise.guarantee)
    assert f"With the 9 releases charged to 'hips': at most {most:g} of 100 records." in text_of(page)
    assert f"This release alone: at most {explanations.hits(plan.noise.guarantee):g} of 100 records" in text_of(page)
    assert f"Of 100, at most {most} are found" in page  # the picture shows the larger one
    assert f"hips: {room(accounts[0])}." in text_of(page)
    assert "This release alone" not in page_of(Statement(plan, accounts=(ps.dp.Account("hips"),), at=AT))


def test_a_ledger_that_holds_this_release_alone_adds_no_sentence(plan, tmp_path):
    """The page of a charged course of 13 sessions compared it "with the 1 release" that it is itself."""
    accounts = accounts_of(plan, tmp_path / "one.db", 1)
    page = text_of(page_of(Statement(plan, accounts=accounts, at=AT)))
    assert "charged to 'hips':" not in page
    assert explanations.headline(plan, plan.noise.guarantee) in page


def test_a_release_that_is_not_in_the_ledger_yet_comes_on_top(plan, tmp_path):
    text = text_of(page_of(Statement(plan, accounts=accounts_of(plan, tmp_path / "l.db", 3, charged="0" * 64), at=AT)))
    most = explanations.hits(ps.dp.Guarantee(2 * plan.budget().mu))
    told = f"If it is of the same records, with the 3 releases charged to 'hips': at most {most:g} of 100 records."
    assert told in text


def test_a_ledger_under_another_adjacency_is_told_by_itself(plan, tmp_path):
    other = {"add-remove": "replace-one", "replace-one": "add-remove"}[plan.privacy.adjacency]
    accounts = accounts_of(plan, tmp_path / "l.db", 1, charged="0" * 64, adjacency=other)
    text = text_of(page_of(Statement(plan, accounts=accounts, at=AT)))
    most = explanations.hits(ps.dp.Guarantee(accounts[0].mu))
    assert f"1 release charged to 'hips' alone: at most {most:g} of 100 records. If it is of the same records" in text


def test_pure_epsilons_in_the_ledger_add_up_on_the_page(tmp_path):
    pure = made.plan(ps.ClassSchema(2, 3, "NA", 1.0), ps.Cohort(3, 3, 200), made.promise(delta=0.0))
    ledger = made.ledger(tmp_path / "l.db", epsilon=9.0)
    ledger.spend("ward", plan="0" * 64, run=b"a", schema=pure.schema, privacy=pure.privacy, noise=pure.noise)
    text = text_of(page_of(Statement(pure, accounts=ledger.accounts(), at=AT)))
    one, two = (explanations.hits(pure.noise.guarantee.repeated(count)) for count in (1, 2))
    assert 1 < one < two <= 7.4  # e^2
    assert f"This release alone: at most {one:g} of 100 records" in text
    assert f"with the 1 release charged to 'ward': at most {two:g} of 100 records" in text


def test_exact_sums_in_the_ledger_leave_no_bound_and_no_dots(plan, tmp_path):
    ledger = ps.dp.Ledger.create(tmp_path / "l.db", clock=lambda: AT)
    ledger.spend("lab", plan="0" * 64, run=b"may", schema=plan.schema, privacy=ps.NoPrivacy(), noise=None)
    page = page_of(Statement(plan, accounts=ledger.accounts(), at=AT))
    assert "nothing bounds what is found, because they hold exact sums" in text_of(page)
    assert "<svg" not in page
    assert "Each number is released with noise" in page


def test_findings_stand_in_sections_of_their_own_and_are_escaped(plan):
    page = page_of(Statement(plan, findings=(FINDING,), at=AT))
    assert "Audit: &lt;made up&gt;" in page
    assert "A promise is contradicted" not in page
    assert "data:image/png;base64,cG5n" in page
    assert '<span class="tag" style="background: #eee">b</span><small>why</small>' in page


def test_a_contradicted_promise_is_the_first_thing_on_the_page(plan):
    bad = Finding(title="Audit", summary="More was found.", violated=True)
    statement = Statement(plan, findings=(FINDING, bad), at=AT)
    assert statement.violated
    text = text_of(page_of(statement))
    assert text.index("A promise is contradicted") < text.index("What is collected")
    assert not Statement(plan, findings=(FINDING,)).violated


def test_without_a_promise_the_page_warns_and_draws_no_dots(changed):
    before = datetime.now(UTC)
    page = page_of(Statement(changed(privacy=ps.NoPrivacy())))
    assert 'class="box warn"' in page
    assert "<svg" not in page
    assert "That is worth" not in page
    assert any(f"{time:%Y-%m-%d}" in page for time in (before, datetime.now(UTC)))
