"""The ways to run a program: alone, under CUPTI alone, under xpu-record, under other profilers.

Each says with which workloads it goes and turns a workload's command into a command of its own.
`rank` orders them by what a reader wants first: where the time is short, the last ones are left
out first. What CUPTI alone costs in the same kind of recording is the way's `floor`.
"""

import dataclasses
import functools
import os
import pathlib
import shutil
import subprocess


class NotAvailable(Exception):
    """Why a way cannot be tried on this machine."""


@dataclasses.dataclass
class Command:
    arguments: list
    environment: dict = dataclasses.field(default_factory=dict)
    output: pathlib.Path = None     # what the recorder writes
    floor_report: pathlib.Path = None


@dataclasses.dataclass(eq=False)
class Machine:
    """Where the programs and the tools are."""

    programs: pathlib.Path
    recorder: pathlib.Path
    floor_library: pathlib.Path
    python: str
    scratch: pathlib.Path
    cuda: pathlib.Path

    @functools.cached_property
    def recorder_help(self):
        if not self.recorder.exists():
            raise NotAvailable(f"not installed: {self.recorder}")
        return subprocess.run([self.recorder, "--help", "all"], capture_output=True, text=True,
                              check=False).stdout

    @functools.cache
    def why_not_python(self, module):
        """Empty where the module can be imported."""
        test = f"import {module}"
        if module == "torch":
            test += "; assert torch.cuda.is_available(), 'PyTorch sees no GPU'"
        result = subprocess.run([self.python, "-c", test], capture_output=True, text=True,
                                timeout=300, check=False)
        return "" if result.returncode == 0 else (result.stderr.strip().splitlines() or ["?"])[-1]


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    rank: int
    floor: str = ""   # the name of another way

    def goes_with(self, workload):
        return True

    def command(self, plain, workload, machine):
        return Command(plain)


@dataclasses.dataclass(frozen=True)
class Floor(Way):
    init: str = "early"
    mode: str = ""  # of graphs: graph or node
    kinds: str = ""
    calls: str = ""
    flush_ms: int = 0
    sample_bits: int = 0  # samples of program counters every 2^N cycles
    variant: bool = False  # as of Recorder

    def goes_with(self, workload):
        return bool(self.mode) == workload.graph and (workload.every_way or not self.variant)

    def command(self, plain, workload, machine):
        if not machine.floor_library.exists():
            raise NotAvailable(f"not built: {machine.floor_library}")
        kinds = "graph," if self.mode == "graph" else ""
        environment = {"CUDA_INJECTION64_PATH": str(machine.floor_library),
                       "CUPTI_FLOOR_KINDS": kinds + workload.floor_kinds + self.kinds,
                       "CUPTI_FLOOR_CALLS": self.calls,
                       "CUPTI_FLOOR_FLUSH": str(self.flush_ms),
                       "CUPTI_FLOOR_SAMPLES": str(self.sample_bits),
                       "CUPTI_FLOOR_INIT": self.init}
        for directory in ("lib64", "extras/CUPTI/lib64"):
            library = machine.cuda / directory / "libcupti.so"
            if library.exists():
                environment["CUPTI_FLOOR_LIB"] = str(library)
        report = machine.scratch / "floor.txt"
        environment["CUPTI_FLOOR_OUT"] = str(report)
        return Command(plain, environment, floor_report=report)


@dataclasses.dataclass(frozen=True)
class Recorder(Way):
    options: tuple = ()
    # graph: graphs alone; plain: all but graphs; python: Python programs alone; native: neither
    only: str = ""
    variant: bool = False  # only with workloads that go with every way

    def goes_with(self, workload):
        kinds = {"graph": workload.graph, "plain": not workload.graph, "python": workload.python,
                 "native": not workload.graph and not workload.python, "": True}
        return kinds[self.only] and (workload.every_way or not self.variant)

    def command(self, plain, workload, machine):
        for option in self.options:
            if option.split("=")[0] not in machine.recorder_help:
                raise NotAvailable(f"this xpu-record has no {option.split('=')[0]}")
        output = machine.scratch / "bench.xpu"
        return Command([str(machine.recorder), "-o", str(output), *self.options, "--", *plain],
                       output=output)


@dataclasses.dataclass(frozen=True)
class PythonProfiler(Way):
    """A profiler that the program itself runs."""

    profiler: str = ""
    module: str = ""

    def goes_with(self, workload):
        return workload.python

    def command(self, plain, workload, machine):
        if machine.why_not_python(self.module):
            raise NotAvailable(f"not installed: {machine.why_not_python(self.module)}")
        output = machine.scratch / "proton"
        return Command([*plain, "--with", self.profiler, "--output", str(output)],
                       output=output.with_suffix(".hatchet"))


