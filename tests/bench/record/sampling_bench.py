"""What sampling a program's CPU costs it, and all in all, next to perf record.

    sudo python3 tests/bench/record/sampling_bench.py [ROUNDS [PROGRAM...]]

Three programs of fixed work: Python (deep stacks of an interpreter without frame pointers), a
compiler run (many functions), awk (shallow stacks). "program" is its own CPU time over that
of the same round without recording; "with recorder" adds what the recorder itself used. Wall
time says something on idle machines only.

The last column is not a difference of two long times but counted by the kernel: the time in our
sampling program (sysctl kernel.bpf_stats_enabled) over the program's CPU time.
"""

import contextlib
import pathlib
import shutil
import sys
import tempfile

import bench_tools as tools

PERF_EVENT = 7  # BPF_PROG_TYPE_PERF_EVENT

PYTHON_WORK = """
import json, re
def walk(depth, value):
    if depth: return walk(depth - 1, value)
    text = json.dumps({str(i): [value, {'k': i}] for i in range(400)}, indent=1)
    return len(re.findall(r'"(\\d+)"', text)) + sum(sorted(map(len, json.loads(text))))
print(sum(walk(25, i) for i in range(2600)))
"""

COMPILED = """
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
int main(int count, char** words) {
  std::map<std::string, std::vector<int>> all;
  std::regex pattern("(a|b)*c[0-9]+");
  for (int i = 0; i < count; ++i) {
    if (std::regex_match(words[i], pattern)) all[words[i]].push_back(i);
  }
  std::vector<std::pair<std::string, std::vector<int>>> sorted(all.begin(), all.end());
  std::sort(sorted.begin(), sorted.end());
  return static_cast<int>(sorted.size());
}
"""


def recorders(directory):
    xpu = [tools.RECORDER, "-q", "--cpu-only", "-o", f"{directory}/out.xpu"]
    perf = ["perf", "record", "-q", "-e", "cpu-clock", "-o", f"{directory}/out.perf"]
    cases = {"nothing": []}
    for rate in ("99", "999"):
        cases[f"xpu-record, {rate} Hz"] = [*xpu, "-F", rate, "--"]
        if shutil.which("perf"):
            cases[f"perf record -g (frame pointers), {rate} Hz"] = [*perf, "-F", rate, "-g", "--"]
            cases[f"perf record --call-graph dwarf, {rate} Hz"] = [
                *perf, "-F", rate, "--call-graph", "dwarf", "--"]
    return cases


def programs(directory):
    source = pathlib.Path(directory) / "compiled.cpp"
    source.write_text(COMPILED)
    return {
        "Python": [sys.executable, "-c", PYTHON_WORK],
        "g++ -O2": ["g++", "-O2", "-std=c++20", "-c", str(source), "-o", f"{directory}/compiled.o"],
        "awk": ["awk", "BEGIN { for (i = 0; i < 60000000; ++i) x += i % 7; print x }"],
    }


@contextlib.contextmanager
def bpf_statistics():
    switch = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text()
    switch.write_text("1")
    try:
        yield
    finally:
        switch.write_text(before)


def sampling_seconds(run):
    return sum(seconds for kind, _, seconds in run.programs.values() if kind == PERF_EVENT)


def measure(directory, recorder, program):
    usage = tools.OwnUsage(directory)
    run = tools.Run([*recorder, *usage.prefix(), *program], watch=bool(recorder), cwd=directory)
    own = usage.take()
    return {"program": own["cpu"], "wall": own["wall"], "all": run.cpu - own["own"],
            "bpf": sampling_seconds(run) / own["cpu"]}


def main():
    tools.require_root()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{tools.machine()}; {rounds} rounds", flush=True)
    with tempfile.TemporaryDirectory() as directory, bpf_statistics():
        cases = recorders(directory)
        for name, program in programs(directory).items():
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            results = tools.interleave(list(cases), rounds,
                                       lambda case: measure(directory, cases[case], program))
            base = results["nothing"]
            rows = []
            for case, measured in results.items():
                def over(field, of):
                    return tools.cell(tools.ratios([m[field] for m in measured],
                                                   [b[of] for b in base]), "{:.3f}")
                in_bpf = tools.cell([100 * m["bpf"] for m in measured], "{:.2f}")
                rows.append([case, over("program", "program"), over("all", "program"),
                             over("wall", "wall"),
                             in_bpf if case.startswith("xpu") else ""])
            seconds = tools.cell([b["program"] for b in base])
            tools.print_table(f"{name}: {seconds} s of CPU without recording",
                              ["recorder", "program", "with recorder", "wall",
                               "% in our BPF program"], rows)


if __name__ == "__main__":
    main()
