"""GPU memory of PyTorch by stack: peaks against what PyTorch says of itself, stacks against its own
history in a separate run, and that a leak and fragmentation are named first. With XPU_TEST_GPU=1
and XPU_TEST_PYTHON, a Python with PyTorch."""

import json
import os
import pathlib
import re
import subprocess

import xpu_testing
from gpu_capture import GpuCapture
from gpu_programs import REAL, prepare
from xpu_testing import PATIENCE_S, Skip, Workspace, expect, expect_in, folded, main, report

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "workloads" / "pytorch_memory.py"
# "linear.py:Linear.forward:125": the file of a Python frame and its line.
PYTHON_FRAME = re.compile(r"^([^:]+\.py):.*:(\d+)$")


def command(*arguments):
    if not REAL:
        raise Skip("XPU_TEST_GPU is not 1")
    if "XPU_TEST_PYTHON" not in os.environ:
        raise Skip("XPU_TEST_PYTHON names no Python with PyTorch")
    return [os.environ["XPU_TEST_PYTHON"], str(SCRIPT), *map(str, arguments)]


def account_of(result):
    expect(f"status ({result.stderr})", result.returncode, 0)
    return json.loads(result.stdout.splitlines()[-1])


def recorded(work, *arguments, options=()):
    result = work.record("--gpu-memory", *options, "--", *command(*arguments), timeout=PATIENCE_S)
    return account_of(result), work.file("capture.xpu")


def python_stacks(path, view):
    """Bytes by the Python stack that allocated them, innermost frame first."""
    stacks = {}
    for line, value in folded("--mode", "memory", "--memory", view, "--python=only", "--lines",
                              path).items():
        frames = line.split(";")
        if frames[-1] != "[GPU_Memory]PyTorch":
            continue
        found = [match.groups() for frame in reversed(frames) if (match := PYTHON_FRAME.match(frame))]
        key = tuple((os.path.basename(name), int(number)) for name, number in found)
        stacks[key] = stacks.get(key, 0) + value
    return stacks


def check_model(model):
    truth = account_of(subprocess.run(command(model, "--history"), capture_output=True, text=True,
                                      timeout=PATIENCE_S))
    with Workspace() as work:
        account, path = recorded(work, model)
        capture = GpuCapture(path)
        blocks = capture.of("allocator_event")
        expect("allocator_unknown", capture.losses().get("allocator_unknown"), None)
        expect("peak", max(int(b["allocated_bytes"]) for b in blocks), account["max_allocated"])
        expect("reserved", max(int(b["reserved_bytes"]) for b in blocks), account["max_reserved"])
        at_peak = folded("--mode", "memory", path)
        expect("peak by stack", sum(value for stack, value in at_peak.items()
                                    if stack.endswith("[GPU_Memory]PyTorch")),
               account["max_allocated"])
        found = python_stacks(path, "left")
    expect("left", sum(found.values()), account["allocated"])
    wanted = {}
    for each in truth["stacks"]:
        key = tuple((name, line) for name, line in each["frames"] if name.endswith(".py"))
        wanted[key] = wanted.get(key, 0) + each["bytes"]
    for stack in sorted(wanted.keys() | found.keys()):
        if wanted.get(stack) != found.get(stack):
            print(f"        {found.get(stack)} {wanted.get(stack)} {stack}")
    expect("bytes by Python stack", found, wanted)


def test_small_network():
    check_model("mlp")


def test_transformer():
    check_model("transformer")


def first_hint(path):
    text = report(path)
    hints = text[text.index("What to look at next"):].split("\n- ")
    return " ".join(hints[1].split())


def test_leak_is_named_first():
    with Workspace() as work:
        _, path = recorded(work, "leak", "--steps", 100)
        hint = first_hint(path)
        line = next(number for number, text in enumerate(SCRIPT.read_text().splitlines(), 1)
                    if "torch.ones(50_000" in text)
        expect_in("hint", f"A tensor per step leaks at pytorch_memory.py:{line} (leaking_step)", hint)


def test_fragmentation_is_named_first():
    with Workspace() as work:
        account, path = recorded(work, "fragment", "--steps", 20)
        print("       ", account, first_hint(path))
        expect_in("hint", "is fragmented", first_hint(path))
        expect_in("where", "(fragmenting_step)", first_hint(path))


if __name__ == "__main__":
    prepare()
    main(globals())
