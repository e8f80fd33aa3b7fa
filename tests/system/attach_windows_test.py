"""Windows of time in programs that run already (--every, --window): each is complete, and between
them the programs are left alone."""

import bisect
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time
from itertools import pairwise

from attach_all_test import finish, is_recorded, record, record_all, wait_until_recorded
from attaching import Steps
from control_testing import wait_for
from gpu_attach_test import (CUPTI_KEEPS_KB, MEMORY_SLACK_KB, SLOWLY, WORKLOADS, expect_as_before,
                             footprint, is_launch, settled)
from gpu_capture import GpuCapture
from gpu_programs import REAL, number_of_gpus, prepare, program
from xpu_testing import (PATIENCE_S, Workspace, expect, main, recorder, report, run_alone,
                         run_report)

WINDOWS = ("--every", "700ms", "--window", "150ms")
LAUNCHES = 10
PROGRAM = ("--launches", LAUNCHES)


def windows_of(capture):
    """(begin, end) of each; the end of the recording cuts off the last one."""
    windows, begin = [], None
    for switch in capture.of("recording_switch"):
        if switch["is_on"] == "1":
            begin = int(switch["time_ns"])
        elif begin is not None:
            windows.append((begin, int(switch["time_ns"])))
            begin = None
    if begin is not None:
        [end] = capture.of("recording_end")
        windows.append((begin, int(end["time_ns"])))
    return windows


def check_windows(capture, pid, threads, launches=LAUNCHES, part=False):
    """All launches of the steps in each window, each with stack and kernel; nothing in between. The
    windows that the process was in. launches=None: however many, but always as many. Of one part of
    a recording: the windows that are in it as a whole."""
    instances = {p["instance"] for p in capture.of("gpu_process") if int(p["pid"]) == pid}
    calls = sorted((int(c["start_ns"]), capture.key(c)) for c in capture.of("api_call")
                   if c["instance"] in instances and is_launch(capture)(c))
    windows = windows_of(capture)
    # The library may be asked to stop a moment before the recorder notes it.
    slack_ns = 20_000_000
    if part:
        windows = windows[1:-1]
        calls = [call for call in calls
                 if any(begin - slack_ns <= call[0] <= end + slack_ns for begin, end in windows)]
    kernels = {capture.key(k) for k in capture.of("kernel")}
    missing = [key for _, key in calls if key not in capture.stacks or key not in kernels]
    expect(f"launches without a stack or a kernel (the first: {missing[:3]})", len(missing), 0)
    outside = [at for at, _ in calls
               if not any(begin - slack_ns <= at <= end + slack_ns for begin, end in windows)]
    expect(f"launches between windows (the first: {outside[:3]})", len(outside), 0)
    (times,) = threads.values()
    seen, all_counts = 0, set()
    for begin, end in windows:
        inside = [at for at, _ in calls if begin <= at <= end]
        if not inside:
            continue
        whole = times[bisect.bisect(times, inside[0]) + 1:bisect.bisect(times, inside[-1]) - 1]
        counts = {bisect.bisect_left(inside, b) - bisect.bisect_left(inside, a)
                  for a, b in pairwise(whole)}
        seen += bool(counts)
        all_counts |= counts
    expect("launches in each step of a window", all_counts,
           {launches or max(all_counts, default=0)} if seen else set())
    return seen


