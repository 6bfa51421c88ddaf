"""Headless Chromium driven over two pipes: no driver program and no library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DEADLINE_S = 60
_KEYS = {
    "Enter": ("\r", 13), "Tab": ("", 9), "Backspace": ("", 8), "Escape": ("", 27), "ArrowLeft": ("", 37),
    "ArrowUp": ("", 38), "ArrowRight": ("", 39), "ArrowDown": ("", 40),
}  # fmt: skip


def find_chromium() -> str | None:
    """The browser of this machine, None without one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium with one page at a time.

    Attributes:
        said: what pages wrote to the console as an error or warning, and exceptions that nothing caught.
        asked: addresses that pages asked for, besides the page itself.
    """

    def __init__(self, program: str, profile: str) -> None:
        down, up = os.pipe(), os.pipe()
        os.set_inheritable(down[0], True)
        os.set_inheritable(up[1], True)
        flags = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"),
            *("--hide-scrollbars", "--disable-dev-shm-usage", "--disable-background-networking"),
            f"--user-data-dir={profile}",
        ]
        # A shell gives the pipes the numbers 3 and 4, whatever they have here.
        script = f'exec "$@" 3<&{down[0]} 4>&{up[1]}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", program, *flags, "--remote-debugging-pipe", "about:blank"],
            pass_fds=(down[0], up[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(down[0])
        os.close(up[1])
        self._to, self._from = os.fdopen(down[1], "wb"), os.fdopen(up[0], "rb")
        self._number, self._rest, self._session = 0, b"", ""
        self.said: list[str] = []
        self.asked: list[str] = []
        self._loaded = False
        os.set_blocking(self._from.fileno(), False)
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Run a command of the protocol and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        for answer in self._messages():
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
        raise TimeoutError(method)

    def _messages(self) -> Iterator[dict[str, Any]]:
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            while b"\0" in self._rest:
                one, self._rest = self._rest.split(b"\0", 1)
                message = json.loads(one)
                self._note(message)
                yield message
            data = self._from.read(1 << 20)
            if data:
                self._rest += data
            elif data == b"":
                raise RuntimeError("the browser ended")
            else:
                time.sleep(0.002)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.said.append(json.dumps(params["exceptionDetails"])[:600])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.said.append(json.dumps(params["args"])[:600])
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.said.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            case "Page.loadEventFired":
                self._loaded = True

    def open(
        self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False, ready: bool = True
    ) -> float:
        """Open a file, and give the seconds until the page says that it is ready."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        begun = time.monotonic()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait(
            "document.readyState === 'complete'"
            + (" && document.documentElement.dataset.ready === ''" if ready else "")
        )
        self.asked = [url for url in self.asked if url != path.resolve().as_uri()]
        return time.monotonic() - begun

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(condition):
                return
            time.sleep(0.02)
        raise TimeoutError(f"{condition}; said: {self.said}")

    def run(self, expression: str) -> Any:
        """The value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """Press and release a key."""
        text, code = _KEYS.get(key, (key, ord(key.upper()[0])))
        common = {"key": key, "windowsVirtualKeyCode": code, "code": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, x: float, y: float) -> None:
        """Click at a point of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, x: float, y: float, to_x: float) -> None:
        """Drag along a line."""
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for i in range(1, 6):
            self.call(
                "Input.dispatchMouseEvent", type="mouseMoved", x=x + (to_x - x) * i / 5, y=y, button="left", buttons=1
            )
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=y, button="left", clickCount=1)

    def wheel(self, x: float, y: float, delta: float) -> None:
        """Turn the wheel."""
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def picture(self, *, whole: bool = False) -> bytes:
        """The page as PNG: what is in the window, or all of it."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def paper(self) -> bytes:
        """The page as it prints, as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self) -> None:
        """End the browser."""
        try:
            self._session = ""
            self.call("Browser.close")
        except (RuntimeError, TimeoutError, OSError):
            self._process.kill()
        self._process.wait(10)
        self._to.close()
        self._from.close()


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            yield browser
        finally:
            browser.close()
