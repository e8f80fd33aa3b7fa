"""Scenarios of gpu_operations_test.py about processes: how they end, fork and exec, and what else
in them wants CUPTI."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import xpu_testing
from gpu_capture import GpuCapture
from gpu_operations import check_all_matched, figures, recorded_python, without_ids
from gpu_programs import REAL, program, recorded
from xpu_testing import PATIENCE_S, Workspace, expect, expect_in

UNDELIVERED = re.compile(r"process (\d+): begun in its last ([\d.]+) ms")
SEED = 20261121


# ---- ends ------------------------------------------------------------------------------------


def launch_calls(capture):
    return [c for c in capture.of("api_call") if "Launch" in capture.call_name(c)
            and c["return_value"] == "0" and c["graph_nodes"] == "0"]


def check_end(capture, pid, launches=None):
    """Launches = matched + lost + pending, and how much time of the program is missing."""
    calls, counts = launch_calls(capture), capture.launch_counts()
    # The program may have died inside a call: then there is its stack only.
    expect(f"launches seen {counts} of {len(calls)} calls", 0 <= counts["seen"] - len(calls) <= 1,
           True)
    if launches is not None:
        expect("launches seen", counts["seen"], launches)
    expect("seen = matched + pending + lost", counts["seen"],
           counts["matched"] + counts["pending"] + counts["lost"])
    expect("kernels are the launches that matched", len(capture.of("kernel")), counts["matched"])
    # It may have died inside a call, and while the library's own thread sent a message.
    expect("losses", set(capture.losses()) <= {"cupti_not_delivered", "launch_pending",
                                               "wire_torn"}, True)
    expect("torn messages", capture.losses().get("wire_torn", 0) <= 1, True)
    expect(f"launches pending {counts}", counts["pending"] <= 1, True)
    if counts["lost"] == 0:
        return counts, 0.0
    [detail] = [UNDELIVERED.search(e["detail"]) for e in capture.of("loss")
                if e["name"] == "cupti_not_delivered"]
    expect("process and time in the detail", detail is not None and int(detail[1]), pid)
    delivered = {capture.key(k) for k in capture.of("kernel")}
    oldest = min(int(c["start_ns"]) for c in calls if capture.key(c) not in delivered)
    ended = max(int(e["time_ns"]) for e in capture.of("process_event")
                if e["kind"] == "exit" and int(e["pid"]) == pid)
    least_ms = (ended - oldest) / 1e6
    expect(f"ms not delivered, {detail[2]} of at least {least_ms:.1f}",
           least_ms <= float(detail[2]) + 0.1 <= least_ms + 2000, True)
    return counts, float(detail[2])


def test_ends_without_a_flush():
    for how in ("_exit", "abort", "segfault", "sigkill"):
        command = [program("exit_styles"), "--launches", "1000", f"--how={how}"]
        plain = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        with Workspace() as work:
            result = work.record("-q", "--", *command)
            expect(f"{how}: status", result.returncode, plain.returncode)
            expect(f"{how}: output", without_ids(result.stdout), without_ids(plain.stdout))
            expect(f"{how}: errors", result.stderr, plain.stderr)
            account = json.loads(result.stdout)
            capture = GpuCapture(work.path / "capture.xpu")
            counts, ms = check_end(capture, account["pid"], account["launches"])
            figures(f"{how}: status {result.returncode}, 1000 launches = {counts['matched']} "
                    f"matched + {counts['lost']} lost, begun in the last {ms} ms")


def child_running(recorder, name):
    """The pid of the recorder's child once it runs this program."""
    while recorder.poll() is None:
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, comm, rest = re.match(r"(\d+) \((.*)\) (.*)", status.read_text()).groups()
            except (OSError, AttributeError):
                continue
            if comm == name and int(rest.split()[1]) == recorder.pid:
                return int(pid)
        time.sleep(0.002)
    raise AssertionError(f"xpu-record ended before {name} ran: {recorder.communicate()}")


def wait_for_library(pid):
    """Until the injected library has its thread."""
    names = []
    while "xpu-inject\n" not in names:
        names = [name.read_text() for name in pathlib.Path(f"/proc/{pid}/task").glob("*/comm")]
        time.sleep(0.002)


