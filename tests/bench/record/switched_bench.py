"""What CPU samples alone cost a program, next to perf record: they are switched on and off in turns
within one run, which shows a thousandth where the runs of sampling_bench.py differ by hundredths.

    sudo python3 tests/bench/record/switched_bench.py [ROUNDS [WORK...]]

A cell is the CPU time of a piece of work with sampling over that of the next one without, in
per cent more; the mean of the middle three fifths of all pairs, with its standard error. What is
recorded either way (processes, mappings) is in neither. Of "handing over" it is that of one of the
two processes.
"""

import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import bench_tools as tools
from switched_work import WORKS

PAIRS = 30


def recorders(directory):
    control = f"fifo:{directory}/control,{directory}/answer"
    cases = {}
    for rate in ("99", "999"):
        cases[f"xpu-record, {rate} Hz"] = [tools.RECORDER, "-q", "--cpu-only", "-F", rate,
                                           "--control", control, "-o", f"{directory}/out.xpu", "--"]
        if shutil.which("perf"):
            cases[f"perf record -g (frame pointers), {rate} Hz"] = [
                "perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", rate, "-D", "-1", "--control",
                control, "-o", f"{directory}/out.perf", "--"]
    return cases


def measure(directory, recorder, work):
    result = pathlib.Path(directory) / "result.json"
    result.unlink(missing_ok=True)
    script = pathlib.Path(__file__).with_name("switched_work.py")
    # Not by its status: perf 6.1 aborts now and then when the program closes the fifos at its end.
    subprocess.run([*recorder, sys.executable, str(script), str(result), f"{directory}/control",
                    f"{directory}/answer", str(PAIRS), work], check=False, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    if not result.exists():
        sys.exit(f"{' '.join(recorder)}: the program did not come to its end")
    return [on / off for on, off in json.loads(result.read_text())]


def cell(rounds):
    ratios = sorted(ratio for measured in rounds for ratio in measured)
    middle = ratios[len(ratios) // 5:len(ratios) - len(ratios) // 5]
    error = statistics.stdev(middle) / math.sqrt(len(middle))
    return f"{100 * (statistics.mean(middle) - 1):.1f} ± {100 * error:.1f}"


def main():
    tools.require_root()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    works = sys.argv[2:] or list(WORKS)
    print(f"{tools.machine()}; {rounds} rounds", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        for name in ("control", "answer"):
            os.mkfifo(f"{directory}/{name}")
        cases = recorders(directory)
        columns = {work: tools.interleave(list(cases), rounds,
                                          lambda case, work=work: measure(directory, cases[case], work))
                   for work in works}
        tools.print_table("More CPU time with sampling, %", ["recorder", *works],
                          [[case, *(cell(columns[work][case]) for work in works)]
                           for case in cases])


if __name__ == "__main__":
    main()
