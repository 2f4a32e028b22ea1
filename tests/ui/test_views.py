"""Each view says what it is for: its words and figures, in both themes and at each width."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.ui.conftest import DESKTOP, PHONE, SMALLEST, Open, width_beyond
from tests.ui.situations import all_right, catching_up, nothing_configured, problems


@dataclass(frozen=True)
class View:
    """An address, and texts that stand there when all is loaded."""

    address: str
    texts: tuple[str, ...]


VIEWS = {
    "overview": View(
        "", ("2 things need you. Nothing is lost yet.", "Loss begins in", "5 h 21 min")
    ),
    "flow": View(
        "#flow?flow=us-east->us-west",
        ("1 partition is stuck, the rest is live", "Latency, append to ack", "Slowest partitions"),
    ),
    "topics": View(
        "#topics?open=us-east->us-west/payments",
        ("clickstream-raw", "payments-7 stuck", "Copying resumes by itself"),
    ),
    "why not": View(
        "#topics?tab=whynot&open=us-east->us-west/pricing-internal",
        ("lacks READ on it at us-east", "matches: excluded", "To mirror it, leave that pattern"),
    ),
    "groups": View(
        "#groups?open=us-east->us-west/fraud-scoring",
        ("9,634", "Not synced: 3 members on us-west", "Translated to us-west"),
    ),
    "connectors": View(
        "#connectors",
        ("1 of 4 tasks failed", "Trace of task 2", "--add-config max.message.bytes=2097152"),
    ),
    "config": View("#connectors?c=mm2-msc-us-west-central&ct=config", ("[hidden]",)),
    "offsets": View("#connectors?c=mm2-msc-us-west-central&ct=offsets", ("88,120,002",)),
    "events": View("#events", ("Broker 3 of us-west unreachable", "2 brokers alive; 46 times")),
    "failover": View(
        "#failover?flow=us-east->us-west",
        ("Not ready: 266,953 records would be lost", "You check", "Stop the mirror"),
    ),
}
OF_PHONES_HIDDEN = {"connectors": "#connectors?c=mm2-msc-us-west-central"}
HIDDEN_ON_PHONES = {"Translated to us-west"}


def shows(page: Page, view: View, *, phone: bool = False) -> None:
    main = page.get_by_role("main")
    for text in view.texts:
        if not (phone and text in HIDDEN_ON_PHONES):
            # Units have a space that does not break; the text is compared as it is read.
            expect(main).to_contain_text(text)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def serious(page: Page) -> list[str]:
    """What axe finds that keeps somebody from using the page."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_say_what_they_are_for_without_barriers(
    open_page: Open, name: str, theme: str
) -> None:
    page, _ = open_page(problems(), VIEWS[name].address, theme=theme)
    shows(page, VIEWS[name])
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert width_beyond(page) <= 0
    assert serious(page) == []


@pytest.mark.parametrize("size", [PHONE, SMALLEST], ids=["390", "320"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_fit_on_a_phone(open_page: Open, name: str, size: tuple[int, int]) -> None:
    address = OF_PHONES_HIDDEN.get(name, VIEWS[name].address)
    page, _ = open_page(problems(), address, size=size)
    shows(page, VIEWS[name], phone=True)
    assert width_beyond(page) <= 0
    assert serious(page) == []


@pytest.mark.parametrize("width", [1001, 1240, 1250])
@pytest.mark.parametrize("name", VIEWS)
def test_views_fit_in_half_a_window(open_page: Open, name: str, width: int) -> None:
    page, _ = open_page(problems(), VIEWS[name].address, size=(width, 800))
    shows(page, VIEWS[name])
    assert width_beyond(page) <= 0


def test_everything_all_right_is_said_with_the_evidence(open_page: Open) -> None:
    page, _ = open_page(all_right())
    expect(page.get_by_role("heading", name="Everything is all right")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("All 214 partitions are live")
    assert page.title() == "Overview \u2013 sparkmirror"


def test_the_title_counts_the_open_problems(open_page: Open) -> None:
    page, _ = open_page(problems(), "#events")
    shows(page, VIEWS["events"])
    assert page.title() == "(2) Events \u2013 sparkmirror"


def test_a_backlog_is_shown_with_its_forecast(open_page: Open) -> None:
    page, _ = open_page(catching_up(), "#flow?flow=us-east->us-west")
    main = page.get_by_role("main")
    expect(main).to_contain_text("Catching up, done in about 4 min")
    expect(main).to_contain_text("records, with forecast")
    expect(page.locator(".chart canvas")).to_have_count(4)


def test_charts_are_read_by_keys_and_as_tables(open_page: Open) -> None:
    page, _ = open_page(problems(), "#flow?flow=us-east->us-west")
    chart = page.get_by_role("img", name="Lag: now 14 min 10 s")
    expect(chart.locator("canvas")).to_have_count(1)
    chart.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".legend").nth(1)).to_contain_text("03:12:15")
    page.get_by_role("button", name="Lag as table").click()
    expect(page.get_by_role("region", name="Lag as table").get_by_role("row")).to_have_count(36)


def test_the_first_command_is_shown_where_nothing_is_configured(open_page: Open) -> None:
    page, _ = open_page(nothing_configured())
    expect(page.get_by_role("heading", name="No flow yet")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("sparkmirror deploy us-east --dir mm2")
    assert serious(page) == []


def test_names_of_others_are_text_never_markup(open_page: Open) -> None:
    situation = problems()
    row = situation.answers["topics"]["rows"][0]
    row["topic"] = "<img src=x onerror=alert(1)>"
    situation.overview["problems"][0]["title"] = "`<b id=evil>bold</b>` has failed"
    page, _ = open_page(situation)
    expect(page.get_by_role("heading", name="<b id=evil>bold</b> has failed")).to_be_visible()
    assert page.locator("#evil").count() == 0
    page.get_by_role("link", name="Topics").first.click()
    expect(page.get_by_role("main")).to_contain_text("<img src=x onerror=alert(1)>")


def test_the_theme_is_kept(open_page: Open) -> None:
    page, _ = open_page(all_right(), size=DESKTOP)
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Auto").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
