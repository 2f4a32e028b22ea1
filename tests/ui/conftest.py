"""One browser for the tests of a file; each test has a worker and a tab of its own.

Playwright keeps an event loop on this thread while it runs: other tests of the same process need
their own, so it ends with each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from tests.ui.browser import chromium
from tests.ui.fixture_worker import FixtureWorker, served
from tests.ui.situations import Situation

DESKTOP = (1440, 900)
PHONE = (390, 844)
SMALLEST = (320, 640)
Open = Callable[..., tuple[Page, FixtureWorker]]
# What a test switches on itself: a failed request is logged by the browser, not by the page.
EXPECTED = "Failed to load resource"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with chromium() as running:
        yield running


@pytest.fixture
def errors() -> list[str]:
    """What the browser complained about; every test ends with none."""
    return []


@pytest.fixture
def open_page(browser: Browser, errors: list[str]) -> Iterator[Open]:
    """Open the page: open_page(situation, "#topics", size=PHONE, theme="dark")."""
    with ExitStack() as stack:

        def opened(
            situation: Situation,
            address: str = "",
            size: tuple[int, int] = DESKTOP,
            theme: str = "light",
        ) -> tuple[Page, FixtureWorker]:
            worker, url = stack.enter_context(served(situation))
            context = browser.new_context(
                viewport={"width": size[0], "height": size[1]},
                color_scheme="dark" if theme == "dark" else "light",
                reduced_motion="reduce",
            )
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(10_000)
            page.on("console", lambda message: _note(errors, message))
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on(
                "request",
                lambda request: (
                    errors.append(f"asked outside: {request.url}")
                    if not request.url.startswith(url.removesuffix("ui/"))
                    else None
                ),
            )
            page.goto(url + address)
            return page, worker

        yield opened
    assert errors == []


def _note(errors: list[str], message: ConsoleMessage) -> None:
    if message.type in ("error", "warning") and EXPECTED not in message.text:
        errors.append(message.text)


def width_beyond(page: Page) -> int:
    """How many pixels of the page are to the right of the window."""
    script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    beyond: int = page.evaluate(script)
    return beyond
