"""Debian's Chromium, driven by Playwright. No sandbox: root runs it in containers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PROGRAM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars"),
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for many pages."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=PROGRAM, headless=True, args=list(SWITCHES)
        )
        try:
            yield browser
        finally:
            browser.close()
