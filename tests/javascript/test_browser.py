"""A person's answer from a real browser: one message, whatever happens to the tab, the storage and the network."""

import json
import re
import time

import pytest

from tests.browser import browsing, needs_chromium
from tests.javascript import pictures
from tests.javascript.node import CLIENT
from tests.javascript.study import NUMBERS, Study, problem

pytestmark = [pytest.mark.ci, pytest.mark.slow, needs_chromium]

AGE, YES, NO = "#field-0", "#field-1-0", "#field-1-1"
STATUS = "document.querySelector('[role=status]').textContent"
KEPT = """(async () => {
  if (!(await indexedDB.databases()).length) return null;
  const done = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
  const database = await done(indexedDB.open("privstats"));
  const found = await done(database.transaction("reports").objectStore("reports").getAll());
  database.close();
  return found.map((each) => ({ ...each, report: each.report && Array.from(each.report) }));
})()"""
AXE = CLIENT / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def study():
    with Study() as found:
        yield found


@pytest.fixture
def browser(tmp_path):
    with browsing(tmp_path / "profile") as found:
        yield found


def visit(browser, study, index=0):
    """A person opens their link and reads."""
    tab = browser.tab(study.link(index))
    tab.until("document.querySelector('form button')")
    return tab


def fill(tab, age="37", smokes=NO):
    tab.click(AGE)
    tab.type(age)
    tab.click(smokes)


def send(tab, until="Thank you"):
    tab.click("form button")
    tab.until(f"{STATUS}.includes({json.dumps(until)})")


