"""Captures recorded on a GPU machine give the numbers that the recorded program counted itself.

tests/captures/NAME.xpu was recorded there, NAME.json is what the program printed, NAME.symbols its
functions (`nm -S`), since the program itself is not here."""

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(FOLDER / "system"))

import xpu_testing  # noqa: E402
from gpu_capture import GpuCapture, count_sites, report  # noqa: E402
from xpu_testing import expect  # noqa: E402

CAPTURES = FOLDER / "captures"


class StoredSymbols(xpu_testing.Symbols):
    """`segment` lines: file offset, address, size; the others: address, size, name."""

    def __init__(self, path):
        self.segments, self.symbols = [], []
        for line in path.read_text().splitlines():
            fields = line.split(None, 3)
            if fields[0] == "segment":
                self.segments.append(tuple(int(f, 16) for f in fields[1:]))
            else:
                self.symbols.append((int(fields[0], 16), int(fields[1], 16), line.split(None, 2)[2]))


def load(name):
    account = json.loads((CAPTURES / f"{name}.json").read_text())
    return account, GpuCapture(CAPTURES / f"{name}.xpu")


def merged(account):
    """Sites and kernels of a workload with several actors, added up."""
    actors = account.get("actors", [account])
    kernels = {}
    for actor in actors:
        for kernel, count in actor["kernels"].items():
            kernels[kernel] = kernels.get(kernel, 0) + count
    return kernels, {(s["path"], s["kernel"]): s["launches"] for a in actors for s in a["sites"]}


def check(name, program):
    account, capture = load(name)
    kernels, sites = merged(account)
    expect("losses", {k: v for k, v in capture.losses().items() if not k.startswith("file_")}, {})
    expect("kernels by name", capture.kernels_by_name(), kernels)
    expect("kernels without a stack of their id", capture.unmatched(), [])
    paths = {m["path"] for m in capture.of("mapping") if m["path"].endswith("/" + program)}
    expect("the program's mapping", len(paths), 1)
    actual = capture.sites(paths.pop(), StoredSymbols(CAPTURES / f"{name}.symbols"))
    expect("launches by call site", {k: v[0] for k, v in count_sites(actual, sites).items()}, sites)
    folded = capture.folded("--mode", "gpu", "--unit", "ns")
    expect("folded ns of kernels", sum(v for k, v in folded.items() if ";[GPU_Kernel]" in k),
           capture.kernel_ns())
    expect("a margin of at least 0", capture.worst_margin_ns() >= 0, True)


def test_transformer():
    check("transformer", "transformer")


def test_transformer_static_cudart():
    check("transformer-static", "transformer-static")


def test_two_kernels_threads():
    check("two_kernels_threads", "two_kernels")


def test_two_kernels_fork():
    check("two_kernels_fork", "two_kernels")


def test_graph():
    account, capture = load("graph")
    expect("replays", len(capture.of("graph_launch")), account["graph_launches"])
    folded = capture.folded("--mode", "gpu", "--unit", "ns")
    expect("folded ns of replays", sum(v for k, v in folded.items() if ";[GPU_Graph]" in k),
           sum(capture.duration(g) for g in capture.of("graph_launch")))


def test_pytorch_mlp():
    """Kernels of cuBLAS and PyTorch: counted by torch.profiler in a separate run."""
    account, capture = load("pytorch_mlp")
    expect("kernel records", len(capture.of("kernel")), account["kernels"])
    expect("kernels without a stack of their id", capture.unmatched(), [])


def test_views_of_every_capture():
    for path in sorted(CAPTURES.glob("*.xpu")):
        trace = json.loads(report("--chrome-trace", path))
        slices = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
        capture = GpuCapture(path)
        expect(f"{path.name}: kernels in the Chrome trace", len(slices), len(capture.of("kernel")))
        for event in trace["traceEvents"]:
            expect(f"{path.name}: pid and tid of {event}",
                   (type(event["pid"]), type(event.get("tid", 0))), (int, int))
        starts = {e["id"] for e in trace["traceEvents"] if e["ph"] == "s"}
        ends = {e["id"] for e in trace["traceEvents"] if e["ph"] == "f"}
        expect(f"{path.name}: flow arrows end where they start", starts, ends)
        tables = json.loads(report("--top", "-n", "0", "--format", "json", path))
        expect(f"{path.name}: ns in cuda_gpu_kern_sum",
               sum(r["Total Time (ns)"] for r in tables["cuda_gpu_kern_sum"]), capture.kernel_ns())


if __name__ == "__main__":
    xpu_testing.main(globals())
