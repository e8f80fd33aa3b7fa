"""What recording costs: each workload alone, under CUPTI alone, under xpu-record in its modes and
under other profilers, in rounds; prints a Markdown table for each workload.

    cmake --install build/release --prefix build/gpu/xpu --strip    where xpu is built
    python3 tests/bench/overhead/overhead.py                        on the machine with the GPU

The Python that runs it, or that of --python, is the one with PyTorch. What is missing in --programs
is built with nvcc. A table is printed as soon as its workload is done, --json is kept up to date
after each run, and SIGINT and SIGTERM end the measuring, not the printing: nothing is lost.
"""

import argparse
import dataclasses
import fnmatch
import json
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import figures
import machine
import ways
import workloads

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
RUNS = 3  # of each way at least, where there is time
SUMMARY = re.compile(r"xpu-record: (\d+) events, ")  # no loss, and not why a program failed


class Stopped(Exception):
    """The user wants the tables now."""


class Failed(Exception):
    """Why a run gave no time."""


@dataclasses.dataclass
class Result:
    """Of one way to run one workload."""

    floor: str
    times: dict = dataclasses.field(default_factory=dict)       # ns a unit, by round
    seconds: dict = dataclasses.field(default_factory=dict)     # of the whole process
    file_bytes: list = dataclasses.field(default_factory=list)  # a unit, warm-up included
    records: list = dataclasses.field(default_factory=list)     # that were made, a unit
    notes: list = dataclasses.field(default_factory=list)
    why: str = ""  # it has no time, or no more


def say(text):
    print(text, file=sys.stderr, flush=True)


def stop(*_unused):
    raise Stopped


def size_of(path):
    if path.is_dir():
        return sum(size_of(part) for part in path.iterdir())
    return path.stat().st_size if path.exists() else 0


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def execute(command, timeout):
    """The program's account of its time, the lines said beside it, and the seconds that it took."""
    begin = time.monotonic()
    try:
        process = subprocess.Popen(command.arguments, env=ways.environment_of(command), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise Failed(str(error)) from None
    try:
        output, errors = process.communicate(timeout=timeout)
    except BaseException as error:
        # A recorder passes it on to its program.
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Failed(f"took more than {timeout:.0f} s") from None
        raise
    seconds = time.monotonic() - begin
    said = errors.strip().splitlines()
    if process.returncode != 0:
        reasons = [line for line in said if not SUMMARY.match(line)] or ["without a word"]
        raise Failed(f"status {process.returncode}: {reasons[-1]}")
    for line in reversed(output.splitlines()):
        if line.startswith("{") and '"timed_ns"' in line:
            return json.loads(line), said, seconds
    raise Failed("the program printed no time")


def floor_records(report):
    """It is no floor where it does not record."""
    words = report.read_text().split() if report.exists() else ["off"]
    if words[0] != "on":
        raise Failed("CUPTI did not start")
    if words[1] == "0":
        raise Failed("CUPTI started, and no record came")
    return int(words[1])


class Bench:
    """One workload under its ways."""

    def __init__(self, workload, chosen, options, tools):
        self.workload = workload
        self.options = options
        self.tools = tools
        self.ways = ways.ways_of(workload, chosen)
        self.results = {way.name: Result(way.floor) for way in self.ways}
        self.units = workload.first_units
        self.run_seconds = options.run_seconds * workload.run_scale

    def look(self):
        """What cannot be run here is said before it costs the others time."""
        missing = self.tools.why_not_python("torch") if self.workload.python else ""
        for way in self.ways:
            try:
                if missing:
                    raise ways.NotAvailable(f"not installed: {missing}")
                self.command(way)
            except ways.NotAvailable as error:
                self.results[way.name].why = str(error)

    def command(self, way):
        units = max(1, int(self.units * way.scale))
        plain = self.workload.command(units, self.tools.programs, self.tools.python)
        return way.command(plain, self.workload, self.tools)

    def run(self, way, timeout):
        """Nanoseconds a unit and seconds in all; notes what else is to be told."""
        command = self.command(way)
        for left in (command.output, command.floor_report):
            if left is not None:
                remove(left)
        account, said, seconds = execute(command, timeout)
        if account["timed_units"] <= 0:
            raise Failed("the program timed nothing")
        result = self.results[way.name]
        made = account["timed_units"] + self.workload.warmup * self.workload.units_per_count
        if command.floor_report is not None:
            result.records.append(floor_records(command.floor_report) / made)
        if command.output is not None:
            result.file_bytes.append(size_of(command.output) / made)
        if isinstance(way, ways.Recorder):
            result.records += [int(found[1]) / made for line in said
                               if (found := SUMMARY.match(line))]
            result.notes = [line for line in said if not SUMMARY.match(line)]  # of losses
        return account["timed_ns"] / account["timed_units"], seconds

    def attempt(self, way, number, deadline):
        result = self.results[way.name]
        timeout = max(20.0, min(self.options.timeout, deadline - time.monotonic()))
        try:
            ns, seconds = self.run(way, timeout)
        except Failed as error:
            result.why = f"failed: {error}"
        else:
            result.times[number] = ns
            result.seconds[number] = seconds
            say(f"{self.workload.name}: round {number + 1}: {way.name}: "
                f"{figures.time_text(ns)} ({seconds:.1f} s)")
            return
        say(f"{self.workload.name}: {way.name}: {result.why}")

    def warm_up(self, deadline):
        """Files into the page cache, unwind tables onto the disk; and how many units a run has."""
        for name in ("nothing", "xpu-record"):
            if name not in self.results or self.results[name].why:
                continue
            way = next(way for way in self.ways if way.name == name)
            result = self.results[name]
            self.attempt(way, 0, deadline)
            if result.why:
                continue
            if name == "nothing":
                wanted = int(self.run_seconds * 1e9 / result.times[0])
                self.units = max(self.workload.units_per_count, wanted)
            # A first run is none to be counted.
            self.results[name] = Result(way.floor)

    def can_run(self):
        return not self.results["nothing"].why

    def measure(self, deadline, after_run):
        self.warm_up(deadline)
        if not self.can_run():
            return
        order = random.Random(self.workload.name)
        active = [way for way in self.ways if not self.results[way.name].why]
        for number in range(self.options.rounds):
            for way in active:
                if time.monotonic() > deadline:
                    return
                self.attempt(way, number, deadline)
                after_run()
            costs = {way.name: max(self.results[way.name].seconds.values()) for way in self.ways
                     if self.results[way.name].times and not self.results[way.name].why}
            names = figures.next_round(costs, number + 1, min(RUNS, self.options.rounds),
                                       deadline - time.monotonic())
            active = [way for way in self.ways if way.name in names]
            # No way is always behind the same one.
            order.shuffle(active)
            if not active:
                return

    def seconds_expected(self):
        """Roughly, to share the time out: PyTorch takes seconds to start."""
        start = 6 if self.workload.python else 1
        return sum(start + self.run_seconds * way.scale for way in self.ways
                   if not self.results[way.name].why)

    def table(self):
        unit = {"empty_launches": "launch", "transformer": "request", "graph": "replay",
                "copies": "copy", "llm_decode": "token"}.get(self.workload.program, "step")
        return figures.table(f"{self.workload.name}: {self.workload.title}", unit, self.results)

    def raw(self):
        return {name: dataclasses.asdict(result) for name, result in self.results.items()}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=480, help="for all of it (%(default)s)")
    parser.add_argument("--run-seconds", type=float, default=0.5,
                        help="that a program runs behind its warm-up, alone (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="at most (%(default)s)")
    parser.add_argument("--timeout", type=float, default=180, help="of one run (%(default)s)")
    parser.add_argument("--workload", default="*", metavar="GLOB,...",
                        help=", ".join(w.name for w in workloads.WORKLOADS))
    parser.add_argument("--way", default="*", metavar="GLOB;...",
                        help="rows of the table by name, such as 'xpu-record*'; those that they "
                        "are compared with come along")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the single figures")
    parser.add_argument("--xpu", type=pathlib.Path, default=ROOT / "build/gpu/xpu",
                        help="where xpu is installed (%(default)s)")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/gpu/bin",
                        help="where the programs are, or are built (%(default)s)")
    parser.add_argument("--python", default=sys.executable, help="one with PyTorch (%(default)s)")
    parser.add_argument("--cuda", type=pathlib.Path, default=pathlib.Path("/usr/local/cuda"),
                        help="the toolkit (%(default)s)")
    parser.add_argument("--simulated", type=pathlib.Path, metavar="BUILD",
                        help="try it out with a build folder's xpu and simulated device")
    return parser.parse_args(arguments)


