"""What recording costs: each workload alone, under CUPTI alone, under xpu-record in its modes and
under other profilers, in rounds; prints a Markdown table for each workload.

    cmake --install build/release --prefix build/gpu/xpu --strip    where xpu is built
    python3 tests/bench/overhead/overhead.py                        on the machine with the GPU

The Python that runs it, or that of --python, is the one with PyTorch. What is missing in --programs
is built with nvcc. A table is printed as soon as its workload is done, --json is kept up to date
after each run, and SIGINT and SIGTERM end the measuring, not the printing: nothing is lost.
"""

import argparse
import fnmatch
import json
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine
import turns
import ways
import workloads
from bench import Bench, say

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent


class Stopped(Exception):
    """The user wants the tables now."""


def stop(*_unused):
    raise Stopped


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
    with tempfile.TemporaryDirectory(prefix="xpu-overhead-") as directory:
        tools = tools_of(options, pathlib.Path(directory))
        about = machine.lines(shlex.join(["overhead.py", *sys.argv[1:]]), tools.recorder,
                              tools.python, tools.cuda, options.simulated)
        print("\n".join(about), end="\n\n", flush=True)
        benches = [(turns.TurnsBench if w.python else Bench)(w, matches(options.way, ";"), options,
                                                             tools) for w in chosen]

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
