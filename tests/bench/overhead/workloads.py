"""The programs that are measured. Each prints a line of JSON with "unit", "timed_units" and
"timed_ns": how long its work after a warm-up took, by its own clock."""

import dataclasses
import pathlib

SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent / "workloads"


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    program: str           # a file of the directory with programs, or a Python script
    arguments: tuple       # "{units}" is what is timed, "{warmup}" what comes before
    first_units: int       # for the first run, which says how long a unit takes; of each turn
    warmup: int
    max_units: int = 10_000_000
    units_per_count: int = 1   # units that one of {units} makes
    floor_kinds: str = "kernel"
    graph: bool = False    # replays of a CUDA graph: graph mode and node mode differ
    every_way: bool = False    # of the variants of xpu-record too

    @property
    def python(self):
        """It takes seconds to start, and is measured in turns."""
        return self.program.endswith(".py")

    def command(self, units, programs, python):
        count = max(1, min(units, self.max_units) // self.units_per_count)
        arguments = [argument.format(units=count, warmup=self.warmup,
                                     steps=count + self.warmup) for argument in self.arguments]
        if self.python:
            return [python, str(SOURCES / self.program), *arguments]
        return [str(programs / self.program), *arguments]


COPIES = "CudaMemcpyAsyncHtoD,CudaMemcpyAsyncDtoH,CudaMemcpyAsyncDtoD"
LLM = ("--steps", "{steps}", "--timing", "{warmup}")

WORKLOADS = [
    Workload("launches_1", "empty kernels, 1 thread", "empty_launches",
             ("--launches", "{units}", "--warmup", "{warmup}"), 20_000, 5_000, every_way=True),
    Workload("launches_8", "empty kernels, 8 threads", "empty_launches",
             ("--threads", "8", "--launches", "{units}", "--warmup", "{warmup}"), 40_000, 2_000,
             units_per_count=8),
    Workload("transformer", "transformer-like program in CUDA C++, kernels of 10 us", "transformer",
             ("--requests", "{units}", "--warmup", "{warmup}", "--kernel-us", "10"), 200, 50),
    Workload("graph", "CUDA graph of 100 kernels, replayed", "graph",
             ("--nodes", "100", "--bytes", "0", "--replays", "{units}", "--warmup", "{warmup}"),
             1_000, 300, graph=True),
    Workload("copies", "asynchronous copies of 16 KiB to, from and within the device", "copies",
             ("--parts=plain", "--functions", COPIES, "--calls", "{units}", "--warmup",
              "{warmup}"), 9_000, 1_000, units_per_count=3, floor_kinds="kernel,copy"),
    # The kernels grow with the length of the text: no more tokens than keep them short.
    Workload("llm", "language model, decoding, 61 short kernels a token", "llm_decode", LLM, 300,
             50, max_units=1_500),
    Workload("llm_graph", "the same as a CUDA graph", "llm_decode", (*LLM, "--graph"), 300, 50,
             max_units=1_500, graph=True),
    Workload("pytorch_mlp", "PyTorch, training of an MLP, launch-bound, about 60 kernels a step",
             "pytorch_steps.py",
             ("mlp", "--layers", "9", "--steps", "{units}", "--warmup", "{warmup}", "--turns"), 50, 100,
             every_way=True),
    Workload("pytorch_decode", "PyTorch, a language model of 1.5 billion parameters, decoding",
             "pytorch_steps.py",
             ("decode", "--steps", "{units}", "--warmup", "{warmup}", "--turns"), 10, 20),
    Workload("pytorch_transformer", "PyTorch, training of a transformer, GPU-bound",
             "pytorch_steps.py",
             ("transformer", "--large", "--layers", "4", "--steps", "{units}", "--warmup",
              "{warmup}", "--turns"), 5, 5),
]
