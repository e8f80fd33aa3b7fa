"""Each signal reaches the program exactly once, however it was sent; the capture is finished."""

import os
import pty
import signal
import subprocess
import sys
import time

from xpu_testing import Capture, Workspace, expect, main, recorder, require_recording

# Counts the signals it gets; ends after a line on its standard input, or by SIGALRM.
COUNTER = """
import signal, sys, os, time
counts = {}
def count(number, frame):
    counts[number] = counts.get(number, 0) + 1
for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
    signal.signal(getattr(signal, "SIG" + name), count)
open(sys.argv[1] + ".new", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    time.sleep(0.05)
open(sys.argv[1] + ".counts", "w").write(repr(dict(sorted(counts.items()))))
"""


class Running:
    """xpu-record with a program that counts its signals for so many seconds."""

    def __init__(self, work, seconds, before=(), **options):
        self.work = work
        self.ready = work.file("ready")
        self.output = work.file("capture.xpu")
        self.process = subprocess.Popen(
            [*before, recorder(), "--cpu-only", "-o", self.output, "--", sys.executable, "-c",
             COUNTER, self.ready, str(seconds)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=work.path, **options)

    def wait_until_ready(self):
        end = time.monotonic() + 20
        while not os.path.exists(self.ready):
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError("the program did not start: " + self.process.stderr.read())
            time.sleep(0.01)

    def target(self):
        return int(open(self.ready).read())

    def finish(self):
        self.stdout, self.stderr = self.process.communicate(timeout=30)
        return self.process.returncode

    def counts(self):
        return eval(open(self.ready + ".counts").read())

    def check_capture(self):
        capture = Capture(self.output)
        expect("ends", len(capture.recording_end), 1)
        expect("cut", capture.problems[0]["cut"], False)


def send_and_count(send, expected, **options):
    require_recording()
    with Workspace() as work:
        run = Running(work, 2.0, **options)
        run.wait_until_ready()
        send(run)
        expect("status", run.finish(), 0)
        expect("signals at the program", run.counts(), expected)
        run.check_capture()


def test_kill_of_the_recorder_from_its_own_group():
    # As a script does it: `xpu-record app & kill -INT $!`, all in one process group.
    send_and_count(lambda run: run.process.send_signal(signal.SIGINT), {signal.SIGINT: 1})


def test_kill_of_the_recorder_from_outside():
    send_and_count(lambda run: run.process.send_signal(signal.SIGTERM), {signal.SIGTERM: 1},
                   start_new_session=True)


def test_kill_of_the_group():
    send_and_count(lambda run: os.killpg(run.process.pid, signal.SIGTERM), {signal.SIGTERM: 1},
                   start_new_session=True)


def test_user_signals_are_passed_on_each():
    def send(run):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
            run.process.send_signal(number)
            time.sleep(0.2)
    send_and_count(send, {signal.SIGUSR1: 2, signal.SIGUSR2: 1})


def test_timeout_sends_to_child_and_group():
    require_recording()
    with Workspace() as work:
        run = Running(work, 2.5, before=["timeout", "-s", "INT", "1.2"])
        run.wait_until_ready()
        expect("status of timeout", run.finish(), 124)
        expect("signals at the program", run.counts(), {signal.SIGINT: 1})
        run.check_capture()


def test_timeout_in_the_foreground_sends_to_the_recorder_alone():
    require_recording()
    with Workspace() as work:
        run = Running(work, 2.5, before=["timeout", "--foreground", "-s", "INT", "1.2"])
        run.wait_until_ready()
        run.finish()
        expect("signals at the program", run.counts(), {signal.SIGINT: 1})
        run.check_capture()


def on_a_terminal(keys):
    """Runs the counter under a pseudo terminal, types `keys`, returns the signals it saw."""
    with Workspace() as work:
        ready = work.file("ready")
        output = work.file("capture.xpu")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(recorder(), ["xpu-record", "--cpu-only", "-o", output, "--", sys.executable,
                                  "-c", COUNTER, ready, "2"])
        end = time.monotonic() + 20
        while not os.path.exists(ready) and time.monotonic() < end:
            time.sleep(0.01)
        os.write(terminal, keys)
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:
            pass  # the terminal's other side is closed
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        expect("status", status, 0)
        expect("ends", len(Capture(output).recording_end), 1)
        return eval(open(ready + ".counts").read())


def test_ctrl_c_on_a_terminal():
    require_recording()
    expect("signals", on_a_terminal(b"\x03"), {signal.SIGINT: 1})


def test_ctrl_backslash_on_a_terminal():
    require_recording()
    expect("signals", on_a_terminal(b"\x1c"), {signal.SIGQUIT: 1})


def test_second_request_ends_a_program_that_does_not_listen():
    require_recording()
    with Workspace() as work:
        run = Running(work, 60)
        run.wait_until_ready()
        run.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        begin = time.monotonic()
        run.process.send_signal(signal.SIGINT)
        expect("status", run.finish(), -signal.SIGKILL)
        if time.monotonic() - begin > 10:
            raise AssertionError("took too long")
        run.check_capture()


def test_default_action_is_the_programs():
    require_recording()
    with Workspace() as work:
        process = subprocess.Popen(
            [recorder(), "--cpu-only", "-q", "-o", work.file("capture.xpu"), "sh", "-c",
             "echo up; exec sleep 60"], stdout=subprocess.PIPE, text=True)
        expect("first line", process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGTERM)
        expect("status", process.wait(timeout=20), -signal.SIGTERM)
        expect("ends", len(Capture(work.path / "capture.xpu").recording_end), 1)


def test_nohup_stays_in_force():
    require_recording()
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Workspace() as work:
        process = subprocess.Popen(
            [recorder(), "--cpu-only", "-q", "-o", work.file("capture.xpu"), "sh", "-c",
             "echo up; sleep 1; exit 4"], stdout=subprocess.PIPE, text=True, preexec_fn=ignore)
        expect("first line", process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGHUP)
        expect("status", process.wait(timeout=20), 4)


def ignore_keyboard():
    """As shells start what a script runs in the background."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def in_the_background(work, script):
    return subprocess.Popen(
        [recorder(), "--cpu-only", "-q", "-o", work.file("capture.xpu"), "sh", "-c", script],
        stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, preexec_fn=ignore_keyboard,
        start_new_session=True)


def test_interrupt_of_a_job_of_a_script():
    """`xpu-record app & kill -INT $!`: the program inherits that it ignores SIGINT."""
    require_recording()
    for number in (signal.SIGINT, signal.SIGQUIT):
        with Workspace() as work:
            process = in_the_background(work, "echo up; exec sleep 60")
            expect("first line", process.stdout.readline(), "up\n")
            process.send_signal(number)
            expect("status", process.wait(timeout=20), -signal.SIGTERM)
            expect("ends", len(Capture(work.path / "capture.xpu").recording_end), 1)
    # One that handles it is given it.
    send_and_count(lambda run: run.process.send_signal(signal.SIGINT), {signal.SIGINT: 1},
                   preexec_fn=ignore_keyboard)


def test_interrupt_of_the_group_does_not_mean_a_job_of_a_script():
    require_recording()
    with Workspace() as work:
        process = in_the_background(work, "echo up; read line; exit 4")
        expect("first line", process.stdout.readline(), "up\n")
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGINT):
            os.killpg(process.pid, number)
            time.sleep(0.2)
        expect("status", process.communicate("end\n", timeout=20)[0] or process.returncode, 4)


def test_recorder_killed_leaves_a_readable_capture_and_a_running_program():
    require_recording()
    with Workspace() as work:
        run = Running(work, 3)
        run.wait_until_ready()
        time.sleep(1.3)  # a flush a second
        run.process.kill()
        expect("status", run.finish(), -signal.SIGKILL)
        capture = Capture(run.output)
        expect("beginnings", len(capture.recording_info), 1)
        expect("ends", len(capture.recording_end), 0)
        end = time.monotonic() + 20
        while not os.path.exists(run.ready + ".counts"):
            if time.monotonic() > end:
                raise AssertionError("the program did not live on")
            time.sleep(0.05)
        expect("signals at the program", run.counts(), {})


def test_nothing_is_left_running():
    require_recording()
    with Workspace() as work:
        process = subprocess.Popen([recorder(), "--cpu-only", "-q", "-o", work.file("capture.xpu"),
                                    "true"], start_new_session=True)
        process.wait(timeout=20)
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        raise AssertionError("a process of the group is left")


if __name__ == "__main__":
    main(globals())
