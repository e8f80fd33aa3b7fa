"""Attaching to programs that use the GPU already. The same assertions on the simulated device and,
with XPU_TEST_GPU=1 and XPU_WORKLOAD_DIR (made by tests/workloads/build_gpu.sh), on a real GPU; with
XPU_TEST_PYTHON to PyTorch too. XPU_TEST_WINDOWS: how many windows of each program are recorded."""

import concurrent.futures
import os
import pathlib
import signal
import statistics
import subprocess
import time
from collections import Counter

import xpu_testing
from attaching import Steps, attach, calls_in_whole_steps, record_window
from control_testing import Fifos
from gpu_capture import GpuCapture
from gpu_programs import REAL, prepare, program
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, recorder, report, resident_kb,
                         skip, status_of)

WINDOWS = int(os.environ.get("XPU_TEST_WINDOWS", "50" if REAL else "3"))
WORKLOADS = pathlib.Path(__file__).resolve().parent.parent / "workloads"
# On a busy machine the simulated device is late, and queues work in the program.
MEMORY_SLACK_KB = 2048 if REAL else 8192
# libcupti 13.0 keeps 100 to 150 KiB each time it is started and finalized; ours keeps nothing.
CUPTI_KEEPS_KB = 256 if REAL else 0


def is_launch(capture):
    return lambda call: any(name in capture.call_name(call)
                            for name in ("LaunchKernel", "GraphLaunch"))


def check_window(capture, threads, launches=None):
    """Every launch of the window is there with its stack, and has its kernel or is pending."""
    counts = capture.launch_counts()
    expect(f"seen = matched + pending + lost: {counts}", counts["seen"],
           counts["matched"] + counts["pending"] + counts["lost"])
    expect("lost launches", counts["lost"], 0)
    # Graphs may be older than the window.
    expect("losses", {k: v for k, v in capture.losses().items()
                      if k not in ("launch_pending", "graph_node_unknown")}, {})
    known = {(d["instance"], d["device_id"]) for d in capture.of("device")}
    expect("devices that nothing describes",
           {(k["instance"], k["device_id"]) for k in capture.of("kernel")} - known, set())
    calls = [c for c in capture.of("api_call") if is_launch(capture)(c)]
    expect("launches without a stack", [c for c in calls if capture.key(c) not in capture.stacks],
           [])
    steps = 0
    for tid, times in threads.items():
        # Python's backward pass has a thread of its own.
        of_thread = calls_in_whole_steps(
            capture, times, lambda c, tid=tid: is_launch(capture)(c) and
            (launches is None or c["tid"] == tid))
        expected = launches or max(of_thread, default=0)
        expect(f"launches in each whole step of thread {tid}", Counter(of_thread),
               Counter({expected: len(of_thread)}))
        steps += len(of_thread)
    expect("whole steps in the window", steps > 0, True)
    # A kernel is of a launch in the window, or of one before it.
    first = min(int(c["correlation_id"]) for c in calls)
    expect("kernels without a launch that are not older than the attach",
           [k for k in capture.unmatched() if int(k["correlation_id"]) >= first], [])
    return steps


def check_window_at(path, *arguments):
    return check_window(GpuCapture(path), *arguments)