def kill_at(work, seconds):
    """Kills a program with a 5 s kernel in flight; the capture and how long the recorder took, whose
    machine is not loaded where the GPU is real."""
    command = [xpu_testing.recorder(), "-o", str(work.path / "capture.xpu"), "--",
               program("long_kernel"), "--long-ms", "5000", "--launches", "500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=work.path) as recorder:
        pid = child_running(recorder, "long_kernel")
        # A real device takes time to be initialized; a loaded machine any time to come so far.
        if not REAL:
            wait_for_library(pid)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        output, errors = recorder.communicate(timeout=PATIENCE_S)
        took = time.monotonic() - killed
    expect(f"status ({errors})", recorder.returncode, -signal.SIGKILL)
    expect("output", output, "")
    expect(f"xpu-record ended {took:.1f} s later", took < 5 or not REAL, True)
    return GpuCapture(work.path / "capture.xpu"), pid, took


def check_kill(seconds):
    """Launches seen, lost, ms not delivered, s until the recorder ended."""
    with Workspace() as work:
        capture, pid, took = kill_at(work, seconds)
        if not capture.calls:
            return 0, 0, 0.0, took  # CUDA was still starting
        counts, ms = check_end(capture, pid)
        return counts["seen"], counts["lost"], ms, took


def test_killed_at_random_moments():
    choice = random.Random(SEED)
    moments = [round(choice.uniform(0.1, 2.0 if REAL else 1.2), 3)
               for _ in range(20 if REAL else 6)]
    print(f"        seed {SEED}, killed after {moments} s")
    with ThreadPoolExecutor(4 if REAL else 2) as several:
        seen, lost, missing_ms, took = zip(*several.map(check_kill, moments))
    expect(f"launches seen {seen}: moments that have some",
           sum(n > 0 for n in seen) >= (len(moments) // 2 if REAL else 1), True)
    figures(f"launches seen {list(seen)}, lost {list(lost)}, ms not delivered {list(missing_ms)}, "
            f"xpu-record ended at most {max(took):.2f} s later")


# ---- fork, exec, namespaces --------------------------------------------------------------------

FORK = """
import os, sys, time
work(20, 4096)
child = os.fork()
if child == 0:
    end = time.monotonic() + 0.5
    while time.monotonic() < end: pass
    print("child", os.getpid(), flush=True)
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
work(30, 4096)
print("status of the child", status, flush=True)
"""


def check_sets_by_pid(capture, expected):
    """Sets by (pid, bytes): each process's under its own pid, nothing mixed."""
    pids = {p["instance"]: int(p["pid"]) for p in capture.of("gpu_process")}
    found = Counter((pids[s["instance"]], int(s["size_bytes"])) for s in capture.of("memset"))
    expect("sets by process and bytes", dict(found), expected)
    expect("pids of the stacks of sets",
           Counter((int(capture.stacks[capture.key(s)]["pid"]), int(s["size_bytes"]))
                   for s in capture.of("memset")), found)
    expect("losses", capture.losses(), {})


def test_fork_after_cuda_was_used():
    with Workspace() as work:
        capture = recorded_python(work, FORK, options=("-F", "499"))
        child, status = capture.output.splitlines()
        expect("status of the child", status, "status of the child 7")
        [pid] = {int(p["pid"]) for p in capture.of("gpu_process")}
        check_sets_by_pid(capture, {(pid, 4096): 50})
        samples = Counter(int(s["pid"]) for s in capture.of("cpu_sample"))
        expect("CPU samples of the child", samples[int(child.split()[1])] > 20, True)
        figures(f"50 sets of the parent, {samples[int(child.split()[1])]} CPU samples of the child")


EXEC = """
import os, time
work(20, 4096)
time.sleep({1})
os.execv({0!r}, [{0!r}, "--sync", "--launches", "40"])
"""


def test_exec_after_cuda_was_used():
    """exec ends the library like _exit: what CUPTI has not delivered is lost and counted."""
    for seconds in (1, 0):
        with Workspace() as work:
            capture = recorded_python(work, EXEC.format(program("exit_styles"), seconds))
        account = json.loads(capture.output)
        instances = {p["instance"]: int(p["pid"]) for p in capture.of("gpu_process")}
        expect("instances, all of one pid", (len(instances), set(instances.values())),
               (2, {account["pid"]}))
        sets = len(capture.of("memset"))
        lost = capture.losses().pop("cupti_not_delivered", 0)
        if seconds:
            check_sets_by_pid(capture, {(account["pid"], 4096): 20})
        else:
            expect(f"sets {sets}, lost {lost}", 20 - sets <= lost <= 24 - sets, True)
        expect("kernels by name", capture.kernels_by_name(), account["kernels"])
        expect("kernels without a stack of their id", capture.unmatched(), [])
        of = {kind: {e["instance"] for e in capture.of(kind)} for kind in ("memset", "kernel")}
        expect("instances of sets and kernels are apart", of["memset"] & of["kernel"], set())
        figures(f"{sets} sets and {account['launches']} kernels of pid {account['pid']}, {lost} "
                f"operations lost by exec after {seconds} s")


# A shell starts Python, which starts programs.
GRANDCHILDREN = """
import subprocess, sys
both = [subprocess.Popen([{0!r}, "--sync", "--launches", n], stdout=subprocess.PIPE, text=True)
        for n in ("30", "50")]
for one in both: print(one.communicate()[0], end="")
"""


def test_grandchildren():
    with Workspace() as work:
        script = work.file("children.py", GRANDCHILDREN.format(program("exit_styles")))
        result = work.record("--", "sh", "-c", f"{sys.executable} {script}; exit 3")
        expect(f"status ({result.stderr})", result.returncode, 3)
        accounts = [json.loads(line) for line in result.stdout.splitlines()]
        capture = GpuCapture(work.path / "capture.xpu")
        expect("losses", capture.losses(), {})
        pids = {p["instance"]: int(p["pid"]) for p in capture.of("gpu_process")}
        expect("kernels by process", Counter(pids[k["instance"]] for k in capture.of("kernel")),
               {a["pid"]: a["launches"] for a in accounts})
        expect("pids of the stacks", Counter(int(capture.stacks[capture.key(k)]["pid"])
                                             for k in capture.of("kernel")),
               {a["pid"]: a["launches"] for a in accounts})
        check_all_matched(capture)
        figures(f"kernels by process {[(a['pid'], a['launches']) for a in accounts]}")


SPAWN = """
import multiprocessing, os
def run(rank):
    work(10 + rank, 4096 * (rank + 1))
    os.write(1, b"%d %d\\n" % (os.getpid(), rank))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=run, args=(rank,)) for rank in range(3)]
    for child in children: child.start()
    for child in children: child.join()
"""


def test_spawned_processes():
    with Workspace() as work:
        capture = recorded_python(work, SPAWN)
        ranks = {int(pid): int(rank) for pid, rank in map(str.split, capture.output.splitlines())}
        expect("ranks", sorted(ranks.values()), [0, 1, 2])
        check_sets_by_pid(capture, {(pid, 4096 * (rank + 1)): 10 + rank
                                    for pid, rank in ranks.items()})
        figures(f"sets by process {[(pid, 10 + rank) for pid, rank in ranks.items()]}")


def test_pid_namespaces():
    """The recorder in a pid namespace, the program in one within it."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, *unshare, "true"], capture_output=True).returncode != 0:
        raise xpu_testing.Skip("unshare is not allowed here")
    with Workspace() as work:
        command = [*unshare, xpu_testing.recorder(), "-o", str(work.path / "capture.xpu"), "--",
                   *unshare, program("two_kernels"), "--mode=fork", "--launches", "100"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        account = json.loads(result.stdout)
        capture = GpuCapture(work.path / "capture.xpu")
        expect("losses", capture.losses(), {})
        expect("kernels without a stack of their id", capture.unmatched(), [])
        inner = {p["instance"]: int(p["namespace_pid"]) for p in capture.of("gpu_process")
                 if p["namespace_pid"] != "0"}
        outer = {p["instance"]: int(p["pid"]) for p in capture.of("gpu_process")}
        expect("kernels by name and the program's own pid",
               Counter((inner[k["instance"]], capture.plain[k["name"]])
                       for k in capture.of("kernel")),
               {(a["pid"], name): n for a in account["actors"] for name, n in a["kernels"].items()})
        expect("pids of the stacks", {(k["instance"], int(capture.stacks[capture.key(k)]["pid"]))
                                      for k in capture.of("kernel")}, set(outer.items()))
        figures(f"pids in the program's namespace {sorted(inner.values())}, in the recorder's "
                f"{sorted(outer.values())}, in ours others")


def test_time_namespaces():
    """CLOCK_MONOTONIC of the recorder, of the program or of both is 5,000 s ahead of the kernel's."""
    ahead = ["unshare", "--time", "--monotonic", "5000", "--boottime", "5000", "--fork"]
    if subprocess.run([*ahead, "true"], capture_output=True).returncode != 0:
        raise xpu_testing.Skip("unshare --time is not allowed here")
    for of_recorder, of_program in (([], ahead), (ahead, []), (ahead, ahead)):
        with Workspace() as work:
            command = [*of_recorder, xpu_testing.recorder(), "-o", str(work.path / "capture.xpu"),
                       "--", *of_program, program("two_kernels"), "--launches", "100"]
            result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
            expect(f"status ({result.stderr})", result.returncode, 0)
            capture = GpuCapture(work.path / "capture.xpu")
            expect("losses", capture.losses(), {})
            expect("kernels without a stack of their id", capture.unmatched(), [])
            start_ns = int(capture.of("recording_info")[0]["start_ns"])
            end_ns = int(capture.of("recording_end")[0]["time_ns"])
            for kind, key in (("process_event", "time_ns"), ("launch_stack", "time_ns"),
                              ("api_call", "start_ns"), ("clock_pair", "before_ns")):
                after_ns = [int(event[key]) - start_ns for event in capture.of(kind)]
                expect(f"are there {kind}s", bool(after_ns), True)
                expect(f"{kind}s outside of the recording",
                       [ns for ns in after_ns if not 0 <= ns <= end_ns - start_ns], [])


# ---- other profilers ---------------------------------------------------------------------------

# The recorder watches a libcupti from when it has heard of it.
SUBSCRIBE = """
import time
work(10, 4096)
time.sleep(0.5)
mapped = [line.split()[-1] for line in open("/proc/self/maps") if "libcupti.so" in line]
cupti = ctypes.CDLL(mapped[0] if mapped else sys.argv[1])
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32,
                            ctypes.c_void_p)(lambda *arguments: None)
subscriber = ctypes.c_void_p()
print(cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None), flush=True)
work(10, 4096)
"""


def test_profiler_that_comes_second():
    with Workspace() as work:
        capture = recorded_python(work, SUBSCRIBE)
        expect("cuptiSubscribe", capture.output, "39\n")
        check_all_matched(capture)
        expect("losses", capture.losses(), {})
        expect("sets", len(capture.of("memset")), 20)
        entry = capture.entry("other_profiler_refused")
        expect("in the ledger", (entry["severity"], entry["count"]), ("note", "1"))
        cupti = next(p["cupti_path"] for p in capture.of("gpu_process") if p["cupti_path"])
        # Return probes on the libraries cut the stacks of all programs that use them.
        own = {} if REAL else {"LD_LIBRARY_PATH": os.path.dirname(
            xpu_testing.find("tests/fake_cuda/lib/libcuda.so.1", own=True))}
        capture = recorded_python(work, SUBSCRIBE, cupti, options=("--yield-cupti",), env=own)
        expect("cuptiSubscribe with --yield-cupti", capture.output, "0\n")
        expect("GPU records", capture.of("memset") + capture.of("api_call"), [])
        expect("losses with --yield-cupti", capture.losses(), {})
        figures("refused with 39 and noted; 0 with --yield-cupti")


HOLDER = """
import time
cupti = ctypes.CDLL(sys.argv[1])
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32,
                            ctypes.c_void_p)(lambda *arguments: None)
subscriber = ctypes.c_void_p()
print(cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None), flush=True)
work(10, 4096)
end = time.monotonic() + 0.3
while time.monotonic() < end: pass
"""


def check_held(capture, holder):
    expect("losses", capture.losses(), {"inject_dormant": 1})
    process = capture.of("gpu_process")[-1]
    expect("state", process["state"], "dormant")
    expect_in("reason", f"another tool in this program holds CUPTI{holder}", process["detail"])
    expect("GPU records", capture.of("kernel") + capture.of("memset"), [])
    samples = len(capture.of("cpu_sample"))
    expect(f"CPU samples {samples}", samples > 20, True)
    figures(f"{process['detail']!r}, {samples} CPU samples")


def test_profiler_that_was_first():
    with Workspace() as work:
        _, first = recorded(work, "vector_add")
        cupti = next(p["cupti_path"] for p in first.of("gpu_process") if p["cupti_path"])
        capture = recorded_python(work, HOLDER, cupti, options=("-F", "499"))
        # CUPTI may initialize CUDA, and then loads our library, before it takes a subscriber.
        expect("cuptiSubscribe", capture.output in (("0\n", "39\n") if REAL else ("0\n",)), True)
        if capture.output == "0\n":
            check_held(capture, "")
        else:
            expect("losses", capture.losses(), {})
            figures("cuptiSubscribe before cuInit was second all the same")
        if not REAL:
            env = {"XPU_FAKE_SUBSCRIBED": "1", "XPU_FAKE_HOLDER": "another profiler 1.2"}
            capture = recorded_python(work, HOLDER, cupti, env=env, options=("-F", "499"))
            expect("cuptiSubscribe", capture.output, "39\n")
            check_held(capture, ": another profiler 1.2")


TESTS = {name: test for name, test in globals().items() if name.startswith("test_")}
