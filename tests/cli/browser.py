"""Chromium without a window, driven through a pipe (the DevTools protocol)."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile


class Browser:
    """One page of a browser of its own."""

    program = shutil.which("chromium")

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def descriptors():  # 3 and 4, wherever they are now
            commands, answers = os.dup(to_browser), os.dup(from_browser)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [self.program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={self._folder.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False,
            # which browsers at work would share
            preexec_fn=descriptors, env=os.environ | {"XDG_CONFIG_HOME": self._folder.name})
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest, self._session = 0, b"", None
        self._loaded = set()  # loaders of the documents whose load event has come
        self.messages = []  # of the console, and errors
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        return self

    def __exit__(self, *_):
        self._session = None
        with contextlib.suppress(AssertionError, OSError):  # it has ended already
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)  # its own processes write into the folder until then
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def _next(self):
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        event = json.loads(message)
        if event.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled",
                                   "Runtime.exceptionThrown"):
            self.messages.append(event["params"])
        if event.get("method") == "Page.lifecycleEvent" and event["params"]["name"] == "load":
            self._loaded.add(event["params"]["loaderId"])
        return event

    def call(self, method, **parameters):
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._out, json.dumps(command).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def open(self, path, width=1280, height=800, *, dark=False, touch=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        # The event of an earlier document, such as about:blank, may come later than the answer.
        loader = self.call("Page.navigate", url=path.as_uri())["loaderId"]
        while loader not in self._loaded:
            self._next()

    def value(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           userGesture=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key, *, shift=False):
        text = {"Enter": "\r", "Space": " "}.get(key)
        code = {"Tab": 9, "Enter": 13, "Space": 32, "ArrowRight": 39}[key]
        words = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": code,
                 "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **words,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **words)

    def picture(self):
        """PNG of the whole page."""
        return base64.b64decode(
            self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def printed(self):
        """PDF of A4 pages."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False, paperWidth=8.27,
                                          paperHeight=11.69)["data"])
