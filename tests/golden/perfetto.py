"""--perfetto shows what --chrome-trace shows: the same tracks, slices, arguments, arrows, moments,
counters and facts, on each real capture; and of CPU samples the stacks that the other draws."""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import perfetto_trace
import xpu_testing
from xpu_testing import CAPTURES, expect, real_captures, report

OF_SAMPLES = {"cpu", "cpu_kernel", "cpu_python"}
SAMPLES_TRACK = re.compile(r" \(tid (\d+)\): CPU samples$")
SHOWN = {"pytorch_loader.xpu": ["--time", "12s-12.1s"]}  # else it takes a minute
OWN_MOMENTS = {"wakeup"}  # where arrows begin
# In JSON they end 1 ns before the next one begins: what has these categories or is on such a track.
ADJACENT = {"step", "state"}
ADJACENT_TRACKS = re.compile(r"critical path of ")
EIGHTH = 125  # times of drawn samples are rounded down to these


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def frozen(value):
    return tuple(value) if isinstance(value, list) else value


def arguments(args):
    return tuple(sorted((key, frozen(value)) for key, value in args.items()))


class ChromeTrace:
    def __init__(self, document):
        events = document["traceEvents"]
        self.facts = document["otherData"]
        names = {(e["ph"], e["name"], e["pid"], e["tid"]): e["args"].get("name") for e in events
                 if e["ph"] == "M"}
        self.groups = {pid: name for (_, what, pid, _), name in names.items()
                       if what == "process_name"}
        self.tracks = {(pid, tid): (self.groups[pid], name)
                       for (_, what, pid, tid), name in names.items() if what == "thread_name"}
        self.slices = [e for e in events if e["ph"] == "X"]
        self.moments = [e for e in events if e["ph"] == "i"]
        self.counters = [e for e in events if e["ph"] == "C"]
        self.arrows = collections.defaultdict(dict)
        for event in events:
            if event["ph"] in "sf":
                self.arrows[event["id"]][event["ph"]] = event

    def track(self, event):
        return self.tracks[(event["pid"], event["tid"])]


def same(what, actual, wanted):
    actual, wanted = collections.Counter(actual), collections.Counter(wanted)
    if actual != wanted:
        raise AssertionError(f"{what}: more {list((actual - wanted).items())[:3]}, missing "
                             f"{list((wanted - actual).items())[:3]}")


def is_adjacent(track, category):
    return category in ADJACENT or ADJACENT_TRACKS.match(track[1]) is not None


def check_slices(name, trace, chrome):
    same(f"{name}: slices",
         [(s.track, s.name, s.category, s.start,
           s.end - (is_adjacent(s.track, s.category) and s.end > s.start), arguments(s.args)) for s in trace.slices],
         [(chrome.track(e), e["name"], e["cat"], nanoseconds(e["ts"]),
           nanoseconds(e["ts"]) + nanoseconds(e["dur"]), arguments(e.get("args", {})))
          for e in chrome.slices if e["cat"] not in OF_SAMPLES])
    same(f"{name}: moments",
         [(m.track, m.name, m.category, m.time, arguments(m.args)) for m in trace.instants
          if m.category not in OWN_MOMENTS],
         [(chrome.track(e), e["name"], e["cat"], nanoseconds(e["ts"]),
           arguments(e.get("args", {}))) for e in chrome.moments if e["s"] == "t"])
    idle = idle_threads(trace)
    same(f"{name}: tracks",
         {(trace.names[trace.groups[u]], n) for u, n in trace.names.items()
          if trace.groups[u] != u and u not in trace.units and u not in idle},
         {track for track in chrome.tracks.values() if not SAMPLES_TRACK.search(track[1])})


def idle_threads(trace):
    """Those that have samples only: the other format has a track for these alone."""
    used = {s.track for s in trace.slices} | {m.track for m in trace.instants}
    return {uuid for uuid in trace.threads if trace.track(uuid) not in used}


