"""What the benches of the recorder share: finding the binaries, measuring runs, tables.

The programs of a comparison run one after the other, round by round, so that a machine whose speed
drifts, or whose other users come and go, disturbs all of them alike. What counts is CPU time where
others share the machine. Cells are medians, with the least and the most in brackets.
"""

import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("XPU_BUILD_DIR") or HERE.parents[2] / "build/release")
RECORDER = str(BUILD / "record/xpu-record")
REPORT = str(BUILD / "report/xpu-report")


def built(name):
    path = BUILD / name
    if not path.exists():
        sys.exit(f"{path}: not built")
    return str(path)


def require_root():
    if os.geteuid() != 0:
        sys.exit("to be run as root")


def machine():
    """The hardware, the kernel and the day, in a line."""
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                  if line.startswith("model name")), "unknown CPU")
    virtual = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True,
                             check=False).stdout.strip() if pathlib.Path(
                                 "/usr/bin/systemd-detect-virt").exists() else ""
    return (f"{datetime.date.today()}, {os.cpu_count()} x {model}"
            f"{', ' + virtual if virtual not in ('', 'none') else ''}, Linux {os.uname().release}")


class Run:
    """A program that ran: its status, its and its children's CPU time, and the most memory that
    `watched` (its own process, not its children) held."""

    def __init__(self, command, env=None, stdout=subprocess.DEVNULL, watch=False, cwd=None):
        self.begin = time.monotonic()
        process = subprocess.Popen(command, env={**os.environ, **(env or {})}, stdout=stdout,
                                   stderr=subprocess.PIPE, cwd=cwd)
        self.peak_bytes = 0
        self.programs = {}  # BPF programs by type: (runs, seconds)
        watching = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(process.pid, watching))
        if watch:
            watcher.start()
        output = threading.Thread(target=self._read, args=(process,))
        output.start()
        read = process.stdout.read() if stdout == subprocess.PIPE else b""
        _, status, usage = os.wait4(process.pid, 0)
        self.end = time.monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
        watching.set()
        if watch:
            watcher.join()
        output.join()
        self.stdout = read.decode()
        self.cpu = usage.ru_utime + usage.ru_stime
        self.wall = self.end - self.begin
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)}: status {process.returncode}\n{self.stderr}")

    def _read(self, process):
        self.stderr = process.stderr.read().decode()

    def _watch(self, pid, done):
        while not done.wait(0.1):
            try:
                self._look(pid)
            except (FileNotFoundError, ProcessLookupError):
                return

    def _look(self, pid):
        # Of the execed program only: VmHWM begins anew with it.
        for line in open(f"/proc/{pid}/status", encoding="utf-8"):
            if line.startswith("VmHWM:"):
                self.peak_bytes = int(line.split()[1]) * 1024
        programs = {}
        for entry in os.scandir(f"/proc/{pid}/fdinfo"):
            text = pathlib.Path(entry.path).read_text(encoding="utf-8")
            fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
            if "run_time_ns" in fields:
                programs[fields["prog_id"]] = (int(fields["prog_type"]), int(fields["run_cnt"]),
                                               int(fields["run_time_ns"]) / 1e9)
        if programs:
            self.programs = programs


class OwnUsage:
    """A prefix for commands after which the program's own CPU and wall time are known, whatever
    records it: what it forks is counted too."""

    def __init__(self, directory):
        self.path = pathlib.Path(directory) / "own_usage.json"

    def prefix(self):
        return [sys.executable, "-S", str(HERE / "own_usage.py"), str(self.path)]

    def take(self):
        own = json.loads(self.path.read_text())
        self.path.unlink()
        return own


def interleave(cases, rounds, measure):
    """{case: [what measure(case) returned in each round]}; which comes first changes."""
    results = {case: [] for case in cases}
    for round_number in range(rounds):
        turn = round_number % len(cases)
        for case in cases[turn:] + cases[:turn]:
            results[case].append(measure(case))
            print(f"round {round_number + 1} of {rounds}: {case}", file=sys.stderr, flush=True)
    return results


def cell(values, form="{:.2f}"):
    values = list(values)
    middle = form.format(statistics.median(values))
    if len(values) < 2:
        return middle
    return f"{middle} ({form.format(min(values))}..{form.format(max(values))})"


def ratios(values, baseline):
    """Of each round its own: what disturbs a round disturbs both."""
    return [value / base for value, base in zip(values, baseline)]


def print_table(title, header, rows):
    print(f"\n{title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(field) for field in row) + " |")
    print(flush=True)
