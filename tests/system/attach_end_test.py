"""However a recording of a running program ends, and whatever happens to the recorder before, the
library leaves the program, which can be attached to again."""

import os
import signal
import subprocess
import tempfile
import time

from attaching import Steps, attach
from gpu_attach_test import SLOWLY, check_window
from gpu_capture import LAUNCHES, GpuCapture
from gpu_programs import prepare, program
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, main, program_of, recorder, report,
                         skip)

STEPS = [program("endless_steps"), *SLOWLY]


def threads_of_library(pid):
    names = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as comm:
                names.append(comm.read())
        except OSError:  # it has ended
            pass
    return names.count("xpu-inject\n")


def wait_for(what, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.01)


def wait_until_attached(steps):
    # A thread of CUPTI that was made by ours has its name.
    wait_for("the library is in the program", lambda: threads_of_library(steps.pid) > 0)


def check_left(work, steps):
    wait_for("the library leaves the program", lambda: threads_of_library(steps.pid) == 0)
    capture = attach(work, steps, name="next.xpu")
    check_window(capture, steps.end(), 30)


def start(steps, output, *options):
    return subprocess.Popen([recorder(), "-o", str(output), "-p", str(steps.pid), *options],
                            stderr=subprocess.PIPE, text=True)


def finish(process, status=0):
    _, errors = process.communicate(timeout=PATIENCE_S)
    expect(f"status of xpu-record ({errors})", process.returncode, status)
    return errors


def test_a_full_disk():
    if os.geteuid() != 0:
        skip("root", "mounting a small filesystem needs root")
    with Workspace() as work, tempfile.TemporaryDirectory() as small, Steps(work, STEPS) as steps:
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "xpu-test", small],
                               capture_output=True, text=True)
        if mount.returncode != 0:
            skip("root", f"mount: {mount.stderr.strip()}")
        try:
            errors = finish(start(steps, f"{small}/c.xpu", "-d", "5s"), 125)
        finally:
            subprocess.run(["umount", small], check=True)
        notice = "; the recording goes on; what cannot be written is counted as lost\n"
        expect_in("notice", notice, errors)
        at_once, at_the_end = errors.split(notice)
        for when, text in (("at once", at_once), ("at the end", at_the_end)):
            expect_in(when, "write: No space left on device\nhint: the disk is full", text)
        check_left(work, steps)


def paused(work, steps, *commands):
    """A recording that waits for commands, and gets these."""
    for name in ("ctl", "ack"):
        os.mkfifo(work.path / name)
    process = start(steps, work.path / "c.xpu", "--delay=-1", "--control",
                    f"fifo:{work.path}/ctl,{work.path}/ack")
    wait_until_attached(steps)
    with open(work.path / "ctl", "w", encoding="utf-8") as control, \
            open(work.path / "ack", encoding="utf-8") as acknowledged:
        for command in commands:
            control.write(command + "\n")
            control.flush()
            acknowledged.readline()
    return finish(process)


def test_the_end_of_a_recording_that_never_was_on():
    with Workspace() as work, Steps(work, STEPS) as steps:
        expect_in("message", "the recording was never enabled", paused(work, steps, "stop"))
        check_left(work, steps)


def test_the_end_of_a_paused_recording():
    with Workspace() as work, Steps(work, STEPS) as steps:
        paused(work, steps, "enable", "disable", "stop")
        check_left(work, steps)


def test_a_recorder_that_is_stopped_for_a_while():
    with Workspace() as work, Steps(work, STEPS) as steps:
        process = start(steps, work.path / "c.xpu")
        wait_until_attached(steps)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        expect("the program runs", steps.process.poll(), None)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        finish(process)
        check_left(work, steps)


def test_a_stopped_recorder_and_another_one():
    """The other one gets the program; what the first one lacks then is a loss of it."""
    with Workspace() as work, Steps(work, [recorder(), "-q", "-o", work.path / "c.xpu", "--",
                                           *STEPS]) as steps:
        os.kill(steps.pid, signal.SIGSTOP)
        result = work.record("-p", str(program_of(steps.pid, STEPS[0])), "-d", "300ms",
                             output="other.xpu")
        expect(f"status ({result.stderr})", result.returncode, 0)
        os.kill(steps.pid, signal.SIGCONT)
        check_window(GpuCapture(work.path / "other.xpu"), steps.end(), 30)
        expect("losses", work.capture("c.xpu").losses().get("inject_dormant"), 1)


def test_a_stopped_recorder_that_is_killed():
    with Workspace() as work, Steps(work, STEPS) as steps:
        process = start(steps, work.path / "c.xpu")
        wait_until_attached(steps)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        check_left(work, steps)


def test_parts():
    # As fast as it can, for parts that are at least 1 MiB large.
    with Workspace() as work, Steps(work, STEPS[:1]) as steps:
        process = start(steps, work.path / "c.xpu", "--rotate-size", "1M")
        wait_for("the second part", (work.path / "c.0002.xpu").exists)
        process.send_signal(signal.SIGINT)
        errors = finish(process)
        files = sorted(work.path.glob("c.*.xpu"))
        expect(f"several parts ({errors})", len(files) > 1, True)
        text = " ".join(report(*files).split())
        match = LAUNCHES.search(text)
        counts = {name: int((number or "0").replace(",", ""))
                  for name, number in match.groupdict().items()}
        expect(f"seen = matched + pending + lost in {counts}", counts["seen"],
               counts["matched"] + counts["pending"] + counts["lost"])
        expect_in("parts", f"parts 1 to {len(files)} of the recording", text)
        check_left(work, steps)


if __name__ == "__main__":
    prepare()
    main(globals())
