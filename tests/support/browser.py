"""Chromium without a window, and what it did."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = ("chromium", "google-chrome")
"""What Debian calls it; and its sibling, which hosted runners have."""

ARGUMENTS = [
    "--no-sandbox",  # tests run as root, where the sandbox does not
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    # Nothing of its own goes out: what a test sees on the wire is the page's.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own that is thrown away."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A page, where its requests went, and what it complained about."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message) -> None:
        # A refused photo is no fault of the page; the browser reports it like one.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def strangers(self, origin: str) -> list[str]:
        """Requests that left the origin."""
        return [url for url in self.requests if not url.startswith((f"{origin}/", "blob:"))]


@contextmanager
def visit(browser: Browser, **options: object) -> Iterator[Visit]:
    """A page in a fresh context (``color_scheme="dark"``, ``viewport=…``)."""
    context = browser.new_context(**options)
    try:
        yield Visit(context)
    finally:
        context.close()
