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
    "folded_by_stream_ns.txt": ["--folded", "--by", "stream", "--unit", "ns"],
    "folded_by_thread_reverse_us.txt": ["--folded", "--by", "thread", "--reverse"],
    "script.txt": ["--script"],
    "top.txt": ["--top"],
    "top_short_kernels.txt": ["--top", "--table", "cuda_gpu_kern_sum", "--kernel-names", "short"],
    "top_kernels.csv": ["--top", "--format", "csv", "--table", "cuda_gpu_kern_sum"],
    "top.json": ["--top", "-n", "2", "--format", "json"],
    "top_shapes.txt": ["--top", "--table", "cuda_gpu_kern_gb_sum"],
    "top_api_gpu.csv": ["--top", "--format", "csv", "--table", "cuda_api_gpu_sum"],
    "top_executions.json": ["--top", "--format", "json", "--table", "cuda_kern_exec_sum"],
    "top_gpu_trace.csv": ["--top", "-n", "0", "--format", "csv", "--table", "cuda_gpu_trace"],
    "top_api_trace.txt": ["--top", "-n", "0", "--table", "cuda_api_trace"],
    "top_sorted.txt": ["--top", "--sort", "min", "--table", "cuda_api_sum"],
    "tables.txt": ["--list-tables"],
    "dump.txt": ["--dump"],
    "chrome_trace.json": ["--chrome-trace"],
}

# Of the capture of scene_python.h.
PYTHON_VIEWS = {
    "python_folded_merge_us.txt": ["--folded"],
    "python_folded_lines_samples.txt": ["--folded", "--mode", "cpu", "--unit", "samples",
                                        "--lines"],
    "python_folded_only_us.txt": ["--folded", "--python", "only"],
    "python_folded_native_us.txt": ["--folded", "--python=native"],
    "python_functions.csv": ["--top", "--format", "csv", "--table", "cpu_func_sum"],
    "python_paths.txt": ["--table", "callpath_sum"],
    "python_costs.csv": ["--format", "csv", "--table", "func_sum"],
    "python_script.txt": ["--script"],
    "python_summary.txt": [],
}


