"""Debian's Chromium without a network: opens pages, and tells what it complained of."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

#: Both are of one version.
PROGRAMS = ("chromium", "chromedriver")
_SECONDS = 30


def is_there() -> bool:
    """Tell whether a browser is installed, and what drives it."""
    try:
        __import__("selenium")
    except ImportError:
        return False
    return all(map(which, PROGRAMS))


class Browser:
    """One window; pages are files."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path) -> float:
        """Open a page; return the seconds until its scripts were done and it was drawn."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        begun = time.monotonic()
        self.driver.get(page.as_uri())
        self.until(lambda: self.run("return document.documentElement.dataset.ready") == "1")
        self.drawn()
        return time.monotonic() - begun

    def run(self, script: str, *given: Any) -> Any:
        """Run a script in the page, and return what it returns."""
        return self.driver.execute_script(script, *given)

    def drawn(self) -> None:
        """Wait until two frames were drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
        )

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something, for so many seconds at most."""
        end = time.monotonic() + _SECONDS
        while not is_so():
            assert time.monotonic() < end, "the page does not come to it"
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Return what the console has: errors, warnings, and what the policy refused."""
        return [each["message"] for each in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return all that the page asked for since it was opened, but itself."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        here = self.driver.current_url
        return [each for each in found if each not in (here, "about:blank")]

    def size(self, width: int, height: int, *, dark: bool = False, paper: bool = False) -> None:
        """Show pages so wide and high, light or dark, or as they are printed."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = {"media": "print" if paper else "screen", "features": [theme]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def picture(self) -> bytes:
        """Return what is seen as PNG."""
        import base64

        self.drawn()
        found = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        return base64.b64decode(found["data"])


@contextmanager
def browser() -> Iterator[Browser]:
    """Give a browser that reaches nothing, and end it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = which(PROGRAMS[0]) or ""
    for word in (
        "--headless=new",
        "--no-sandbox",  # CI is root in a container
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--proxy-server=127.0.0.1:9",
        "--proxy-bypass-list=<-loopback>",
        "--disable-background-networking",
        "--force-color-profile=srgb",
        "--font-render-hinting=none",
        "--lang=en",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(which(PROGRAMS[1])))
    try:
        driver.set_script_timeout(_SECONDS)
        yield Browser(driver)
    finally:
        driver.quit()
