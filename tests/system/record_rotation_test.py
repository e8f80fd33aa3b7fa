"""Recordings in parts and of bounded size: each part reads alone, all together read as one file."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from record_gpu_test import simulated
from xpu_testing import (Capture, Workspace, expect, expect_in, find, main, recorder,
                         require_recording, workload)

# Each system call of a program that makes many: some megabytes beside the work of the GPU.
ROTATE = ["--rotate-size", "1M", "--tracepoint", "raw_syscalls:sys_enter"]
LAUNCHES = 20_000
SYSTEM_CALLS = 200_000


def gpu_and_system_calls(program, marker=None, status=0):
    calls = f"dd if=/dev/zero of=/dev/null bs=1 count={SYSTEM_CALLS} 2> /dev/null"
    work = f"({program} --launches {LAUNCHES}; {calls}; {program} --launches {LAUNCHES})"
    end = f"; : > {marker}" if marker else ""
    return ["sh", "-c", f"{calls} & {work}; wait{end}; exit {status}"]


def report(*arguments, status=0):
    done = subprocess.run([find("report/xpu-report"), *map(str, arguments)], capture_output=True,
                          text=True, timeout=300)
    expect(f"status of the report ({done.stderr})", done.returncode, status)
    return done


def parts(work, pattern="c.*.xpu"):
    return sorted(work.path.glob(pattern))


def names(paths):
    return [path.name for path in paths]


def record(work, *arguments, output="c.xpu", status=0, **options):
    result = work.record(*arguments, output=output, env=simulated(), timeout=400, **options)
    expect(f"status ({result.stderr})", result.returncode, status)
    return result


def kernels_in(*files):
    """Launches, kernels and what is missing, as the report sees them."""
    table = report("--top", "--table", "cuda_gpu_kern_sum", "--format", "csv", *files).stdout
    rows = [line.split(",") for line in table.splitlines()[1:]]
    return sum(int(row[2]) for row in rows)


def busy(work, marker="ready"):
    return ["sh", "-c", f": > {work.path}/{marker}; while :; do :; done"]


def wait_for(condition, process):
    deadline = time.monotonic() + 60
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
        result = record(work, *ROTATE, program, "--launches", str(LAUNCHES))
        truth = json.loads(result.stdout)
        os.unlink(program)
        files = parts(work)
        if len(files) < 3:
            raise AssertionError(f"too few parts: {names(files)}: {result.stderr}")
        expect("names", names(files), [f"c.{i + 1:04}.xpu" for i in range(len(files))])
        expect_in("summary", f"{files[0]} to {files[-1]}, ", result.stderr)

        calls = kernels = 0
        for number, path in enumerate(files, 1):
            capture = Capture(path)
            (info,) = capture.recording_info
            expect("part", info["part"], number)
            (end,) = capture.recording_end
            expect("goes on", end["is_continued"], number < len(files))
            (problems,) = capture.problems
            expect("problems", (problems["cut"], problems["references_lost"]), (False, 0))
            calls += len(capture.api_calls)
            kernels += len(capture.kernels)
            # Every id that occurs is defined in the part itself.
            known = {n["callback_id"] for n in capture.callback_names}
            expect("calls without a name", {c["callback_id"] for c in capture.api_calls} - known,
                   set())
            expect("devices", len({d["device_id"] for d in capture.devices}) >= 1, True)
            expect("clock pairs", len(capture.clock_pairs) >= 1, True)
            folded = report("--folded", "--mode", "gpu", "--unit", "ns", path)
            lines = folded.stdout.splitlines()
            expect_in("stacks have names", "RunWorker(Worker*);Descend(Worker*, unsigned long);"
                      "LaunchMany(Worker*)", folded.stdout)
            expect("kernels have names", all("empty_kernel" in l for l in lines), True)
            expect_in("which part", f"{path}: part {number} of the recording", folded.stderr)
            summary = report(path).stdout
            expect_in("which part", f"part {number} of the recording", summary)
            expect("file_cut" in summary, False, False)
        expect("kernels in all parts", kernels, truth["launches"])

        expect("kernels", kernels_in(*files), truth["launches"])
        summary = report(*files).stdout
        launches = f"{truth['launches']:,}"
        expect_in("launches", f"{launches}: {launches} with their kernel, 0 pending, 0 lost",
                  summary)
        expect_in("parts", f"parts 1 to {len(files)} of the recording\n", summary)
        expect("dump has no lost references", "[lost]" in summary, False)


def test_the_oldest_parts_are_removed():
    require_recording()
    with Workspace() as work:
        result = record(work, *ROTATE, "--rotate-keep", "2", workload("empty_launches"),
                        "--launches", str(LAUNCHES))
        files = parts(work)
        expect("parts", len(files), 2)
        first, last = (int(path.name.split(".")[1]) for path in files)
        expect("the newest", last, first + 1)
        expect("older ones", first > 1, True)
        expect_in("summary", f"({first - 1} older part{'s' if first > 2 else ''} removed)",
                  result.stderr)
        summary = report(*files).stdout
        expect_in("parts", f"parts {first} to {last} of the recording, which began in earlier ones",
                  " ".join(summary.split()))
        expect("what was asked for is no loss", "part_missing" in summary, False)
        # One of them is in the future of the other: without matches there, nothing crashes.
        report("--folded", files[1])


def test_a_part_that_is_missing_in_the_middle():
    require_recording()
    with Workspace() as work:
        record(work, *ROTATE, workload("empty_launches"), "--launches", str(LAUNCHES))
        files = parts(work)
        os.unlink(files.pop(1))
        summary = report(*files).stdout
        expect_in("ledger", "part_missing", summary)
        report("--strict", "--folded", *files, status=3)


def test_an_earlier_recording_is_kept():
    require_recording()
    with Workspace() as work:
        record(work, "--cpu-only", *ROTATE, "true")
        before = (work.path / "c.0001.xpu").read_bytes()
        work.file("c.0007.xpu.old", "of an even earlier one")
        result = record(work, "--cpu-only", *ROTATE, "true")
        expect("files", names(parts(work, "*")), ["c.0001.xpu", "c.0001.xpu.old"])
        expect("kept", (work.path / "c.0001.xpu.old").read_bytes(), before)
        expect_in("message", f"1 part of an earlier recording: kept as {work.path}/c.0001.xpu.old\n",
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


def test_max_size():
    require_recording()
    for rotate in ([], ["--rotate-size", "1M", "--rotate-keep", "2"]):
        with Workspace() as work:
            marker = work.path / "ended"
            run = f"{workload('empty_launches')} --launches {LAUNCHES // 4}"
            command = f"for i in 1 2 3 4 5 6; do {run} > /dev/null; done; : > {marker}; exit 9"
            result = record(work, *rotate, "--max-size", "3M" if rotate else "1M", "sh", "-c",
                            command, status=9)
            expect("the program ran to its end", marker.exists(), True)
            expect_in("message", "the recording ended at --max-size, "
                      f"{'3.0' if rotate else '1.0'} MiB; the program runs on\n", result.stderr)
            files = parts(work, "c*.xpu")
            expect("files", len(files), 2 if rotate else 1)
            if not rotate:
                size = files[0].stat().st_size
                expect(f"size {size}", 1 << 20 <= size < 3 << 20, True)
            (end,) = Capture(files[-1]).recording_end
            expect("the program has no status yet", end["target_pid"], 0)
            report(*files)


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
            wait_for(lambda: path.exists() and path.stat().st_size > 1000, first)
            first.kill()
            first.wait()
            os.killpg(first.pid, signal.SIGKILL)
            record(work, "--cpu-only", *rotate, "true")
            expect("files", names(parts(work, "c*")), [name, f"{name}.old"])
            old = Capture(work.path / f"{name}.old")
            expect("samples of the half file", len(old.cpu_samples) > 0, True)
            expect("it has no end", old.recording_end, [])
            expect_in("told", "file_cut", report(work.path / f"{name}.old").stdout)
            expect("the new one has", len(Capture(path).recording_end), 1)


if __name__ == "__main__":
    main(globals())