def report(binary, directory, arguments, capture="scene.xpu"):
    # There: commands that the summary suggests are wrapped by their length.
    result = subprocess.run([binary, *arguments, capture], cwd=directory, capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.replace(directory, "DIR"), result.stderr.replace(directory, "DIR")


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


def nesting_problems(track, slices):
    """Slices of a track lie within one another or beside one another; outer ones come first."""
    around = []
    for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while around and around[-1] <= start:
            around.pop()
        if around and around[-1] < end:
            yield f"slices of {track} overlap at {start}"
        around.append(end)


def arrow_problems(events, slices):
    arrows = {}
    for event in events:
        if event["ph"] not in "sf":
            continue
        arrows.setdefault(event["id"], []).append((event["ph"], event["ts"]))
        at = round(event["ts"] * 1000)
        inside = [start for start, end in slices[(event["pid"], event["tid"])]
                  if start <= at <= end]
        if not inside or (event["ph"] == "f" and at not in inside):
            yield f"an arrow that meets no slice: {event}"
    for number, ends in arrows.items():
        if [phase for phase, _ in ends] != ["s", "f"] or ends[0][1] > ends[1][1]:
            yield f"arrow {number}: {ends}"


def counter_problems(events):
    last = {}
    for event in events:
        if event["ph"] != "C":
            continue
        counter = (event["pid"], event["name"], *event["args"])
        [value] = event["args"].values()
        if value < 0 or (event["name"] == "busy" and value > 100):
            yield f"{counter} is {value}"
        if counter in last and last[counter][0] >= event["ts"]:
            yield f"{counter} goes back in time at {event['ts']}"
        last[counter] = (event["ts"], value)
    yield from (f"{counter} ends with {value}" for counter, (_, value) in last.items() if value)


def trace_problems(events):
    """What viewers need: integer numbers, nested slices, arrows that meet slices."""
    slices = {}
    for event in events:
        if not all(isinstance(event[key], int) for key in ("pid", "tid")):
            yield f"pid and tid are not integers: {event}"
        if event["ph"] not in "XsfCM":
            yield f"an unexpected event: {event}"
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            slices.setdefault((event["pid"], event["tid"]), []).append(
                (start, start + round(event["dur"] * 1000)))
    names = {}
    for event in events:
        if event["ph"] == "M":
            names.setdefault(event["name"], set()).add((event["pid"], event["tid"]))
    for track, each in slices.items():
        for kind in ("thread_name", "thread_sort_index"):
            if track not in names[kind]:
                yield f"{track} has no {kind}"
        if (track[0], 0) not in names["process_name"]:
            yield f"{track[0]} has no name"
        yield from nesting_problems(track, each)
    yield from arrow_problems(events, slices)
    yield from counter_problems(events)


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


def script_problems(script, dump, folded_ns):
    """Six columns, in order of time, every event once."""
    times, counts, gpu_ns = [], {}, 0
    for line in script.splitlines():
        columns, _, pairs = line.partition("\t")
        time, _comm, pid, tid, cpu, _stack = columns.split(" ", 5)
        event = dict(pair.split("=") for pair in pairs.split()) if pairs else {"event": "sample"}
        times.append(int(time))
        counts[event["event"]] = counts.get(event["event"], 0) + 1
        if not (pid + tid).isdigit() or cpu.isdigit() != (event["event"] == "sample"):
            yield f"columns: {line}"
        if "gpu" in event and event["event"] != "sync":
            gpu_ns += int(event["duration_ns"])
    if times != sorted(times):
        yield "the script is not in order of time"
    kinds = [line.split()[0] for line in dump.splitlines()]
    for event, kind in {"sample": "cpu_sample", "api": "api_call", "kernel": "kernel",
                        "memcpy": "memcpy", "memset": "memset", "graph": "graph_launch",
                        "sync": "synchronization"}.items():
        if counts.get(event, 0) != kinds.count(kind):
            yield f"{counts.get(event, 0)} lines of {event}, {kinds.count(kind)} records"
    folded = sum(int(line.rsplit(" ", 1)[1]) for line in folded_ns.splitlines())
    if gpu_ns != folded:
        yield f"GPU time of the script {gpu_ns} ns, folded {folded} ns"


def strict_problems(binary, directory):
    """Losses make --strict exit 3, after the view and what is said beside it."""
    results = [subprocess.run([binary, *strict, "--folded", f"{directory}/scene.xpu"],
                              capture_output=True, text=True) for strict in ([], ["--strict"])]
    if results[1].returncode != 3 or results[0].returncode != 0:
        yield f"exit status of --strict {results[1].returncode}, without {results[0].returncode}"
    if (results[0].stdout, results[0].stderr) != (results[1].stdout, results[1].stderr):
        yield "--strict writes something else"


def full_disk_problems(binary, directory):
    """What could not be written is an error, of a view and of what needs no capture."""
    error = "xpu-report: standard output: write: No space left on device\n"
    for arguments in (["--help"], ["--version"], ["--list-tables"],
                      ["--folded", f"{directory}/scene.xpu"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([binary, *arguments], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        if done.returncode != 1 or error not in done.stderr:
            yield f"{arguments[0]} to a full disk: status {done.returncode}, {done.stderr}"
    yield from full_database_problems(binary, directory)


def full_database_problems(binary, directory):
    """SQLite has errors of its own, and writes to files alone: here on a disk of 64 KiB."""
    disk = pathlib.Path(directory, "disk")
    disk.mkdir()
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c",
             'mount -t tmpfs -o size=64k none "$0" && "$@"', disk]
    if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
        return  # no user namespaces here
    done = subprocess.run([*mount, binary, "--export", "sqlite", "-o", disk / "scene.sqlite",
                           f"{directory}/scene.xpu"], capture_output=True, text=True)
    error = f"{disk}/scene.sqlite: write: No space left on device\nhint: the disk is full"
    if done.returncode != 1 or error not in done.stderr:
        yield f"a database on a full disk: status {done.returncode}, {done.stderr}"


def header_problems(binary, directory):
    """No byte of the file's header may change unseen; all that follows it is read nevertheless."""
    whole = pathlib.Path(directory, "scene.xpu").read_bytes()
    damaged = pathlib.Path(directory, "damaged.xpu")
    for at in range(int.from_bytes(whole[10:12], "little")):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
        done = subprocess.run([binary, "--dump", str(damaged)], capture_output=True, text=True)
        told = done.stdout.count('ledger name="header_damaged" severity=partial count=1 ')
        if done.returncode != 0 or told != 1 or 'name="block_damaged"' in done.stdout:
            yield f"byte {at} of the header changed: status {done.returncode}, told {told} times"


def main():
    scene_maker, binary = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    problems = []
    outputs = {}
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([scene_maker, directory], check=True)
        for name, arguments in {**VIEWS, **PYTHON_VIEWS}.items():
            capture = "python.xpu" if name in PYTHON_VIEWS else "scene.xpu"
            out, err = report(binary, directory, arguments, capture)
            outputs[name] = out
            texts = [(here / name, out)]
            if name.endswith("folded_merge_us.txt"):  # beside the others much the same
                texts.append((here / f"{name}.stderr", err))
            for path, text in texts:
                if os.environ.get("XPU_UPDATE_GOLDEN"):
                    path.unlink(missing_ok=True)
                    if text:
                        path.write_text(text)
                expected = path.read_text() if path.exists() else ""
                problems += differences(path.name, expected, text)
        problems += strict_problems(binary, directory)
        problems += full_disk_problems(binary, directory)
        problems += header_problems(binary, directory)
    problems += trace_problems(json.loads(outputs["chrome_trace.json"])["traceEvents"])
    for name, out in outputs.items():
        if "folded" in name:
            problems += folded_problems(out)
    problems += total_problems(outputs["dump.txt"], outputs["folded_gpu_ns.txt"])
    problems += script_problems(outputs["script.txt"], outputs["dump.txt"],
                                outputs["folded_gpu_ns.txt"])
    print("\n".join(problems) or f"{len(outputs)} views are as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