def test_an_answer_is_sent_and_counted_and_leaves_no_trace_of_its_code(browser, study):
    tab = visit(browser, study)
    assert tab.value("location.hash") == ""
    text = tab.value("document.body.innerText")
    for words in ("University of Ulm and Bonn Clinic both work together", "at least 3 answers", "Library of Kiel"):
        assert words in text
    fill(tab)
    send(tab)
    assert list(study.reports) == [0]
    assert tab.value("document.activeElement.getAttribute('role')") == "status"
    (kept,) = tab.value(KEPT)
    assert (kept["state"], kept["report"]) == ("sent", None)
    letters = study.invitations[0].fragment.split(".")[2]
    asked = [event["params"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    told = [each["request"]["url"] for each in asked if each["request"]["url"] != study.link(0)]
    headers = [each["request"]["headers"] for each in asked]
    for text in (json.dumps(kept), json.dumps(told), json.dumps(headers), repr(study.log), repr(study.seen)):
        assert letters not in text
    assert not tab.said()
    fill_others(browser, study)
    assert study.counts()[3 * 1 + 1] == 3  # 20..40, no


def fill_others(browser, study):
    """Two more people at the same browser."""
    for index in (1, 2):
        tab = visit(browser, study, index)
        fill(tab)
        send(tab)


def test_two_people_at_one_browser_send_two_answers(browser, study):
    fill_others(browser, study)
    assert sorted(study.reports) == [1, 2]
    assert study.reports[1] != study.reports[2]


def test_a_second_visit_says_so_and_sends_nothing(browser, study):
    tab = visit(browser, study)
    fill(tab)
    send(tab)
    again = browser.tab(study.link(0))
    again.until(f"{STATUS}.includes('already sent')")
    assert again.value("document.querySelector('form')") is None
    assert len(study.sent) == 1
    again.click("main > button[data-after]")
    again.until(f"{STATUS}.includes('forgotten')")
    assert again.value(KEPT) == []


def test_another_browser_with_the_same_invitation_hears_that_an_answer_is_there(browser, study, tmp_path):
    tab = visit(browser, study)
    fill(tab)
    send(tab)
    with browsing(tmp_path / "another") as second:
        tab = visit(second, study)
        fill(tab, "70")
        send(tab, "already come from this invitation")
    assert len({*study.sent}) == 2
    assert len(study.reports) == 1


def test_without_storage_nothing_is_sent(tmp_path, study):
    settings = tmp_path / "profile" / "Default"
    settings.mkdir(parents=True)
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (settings / "Preferences").write_text(json.dumps(blocked))
    with browsing(tmp_path / "profile") as browser:
        tab = visit(browser, study)
        fill(tab)
        send(tab, "nothing was sent")
        assert "another window" in tab.value(STATUS)
    assert not study.sent


def test_a_browser_killed_between_seal_and_send_sends_the_same_bytes(tmp_path, study):
    study.early = lambda method, path: problem("busy", 503, retry=True, after=60) if method == "PUT" else None
    with browsing(tmp_path / "profile") as browser:
        tab = visit(browser, study)
        fill(tab)
        send(tab, "not sent yet")
        (kept,) = tab.value(KEPT)
        assert kept["state"] == "sealed"
        browser.kill()
    study.early = lambda method, path: None
    (first,) = {*study.sent}
    with browsing(tmp_path / "profile") as browser:
        tab = browser.tab(f"{study.site}/")  # without the link
        tab.until(f"{STATUS}.includes('has arrived')")
    assert study.reports == {0: first}
    assert bytes(kept["report"]) == first


def test_offline_for_five_seconds_the_answer_waits_and_arrives(browser, study):
    tab = visit(browser, study)
    fill(tab)
    tab.offline(True)
    tab.click("form button")
    tab.until(f"{STATUS}.includes('not sent yet')")
    time.sleep(5)
    assert not study.sent
    tab.offline(False)
    tab.until(f"{STATUS}.includes('Thank you')")
    assert list(study.reports) == [0]


def test_a_scanner_that_runs_the_script_stores_and_sends_nothing(browser, study):
    tab = visit(browser, study)
    tab.value(
        f"document.querySelector('{AGE}').value = '37'; document.querySelector('{NO}').click();"
        "document.querySelector('form button').click(); document.querySelector('form').requestSubmit()"
    )
    time.sleep(0.5)
    assert tab.value("indexedDB.databases()") == []
    assert [method for method, *_ in study.log] == ["GET"]


def test_an_answer_is_sealed_long_after_the_tap_where_the_disk_is_slow(browser, study):
    tab = visit(browser, study)
    fill(tab)
    tab.value(
        "(() => { const whole = indexedDB.databases.bind(indexedDB); let left = 2; indexedDB.databases = async () => {"
        "if (left-- > 0) await new Promise((resolve) => setTimeout(resolve, 3500)); return whole(); }; })()"
    )
    tab.click("form button")
    time.sleep(6)
    assert tab.value("navigator.userActivation.isActive") is False
    assert not study.sent
    tab.until(f"{STATUS}.includes('Thank you')")
    assert list(study.reports) == [0]


def test_a_prerendered_page_stores_and_sends_nothing(browser, study):
    tab = browser.tab(f"{study.site}/nothing")
    rules = json.dumps({"prerender": [{"source": "list", "urls": [study.link(0)]}]})
    tab.value(
        "(() => { const rules = document.createElement('script'); rules.type = 'speculationrules';"
        f"rules.textContent = {json.dumps(rules)}; document.head.append(rules); }})()"
    )
    end = time.monotonic() + 10
    while "/prefetch;prerender" not in study.seen and time.monotonic() < end:
        time.sleep(0.05)
    assert "/prefetch;prerender" in study.seen, study.seen
    time.sleep(1)
    assert tab.value("indexedDB.databases()") == []
    assert not study.sent


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [("closed", 410, "takes no more answers"), ("stranger", 404, "not for this study"), ("bad_body", 422, "bad_body")],
)
def test_a_refusal_is_read_across_origins_in_words(browser, study, code, status, words):
    study.early = lambda method, path: problem(code, status) if method == "PUT" else None
    tab = visit(browser, study)
    fill(tab)
    send(tab, words)
    assert tab.value("document.querySelector('form button').disabled") is False
    assert len(study.sent) == 1


def test_retry_after_is_read_across_origins(browser, study):
    times = []

    def busy(method, path):
        if method != "PUT":
            return None
        times.append(time.monotonic())
        return problem("busy", 503, retry=True, after=3) if len(times) == 1 else None

    study.early = busy
    tab = visit(browser, study)
    fill(tab)
    send(tab)
    assert times[1] - times[0] >= 2.9


def test_a_page_of_another_origin_reads_nothing(browser, study):
    tab = browser.tab(f"{study.site.replace('127.0.0.1', 'localhost')}/nothing")
    read = f"fetch('{study.address}/v1/runs/{study.run}').then(() => 'read', (error) => error.name)"
    assert tab.value(read) == "TypeError"
    mine = browser.tab(f"{study.site}/nothing")
    assert mine.value(read) == "read"


def test_the_page_cannot_be_framed_and_runs_no_other_script(browser, study):
    tab = browser.tab(f"{study.site}/nothing")
    tab.value(
        f"new Promise((resolve) => {{ const frame = document.createElement('iframe'); frame.src = '{study.site}/';"
        "frame.onload = resolve; document.body.append(frame); })"
    )
    assert tab.value("document.querySelector('iframe').contentDocument") is None
    page = visit(browser, study)
    blocked = (
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return ''; } catch (error) { return error.name; } })()"
    )
    assert page.value(blocked) == "TypeError"
    out = "fetch('https://elsewhere.example/').then(() => 'went', (error) => error.name)"
    assert page.value(out) == "TypeError"
    assert any("Content Security Policy" in line for line in page.said())


