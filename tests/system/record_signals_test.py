"""Each signal reaches the program exactly once, however it was sent; the capture is finished."""

import os
import pty
import signal
import subprocess
import sys
import time

from xpu_testing import PATIENCE_S, Capture, Workspace, expect, main, recorder, require_recording

# Writes down the signals that it gets, until PATH.end exists; PATH.counts is then complete. The
# last argument ends it where the test has died.
COUNTER = """
import signal, sys, os, time
path, counts, written = sys.argv[1], {}, None
def count(number, frame):
    counts[number] = counts.get(number, 0) + 1
def write(name, text):
    open(path + ".new", "w").write(text)
    os.rename(path + ".new", path + name)
for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
    signal.signal(getattr(signal, "SIG" + name), count)
write("", str(os.getpid()))
end = time.monotonic() + float(sys.argv[2])
while True:
    is_last = os.path.exists(path + ".end") or time.monotonic() > end
    now = repr(dict(sorted(counts.items())))
    if now != written:
        write(".counts", now)
        written = now
    if is_last:
        break
    time.sleep(0.02)
"""


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(what())
        time.sleep(0.01)


class Counter:
    """What the counting program has written."""

    def __init__(self, work):
        self.path = work.file("ready")

    def is_ready(self):
        return os.path.exists(self.path + ".counts")

    def counts(self):
        return eval(open(self.path + ".counts").read())

    def wait_for(self, expected):
        """Until it has got as many signals."""
        wait_until(lambda: sum(self.counts().values()) >= sum(expected.values()),
                   lambda: f"signals at the program: {self.counts()}, expected {expected}")

    def end(self):
        # Signals sent once too often would have come by now.
        time.sleep(0.3)
        open(self.path + ".end", "w").close()


class Running:
    """xpu-record with a program that counts its signals."""

    def __init__(self, work, before=(), **options):
        self.counter = Counter(work)
        self.output = work.file("capture.xpu")
        self.process = subprocess.Popen(
            [*before, recorder(), "--cpu-only", "-o", self.output, "--", sys.executable, "-c",
             COUNTER, self.counter.path, str(2 * PATIENCE_S)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=work.path, **options)
        wait_until(lambda: self.counter.is_ready() or self.process.poll() is not None,
                   lambda: "the program did not start")
        if self.process.poll() is not None:
            raise AssertionError("the program did not start: " + self.process.stderr.read())

    def finish(self):
        self.stdout, self.stderr = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode

    def expect_signals(self, expected):
        """Returns the status."""
        self.counter.wait_for(expected)
        self.counter.end()
        status = self.finish()
        expect("signals at the program", self.counter.counts(), expected)
        return status

    def check_capture(self):
        capture = Capture(self.output)
        expect("ends", len(capture.recording_end), 1)
        expect("cut", capture.problems[0]["cut"], False)


def send_and_count(send, expected, **options):
    require_recording()
    with Workspace() as work:
        run = Running(work, **options)
        send(run)
        expect("status", run.expect_signals(expected), 0)
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
        got = {}
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
            run.process.send_signal(number)
            # Two of a kind that wait are one.
            got[number] = got.get(number, 0) + 1
            run.counter.wait_for(got)
    send_and_count(send, {signal.SIGUSR1: 2, signal.SIGUSR2: 1})


def test_timeout_sends_to_child_and_group():
    require_recording()
    with Workspace() as work:
        run = Running(work, before=["timeout", "-s", "INT", str(2 * PATIENCE_S)])
        run.process.send_signal(signal.SIGALRM)  # as its timer does
        expect("status of timeout", run.expect_signals({signal.SIGINT: 1}), 124)
        run.check_capture()


def test_timeout_in_the_foreground_sends_to_the_recorder_alone():
    require_recording()
    with Workspace() as work:
        run = Running(work, before=["timeout", "--foreground", "-s", "INT", str(2 * PATIENCE_S)])
        run.process.send_signal(signal.SIGALRM)
        expect("status of timeout", run.expect_signals({signal.SIGINT: 1}), 124)
        run.check_capture()


def on_a_terminal(keys, expected):
    """Runs the counter under a pseudo terminal and types `keys`."""
    require_recording()
    with Workspace() as work:
        counter = Counter(work)
        output = work.file("capture.xpu")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(recorder(), ["xpu-record", "--cpu-only", "-o", output, "--", sys.executable,
                                  "-c", COUNTER, counter.path, str(2 * PATIENCE_S)])
        wait_until(counter.is_ready, lambda: "the program did not start")
        os.write(terminal, keys)
        counter.wait_for(expected)
        counter.end()
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:
            pass  # the terminal's other side is closed
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        expect("status", status, 0)
        expect("ends", len(Capture(output).recording_end), 1)
        expect("signals", counter.counts(), expected)


def test_ctrl_c_on_a_terminal():
    on_a_terminal(b"\x03", {signal.SIGINT: 1})


def test_ctrl_backslash_on_a_terminal():
    on_a_terminal(b"\x1c", {signal.SIGQUIT: 1})


def test_second_request_ends_a_program_that_does_not_listen():
    require_recording()
    with Workspace() as work:
        run = Running(work)
        run.process.send_signal(signal.SIGINT)
        run.counter.wait_for({signal.SIGINT: 1})
        run.process.send_signal(signal.SIGINT)
        expect("status", run.finish(), -signal.SIGKILL)
        run.check_capture()


def test_default_action_is_the_programs():
    require_recording()
    with Workspace() as work:
        process = subprocess.Popen(
            [recorder(), "--cpu-only", "-q", "-o", work.file("capture.xpu"), "sh", "-c",
             "echo up; exec sleep 60"], stdout=subprocess.PIPE, text=True)
        expect("first line", process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGTERM)
        expect("status", process.wait(timeout=PATIENCE_S), -signal.SIGTERM)
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
        expect("status", process.wait(timeout=PATIENCE_S), 4)


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
            expect("status", process.wait(timeout=PATIENCE_S), -signal.SIGTERM)
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
        process.communicate("end\n", timeout=PATIENCE_S)
        expect("status", process.returncode, 4)


def test_recorder_killed_leaves_a_readable_capture_and_a_running_program():
    require_recording()
    with Workspace() as work:
        run = Running(work)
        # The whole first flush: a kill may cut it.
        wait_until(lambda: os.stat(run.output).st_size > 1000 and
                   Capture(run.output).recording_info, lambda: "nothing was written")
        run.process.kill()
        expect("status", run.process.wait(timeout=PATIENCE_S), -signal.SIGKILL)
        capture = Capture(run.output)
        expect("beginnings", len(capture.recording_info), 1)
        expect("ends", len(capture.recording_end), 0)
        # The program is still there, and got no signal until now.
        os.kill(int(open(run.counter.path).read()), signal.SIGUSR1)
        run.expect_signals({signal.SIGUSR1: 1})


def test_nothing_is_left_running():
    require_recording()
    with Workspace() as work:
        process = subprocess.Popen([recorder(), "--cpu-only", "-q", "-o", work.file("capture.xpu"),
                                    "true"], start_new_session=True)
        process.wait(timeout=PATIENCE_S)
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        raise AssertionError("a process of the group is left")


if __name__ == "__main__":
    main(globals())
