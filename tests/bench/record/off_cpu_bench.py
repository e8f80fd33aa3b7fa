"""What recording context switches costs a program, next to offcputime of libbpf-tools and to perf
sched record, and whether their totals agree.

    sudo python3 tests/bench/record/off_cpu_bench.py [--rounds N] [--switches N]

Cost: two threads pass a byte to and fro on one CPU, so each pass is a context switch; all that a
recorder adds to a switch is in the time of one. Totals: each program is recorded by all three at
once; times that have not ended are left out, because the others do not see them. The same
definition as xpu-record's have the switches that perf has recorded, from one that a thread leaves
its CPU in to the next one that it gets a CPU in: these are added up here, since perf's own report
drops waits. The programs run on one CPU: of two, perf 6.1 confuses whose switches these are. Loader:
worker processes hand batches over, as those of a training program do.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench_tools as tools

# States in the dump that are not compared. The programs are stopped until all recorders are ready.
RUNNING, LEFT_OUT = "running", ("unknown", "stopped")
START = ["sh", "-c", 'kill -STOP $$; exec "$@"', "sh"]


def start_stopped(command):
    """A program that begins when it gets SIGCONT."""
    program = subprocess.Popen([*START, *command], stdout=subprocess.PIPE, text=True)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    return program


@contextlib.contextmanager
def recorders(commands, settle=2.0):
    """Background recorders that are attached when the body runs, and end by SIGINT."""
    running = [subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
               for command, output in commands]
    try:
        if running:
            time.sleep(settle)
        yield
    finally:
        for recorder in running:
            recorder.send_signal(signal.SIGINT)
        for recorder in running:
            recorder.wait()


def xpu_record(directory, pid, *options):
    return [tools.RECORDER, "-q", "--cpu-only", *options, "-o", f"{directory}/out.xpu", "-p",
            str(pid)]


def perf_sched(directory):
    return ["perf", "sched", "record", "-q", "-o", f"{directory}/out.perf"]


def ways(directory):
    found = {"nothing": lambda pid: [],
             "xpu-record, CPU samples": lambda pid: [xpu_record(directory, pid)],
             "xpu-record --off-cpu": lambda pid: [xpu_record(directory, pid, "--off-cpu")],
             "xpu-record --off-cpu --off-cpu-min 0":
                 lambda pid: [xpu_record(directory, pid, "--off-cpu", "--off-cpu-min", "0")]}
    if shutil.which("offcputime"):
        found["offcputime -p"] = lambda pid: [["offcputime", "-p", str(pid)]]
    if shutil.which("perf"):
        found["perf sched record"] = lambda pid: [perf_sched(directory)]
    return found


def ns_per_switch(commands, switches):
    program = start_stopped([tools.built("tests/workloads/ping_pong"), f"--rounds={switches // 2}",
                             "--bound"])
    with recorders([(command, subprocess.DEVNULL) for command in commands(program.pid)]):
        program.send_signal(signal.SIGCONT)
        return json.loads(program.communicate()[0])["ns_per_switch"]


def print_cost(directory, rounds, switches):
    found = ways(directory)
    results = tools.interleave(list(found), rounds,
                               lambda way: ns_per_switch(found[way], switches))
    rows = []
    for way, times in results.items():
        added = [time_ns - base for time_ns, base in zip(times, results["nothing"])]
        rows.append([way, tools.cell(times, "{:.0f}"), tools.cell(added, "{:.0f}")])
    tools.print_table(f"A context switch, {switches} of them",
                      ["recorder", "ns", "added, ns"], rows)


def xpu_times(directory, pid):
    """All times off the CPU that ended, in seconds, and the threads of the process."""
    dump = subprocess.run([tools.REPORT, "--dump", f"{directory}/out.xpu"], check=True,
                          capture_output=True, text=True).stdout
    total, threads = 0, set()
    for line in dump.splitlines():
        kind, *fields = line.split(" ")
        if kind not in ("off_cpu_wait", "off_cpu_sum"):
            continue
        values = dict(field.split("=", 1) for field in fields if "=" in field)
        if values["pid"] != str(pid):
            continue  # a child, which offcputime leaves out
        threads.add(int(values["tid"]))
        if values["state"] in LEFT_OUT:
            continue
        if kind == "off_cpu_wait" and values["is_open"] == "0":
            total += int(values["end_ns"]) - int(values["start_ns"])
        if kind == "off_cpu_sum" and values["state"] != RUNNING:
            total += int(values["duration"])
    return total / 1e9, threads


def offcputime_total(text):
    """Each stack ends with a line that has microseconds alone."""
    return sum(int(line) for line in text.splitlines() if re.fullmatch(r"\s+\d+", line)) / 1e6


def switches_total(directory, threads):
    """The times off the CPU between the switches that perf has recorded, and how many they are."""
    text = subprocess.run(["perf", "script", "-i", f"{directory}/out.perf", "--ns", "-F",
                           "time,event,trace"], check=True, capture_output=True, text=True).stdout
    since, total, count = {}, 0, 0
    for line in text.splitlines():
        found = re.match(r"\s*(\d+)\.(\d+):\s+sched:(sched_switch|sched_wakeup_new): (.*)", line)
        if not found:
            continue
        time_ns = int(found.group(1)) * 1_000_000_000 + int(found.group(2))
        if found.group(3) == "sched_wakeup_new":
            thread = int(re.search(r" pid=(\d+)", found.group(4)).group(1))
            since[thread] = time_ns
            continue
        pair = re.search(r"prev_pid=(\d+) .*next_pid=(\d+)", found.group(4))
        previous, following = int(pair.group(1)), int(pair.group(2))
        if following in threads and following in since:
            total += time_ns - since.pop(following)
            count += 1
        since[previous] = time_ns
    return total / 1e9, count


def perf_total(directory, pid):
    text = subprocess.run(["perf", "sched", "timehist", "-i", f"{directory}/out.perf", "-p",
                           str(pid)], check=True, capture_output=True, text=True).stdout
    total = 0
    for line in text.splitlines():
        # time [cpu] task[tid/pid] wait delay run, in milliseconds
        found = re.match(r"\s*\d+\.\d+ \[\d+\]\s+\S.*?\s+(\d+\.\d+)\s+\d+\.\d+\s+\d+\.\d+", line)
        total += float(found.group(1)) if found and "[-1/" not in line else 0
    return total / 1e3


def wait_until_recording(commands, answers):
    with open(commands, "w", encoding="ascii") as to, open(answers, encoding="ascii") as answer:
        print("ping", file=to, flush=True)
        answer.readline()


def totals(directory, command):
    program = start_stopped(["taskset", "-c", "0", *command])
    stacks = pathlib.Path(directory) / "stacks.txt"
    commands, answers = (f"{directory}/{name}" for name in ("commands", "answers"))
    for fifo in (commands, answers):
        pathlib.Path(fifo).unlink(missing_ok=True)
        os.mkfifo(fifo)
    control = ["--control", f"fifo:{commands},{answers}"]
    with open(stacks, "w", encoding="utf-8") as output:
        tools_here = [(xpu_record(directory, program.pid, "--off-cpu", *control),
                       subprocess.DEVNULL)]
        if shutil.which("offcputime"):
            tools_here.append((["offcputime", "-p", str(program.pid)], output))
        if shutil.which("perf"):
            tools_here.append((perf_sched(directory), subprocess.DEVNULL))
        with recorders(tools_here):
            wait_until_recording(commands, answers)
            program.send_signal(signal.SIGCONT)
            program.communicate()
            time.sleep(0.5)
    xpu, threads = xpu_times(directory, program.pid)
    switches, count = switches_total(directory, threads) if shutil.which("perf") else (0, 0)
    offcputime = timehist = 0
    if shutil.which("offcputime"):
        offcputime = offcputime_total(stacks.read_text(encoding="utf-8"))
    if shutil.which("perf"):
        timehist = perf_total(directory, program.pid)
    more = f", {1e6 * (offcputime - xpu) / count:+.2f} us a switch" if offcputime and count else ""
    return [f"{xpu:.4f}", beside(switches, xpu, digits=4), beside(offcputime, xpu, more),
            beside(timehist, xpu)]


def beside(value, xpu, more="", digits=2):
    return f"{value:.4f} ({100 * (value / xpu - 1):+.{digits}f} %{more})" if value else "-"


def print_totals(directory):
    python = "import threading, time, queue\nq = queue.Queue()\n" \
             "def work():\n    while q.get(): time.sleep(0.002)\n" \
             "threads = [threading.Thread(target=work) for _ in range(4)]\n" \
             "[t.start() for t in threads]\n[q.put(1) for _ in range(1000)]\n" \
             "[q.put(0) for _ in threads]\n[t.join() for t in threads]\n"
    disk = "import mmap, os, sys\n" \
           "file = os.open(os.path.realpath(sys.executable), os.O_RDONLY | os.O_DIRECT)\n" \
           "page = mmap.mmap(-1, 1 << 16)\nfor _ in range(5000): os.preadv(file, [page], 0)\n"
    pipe = "import os, threading, time\nreads, writes = os.pipe()\n" \
           "def work():\n    while os.read(reads, 1) != b'0': pass\n" \
           "thread = threading.Thread(target=work)\nthread.start()\n" \
           "for _ in range(2000):\n    time.sleep(0.001)\n    os.write(writes, b'1')\n" \
           "os.write(writes, b'0')\nthread.join()\n"
    programs = {"known_waits": [tools.built("tests/workloads/known_waits")],
                "ping_pong": [tools.built("tests/workloads/ping_pong"), "--rounds=20000"],
                "Python, four threads": [sys.executable, "-c", python],
                "Python, disk": [sys.executable, "-c", disk],
                "Python, pipe": [sys.executable, "-c", pipe],
                "Python, main process of four": [sys.executable, "-c", LOADER]}
    tools.print_table("Time off the CPU of all threads, seconds",
                      ["program", "xpu-record", "switches that perf recorded", "offcputime",
                       "perf sched timehist"],
                      [[name, *totals(directory, command)] for name, command in programs.items()])


LOADER = """
import multiprocessing as mp, time
def work(orders, batches):
    while orders.get() is not None:
        until = time.process_time() + 0.004
        while time.process_time() < until: pass
        batches.put(bytes(20000))