@pytest.mark.parametrize("age", ["", "e", "-", "130", "-1"])
def test_a_form_filled_wrongly_sends_nothing_and_says_where(browser, study, age):
    tab = visit(browser, study)
    fill(tab, age)
    tab.click("form button")
    assert tab.value("document.querySelector('#error-0').textContent")
    assert tab.value("document.activeElement.id") == "field-0"
    assert not study.sent
    assert tab.value("indexedDB.databases()") == []


def test_a_number_is_asked_with_its_range_and_refused_beyond_it(browser):
    with Study(schema=NUMBERS) as study:
        tab = visit(browser, study)
        assert "How many hours? (0 to 80)" in tab.value("document.body.innerText")
        assert "Your number and its square are added up" in tab.value("document.body.textContent")
        field = "['type', 'min', 'max'].map((name) => document.querySelector('#field-1').getAttribute(name)).join()"
        assert tab.value(field) == "number,0,80"
        tab.click("#field-0-1")
        tab.click("#field-1")
        tab.type("81")
        tab.click("#field-2")
        tab.type("2.5")
        tab.click("form button")
        assert "0 to 80" in tab.value("document.querySelector('#error-1').textContent")
        assert not study.sent
        tab.click("#silent-1")
        send(tab)


def test_a_choice_left_open_is_asked_for_and_rather_not_say_is_an_answer(browser, study):
    tab = visit(browser, study)
    tab.click("#silent-0")
    tab.click("form button")
    assert tab.value("document.querySelector('#error-1').textContent") == "Choose one of these."
    tab.click("#field-1-2")
    send(tab)
    fill_others(browser, study)
    assert study.counts()[-1] == 1  # neither told


def test_the_keyboard_alone_is_enough(browser, study):
    tab = visit(browser, study)
    ids = []
    for _ in range(12):
        tab.key("Tab")
        ids.append(tab.value("document.activeElement.id || document.activeElement.tagName"))
        if ids[-1] == "field-0":
            tab.type("37")
        if ids[-1] == "field-1-0":
            tab.key("ArrowDown")
        if ids[-1] == "BUTTON":
            tab.key("Enter")
            break
    assert ids == ["SUMMARY", "SUMMARY", "field-0", "silent-0", "field-1-0", "BUTTON"]
    tab.until(f"{STATUS}.includes('Thank you')")
    fill_others(browser, study)
    assert study.counts()[4] == 3


