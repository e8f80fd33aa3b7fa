"""A capture of a CUDA program as xpu-report --dump tells it, and what follows from it, computed
here without the report's own passes: matching by id, clock fitting, call sites by nm."""

import bisect
import re
import subprocess

import xpu_testing

FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S*)')
# flamegraph.pl's rule for a folded line.
FOLDED = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")


def report(*arguments):
    return subprocess.run([xpu_testing.find("report/xpu-report"), *map(str, arguments)], check=True,
                          capture_output=True, text=True).stdout


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

    def of(self, kind):
        return self.events.get(kind, [])

    @staticmethod
    def key(event):
        return event["instance"], int(event["correlation_id"])

    @staticmethod
    def duration(event):
        return int(event["end_ns"]) - int(event["start_ns"])

    def losses(self):
        """What the recorder lost and what the report misses; notes are not losses. Nor are samples
        cut at the limit: in code without frame pointers (the loader's) a walk may run in a circle.
        """
        losses = {e["name"]: int(e["count"]) for e in self.of("ledger") if e["severity"] != "note"}
        cut = sum(int(s["stack_flags"]) & xpu_testing.STACK_TRUNCATED != 0 for s in self.of("cpu_sample"))
        if cut and losses.get("stack_truncated") == cut:
            del losses["stack_truncated"]
        return losses

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
        clocks = {}
        margins = []
        for kernel in self.of("kernel"):
            convert = clocks.setdefault(kernel["instance"], self.monotonic(kernel["instance"]))
            margins.append(convert(int(kernel["start_ns"])) - calls[self.key(kernel)])
        return min(margins)

    def folded(self, *arguments):
        lines = {}
        for line in report("--folded", *arguments, self.path).splitlines():
            match = FOLDED.match(line)
            xpu_testing.expect(f"folded line {line!r} has flamegraph.pl's form", bool(match), True)
            lines[match.group(1)] = lines.get(match.group(1), 0) + int(match.group(2))
        return lines


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