def check_windows(paths, *arguments):
    """Whole steps in each window. A window of a program without pauses has a million records."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return [r.result() for r in
                [pool.submit(check_window_at, path, *arguments) for path in paths]]


# The simulated device launches faster than a machine with other work can record.
SLOWLY = () if REAL else ("--sleep-us", "500")


def check_steps(name, *arguments, launches, duration="200ms", slowly=SLOWLY):
    with Workspace() as work:
        paths = []
        with Steps(work, [program(name), *slowly, *arguments, "--launches", launches]) as steps:
            for window in range(WINDOWS):
                paths.append(record_window(work, steps, name=f"{window}.xpu", duration=duration))
            threads = steps.end()
        whole = check_windows(paths, threads, launches)
    print(f"        {name} {arguments}: {WINDOWS} windows, {min(whole)} to {max(whole)} whole steps "
          f"of {launches} launches in each")


def test_every_launch_of_each_window():
    check_steps("endless_steps", launches=30)


def test_static_cudart():
    check_steps("endless_steps-static", "--spin-us", 1, launches=20, duration="60ms")


def test_many_threads():
    # Eight times as slowly, as all of them together must be.
    slowly = () if REAL else ("--sleep-us", 4000)
    check_steps("endless_steps", "--threads", 8, "--sync-every", 3, "--spin-us", 20, launches=10,
                duration="60ms", slowly=slowly)


def test_threads_that_sleep():
    check_steps("endless_steps", "--threads", 2, "--sleep-us", 3000, launches=5)


def test_graphs_that_are_older():
    launches = 20
    with Workspace() as work:
        with Steps(work, [program("endless_steps"), *SLOWLY, "--graph", "--launches",
                          launches]) as steps:
            capture = attach(work, steps)
            threads = steps.end()
        # Nodes are kernels of the replay's id.
        replays = {capture.key(c) for c in capture.of("api_call")
                   if capture.call_name(c) == "cudaGraphLaunch"}
        expect("replays in the window", len(replays) > 2, True)
        nodes = Counter(capture.key(k) for k in capture.of("kernel"))
        first, *whole, last = sorted(replays, key=lambda key: key[1])
        expect("nodes of each replay", Counter(nodes[key] for key in whole[:len(whole) * 3 // 4]),
               Counter({launches: len(whole[:len(whole) * 3 // 4])}))
        folded = capture.folded("--mode", "gpu", "--unit", "ns")
        of_nodes = [line for line in folded if ";ReplayStep" in line and "[captured at]" in line]
        expect("who made the nodes", [line for line in of_nodes if "[before the recording]"
                                      not in line], [])
        expect("nodes in the picture", len(of_nodes) > 0, True)
        expect("threads", len(threads), 1)
        expect("losses", {k: v for k, v in capture.losses().items()
                          if k not in ("launch_pending", "graph_node_unknown")}, {})


def check_intervals(capture, threads, launches, spin_ns):
    """Each replay of the window's whole steps is one interval, and no node is recorded."""
    check_window(capture, threads, launches + 1)
    replays = sorted((c for c in capture.of("api_call")
                      if capture.call_name(c) == "cudaGraphLaunch"), key=lambda c: c["start_ns"])
    intervals = {capture.key(g): g for g in capture.of("graph_launch")}
    whole = [capture.key(c) for c in replays[2:len(replays) * 3 // 4]]
    expect("replays in the window", len(whole) > 2, True)
    expect("replays without an interval", [key for key in whole if key not in intervals], [])
    expect("nodes", [k for k in capture.of("kernel") if int(k["graph_node_id"])], [])
    # Kernels of the graph follow each other; an event takes a moment.
    shortest = min(capture.duration(intervals[key]) for key in whole)
    expect(f"an interval ({shortest} ns) holds its kernels",
           launches * spin_ns <= shortest + 2000, True)
    # Each step launches as many kernels before its replay, in the same stream.
    kernels = {capture.key(k): int(k["end_ns"]) for k in capture.of("kernel")}
    calls = sorted((c for c in capture.of("api_call") if is_launch(capture)(c)),
                   key=lambda c: int(c["start_ns"]))
    overlaps = []
    for before, call in zip(calls, calls[1:]):
        key = capture.key(call)
        if key in whole and capture.key(before) in kernels:
            overlaps.append(kernels[capture.key(before)] - int(intervals[key]["start_ns"]))
    expect("replays behind kernels", len(overlaps) > 2, True)
    # What an attach says it may be off, at most; a busy machine without a GPU is worse at that.
    expect(f"intervals begin after the kernels before them, {max(overlaps)} ns",
           max(overlaps) < (20_000 if REAL else 1_000_000), True)
    return shortest


def test_graphs_as_intervals():
    launches, spin_us = 20, 20
    with Workspace() as work:
        with Steps(work, [program("endless_steps"), *SLOWLY, "--graph", "--launches", launches,
                          "--spin-us", spin_us]) as steps:
            captures = [attach(work, steps, "--cuda-graph-trace=graph", name=f"{i}.xpu")
                        for i in range(3)]
            by_nodes = attach(work, steps, name="nodes.xpu")
            threads = steps.end()
        for capture in captures:
            check_intervals(capture, threads, launches, spin_us * 1000)
        expect("nodes afterwards", len([k for k in by_nodes.of("kernel")
                                        if int(k["graph_node_id"])]) > launches, True)
        expect_in("the summary", "replays recorded as a whole", report(captures[0].path))


def test_graph_that_is_replayed_only_after_the_window():
    with Workspace() as work:
        with Steps(work, [program("endless_steps"), "--graph", "--replay-after-ms", 3000]) as steps:
            attach(work, steps, duration="100ms")
            time.sleep(3)
            capture = attach(work, steps, duration="100ms")
            time.sleep(0.3)
            steps.end()
        expect("replays in the second window", "cudaGraphLaunch" in
               {capture.call_name(c) for c in capture.of("api_call")}, True)


def footprint(pid):
    """Threads, descriptors, mappings, and the resident memory in KiB."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return (int(status_of(pid)["Threads"]), len(os.listdir(f"/proc/{pid}/fd")), len(maps),
            resident_kb(pid))


def settled(pid, wanted):
    """The status, once it is what it was or nothing changes any more."""
    deadline = time.monotonic() + 5
    while True:
        now = footprint(pid)
        if now[:3] == wanted[:3] or time.monotonic() > deadline:
            return now
        time.sleep(0.02)


def expect_as_before(when, now, before):
    expect(f"threads and descriptors {when}", now[:2], before[:2])
    # The C library may keep one more stack of a thread that has ended.
    expect(f"mappings {when}: {before} -> {now}", abs(now[2] - before[2]) <= 2, True)


def test_nothing_is_left():
    cycles = int(os.environ.get("XPU_TEST_CYCLES", "500" if REAL else "12"))
    with Workspace() as work, Steps(work, [program("endless_steps"), "--threads", 3,
                                           "--sleep-us", 200]) as steps:
        before = footprint(steps.pid)
        attach(work, steps, duration="50ms")
        attach(work, steps, duration="50ms")
        second = settled(steps.pid, before)
        expect("threads and descriptors after two windows", second[:2], before[:2])
        for _ in range(cycles):
            result = work.record("-p", str(steps.pid), "-d", "10ms", "--gpu-only")
            expect(f"status ({result.stderr})", result.returncode, 0)
        last = settled(steps.pid, second)
        expect_as_before(f"after {cycles} more windows, {before} at first", last, second)
        expect(f"memory: {second} -> {last}",
               last[3] <= second[3] + MEMORY_SLACK_KB + cycles * CUPTI_KEEPS_KB, True)
        attach(work, steps)
        print(f"        threads, descriptors, mappings, KiB: {before} -> {second} -> {last}")
        steps.end()


def step_ns(times, begin, end):
    inside = [t for t in times if begin <= t < end]
    return (inside[-1] - inside[0]) / (len(inside) - 1)


def test_it_is_as_fast_as_before():
    """Only figures: a machine with other work does not keep them."""
    if not REAL:
        skip("gpu", "the simulated device shows nothing of it")
    with Workspace() as work:
        windows = []
        with Steps(work, [program("endless_steps"), "--spin-us", 2]) as steps:
            for _ in range(6):
                time.sleep(1)
                begin = time.monotonic_ns()
                attach(work, steps, duration="500ms")
                windows.append((begin, time.monotonic_ns()))
            time.sleep(1)
            (times,) = steps.end().values()
        ratios = []
        for begin, end in windows:
            before = step_ns(times, begin - 900_000_000, begin - 100_000_000)
            during = step_ns(times, begin + 200_000_000, begin + 500_000_000)
            after = step_ns(times, end + 100_000_000, end + 900_000_000)
            ratios.append((during / before, after / before))
        print("        step during / before: "
              f"{statistics.median(r[0] for r in ratios):.3f}, after / before: "
              f"{statistics.median(r[1] for r in ratios):.3f}")


def test_the_recorder_is_killed():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        attach(work, steps)
        before = footprint(steps.pid)
        for delay in (0.02, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5):
            process = subprocess.Popen([recorder(), "-o", work.path / "killed.xpu", "--gpu-only",
                                        "-p", str(steps.pid)], stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
            time.sleep(0.1)
            expect("the program runs", steps.process.poll(), None)
            expect_as_before(f"after a kill at {delay} s", settled(steps.pid, before), before)
        capture = attach(work, steps)
        check_window(capture, steps.end(), 30)


def start_recording(work, running, *options):
    """Records until a signal, or until the program ends."""
    return subprocess.Popen([recorder(), "-o", work.path / "capture.xpu", "-p", str(running.pid),
                             *options], stderr=subprocess.PIPE, text=True)


def finish(process, work):
    _, errors = process.communicate(timeout=PATIENCE_S)
    expect(f"status of xpu-record ({errors})", process.returncode, 0)
    return GpuCapture(work.path / "capture.xpu")


def test_the_program_ends_in_the_window():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        process = start_recording(work, steps)
        time.sleep(1.5)
        threads = steps.end()
        capture = finish(process, work)
        check_window(capture, threads, 30)
        expect("pending at the program's own end", capture.launch_counts()["pending"], 0)


def exit_status_during_an_attach(work, number, delay_s, environment):
    outputs = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with Steps(work, [program("endless_steps"), *SLOWLY], name=f"steps{number}",
               env={**os.environ, **environment}) as steps, \
         subprocess.Popen([recorder(), "-p", str(steps.pid), "-d", "1s", "-o",
                           work.file(f"{number}.xpu")], **outputs) as recording:
        time.sleep(delay_s)
        _, errors = steps.process.communicate(timeout=PATIENCE_S)
        recording.communicate(timeout=PATIENCE_S)
        # What has ended cannot be attached to.
        expect("status of xpu-record", recording.returncode in (0, 125), True)
        return steps.process.returncode, errors.decode()


def test_the_program_exits_during_the_attach():
    """An H200 takes 0.3 s to attach, of which CUPTI takes half. Exit handlers of CUPTI and of the
    driver run then, which must not find us in either."""
    count = 150 if REAL else 8
    slowly = {"XPU_FAKE_SET_UP_MS": "150", "XPU_FAKE_SHUT_DOWN_MS": "300"}
    with Workspace() as work, concurrent.futures.ThreadPoolExecutor(10 if REAL else 2) as pool:
        ends = [pool.submit(exit_status_during_an_attach, work, i, 0.5 * i / count,
                            {} if REAL else slowly) for i in range(count)]
        statuses = Counter(end.result() for end in ends)
    expect("statuses of the programs", statuses, Counter({(0, ""): count}))


def test_cuda_that_starts_after_the_attach():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY, "--wait"],
                                    waits=True) as steps:
        process = start_recording(work, steps)
        time.sleep(2)
        steps.go()
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        capture = finish(process, work)
        check_window(capture, steps.end(), 30)


def test_programs_that_end_soon_are_recorded_or_counted():
    """They may be over before they can be attached to."""
    count = 6
    command = f"read go; for i in $(seq {count}); do {program('vector_add')}; done; sleep 1"
    with Workspace() as work, Fifos(work) as fifos, subprocess.Popen(
            ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as shell:
        process = start_recording(work, shell, fifos.option)
        fifos.ask("ping")  # it records
        shell.communicate(b"go\n")
        expect("status of the program", shell.returncode, 0)
        capture = finish(process, work)
        ledger = {e["name"]: int(e["count"]) for e in capture.of("ledger")}
        counted = ledger.get("injection_unknown", 0) + ledger.get("process_not_reached", 0)
        recorded = len({p["pid"] for p in capture.of("gpu_process")})
        expect(f"{recorded} recorded, {ledger}", recorded + counted >= count, True)
        expect_in("none of them", "" if recorded else "GPU work  none: ", report(capture.path))


def test_interrupted_by_ctrl_c():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        process = start_recording(work, steps)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        capture = finish(process, work)
        check_window(capture, steps.end(), 30)


def test_two_recorders_at_once():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        outputs = [work.path / f"{i}.stderr" for i in range(2)]
        processes = [subprocess.Popen([recorder(), "-v", "-o", work.path / f"{i}.xpu", "-p",
                                       str(steps.pid)], stderr=output.open("w"))
                     for i, output in enumerate(outputs)]
        # Until each knows what became of its library.
        deadline = time.monotonic() + PATIENCE_S
        while (not all(f"process {steps.pid}: " in output.read_text() for output in outputs) and
               time.monotonic() < deadline):
            time.sleep(0.1)
        time.sleep(1)
        for process in processes:
            process.send_signal(signal.SIGINT)
        status = [process.wait(timeout=PATIENCE_S) for process in processes]
        errors = [output.read_text() for output in outputs]
        expect(f"status ({errors})", status, [0, 0])
        # Whoever comes second finds the library or CUPTI taken.
        refused = [error for error in errors if "GPU activity is not recorded" in error or
                   "another tool in this program holds CUPTI" in error]
        expect(f"refused ({errors})", len(refused), 1)
        threads = steps.end()
        got = [i for i, error in enumerate(errors) if error not in refused]
        check_window(GpuCapture(work.path / f"{got[0]}.xpu"), threads, 30)


def test_not_attached_when_disabled():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        before = footprint(steps.pid)
        result = work.record("-p", str(steps.pid), "--no-attach", "-d", "200ms")
        expect(f"status ({result.stderr})", result.returncode, 0)
        expect("a note", "GPU activity" in result.stderr, False)
        expect("the program", footprint(steps.pid)[:3], before[:3])
        expect("GPU events", work.capture().gpu_processes, [])
        steps.end()


def check_python(script, *arguments, env=None):
    if "XPU_TEST_PYTHON" not in os.environ:
        raise xpu_testing.Skip("XPU_TEST_PYTHON names no Python with PyTorch and JAX")
    with Workspace() as work:
        paths = []
        command = [os.environ["XPU_TEST_PYTHON"], WORKLOADS / script, *arguments]
        with Steps(work, command, env and {**os.environ, **env}) as steps:
            for window in range(WINDOWS):
                paths.append(record_window(work, steps, name=f"{window}.xpu", duration="200ms"))
            threads = steps.end()
        whole = check_windows(paths, threads)
        python = [line for line in GpuCapture(paths[0]).folded("--mode", "gpu", "--unit", "ns")
                  if f"{script}:train_step" in line]
        expect("GPU work under the program's own Python function", len(python) > 0, True)
    print(f"        {script} {arguments}: {WINDOWS} windows, {min(whole)} to {max(whole)} whole steps")


def test_pytorch_mlp():
    check_python("pytorch_steps.py", "mlp", "--warmup", 30)


def test_pytorch_transformer():
    check_python("pytorch_steps.py", "transformer", "--warmup", 30)


def test_pytorch_compiled():
    check_python("pytorch_steps.py", "mlp", "--compile", "--warmup", 30)


def test_jax():
    # Otherwise it takes the whole memory of the card at its start.
    check_python("jax_steps.py", env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})


if __name__ == "__main__":
    prepare()
    xpu_testing.main(globals())
