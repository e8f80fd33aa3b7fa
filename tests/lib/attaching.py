"""Programs that run steps without end, and recordings of them that begin and end in between."""

import bisect
import subprocess

import xpu_testing
from gpu_capture import GpuCapture
from xpu_testing import PATIENCE_S, expect


class Steps:
    """A program that runs steps until its standard input ends (endless_steps, pytorch_steps.py)."""

    def __init__(self, work, command, env=None, waits=False, name="steps", **options):
        self.times = work.path / name
        self.process = subprocess.Popen([*map(str, command), "--times", self.times],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env, **options)
        self.expect_line(b"waiting\n" if waits else b"running\n")

    def expect_line(self, wanted):
        line = self.process.stdout.readline()
        if line != wanted:
            raise AssertionError(f"{line}: {self.process.communicate()[1].decode()}")

    def go(self):
        """Of one that waits."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.expect_line(b"running\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        """Its threads, by id: the times at which their steps began, and the end of the last one."""
        output, errors = self.process.communicate(timeout=PATIENCE_S)
        expect(f"output and status of the program ({errors.decode()})",
               (output, self.process.returncode), (b"", 0))
        lines = [line.split() for line in self.times.read_text().splitlines()]
        return {line[0]: [int(t) for t in line[1:]] for line in lines}


def record_window(work, steps, *options, duration="300ms", name="capture.xpu", timeout=PATIENCE_S):
    """Records the running program for a moment; the capture's path."""
    result = work.record("-p", str(steps.pid), "-d", duration, *options, output=name,
                         timeout=timeout)
    expect(f"status of xpu-record ({result.stderr})", result.returncode, 0)
    expect("GPU activity is recorded", "not recorded" in result.stderr, False)
    expect("the program runs", steps.process.poll(), None)
    return work.path / name


def attach(work, steps, *options, **named):
    """Records the running program for a moment; the capture."""
    return GpuCapture(record_window(work, steps, *options, **named))


def calls_in_whole_steps(capture, times, is_counted, margin_steps=2):
    """For each step that lies in the window as a whole, how many calls it made."""
    calls = sorted(int(c["start_ns"]) for c in capture.of("api_call") if is_counted(c))
    if not calls:
        return []
    first = bisect.bisect_right(times, calls[0]) + margin_steps
    last = bisect.bisect_right(times, calls[-1]) - 1 - margin_steps
    return [bisect.bisect_left(calls, times[step + 1]) - bisect.bisect_left(calls, times[step])
            for step in range(first, last)]
