"""Scenarios of gpu_operations_test.py about PyTorch: what is recorded against what torch.profiler
counts in a run of its own, with the Python that XPU_TEST_PYTHON names."""

import json
import os
import pathlib
import subprocess
from collections import Counter

import xpu_testing
from gpu_capture import GpuCapture, GraphNodes
from gpu_operations import check_all_matched, figures
from xpu_testing import ABOUT_STACKS, PATIENCE_S, Workspace, expect

STEPS = 20
SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "workloads" / "pytorch_steps.py"


def command(*arguments):
    if "XPU_TEST_PYTHON" not in os.environ:
        raise xpu_testing.Skip("XPU_TEST_PYTHON names no Python with PyTorch")
    return [os.environ["XPU_TEST_PYTHON"], str(SCRIPT), "--steps", str(STEPS), *arguments]


def profiled(*arguments):
    """What torch.profiler counts in a run that is not recorded."""
    result = subprocess.run(command("--profile", *arguments), capture_output=True, text=True,
                            timeout=PATIENCE_S)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return json.loads(result.stdout.splitlines()[-1])["profiled"]


def recorded(work, *arguments, options=()):
    result = work.record(*options, "--", *command(*arguments), timeout=PATIENCE_S)
    expect(f"status ({result.stderr})", result.returncode, 0)
    capture = GpuCapture(work.path / "capture.xpu")
    capture.account = json.loads(result.stdout.splitlines()[-1])
    return capture


def losses(capture):
    """Losses of GPU work: without Python's own frames and unreadable files of the machine."""
    local = (*ABOUT_STACKS, "file_mismatch", "file_missing",
             "file_unreadable")
    return {name: n for name, n in capture.losses().items() if name not in local}


def check_model(model, *arguments, options=()):
    truth = profiled(model, *arguments)
    with Workspace() as work:
        capture = recorded(work, model, *arguments, options=options)
        check_all_matched(capture)
    expect("losses", losses(capture), {})
    kernels = capture.of("kernel")
    expect("kernels", len(kernels), truth["kernels"])
    expect("launches of each kernel, sorted", sorted(Counter(k["name"] for k in kernels).values()),
           sorted(truth["by_name"].values()))
    expect("kernels without a stack of their id", len(capture.unmatched()), 0)
    ratio = capture.kernel_ns() / truth["kernel_ns"]
    expect(f"kernel time over the profiler's, {ratio:.4f}, within 3 %", abs(ratio - 1) <= 0.03,
           True)
    apis = Counter(capture.call_name(capture.stacks[capture.key(k)]) for k in kernels)
    figures(f"{model} {' '.join(arguments)}: {len(kernels)} kernels, time / profiler's "
            f"{ratio:.4f}, by call {dict(apis)}")
    return capture


def test_pytorch_mlp():
    check_model("mlp")


def test_pytorch_transformer():
    check_model("transformer")


def check_graph(model):
    capture = check_model(model, "--graph", options=("--cuda-graph-trace=node",))
    nodes = GraphNodes(capture)
    replayed = [k for k in capture.of("kernel") if k["graph_node_id"] != "0"]
    unknown = 0
    for kernel in replayed:
        launch = capture.calls[capture.key(kernel)]
        created = nodes.creation(kernel["instance"], int(kernel["graph_node_id"]),
                                 int(launch["start_ns"]))
        unknown += created is None or capture.key(created) not in capture.stacks
    expect("kernels of replays without the stack that made them", unknown, 0)
    expect("replays", len({capture.key(k) for k in replayed}), STEPS)
    with Workspace() as work:
        capture = recorded(work, model, "--graph")
        expect("losses", losses(capture), {})
        expect("replays recorded as one", len(capture.of("graph_launch")), STEPS)
        leaves = {line.split(";")[-1] for line in
                  capture.folded("--mode", "gpu", "--unit", "ns") if "[GPU_Graph]" in line}
        expect("graphs", len(leaves), 1)
    figures(f"{model}: {len(replayed)} kernels in {STEPS} replays, each with the stack that made "
            f"it; as one: {STEPS} of {leaves}")


def test_pytorch_mlp_graph():
    check_graph("mlp")


def test_pytorch_transformer_graph():
    check_graph("transformer")


def test_pytorch_profiler_while_recorded():
    with Workspace() as work:
        capture = recorded(work, "mlp", "--profile")
        expect("what the profiler saw of the GPU", capture.account["profiled"], None)
        entry = capture.entry("other_profiler_refused")
        expect("in the ledger", entry and entry["severity"], "note")
        expect("losses", losses(capture), {})
        kernels = len(capture.of("kernel"))
        capture = recorded(work, "mlp", "--profile", options=("--yield-cupti",))
        expect("kernels of the profiler, with --yield-cupti",
               capture.account["profiled"]["kernels"], kernels)
        expect("GPU records", capture.of("kernel"), [])
        figures(f"refused {entry['count']} times while {kernels} kernels were recorded; with "
                "--yield-cupti the profiler has them")


TESTS = {name: test for name, test in globals().items() if name.startswith("test_")}
