"""CUDA workloads on the simulated device and, with XPU_TEST_GPU=1 and XPU_WORKLOAD_DIR (made by
tests/workloads/build_gpu.sh), on a real GPU: recording them, and what they know of themselves."""

import json
import os
import subprocess

import xpu_testing
from gpu_capture import GpuCapture, count_sites, plain_name
from xpu_testing import PATIENCE_S, expect, symbols_of

REAL = os.environ.get("XPU_TEST_GPU") == "1"


def program(name):
    if "XPU_WORKLOAD_DIR" in os.environ:
        return os.path.join(os.path.realpath(os.environ["XPU_WORKLOAD_DIR"]), name)
    return xpu_testing.workload(name)


def number_of_gpus():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return listed.stdout.count("UUID: GPU-")


def recorded(work, name, *arguments, options=(), env=None):
    """Records a workload; returns its own account and the capture."""
    result = work.record(*options, "--", program(name), *map(str, arguments),
                         env={**os.environ, **(env or {})}, timeout=PATIENCE_S)
    expect(f"{name}: exit status ({result.stderr})", result.returncode, 0)
    return (json.loads(result.stdout.splitlines()[-1]),
            GpuCapture(work.path / "capture.xpu"))


def check_sites(what, capture, account, path):
    expected = {(s["path"], s["kernel"]): s["launches"] for s in account["sites"]}
    actual = count_sites(capture.sites(path, symbols_of(path)), expected)
    expect(f"{what}: launches by call site", {k: v[0] for k, v in actual.items()}, expected)
    # The report's own symbols and passes come to the same time for each site.
    folded = {}
    for line, value in capture.folded("--mode", "gpu", "--unit", "ns").items():
        frames = line.split(";")
        if not frames[-1].startswith("[GPU_Kernel]"):
            continue
        path_frames = [f.split("(")[0].removeprefix("void ") for f in frames[:-1]]
        expect(f"{what}: the API call in {line!r}", path_frames[-1], "cudaLaunchKernel")
        kernel = plain_name(frames[-1].removeprefix("[GPU_Kernel]"))
        site = next((p for p, k in expected if k == kernel and
                     path_frames[:-1][-len(p.split(";")):] == p.split(";")), line)
        folded[(site, kernel)] = folded.get((site, kernel), 0) + value
    expect(f"{what}: folded ns by call site", folded, {k: v[1] for k, v in actual.items()})


def prepare():
    xpu_testing.require_recording()
    if not REAL and "XPU_FAKE_CUDA_DIR" in os.environ:
        os.environ["LD_LIBRARY_PATH"] = os.environ["XPU_FAKE_CUDA_DIR"]
