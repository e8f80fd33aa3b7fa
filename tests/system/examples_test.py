"""The examples of the man pages and of the README are run as they stand there, and succeed.

What they need lies in the directory where they run: ./app, ./server and scripts that use the simulated
device, captures. Times are a twentieth, and pid 1234 is that of ./server."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from other_users import readable_copy
from xpu_testing import (PATIENCE_S, Workspace, expect, find, main, require_recording, run_alone,
                         skip, workload)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMMAND = re.compile(r"(sudo |ssh \w+ )?xpu-(record|report)\b")
WRITES = re.compile(r"(?:-o|>) (\S+\.\w+)")

SCRIPTS = {
    "sudo": 'exec "$@"',
    "ssh": 'shift; exec "$@"',
    "make": "./app",
    # Each line must be one that it takes.
    "flamegraph.pl": "awk '/^.+ [0-9]+$/ { print; next } { bad = 1 } END { exit bad }'",
}
PYTHON = ["train.py", "decode.py", "with_torch_profiler.py"]


def examples_of_page(name):
    """The lines between .nf and .fi after .SH EXAMPLES."""
    text = (ROOT / "man" / name).read_text().replace("\\-", "-")
    section = text[text.index(".SH EXAMPLES"):].split(".SH SEE ALSO")[0]
    return [line for block in re.findall(r"^\.nf\n(.*?)^\.fi", section, re.M | re.S)
            for line in block.splitlines()]


def examples_of_readme():
    """The indented lines that begin with one of our commands; # starts a comment, and a backslash
    continues a line."""
    lines = re.sub(r" \\\n +", " ", (ROOT / "README.md").read_text()).splitlines()
    commands = [line.strip().removeprefix("$ ").split(" # ")[0].strip() for line in lines
                if line.startswith("    ")]
    return [command for command in commands if COMMAND.match(command)]


class Directory:
    """Where the examples run."""

    def __init__(self, work):
        self.path = work.path
        readable_copy(work)
        shutil.copy(find("report/xpu-report"), self.path / "bin")
        for name, text in SCRIPTS.items():
            work.file(f"bin/{name}", f"#!/bin/sh\n{text}\n", 0o755)
        for name in PYTHON:
            work.file(name, "import subprocess\nsubprocess.run(['./app'], check=True)\n")
        for name in ["app", "server"]:
            shutil.copy(find("tests/system/xpu_example_app"), self.path / name)
        shutil.copy(workload("llm_decode"), self.path)
        shutil.copy(ROOT / "tests/captures/import/cuda13.txt", self.path / "trace.txt")
        (self.path / "symbols").mkdir()
        cuda = os.path.dirname(find("tests/fake_cuda/lib/libcupti.so.13"))
        self.environment = dict(os.environ, LD_LIBRARY_PATH=cuda,
                                PATH=f"{self.path}/bin:{os.environ['PATH']}")

    def start(self, command):
        return subprocess.Popen(["bash", "-c", f"set -o pipefail; {command}"], cwd=self.path,
                                env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, example):
        command = re.sub(r"(-[dD]) (\d+)s?\b", lambda m: f"{m[1]} {int(m[2]) * 50}ms", example)
        command = command.replace("/var/tmp/", "")
        server = self.start("exec ./server") if "1234" in command else None
        if server:
            command = command.replace("1234", str(server.pid))
        running = self.start(command)
        if " -a " in command and " -d " not in command:
            self.interrupt_when_it_writes(running, re.search(r"-o (\S+)\.xpu|$", command)[1])
        output, errors = running.communicate(timeout=PATIENCE_S)
        if server:
            server.communicate(timeout=PATIENCE_S)
        expect(f"status of {command} ({output[-500:]}{errors})", running.returncode, 0)
        for name in WRITES.findall(command):
            if "--rotate-size" not in command:
                size = (self.path / name).stat().st_size
                expect(f"{command}: size of {name}", size > 0, True)

    def interrupt_when_it_writes(self, running, stem):
        end = time.monotonic() + PATIENCE_S
        while not list(self.path.glob(f"{stem or 'capture'}.0*.xpu")):
            if running.poll() is not None or time.monotonic() > end:
                break
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)


def check(examples, least):
    require_recording()
    if os.geteuid() != 0:
        skip("root", "some examples record as root")
    expect(f"there are at least {least} of {examples}", len(examples) >= least, True)
    with Workspace() as work:
        directory = Directory(work)
        directory.run("xpu-record -o rank1.xpu -- ./app")
        directory.run("xpu-record -o run/ -- ./app")
        directory.run("xpu-record -- ./app")
        for name in ["app", "rank0", "before", "after"]:
            shutil.copy(work.path / "capture.xpu", work.path / f"{name}.xpu")
        for example in examples:
            begin = time.monotonic()
            directory.run(example)
            print(f"        {time.monotonic() - begin:5.1f} s  {example}", flush=True)


def test_examples_of_xpu_record():
    check(examples_of_page("xpu-record.1"), 17)


def test_examples_of_xpu_report():
    check(examples_of_page("xpu-report.1"), 21)


def test_examples_of_the_readme():
    check(examples_of_readme(), 8)


if __name__ == "__main__":
    # -a --attach of programs of other tests would be in their way.
    run_alone()
    main(globals())
