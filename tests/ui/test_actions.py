"""Actions: each asks first, says what will happen, and shows what the worker then reports."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.ui.conftest import PHONE, Open
from tests.ui.situations import problems

NAME = "mm2-msc-us-west-central"
ADDRESS = f"#connectors?c={NAME}"


def dialog(page: Page) -> str:
    box = page.get_by_role("dialog")
    expect(box).to_be_visible()
    return box.inner_text()


def test_pausing_says_when_loss_begins_and_shows_the_state(open_page: Open) -> None:
    page, worker = open_page(problems(), ADDRESS)
    page.get_by_role("button", name="Pause").click()
    text = dialog(page)
    assert "42 partitions of us-west to central are no longer copied" in text
    assert "Loss begins in 5 h 21 min" in text
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert worker.changes() == [("PUT", f"/connectors/{NAME}/pause")]
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_stopping_wants_the_name_typed(open_page: Open) -> None:
    page, worker = open_page(problems(), ADDRESS)
    page.get_by_role("button", name="Stop").click()
    yes = page.get_by_role("button", name="Stop connector")
    expect(yes).to_be_disabled()
    page.get_by_label("To confirm").fill("mm2-msc")
    expect(yes).to_be_disabled()
    page.get_by_label("To confirm").fill(NAME)
    yes.click()
    expect(page.locator(".detail .title")).to_contain_text("Stopped")
    assert worker.changes() == [("PUT", f"/connectors/{NAME}/stop")]


def test_escape_and_cancel_do_nothing(open_page: Open) -> None:
    page, worker = open_page(problems(), ADDRESS)
    for way in ("Escape", "Enter"):  # the focus is on Cancel
        page.get_by_role("button", name="Restart all").click()
        dialog(page)
        page.keyboard.press(way)
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert worker.changes() == []


def test_a_failed_task_is_restarted_and_its_remedy_is_said(open_page: Open) -> None:
    page, worker = open_page(problems(), ADDRESS)
    page.get_by_role("button", name="Restart task 2").click()
    assert "A restart alone may not help. Raise the limit" in dialog(page)
    page.get_by_role("dialog").get_by_role("button", name="Restart task").click()
    expect(page.locator(".detail .title")).to_contain_text("Restarting")
    expect(page.locator(".detail .title")).to_contain_text("Running")
    assert worker.changes() == [("POST", f"/connectors/{NAME}/tasks/2/restart")]


def test_restarting_all_and_only_failed_tasks_are_different_requests(open_page: Open) -> None:
    page, worker = open_page(problems(), ADDRESS)
    page.get_by_role("button", name="Restart failed task").click()
    page.get_by_role("dialog").get_by_role("button", name="Restart").click()
    expect(page.get_by_role("button", name="Restart failed task")).to_have_count(0)
    page.get_by_role("button", name="Restart all").click()
    page.get_by_role("dialog").get_by_role("button", name="Restart all").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert worker.changes() == [
        ("POST", f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=true"),
        ("POST", f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=false"),
    ]


def test_an_action_that_fails_says_why_in_its_place(open_page: Open) -> None:
    page, worker = open_page(problems(), ADDRESS)
    worker.broken["change"] = (409, "a rebalance is under way: try again in a moment")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    alert = page.get_by_role("dialog").get_by_role("alert")
    expect(alert).to_contain_text("a rebalance is under way")
    del worker.broken["change"]
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_readers_see_no_buttons(open_page: Open) -> None:
    situation = problems()
    situation.be_read_only()
    page, _ = open_page(situation, ADDRESS)
    expect(page.get_by_role("main")).to_contain_text(
        "Read-only: you are signed in as guest. Actions need the role operator."
    )
    for word in ("Pause", "Stop", "Restart", "Resume"):
        assert page.get_by_role("button", name=word).count() == 0
    expect(page.get_by_role("button", name="Copy").first).to_be_visible()
    expect(page.locator(".foot")).to_contain_text("viewer (read-only)")


def test_offsets_are_edited_only_while_stopped_and_after_a_look_at_the_difference(
    open_page: Open,
) -> None:
    page, worker = open_page(problems(), f"{ADDRESS}&ct=offsets")
    expect(page.get_by_role("main")).to_contain_text("Stop it first")
    assert page.get_by_label("Offset of clickstream-raw-0").count() == 0

    worker.situation.connector(NAME).update(state="STOPPED", tasks=[])
    worker.situation.bump("connectors")
    field = page.get_by_label("Offset of clickstream-raw-0")
    field.fill("many")
    expect(page.get_by_role("main")).to_contain_text("an offset is a whole number, or empty")
    expect(page.get_by_role("button", name="Review 1 change")).to_be_disabled()
    field.fill("88119000")
    page.get_by_label("Offset of clickstream-raw-1").fill("88120101")
    page.get_by_label("Offset of clickstream-raw-2").fill("")
    page.get_by_role("button", name="Review 3 changes").click()
    text = dialog(page)
    assert "1 partition would go back: their records are copied a second time." in text
    assert "1 partition would go ahead: the records in between are never copied." in text
    assert "-1,000" in text
    assert "+100" in text
    assert "removed" in text
    assert worker.changes() == []
    page.get_by_label("To confirm").fill(NAME)
    page.get_by_role("button", name="Write offsets").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(field).to_have_value("88119000")
    ((method, path, body),) = worker.requests
    assert (method, path) == ("PATCH", f"/connectors/{NAME}/offsets")
    assert [each["offset"] for each in body["offsets"]] == [
        {"offset": 88_119_000},
        {"offset": 88_120_101},
        None,
    ]
    assert body["offsets"][0]["partition"] == {
        "cluster": "us-west",
        "topic": "clickstream-raw",
        "partition": 0,
    }


def test_a_reset_wants_the_name_typed(open_page: Open) -> None:
    situation = problems()
    situation.connector(NAME).update(state="STOPPED", tasks=[])
    page, worker = open_page(situation, f"{ADDRESS}&ct=offsets")
    page.get_by_role("button", name="Reset all").click()
    assert "from the earliest record" in dialog(page)
    page.get_by_label("To confirm").fill(NAME)
    page.get_by_role("button", name="Reset offsets").click()
    expect(page.get_by_role("main")).to_contain_text("It has stored no offsets yet.")
    assert worker.changes() == [("DELETE", f"/connectors/{NAME}/offsets")]


def test_actions_are_done_on_a_phone(open_page: Open) -> None:
    page, worker = open_page(problems(), "#connectors", size=PHONE)
    page.get_by_role("link", name=NAME).click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert worker.changes() == [("PUT", f"/connectors/{NAME}/pause")]


def test_losses_stay_until_somebody_acknowledges_them(open_page: Open) -> None:
    situation = problems()
    overview = situation.overview
    overview["verdict"].update(code="lost", head="Records were lost.")
    overview["problems"][0].update(code="lost", id="lost 1")
    page, _ = open_page(situation)
    expect(page.get_by_role("heading", name="Records were lost.")).to_be_visible()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("heading", name="1 thing needs you.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="1 thing needs you.")).to_be_visible()
