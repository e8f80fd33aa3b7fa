"""When a recording is on: pauses, delays, durations."""

import json
import os
import pathlib
import signal
import subprocess
import time

from control_testing import (SPIN, Fifos, duration_of, expect_samples_inside, finish,
                             recorded_times, start, switches, wait_for)
from simulated_gpu import simulated
from xpu_testing import Workspace, expect, expect_in, main, require_recording, skip, workload


def test_duration_ends_the_recording_not_the_program():
    require_recording()
    with Workspace() as work:
        process = start(work, "-d", "500ms", "--", "sh", "-c",
                        "echo begun; read line; echo done; exit 7", stdin=subprocess.PIPE)
        # The program cannot have ended when the recording is announced.
        wait_for(lambda: os.path.exists(work.file("capture.xpu")) and
                 process.stderr.readline() != "", "the announcement")
        process.stdin.write("go\n")
        output, _ = finish(process, 7)
        expect("output", output, "begun\ndone\n")
        capture = work.capture()
        expect("duration", duration_of(capture) > 0.45, True)
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
        expect("delay", (first - begin) / 1e9 > 0.49, True)
        expect("samples", len(capture.cpu_samples) > 50, True)
        expect_samples_inside(capture)


def test_duration_counts_from_the_delay():
    require_recording()
    with Workspace() as work:
        process = start(work, "-D", "0.4", "-d", "0.4", "sh", "-c", "read line",
                        stdin=subprocess.PIPE)
        # The program ends later than the recording.
        expect_in("announcement", "events", process.stderr.readline())
        process.stdin.write("go\n")
        finish(process)
        expect("end", duration_of(work.capture()) > 0.75, True)


def test_duration_with_a_gpu():
    require_recording()
    with Workspace() as work:
        begin = time.monotonic()
        process = start(work, "-d", "2", workload("empty_launches"), "--launches", "200000",
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


def wait_until_taken(pid, number):
    """A second signal that comes before that would be one with it."""
    bit = 1 << number - 1
    while any(int(line.split()[1], 16) & bit
              for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
              if line.startswith(("SigPnd:", "ShdPnd:"))):
        time.sleep(0.01)


def wait_for_cpu_time(pid, seconds):
    """Until the process has used so much more."""
    def used():
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    end = used() + seconds
    wait_for(lambda: used() >= end, f"{seconds} s of CPU time")


def test_signal_pauses_and_resumes():
    require_recording()
    with Workspace() as work:
        process = start(work, "-F", "499", "--control", "signal", "--", "python3", "-c",
                        SPIN + """
import os
print(os.getpid(), flush=True)
while not os.path.exists('end'): spin(0.02)
""")
        program = int(process.stdout.readline())
        for _ in range(4):
            wait_for_cpu_time(program, 0.1)
            process.send_signal(signal.SIGUSR2)
            wait_until_taken(process.pid, signal.SIGUSR2)
        wait_for_cpu_time(program, 0.1)
        work.file("end", "")
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


def test_root_is_not_controlled_by_others():
    """A FIFO, or a link to one, that another user has put into a directory of root, as into /tmp."""
    if os.geteuid() != 0:
        skip("root", "only root is somebody whom others would control")
    with Workspace() as work:
        os.mkfifo(work.path / "own")
        os.mkfifo(work.path / "fifo")
        os.symlink("own", work.path / "link")
        for name in ("fifo", "link"):
            os.chown(work.path / name, 65534, 65534, follow_symlinks=False)
            for how in (f"fifo:{work.file(name)}", f"fifo:{work.file('own')},{work.file(name)}"):
                result = work.record("--cpu-only", "--control", how, "true")
                expect(f"status of {how}", result.returncode, 125)
                expect_in(f"error of {how}", "user 65534", result.stderr)


def test_usage():
    with Workspace() as work:
        plain = work.file("plain", "")
        for arguments, message in (
                (["-d", "soon", "true"], "--duration: invalid duration 'soon'"),
                (["-d", "0", "true"], "--duration: must be greater than 0"),
                (["-D", "5parsec", "true"], "--delay: invalid duration '5parsec'"),
                (["--delay=-1", "true"], "--delay=-1 needs --control"),
                (["--control", "telepathy", "true"], "--control: invalid value 'telepathy'"),
                (["--gpu-only", "--control", f"fifo:{plain}", "true"], "is not a FIFO"),
                (["--gpu-only", "--control", "fifo:/nowhere/fifo", "true"], "No such file"),
                (["--capture-range", "nvtx:", "true"], "name of the range"),
                (["--capture-range", "cuda", "true"], "--capture-range: invalid value 'cuda'"),
                (["--capture-range", "cudaProfilerApi", "--no-inject", "true"], "--no-inject"),
                (["--capture-range", "nvtx:step", "--no-nvtx", "true"], "--no-nvtx"),
                (["-p", "1", "-a"], "cannot be combined with -p"),
                (["-p", "nobody"], "invalid process id 'nobody'"),
                (["-p", str(os.getpid()), "--no-attach", "--gpu-only"],
                 "--gpu-only needs the injected library"),
                (["-p", str(os.getpid()), "--capture-range", "nvtx:step"],
                 "--capture-range=nvtx does not work in a process that is already running"),
                (["-a", "--gpu-memory"], "--gpu-memory needs the injected library"),
                ([], "no program to record")):
            result = work.record(*arguments)
            expect(f"status of {arguments}", result.returncode, 125)
            expect_in(f"error of {arguments}", message, result.stderr)
            expect("hint", "hint: " in result.stderr, True)


if __name__ == "__main__":
    main(globals())