@pytest.mark.parametrize("width", [375, 320])
def test_the_page_fits_a_phone(browser, study, width):
    tab = visit(browser, study)
    tab.wide(width)
    assert tab.value("document.documentElement.scrollWidth") <= width
    touched = "'button, .choice, input[type=number], summary'"
    heights = f"[...document.querySelectorAll({touched})].map((each) => each.getBoundingClientRect().height)"
    assert min(tab.value(heights)) >= 44


def test_a_screen_reader_hears_a_name_of_everything_that_can_be_done(browser, study):
    tab = visit(browser, study)
    nodes = tab.ask("Accessibility.getFullAXTree")["nodes"]
    named = {}
    for each in nodes:
        role = each.get("role", {}).get("value")
        if role in ("spinbutton", "radio", "checkbox", "button", "heading", "group"):
            named.setdefault(role, []).append(each.get("name", {}).get("value", ""))
    groups = named.pop("group")
    assert "Do you smoke?" in groups
    assert all(name for names in named.values() for name in names), named
    assert "How old are you? (0 to 120)" in named["spinbutton"]
    assert named["radio"] == ["yes", "no", "rather not say"]
    assert tab.value("document.documentElement.lang") == "en"
    assert {each.get("role", {}).get("value") for each in nodes} >= {"main", "group", "status"}


def test_the_next_persons_link_in_the_same_tab_begins_anew(browser, study):
    tab = visit(browser, study)
    fill(tab)
    send(tab)
    tab.ask("Page.navigate", url=study.link(1))
    tab.until(f"document.querySelector('{AGE}')")
    assert tab.value("location.hash") == ""
    assert "Thank you" not in tab.value("document.body.innerText")
    assert tab.value("document.querySelectorAll('main > button').length") == 0
    fill(tab, "70")
    send(tab)
    assert sorted(study.reports) == [0, 1]


def test_where_the_server_is_away_the_link_may_be_tried_again(browser, study):
    study.early = lambda method, path: problem("no_panel", 503, retry=True, after=60)
    tab = browser.tab(study.link(0))
    tab.until(f"{STATUS}.includes('has not begun')")
    study.early = lambda method, path: None
    tab.click("form button")
    tab.until(f"document.querySelector('{AGE}')")


STATES = {
    "asked": lambda tab: None,
    "wrong": lambda tab: tab.click("form button"),
    "sent": lambda tab: (fill(tab), send(tab)),
    "typed": lambda tab: tab.go(tab.value("location.href") + "?"),
}


@pytest.mark.skipif(
    not AXE.exists(), reason="axe-core is not here: npm install --no-save axe-core in clients/javascript"
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(browser, study, state, scheme):
    tab = visit(browser, study)
    tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.ask("Page.setBypassCSP", enabled=True)
    STATES[state](tab)
    tab.value(AXE.read_text("utf-8") + ";0")
    found = tab.value("axe.run().then(({ violations }) => violations.map(({ id, help }) => `${id}: ${help}`))")
    assert found == []


def test_the_documentations_pictures_can_be_made_again(tmp_path):
    pictures.take(tmp_path)
    page = (CLIENT.parents[1] / "docs" / "devices.md").read_text("utf-8")
    for name in pictures.NAMES:
        assert f"(images/{name})" in page
        assert len((tmp_path / name).read_bytes()) > 10_000


def test_without_a_link_the_page_takes_one_typed_from_paper(browser, study):
    tab = browser.tab(f"{study.site}/")
    tab.until("document.querySelector('#invitation')")
    tab.click("#invitation")
    typed = re.sub(r"([A-Z2-7]{4})", r"\1 ", study.invitations[0].fragment.lower())
    tab.type(typed[:-1] + ("a" if typed[-1] != "a" else "b"))
    tab.key("Enter")
    tab.until(f"{STATUS}.includes('wrong')")
    tab.value("document.querySelector('#invitation').select()")
    tab.type(typed)
    tab.key("Enter")
    tab.until(f"document.querySelector('{AGE}')")
