"""One workload under its ways, a process for each run."""

import dataclasses
import json
import random
import re
import shutil
import subprocess
import sys
import time

import figures
import ways

RUNS = 3  # of each way at least, where there is time
SUMMARY = re.compile(r"xpu-record: (\d+) events, ")  # no loss, and not why a program failed


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


def size_of(path):
    if path.is_dir():
        return sum(size_of(part) for part in path.iterdir())
    return path.stat().st_size if path.exists() else 0


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def account_of(line):
    """What a workload says of its time; None: the line is none of it."""
    return json.loads(line) if line.startswith("{") and '"timed_ns"' in line else None


def ns_of_unit(account):
    if account["timed_units"] <= 0:
        raise Failed("the program timed nothing")
    return account["timed_ns"] / account["timed_units"]


def why_it_failed(status, said):
    reasons = [line for line in said if not SUMMARY.match(line)] or ["without a word"]
    return Failed(f"status {status}: {reasons[-1]}")


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
        raise why_it_failed(process.returncode, said)
    for line in reversed(output.splitlines()):
        if (account := account_of(line)) is not None:
            return account, said, seconds
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
        self.run_seconds = options.run_seconds

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

    def command(self, way, tools=None):
        tools = tools or self.tools
        plain = self.workload.command(self.units, tools.programs, tools.python)
        return way.command(plain, self.workload, tools)

    def note(self, way, command, units, said):
        """What a finished process printed after its times."""
        result = self.results[way.name]
        made = units + self.workload.warmup * self.workload.units_per_count
        if command.floor_report is not None:
            result.records.append(floor_records(command.floor_report) / made)
        if command.output is not None and command.output.exists():
            result.file_bytes.append(size_of(command.output) / made)
        if isinstance(way, ways.Recorder):
            result.records += [int(found[1]) / made for line in said
                               if (found := SUMMARY.match(line))]
            result.notes = [line for line in said if not SUMMARY.match(line)]  # of losses

    def run(self, way, timeout):
        """Nanoseconds a unit and seconds in all; notes what else must be printed."""
        command = self.command(way)
        for left in (command.output, command.floor_report):
            if left is not None:
                remove(left)
        account, said, seconds = execute(command, timeout)
        self.note(way, command, account["timed_units"], said)
        return ns_of_unit(account), seconds

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
            # The order changes, so that no way always follows the same one.
            order.shuffle(active)
            if not active:
                return

    def seconds_expected(self):
        """Roughly, to share the time out."""
        return sum(1 + self.run_seconds for way in self.ways if not self.results[way.name].why)

    def table(self):
        unit = {"empty_launches": "launch", "transformer": "request", "graph": "replay",
                "copies": "copy", "llm_decode": "token"}.get(self.workload.program, "step")
        return figures.table(f"{self.workload.name}: {self.workload.title}", unit, self.results)

    def raw(self):
        return {name: dataclasses.asdict(result) for name, result in self.results.items()}
