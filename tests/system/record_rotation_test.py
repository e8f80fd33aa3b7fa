"""Recordings in parts and of bounded size: each part reads alone, all together read as one file."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from gpu_capture import kernels_in
from simulated_gpu import simulated
from xpu_testing import (PATIENCE_S, Capture, Workspace, expect, expect_in, find, main, recorder,
                         report, require_recording, run_report, workload)

ROTATE = ["--rotate-size", "1M"]
# 2 to 4 bytes each in the capture: three parts and more.
LAUNCHES = 1_000_000


def parts(work, pattern="c.*.xpu"):
    return sorted(work.path.glob(pattern))


def names(paths):
    return [path.name for path in paths]


def record(work, *arguments, output="c.xpu", status=0, **options):
    result = work.record(*arguments, output=output, env=simulated(), timeout=PATIENCE_S, **options)
    expect(f"status ({result.stderr})", result.returncode, status)
    return result


def busy(work, marker="ready"):
    return ["sh", "-c", f": > {work.path}/{marker}; while :; do :; done"]


def wait_for(condition, process):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"it does not come: {process.poll()}")
        time.sleep(0.05)


def test_parts_alone_and_together():
    require_recording()
    with Workspace() as work:
        # Names must come from the captures.
        program = work.file("app")
        shutil.copy(workload("empty_launches"), program)
        result = record(work, *ROTATE, "--sources=hit", program, "--launches", str(LAUNCHES))
        truth = json.loads(result.stdout)
        os.unlink(program)
        files = parts(work)
        if len(files) < 3:
            raise AssertionError(f"too few parts: {names(files)}: {result.stderr}")
        expect("names", names(files), [f"c.{i + 1:04}.xpu" for i in range(len(files))])
        expect_in("summary", f"{files[0]} to {files[-1]}, ", result.stderr)
        # A recorder without its share of the processors may lose some, and says so.
        is_whole = not any(loss in result.stderr
                           for loss in ("wire_ring_full", "launch_ring_full", "call_lost"))
        for number, path in enumerate(files, 1):
            try:
                check_part(path, number, number == len(files), is_whole)
            except AssertionError as error:
                raise AssertionError(f"{path.name}: {error}\n{result.stderr}{report(path)}") from None
        kernels = kernels_in(*files)
        expect("kernels in all parts", sum(map(kernels_in, files)), kernels)
        expect(f"{kernels} kernels of {truth['launches']} launches",
               kernels == truth["launches"] or not is_whole, True)
        summary = report(*files)
        launches = f"{truth['launches']:,}"
        if is_whole:
            expect_in("launches", f"{launches}: {launches} with their kernel, 0 pending, 0 lost",
                      " ".join(summary.split()))
        expect_in("parts", f"parts 1 to {len(files)} of the recording\n", summary)
        expect("lost references", "[lost]" in summary, False)

        os.unlink(files.pop(1))
        strict = run_report("--strict", "--top", "--table", "cuda_api_sum", *files)
        expect(f"status ({strict.stderr})", strict.returncode, 3)
        expect_in("a part that is missing", "1 part of the recording missing between",
                  strict.stderr)


def source_is_readable():
    """Whether xpu-record can read the workload's source, which lies where it was compiled. Below a home
    of mode 0700 root cannot, unless sudo says who called it: the reader has no capabilities."""
    if os.geteuid() != 0 or "SUDO_UID" in os.environ:
        return True
    source = pathlib.Path(__file__).resolve().parents[1] / "workloads/empty_launches.cu"
    return subprocess.run(["setpriv", "--inh-caps=-all", "--bounding-set=-all", "test", "-r",
                           source]).returncode == 0


def check_part(path, number, is_last, is_whole):
    """A part reads alone: what occurs in it has its names, devices and clocks."""
    folded = run_report("--folded", "--mode", "gpu", "--unit", "ns", path)
    has_work = kernels_in(path) > 0
    expect("work in a part that is not the last one", has_work or is_last, True)
    if has_work:
        expect_in("stacks have names",
                  "RunWorker(Worker*);Descend(Worker*, unsigned long, unsigned long);"
                  "LaunchMany(Worker*, unsigned long);cudaLaunchKernel;[GPU_Kernel]empty_kernel()",
                  folded.stdout)
    goes_on = f"continues in part {number + 1}"
    if number > 1 or not is_last:
        expect_in("which part", f"{path}: part {number} of the recording", folded.stderr)
    problems = ["clock_pairs_missing", "file_cut", "reference_lost", "file_missing"]
    problems += ["kernel_without_launch", "launch_pending"] if is_whole else []
    for problem in problems:
        expect(problem, problem in folded.stderr, False)
    summary = " ".join(report(path).split())
    expect_in("which part", f"parts part {number} of the recording", summary)
    expect("goes on", goes_on in summary, not is_last)
    expect("begins in earlier ones", "it began in an earlier part" in summary, number > 1)
    expect_in("device", "XPU simulated GPU", summary)
    if number != 2:  # the last one may be as short as can be; one of the others shows it for all
        return
    expect_in("calls have names", "cudaStreamSynchronize", summary)
    if not source_is_readable():
        return
    dump = subprocess.run([find("report/xpu-report"), "--dump", path], check=True,
                          capture_output=True).stdout
    sources = re.findall(rb'^source_text path="([^"]*)"', dump, re.MULTILINE)
    expect(f"source in {sources}", any(b"/empty_launches.cu" in path for path in sources), True)


def test_an_earlier_recording_is_kept():
    require_recording()
    with Workspace() as work:
        record(work, "--cpu-only", *ROTATE, "true")
        before = (work.path / "c.0001.xpu").read_bytes()
        work.file("c.0007.xpu.old", "of an even earlier one")
        result = record(work, "--cpu-only", *ROTATE, "true")
        expect("files", names(parts(work, "*")), ["c.0001.xpu", "c.0001.xpu.old"])
        expect("kept", (work.path / "c.0001.xpu.old").read_bytes(), before)
        expect_in("message",
                  f"1 part of an earlier recording renamed to {work.path}/c.0001.xpu.old\n",
                  result.stderr)
        report(work.path / "c.0001.xpu.old")
        # A program that does not start leaves everything as it was.
        record(work, "--cpu-only", *ROTATE, "/no/such/program", status=127)
        expect("files", names(parts(work, "*")), ["c.0001.xpu"])


def test_what_has_no_parts():
    require_recording()
    with Workspace() as work:
        for output in ("-", "/dev/null", "fifo"):
            if output == "fifo":
                os.mkfifo(work.path / output)
            result = subprocess.run([recorder(), "--cpu-only", *ROTATE, "-o", output, "touch",
                                     "ran"], cwd=work.path, capture_output=True, text=True)
            expect("status", result.returncode, 125)
            expect_in("hint", "hint: ", result.stderr)
        expect("the program was not started", os.path.exists(work.path / "ran"), False)
        result = work.record("--cpu-only", "--rotate-keep", "3", "true")
        expect_in("alone", "--rotate-keep requires --rotate-size", result.stderr)


def until_max_size(work, *arguments):
    """Records more than fits; the program goes on and tells its own status."""
    marker = work.path / "ended"
    run = f"{workload('empty_launches')} --launches {LAUNCHES // 6}"
    command = f"for i in 1 2 3 4 5 6 7 8 9 10; do {run} > /dev/null; done; : > {marker}; exit 9"
    result = record(work, *arguments, "sh", "-c", command, status=9)
    expect("the program ran to its end", marker.exists(), True)
    return result


def test_max_size():
    require_recording()
    with Workspace() as work:
        result = until_max_size(work, "--max-size", "1M")
        expect_in("message",
                  "the recording stopped at --max-size, 1.0 MiB; the program keeps running\n",
                  result.stderr)
        (file,) = parts(work, "c*")
        size = file.stat().st_size
        expect(f"about that size: {size}", 1 << 20 <= size < 3 << 20, True)
        summary = report(file)
        expect("the program has no status yet", "exit status" in summary, False)
        expect("it has an end", "file_cut" in summary, False)


def test_the_oldest_parts_are_removed():
    require_recording()
    with Workspace() as work:
        result = until_max_size(work, *ROTATE, "--rotate-keep", "2", "--max-size", "3M")
        expect_in("message", "the recording stopped at --max-size, 3.0 MiB", result.stderr)
        files = parts(work, "c*")
        last = int(names(files)[-1].split(".")[1])
        expect(f"parts of 1M, up to 3M in all: {last}", last in (3, 4), True)
        expect("the newest", names(files), [f"c.{last - 1:04}.xpu", f"c.{last:04}.xpu"])
        expect_in("summary", f"({last - 2} older part", result.stderr)
        summary = " ".join(report(*files).split())
        expect_in("parts", f"parts {last - 1} to {last} of the recording; it began in an earlier",
                  summary)
        expect("what was asked for is no loss", "part_missing" in summary, False)


def test_two_recorders_and_one_name():
    require_recording()
    for rotate in ([], ROTATE):
        with Workspace() as work:
            first = subprocess.Popen([recorder(), "-q", "--cpu-only", *rotate, "-o", "c.xpu",
                                      *busy(work)], cwd=work.path)
            wait_for(lambda: (work.path / "ready").exists(), first)
            second = work.record("--cpu-only", *rotate, "touch", "ran", output="c.xpu")
            expect("status", second.returncode, 125)
            expect_in("message", "another xpu-record is writing it\nhint: ", second.stderr)
            expect("its program was not started", (work.path / "ran").exists(), False)
            # Under another name it may.
            record(work, "--cpu-only", *rotate, "true", output="other.xpu")
            first.terminate()
            expect("the first one is not disturbed", first.wait(), -signal.SIGTERM)
            (file,) = parts(work, "c*.xpu")
            expect("end", len(Capture(file).recording_end), 1)


def test_restart_after_a_kill():
    require_recording()
    for rotate, name in ([], "c.xpu"), (ROTATE, "c.0001.xpu"):
        with Workspace() as work:
            # A group of its own: the program, which runs on, is ended with it.
            first = subprocess.Popen([recorder(), "-q", "--cpu-only", *rotate, "-o", "c.xpu",
                                      *busy(work)], cwd=work.path, start_new_session=True)
            path = work.path / name
            wait_for(lambda: path.exists() and path.stat().st_size > 1000 and
                     Capture(path).cpu_samples, first)
            first.kill()
            first.wait()
            os.killpg(first.pid, signal.SIGKILL)
            record(work, "--cpu-only", *rotate, "true")
            expect("files", names(parts(work, "c*")), [name, f"{name}.old"])
            old = Capture(work.path / f"{name}.old")
            expect("samples of the half file", len(old.cpu_samples) > 0, True)
            expect("it has no end", old.recording_end, [])
            expect_in("told", "file_cut", report(work.path / f"{name}.old"))
            expect("the new one has", len(Capture(path).recording_end), 1)


if __name__ == "__main__":
    main(globals())
