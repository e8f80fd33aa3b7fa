"""A real viewer opens --chrome-trace and --folded of real captures without complaint, and shows as
many slices, and as much time, as the captures hold."""

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
from gpu_capture import GpuCapture
from xpu_testing import PATIENCE_S, expect, report

# ---- speedscope (https://www.speedscope.app) in a headless Chromium. The package of this version
# comes from the npm registry, into the build tree, where it is found again. Where it cannot be had,
# tests skip and say why (XPU_TEST_STRICT=viewer: they fail).

VERSION = "1.25.0"
SHA512 = ("7297fd1d64d97f58a32d7049ae4f3b55eff9e2d9d8c7aae57f48144e1be7de8a"
          "24ea1eb784b5d539088c7f8e0f4fe5e8579d3770f7ef7e24f980fe6fa23a7a02")
# Its own log, and what Chromium says of a machine without a GPU.
NO_COMPLAINTS = ("speedscope v", "Importing as ", "import: ", "Saving", "WebGL")

# `weight`: time or value of all top-level frames; `slices`: how many frames were entered.
Profile = collections.namedtuple("Profile", "name unit slices weight")


def page():
    """The path of the viewer's page."""
    directory = pathlib.Path(os.environ["XPU_BUILD_DIR"]) / "tests/system" / f"speedscope-{VERSION}"
    if not directory.exists():
        install(directory)
    return directory / "package/dist/release/index.html"


def install(directory):
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
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work.path / "extracted", directory)


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
            # Another page first: a change of the part after # alone loads nothing.
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


# ---- what it shows
CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "captures"
# PyTorch, several threads and streams, nodes of graphs, copies of all kinds, two GPUs.
NAMES = ["pytorch_mlp", "pytorch_mlp_graph", "transformer", "two_kernels_threads", "graph_paths",
         "copies", "peer", "no_inject"]


def near(what, actual, wanted, tolerance):
    if abs(actual - wanted) > tolerance:
        raise AssertionError(f"{what}: {actual}, expected {wanted} +- {tolerance}")


def slices_of(trace):
    """By (pid, tid): how many."""
    return collections.Counter((e["pid"], e["tid"]) for e in trace["traceEvents"]
                               if e["ph"] == "X")


def tracks_of(trace):
    """(pid, tid) by the name that the viewer gives a track."""
    names = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
            names[event["name"], event["pid"], event["tid"]] = event["args"]["name"]
    tracks = {}
    for kind, pid, tid in names:
        if kind == "thread_name":
            process = names["process_name", pid, 0]
            tracks[f"{process} (pid {pid}), {names[kind, pid, tid]} (tid {tid})"] = (pid, tid)
    return tracks


def sampled_us(capture):
    """Each sample lasts until the next of its thread, or as long as it stands for when that comes
    late."""
    period = max([int(s["period"]) for s in capture.of("sample_source")], default=0)
    threads = collections.defaultdict(list)
    for sample in capture.of("cpu_sample"):
        threads[sample["pid"], sample["tid"]].append(int(sample["time_ns"]))
    total = 0
    for times in threads.values():
        times.sort()
        for time, following in zip(times, times[1:] + [times[-1] + 10 * period]):
            total += following - time if following - time <= period * 3 / 2 else period
    return total / 1000


def check(viewer, name, work):
    path = CAPTURES / f"{name}.xpu"
    capture = GpuCapture(path)
    trace_path = work.file(f"{name}.json")
    report("--chrome-trace", "-o", trace_path, path)
    trace = json.loads(pathlib.Path(trace_path).read_text())
    profiles = {p.name: p for p in viewer.open(trace_path)}
    tracks = tracks_of(trace)
    expect(f"{name}: slices by track", {tracks[n]: p.slices for n, p in profiles.items()},
           dict(slices_of(trace)))
    work_ns = sum(capture.duration(e) for kind in ("kernel", "memcpy", "memset", "graph_launch")
                  for e in capture.of(kind) if capture.duration(e) > 0)
    streams = sum(p.weight for n, p in profiles.items() if ", stream " in n)
    # The GPU's own clock against CLOCK_MONOTONIC, and ends rounded to nanoseconds.
    near(f"{name}: us of GPU work", streams, work_ns / 1000, work_ns / 1e6 * 0.01 + 0.1)
    samples = sum(p.weight for n, p in profiles.items() if n.split(" (tid")[-2].endswith("samples"))
    # Each sample's slice begins and ends up to 0.125 us early, and 0.125 us are left before the
    # next one.
    near(f"{name}: us of CPU samples", samples, sampled_us(capture),
         len(capture.of("cpu_sample")) * 0.25 + 1)
    print(f"  {name}: {len(profiles)} tracks, {sum(p.slices for p in profiles.values())} slices, "
          f"GPU {streams:.0f} us, CPU {samples / 1000:.0f} ms", flush=True)


def frames_entered(stacks):
    """Frames that a stack shares with the one before go on."""
    entered = 0
    for before, stack in zip([[]] + stacks, stacks):
        common = os.path.commonprefix([before, stack])
        entered += len(stack) - len(common)
    return entered


def test_chrome_trace_of_real_captures():
    with xpu_testing.Workspace() as work, Speedscope() as viewer:
        for name in NAMES:
            check(viewer, name, work)


def test_states_of_threads():
    """Each begins where another ends."""
    with xpu_testing.Workspace() as work, Speedscope() as viewer:
        path = work.file("states.json")
        report("--chrome-trace", "-o", path, CAPTURES / "pytorch_loader.xpu", "--time",
               "12s-12.05s")
        names = [profile.name for profile in viewer.open(path)]
        expect("tracks of states", any("states" in name for name in names), True)


def test_folded_stacks():
    with xpu_testing.Workspace() as work, Speedscope() as viewer:
        path = work.file("pytorch.txt")
        report("--folded", "-o", path, CAPTURES / "pytorch_mlp.xpu")
        lines = pathlib.Path(path).read_text().splitlines()
        [profile] = viewer.open(path)
        stacks, weights = zip(*(line.rsplit(" ", 1) for line in lines))
        expect("frames", profile.slices, frames_entered([stack.split(";") for stack in stacks]))
        expect("weight", profile.weight, sum(map(int, weights)))


if __name__ == "__main__":
    xpu_testing.main(globals())
