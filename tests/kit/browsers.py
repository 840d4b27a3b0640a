"""A real browser, and a log whose texts try to get out of their places on a page."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kit import make

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 1">',
    "'\"><svg onload='window.hacked = 1'>",
    "]]>--><!--<script>window.hacked = 1",
    "{{ 7 * 7 }}{% raw %}",
    "a\x00b\u2028c\u2029d\u202ee\ud7ff\ufffe",
    "javascript:window.hacked=1",
    "x" * 100_000,
)

MORE_HOSTILE = (
    *HOSTILE[:-1],
    *("&lt;script&gt;window.hacked=1&lt;/script&gt;", "<b>", "</style><script>window.hacked=1"),
    *("</textarea><img src=x onerror=window.hacked=1>", "<iframe srcdoc='<script>'></iframe>"),
    *("<svg/onload=window.hacked=1>", "<math><mi//xlink:href='data:x,'>", "<a href=//evil>x</a>"),
    *("<form action=//evil><button>x", "<base href=//evil/>", "<meta http-equiv=refresh>"),
    *("<link rel=stylesheet href=//evil>", "<object data=//evil>", "<embed src=//evil>"),
    *("${window.hacked=1}", "`;window.hacked=1;`", "');window.hacked=1;('"),
    '");window.hacked=1;("',
    *("__proto__", "constructor", "toString", "hasOwnProperty", "../../etc/passwd", "%2e%2e%2f"),
    *("a&run=b#c?d", "a=b&agent=c", "\\u003cscript\\u003e", "\r\nSet-Cookie: a=b", "\n\ndata: {}"),
    *("datum.agent", "javascript&colon;window.hacked=1", " ", "\u202eevil", "a\u0301" * 50),
)
"""Texts that would get out of their places on a page that runs scripts, or out of an address."""


@pytest.fixture(scope="session")
def hostile_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log in which every text tries to get out of its place on the page."""
    events = [make.started()]
    for number, text in enumerate(HOSTILE):
        agent, state, post = f"{number}{text}", f"{text}{number}", f"p{number}{text}"
        events += [
            make.joined(agent, state, name=text, archetype=text),
            make.move(agent, state, f"other {text}", trigger=text, ticks_in_state=number % 3),
            make.decision(
                agent,
                [state, text],
                text,
                state=state,
                source="fallback",
                reason=text,
                model=text,
                latency=0.1,
            ),
            make.post(agent, post, text=text),
            make.post(agent, f"answer {post}", post, post, text=text),
            make.like(agent, post, agent),
        ]
    path = tmp_path_factory.mktemp("hostile") / f"{HOSTILE[1][:8].replace('<', '(')}&'.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


_PAGES_OF_ITS_OWN = ("chrome://", "chrome-untrusted://")


@dataclass
class Browser:
    """A real browser without a window, and what it tells of a page."""

    driver: Any

    def open(self, html: str, folder: Path) -> None:
        """Show a page from a file, and wait until its figures are drawn."""
        path = folder / "report.html"
        path.write_text(html, encoding="utf-8")
        self.visit(path.as_uri())
        self.wait("document.body.dataset.drawn")

    def visit(self, address: str) -> None:
        """Show a page, and keep nothing that the one before it logs and asks for."""
        # its server may be gone, which it would tell while the new page loads
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(address)

    def prefer(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark`` pages."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def be_a_phone(self, width: int) -> None:
        """Show pages as a phone of this width does; 0 ends that."""
        if not width:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            return

        metrics = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def run(self, script: str, *arguments: Any) -> Any:
        """Evaluate a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until something is true in the page."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60, 0.05).until(
            lambda driver: driver.execute_script(f"return {condition}")
        )

    def console(self) -> list[str]:
        """Return what was written to the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses requested since the page was opened, except the browser's own."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
            and not message["params"]["documentURL"].startswith(_PAGES_OF_ITS_OWN)
        ]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a headless Chromium that keeps all that its pages log and ask for."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    assert all(found), "needs a browser: apt-get install chromium chromium-driver"
    options = ChromeOptions()
    options.binary_location = str(found[0])
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for argument in (
        *("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-component-update", "disable-background-networking", "disable-sync"),
        "window-size=1200,1000",
        f"user-data-dir={tmp_path_factory.mktemp('browser')}",
    ):
        options.add_argument(f"--{argument}")
    options.add_argument("about:blank")
    driver = Chrome(options=options, service=Service(found[1]))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
