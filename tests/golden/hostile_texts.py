"""Whatever text a capture holds, no view writes it in a way that something else reads as a command:
a terminal, a reader of JSON, CSV or HTML, or a person who reads a line.

Each text of some captures gets a suffix that tries all of that.
"""

import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import xpu_testing
from xpu_testing import CAPTURES, expect, find

OWN = "OWN"
SUFFIX = ("\x1b]0;own\x07\x1b[31m\x9b\u202e\u2066\u200f\u061c \"q\" ,'" +
          "</script><script>own()</script>\n" + OWN + ",1\r\n=\", \"own\": 1, \"x\": \"\\\t&<b>{}")
CAPTURES_OF_ALL = ["graph_paths.xpu", "nvtx_ranges.xpu", "pytorch_mlp.xpu", "two_kernels_fork.xpu",
                   "gpu_code/gpu_counters.xpu", "gpu_code/stall_kernels.xpu",
                   "nccl_ranks.xpu"]
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

TEXT_VIEWS = [[], ["--folded"], ["--folded", "--by", "thread", "--mode", "cpu"], ["--script"],
              ["--top", "-n", "0"], ["--dump"], ["--annotate", "."], ["--slow-steps", "--top"],
              ["--slow-steps", "--folded"], ["--table", "what_if"], ["--folded", "--mode", "idle"]]


def check_text(name, data):
    """`data` is UTF-8 with no control characters but ends of lines and tabs, on lines of ours."""
    text = data.decode()
    found = {c for c in text
             if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0 or c in BIDI}
    expect(f"{name}: controls", sorted(map(ascii, found)), [])
    lines = [line for line in text.splitlines() if re.match(rf"[\s\"']*{OWN}", line)]
    expect(f"{name}: lines of the capture", lines, [])
    return text


def check_json(name, text):
    def without_own(pairs):
        keys = [key for key, _ in pairs if key in ("own", "x")]
        expect(f"{name}: keys of the capture", keys, [])
        for key, value in pairs:
            for part in (key, value):
                if isinstance(part, str):
                    expect(f"{name}: controls", [c for c in part if c in BIDI], [])
        return dict(pairs)
    return json.loads(text, object_pairs_hook=without_own)


def check_csv(name, text):
    width = None
    for row in csv.reader(io.StringIO(text), strict=True):
        if not row or row[0].startswith("# "):
            width = None
            continue
        width = width or len(row)
        expect(f"{name}: cells", len(row), width)


def run(name, *arguments):
    done = subprocess.run([find("report/xpu-report"), *map(str, arguments)], capture_output=True)
    check_text(f"{name}: stderr", done.stderr)
    return done


def views_of(name, capture):
    # A status other than 0: this capture has nothing for this view.
    for arguments in TEXT_VIEWS:
        what = f"{name} {arguments}"
        check_text(what, run(what, *arguments, capture).stdout)
    for form, check in (("csv", check_csv), ("json", check_json)):
        for arguments in (["--top"], ["--diff", capture]):
            what = f"{name} {arguments} {form}"
            done = run(what, *arguments, "-n", "0", "--format", form, capture)
            expect(what, done.returncode, 0)
            check(what, check_text(what, done.stdout))
    what = f"{name} --chrome-trace"
    done = run(what, "--chrome-trace", capture)
    expect(what, done.returncode, 0)
    check_json(what, check_text(what, done.stdout))
    with tempfile.TemporaryDirectory() as directory:
        page = pathlib.Path(directory) / "page.html"
        expect(what, run(name, "--flamegraph", "-o", page, capture).returncode, 0)
        text = check_text(f"{name} --flamegraph", page.read_bytes())
        elements = re.findall(r"<script[^>]*>(.*?)</script", text, re.DOTALL)
        expect(f"{name}: script elements", (len(elements), text.count("</script")), (2, 2))
        check_json(f"{name} --flamegraph", elements[0])
        for form, check in (("csv", check_csv), ("ndjson", None)):
            tables = pathlib.Path(directory) / form
            expect(form, run(name, "--export", form, "-o", tables, capture).returncode, 0)
            for table in tables.iterdir():
                text = check_text(f"{name} {table.name}", table.read_bytes())
                if check:
                    check(table.name, text)
                else:
                    for line in text.splitlines():
                        check_json(table.name, line)


def test_texts_of_captures():
    make = find("tests/golden/make_hostile_texts")
    suffix = SUFFIX.encode().decode("latin-1")
    escaped = "".join(c if " " <= c <= "~" and c != "\\" else f"\\x{ord(c):02x}" for c in suffix)
    # Samples of time are known by their unit. Of others the summary shows name and unit.
    captures = [(capture, "ns") for capture in CAPTURES_OF_ALL] + [("two_kernels_fork.xpu", "")]
    for capture, kept in captures:
        if xpu_testing.is_left_out(CAPTURES / capture):
            continue
        with tempfile.TemporaryDirectory() as directory:
            hostile = pathlib.Path(directory) / "hostile.xpu"
            subprocess.run([make, CAPTURES / capture, hostile, escaped, kept], check=True)
            views_of(capture, hostile)


if __name__ == "__main__":
    sys.exit(xpu_testing.main(globals()))