def check_arrows(name, trace, chrome):
    starts = {(e["pid"], e["tid"], nanoseconds(e["ts"])) for e in chrome.slices}

    def begin(event):
        """Of the call that the arrow begins in, up to a nanosecond after its start."""
        at = nanoseconds(event["ts"])
        early = event["name"] == "launch" and (event["pid"], event["tid"], at - 1) in starts
        return chrome.track(event), at - 1 if early else at

    same(f"{name}: arrows", trace.arrows(),
         [(begin(ends["s"]), (chrome.track(ends["f"]), nanoseconds(ends["f"]["ts"])))
          for ends in chrome.arrows.values()])


def check_counters(name, trace, chrome):
    same(f"{name}: counters",
         [(c.group, c.name, c.unit, c.time, f"{c.value:.3f}") for c in trace.counters],
         [(chrome.groups[e["pid"]], e["name"], unit, nanoseconds(e["ts"]), f"{value:.3f}")
          for e in chrome.counters for unit, value in e["args"].items()])


def drawn_stacks(slices, times):
    """What the nested slices of a track show at each of the times, outermost first."""
    spans = sorted((nanoseconds(e["ts"]), -nanoseconds(e["ts"]) - nanoseconds(e["dur"]), -i,
                    e["name"]) for i, e in enumerate(slices))
    at, around = 0, []
    for time in times:
        while at < len(spans) and spans[at][0] <= time:
            start, end = spans[at][0], -spans[at][1]
            while around and around[-1][0] < start:
                around.pop()
            around.append((end, spans[at][3]))
            at += 1
        while around and around[-1][0] < time:
            around.pop()
        yield tuple(name for end, name in around)


