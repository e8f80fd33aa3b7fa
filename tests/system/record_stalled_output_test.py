"""A disk or pipe that takes nothing for a while, or never again: the recording goes on, the program is
not touched, and what does not fit is counted exactly."""

import json
import os
import re
import subprocess
import threading
import time

from simulated_gpu import simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, recorder,
                         require_recording, workload)

# One after the other, so that no ring inside a program overflows, however slow the machine is.
PROGRAMS = 12
LAUNCHES = 20000
# Much less than what these programs give.
BUFFER = ["--output-buffer", "64K"]


def gpu_programs(marker, programs=PROGRAMS):
    run = f"{workload('empty_launches')} --launches {LAUNCHES}"
    return ["sh", "-c", f"for i in $(seq {programs}); do {run} > /dev/null; done; : > {marker}"]


def start(work, *arguments, stdout=subprocess.PIPE):
    return subprocess.Popen([recorder(), *arguments], stdout=stdout, stderr=subprocess.PIPE,
                            env=simulated(), cwd=work.path)


def wait_for(path, process):
    while not os.path.exists(path):
        if process.poll() is not None:
            raise AssertionError(f"ended early: {process.stderr.read()}")
        time.sleep(0.05)


def totals(stderr):
    """(events, losses by name) of the recorder's summary."""
    events = int(re.search(r"xpu-record: (\d+) events", stderr)[1])
    return events, {name: int(count) for name, count
                    in re.findall(r"^xpu-record: (\w+): (\d+) ", stderr, re.M)}


def news(capture):
    """The events that are not repeated ones."""
    return {name: [e for e in events if not e.get("repeats") and not e.get("restated")]
            for name, events in capture.events.items() if name != "problems"}


def test_a_pipe_that_is_not_read_for_a_while():
    require_recording()
    with Workspace() as work:
        marker = work.path / "ended"
        process = start(work, "-o", "-", *BUFFER, *gpu_programs(marker))
        wait_for(marker, process)  # nothing was read until here
        capture_bytes = process.stdout.read()
        stderr = process.stderr.read().decode()
        expect(f"status ({stderr})", process.wait(), 0)
        (work.path / "piped.xpu").write_bytes(capture_bytes)
        capture = work.capture("piped.xpu")
        (problems,) = capture.problems
        expect("problems", (problems["cut"], problems["blocks_damaged"],
                            problems["references_lost"]), (False, 0, 0))
        written, losses = totals(stderr)
        dropped = losses.get("output_stalled", 0)
        if dropped == 0:
            raise AssertionError(f"nothing was dropped: {stderr}")
        # The same in the capture.
        expect("ledger", capture.ledger().get("output_stalled"), dropped)
        expect("every process was reached", capture.ledger().get("process_not_reached", 0), 0)
        there = news(capture)
        events = sum(map(len, there.values()))
        if abs(events - written) > written // 1000:
            raise AssertionError(f"{events} events in the capture, {written} said to be")
        # Of each launch a call, a stack and a kernel; of a process some definitions beside them.
        kinds = ("kernels", "api_calls", "launch_stacks")
        missing = sum(PROGRAMS * (LAUNCHES + 1) - len(there.get(kind, [])) for kind in kinds)
        in_rings = losses.get("wire_ring_full", 0) + losses.get("launch_ring_full", 0)
        # Synchronizations are calls too.
        calls_beside = PROGRAMS * (LAUNCHES // 500 + 10)
        if not (-calls_beside <= missing - in_rings <= dropped):
            raise AssertionError(f"{missing} are missing, {dropped} dropped, {in_rings} in rings")
        # Events after the gap have their names.
        instances = {p["instance"] for p in capture.gpu_processes}
        expect("kernels of processes that are not known",
               {k["instance"] for k in capture.kernels} - instances, set())
        names = {(n["instance"], n["callback_id"]) for n in capture.callback_names}
        expect("calls without a name",
               {(c["instance"], c["callback_id"]) for c in there["api_calls"]} - names, set())


def test_a_reader_that_never_reads_again():
    require_recording()
    with Workspace() as work:
        marker = work.path / "ended"
        process = start(work, "-o", "-", *BUFFER, *gpu_programs(marker, 4))
        stderr = process.stderr.read().decode()  # to its end: the recorder gives up
        expect("status", process.wait(), 125)
        expect("the program ran to its end", marker.exists(), True)
        expect_in("message", "standard output: accepted no data for 10 s: its last ", stderr)
        expect_in("loss", "write_failed", stderr)
        # What was taken can be read.
        (work.path / "piped.xpu").write_bytes(process.stdout.read())
        capture = work.capture("piped.xpu")
        written, _ = totals(stderr)
        expect("events", sum(map(len, news(capture).values())), written)


def test_fifo():
    require_recording()
    with Workspace() as work:
        fifo = work.file("fifo")
        os.mkfifo(fifo)
        process = start(work, "--cpu-only", "-o", fifo, "true")
        time.sleep(0.5)
        with open(fifo, "rb") as reader:
            (work.path / "read.xpu").write_bytes(reader.read())
        expect("status", process.wait(), 0)
        expect("end", len(work.capture("read.xpu").recording_end), 1)


def test_fifo_without_a_reader():
    require_recording()
    with Workspace() as work:
        fifo = work.file("fifo")
        os.mkfifo(fifo)
        process = start(work, "--cpu-only", "-o", fifo, "touch", work.file("ran"))
        stderr = process.stderr.read().decode()
        expect("status", process.wait(), 125)
        expect_in("message", "fifo: nobody is reading this FIFO\nhint: ", stderr)
        expect("the program was not started", os.path.exists(work.path / "ran"), False)


def test_straight_into_a_report():
    require_recording()
    with Workspace() as work:
        program = f"{workload('empty_launches')} --launches 2000"
        command = (f"{recorder()} -q -o - -- {program} 2> {work.file('truth')} | "
                   f"{find('report/xpu-report')} --top --table cuda_gpu_kern_sum --format csv -")
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True,
                              text=True, env=simulated(), timeout=PATIENCE_S)
        expect(f"status ({done.stderr})", done.returncode, 0)
        truth = json.loads((work.path / "truth").read_text())
        (row,) = done.stdout.splitlines()[1:]
        expect("kernels", int(row.split(",")[2]), truth["launches"])


def test_signals_while_the_output_stands_still():
    require_recording()
    with Workspace() as work:
        process = start(work, "--cpu-only", "-o", "-", *BUFFER, "sh", "-c",
                        "trap 'exit 7' TERM; : > ready; while :; do :; done")
        wait_for(work.path / "ready", process)
        process.terminate()
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        expect("status", process.wait(timeout=PATIENCE_S), 7)
        reader.join()
        process.stderr.close()


if __name__ == "__main__":
    main(globals())
