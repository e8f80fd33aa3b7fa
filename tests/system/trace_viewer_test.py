"""A real viewer opens --chrome-trace and --folded of real captures without complaint, and shows as
many slices, and as much time, as the captures hold."""

import collections
import json
import os
import pathlib

import xpu_testing
from gpu_capture import GpuCapture, report
from speedscope import Speedscope
from xpu_testing import expect

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