def check_samples(name, trace, chrome):
    slices = collections.defaultdict(list)
    for event in chrome.slices:
        if event["cat"] in OF_SAMPLES:
            tid = int(SAMPLES_TRACK.search(chrome.track(event)[1])[1])
            slices[(event["pid"], tid)].append(event)
    samples = collections.defaultdict(list)
    for sample in trace.samples:
        samples[(sample.pid, sample.tid)].append(sample)
    expect(f"{name}: threads with samples", {t for t, s in samples.items()
                                             if any(x.frames for x in s)}, set(slices))
    for thread, taken in samples.items():
        times = [sample.time // EIGHTH * EIGHTH for sample in taken]
        for sample, stack in zip(taken, drawn_stacks(slices[thread], times), strict=True):
            expect(f"{name}: the stack of {thread} at {sample.time}", sample.frames, stack)


def traces_of(capture, directory, *arguments):
    path = pathlib.Path(directory) / "a.pftrace"
    report(capture, "--perfetto", "-o", path, *arguments)
    trace = perfetto_trace.Trace(path.read_bytes())
    text = report(capture, "--chrome-trace", *arguments)
    return trace, ChromeTrace(json.loads(text)), path.stat().st_size / len(text)


def check(name, trace, chrome):
    check_slices(name, trace, chrome)
    check_arrows(name, trace, chrome)
    check_counters(name, trace, chrome)
    check_samples(name, trace, chrome)
    expect(f"{name}: facts", trace.attributes, chrome.facts)
    same(f"{name}: marks", [mark[:2] for mark in trace.marks if mark[0] != "recording"],
         [(e["name"], nanoseconds(e["ts"])) for e in chrome.moments if e["s"] == "g"])


def test_all_real_captures_show_what_the_chrome_trace_shows():
    with tempfile.TemporaryDirectory() as directory:
        for capture in real_captures() + real_captures("first"):
            options = SHOWN.get(capture.name, [])
            trace, chrome, share = traces_of(capture, directory, *options)
            check(capture.name, trace, chrome)
            samples = report("--dump", capture).count("\ncpu_sample ")
            drawn = sum(m.category == "event" for m in trace.instants)
            if not options:
                expect(f"{capture.name}: samples", len(trace.samples) + drawn, samples)
            expect(f"{capture.name}: size over that of the Chrome trace, {share}", share < 0.2, True)


def test_parts_and_several_captures():
    with tempfile.TemporaryDirectory() as directory:
        mlp, graph = CAPTURES / "pytorch_mlp.xpu", CAPTURES / "pytorch_mlp_graph.xpu"
        for arguments in (["--kernel", "gemm"], ["--lines"], ["--python", "only"],
                          ["--sample", "1/4"]):
            trace, chrome, _ = traces_of(mlp, directory, *arguments)
            check(f"with {arguments}", trace, chrome)
        # Of two machines: processes have numbers of their own.
        trace, chrome, _ = traces_of(mlp, directory, graph)
        check("two captures", trace, chrome)
        expect("processes", len(set(trace.processes.values())), len(trace.processes))
        expect("more than one process", len(trace.processes) > 1, True)


def test_calls_have_their_stacks():
    """Those under which other views show the work."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("pytorch_mlp", "pytorch_python", "graph_paths", "two_kernels_fork"):
            capture = CAPTURES / f"{name}.xpu"
            trace, _, _ = traces_of(capture, directory)
            stacks = {s.stack for s in trace.slices if s.stack}
            for stack in stacks:
                expect(f"{name}: the call is the innermost frame of {stack}",
                       stack[-1] in {s.name for s in trace.slices if s.stack == stack}, True)
            lines = report("--folded", capture, "--mode", "gpu", "--unit", "ns", "--graph-stacks",
                           "launch").splitlines()
            shown = {tuple(line.rsplit(" ", 1)[0].split(";")[1:-1]) for line in lines
                     if "[unknown" not in line}
            folded = {tuple(frame.replace(";", ":") for frame in stack) for stack in stacks}
            expect(f"{name}: paths of GPU work without a call: {shown - folded}", shown <= folded,
                   True)
            expect(f"{name}: there are some", len(shown) > 0, True)


def test_frames_say_what_they_are():
    native, kernel, interpreted = 1, 2, 3
    with tempfile.TemporaryDirectory() as directory:
        trace, _, _ = traces_of(CAPTURES / "pytorch_python.xpu", directory)
        expect("kinds", set(trace.kinds), {0, native, kernel, interpreted})
        expect("of the kernel", "do_syscall_64_[k]" in trace.kinds[kernel], True)
        expect("of Python", any(f.endswith("Linear.forward") for f in trace.kinds[interpreted]), True)
        expect("calls have none", "cudaLaunchKernel" in trace.kinds[0], True)
        expect("native", "main" in trace.kinds[native] or "_start" in trace.kinds[native], True)


def test_a_cut_trace_is_whole():
    with tempfile.TemporaryDirectory() as directory:
        trace, chrome, _ = traces_of(CAPTURES / "no_inject.xpu", directory, "--max-events", "50")
        expect("slices, moments and samples",
               len(trace.slices) + len(trace.instants) + len(trace.samples), 50)
        [mark] = [mark for mark in trace.marks if mark[0] != "recording"]
        expect("mark", mark[0].startswith("cut after 50 events"), True)
        expect("fact", trace.attributes["cut"].startswith("the trace is cut after 50"), True)
        expect("in the other format", "cut" in chrome.facts, True)


def test_protoc_reads_it():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "graph.pftrace"
        report(CAPTURES / "graph.xpu", "--perfetto", "-o", path)
        decoded = subprocess.run(["protoc", "--decode_raw"], input=path.read_bytes(), check=True,
                                 capture_output=True)
        expect("packets", decoded.stdout.startswith(b"1 {\n  50: "), True)


def test_hostile_captures():
    make_hostile = xpu_testing.find("tests/golden/make_hostile")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([make_hostile, directory, "100"], check=True)
        for capture in sorted(pathlib.Path(directory).glob("*.xpu")):
            path = f"{capture}.pftrace"
            report(capture, "--perfetto", "-o", path)
            perfetto_trace.Trace(pathlib.Path(path).read_bytes())


if __name__ == "__main__":
    sys.exit(xpu_testing.main(globals()))
