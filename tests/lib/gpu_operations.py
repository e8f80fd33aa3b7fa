"""What the scenarios of gpu_operations_test.py share: recording, call sites, complete captures."""

import os
import re
import sys
from collections import Counter

import xpu_testing
from gpu_capture import GpuCapture, GraphNodes, plain_name
from gpu_programs import program
from xpu_testing import expect, report, symbols_of

# CUpti_ActivityMemcpyKind, CUpti_ActivitySynchronizationType
COPY_KINDS = {"1": "HtoD", "2": "DtoH", "3": "HtoA", "4": "AtoH", "5": "AtoA", "6": "AtoD",
              "7": "DtoA", "8": "DtoD", "9": "HtoH", "10": "PtoP"}
SYNC_KINDS = {"1": "event sync", "2": "stream wait event", "3": "stream sync", "4": "device sync"}

# What a script may use: sets of one size, which are kept apart from others by it.
PRELUDE = """
import ctypes, sys
def work(count, size):
    global cudart
    cudart = ctypes.CDLL("libcudart.so.13")
    memory = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(size)) == 0
    for _ in range(count):
        assert cudart.cudaMemsetAsync(memory, 0, ctypes.c_size_t(size), None) == 0
    assert cudart.cudaDeviceSynchronize() == 0
    assert cudart.cudaFree(memory) == 0
"""


def without_ids(output):
    return [re.sub(r'"(pid|tid)":\d+', "", line) for line in output.splitlines()]


def cuda_environment(env=None):
    """The environment of a program that looks for libcudart and libcuda by their names."""
    directory = os.environ.get("XPU_WORKLOAD_DIR")
    if directory is None:
        directory = os.path.dirname(xpu_testing.find("tests/fake_cuda/lib/libcuda.so.1"))
    return {**os.environ, "LD_LIBRARY_PATH": os.path.realpath(directory), **(env or {})}


def recorded_python(work, script, *arguments, options=(), env=None):
    """Records a Python script that uses CUDA by ctypes; its output is the capture's `output`."""
    path = work.file("script.py", PRELUDE + script)
    result = work.record(*options, "--", sys.executable, path, *arguments,
                         env=cuda_environment(env))
    expect(f"status ({result.stderr})", result.returncode, 0)
    capture = GpuCapture(work.path / "capture.xpu")
    capture.output = result.stdout
    return capture


def figures(text):
    print(f"        {text}", flush=True)


class Sites:
    """Paths of launch stacks in the workload's own functions, from main or the thread's first."""

    def __init__(self, capture, name, path=None, table=None):
        """`path` and `table`: of a program that is not here, its path and symbols."""
        self.capture, self.path = capture, path or program(name)
        self.symbols = table or symbols_of(self.path)
        self.known = {}

    def path_of(self, stack):
        key = stack["pid"], stack["stack"]
        if key not in self.known:
            frames = [f.removeprefix("void ")
                      for f in self.capture.frames(stack, self.path, self.symbols)]
            begin = frames.index("main") if "main" in frames else 0
            self.known[key] = ";".join(frames[begin:])
        return self.known[key]

    def of(self, event):
        return self.path_of(self.capture.stacks[self.capture.key(event)])

    def innermost(self, event):
        return self.of(event).split(";")[-1]


def check_one_stack_per_call(capture):
    for kind in ("launch_stack", "api_call"):
        keys = Counter(map(capture.key, capture.of(kind)))
        expect(f"ids with more than one {kind}", [k for k, n in keys.items() if n > 1], [])
    expect("calls without a stack", set(capture.calls) - set(capture.stacks), set())


def check_all_matched(capture, pending=0):
    counts = capture.launch_counts()
    expect("launches pending, lost", (counts["pending"], counts["lost"]), (pending, 0))
    expect("launches with their kernel", counts["matched"], counts["seen"] - pending)
    return counts


def leaf_sums(lines):
    sums = Counter()
    for line, ns in lines.items():
        sums[line.split(";")[-1]] += ns
    return dict(sums)