def tools_of(options, scratch):
    if options.simulated:
        build = options.simulated.resolve()
        return ways.Machine(build / "tests/workloads", build / "record/xpu-record",
                            build / "tests/bench/overhead/libcupti_floor.so", options.python,
                            scratch, scratch)
    if shutil.which(str(options.cuda / "bin/nvcc")):
        # What fails to build is missing then, which the tables say.
        subprocess.run([pathlib.Path(__file__).with_name("build.sh"), options.programs],
                       env={**ways.os.environ, "CUDA_HOME": str(options.cuda)}, stdout=sys.stderr,
                       check=False)
    return ways.Machine(options.programs.resolve(), options.xpu.resolve() / "bin/xpu-record",
                        options.programs.resolve() / "libcupti_floor.so", options.python, scratch,
                        options.cuda)


def matches(patterns, separator):
    globs = patterns.split(separator)
    return lambda name: any(fnmatch.fnmatch(name, glob.strip()) for glob in globs)


def main():
    options = parse(sys.argv[1:])
    deadline = time.monotonic() + options.seconds
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    chosen = [w for w in workloads.WORKLOADS if matches(options.workload, ",")(w.name)]
    if not chosen:
        raise SystemExit(f"--workload {options.workload}: none has such a name")
    with tempfile.TemporaryDirectory(prefix="xpu-overhead-") as folder:
        tools = tools_of(options, pathlib.Path(folder))
        about = machine.lines(shlex.join(["overhead.py", *sys.argv[1:]]), tools.recorder,
                              tools.python, tools.cuda, options.simulated)
        print("\n".join(about), end="\n\n", flush=True)
        benches = [Bench(w, matches(options.way, ";"), options, tools) for w in chosen]

        for bench in benches:
            bench.look()

        def write_json():
            if options.json:
                options.json.write_text(json.dumps(
                    {"about": about,
                     "workloads": {b.workload.name: b.raw() for b in benches}}, indent=1))

        try:
            for i, bench in enumerate(benches):
                now = time.monotonic()
                try:
                    if bench.can_run():
                        rest = sum(b.seconds_expected() for b in benches[i:])
                        share = bench.seconds_expected() / rest
                        bench.measure(now + share * (deadline - now), write_json)
                finally:
                    print(bench.table(), flush=True)
                    write_json()
        except Stopped:
            say("stopped")


if __name__ == "__main__":
    main()
