"""Live, or honest about it: news arrive by themselves, and what is not live says so."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.ui.conftest import Open
from tests.ui.situations import all_right, problems


def heading(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.get_by_role("heading", level=2, name=text)).to_be_visible(timeout=25_000)


def test_a_failure_appears_by_itself(open_page: Open) -> None:
    page, worker = open_page(all_right())
    heading(page, "Everything is all right")
    worker.situation.answers["overview"] = problems().overview
    heading(page, "2 things need you. Nothing is lost yet.")
    assert page.title().startswith("(2) ")


def test_an_open_view_is_asked_for_again_when_the_stream_reports_a_change(open_page: Open) -> None:
    page, worker = open_page(problems(), "#groups")
    expect(page.get_by_role("main")).to_contain_text("fraud-scoring")
    row = worker.situation.answers["groups"]["rows"][0]
    row.update(state="synced", reason="", reread_records=0)
    worker.situation.bump("groups")
    expect(page.get_by_role("row", name=re.compile("fraud-scoring"))).to_contain_text("Synced")


def test_without_a_stream_the_page_says_since_when(open_page: Open) -> None:
    page, worker = open_page(problems())
    expect(page.get_by_role("button", name="Live 03:12:45 UTC")).to_be_visible()
    worker.is_silent = True
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("Not live.", timeout=25_000)
    expect(banner).to_contain_text("Everything below is as of 03:12:45 UTC")
    heading(page, "At 03:12:45 UTC, 2 things needed you")
    worker.is_silent = False
    page.get_by_role("button", name="Try now").click()
    expect(banner).to_have_count(0)
    heading(page, "2 things need you. Nothing is lost yet.")


def test_a_worker_that_is_gone_names_the_others(open_page: Open, errors: list[str]) -> None:
    page, worker = open_page(all_right())
    heading(page, "Everything is all right")
    worker.is_gone = True
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("sm-worker-2:8083 does not answer.", timeout=25_000)
    expect(banner).to_contain_text("The mirror may well go on.")
    expect(banner.get_by_role("link", name="sm-worker-1:8083")).to_have_attribute(
        "href", "http://sm-worker-1:8083/ui/"
    )
    heading(page, "At 03:12:45 UTC, everything was all right")
    worker.is_gone = False
    expect(banner).to_have_count(0, timeout=15_000)
    heading(page, "Everything is all right")


def test_a_request_that_fails_says_so_in_its_panel(open_page: Open) -> None:
    situation = problems()
    page, worker = open_page(situation, "#events")
    worker.broken["topics"] = (503, "us-east does not answer: connection refused")
    page.get_by_role("link", name="Topics").first.click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("us-east does not answer: connection refused")
    del worker.broken["topics"]
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("main")).to_contain_text("clickstream-raw")
    expect(alert).to_have_count(0)


def test_what_the_worker_refuses_in_a_filter_is_shown(open_page: Open) -> None:
    page, worker = open_page(problems(), "#topics")
    expect(page.get_by_role("main")).to_contain_text("clickstream-raw")
    worker.broken["topics"] = (400, "q: missing closing ): /(/")
    page.get_by_label("Filter topics").fill("/(/")
    expect(page.get_by_role("alert")).to_contain_text("q: missing closing )")


def test_the_first_answer_that_does_not_come_is_explained(open_page: Open) -> None:
    situation = all_right()
    page, worker = open_page(situation)
    worker.broken["overview"] = (500, "the group has no leader yet")
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("the group has no leader yet")
    expect(page.get_by_role("alert")).to_contain_text("Trying again")


def test_what_is_unknown_is_never_shown_as_zero(open_page: Open) -> None:
    situation = problems()
    problem = situation.overview["problems"][0]
    problem.update(seconds_until_loss=None, loss_at_ms=None)
    problem["unknown"] = {"seconds_until_loss": "no right to describe the settings of the topic"}
    page, _ = open_page(situation)
    article = page.get_by_role("article").first
    expect(article).to_contain_text("unknown")
    expect(article).to_contain_text("no right to describe the settings")
    reporting = situation.answers["groups"]["rows"][-1]
    assert reporting["reread_records"] is None
    page.get_by_role("link", name="Groups").first.click()
    expect(page.get_by_role("row", name=re.compile("reporting"))).to_contain_text("unknown")
