"""A recording that was cut into parts reports what it would have in one file: every view of real
captures, cut with the recorder's own code at many places."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from xpu_testing import is_left_out

CUTTER, REPORT, SCENE, *COUNTS = sys.argv[1:]
CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "captures"
NAMES = ("copies", "graph_paths", "nvtx_ranges", "peer", "two_kernels_fork", "pytorch_python")

VIEWS = {
    "folded": ["--folded", "--unit", "ns"],
    "by thread": ["--folded", "--by", "thread", "--lines"],
    "idle": ["--folded", "--mode", "idle"],
    "tables": ["--top", "--format", "csv"],
    "GPU trace": ["--top", "-n", "0", "--table", "cuda_gpu_trace", "--format", "csv"],
    "API trace": ["--top", "-n", "0", "--table", "cuda_api_trace", "--format", "csv"],
    "script": ["--script"],
    "trace": ["--chrome-trace"],
    "summary": [],
}
# Lines about the files themselves.
ABOUT_FILES = re.compile(r"\n *(capture|parts|symbols) .*(\n {10}\S.*)*")


def run(view, files):
    done = subprocess.run([REPORT, *VIEWS[view], *files], capture_output=True, text=True,
                          timeout=240)
    if done.returncode != 0:
        raise AssertionError(f"{view} of {files}: {done.stderr}")
    text = done.stdout
    if view == "trace":
        events = json.loads(text)["traceEvents"]
        return sorted(json.dumps(event, sort_keys=True) for event in events), done.stderr
    if view == "summary":
        text = ABOUT_FILES.sub("", "\n" + text)
        text = re.sub(r" \\\n +", " ", text)  # commands in several lines
        names = "|".join(map(re.escape, files))
        text = re.sub(f"( ({names}))+$", "", text, flags=re.MULTILINE)  # of commands
    return text, done.stderr


def cut(capture, parts, directory):
    prefix = os.path.join(directory, f"{pathlib.Path(capture).stem}-{parts}")
    subprocess.run([CUTTER, capture, str(parts), prefix], check=True, timeout=60)
    return sorted(str(path) for path in pathlib.Path(directory).glob(f"{pathlib.Path(prefix).name}.*"))


def check(capture, directory):
    whole = cut(capture, 1, directory)
    expected = {view: run(view, whole) for view in VIEWS}
    for count in map(int, COUNTS):
        files = cut(capture, count, directory)
        if len(files) < 2:
            raise AssertionError(f"{capture}: was not cut")
        # The order in which they are named does not matter.
        for view, wanted in expected.items():
            actual = run(view, files[::-1])
            if actual != wanted:
                show(capture, count, view, wanted, actual)


def show(capture, count, view, wanted, actual):
    import difflib
    for before, after in zip(wanted, actual):
        lines = before if isinstance(before, list) else before.splitlines()
        others = after if isinstance(after, list) else after.splitlines()
        for line in list(difflib.unified_diff(lines, others, lineterm=""))[:40]:
            print(line)
    raise AssertionError(f"{view} of {capture} in {count} parts is another one")


def main():
    with tempfile.TemporaryDirectory(prefix="xpu-parts-") as directory:
        subprocess.run([SCENE, directory], check=True)
        for capture in [*(CAPTURES / f"{name}.xpu" for name in NAMES),
                        pathlib.Path(directory) / "scene.xpu"]:
            if is_left_out(capture):
                continue
            check(str(capture), directory)
            print(f"ok      {capture.stem}", flush=True)


main()
