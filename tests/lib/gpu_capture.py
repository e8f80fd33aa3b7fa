"""A capture of a CUDA program as xpu-report --dump tells it, and what follows from it, computed
here without the report's own passes: matching by id, clock fitting, call sites by nm."""

import bisect
import functools
import re
import subprocess

import xpu_testing
from xpu_testing import report

FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S*)')
# flamegraph.pl's rule for a folded line.
FOLDED = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")
# cudaLaunchKernel_ptsz_v7000, cuMemcpyHtoD_v2
VARIANT = re.compile(r"(_v\d+|_ptsz|_ptds)+$")
LAUNCHES = re.compile(r"launches (?P<seen>[\d,]+): (?P<matched>[\d,]+) with their kernel, "
                      r"(?P<pending>[\d,]+) pending, (?P<lost>[\d,]+) lost"
                      r"(?:, (?P<failed>[\d,]+) failed)?"
                      r"(?:, (?P<captured>[\d,]+) captured into graphs)?")


def plain_name(demangled):
    """`void f<1>(int)` -> `f<1>`: kernels as the workloads name them."""
    name = re.sub(r"\((?!anonymous).*$", "", demangled)
    return name.removeprefix("void ").strip()


class GpuCapture:
    def __init__(self, path):
        self.path = str(path)
        self.events = {}
        for line in report("--dump", path).splitlines():
            kind, _, rest = line.partition(" ")
            fields = {k: v[1:-1] if v.startswith('"') else v for k, v in FIELD.findall(rest)}
            self.events.setdefault(kind, []).append(fields)
        names = sorted({k["name"] for k in self.of("kernel")})
        text = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True,
                              text=True).stdout
        self.plain = dict(zip(names, map(plain_name, text.splitlines())))
        self.stacks = {self.key(s): s for s in self.of("launch_stack")}
        self.calls = {self.key(c): c for c in self.of("api_call")}
        self.callback_names = {(n["instance"], n["domain"], n["callback_id"]): n["name"]
                               for n in self.of("callback_name")}

    def of(self, kind):
        return self.events.get(kind, [])

    @staticmethod
    def key(event):
        return event["instance"], int(event["correlation_id"])

    @staticmethod
    def duration(event):
        return int(event["end_ns"]) - int(event["start_ns"])

    def call_name(self, call):
        """The API function of a call or launch stack, without the endings of its variants."""
        name = self.callback_names[(call["instance"], call["domain"], call["callback_id"])]
        return VARIANT.sub("", name)

    def entry(self, name):
        """What the ledger says under this name: its count, advice and details; None: nothing."""
        return next((e for e in self.of("ledger") if e["name"] == name), None)

    def launch_counts(self):
        """The summary's line about launches: seen, matched, pending, lost, failed, captured. It is
        left out where there are none."""
        text = report(self.path)
        if not re.search(r"^launches ", text, re.M):
            return dict.fromkeys(LAUNCHES.groupindex, 0)
        match = LAUNCHES.search(" ".join(text.split()))
        xpu_testing.expect(f"launches in the summary {text}", match is not None, True)
        return {name: int((number or "0").replace(",", ""))
                for name, number in match.groupdict().items()}

    def losses(self):
        """What the recorder lost and what the report misses; notes are not losses, nor are the
        reasons why stacks are incomplete."""
        return {e["name"]: int(e["count"]) for e in self.of("ledger")
                if e["severity"] != "note" and e["name"] not in xpu_testing.ABOUT_STACKS}

    def kernels_by_name(self):
        counts = {}
        for kernel in self.of("kernel"):
            name = self.plain[kernel["name"]]
            counts[name] = counts.get(name, 0) + 1
        return counts

    def kernel_ns(self, without=()):
        return sum(self.duration(k) for k in self.of("kernel")
                   if self.plain[k["name"]] not in without)

    def unmatched(self):
        return [k for k in self.of("kernel") if self.key(k) not in self.stacks]

    def frames(self, stack, program, symbols):
        """Names of a launch stack's frames that lie in the program, outermost first."""
        names = []
        for position, text in enumerate(stack["stack"].strip("[]").split(",")):
            if not text or text.startswith("k:"):
                continue
            address = int(text, 16) - (1 if position else 0)
            mapping = self.mapping(int(stack["pid"]), address, int(stack["time_ns"]))
            if mapping and mapping["path"] == program:
                offset = address - int(mapping["start_address"], 16) + int(
                    mapping["file_offset"], 16)
                name = symbols.name_at(offset)
                if name:
                    names.append(name)
        return list(reversed(names))

    def mapping(self, pid, address, time_ns):
        while pid:
            best = None
            for m in self.of("mapping"):
                start = int(m["start_address"], 16)
                if (int(m["pid"]) == pid and int(m["time_ns"]) <= time_ns
                        and start <= address < start + int(m["size_bytes"])):
                    best = m if best is None or int(m["time_ns"]) >= int(best["time_ns"]) else best
            if best:
                return best
            fork = [e for e in self.of("process_event") if e["kind"] == "fork"
                    and int(e["pid"]) == pid and int(e["parent_pid"]) != pid]
            pid, time_ns = (int(fork[-1]["parent_pid"]), int(fork[-1]["time_ns"])) if fork else (0, 0)
        return None

    def sites(self, program, symbols):
        """(path, kernel) -> (launches, ns): paths as the workloads print them, by nm."""
        result = {}
        for kernel in self.of("kernel"):
            stack = self.stacks.get(self.key(kernel))
            if stack is None:
                continue
            path = ";".join(up_to_launch(self.frames(stack, program, symbols)))
            at = (path, self.plain[kernel["name"]])
            launches, ns = result.get(at, (0, 0))
            result[at] = (launches + 1, ns + self.duration(kernel))
        return result

    def monotonic(self, instance):
        """CUPTI time -> CLOCK_MONOTONIC, linear between the clock pairs of the instance."""
        pairs = sorted((int(p["clock_ns"]), (int(p["before_ns"]) + int(p["after_ns"])) // 2)
                       for p in self.of("clock_pair") if p["instance"] == instance)
        clocks = [p[0] for p in pairs]

        def convert(time_ns):
            right = min(max(bisect.bisect(clocks, time_ns), 1), len(pairs) - 1)
            if len(pairs) == 1:
                return time_ns - pairs[0][0] + pairs[0][1]
            (c0, m0), (c1, m1) = pairs[right - 1], pairs[right]
            return m0 + (time_ns - c0) * (m1 - m0) // (c1 - c0)

        return convert

    def worst_margin_ns(self):
        """The least time from the entry of a launch call to the start of its kernel."""
        calls = {self.key(c): int(c["start_ns"]) for c in self.of("api_call")}
        clock_of = functools.cache(self.monotonic)
        return min(clock_of(kernel["instance"])(int(kernel["start_ns"])) - calls[self.key(kernel)]
                   for kernel in self.of("kernel"))

    def folded(self, *arguments):
        lines = {}
        for line in report("--folded", *arguments, self.path).splitlines():
            match = FOLDED.match(line)
            xpu_testing.expect(f"folded line {line!r} has flamegraph.pl's form", bool(match), True)
            lines[match.group(1)] = lines.get(match.group(1), 0) + int(match.group(2))
        return lines


class GraphNodes:
    """Which call made a node of an executable graph, by the changes that the dump lists."""

    def __init__(self, capture):
        self.created, self.origins, self.updates = {}, {}, {}
        for event in sorted(capture.of("graph_node"), key=lambda e: int(e["time_ns"])):
            if event["change"] == "created":
                kept, of = self.created, int(event["node_id"])
            elif event["change"] == "graph_updated":
                kept, of = self.updates, int(event["graph_id"])
            else:
                kept, of = self.origins, int(event["node_id"])
            kept.setdefault((event["instance"], of), []).append(event)

    @staticmethod
    def latest(events, time_ns):
        return next((e for e in reversed(events or []) if int(e["time_ns"]) <= time_ns), None)

    def creation(self, instance, node_id, time_ns):
        """The event of the node that the program made and that this one stood for at that time;
        None where the recording does not have it."""
        while True:
            change = self.latest(self.origins.get((instance, node_id)), time_ns)
            update = self.latest(self.updates.get((instance, node_id >> 32)), time_ns)
            if update and (not change or int(update["time_ns"]) >= int(change["time_ns"])):
                node_id = int(update["original_node_id"]) | node_id & 0xffffffff
                time_ns = int(update["time_ns"])
            elif change:
                node_id, time_ns = int(change["original_node_id"]), int(change["time_ns"])
            else:
                return self.latest(self.created.get((instance, node_id)), time_ns)


def stream_dump(path, *kinds):
    """(kind, fields) of these kinds of events, one by one: captures of millions of them do not fit
    into GpuCapture. Fields are the parts of the line; use field()."""
    starts = tuple(kind + " " for kind in kinds)
    with subprocess.Popen([xpu_testing.find("report/xpu-report"), "--dump", str(path)],
                          stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith(starts):
                yield line[:line.index(" ")], line
    xpu_testing.expect("status of xpu-report --dump", process.returncode, 0)


def field(line, name):
    """The value of one number in a line of the dump."""
    begin = line.index(f" {name}=") + len(name) + 2
    return int(line[begin:line.find(" ", begin)])


def up_to_launch(frames):
    """The frames of a launch stack down to the direct caller of the launch function."""
    path = [f.removeprefix("void ") for f in frames]
    for end, name in enumerate(path):
        if name.startswith(("cudaLaunchKernel", "__cudaLaunchKernel", "cuLaunchKernel")):
            return path[:end]
    return path


def count_sites(actual, expected):
    """Launches and ns per expected site; what belongs to none is under its own path. An expected
    path is the end of the actual one, which also has main and what is above it."""
    result = {}
    for (path, kernel), (launches, ns) in actual.items():
        frames = path.split(";")
        site = next((p for p, k in expected if k == kernel
                     and frames[-len(p.split(";")):] == p.split(";")), path)
        old = result.get((site, kernel), (0, 0))
        result[(site, kernel)] = (old[0] + launches, old[1] + ns)
    return result


def kernels_in(*files):
    """Launches, kernels and what is missing, as the report sees them."""
    table = report("--top", "--table", "cuda_gpu_kern_sum", "--format", "csv", *files)
    rows = [line.split(",") for line in table.splitlines()[1:]]
    return sum(int(row[2]) for row in rows)