def test_each_window_is_complete():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY, *PROGRAM]) as steps:
        before = footprint(steps.pid)
        result = work.record("-p", str(steps.pid), *WINDOWS, "-d", "4s")
        expect(f"status ({result.stderr})", result.returncode, 0)
        # One more than the first: what an attach leaves mapped is reused.
        after = settled(steps.pid, before)
        again = work.record("-p", str(steps.pid), *WINDOWS, "-d", "3s", output="again.xpu")
        expect(f"status ({again.stderr})", again.returncode, 0)
        expect_as_before("after more windows", settled(steps.pid, after), after)
        threads = steps.end()
        capture = GpuCapture(work.path / "capture.xpu")
        expect("losses", {k: v for k, v in capture.losses().items() if k != "launch_pending"}, {})
        windows = windows_of(capture)
        expect("windows", 4 <= len(windows) <= 6, True)
        lengths = [end - begin for begin, end in windows[:-1]]
        expect(f"none is much shorter than 150 ms: {lengths}", min(lengths) >= 140_000_000, True)
        seen = check_windows(capture, steps.pid, threads)
        expect("windows with steps", seen >= len(windows) - 1, True)
        summary = report(work.path / "capture.xpu")
        expect("the part of the time", " % of the time (--every)" in summary, True)
        expect("an estimate", " overall" in summary, True)
        table = run_report("--top", "--table", "cuda_gpu_kern_sum", work.path / "capture.xpu")
        expect("a note beside the table", "totals of the whole time" in table.stderr, True)


