"""speedscope (https://www.speedscope.app), a viewer of profiles, in a headless Chromium: what it made
of a file, and what it complained about.

The package of this very version comes from the npm registry, into the build tree, where it is found
again. Where it cannot be had, tests skip and say why (XPU_TEST_STRICT=viewer: they fail).
"""

import base64
import collections
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import time

import webdriver
import xpu_testing

VERSION = "1.25.0"
SHA512 = ("7297fd1d64d97f58a32d7049ae4f3b55eff9e2d9d8c7aae57f48144e1be7de8a"
          "24ea1eb784b5d539088c7f8e0f4fe5e8579d3770f7ef7e24f980fe6fa23a7a02")
# Its own log, and what Chromium says of a machine without a GPU.
NO_COMPLAINTS = ("speedscope v", "Importing as ", "import: ", "Saving", "WebGL")
PATIENCE_S = 120  # a loaded machine with a software renderer

# `weight`: time or value of all top-level frames; `slices`: how many frames were entered.
Profile = collections.namedtuple("Profile", "name unit slices weight")


def page():
    """The path of the viewer's page."""
    folder = pathlib.Path(os.environ["XPU_BUILD_DIR"]) / "tests/system" / f"speedscope-{VERSION}"
    if not folder.exists():
        install(folder)
    return folder / "package/dist/release/index.html"


def install(folder):
    npm = shutil.which("npm")
    if not npm:
        xpu_testing.skip("viewer", "npm is not installed, so speedscope cannot be fetched")
    with xpu_testing.Workspace() as work:
        fetched = subprocess.run([npm, "pack", f"speedscope@{VERSION}"], cwd=work.path, timeout=300,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True)
        archive = work.path / f"speedscope-{VERSION}.tgz"
        if fetched.returncode != 0 or not archive.exists():
            reason = fetched.stderr.strip().splitlines()[-1:] or ["nothing came"]
            xpu_testing.skip("viewer", f"npm pack speedscope@{VERSION}: {reason[0]}")
        if hashlib.sha512(archive.read_bytes()).hexdigest() != SHA512:
            raise AssertionError(f"speedscope {VERSION} from npm is another than the one known")
        with tarfile.open(archive) as package:
            package.extractall(work.path / "extracted")
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work.path / "extracted", folder)


class Speedscope:
    """Opens files as its command line does, and reads what "save" gives."""

    def __init__(self):
        webdriver.require_browser()
        self.page = page()
        self.browser = webdriver.Browser()

    def __enter__(self):
        self.browser.__enter__()
        return self

    def __exit__(self, *arguments):
        self.browser.__exit__(*arguments)

    def open(self, path):
        """The profiles of the file. Whatever the page says beside them is an AssertionError."""
        path = pathlib.Path(path)
        data = base64.b64encode(path.read_bytes()).decode()
        with xpu_testing.Workspace() as work:
            script = work.file("profile.js", "speedscope.loadFileFromBase64("
                               f"{json.dumps(path.name)}, {json.dumps(data)})")
            # Another page first: a change of the part behind # alone loads nothing.
            self.browser.open("/dev/null")
            self.browser.console()
            self.browser.open(self.page, f"#localProfilePath={script[1:]}")
            self.wait_for("document.title.endsWith(' - speedscope')")
        complaints = [line for line in self.browser.console()
                      if not any(known in line for known in NO_COMPLAINTS)]
        if complaints:
            raise AssertionError(f"{path}: {len(complaints)} complaints, the first: "
                                 f"{complaints[:3]}")
        return [profile_of(each) for each in self.saved()["profiles"]]

    def saved(self):
        self.browser.run("""
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { window.saved = blob; return make.call(URL, blob); };
            window.dispatchEvent(new KeyboardEvent("keydown", {key: "s", ctrlKey: true}));
            """)
        self.wait_for("window.saved !== undefined")
        return json.loads(self.browser.run("return window.saved.text()"))

    def wait_for(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not self.browser.run(f"return {condition}"):
            if time.monotonic() > deadline:
                raise AssertionError(f"never true: {condition}; {self.browser.console()[:3]}")
            time.sleep(0.1)


def profile_of(saved):
    slices, weight, depth = 0, 0, 0
    for event in saved["events"]:
        if event["type"] == "O":
            if depth == 0:
                begin = event["at"]
            depth += 1
            slices += 1
        else:
            depth -= 1
            if depth == 0:
                weight += event["at"] - begin
    return Profile(saved["name"], saved["unit"], slices, weight)
