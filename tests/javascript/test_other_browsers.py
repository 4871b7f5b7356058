"""A person's answer from a real Firefox, whose WebCrypto (NSS) exports no Ed25519 key, and from a real WebKit."""

import json

import pytest

from tests.javascript.study import Study
from tests.webdriver import firefox, needs_firefox, needs_webkit, webkit

pytestmark = pytest.mark.ci
BROWSERS = [pytest.param(firefox, marks=needs_firefox), pytest.param(webkit, marks=needs_webkit)]

STATUS = "document.querySelector('[role=status]').textContent"
TEXTS = {
    "de": {
        "title": "Rauchen in Ulm",
        "questions": {
            "How old are you?": {"question": "Wie alt sind Sie?", "help": "In Jahren."},
            "Do you smoke?": {"question": "Rauchen Sie?", "answers": {"yes": "ja", "no": "nein"}},
        },
    }
}


def answer(tab, study, index, age="37", thanks="Thank you"):
    tab.go(study.link(index))
    tab.until("document.querySelector('#field-0')")
    tab.type("#field-0", age)
    tab.click("#field-1-1")
    tab.click("form button")
    tab.until(f"{STATUS}.includes({json.dumps(thanks)})")


@pytest.mark.parametrize("browser", BROWSERS)
def test_three_answers_are_counted(browser, tmp_path):
    with Study() as study, browser(tmp_path / "profile") as tab:
        for index in range(3):
            answer(tab, study, index)
            assert tab.value("location.hash") == ""
        tab.go(study.link(0))
        tab.until(f"{STATUS}.includes('already sent')")
        assert sorted(study.reports) == [0, 1, 2]
        assert study.counts()[3 * 1 + 1] == 3  # 20..40, no


@needs_firefox
def test_a_german_firefox_is_asked_in_german_and_its_tabs_send_one_answer(tmp_path):
    with Study(texts=TEXTS) as study, firefox(tmp_path / "profile", **{"intl.accept_languages": "de-DE"}) as tab:
        tab.go(study.link(0))
        tab.until("document.querySelector('#field-0')")
        said = tab.value("document.body.innerText")
        assert [tab.value(f"document.{each}") for each in ("title", "documentElement.lang")] == ["Rauchen in Ulm", "de"]
        for words in ("Wie alt sind Sie? (0 bis 120)", "In Jahren.", "Rauchen Sie?", "nein", "keine Angabe"):
            assert words in said
        assert len(said.split("Wie alt sind Sie?")[0].split()) < 120
        first = tab.ask("GetWindowHandle")["value"]
        tab.ask("SwitchToWindow", handle=tab.ask("NewWindow", type="tab")["handle"], focus=True)
        answer(tab, study, 0, thanks="Danke")
        tab.ask("SwitchToWindow", handle=first, focus=True)
        tab.type("#field-0", "70")
        tab.click("#field-1-0")
        tab.click("form button")
        tab.until(f"{STATUS}.includes('Es gilt die Antwort aus einem anderen Tab')")
        assert len({*study.sent}) == len(study.reports) == 1
