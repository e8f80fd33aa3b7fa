"""When a recording is on, and whom it is of: pauses, delays, durations, ranges, running processes."""

import json
import os
import signal
import subprocess
import time

from record_gpu_test import record, simulated
from xpu_testing import (Workspace, expect, expect_in, find, main, recorder, require_recording,
                         workload)

STACK_COMPLETE = 32  # format/stack.h

SPIN = """
import sys, time, threading
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for i in range(10000): pass
"""


def start(work, *arguments, **options):
    """xpu-record in the background."""
    return subprocess.Popen([recorder(), "-o", work.file("capture.xpu"), *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=work.path, **options)


def finish(process, status=0):
    output, errors = process.communicate(timeout=60)
    expect(f"status ({errors})", process.returncode, status)
    return output, errors


def wait_for(condition, what):
    deadline = time.monotonic() + 20
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
    expect("samples outside of the recorded time", outside, [])


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


def test_duration_ends_the_recording_not_the_program():
    require_recording()
    with Workspace() as work:
        begin = time.monotonic()
        process = start(work, "-d", "500ms", "--", "sh", "-c",
                        "echo begun; sleep 2.5; echo done; exit 7")
        wait_for(lambda: os.path.exists(work.file("capture.xpu")) and
                 process.stderr.readline() != "", "the announcement")
        announced = time.monotonic() - begin
        output, _ = finish(process, 7)
        expect("output", output, "begun\ndone\n")
        expect("announced before the program's end", announced < 2.2, True)
        capture = work.capture()
        expect("duration", 0.45 < duration_of(capture) < 1.0, True)
        expect("losses", capture.losses(), {})
        expect("switches", switches(capture), [])


def test_signals_after_the_end_of_the_recording():
    require_recording()
    with Workspace() as work:
        process = start(work, "-d", "0.3", "--", "sh", "-c",
                        "trap 'echo usr2' USR2; trap 'echo term; exit 3' TERM; echo begun;"
                        "while :; do sleep 0.05; done")
        expect("begun", process.stdout.readline(), "begun\n")
        expect_in("announcement", "events", process.stderr.readline())
        process.send_signal(signal.SIGUSR2)
        expect("forwarded", process.stdout.readline(), "usr2\n")
        process.send_signal(signal.SIGTERM)
        expect("output", finish(process, 3)[0], "term\n")


def test_delay():
    require_recording()
    with Workspace() as work:
        result = work.record("-F", "499", "--delay", "500ms", "--", "python3", "-c",
                             SPIN + "spin(1.2)")
        expect("status", result.returncode, 0)
        capture = work.capture()
        expect("switches", switches(capture), [(False, "--delay"), (True, "--delay")])
        begin = capture.recording_switches[0]["time_ns"]
        expect("off from the begin", begin, capture.recording_info[0]["start_ns"])
        first = capture.recording_switches[1]["time_ns"]
        expect("delay", 0.49 < (first - begin) / 1e9 < 0.7, True)
        expect("samples", len(capture.cpu_samples) > 50, True)
        expect_samples_inside(capture)


def test_duration_counts_from_the_delay():
    require_recording()
    with Workspace() as work:
        result = work.record("-D", "0.4", "-d", "0.4", "sleep", "1.5")
        expect("status", result.returncode, 0)
        capture = work.capture()
        expect("end", 0.75 < duration_of(capture) < 1.2, True)


def test_signal_pauses_and_resumes():
    require_recording()
    with Workspace() as work:
        process = start(work, "-F", "499", "--control", "signal", "--", "python3", "-c",
                        SPIN + "print('begun', flush=True); spin(2)")
        expect("begun", process.stdout.readline(), "begun\n")
        for _ in range(4):
            time.sleep(0.3)
            process.send_signal(signal.SIGUSR2)
        finish(process)
        capture = work.capture()
        expect("switches", switches(capture),
               [(on, "SIGUSR2") for on in (False, True, False, True)])
        expect_samples_inside(capture)
        spans = recorded_times(capture)
        for begin, end in spans:
            inside = [s for s in capture.cpu_samples if begin <= s["time_ns"] <= end]
            expect("samples in each part", len(inside) > 0, True)


def test_signal_is_forwarded_without_control():
    require_recording()
    with Workspace() as work:
        process = start(work, "--", "sh", "-c",
                        "trap 'echo usr2; exit 4' USR2; echo begun; while :; do sleep 0.05; done")
        expect("begun", process.stdout.readline(), "begun\n")
        process.send_signal(signal.SIGUSR2)
        expect("output", finish(process, 4)[0], "usr2\n")
        expect("switches", switches(work.capture()), [])


def test_probe_hits_of_a_pause_are_not_recorded():
    """The program says itself, through the fifo, between which of its calls the pause is."""
    require_recording()
    with Workspace() as work, Fifos(work) as fifos:
        source = work.file("hits.c", """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void before(void) { __asm__ volatile(""); }
__attribute__((noinline)) void inside(void) { __asm__ volatile(""); }
__attribute__((noinline)) void behind(void) { __asm__ volatile(""); }
static void tell(const char* path, const char* ack, const char* word) {
  char answer[4];
  int fd = open(path, O_WRONLY), from = open(ack, O_RDONLY);
  if (write(fd, word, strlen(word)) < 0 || read(from, answer, 4) != 4) _exit(1);
  close(fd); close(from);
}
int main(int count, char** words) {
  (void)count;
  for (int i = 0; i < 11; i++) before();
  tell(words[1], words[2], "disable\\n");
  for (int i = 0; i < 1000; i++) inside();
  tell(words[1], words[2], "enable\\n");
  for (int i = 0; i < 13; i++) behind();
  return 0;
}
""")
        program = work.file("hits")
        subprocess.run(["cc", "-O1", "-o", program, source], check=True)
        result = work.record(fifos.option, "--cpu-only",
                             *[w for f in ("before", "inside", "behind")
                               for w in ("--uprobe", f"{program}:{f}")],
                             "--", program, fifos.control, fifos.ack)
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        hits = {1: 0, 2: 0, 3: 0}
        for hit in capture.probe_hits:
            hits[hit["probe"]] += 1
        expect("hits", hits, {1: 11, 2: 0, 3: 13})
        expect("losses", capture.losses(), {})
        expect("switches", switches(capture), [(False, "fifo"), (True, "fifo")])


def test_fifo_starts_stops_and_survives_garbage():
    require_recording()
    with Workspace() as work, Fifos(work) as fifos:
        process = start(work, fifos.option, "--delay=-1", "--", "sh", "-c",
                        "sleep 1.5; echo done; exit 5")
        fifos.ask("ping")
        fifos.send("\x1b[2Jrubbish\nenablex\n" + "x" * 100000 + "\n")
        fifos.ask("enable")
        fifos.ask("stop")
        output, errors = finish(process, 5)
        expect("output", output, "done\n")
        expect_in("complaint", "unknown command: '?[2Jrubbish'", errors)
        expect("switches", switches(work.capture()), [(False, "--delay"), (True, "fifo")])


def test_usage():
    with Workspace() as work:
        plain = work.file("plain", "")
        for arguments, message in (
                (["-d", "soon", "true"], "--duration: 'soon' is no time"),
                (["-d", "0", "true"], "nothing is recorded in no time"),
                (["-D", "5parsec", "true"], "--delay: '5parsec' is no time"),
                (["--delay=-1", "true"], "--delay=-1 waits for --control"),
                (["--control", "telepathy", "true"], "--control: 'telepathy'"),
                (["--control", f"fifo:{plain}", "true"], "is no fifo"),
                (["--control", "fifo:/nowhere/fifo", "true"], "No such file"),
                (["--capture-range", "nvtx:", "true"], "name of a range"),
                (["--capture-range", "cuda", "true"], "--capture-range: 'cuda'"),
                (["--capture-range", "cudaProfilerApi", "--no-inject", "true"], "--no-inject"),
                (["--capture-range", "nvtx:step", "--no-nvtx", "true"], "--no-nvtx"),
                (["-p", "1", "-a"], "without -p"),
                (["-p", "nobody"], "'nobody' is no process id"),
                (["-p", str(os.getpid()), "--gpu-only"], "--gpu-only needs a library"),
                (["-p", str(os.getpid()), "--capture-range", "cudaProfilerApi"],
                 "--capture-range needs a library"),
                (["-a", "--gpu-memory"], "--gpu-memory needs a library"),
                ([], "no program to record")):
            result = work.record(*arguments)
            expect(f"status of {arguments}", result.returncode, 125)
            expect_in(f"error of {arguments}", message, result.stderr)
            expect("hint", "hint: " in result.stderr, True)


def test_processes_that_cannot_be_recorded():
    require_recording()
    with Workspace() as work:
        program = subprocess.Popen(["python3", "-c", SPIN + "t = threading.Thread(target=spin, args"
                                    "=(20,)); t.start(); print(t.native_id, flush=True)"],
                                   stdout=subprocess.PIPE, text=True)
        thread = int(program.stdout.readline())
        zombie = subprocess.Popen(["true"])
        time.sleep(0.3)
        for pid, message in ((thread, f"a thread of process {program.pid}"),
                             (zombie.pid, "has ended already"), (2, "a thread of the kernel"),
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
        expect("status of the program", program.wait(timeout=30), 9)
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
        program = subprocess.Popen(["python3", "-c", SPIN + "spin(60)"])
        time.sleep(0.5)
        for how in (["-d", "500ms"], [fifos.option]):
            # As a shell does for what runs in the background.
            process = start(work, "-p", str(program.pid), *how,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
            if how == [fifos.option]:
                fifos.ask("ping")  # it records
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
            _, errors = finish(process)
            expect_in("what is out of reach", "GPU activity is not recorded", errors)
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
        program = subprocess.Popen(["python3", "-c", SPIN + "spin(30)"])
        time.sleep(0.2)
        result = work.record("--cpu-only", "-p", str(program.pid), "--", "sh", "-c",
                             "sleep 0.5; exit 6")
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
        expect("hits", len(hits) > 5, True)
        program.kill()
        program.wait()


def test_whole_system():
    require_recording()
    with Workspace() as work, Fifos(work) as fifos:
        before = subprocess.Popen(["python3", "-c", SPIN + "spin(60)"])
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


def kernels_of(capture):
    counts = {}
    for kernel in capture.kernels:
        name = next(n for n in ("first_inside_kernel", "first_outside_kernel", "outside_kernel",
                                "inside_kernel") if n in kernel["name"])
        counts[name] = counts.get(name, 0) + 1
    return counts


def check_capture_range(option, by, *more):
    require_recording()
    with Workspace() as work:
        result = record(work, "--capture-range", option, *more, workload("capture_ranges"),
                        "--by", by)
        truth = json.loads(result.stdout)["kernels"]
        capture = work.capture()
        expect("kernels", kernels_of(capture),
               {name: truth[name] for name in ("inside_kernel", "first_inside_kernel")})
        stacks = {(e["instance"], e["correlation_id"]) for e in capture.launch_stacks}
        without = [k for k in capture.kernels
                   if (k["instance"], k["correlation_id"]) not in stacks]
        expect("kernels without a stack", without, [])
        expect("losses", capture.losses(), {})
        expect("switches", [on for on, _ in switches(capture)], [False] + [True, False] * 3)
        expect_samples_inside(capture)


def test_profiler_api():
    check_capture_range("cudaProfilerApi", "profiler")


def test_profiler_api_with_the_marker():
    check_capture_range("cudaProfilerApi", "profiler", "--launch-stacks", "uprobe")


def test_nvtx_ranges():
    check_capture_range("nvtx:step@app", "push")
    check_capture_range("nvtx:step@*", "start")


def test_capture_range_that_never_opens():
    require_recording()
    with Workspace() as work:
        result = record(work, "--capture-range", "nvtx:step", workload("capture_ranges"), "--by",
                        "push")
        expect_in("message", "nothing was recorded: no range nvtx:step began", result.stderr)
        capture = work.capture()
        expect("kernels", len(capture.kernels), 0)
        expect("losses", capture.losses(), {})


def test_duration_with_a_gpu():
    require_recording()
    with Workspace() as work:
        begin = time.monotonic()
        process = start(work, "-d", "1", workload("empty_launches"), "--launches", "200000",
                        env=simulated(XPU_FAKE_KERNEL_NS="20000"))
        output, errors = finish(process)
        expect("ran on", time.monotonic() - begin > 3, True)
        truth = json.loads(output)
        capture = work.capture()
        expect("a part", 0 < len(capture.kernels) < truth["launches"], True)
        launches = {e["correlation_id"] for e in capture.launch_stacks}
        kernels = {e["correlation_id"] for e in capture.kernels}
        expect("kernels without their launch", kernels - launches, set())
        expect(f"losses ({errors})", capture.losses(), {})


if __name__ == "__main__":
    main(globals())
