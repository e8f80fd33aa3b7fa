"""Attaching to programs that run already, with a library that does nothing: the programs notice
nothing, whatever they do and whoever is killed in between. XPU_TEST_ATTACHES: how many at random
moments to a program of 16 threads."""

import os
import signal
import subprocess
import sys
import time

from xpu_testing import PATIENCE_S, expect, expect_in, find, main

ATTACHES = int(os.environ.get("XPU_TEST_ATTACHES", "60"))
STAGES = ["seized", "stopped", "frame written", "in first call", "area mapped", "in second call",
          "call returns", "released", "thread runs", "library copied", "offered"]
# What a call returns after its wait, and the error number.
CALLS = {"read": "1 0", "poll": "1 0", "select": "1 0", "epoll_wait": "1 0", "futex": "0 0",
         "sem_wait": "0 0", "sigtimedwait": "10 0", "accept": "0 0", "recv": "1 0",
         "recv-timeout": "1 0", "wait4": "0 0", "flock": "0 0", "semop": "0 0", "msgrcv": "1 0"}
LIMITS = {"poll-limit": "0 0", "ppoll-limit": "0 0", "select-limit": "0 0",
          "nanosleep-limit": "0 0", "clock_nanosleep-limit": "0 0",
          "clock_nanosleep-until-limit": "0 0", "futex-limit": "-1 110",
          "futex-until-limit": "-1 110", "sem_timedwait-limit": "-1 110"}


def drive(process, *options, count=1, timeout=PATIENCE_S,
          library="tests/system/libxpu_attach_library.so"):
    return subprocess.run([find("tests/system/xpu_attach_driver"), str(process.pid), find(library),
                           str(count), *map(str, options)],
                          capture_output=True, text=True, timeout=timeout)


def start(name, *arguments):
    process = subprocess.Popen([find(name), *arguments], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


def wait_until_asleep(process):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with open(f"/proc/{process.pid}/stat") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "S":
                return
        time.sleep(0.01)
    raise AssertionError("it does not wait")


def end(process):
    return (*process.communicate(timeout=PATIENCE_S), process.returncode)


def test_calls_without_limit_go_on():
    for call, wanted in CALLS.items():
        process = start("tests/system/xpu_attach_waits", call)
        wait_until_asleep(process)
        result = drive(process, count=3)
        expect(f"attaches to {call} ({result.stdout})", result.returncode, 0)
        expect(call, end(process), (wanted + "\n", "", 0))


def test_time_limits_are_kept():
    for call, wanted in LIMITS.items():
        process = start("tests/system/xpu_attach_waits", call)
        drive(process, "--pause-us", 50_000, count=30)  # some come when it has ended
        output = process.stdout.readline()
        expect(call, output, wanted + " in time\n")
        end(process)


def test_a_busy_program_notices_nothing():
    undisturbed = end(start("tests/system/xpu_attach_busy"))
    process = start("tests/system/xpu_attach_busy")
    result = drive(process, "--pause-us", 1000, count=ATTACHES, timeout=100 + ATTACHES)
    expect("the program", end(process), undisturbed)
    expect(f"attaches ({result.stdout})", (result.returncode, len(result.stdout.splitlines())),
           (0, ATTACHES))
    held = sorted(int(line.split()[0]) / 1e6 for line in result.stdout.splitlines())
    print(f"        {ATTACHES} attaches: a thread stood still for {held[len(held) // 2]:.3f} ms in "
          f"the median, {held[-1]:.3f} ms at most")


def test_the_recorder_is_killed_at_each_stage():
    for number, stage in enumerate(STAGES):
        for call, wanted in (("read", "1 0\n"), ("poll-limit", "0 0 in time\n")):
            process = start("tests/system/xpu_attach_waits", call)
            wait_until_asleep(process)
            result = drive(process, "--end-at", number)
            expect_in(f"status at {stage}", result.returncode, (-signal.SIGKILL, 0))
            if call == "poll-limit":
                expect(f"{call}, killed when {stage}", process.stdout.readline(), wanted)
                end(process)
            else:
                expect(f"{call}, killed when {stage}", end(process), (wanted, "", 0))


OPENS_SOCKETS = """
import select, socket, sys
print("running", flush=True)
pairs = []
while not select.select([sys.stdin], [], [], 0.01)[0]:
    if len(pairs) < 400: pairs.append(socket.socketpair())
for pair in pairs:
    for end in pair:
        end.setblocking(False)
        try:
            print(end.recv(1))
        except BlockingIOError:
            pass
"""


def test_the_recorder_stands_still_when_it_is_offered_a_connection():
    """The library has withdrawn by then, and its descriptor is another socket's."""
    process = subprocess.Popen([sys.executable, "-c", OPENS_SOCKETS], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    result = drive(process, "--stand-still-at", STAGES.index("offered"), "--seconds", 4,
                   library="cupti_inject/libxpu_inject.so")
    expect(f"status ({result.stdout})", result.returncode, 3)
    expect_in("reason", "xpu-record was stopped for too long", result.stdout)
    expect("the program", end(process), ("", "", 0))


# Takes memory, also where others have given some back, and looks whether it was written to.
MAPS_MEMORY = """
import mmap, select, sys
print("running", flush=True)
areas = []
while not select.select([sys.stdin], [], [], 0.005)[0]:
    areas.append(mmap.mmap(-1, 1 << 16, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
print(sum(bool(area.read().strip(b"\\0")) for area in areas))
"""


def test_a_recorder_that_stands_still_writes_to_nothing_else():
    """The thread that it has started waits for the library, gives up and ends."""
    process = subprocess.Popen([sys.executable, "-c", MAPS_MEMORY], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    result = drive(process, "--stand-still-at", STAGES.index("thread runs"), "--seconds", 12)
    expect(f"status ({result.stdout})", result.returncode, 3)
    expect_in("reason", "xpu-record was stopped for too long", result.stdout)
    expect("areas that were written to", end(process), ("0\n", "", 0))


def test_the_program_is_killed_at_each_stage():
    for number, stage in enumerate(STAGES):
        process = start("tests/system/xpu_attach_waits", "read")
        wait_until_asleep(process)
        result = drive(process, "--end-target-at", number)
        process.communicate(timeout=PATIENCE_S)
        # At a stage that does not occur it goes on.
        if result.returncode != 0:
            expect(f"status when {stage} ({result.stdout})", result.returncode, 3)


def test_two_at_once():
    process = start("tests/system/xpu_attach_busy")
    drivers = [subprocess.Popen([find("tests/system/xpu_attach_driver"), str(process.pid),
                                 find("tests/system/libxpu_attach_library.so"), "5"],
                                stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [driver.communicate(timeout=PATIENCE_S)[0] for driver in drivers]
    expect(f"status ({outputs})", [driver.returncode for driver in drivers], [0, 0])
    expect("the program", end(process)[1:], ("", 0))


def test_what_the_library_says_is_reported():
    process = start("tests/system/xpu_attach_waits", "read")
    wait_until_asleep(process)
    result = drive(process, "--session", 0)
    expect_in("the reason", "session 0 is refused", result.stdout)
    expect("the program", end(process), ("1 0\n", "", 0))


if __name__ == "__main__":
    main(globals())