orders, batches = mp.Queue(), mp.Queue()
workers = [mp.Process(target=work, args=(orders, batches)) for _ in range(4)]
for worker in workers: worker.start()
begin = time.monotonic()
for _ in range(400): orders.put(1)
for _ in range(400): batches.get()
print(time.monotonic() - begin)
for worker in workers: orders.put(None)
for worker in workers: worker.join()
"""


def print_loader(directory, rounds):
    record = [tools.RECORDER, "-q", "--cpu-only", "-o", f"{directory}/out.xpu"]
    cases = {"nothing": [], "xpu-record, CPU samples": [*record, "--"],
             "xpu-record --off-cpu": [*record, "--off-cpu", "--"]}
    results = tools.interleave(list(cases), rounds, lambda case: float(subprocess.run(
        [*cases[case], sys.executable, "-c", LOADER], check=True, capture_output=True,
        text=True).stdout))
    rows = [[case, tools.cell(times, "{:.3f}"),
             tools.cell(tools.ratios(times, results["nothing"]), "{:.3f}")]
            for case, times in results.items()]
    tools.print_table("400 batches from four worker processes of Python",
                      ["recorder", "seconds", "x nothing"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--switches", type=int, default=400_000)
    options = parser.parse_args()
    tools.require_root()
    print(tools.machine())
    with tempfile.TemporaryDirectory() as directory:
        print_totals(directory)
        print_cost(directory, options.rounds, options.switches)
        print_loader(directory, 2 * options.rounds)


if __name__ == "__main__":
    main()
