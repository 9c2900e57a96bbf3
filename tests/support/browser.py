"""Debian's chromium on the archiver's page, through Airflow's real login."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from scripts.stack.paths import BIN
from scripts.stack.ports import free_ports
from tests.support.airflow import Airflow
from tests.support.api_server import api_server_with_login, password
from tests.support.waiting import until

CHROMIUM = shutil.which("chromium")
PHONE = {"width": 390, "height": 844}
# The folder of the docs' pictures, if they are to be drawn, and the most bytes of each.
PICTURES, LARGE = os.environ.get("ARCHIVER_SCREENSHOTS"), 150_000
# Pillow is no requirement of ours: only somebody who draws the pictures needs it. Rare colours stay.
PALETTE = """
import sys
from PIL import Image
picture = Image.open(sys.argv[1]).convert("RGB")
picture.quantize(255, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(sys.argv[1], optimize=True)
"""


@dataclass(frozen=True)
class OnePort:
    BASE = 18_180
    web: int


@contextmanager
def site_of(airflow: Airflow, directory: Path) -> Iterator[str]:
    """Start an API server of this Airflow on which people have to log in; give its address."""
    settings = {k: v for k, v in airflow._environment.items() if k.startswith(("AIRFLOW", "ARCHIVER", "JAVA"))}
    with api_server_with_login(directory / "server", free_ports(OnePort).web, settings) as url:
        yield url


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


def log_in(browser: Browser, site: str, who: str, path: str = "/archiver/", **options: Any) -> Page:
    """Return a page of somebody who is logged in by Airflow's own form; its context is the caller's to close."""
    page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}).new_page()
    page.goto(f"{site}{path}")
    page.fill("input[name=username]", who)
    page.fill("input[name=password]", password(who))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}{path}")
    settled(page)
    return page


def settled(page: Page) -> None:
    """Wait until the page shows fresh figures, so that it no longer loads itself again."""
    expect(page.locator("[data-refresh]")).to_have_count(0, timeout=60_000)


def reloaded(page: Page, selector: str, seconds: float = 60) -> None:
    """Reload until the page shows this, and fresh figures."""

    def is_shown() -> bool:
        page.reload()
        settled(page)
        return page.locator(selector).count() > 0

    until(is_shown, seconds=seconds, every=1)


def serious(page: Page) -> list[str]:
    """Return what axe calls serious or critical."""
    violations = Axe().run(page).response["violations"]
    bad = [violation for violation in violations if violation["impact"] in ("serious", "critical")]
    return [f"{violation['id']}: {node['html'][:200]}" for violation in bad for node in violation["nodes"]]


def picture(page: Page, name: str, below: str) -> None:
    """Draw a picture of the page for the docs: from its top to the end of an element."""
    file = Path(str(PICTURES)) / f"{name}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    box = page.locator(below).first.bounding_box()
    assert box
    clip = {"x": 0, "y": 0, "width": 1280, "height": round(box["y"] + box["height"] + 16)}
    page.screenshot(path=file, full_page=True, clip=clip)  # type: ignore[arg-type]
    pillow = [BIN / "uv", "run", "--no-project", "--with", "pillow==12.0.0", "python", "-c", PALETTE]
    subprocess.run([*pillow, file], check=True)
    assert file.stat().st_size <= LARGE, f"{file} has {file.stat().st_size} bytes"
