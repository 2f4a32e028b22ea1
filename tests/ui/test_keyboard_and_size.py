"""By keyboard alone; 2,000 topics; the size of the page; and nothing that needs the outside."""

from __future__ import annotations

import gzip
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

from playwright.sync_api import Page, expect

from tests.ui.conftest import PHONE, Open, width_beyond
from tests.ui.fixture_worker import UI
from tests.ui.situations import many_topics, problems

MOST_ROWS_IN_PAGE = 130
SENT_BYTES = 92_000  # all scripts, each compressed as it is sent
FONT_BYTES = 90_000


def rows(page: Page) -> int:
    return page.locator("main tbody tr.row").count()


def test_two_thousand_topics_are_a_window_of_rows(open_page: Open) -> None:
    page, worker = open_page(many_topics(), "#topics?sort=topic&dir=asc")
    expect(page.get_by_role("main")).to_contain_text("2,000 of 2,000")
    table = page.get_by_role("table", name="Mirrored topics")
    expect(table).to_have_attribute("aria-rowcount", "2001")
    assert rows(page) < MOST_ROWS_IN_PAGE
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(page.get_by_text("tenant-1978.orders", exact=True)).to_be_visible()
    assert rows(page) < MOST_ROWS_IN_PAGE
    assert any("offset=1800" in path for path in worker.asked)

    page.get_by_label("Filter topics").fill("tenant-1234")
    expect(page.get_by_role("main")).to_contain_text("1 of 1")
    page.get_by_role("button", name="Details of us-east to us-west/tenant-1234.orders").click()
    expect(page.get_by_role("region", name="Partitions")).to_be_visible()
    assert "q=tenant-1234" in page.url


def test_two_thousand_topics_on_a_phone(open_page: Open) -> None:
    page, _ = open_page(many_topics(), "#topics", size=PHONE)
    expect(page.get_by_text("clickstream-raw", exact=True)).to_be_visible()
    assert rows(page) < MOST_ROWS_IN_PAGE
    assert width_beyond(page) <= 0


def test_news_change_no_order_under_the_pointer(open_page: Open) -> None:
    page, worker = open_page(problems(), "#topics")
    first = page.locator("main tbody tr.row").first
    expect(first).to_contain_text("clickstream-raw")
    first.hover()
    for row in worker.situation.answers["topics"]["rows"]:
        if row["topic"] == "clickstream-raw":
            row.update(state="live", word="Live")
    worker.situation.bump("topics")
    expect(first).to_contain_text("Live")
    expect(first).to_contain_text("clickstream-raw")


def test_filters_are_part_of_the_address_and_back_works(open_page: Open) -> None:
    page, _ = open_page(problems(), "#topics?state=problem&q=pay")
    expect(page.get_by_role("main")).to_contain_text("1 of 3")
    page.get_by_role("button", name="All").click()
    expect(page.get_by_role("main")).not_to_contain_text("1 of 3")
    page.go_back()
    expect(page.get_by_role("main")).to_contain_text("1 of 3")
    assert "flow" not in page.url
    page.get_by_label("Filter topics").fill("nothing-like-this")
    expect(page.get_by_role("heading", name="No topic matches")).to_be_visible()
    page.get_by_role("link", name="Not mirrored, and why").click()
    expect(page.get_by_role("tab", name="Not mirrored, and why")).to_have_attribute(
        "aria-selected", "true"
    )


def test_rows_are_walked_opened_and_closed_by_keys(open_page: Open) -> None:
    page, _ = open_page(problems(), "#topics")
    expect(page.get_by_role("main")).to_contain_text("clickstream-raw")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Partitions")).to_be_visible()
    assert "open=us-east->us-west/payments" in unquote(page.url)
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Partitions")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_label("Filter topics")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("x")
    expect(page.get_by_role("heading", level=1)).to_have_text("Failover")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next and previous row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_tab_reaches_everything_in_order(open_page: Open) -> None:
    page, _ = open_page(problems(), "#connectors")
    expect(page.get_by_role("main")).to_contain_text("Trace of task 2")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    seen = []
    for _ in range(24):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
    assert "Restart failed task" in seen
    assert "Copy" in seen
    assert seen.index("Restart failed task") < seen.index("Copy")


def test_a_flow_scopes_every_view(open_page: Open) -> None:
    page, _ = open_page(problems(), "#topics")
    page.get_by_role("navigation", name="Flows").get_by_role("link").nth(3).click()
    expect(page.get_by_role("main")).to_contain_text("clickstream-raw")
    expect(page.get_by_role("main")).not_to_contain_text("payments")
    page.get_by_role("link", name="Connectors").first.click()
    expect(page.get_by_role("navigation", name="Connectors").get_by_role("link")).to_have_count(3)
    assert "flow=us-west->central" in unquote(page.url)


def test_the_page_is_small() -> None:
    scripts = [path.read_bytes() for path in UI.rglob("*.js")]
    fonts = sum(path.stat().st_size for path in UI.rglob("*.woff2"))
    sent = sum(len(gzip.compress(script)) for script in scripts)
    assert sent <= SENT_BYTES
    assert fonts <= FONT_BYTES


def test_all_modules_are_asked_for_at_once() -> None:
    later = {"main.js", "theme.js", "uplot.js"}  # the last with the first chart
    modules = {path.relative_to(UI).as_posix() for path in UI.rglob("*.js")}
    named = re.findall(r'rel="modulepreload" href="([^"]+)"', (UI / "index.html").read_text())
    assert sorted(named) == sorted(path for path in modules if Path(path).name not in later)


def test_the_page_ships_in_the_wheel() -> None:
    project = tomllib.loads((UI.parents[2] / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/sparkmirror"]}  # all files, not only modules
    assert (UI / "index.html").is_file()


def test_no_script_or_style_stands_in_the_page_and_nothing_is_asked_outside() -> None:
    ours = [path for path in UI.rglob("*") if path.suffix in (".js", ".html", ".css")]
    ours = [path for path in ours if path.parent.name != "vendor"]
    assert ours
    for path in ours:
        text = path.read_text()
        outside = re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z.]+/", text)
        assert outside == [], path
        assert "innerHTML" not in text, path
        assert "eval(" not in text, path
    index = (UI / "index.html").read_text()
    assert "<style" not in index
    assert re.findall(r"<script(?![^>]*src=)[^>]*>", index) == []
