"""The operator's page in Debian's headless Chromium, driven by selenium."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from .broker import ADMIN_TOKEN, Hermesd
from .waiting import PATIENCE, eventually

CHROMIUM = Path("/usr/bin/chromium")
CHROMEDRIVER = Path("/usr/bin/chromedriver")

SWITCHES = (
    # A container has no user namespaces for the sandbox, and often a small /dev/shm.
    "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
    "--hide-scrollbars",
    # Nothing leaves this machine.
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--no-default-browser-check", "--lang=en",
)

CONTRASTS = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (color) => {
  const [r, g, b] = color.map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const color = channels(getComputedStyle(one).backgroundColor);
    if (color.length < 4 || color[3] === 1) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
return [...document.body.querySelectorAll("*")]
  .filter((one) => one.checkVisibility() && !one.disabled
    && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ""))
  .map((one) => {
    const [a, b] = [light(channels(getComputedStyle(one).color).slice(0, 3)), light(ground(one))];
    return [one.textContent.trim().slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
  })
  .filter(([, ratio]) => ratio < 4.5);
"""


class Browser:
    """One Chromium, which shows one page at a time."""

    def __init__(self) -> None:
        options = ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for switch in SWITCHES:
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = Chrome(options=options, service=Service(str(CHROMEDRIVER)))
        self.driver.set_script_timeout(PATIENCE)

    def close(self) -> None:
        self.driver.quit()

    def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """Sets the size of the window in CSS pixels, and the colour scheme that is preferred."""
        self._command("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self._command("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def picture(self, height: int) -> bytes:
        """A PNG of the first so many pixels of the page, in the width that is shown."""
        width = self.driver.execute_script("return document.documentElement.clientWidth")
        answer = self._command("Page.captureScreenshot", {
            "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
        return base64.b64decode(answer["data"])

    def _command(self, name: str, parameters: dict[str, object]) -> dict[str, str]:
        return self.driver.execute_cdp_cmd(name, parameters)


class OperatorPage:
    """The page of one broker. Texts are read as a person sees them."""

    def __init__(self, browser: Browser, broker: Hermesd) -> None:
        self.driver = browser.driver
        self.complaints()
        # Another address, so that the page is loaded anew and not only its fragment.
        self.driver.get("about:blank")
        self.driver.get(f"{broker.admin_url}/ui/")

    def open(self, token: str = ADMIN_TOKEN) -> OperatorPage:
        """Types the token; returns once the first figures are there."""
        self.type_token(token)
        eventually(lambda: self.text("live") == "Live", "live figures")
        return self

    def type_token(self, token: str) -> None:
        self.element("token").send_keys(token, Keys.ENTER)

    def element(self, name: str) -> WebElement:
        return self.driver.find_element(By.ID, name)

    def text(self, name: str) -> str:
        """What is shown of an element; empty for one that is hidden."""
        return self.element(name).text

    def number(self, name: str) -> float:
        """The first number of an element's text; -1 for a dash."""
        text = self.text(name).split(" ")[0].replace(",", "")
        return -1.0 if text in ("–", "") else float(text)

    def rows(self, name: str) -> list[list[str]]:
        """The cells of a table's body, row by row."""
        return self.driver.execute_script(
            "return [...document.getElementById(arguments[0]).tBodies[0].rows]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))", name)

    def lines_of(self, selector: str) -> int:
        """The most lines that the first word of such an element takes; 0 without one."""
        return self.driver.execute_script(
            "return Math.max(0, ...[...document.querySelectorAll(arguments[0])].map((one) => {"
            " const range = document.createRange();"
            " const text = document.createTreeWalker(one, NodeFilter.SHOW_TEXT).nextNode();"
            " if (!text) return 0;"
            " range.setStart(text, 0);"
            " range.setEnd(text, text.data.split(' ')[0].length);"
            " return new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size; }))",
            selector)

    def sentences(self) -> list[str]:
        return self.text("sentences").splitlines()

    def search(self, prefix: str) -> None:
        field = self.element("prefix")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(prefix or Keys.DELETE)

    def choose(self, client_id: str) -> None:
        """Follows the link to a client in the list, by its text; returns once it is shown."""
        def follow() -> bool:
            for link in self.driver.find_elements(By.CSS_SELECTOR, "#list a"):
                if link.text == client_id:
                    link.click()
                    return True
            return False
        eventually(follow, f"a link {client_id!r}")
        eventually(lambda: self.text("client-id") == client_id and self.sentences(), "the client")

    def start_tail(
        self, listener: int, *filters: str, user: str = "", password: str = ""
    ) -> None:
        """Asks for live messages by a listener, which is named by its number."""
        eventually(lambda: self.element("tail-form").is_displayed(), "the listeners")
        Select(self.element("tail-listener")).select_by_value(str(listener))
        for name, text in (
            ("filters", "\n".join(filters)), ("user", user), ("password", password),
        ):
            field = self.element(f"tail-{name}")
            field.clear()
            field.send_keys(text)
        self.element("tail-form").find_element(By.CSS_SELECTOR, "[type=submit]").click()

    def tail_client(self) -> str:
        """The client identifier of the live messages, once they are subscribed to."""
        eventually(lambda: self.text("tail-state").startswith("Live: "), "live messages")
        return self.text("tail-client").split(" ")[-1]

    def overflow(self) -> float:
        """CSS pixels by which the page is wider than its window."""
        return self.driver.execute_script(
            "return document.documentElement.scrollWidth - innerWidth")

    def faint_texts(self) -> list[list]:
        """Texts whose contrast is below what WCAG 2.2 asks for (AA), with their ratio."""
        return self.driver.execute_script(CONTRASTS)

    def unlabelled(self) -> list[str]:
        """Fields without a label."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll('input, select, textarea')]"
            ".filter((one) => one.labels.length === 0).map((one) => one.id)")

    def complaints(self) -> list[str]:
        """What the browser has complained of since the last call: errors, broken policies."""
        return [json.dumps(entry) for entry in self.driver.get_log("browser")]
