"""Each view of a small capture, made by make_scene.cpp, is exactly the text beside this file.

XPU_UPDATE_GOLDEN=1 writes the texts anew; read the difference before you believe it.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

VIEWS = {
    "summary.txt": [],
    "folded_merge_us.txt": ["--folded"],
    "folded_gpu_ns.txt": ["--folded", "--mode", "gpu", "--unit", "ns"],
    "folded_tags_creation_ns.txt": ["--folded", "--mode", "gpu", "--unit", "ns", "--device-tags",
                                    "--graph-stacks", "creation"],
    "folded_graph_launch_ns.txt": ["--folded", "--mode", "gpu", "--unit", "ns", "--graph-stacks",
                                   "launch"],
    "folded_cpu_samples.txt": ["--folded", "--mode", "cpu", "--unit", "samples"],
    "folded_internal_mangled_ns.txt": ["--folded", "--mode", "gpu", "--unit", "ns",
                                       "--keep-internal-frames", "--kernel-names", "mangled"],
    "folded_offsets_samples.txt": ["--folded", "--mode", "cpu", "--unit", "samples", "--offsets"],
    "top.txt": ["--top"],
    "top_short_kernels.txt": ["--top", "--table", "cuda_gpu_kern_sum", "--kernel-names", "short"],
    "top_kernels.csv": ["--top", "--format", "csv", "--table", "cuda_gpu_kern_sum"],
    "top.json": ["--top", "-n", "2", "--format", "json"],
    "dump.txt": ["--dump"],
    "chrome_trace.json": ["--chrome-trace"],
}


def report(binary, folder, arguments):
    result = subprocess.run([binary, *arguments, f"{folder}/scene.xpu"], capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.replace(folder, "DIR"), result.stderr.replace(folder, "DIR")


def differences(name, expected, actual):
    if name.endswith(".json"):
        if json.loads(expected) == json.loads(actual):
            return
    elif expected == actual:
        return
    a, b = expected.splitlines(), actual.splitlines()
    yield f"{name} differs:"
    for line in a:
        if line not in b:
            yield f"  - {line}"
    for line in b:
        if line not in a:
            yield f"  + {line}"


def trace_problems(events):
    """What viewers need: integer numbers, nested slices, arrows that meet slices."""
    slices, stacks = {}, {}
    for event in events:
        track = (event["pid"], event["tid"])
        if not all(isinstance(number, int) for number in track):
            yield f"pid and tid are not integers: {event}"
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            slices.setdefault(track, []).append((start, start + round(event["dur"] * 1000)))
        elif event["ph"] == "B":
            stacks.setdefault(track, []).append(event["ts"])
        elif event["ph"] == "E" and not (stacks.get(track) and
                                         stacks[track].pop() <= event["ts"]):
            yield f"an end without a begin: {event}"
    if any(stacks.values()):
        yield "slices that never end"
    named = {(e["pid"], e["tid"]) for e in events if e["name" if "name" in e else "ph"] ==
             "thread_name"}
    for track, each in slices.items():
        if track not in named:
            yield f"{track} has no name"
        each.sort()
        for (_, end), (start, _) in zip(each, each[1:]):
            if start < end:
                yield f"slices of {track} overlap at {start}"
    arrows = {}
    for event in events:
        if event["ph"] not in "sf":
            continue
        arrows.setdefault(event["id"], []).append(event["ph"])
        at = round(event["ts"] * 1000)
        inside = [start for start, end in slices[(event["pid"], event["tid"])]
                  if start <= at <= end]
        if not inside or (event["ph"] == "f" and at not in inside):
            yield f"an arrow that meets no slice: {event}"
    yield from (f"arrow {number}: {ends}" for number, ends in arrows.items() if ends != ["s", "f"])


def folded_problems(text):
    """flamegraph.pl's rule: the last space parts the value, and no second value before it."""
    for line in text.splitlines():
        match = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line)
        if not match or re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", match.group(1)):
            yield f"not one stack and one value: {line}"


def total_problems(dump, folded_ns):
    """GPU time of the folded stacks = durations of the dumped records."""
    records = [(line.split()[0], dict(field.split("=", 1) for field in line.split() if "=" in field))
               for line in dump.splitlines()]
    total = 0
    for kind, fields in records:
        if kind in ("kernel", "memcpy", "memset", "graph_launch"):
            total += max(0, int(fields["end_ns"]) - int(fields["start_ns"]))
    folded = sum(int(line.rsplit(" ", 1)[1]) for line in folded_ns.splitlines())
    if folded != total:
        yield f"folded GPU time {folded} ns, records {total} ns"


def strict_problems(binary, folder):
    """Losses make --strict exit 3, after the view and what is said beside it."""
    results = [subprocess.run([binary, *strict, "--folded", f"{folder}/scene.xpu"],
                              capture_output=True, text=True) for strict in ([], ["--strict"])]
    if results[1].returncode != 3 or results[0].returncode != 0:
        yield f"exit status of --strict {results[1].returncode}, without {results[0].returncode}"
    if (results[0].stdout, results[0].stderr) != (results[1].stdout, results[1].stderr):
        yield "--strict writes something else"


def main():
    scene_maker, binary = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    problems = []
    outputs = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([scene_maker, folder], check=True)
        for name, arguments in VIEWS.items():
            out, err = report(binary, folder, arguments)
            outputs[name] = out
            texts = [(here / name, out)]
            if name == "folded_merge_us.txt":  # what is said beside the views is much the same
                texts.append((here / f"{name}.stderr", err))
            for path, text in texts:
                if os.environ.get("XPU_UPDATE_GOLDEN"):
                    path.unlink(missing_ok=True)
                    if text:
                        path.write_text(text)
                expected = path.read_text() if path.exists() else ""
                problems += differences(path.name, expected, text)
        problems += strict_problems(binary, folder)
    problems += trace_problems(json.loads(outputs["chrome_trace.json"])["traceEvents"])
    for name, out in outputs.items():
        if name.startswith("folded"):
            problems += folded_problems(out)
    problems += total_problems(outputs["dump.txt"], outputs["folded_gpu_ns.txt"])
    print("\n".join(problems) or f"{len(VIEWS)} views are as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