@dataclasses.dataclass(frozen=True)
class Nsys(Way):
    options: tuple = ()
    only: str = ""

    def goes_with(self, workload):
        return {"graph": workload.graph, "python": workload.python, "": True}[self.only]

    def command(self, plain, workload, machine):
        nsys = shutil.which("nsys")
        if nsys is None:
            raise NotAvailable("not installed")
        # That of Nsight Compute records, and has no importer that would make a report of it.
        imports = (pathlib.Path(nsys).resolve().parent / "../host-linux-x64/QdstrmImporter").exists()
        output = machine.scratch / ("bench.nsys-rep" if imports else "bench.qdstrm")
        return Command([nsys, "profile", "--force-overwrite=true", "--trace=cuda", "-o",
                        str(output.with_suffix("")), *self.options, *plain], output=output)


QUIET_NSYS = ("--sample=none", "--cpuctxsw=none")

WAYS = [
    Way("nothing", 0),
    Floor("CUPTI alone", 1),
    Floor("CUPTI alone, late", 1, init="late"),
    Floor("CUPTI alone, graphs", 1, mode="graph"),
    Floor("CUPTI alone, graphs, late", 1, mode="graph", init="late"),
    Floor("CUPTI alone, nodes", 1, mode="node"),
    Floor("CUPTI alone, nodes, late", 1, mode="node", init="late"),

    Recorder("xpu-record", 2, "CUPTI alone", only="plain"),
    Recorder("xpu-record", 2, "CUPTI alone, graphs", only="graph"),
    Recorder("xpu-record --cuda-graph-trace=node", 2, "CUPTI alone, nodes",
             options=("--cuda-graph-trace=node",), only="graph"),

    PythonProfiler("torch.profiler, CPU and CUDA", 3, profiler="torch", module="torch"),
    PythonProfiler("torch.profiler, with stacks", 3, profiler="torch-stacks", module="torch"),
    PythonProfiler("torch.profiler, CUDA only", 3, profiler="torch-cuda", module="torch"),
    PythonProfiler("Proton, shadow", 3, profiler="proton-shadow", module="triton.profiler"),
    PythonProfiler("Proton, python", 3, profiler="proton-python", module="triton.profiler"),
    Nsys("nsys", 3, options=QUIET_NSYS),
    Nsys("nsys, graph nodes", 3, options=(*QUIET_NSYS, "--cuda-graph-trace=node"), only="graph"),
    Nsys("nsys, with backtraces", 3,
         options=("--sample=process-tree", "--cudabacktrace=kernel:0")),
    Nsys("nsys, with backtraces of Python too", 3,
         options=("--sample=process-tree", "--cudabacktrace=kernel:0", "--python-backtrace=cuda"),
         only="python"),

    Recorder("xpu-record --gpu-only", 4, "CUPTI alone", options=("--gpu-only",), only="plain"),
    Recorder("xpu-record --launch-stacks=uprobe", 4, "CUPTI alone",
             options=("--launch-stacks=uprobe",), only="plain"),
    Recorder("xpu-record --launch-stacks=none", 4, "CUPTI alone",
             options=("--launch-stacks=none",), only="plain", variant=True),
    Recorder("xpu-record --call-graph=fp", 5, "CUPTI alone", options=("--call-graph=fp",),
             only="plain", variant=True),
    Recorder("xpu-record --no-python", 5, "CUPTI alone", options=("--no-python",), only="python",
             variant=True),
    # What they add to the recording without them.
    Recorder("xpu-record --gpu-samples", 4, "xpu-record", options=("--gpu-samples",)),
    Recorder("xpu-record --gpu-metrics", 4, "xpu-record", options=("--gpu-metrics",)),
    # What of the cost of a recorder is CUPTI's, part by part.
    Floor("CUPTI, program counters too", 4, sample_bits=18),
    Floor("CUPTI, driver callbacks", 5, calls="driver", variant=True),
    Floor("CUPTI, runtime callbacks", 5, calls="runtime", variant=True),
    Floor("CUPTI, all callbacks", 5, calls="driver,runtime", variant=True),
    Floor("CUPTI, all callbacks, more kinds", 5, calls="driver,runtime",
          kinds=",copy,memset,overhead", variant=True),
    Floor("CUPTI, all callbacks, more kinds, flushed", 5, calls="driver,runtime",
          kinds=",copy,memset,overhead", flush_ms=100, variant=True),
    Floor("CUPTI alone, records of waits too", 5, kinds=",sync", variant=True),
    # Its probes are in the libraries, also for those that have their turns beside it.
    Recorder("xpu-record --no-inject", 5, options=("--no-inject",), only="native", variant=True),
    Recorder("xpu-record --cpu-only", 5, options=("--cpu-only",), only="plain", variant=True),
]


def ways_of(workload, chosen):
    """In the order of their ranks; "nothing" always, and the floors of those that are chosen."""
    fitting = sorted((way for way in WAYS if way.goes_with(workload)), key=lambda way: way.rank)
    wanted = [way for way in fitting if chosen(way.name)]
    needed = {"nothing"} | {way.name for way in wanted} | {way.floor for way in wanted}
    return [way for way in fitting if way.name in needed]


def environment_of(command):
    """That of this process, without what would load a library into the program."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "CUDA_INJECTION64_PATH"}
    return {**environment, **command.environment}
