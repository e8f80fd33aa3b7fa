"""A headless Chromium, driven over WebDriver with the standard library."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import xpu_testing

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id, by the standard


def require_browser():
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            xpu_testing.skip("browser", f"no {program}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    def __init__(self, size=(1280, 800)):
        self.profile = tempfile.mkdtemp(prefix="xpu-browser-")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile})
        switches = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    "--no-first-run", "--force-color-profile=srgb", "--hide-scrollbars",
                    f"--user-data-dir={self.profile}", f"--window-size={size[0]},{size[1]}"]
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": switches,
                                   "perfLoggingPrefs": {"enableNetwork": True}},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            self._wait_for_driver()
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
            self.url += f"/session/{answer['sessionId']}"
        except BaseException:
            self._end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", "")
        finally:
            self._end()

    def _end(self):
        self.driver.terminate()
        self.driver.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _wait_for_driver(self):
        for _ in range(300):
            try:
                self._call("GET", "/status")
                return
            except urllib.error.URLError:
                time.sleep(0.1)
        raise AssertionError("chromedriver does not answer")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:2000]}") from error

    def open(self, path, fragment=""):
        self._call("POST", "/url", {"url": f"file://{path}{fragment}"})

    def run(self, script, *arguments):
        """The value that the script returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def prefer(self, scheme):
        """What the system is set to: "dark" or "light"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia",
                                                 "params": {"features": [feature]}})

    def resize(self, width, height):
        self._call("POST", "/window/rect", {"width": width, "height": height})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def _pointer(self, *actions):
        self._call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
             "actions": list(actions)}]})

    def hover(self, x, y):
        self._pointer({"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0})

    def click(self, x, y, button=0):
        self._pointer({"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0},
                      {"type": "pointerDown", "button": button},
                      {"type": "pointerUp", "button": button})

    def drag(self, x, y, to_x, to_y):
        self._pointer({"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0},
                      {"type": "pointerDown", "button": 0},
                      {"type": "pointerMove", "x": round(to_x), "y": round(to_y), "duration": 50},
                      {"type": "pointerUp", "button": 0})

    def press(self, *keys):
        """Keys, or texts of them, one after the other."""
        actions = [{"type": kind, "value": key} for text in keys for key in text
                   for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def console(self):
        """What was written to the console since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"]
                    for entry in self._call("POST", "/se/log", {"type": "performance"})]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]
