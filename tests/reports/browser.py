"""A headless Chromium, driven over its debugging pipe with the standard library alone."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class BrowserError(Exception):
    """What the browser or the page reported."""


class Browser:
    """One page in one process. `problems` gathers console errors, exceptions and requests that left the page."""

    def __init__(self, width=1400, height=900):
        program = next((p for p in ("chromium", "chromium-browser", "google-chrome") if shutil.which(p)), None)
        if program is None:
            raise BrowserError("there is no Chromium here: apt-get install chromium")
        self.profile = tempfile.mkdtemp(prefix="rlx-page-")
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4.
        command = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={self.profile}", f"--window-size={width},{height}"]
        self.process = subprocess.Popen(
            ["bash", "-c", command, "chromium", str(to_browser), str(from_browser), program, *flags, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.write_end, self.read_end = ours_out, ours_in
        self.buffer, self.next_id, self.answers, self.problems, self.loaded = b"", 0, {}, [], False
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def size(self, width, height, dark=False):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def _message(self, timeout):
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], timeout)[0]:
                return None
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise BrowserError("the browser ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message):
        if "id" in message:
            self.answers[message["id"]] = message
            return
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            thrown = params["exceptionDetails"]
            where = thrown.get("exception", {}).get("description") or thrown.get("text", "")
            self.problems.append(f"exception: {where}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(f"console: {params['args']}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith("file://") or params.get("type") != "Document":
                self.problems.append(f"request: {url[:200]}")
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, session="page", **params):
        self.next_id += 1
        request = {"id": self.next_id, "method": method, "params": params}
        if session and getattr(self, "session", None):
            request["sessionId"] = self.session
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        end = time.monotonic() + 60
        while request["id"] not in self.answers:
            message = self._message(max(0.0, end - time.monotonic()))
            if message is None:
                raise BrowserError(f"no answer to {method} within a minute")
            self._note(message)
        answer = self.answers.pop(request["id"])
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, path):
        self.loaded = False
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        end = time.monotonic() + 60
        while not self.loaded:
            message = self._message(max(0.0, end - time.monotonic()))
            if message is None:
                raise BrowserError(f"{path} did not load within a minute")
            self._note(message)

    def js(self, expression):
        """The value of an expression in the page, after the frame that it leads to is drawn."""
        code = f"(async () => {{ const value = ({expression}); await new Promise((f) => requestAnimationFrame(f));"
        code += " return value; })()"
        answer = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def click(self, selector, index=0):
        """A real click on the middle of an element."""
        find = f"document.querySelectorAll({json.dumps(selector)})[{index}]"
        box = self.js(
            f"(() => {{ const e = {find}; if (!e) return null; e.scrollIntoView({{block: 'nearest'}});"
            " const b = e.getClientRects()[0]; return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        if box is None:
            raise BrowserError(f"the page has no {selector} (number {index})")
        self.click_at(*box)

    def click_at(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.js("0")

    def wheel(self, x, y, delta):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)
        self.js("0")

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            code = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}.get(key, 0)
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)
        self.js("0")

    def type(self, text):
        self.call("Input.insertText", text=text)
        time.sleep(0.15)
        self.js("0")

    def screenshot(self, path):
        image = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))

    def close(self):
        try:
            self.call("Browser.close", session=None)
        except (BrowserError, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)
