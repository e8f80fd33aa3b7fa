"""xpu-record --off-cpu: a program's waits of known length and kind, with the functions and system
calls in which it waited and the threads that woke it; shorter ones in sums; running programs; what
does not fit."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections import Counter

import record_python_test
import xpu_testing
from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, folded

BLOCKED, UNINTERRUPTIBLE, PREEMPTED, RUNNING, STOPPED = 1, 2, 3, 5, 6  # OffCpuState
THREAD, INTERRUPT = 1, 2  # OffCpuWaker
EXEC, EXIT = 2, 4  # ProcessEventKind
# The function that waits and its reason.
WAITS = {"sleep": ("WaitInSleep", "clock_nanosleep"), "poll": ("WaitInPoll", "poll"),
         "futex": ("WaitInFutex", "futex"), "pipe": ("WaitInPipe", "read pipe"),
         "event": ("WaitInEvent", "read eventfd"),
         "page_fault": ("WaitInPageFault", "page fault"),
         "mutex": ("WaitForMutex", "futex"), "condition": ("WaitForCondition", "futex"),
         "join": ("WaitForJoin", "futex"), "pool": ("WaitForPool", "futex")}


def recorded(work, *options, program=("known_waits",), **settings):
    xpu_testing.require_recording()
    result = work.record("--cpu-only", "--off-cpu", *options, "--",
                         xpu_testing.workload(program[0]), *program[1:], **settings)
    expect(f"exit status ({result.stderr})", result.returncode, 0)
    expect("losses", losses(work.capture()), {})
    return json.loads(result.stdout.splitlines()[-1])


def losses(capture):
    """Without the switches that some kernels do not report under load."""
    return {name: count for name, count in capture.losses().items()
            if name != "off_cpu_events_missed"}


def frames(stack):
    return [frame.split("(")[0] for frame in stack.split(";")]


def waited(stacks, function, reason=None):
    end = "" if reason is None else f";[off-CPU] {reason}"
    return sum(value for stack, value in stacks.items()
               if function in frames(stack) and stack.endswith(end))


def longest_wait(waits, tid, state=BLOCKED, **wanted):
    found = [w for w in waits if w["tid"] == tid and w["state"] == state and
             all(w[key] == value for key, value in wanted.items())]
    return max(found, key=lambda w: w["end_ns"] - w["start_ns"])


def wait_for_mutex(capture, tid, account):
    """The waker also ends waits for its own start and end, which take longer on a loaded machine."""
    return longest_wait(capture.off_cpu_waits, tid, waker_tid=account["mutex_waker"],
                        argument=account["mutex_address"])


def check_times_and_reasons(work, account):
    stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
    for name, (function, call) in WAITS.items():
        if name == "page_fault" and name not in account:
            continue  # userfaultfd is not allowed here
        # The function does nothing but wait, so all of its time is off the CPU.
        shown = waited(stacks, function)
        expect(f"{name}: {shown} ns of {account[name]} by its own clock",
               0.98 * account[name] <= shown <= account[name], True)
        expect(f"{name}: time in {call}", waited(stacks, function, call) > 0, True)
    return stacks


def test_waits_have_their_times_and_reasons():
    with Workspace() as work:
        stacks = check_times_and_reasons(work, recorded(work, "--off-cpu-min", "0"))
        # A read that the disk has served at once does not wait: its thread is only preempted.
        disk = [stack for stack in stacks if "WaitForDisk" in frames(stack) and
                not stack.endswith(("preempted", "runnable"))]
        if disk:
            expect("waits for the disk",
                   any("pread64 file (uninterruptible)" in stack for stack in disk), True)


def test_uninterruptible_waits_have_kernel_frames():
    with Workspace() as work:
        account = recorded(work, "--off-cpu-min", "0")
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        wanted = [s for s in stacks if s.endswith("[off-CPU] vfork (uninterruptible)")
                  and "WaitInVfork" in s]
        expect(f"stacks of {list(stacks)}", len(wanted), 1)
        path = wanted[0].split(";")[:-1]
        # Of the child, which has the same user frames, this is no part.
        expect("kernel frames", "kernel_clone_[k]" in path, True)
        shown = sum(value for stack, value in stacks.items()
                    if "WaitInVfork" in stack and "kernel_clone_[k]" in stack)
        expect(f"{shown} ns of {account['vfork']} by its own clock",
               0.98 * account["vfork"] <= shown <= account["vfork"], True)
        # What the scheduler does, and the program that takes the stack there, are left out.
        expect("innermost frame", path[-1], "schedule_[k]")
        others = [s for s in stacks if s.endswith("[off-CPU] read pipe")]
        expect("kernel frames of others", [s for s in others if "_[k]" in s], [])


def test_a_page_fault_wakes_a_thread():
    with Workspace() as work:
        account = recorded(work, "--off-cpu-min", "10ms")
        if "page_fault" not in account:
            xpu_testing.skip("userfaultfd", "userfaultfd is not allowed here")
        capture = work.capture()
        main_tid = max(capture.off_cpu_waits, key=lambda w: w["end_ns"])["pid"]
        provider = account["page_fault_waker"]
        wait = longest_wait(capture.off_cpu_waits, provider, system_call=0)
        expect("kind of waker", wait["waker"], THREAD)
        expect("waker", wait["waker_tid"], main_tid)
        expect("stack of the waker", "WaitInPageFault" in "".join(
            xpu_testing.symbols_of(xpu_testing.workload("known_waits")).name_at(offset) or ""
            for offset in file_offsets(capture, wait)), True)
        wait = longest_wait(capture.off_cpu_waits, main_tid, waker_tid=provider, system_call=-2)
        expect("time", wait["end_ns"] - wait["start_ns"] >= 0.98 * account["page_fault"], True)


def test_a_stopped_thread_is_called_so():
    with Workspace() as work:
        xpu_testing.require_recording()
        work.record("--cpu-only", "--off-cpu", "--", "sh", "-c",
                    "sleep 60 & sleep 0.1; kill -STOP $!; sleep 0.3; kill -CONT $!; kill $!")
        stopped = [w for w in work.capture().off_cpu_waits if w["state"] == STOPPED]
        expect("stopped threads", len(stopped), 1)
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        expect("reason", sum(s.endswith("[off-CPU] stopped") for s in stacks), 1)


def test_waits_have_their_wakers():
    with Workspace() as work:
        account = recorded(work, "--off-cpu-min", "10ms")
        capture = work.capture()
        main_tid = max(capture.off_cpu_waits, key=lambda w: w["end_ns"])["pid"]
        for name in ("pipe", "event", "mutex", "condition", "join"):
            waker = account[f"{name}_waker"]
            wait = longest_wait(capture.off_cpu_waits, main_tid, waker_tid=waker)
            expect(f"{name}: kind of waker", wait["waker"], THREAD)
            expect(f"{name}: split", wait["start_ns"] < wait["ready_ns"] <= wait["end_ns"], True)
        of_mutex = wait_for_mutex(capture, main_tid, account)
        expect("name of the waker", of_mutex["waker_name"], "holder")
        sleep = longest_wait(capture.off_cpu_waits, main_tid, system_call=230)
        expect("a timer ends a sleep", sleep["waker"], INTERRUPT)


def test_wakers_have_stacks():
    with Workspace() as work:
        account = recorded(work, "--off-cpu-min", "10ms")
        capture = work.capture()
        main_tid = max(capture.off_cpu_waits, key=lambda w: w["end_ns"])["pid"]
        of_mutex = wait_for_mutex(capture, main_tid, account)
        names = [xpu_testing.symbols_of(xpu_testing.workload("known_waits")).name_at(offset)
                 for offset in file_offsets(capture, of_mutex)]
        expect_in("stack of the waker", "ReleaseMutex", names)


def file_offsets(capture, wait):
    """Of the frames of the waker's stack that are in its program."""
    for frame in wait["waker_stack"]:
        address = int(frame[1:], 16) - 1
        mapping = capture.mapping_at(wait["waker_pid"], address, wait["ready_ns"])
        if mapping and mapping["path"].endswith("known_waits"):
            yield address - mapping["start_address"] + mapping["file_offset"]


