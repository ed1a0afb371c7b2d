"""A real browser for tests: Chromium without a window, told what to do over its debugging pipe.

`sudo apt-get install chromium` brings it; CHROMIUM names another one.
"""

import base64
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Long, since an audit of a large page on a busy machine takes its time.
PATIENCE_S = 120.0


def chromium_path() -> str | None:
    """Where it is, None when it is nowhere."""
    named = os.environ.get("CHROMIUM")
    return named or next(
        (
            found
            for name in ("chromium", "chromium-browser", "google-chrome")
            if (found := shutil.which(name))
        ),
        None,
    )


class Chromium:
    """One browser; messages are JSON, with a NUL behind each."""

    def __init__(self, process: subprocess.Popen[bytes], into: int, out_of: int) -> None:
        self._process = process
        self._into = into
        self._out_of = out_of
        self._number = 0
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self.heard: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        with self._lock:
            self._number += 1
            number = self._number
            answer = self._answers[number] = queue.SimpleQueue()
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        told = answer.get(timeout=PATIENCE_S)
        if "error" in told:
            raise RuntimeError(f"{method}: {told['error']}")
        return told["result"]

    def _listen(self) -> None:
        kept = b""
        while piece := os.read(self._out_of, 1 << 16):
            *whole, kept = (kept + piece).split(b"\0")
            for text in whole:
                message = json.loads(text)
                if "id" in message:
                    self._answers.pop(message["id"]).put(message)
                else:
                    self.heard.append(message)

    def tab(
        self,
        *,
        width: int = 1440,
        height: int = 1000,
        language: str = "en",
        dark: bool = False,
        script: bool = True,
    ) -> "Tab":
        """A new tab with nothing remembered."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.ask(f"{domain}.enable")
        tab.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        tab.ask("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.ask("Emulation.setEmulatedMedia", features=[scheme])
        if not script:
            tab.ask("Emulation.setScriptExecutionDisabled", value=True)
        return tab

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Tab:
    """One page in the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A command for this tab."""
        return self._browser.ask(method, self._session, **params)

    def go(self, url: str) -> None:
        """Open a page and wait until it is there."""
        self._loaded_by(lambda: self.ask("Page.navigate", url=url))

    def click(self, selector: str, *, leads_on: bool = True) -> None:
        """Press something; by default that leads to another page."""
        pressed = f"document.querySelector({json.dumps(selector)}).click()"
        if leads_on:
            self._loaded_by(lambda: self.run(pressed))
        else:
            self.run(pressed)

    def run(self, script: str) -> Any:
        """What an expression gives."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def text(self, selector: str = "body") -> str:
        """What can be read."""
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def wait_for(self, script: str) -> Any:
        """Wait until an expression holds."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if found := self.run(script):
                return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}\n{self.text()[:2000]}")

    def complaints(self) -> list[str]:
        """What the console and the browser complained about: errors, exceptions, blocked scripts, requests elsewhere."""
        found: list[str] = []
        for one in self._browser.heard:
            if one.get("sessionId") != self._session:
                continue
            params = one["params"]
            if one["method"] == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif one["method"] == "Runtime.consoleAPICalled" and params["type"] in {
                "error",
                "warning",
                "assert",
            }:
                found.append(str(params["args"]))
            elif one["method"] == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return found

    def requested(self) -> list[str]:
        """Every address that was asked."""
        return [
            one["params"]["request"]["url"]
            for one in self._browser.heard
            if one.get("sessionId") == self._session and one["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """How it looks."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _loaded_by(self, act: Any) -> None:
        before = self._loads()
        act()
        until = time.monotonic() + PATIENCE_S
        while self._loads() <= before:
            if time.monotonic() > until:
                raise AssertionError("the page did not load")
            time.sleep(0.02)

    def _loads(self) -> int:
        return sum(
            1
            for one in self._browser.heard
            if one["method"] == "Page.loadEventFired" and one.get("sessionId") == self._session
        )


@contextmanager
def chromium(path: str, *more: str) -> Iterator[Chromium]:
    """A browser for the length of a block; its profile is gone afterwards."""
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            *more,
        ]
        # Chromium reads from 3 and writes to 4.
        shell = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        process = subprocess.Popen(
            ["/bin/bash", "-c", shell, path, *options, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        browser = Chromium(process, ours_in, ours_out)
        try:
            yield browser
        finally:
            browser.close()
            os.close(ours_in)
