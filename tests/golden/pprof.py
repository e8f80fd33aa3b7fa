"""A profile for pprof holds the samples and the GPU time of the views, read by a decoder of our own
and, where Go is installed, by `go tool pprof`."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import xpu_testing
from protobuf_wire import fields, varint
from xpu_testing import CAPTURES, expect, is_left_out, of_large_captures, report, skip

NAMES = ["graph_paths.xpu", "pytorch_mlp_graph.xpu", "pytorch_python.xpu", "two_kernels_fork.xpu"]
# Fields of Profile by their published numbers.
SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING = 1, 2, 3, 4, 5, 6


def numbers(packed):
    at = 0
    while at < len(packed):
        value, at = varint(packed, at)
        yield value


class Profile:
    def __init__(self, data):
        parts = {}
        for number, value in fields(data):
            parts.setdefault(number, []).append(value)
        self.texts = [text.decode("utf-8") for text in parts[STRING]]
        self.types = [self.texts[dict(fields(part)).get(1, 0)] for part in parts[SAMPLE_TYPE]]
        self.builds = {dict(fields(part)).get(6, 0) for part in parts.get(MAPPING, ())}
        names = {f[1]: self.texts[f[2]] for f in map(lambda p: dict(fields(p)), parts[FUNCTION])}
        self.names = {}
        for part in parts[LOCATION]:
            location = dict(fields(part))
            self.names[location[1]] = names[dict(fields(location[4]))[1]]
        self.samples = []
        for part in parts.get(SAMPLE, ()):
            each = list(fields(part))
            path = [self.names[i] for n, v in each if n == 1 for i in numbers(v)]
            values = [i for n, v in each if n == 2 for i in numbers(v)]
            labels = [dict(fields(v)) for n, v in each if n == 3]
            self.samples.append((path, dict(zip(self.types, values)), {
                self.texts[label[1]]: self.texts[label[2]] if 2 in label else label[3]
                for label in labels}))


def profile_of(capture, directory, *arguments):
    path = pathlib.Path(directory) / "a.pb.gz"
    report(capture, "--pprof", *arguments, "-o", path)
    return Profile(gzip.decompress(path.read_bytes())), path


def total(capture, *arguments):
    return sum(int(line.rsplit(" ", 1)[1])
               for line in report("--folded", capture, *arguments).splitlines())


def test_times_are_those_of_the_views():
    with tempfile.TemporaryDirectory() as directory:
        for name in NAMES:
            capture = CAPTURES / name
            if is_left_out(capture):
                continue
            profile, _ = profile_of(capture, directory)
            sums = {kind: sum(values[kind] for _, values, _ in profile.samples)
                    for kind in profile.types}
            expect(f"{name}: first text", profile.texts[0], "")
            expect(f"{name}: GPU time", sums["gpu"],
                   total(capture, "--mode", "gpu", "--unit", "ns"))
            expect(f"{name}: samples", sums["samples"],
                   report("--dump", capture).count("\ncpu_sample "))
            if sums["samples"]:
                expect(f"{name}: CPU time", sums["cpu"],
                       total(capture, "--mode", "cpu", "--unit", "ns"))


def test_labels_stacks_and_builds():
    capture = CAPTURES / "pytorch_mlp_graph.xpu"
    with tempfile.TemporaryDirectory() as directory:
        profile, _ = profile_of(capture, directory)
        work = [sample for sample in profile.samples if sample[1]["gpu_work"]]
        streams = {}
        for path, values, labels in work:
            expect("the innermost frame", path[0].startswith("[GPU_"), True)
            expect("labels", set(labels) >= {"thread", "tid", "process", "pid", "gpu", "stream"},
                   True)
            stream = labels["stream"]
            streams[stream] = streams.get(stream, 0) + values["gpu"]
        for stream, time_ns in streams.items():
            expect(f"stream {stream}", time_ns,
                   total(capture, "--mode", "gpu", "--unit", "ns", "--stream", stream))
        builds = {profile.texts[build] for build in profile.builds}
        recorded = set(re.findall(r" build_id=([0-9a-f]+)", report("--dump", capture)))
        expect("build-ids", bool(builds) and builds - {""} <= recorded, True)
        # A filter leaves out the rest.
        profile, _ = profile_of(capture, directory, "--stream", "13")
        expect("one stream", sum(values["gpu"] for _, values, _ in profile.samples), streams["13"])


@of_large_captures
def test_waits():
    capture = CAPTURES / "pytorch_loader.xpu"
    with tempfile.TemporaryDirectory() as directory:
        profile, _ = profile_of(capture, directory)
        expect("types", profile.types[-2:], ["waits", "off_cpu"])
        expect("time that threads did not run",
               sum(values["off_cpu"] for _, values, _ in profile.samples),
               total(capture, "--mode", "off", "--unit", "ns"))
        waits = [path for path, values, _ in profile.samples if values["waits"]]
        expect("reasons", {path[0].split("] ")[0] for path in waits}, {"[off-CPU"})
        expect("GPU time is as it was", sum(values["gpu"] for _, values, _ in profile.samples),
               total(capture, "--mode", "gpu", "--unit", "ns"))
        profile, _ = profile_of(CAPTURES / NAMES[0], directory)
        expect("types without waits", profile.types[-1], "gpu")


def pprof(directory, path, *arguments):
    environment = {**os.environ, "HOME": directory, "PPROF_TMPDIR": directory}
    result = subprocess.run(["go", "tool", "pprof", *arguments, str(path)], capture_output=True,
                            text=True, env=environment, timeout=120)
    expect(f"status of pprof {arguments}: {result.stderr}", result.returncode, 0)
    return result.stdout


def test_go_tool_pprof():
    if not shutil.which("go"):
        skip("go", "no go (Debian: golang-go)")
    capture = CAPTURES / "pytorch_mlp_graph.xpu"
    with tempfile.TemporaryDirectory() as directory:
        _, path = profile_of(capture, directory)
        wanted = total(capture, "--mode", "gpu", "--unit", "ns")
        of_all = f"of {wanted}ns total"
        exact = ["-unit=ns", "-sample_index=gpu", "-nodefraction=0", "-edgefraction=0",
                 "-nodecount=100000"]
        for view in (["-top"], ["-peek=."], ["-tree"]):
            expect(f"total of {view}", of_all in pprof(directory, path, *exact, *view), True)
        top = pprof(directory, path, *exact, "-top")
        flat = [int(n) for n in re.findall(r"^ *(\d+)(?:ns)? +[\d.]+%", top, re.MULTILINE)]
        expect("sum of flat times", sum(flat), wanted)
        expect("time of the CPU", f"of {total(capture, '--mode', 'cpu', '--unit', 'ns')}ns total"
               in pprof(directory, path, *exact, "-sample_index=cpu", "-top"), True)


if __name__ == "__main__":
    sys.exit(xpu_testing.main(globals()))
