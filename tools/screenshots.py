"""Draws docs/images/*.png: the page in the situations of tests/ui. Called by `make screenshots`.

    PYTHONPATH=. python tools/screenshots.py [NAME ...]

The figures are those of tests/ui/situations.py, so that two runs draw the same pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.ui.browser import chromium
from tests.ui.fixture_worker import served
from tests.ui.situations import Situation, all_right, catching_up, problems

IMAGES = Path(__file__).parent.parent / "docs" / "images"
MOST_BYTES = 200_000


@dataclass(frozen=True)
class Picture:
    """What is shown, and how large."""

    situation: Callable[[], Situation]
    address: str = ""
    width: int = 1420
    height: int = 900
    theme: str = "light"


PICTURES = {
    "overview": Picture(problems, height=810),
    "overview-dark": Picture(problems, height=800, theme="dark"),
    "overview-all-right": Picture(all_right, height=820),
    "overview-phone": Picture(problems, width=390, height=844),
    "catching-up": Picture(catching_up, "#flow?flow=us-east->us-west", height=1010),
    "flow": Picture(problems, "#flow?flow=us-east->us-west", height=1010),
    "topics": Picture(problems, "#topics?open=us-east->us-west/payments"),
    "topics-phone": Picture(problems, "#topics", width=390, height=844, theme="dark"),
    "why-not": Picture(
        problems, "#topics?tab=whynot&open=us-east->us-west/pricing-internal", height=760
    ),
    "groups": Picture(problems, "#groups?open=us-east->us-west/fraud-scoring", height=800),
    "connectors": Picture(problems, "#connectors", height=730),
    "events": Picture(problems, "#events", height=860),
    "failover": Picture(problems, "#failover?flow=us-east->us-west", height=880),
}


def draw(browser: Browser, name: str, picture: Picture) -> int:
    """One picture, when everything in it is loaded; its size."""
    with served(picture.situation()) as (_, url):
        context = browser.new_context(
            viewport={"width": picture.width, "height": picture.height},
            color_scheme="dark" if picture.theme == "dark" else "light",
            device_scale_factor=1.5 if picture.width < 500 else 1,
        )
        page = context.new_page()
        page.goto(url + picture.address)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("button.clock")).to_contain_text(":")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        charts = 4 if picture.address.startswith("#flow") else 0
        expect(page.locator(".chart canvas")).to_have_count(charts)
        page.evaluate("document.fonts.ready")
        page.screenshot(path=IMAGES / f"{name}.png")
        context.close()
    size = (IMAGES / f"{name}.png").stat().st_size
    sys.stdout.write(f"{name}: {size // 1000} kB\n")
    return size


def main(names: list[str]) -> None:
    """Draw those, or all."""
    IMAGES.mkdir(exist_ok=True)
    wanted = {name: each for name, each in PICTURES.items() if not names or name in names}
    with chromium() as browser:
        sizes = {name: draw(browser, name, picture) for name, picture in wanted.items()}
    if large := [name for name, size in sizes.items() if size > MOST_BYTES]:
        sys.exit(f"larger than {MOST_BYTES // 1000} kB: {', '.join(large)}")


if __name__ == "__main__":
    main(sys.argv[1:])