def test_states_add_up_to_the_lifetime():
    for minimum in ("0", "50ms"):
        with Workspace() as work:
            account = recorded(work, "--off-cpu-min", minimum)
            capture = work.capture()
            main_tid = max(capture.off_cpu_waits, key=lambda w: w["end_ns"])["pid"]
            waits = [w for w in capture.off_cpu_waits if w["tid"] == main_tid]
            off = sum(w["end_ns"] - w["start_ns"] for w in waits)
            sums = [s for s in capture.off_cpu_sums if s["tid"] == main_tid]
            off += sum(s["duration"] for s in sums if s["state"] != RUNNING)
            running = sum(s["duration"] for s in sums if s["state"] == RUNNING)
            times = {kind: max(e["time_ns"] for e in capture.process_events
                               if e["tid"] == main_tid and e["kind"] == kind)
                     for kind in (EXEC, EXIT)}
            lifetime = times[EXIT] - times[EXEC]
            # The kernel reports the exit before the thread's last moments, in which others may take
            # the processor: for the sums it is only known that the recording ended later.
            late = sum(max(0, w["end_ns"] - max(w["start_ns"], times[EXIT])) for w in waits)
            most = lifetime if minimum == "0" else (
                capture.recording_end[0]["time_ns"] - times[EXEC])
            expect(f"{off} - {late} + {running} ns of {lifetime}, at most {most}",
                   0.99 * lifetime <= off - late + running <= 1.01 * most, True)
            expect("the program's own account", account["lifetime"] <= lifetime, True)
            expect(f"running: {running} ns of {account['running']} by the kernel's account",
                   0.5 * account["running"] <= running, True)


