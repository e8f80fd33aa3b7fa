"""CPU samples of threads that the kernel holds at a probe: their stacks are those of the program."""

import subprocess

import xpu_testing
from xpu_testing import (STACK_COMPLETE, STACK_TABLE_NOT_READY, Workspace, expect, folded, main,
                         require_recording)

# A clock's period is not in step with the 10 ms of the scheduler.
RATE = "997"


def program():
    return xpu_testing.find("tests/system/xpu_probed_calls")


def stacks(work):
    """(frames of the program's loop, whether the sample is in the kernel, samples) of each stack."""
    samples = folded("--mode", "cpu", "--unit", "samples", work.file("capture.xpu"))
    for stack, count in samples.items():
        frames = stack.split(";")
        # The kernel's frames, and those of our own BPF programs.
        user = [frame for frame in frames if not frame.endswith("_[k]") and frame != "[profiler]"]
        in_kernel = len(user) < len(frames)
        if "main" in user:
            user = user[user.index("main"):]
        yield user, in_kernel, count


def check(function, option, most_wrong, *arguments, offset=""):
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", RATE, option, f"{program()}:{function}{offset}",
                             "--", program(), function, "700", *arguments)
        expect(f"status ({result.stderr})", result.returncode, 0)
        right = wrong = held = 0
        others = []
        for user, in_kernel, count in stacks(work):
            is_path = user[:2] == ["main", "Caller"] and user[2:] in ([], [function])
            added = any(frame.startswith("[u") for frame in user)  # [unknown], or the kernel's code
            if arguments and not added:  # after it follows what the signal brought
                is_path = user[:2] == ["main", "Caller"]
            if is_path:
                right += count
                held += count if in_kernel else 0
            elif added or {"Caller", function} & set(user):
                wrong += count
                others.append(user)
        expect(f"samples at the probe ({held} of {right})", held > 100, True)
        expect(f"{function}, {option}: {wrong} others of {right}: {others}",
               wrong <= most_wrong * right, True)


def test_push_that_the_kernel_does_itself():
    check("Pushes", "--uprobe", 0.01)


def test_instruction_that_runs_elsewhere():
    check("Subtracts", "--uprobe", 0.01)


def test_nothing_to_do():
    check("Nothing", "--uprobe", 0.01)


def test_long_nop():
    """From Linux 6.18 on a call, for which the kernel has registers of its own for a moment."""
    check("LongNothing", "--uprobe", 0.03)


def test_in_the_middle():
    check("Keeps", "--uprobe", 0.01, offset="+1")


def test_signals():
    """One that comes while the kernel holds the thread interrupts the kernel's own code."""
    check("Pushes", "--uprobe", 0.01, "signals")
    check("Pushes", "--uretprobe", 0.05, "signals")


def test_hits_of_a_running_process():
    """They begin when the recording does."""
    require_recording()
    with Workspace() as work:
        running = subprocess.Popen([program(), "Pushes", "20000"], stdout=subprocess.PIPE)
        try:
            # Not in its loader any more: what that maps while the recording begins has no tables.
            running.stdout.readline()
            result = work.record("--cpu-only", "-F", RATE, "--uprobe", f"{program()}:Pushes", "-p",
                                 str(running.pid), "-d", "0.5")
        finally:
            running.kill()
            running.wait()
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        expect("hits", len(capture.probe_hits) > 1000, True)
        start_ns = capture.recording_info[0]["start_ns"]
        expect("those before the recording",
               [hit["time_ns"] for hit in capture.probe_hits if hit["time_ns"] < start_ns], [])
        # Where others keep the machine busy, tables are ready some moments after the start.
        ready = [hit for hit in capture.probe_hits if
                 not hit["stack_flags"] & STACK_TABLE_NOT_READY]
        expect("hits with tables", len(ready) > 500, True)
        cut = [hit for hit in ready if not hit["stack_flags"] & STACK_COMPLETE]
        expect(f"{len(cut)} without a whole stack", len(cut) <= 0.01 * len(ready), True)


def test_returns():
    """The kernel changes a return address some 50 ns before it notes down what it was."""
    for function in ("Pushes", "Subtracts", "Nothing"):
        check(function, "--uretprobe", 0.05)


if __name__ == "__main__":
    main(globals())
