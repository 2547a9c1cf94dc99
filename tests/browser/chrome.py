"""A headless Chromium driven over a pipe by its own DevTools protocol; nothing to install.

Messages are JSON ended by a zero byte, read from file descriptor 3 and written to 4 of the browser.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0  # seconds for one answer, on a loaded machine


def find() -> str | None:
    """The browser: ``$DPERM_BROWSER``, or the first of NAMES on the path."""
    named = os.environ.get("DPERM_BROWSER")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(RuntimeError):
    """The browser did not answer, or a script in it failed."""


class Chrome:
    """One browser with one page; a context manager."""

    def __init__(self, binary: str, profile: Path) -> None:
        self.downloads = profile / "downloads"
        self.downloads.mkdir(parents=True)
        self.events: list[dict[str, Any]] = []
        self._buffer, self._count = b"", 0
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._process = _start(binary, profile, to_browser, from_browser)
        os.close(to_browser)
        os.close(from_browser)
        self._session = self._attach()
        self.send("Performance.enable", timeDomain="threadTicks")
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        behaviour = {"behavior": "allow", "downloadPath": str(self.downloads)}
        self._send("Browser.setDownloadBehavior", behaviour, None)

    def __enter__(self) -> Chrome:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        os.close(self._in)
        os.close(self._out)

    def _attach(self) -> str:
        made = self._send("Target.createTarget", {"url": "about:blank"}, None)
        asked = {"targetId": made["targetId"], "flatten": True}
        return self._send("Target.attachToTarget", asked, None)["sessionId"]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command to the page; its result."""
        return self._send(method, parameters, self._session)

    def _send(self, method: str, parameters: dict[str, Any], session: str | None) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._in, 1 << 16) if ready else b""
            if not data:
                raise BrowserError("the browser does not answer")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return found["result"].get("value")

    def wait(self, script: str, patience: float = PATIENCE) -> Any:
        """The first truthy value of an expression."""
        return until(lambda: self.run(script), patience, script)

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a local page and wait until its script has run; a fragment starts with ``#``."""
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.wait("document.documentElement && document.documentElement.dataset.ready === '1'")

    def view(self, width: int, height: int, dark: bool = False) -> None:
        """Size of the window, and the colour scheme the user prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def move(self, x: float, y: float) -> None:
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """A real click on the middle of the first element that matches."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect();"
            "return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        self.click_at(*place)

    def click_at(self, x: float, y: float) -> None:
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str) -> None:
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13}
        code = {"windowsVirtualKeyCode": codes[name], "key": name, "code": name}
        text = {"text": "\r"} if name == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **code)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a select, as its change event tells."""
        self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            f"e.value = {json.dumps(value)}; if (e.value !== {json.dumps(value)}) throw Error('no "
            "such option'); e.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def type(self, selector: str, text: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def downloaded(self, selector: str) -> tuple[str, str]:
        """Name and text of the file that a click on the element saves."""
        path = self.save(selector)
        return path.name, path.read_bytes().decode()

    def save(self, selector: str) -> Path:
        """The file that a click on the element saves."""
        for old in self.downloads.iterdir():
            old.unlink()
        self.click(selector)

        def done() -> str | None:
            self.run("0")
            names = (path.name for path in self.downloads.iterdir())
            return next((name for name in names if not name.endswith(".crdownload")), None)

        return self.downloads / until(done, PATIENCE, f"a download by {selector}")

    def screenshot(self, path: Path, whole: bool = False) -> None:
        made = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(made["data"]))

    def busy(self) -> float:
        """Seconds of processor time of the page's main thread since it was opened."""
        found = self.send("Performance.getMetrics")["metrics"]
        return next(entry["value"] for entry in found if entry["name"] == "TaskDuration")

    def complaints(self) -> list[str]:
        """Everything on the console, uncaught errors, and entries of the browser's log."""
        self.run("0")
        found = []
        for event in self.events:
            kind, given = event.get("method"), event.get("params", {})
            if kind == "Runtime.exceptionThrown":
                found.append(str(given["exceptionDetails"]))
            if kind == "Runtime.consoleAPICalled":
                found.append(str(given["args"]))
            if kind == "Log.entryAdded":
                found.append(str(given["entry"]["text"]))
        return found

    def requests(self) -> list[str]:
        """Every address asked for, the page itself left out."""
        self.run("0")
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]


def until(done: Callable[[], Any], patience: float, what: str) -> Any:
    deadline = time.monotonic() + patience
    while not (found := done()):
        if time.monotonic() > deadline:
            raise BrowserError(f"not within {patience:g} s: {what}")
        time.sleep(0.05)
    return found


def _start(binary: str, profile: Path, to_browser: int, from_browser: int) -> subprocess.Popen:
    """The browser with its ends of the pipes at 3 and 4, wherever they are here."""
    command = [
        binary, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile / 'user'}",
        "--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-extensions",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
    ]  # fmt: skip
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--no-sandbox")  # Chromium refuses root's sandbox
    shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    return subprocess.Popen(
        ["/bin/bash", "-c", shell, "browser", *command],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
