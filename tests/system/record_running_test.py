"""Processes that run already, with -p and -a."""

import os
import signal
import subprocess
import time

from control_testing import SPIN, Fifos, finish, start
from xpu_testing import (PATIENCE_S, STACK_COMPLETE, Workspace, expect, expect_in, main,
                         require_recording)

ATTACHED = SPIN + """
import os
done = False
def thread():
    while not done: spin(0.1)
threads = [threading.Thread(target=thread, name=f"worker{i}") for i in range(2)]
for t in threads: t.start()
print("begun", flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    spin(0.7)
    os._exit(0)
spin(0.7)
os.waitpid(child, 0)
done = True
for t in threads: t.join()
print(child, flush=True)
sys.exit(9)
"""


def test_processes_that_cannot_be_recorded():
    require_recording()
    with Workspace() as work:
        program = subprocess.Popen(["python3", "-c", SPIN + "t = threading.Thread(target=spin, args"
                                    "=(600,)); t.start(); print(t.native_id, flush=True)"],
                                   stdout=subprocess.PIPE, text=True)
        thread = int(program.stdout.readline())
        zombie = subprocess.Popen(["true"])
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        for pid, message in ((thread, f"a thread of process {program.pid}"),
                             (zombie.pid, "has already exited"), (2, "is a kernel thread"),
                             (4194303, "no such process")):
            if pid == 2 and not os.path.exists("/proc/2"):
                continue
            result = work.record("-p", str(pid))
            expect(f"status of {pid}", result.returncode, 125)
            expect_in(f"error of {pid}", message, result.stderr)
        zombie.wait()
        program.kill()
        program.wait()


def expect_whole_stacks(capture, pids):
    samples = [s for s in capture.cpu_samples if s["pid"] in pids]
    expect("there are samples", len(samples) > 20, True)
    cut = [s for s in samples if not s["stack_flags"] & STACK_COMPLETE]
    # A process that begins or ends has a moment without a stack, or without a table for it.
    expect(f"cut stacks of {len(samples)}: {cut[:5]}", len(cut) <= max(4, len(samples) // 100), True)


def test_running_process_with_threads_and_a_child():
    require_recording()
    with Workspace() as work, Fifos(work) as fifos:
        program = subprocess.Popen(["python3", "-c", ATTACHED], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        expect("begun", program.stdout.readline(), "begun\n")
        process = start(work, "-F", "499", "--cpu-only", "-p", str(program.pid), fifos.option)
        fifos.ask("ping")  # it records
        time.sleep(0.5)
        program.stdin.write("go\n")
        program.stdin.flush()
        child = int(program.stdout.readline())
        expect("status of the program", program.wait(timeout=PATIENCE_S), 9)
        _, errors = finish(process)  # the last of them has ended
        capture = work.capture()
        expect("processes", {s["pid"] for s in capture.cpu_samples}, {program.pid, child})
        threads = {s["tid"] for s in capture.cpu_samples if s["pid"] == program.pid}
        expect("threads", len(threads), 3)
        expect_whole_stacks(capture, {program.pid, child})
        losses = capture.losses()
        expect(f"losses ({errors})", losses, {})
        expect("name", [e["name"] for e in capture.process_events
                        if e["pid"] == program.pid and e["kind"] == 0], ["python3"])


def test_running_process_is_left_alone():
    require_recording()
    with Workspace() as work, Fifos(work) as fifos:
        program = subprocess.Popen(["python3", "-c", SPIN + "spin(600)"])
        time.sleep(0.5)
        for how in (["-d", "500ms"], [fifos.option]):
            # As a shell does for what runs in the background.
            process = start(work, "-F", "999", "-p", str(program.pid), *how,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
            if how == [fifos.option]:
                fifos.ask("ping")  # it records
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
            _, errors = finish(process)
            expect("GPU activity of what uses none", "GPU activity" in errors, False)
            expect("it runs", program.poll(), None)
            capture = work.capture()
            expect("processes", {s["pid"] for s in capture.cpu_samples}, {program.pid})
            command = capture.recording_info[0]["command_line"]
            expect("how it was started", command.split("'")[0], "python3 -c ")
        program.kill()
        program.wait()


def test_running_process_as_long_as_a_command():
    require_recording()
    with Workspace() as work:
        program = subprocess.Popen(["python3", "-c", SPIN + "spin(600)"])
        time.sleep(0.2)
        result = work.record("--cpu-only", "-F", "999", "-p", str(program.pid), "--", "sh",
                             "-c", "sleep 0.5; exit 6")
        expect("status", result.returncode, 6)
        expect("processes", {s["pid"] for s in work.capture().cpu_samples}, {program.pid})
        program.kill()
        program.wait()


def test_probes_in_a_running_process():
    require_recording()
    with Workspace() as work:
        program = subprocess.Popen(["sh", "-c", "while :; do /bin/true; sleep 0.05; done"])
        time.sleep(0.1)
        result = work.record("--cpu-only", "--tracepoint", "sched:sched_process_exec", "-p",
                             str(program.pid), "-d", "1")
        expect(f"status ({result.stderr})", result.returncode, 0)
        hits = work.capture().probe_hits
        expect("hits", len(hits) > 0, True)
        program.kill()
        program.wait()


def test_whole_system():
    require_recording()
    with Workspace() as work, Fifos(work) as fifos:
        before = subprocess.Popen(["python3", "-c", SPIN + "spin(600)"])
        time.sleep(0.2)
        process = start(work, "-a", "--cpu-only", "-F", "299", fifos.option)
        fifos.ask("ping")  # it records
        after = subprocess.Popen(["python3", "-c", SPIN + "spin(1.5)"])
        after.wait()
        process.send_signal(signal.SIGINT)
        finish(process)
        before.kill()
        before.wait()
        capture = work.capture()
        pids = {s["pid"] for s in capture.cpu_samples}
        expect("both programs", {before.pid, after.pid} <= pids, True)
        expect_whole_stacks(capture, {before.pid, after.pid})
        names = {e["pid"]: e["name"] for e in capture.process_events if e["kind"] in (0, 2)}
        expect("names", (names[before.pid], names[after.pid]), ("python3", "python3"))


if __name__ == "__main__":
    main(globals())
