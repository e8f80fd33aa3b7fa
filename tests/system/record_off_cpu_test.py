"""xpu-record --off-cpu: a program's waits of known length, by the functions and the system calls in
which it waited; shorter ones in sums."""

import json

import xpu_testing
from xpu_testing import Workspace, expect, expect_in, folded

WAITS = {"sleep": ("WaitInSleep", "clock_nanosleep"), "poll": ("WaitInPoll", "poll"),
         "futex": ("WaitInFutex", "futex"), "pipe": ("WaitInPipe", "read")}


def recorded(work, *options):
    xpu_testing.require_recording()
    result = work.record("--cpu-only", "--off-cpu", *options, "--",
                         xpu_testing.workload("known_waits"))
    expect(f"exit status ({result.stderr})", result.returncode, 0)
    expect("losses", work.capture().losses(), {})
    return json.loads(result.stdout.splitlines()[-1])


def frames(stack):
    return [frame.split("(")[0] for frame in stack.split(";")]


def waited(stacks, function, reason):
    return sum(value for stack, value in stacks.items()
               if function in frames(stack) and stack.endswith(f";[off-CPU] {reason}"))


def test_waits_have_their_times_and_reasons():
    with Workspace() as work:
        account = recorded(work, "--off-cpu-min", "50ms")
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        for name, (function, call) in WAITS.items():
            shown = waited(stacks, function, call)
            # The program's clock includes the call itself, and time in which it waited to run.
            expect(f"{name}: {shown} ns of {account[name]} by its own clock",
                   100_000_000 <= shown <= account[name], True)


def test_short_waits_are_in_sums():
    with Workspace() as work:
        account = recorded(work, "--off-cpu-min", "50ms")
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        expect("WaitShortly in a stack", [s for s in stacks if "WaitShortly" in s], [])
        short = stacks["known_waits;[off-CPU] blocked, short"]
        # 20 sleeps of 1 ms, and what else waits for a short time.
        expect(f"{short} ns", 20_000_000 <= short, True)
        expect("times below the minimum",
               all(w["end_ns"] - w["start_ns"] >= 50_000_000
                   for w in work.capture().off_cpu_waits), True)
        expect("sums", sum(s["count"] for s in work.capture().off_cpu_sums
                           if s["state"] == 1) >= 20, True)
        expect("all sleeps took time", account["short"] >= 20_000_000, True)


def test_a_minimum_of_zero_leaves_no_sums():
    with Workspace() as work:
        recorded(work, "--off-cpu-min", "0")
        expect("sums", work.capture().off_cpu_sums, [])
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        expect("short sleeps", waited(stacks, "WaitShortly", "clock_nanosleep") >= 20_000_000, True)


def test_a_capture_without_off_cpu_time_says_so():
    with Workspace() as work:
        xpu_testing.require_recording()
        work.record("--cpu-only", "--", "true")
        result = xpu_testing.run_report("--folded", "--mode", "off", work.file("capture.xpu"))
        expect_in("message", "the capture has no off-CPU time", result.stderr)
        expect_in("hint", "xpu-record --off-cpu records it", result.stderr)


if __name__ == "__main__":
    xpu_testing.main(globals())
