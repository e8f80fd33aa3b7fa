"""What the scenarios of gpu_operations_test.py share: recording, call sites, complete captures."""

import os
import re
import sys
from collections import Counter

import xpu_testing
from gpu_capture import GpuCapture
from gpu_truth_test import program
from xpu_testing import expect, symbols_of

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
    folder = os.environ.get("XPU_WORKLOAD_DIR")
    if folder is None:
        folder = os.path.dirname(xpu_testing.find("tests/fake_cuda/lib/libcuda.so.1"))
    return {**os.environ, "LD_LIBRARY_PATH": os.path.realpath(folder), **(env or {})}


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