def node_work(capture):
    """Work of graph nodes: kernels and memory operations, each with its name in accounts and
    its leaf in folded stacks."""
    for kernel in capture.of("kernel"):
        name = capture.plain[kernel["name"]]
        yield kernel, name, "[GPU_Kernel]" + name
    for copy in capture.of("memcpy"):
        yield copy, "copy", "[GPU_Memcpy]" + COPY_KINDS[copy["copy_kind"]]
    for memset in capture.of("memset"):
        yield memset, "set", "[GPU_Memset]"


def folded_paths(capture, sites, *arguments):
    """Folded lines as paths in the workload's own functions and the calls of CUDA."""
    own = {name.split("(")[0].removeprefix("void ") for *_, name in sites.symbols.symbols}
    own -= {"_start"}
    lines = Counter()
    for line, ns in capture.folded("--mode", "gpu", "--unit", "ns", *arguments).items():
        frames = [plain_name(f.removeprefix("[GPU_Kernel]")) if f.startswith("[GPU_Kernel]") else f
                  for f in line.split(";")[1:]]
        named = "[GPU_Kernel]" + frames[-1] if "[GPU_Kernel]" in line else frames[-1]
        path = [f for f in (f if f.startswith("[") else f.split("(")[0] for f in frames[:-1])
                if f in own or f.startswith(("cuda", "cu", "["))]
        lines[";".join([*path, named])] += ns
    return dict(lines)


def check_nodes(account, capture, sites, folded=folded_paths):
    """Each operation of a node under the code that made it, by the dump and by the report."""
    expect("kernels by name", capture.kernels_by_name(), account["kernels"])
    check_one_stack_per_call(capture)
    nodes = GraphNodes(capture)
    executions, both, creation_only, launch_only = Counter(), Counter(), Counter(), Counter()
    for event, what, leaf in node_work(capture):
        launch = capture.calls[capture.key(event)]
        created = nodes.creation(event["instance"], int(event["graph_node_id"]),
                                 int(launch["start_ns"]))
        expect(f"node {event['graph_node_id']} of a {what} is known", created is not None, True)
        maker = capture.calls[capture.key(created)]
        made = f"{sites.of(created)};{capture.call_name(maker)};{leaf}"
        replay = f"{sites.of(event)};{capture.call_name(launch)}"
        executions[(sites.of(created), what)] += 1
        both[f"{replay};[captured at];{made}"] += capture.duration(event)
        creation_only[made] += capture.duration(event)
        launch_only[f"{replay};{leaf}"] += capture.duration(event)
    expected = Counter()
    for site in account["node_sites"]:
        expected[(site["path"], site.get("kernel", site.get("kind")))] += site["executions"]
    expect("executions by the code that made the node", dict(executions), dict(expected))
    for arguments, wanted in ((("--graph-stacks=both",), both), ((), both),
                              (("--graph-stacks=creation",), creation_only),
                              (("--graph-stacks=launch",), launch_only)):
        expect(f"folded {arguments}", folded(capture, sites, *arguments), dict(wanted))
    counts = check_all_matched(capture)
    captured = {s["path"] for s in account["node_sites"]
                if "kernel" in s and s["path"].split(";")[-1].startswith("Capture")}
    expect("launches captured into graphs", counts["captured"], len(captured))


def hidden_kernels(capture):
    text = " ".join(report(capture.path).split())
    found = re.search(r"recorded as a whole, with ([\d,]+) kernels? and", text)
    return int(found.group(1).replace(",", "")) if found else 0


def check_time_below_kernels(capture):
    """What is below a kernel in folded stacks adds up to the kernel's time."""
    times, sums = {}, {}
    for kernel in capture.of("kernel"):
        name = capture.plain[kernel["name"]]
        times[name] = times.get(name, 0) + capture.duration(kernel)
    for line, ns in capture.folded("--mode", "gpu", "--unit", "ns").items():
        name = line.partition("[GPU_Kernel]")[2].partition(";")[0].split("(")[0]
        if name:
            sums[name] = sums.get(name, 0) + ns
    expect("time by kernel", sums, times)