def test_waits_that_have_not_ended_are_open():
    with Workspace() as work:
        xpu_testing.require_recording()
        work.record("--cpu-only", "--off-cpu", "-d", "300ms", "--",
                    xpu_testing.workload("known_waits"))
        capture = work.capture()
        expect("losses", losses(capture), {})
        last = max(capture.off_cpu_waits, key=lambda w: w["end_ns"])
        expect("open", [w for w in capture.off_cpu_waits if w["is_open"]], [last])
        begin = min(w["start_ns"] for w in capture.off_cpu_waits if w["tid"] == last["tid"])
        off = sum(w["end_ns"] - w["start_ns"] for w in capture.off_cpu_waits
                  if w["tid"] == last["tid"])
        sums = sum(s["duration"] for s in capture.off_cpu_sums if s["tid"] == last["tid"])
        expect("states add up to the end", off + sums >= last["end_ns"] - begin, True)
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        expect("where it waits", sum("WaitIn" in stack for stack in stacks) > 0, True)


def test_the_whole_system_has_all_states():
    with Workspace() as work:
        xpu_testing.require_recording()
        result = work.record("--cpu-only", "--off-cpu", "-a", "-d", "300ms")
        expect(f"exit status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        # Other programs may lose what is no matter of this test, such as symbols of a file that cannot
        # be read. Of a thread that ends just when the recording does, a time may be in no sum. A
        # machine that compiles ends many.
        seen = len(capture.off_cpu_waits) + sum(s["count"] for s in capture.off_cpu_sums)
        few = {name: count for name, count in losses(capture).items() if name.startswith("off_cpu")
               and (name != "off_cpu_not_summed" or count > max(10, 0.05 * seen))}
        expect("losses", few, {})
        times = {}
        for wait in capture.off_cpu_waits:
            times[wait["tid"]] = times.get(wait["tid"], 0) + wait["end_ns"] - wait["start_ns"]
        for each in capture.off_cpu_sums:
            times[each["tid"]] = times.get(each["tid"], 0) + each["duration"]
        # This process waits for the recorder meanwhile, once it has started it; others do not run at
        # all.
        [(whole, threads)] = Counter(times.values()).most_common(1)
        own = times[os.getpid()]
        expect(f"{whole} ns", whole >= 280_000_000, True)
        expect("threads with the same time", threads > 3, True)
        expect(f"{own} ns of this process", own >= whole // 2, True)


def test_short_waits_are_in_sums():
    with Workspace() as work:
        recorded(work, "--off-cpu-min", "50ms")
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        short = stacks["known_waits;[off-CPU] blocked, short"]
        # 20 sleeps of 1 ms, and what else waits for a short time; on a busy machine a few get long.
        expect(f"{short} ns", 10_000_000 <= short, True)
        expect("times below the minimum",
               all(w["end_ns"] - w["start_ns"] >= 50_000_000
                   for w in work.capture().off_cpu_waits), True)


def test_a_minimum_of_zero_leaves_running_time_in_sums():
    with Workspace() as work:
        recorded(work, "--off-cpu-min", "0")
        expect("sums", {s["state"] for s in work.capture().off_cpu_sums}, {RUNNING})
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        expect("short sleeps", waited(stacks, "WaitShortly", "clock_nanosleep") >= 10_000_000, True)


def test_a_recording_that_is_switched_off_has_no_wrong_stacks():
    """A thread may end its wait while the waits that have not ended are listed."""
    xpu_testing.require_recording()
    with Workspace() as work:
        control = work.file("control")
        os.mkfifo(control)
        recorder = subprocess.Popen(
            [xpu_testing.find("record/xpu-record"), "-o", work.file("capture.xpu"), "--cpu-only",
             "--off-cpu", "--off-cpu-min", "0", "--control", f"fifo:{control}", "--",
             xpu_testing.workload("known_waits"), "--cycles", "3000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        commands = os.open(control, os.O_WRONLY)
        while recorder.poll() is None:
            for command in (b"disable\n", b"enable\n"):
                time.sleep(0.01)
                with contextlib.suppress(BrokenPipeError):
                    os.write(commands, command)
        os.close(commands)
        recorder.communicate()
        capture = work.capture()
        open_waits = [w for w in capture.off_cpu_waits if w["is_open"]]
        expect(f"{len(open_waits)} open waits", len(open_waits) > 20, True)
        stacks = folded("--mode", "off", work.file("capture.xpu"))
        expect("waits in code that does not wait",
               [s for s in stacks if "WorkShortly" in frames(s) and
                not s.endswith(("preempted", "runnable"))], [])
        if "off_cpu_events_missed" not in capture.losses():
            expect("waits without system call",
                   [w for w in open_waits if w["state"] == BLOCKED and w["system_call"] < 0], [])


def test_each_part_has_its_own_sums():
    xpu_testing.require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "--off-cpu", "--off-cpu-min", "0", "--rotate-size", "1M",
                             "--", xpu_testing.workload("ping_pong"), "--rounds=300000",
                             timeout=300)
        expect(f"exit status ({result.stderr})", result.returncode, 0)
        parts = sorted(work.path.glob("capture.*.xpu"))
        expect(f"{len(parts)} parts", len(parts) > 1, True)
        previous = None
        for path in parts:
            dump = xpu_testing.report("--dump", str(path))
            sums = [dict(field.split("=", 1) for field in line.split(" ")[1:])
                    for line in dump.splitlines() if line.startswith("off_cpu_sum ")]
            sums = [s for s in sums if s["state"] == "running"]
            # Threads may end just before the last part begins.
            least = 0 if path == parts[-1] else 2
            expect(f"{path.name}: running times", len({s["tid"] for s in sums}) >= least, True)
            if not sums:
                continue
            end = max(int(s["time_ns"]) for s in sums)
            if previous is not None:
                most = max(int(s["duration"]) for s in sums)
                expect(f"{path.name}: ran {most} of {end - previous} ns", most <= end - previous,
                       True)
            previous = end


def test_our_own_programs_have_names():
    """They are unloaded when the recording ends, and their time is not the program's."""
    xpu_testing.require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "--off-cpu", "-F", "999", "--",
                             xpu_testing.workload("ping_pong"), "--rounds=200000")
        expect(f"exit status ({result.stderr})", result.returncode, 0)
        names = [symbol["name"] for symbol in work.capture().kernel_symbols]
        expect("BPF programs", any(name.startswith("bpf_prog_") for name in names), True)


def test_a_deadlock_shows_both_threads_and_their_locks():
    check_deadlock(["deadlock"])


def test_a_deadlock_of_robust_mutexes():
    check_deadlock(["deadlock", "--robust"])


def test_a_deadlock_of_read_write_locks():
    """A thread that reads waits for one word of the lock, one that writes for another."""
    check_deadlock(["deadlock", "--rwlock"], words={"left_holder": 8, "right_holder": 12})


def test_a_deadlock_in_a_pid_namespace():
    check_deadlock(["deadlock"], namespace=["unshare", "--pid", "--fork", "--kill-child"])


def own_numbers(pid):
    """Of the threads of a process, by their numbers in their own pid namespace."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as status:
            numbers = next(line for line in status if line.startswith("NSpid:")).split()
        found[int(numbers[-1])] = int(tid)
    return found


LEAST_SEEN_NS = 150_000_000  # of 300 ms


def check_deadlock(command, namespace=(), words=None):
    xpu_testing.require_recording()
    with Workspace() as work:
        program = subprocess.Popen([*namespace, xpu_testing.workload(command[0]), *command[1:]],
                                   stdout=subprocess.PIPE, text=True)
        try:
            account = json.loads(program.stdout.readline())
            pid = program.pid
            if namespace:
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                    pid = int(children.read())
            numbers = own_numbers(pid)
            for holder in ("left_holder", "right_holder"):
                account[holder] = numbers[account[holder]]
            wait_until_asleep(account["left_holder"])
            wait_until_asleep(account["right_holder"])
            result = work.record("--cpu-only", "--off-cpu", "-p", str(pid), "-d", "300ms")
            expect(f"exit status ({result.stderr})", result.returncode, 0)
        finally:
            program.kill()
            program.communicate()
        capture = work.capture()
        expect("losses", losses(capture), {})
        expect("threads", len(capture.off_cpu_waits), 3)
        for holder, wanted in (("left_holder", "right"), ("right_holder", "left")):
            wait = longest_wait(capture.off_cpu_waits, account[holder])
            expect(f"{holder}: open", wait["is_open"], 1)
            expect(f"{holder}: lock", wait["argument"],
                   account[wanted] + (words[holder] if words else 0))
            expect(f"{holder}: holder", wait["lock_holder"], account[f"{wanted}_holder"])
            # From when the recorder first looks, which is later on a slow machine.
            expect(f"{holder}: time", wait["end_ns"] - wait["start_ns"] >= LEAST_SEEN_NS, True)
        # The main thread waits for the first one to end.
        expect("joined", longest_wait(capture.off_cpu_waits, pid)["lock_holder"],
               account["left_holder"])
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        expect_in("summary", "deadlock  first/", xpu_testing.report(work.file("capture.xpu")))
        for function in ("LeftThenRight", "RightThenLeft"):
            expect(function, waited(stacks, function, "futex") >= LEAST_SEEN_NS, True)
            expect(f"{function}: kernel frames",
                   [s for s in stacks if function in frames(s) and "futex_wait_[k]" not in s], [])


HANGING_PYTHON = """
import threading
left, right, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def left_then_right():
    with left:
        both.wait()
        with right: pass
def right_then_left():
    with right:
        both.wait()
        print(threading.main_thread().native_id, flush=True)
        with left: pass
threads = [threading.Thread(target=run) for run in (left_then_right, right_then_left)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_a_python_program_that_hangs_shows_its_functions():
    record_python_test.require_python()
    with Workspace() as work:
        program = subprocess.Popen([record_python_test.PYTHON, work.file("hang.py", HANGING_PYTHON)],
                                   stdout=subprocess.PIPE, text=True)
        try:
            program.stdout.readline()
            for tid in os.listdir(f"/proc/{program.pid}/task"):
                wait_until_asleep(tid)
            result = work.record("--cpu-only", "--off-cpu", "-p", str(program.pid), "-d", "250ms")
            expect(f"exit status ({result.stderr})", result.returncode, 0)
        finally:
            program.kill()
            program.communicate()
        stacks = folded("--mode", "off", "--unit", "ns", work.file("capture.xpu"))
        for function in ("hang.py:left_then_right", "hang.py:right_then_left", "hang.py:<module>"):
            expect(function, waited(stacks, function, "futex") >= 200_000_000, True)
            expect(f"{function}: interpreter",
                   [s for s in stacks if function in s and "_PyEval" in s], [])


def wait_until_asleep(tid):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with open(f"/proc/{tid}/syscall", encoding="ascii") as call:
            if call.read().startswith("202 "):
                return
        time.sleep(0.01)
    raise AssertionError(f"{tid} does not wait for a lock")


def test_an_overload_is_counted_exactly():
    xpu_testing.require_recording()
    rounds = 150_000
    with Workspace() as work:
        recorder = subprocess.Popen(
            [xpu_testing.find("record/xpu-record"), "-o", work.file("capture.xpu"), "--cpu-only",
             "--off-cpu", "--off-cpu-min", "0", "--", "sh", "-c",
             "kill -STOP $PPID; exec \"$@\"", "sh", xpu_testing.workload("ping_pong"),
             f"--rounds={rounds}", "--bound"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        account = json.loads(recorder.stdout.readline())
        os.kill(recorder.pid, signal.SIGCONT)
        recorder.communicate(timeout=PATIENCE_S)
        capture = work.capture()
        counts = losses(capture)
        expect("kinds of losses", set(counts) <= {"off_cpu_ring_full", "off_cpu_not_summed",
                                                  "off_cpu_wakers_dropped"}, True)
        expect("the ring was full", counts.get("off_cpu_ring_full", 0) > 0, True)
        lost = counts["off_cpu_ring_full"] + counts.get("off_cpu_not_summed", 0)
        program = {e["pid"] for e in capture.process_events if e["name"] == "ping_pong"}
        produced = lost + sum(1 for w in capture.off_cpu_waits if w["pid"] in program)
        produced += sum(s["count"] for s in capture.off_cpu_sums
                        if s["pid"] in program and s["state"] != RUNNING)
        # Every time in which a thread did not run began with a switch, or with its creation. The
        # program's start and end are in its own account only in part.
        expect(f"{produced} times for {account['switches']} switches",
               account["switches"] <= produced <= account["switches"] + 200, True)


def test_a_capture_without_off_cpu_time_says_so():
    with Workspace() as work:
        xpu_testing.require_recording()
        work.record("--cpu-only", "--", "true")
        result = xpu_testing.run_report("--folded", "--mode", "off", work.file("capture.xpu"))
        expect_in("message", "the capture has no off-CPU time", result.stderr)
        expect_in("hint", "xpu-record --off-cpu records it", result.stderr)


if __name__ == "__main__":
    xpu_testing.main(globals())