class Watch(threading.Thread):
    """How often the library's connection to the recorder came and went in a process."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.changes, self.ends = pid, [], threading.Event()

    def run(self):
        is_there = False
        while not self.ends.wait(0.005):
            try:
                now = is_recorded(self.pid)
            except OSError:
                continue
            if now != is_there:
                self.changes.append(now)
                is_there = now


def test_nothing_of_ours_runs_in_between():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY, *PROGRAM]) as steps:
        watch = Watch(steps.pid)
        watch.start()
        work.record("-p", str(steps.pid), *WINDOWS, "-d", "4s")
        watch.ends.set()
        watch.join()
        expect(f"came and went: {watch.changes}", len(watch.changes) >= 6, True)
        steps.end()


def test_all_processes():
    """One that starts between two windows, one that ends, one that cannot be attached to."""
    with Workspace() as work, \
            Steps(work, [program("endless_steps"), *SLOWLY, *PROGRAM], name="a") as first, \
            Steps(work, [program("endless_steps"), *SLOWLY, *PROGRAM], name="b") as ends:
        process = record_all(work, *WINDOWS)
        wait_until_recorded(first.pid)
        time.sleep(2)
        threads_of_ended = ends.end()
        with Steps(work, [program("endless_steps"), *SLOWLY, *PROGRAM], name="c") as later:
            wait_until_recorded(later.pid)
            time.sleep(2)
            process.send_signal(signal.SIGINT)
            capture, errors = finish(process, work)
            threads = {first: first.end(), later: later.end()}
        expect("what is reported", [line for line in errors.splitlines()
                                         if "not recorded" in line], [])
        expect("losses", {k: v for k, v in capture.losses().items() if k != "launch_pending"}, {})
        for steps, times in threads.items():
            expect("windows", check_windows(capture, steps.pid, times) >= 2, True)
        expect("windows of the one that ended",
               check_windows(capture, ends.pid, threads_of_ended) >= 1, True)


def test_a_process_that_is_held_is_reported_once():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        os.kill(steps.pid, signal.SIGSTOP)
        try:
            result = work.record("-p", str(steps.pid), *WINDOWS, "-d", "2s")
        finally:
            os.kill(steps.pid, signal.SIGCONT)
        expect(f"status ({result.stderr})", result.returncode, 0)
        expect("reported", result.stderr.count("GPU activity is not recorded"), 1)
        # Once it runs again it is recorded.
        recording = subprocess.Popen([recorder(), "-o", work.path / "later.xpu", "-p",
                                      str(steps.pid), *WINDOWS, "-d", "3s"],
                                     stderr=subprocess.PIPE, text=True)
        _, errors = recording.communicate(timeout=PATIENCE_S)
        expect(f"status ({errors})", recording.returncode, 0)
        expect("kernels", len(GpuCapture(work.path / "later.xpu").of("kernel")) > 0, True)
        steps.end()


def is_attaching(recorder_pid, pid):
    """The recorder refers to the process, which it does for as long as it attaches to it."""
    for info in pathlib.Path(f"/proc/{recorder_pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if f"\nPid:\t{pid}\n" in info.read_text():
                return True
    return False


# Seizes the threads of its arguments, until its standard input ends.
DEBUGGER = """
import ctypes, sys
PTRACE_SEIZE = 0x4206
results = [ctypes.CDLL(None).ptrace(PTRACE_SEIZE, int(tid), None, None) for tid in sys.argv[1:]]
print(set(results), flush=True)
sys.stdin.read()
"""


def test_a_window_that_never_begins_is_not_reported():
    """The recording ends while it waits for a program that has got a debugger meanwhile."""
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        threads, descriptors = footprint(steps.pid)[:2]
        process = record(work, "-p", str(steps.pid), "--every", "3s", "--window", "200ms")
        wait_until_recorded(steps.pid)
        wait_for(lambda: footprint(steps.pid)[:2] == (threads, descriptors),
                 "the end of the first window")
        with subprocess.Popen([sys.executable, "-c", DEBUGGER,
                               *os.listdir(f"/proc/{steps.pid}/task")], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as debugger:
            expect("traced", debugger.stdout.readline(), "{0}\n")
            wait_for(lambda: is_attaching(process.pid, steps.pid), "the next attach")
            process.send_signal(signal.SIGINT)
            capture, errors = finish(process, work)
        expect("windows that began", len(windows_of(capture)), 1)
        expect(f"what is reported ({errors})", ("not recorded" in errors,
                                                "process_not_reached" in capture.losses()),
               (False, False))
        steps.end()


LONG_S = int(os.environ.get("XPU_TEST_SECONDS", "300" if REAL else "6"))


def start_four(work, stack):
    """Programs of several kinds where they can run, each on a GPU of its own if there are enough;
    name -> Steps."""
    small = [program("endless_steps"), "--sleep-us", 500, *PROGRAM]
    commands = {"c++": small, "spinning": [*small, "--spin-us", 20]}
    if REAL and "XPU_TEST_PYTHON" in os.environ:
        python = os.environ["XPU_TEST_PYTHON"]
        pytorch = [python, WORKLOADS / "pytorch_steps.py", "mlp", "--warmup", 30]
        commands = {"c++": small, "eager": pytorch, "compiled": [*pytorch, "--compile"],
                    "jax": [python, WORKLOADS / "jax_steps.py"]}
    else:
        commands |= {"waiting": [*small, "--sync-every", 3], "other": small}
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    gpus = number_of_gpus() if REAL else 0
    return {name: stack.enter_context(Steps(
                work, command, {"CUDA_VISIBLE_DEVICES": str(i % max(1, gpus)), **env}, name=name))
            for i, (name, command) in enumerate(commands.items())}


def check_part(path, threads_of, pids):
    """The windows of a part, and how many of them each program was seen in."""
    capture = GpuCapture(path)
    return (windows_of(capture),
            {name: check_windows(capture, pids[name], threads, LAUNCHES if name == "c++" else None,
                                 part=True)
             for name, threads in threads_of.items()},
            [e for e in capture.of("ledger")
             if e["name"] in capture.losses().keys() - {"launch_pending", "graph_node_unknown"}])


def record_for(work, seconds, programs, memory, output):
    """Windows of all programs; none of them may end. Appends their memory in KiB."""
    process = record_all(work, "--every", "1s", "--window", "200ms", "-d", f"{seconds}s",
                         "--rotate-size", "2M", "--rotate-keep", "100", output=output)
    while process.poll() is None:
        time.sleep(1)
        for program_name, steps in programs.items():
            if steps.process.poll() is not None:
                errors = steps.process.communicate()[1].decode()
                process.kill()
                raise AssertionError(f"{program_name} has ended: {steps.process.returncode}, "
                                     f"{errors}")
            memory[program_name].append(footprint(steps.pid)[3])
    _, errors = process.communicate(timeout=PATIENCE_S)
    expect(f"status ({errors})", process.returncode, 0)


def step_ns(times, spans):
    """Median of the steps within (begin, end); None: there are none."""
    steps = [b - a for begin, end in spans
             for a, b in pairwise(times[bisect.bisect_left(times, begin):bisect.bisect(times, end)])]
    return statistics.median(steps) if steps else None


def rounds_of(times, between, rests):
    """How long steps take between windows, over the rests before and after: a ratio for each
    recording in which there were any."""
    ratios = []
    for before, after in pairwise(rests):
        spans = [span for span in between if before[1] <= span[0] < after[0]]
        lengths = [step_ns(times, each) for each in (spans, [before], [after])]
        if all(lengths):
            ratios.append(2 * lengths[0] / (lengths[1] + lengths[2]))
    return ratios


def test_four_programs_for_minutes():
    """None ends or grows, and every window is complete. Recordings take turns with rests. How long
    steps take between windows, over those of the rests around them, is printed: a machine with
    other work does not keep to it."""
    rounds, rest_s = (5, 8) if REAL else (2, 1)

    def rest():
        begin = time.monotonic_ns()
        time.sleep(rest_s)
        rests.append((begin + 500_000_000, time.monotonic_ns()))

    with Workspace() as work, contextlib.ExitStack() as stack:
        programs = start_four(work, stack)
        memory = {name: [] for name in programs}
        rests = []
        for i in range(rounds):
            rest()
            record_for(work, LONG_S // rounds, programs, memory, f"round{i}_.xpu")
        rest()
        pids = {name: steps.pid for name, steps in programs.items()}
        threads_of = {name: steps.end() for name, steps in programs.items()}
        parts = sorted(work.path.glob("round*.xpu"))
        with concurrent.futures.ProcessPoolExecutor() as pool:
            results = [f.result() for f in [pool.submit(check_part, part, threads_of, pids)
                                            for part in parts]]
        expect("losses", [r[2] for r in results if r[2]], [])
        windows = [window for result in results for window in result[0]]
        between = [(end + 100_000_000, start - 20_000_000)
                   for (_, end), (start, _) in pairwise(windows) if start - end < 1_000_000_000]
        print(f"        {len(windows)} windows in {len(parts)} parts of "
              f"{sum(p.stat().st_size for p in parts) / 1e6:.1f} MB")
        for name, threads in threads_of.items():
            [times] = threads.values()
            seen = sum(result[1][name] for result in results)
            ratios = rounds_of(times, between, rests)
            settled_kb, last_kb = memory[name][len(memory[name]) // rounds], memory[name][-1]
            print(f"        {name}: {seen} windows checked; step at rest "
                  f"{(step_ns(times, rests) or 0) / 1e3:.1f} us, between windows "
                  f"{', '.join(f'{r:.3f}' for r in ratios)} of it; "
                  f"memory {settled_kb} -> {last_kb} KiB")
            expect(f"memory of {name}: {settled_kb} -> {last_kb}",
                   last_kb <= settled_kb + MEMORY_SLACK_KB + LONG_S * CUPTI_KEEPS_KB, True)
            expect(f"windows of {name}", seen > 0, True)


def test_options_that_do_not_fit():
    with Workspace() as work:
        for options, why in ((("--every", "1s"), "belong together"),
                             (("--every", "1s", "--window", "1s"), "less than --every"),
                             (("--every", "1s", "--window", "1ms", "-D", "1s"), "--delay"),
                             (("--every", "1s", "--window", "2ms", "-d", "1ms"), "--duration")):
            result = work.record(*options, "--", "true")
            expect(f"{options}: {result.stderr}", (result.returncode, why in result.stderr),
                   (125, True))


if __name__ == "__main__":
    prepare()
    run_alone()
    main(globals())
