"""xpu-record in the background, the fifos that control it, and when its captures were on."""

import os
import subprocess
import time

from xpu_testing import PATIENCE_S, expect, recorder

SPIN = """
import sys, time, threading
def spin(seconds):
    # Where others take the CPU, for longer: a quarter of the time is needed for samples.
    end, cpu_end = time.monotonic() + seconds, time.thread_time() + seconds / 4
    while time.monotonic() < end or time.thread_time() < cpu_end:
        for i in range(10000): pass
"""


def start(work, *arguments, **options):
    """xpu-record in the background."""
    return subprocess.Popen([recorder(), "-o", work.file("capture.xpu"), *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=work.path, **options)


def finish(process, status=0):
    output, errors = process.communicate(timeout=PATIENCE_S)
    expect(f"status ({errors})", process.returncode, status)
    return output, errors


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.01)


def switches(capture):
    return [(s["is_on"], s["cause"]) for s in capture.recording_switches]


def recorded_times(capture):
    """[(from, to)]: what lies between the switches."""
    begin = capture.recording_info[0]["start_ns"]
    spans, since = [], begin
    for change in capture.recording_switches:
        if change["is_on"]:
            since = change["time_ns"]
        elif since is not None:
            spans.append((since, change["time_ns"]))
            since = None
    if since is not None:
        spans.append((since, capture.recording_end[0]["time_ns"]))
    return spans


def expect_samples_inside(capture):
    spans = recorded_times(capture)
    outside = [s["time_ns"] for s in capture.cpu_samples
               if not any(begin <= s["time_ns"] <= end for begin, end in spans)]
    expect(f"samples outside of the recorded times {spans}", outside, [])


def duration_of(capture):
    return (capture.recording_end[0]["time_ns"] - capture.recording_info[0]["start_ns"]) / 1e9


class Fifos:
    """The two ends of --control=fifo:."""

    def __init__(self, work):
        self.control, self.ack = work.file("control"), work.file("ack")
        os.mkfifo(self.control)
        os.mkfifo(self.ack)
        self.ack_fd = os.open(self.ack, os.O_RDWR | os.O_NONBLOCK)
        self.control_fd = os.open(self.control, os.O_RDWR)
        self.option = f"--control=fifo:{self.control},{self.ack}"

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.close(self.ack_fd)
        os.close(self.control_fd)

    def send(self, text):
        os.write(self.control_fd, text.encode())

    def acks(self):
        try:
            return os.read(self.ack_fd, 1000)
        except BlockingIOError:
            return b""

    def ask(self, text):
        self.send(text + "\n")
        got = b""

        def has_come():
            nonlocal got
            got += self.acks()
            return len(got) >= 4
        wait_for(has_come, f"an answer to {text}")
        expect("answer", got, b"ack\n")
