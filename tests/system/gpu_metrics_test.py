"""Clocks and hardware counters of a real GPU, against a program that knows what it did (gpu_counters)
and against ncu. Needs XPU_TEST_GPU=1 and XPU_WORKLOAD_DIR (made by tests/workloads/build_gpu.sh)."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import xpu_testing
from gpu_programs import REAL, number_of_gpus, prepare, program
from xpu_testing import (Capture, Workspace, expect, find, main, recorder, skip, table_rows)

# CUPTI decodes 11,000 to 20,000 samples a second.
INTERVAL_US = 200
INTERVAL_NS = INTERVAL_US * 1000


def require_gpu():
    if not REAL:
        skip("gpu", "XPU_TEST_GPU is not set")


def record(work, *options, interval=f"{INTERVAL_US}us", arguments=()):
    result = work.record("--gpu-metrics", f"--gpu-metric-interval={interval}", *options, "--",
                         program("gpu_counters"), *map(str, arguments), timeout=120)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return json.loads(result.stdout.splitlines()[-1]), Capture(work.file("capture.xpu"))


class Clock:
    """CUPTI's clock of an instance to CLOCK_MONOTONIC, by the nearest pair."""

    def __init__(self, capture, instance):
        self.pairs = sorted(((p["before_ns"] + p["after_ns"]) // 2, p["clock_ns"])
                            for p in capture.clock_pairs if p["instance"] == instance)

    def __call__(self, clock_ns):
        monotonic_ns, at_ns = min(self.pairs, key=lambda pair: abs(pair[1] - clock_ns))
        return monotonic_ns + clock_ns - at_ns


class Samples:
    """Those of the GPU that the program used: (start, end, {metric: value}), in order."""

    def __init__(self, capture):
        uuid = capture.devices[0]["uuid"]
        self.gpu = next(d["gpu"] for d in capture.gpu_devices if d["uuid"] == uuid)
        metrics = sorted((m["metric"], m["name"], m["quantum"]) for m in capture.gpu_metrics
                         if m["gpu"] == self.gpu)
        of_gpu = [s for s in capture.gpu_metric_samples if s["gpu"] == self.gpu]
        clock = Clock(capture, of_gpu[0]["instance"])
        first = min(number for number, _, _ in metrics)
        self.all = sorted(
            (clock(s["start_ns"]), clock(s["end_ns"]),
             {name: s[f"value_{number - first}"] * quantum / 1000
              for number, name, quantum in set(metrics)}) for s in of_gpu)

    def within(self, start_ns, end_ns):
        return [s for s in self.all if s[0] >= start_ns and s[1] <= end_ns]

    def mean(self, name, start_ns, end_ns):
        values = [s[2][name] for s in self.within(start_ns, end_ns)]
        return sum(values) / len(values) if values else 0


def kernels(capture, name):
    """(start, end) on CLOCK_MONOTONIC."""
    found = sorted((k for k in capture.kernels if name in k["name"]), key=lambda k: k["start_ns"])
    clock = Clock(capture, found[0]["instance"])
    return [(clock(k["start_ns"]), clock(k["end_ns"])) for k in found]


def find_ncu():
    places = glob.glob("/opt/nvidia/nsight-compute/*/ncu") + ["/usr/local/cuda/bin/ncu"]
    return shutil.which("ncu") or next((place for place in places if os.path.exists(place)), None)


def tensor_by_ncu():
    metric = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
    output = subprocess.run(
        [find_ncu(), "--clock-control", "none", "--cache-control", "none", "--csv", "--metrics",
         metric, "-k", "regex:tensor_kernel", "-c", "2", program("gpu_counters"),
         "--tensor-launches", "2", "--spins", "0", "--idle-ms", "0"],
        capture_output=True, text=True, timeout=120, check=False).stdout
    values = [float(v) for v in re.findall(r'"%","([\d.]+)"', output)]
    expect(f"ncu: {output}", len(values) > 0, True)
    return sum(values) / len(values)


def check_bytes(account, samples, problems):
    for metric, key in (("dram_read", "bytes_read"), ("dram_write", "bytes_written")):
        measured = sum(s[2].get(metric, 0) for s in samples.all)
        print(f"        {metric}: {measured / account[key]:.4f} of {account[key]} bytes")
        if abs(measured / account[key] - 1) >= 0.03:
            problems.append(f"{metric}: {measured} of {account[key]}")


def check_idle(account, capture, samples, problems):
    copies = kernels(capture, "stream_kernel")
    quiet_ns = account["idle_ns"] - 50_000_000
    idle = samples.mean("sm_active", copies[0][0] - quiet_ns, copies[0][0] - 1_000_000)
    print(f"        sm_active while idle: {idle:.3f} %")
    if idle >= 0.5:
        problems.append(f"idle: {idle}")


def check_edges(capture, samples, problems):
    off = []
    for start_ns, end_ns in kernels(capture, "spin_kernel"):
        busy = [s for s in samples.within(start_ns - 5_000_000, end_ns + 5_000_000)
                if s[2]["sm_active"] > 1]
        if busy:
            off += [busy[0][0] - start_ns, busy[-1][1] - end_ns]
    print(f"        edges of kernels, sample - record: {off} ns")
    # A sample that holds an edge begins up to one interval before it.
    if not off or max(map(abs, off)) > INTERVAL_NS + 1000:
        problems.append(f"edges: {off}")


def check_tensor(capture, samples, problems):
    spans = kernels(capture, "tensor_kernel")
    weights = [(end_ns - start_ns, samples.mean("tensor_active", start_ns, end_ns))
               for start_ns, end_ns in spans]
    tensor = sum(ns * mean for ns, mean in weights) / sum(ns for ns, _ in weights)
    by_ncu = tensor_by_ncu() if find_ncu() else None
    print(f"        tensor_active: {tensor:.1f} %, ncu {by_ncu}")
    if by_ncu is not None and abs(tensor - by_ncu) >= 5:
        problems.append(f"tensor: {tensor}, ncu {by_ncu}")


def test_counters_agree_with_the_program():
    require_gpu()
    with Workspace() as work:
        account, capture = record(work, arguments=("--stream-mb", 1024, "--copies", 100, "--spins",
                                                   8, "--tensor-launches", 20))
        print("        metrics:", {m["name"]: m["source"] for m in capture.gpu_metrics})
        print("        losses:", capture.losses(), capture.details("gpu_metrics_refused"))
        samples = Samples(capture)
        problems = [f"losses: {capture.losses()}"] if capture.losses() else []
        check_bytes(account, samples, problems)
        check_idle(account, capture, samples, problems)
        check_edges(capture, samples, problems)
        check_tensor(capture, samples, problems)
        rows = table_rows(work.file("capture.xpu"), "gpu_metric_sum")
        for row in rows:
            if row["Name"].startswith("stream_kernel"):
                print("       ", row)
        expect("problems", problems, [])


def test_clocks_and_power():
    require_gpu()
    with Workspace() as work:
        _, capture = record(work, arguments=("--idle-ms", 1000, "--stream-mb", 1024, "--copies", 400))
        states = capture.gpu_states
        expect("states", len(states) > 5, True)
        for state in states:
            expect(f"state {state}", state["sm_clock"] > 0 and state["power"] > 0 and
                   0 < state["temperature"] < 120 and state["memory_used_bytes"] > 0, True)
        print("        last state:", states[-1])
        print(subprocess.run([find("report/xpu-report"), work.file("capture.xpu")],
                             capture_output=True, text=True, check=True).stdout)


def test_short_intervals_count_what_they_lose():
    require_gpu()
    for interval in (100, 50, 20):
        with Workspace() as work:
            result = work.record("--gpu-metrics", f"--gpu-metric-interval={interval}us", "--",
                                 program("gpu_counters"), "--idle-ms", "1500", timeout=120)
            expect(f"status ({result.stderr})", result.returncode, 0)
            capture = Capture(work.file("capture.xpu"))
            samples = Samples(capture).all
            lost = capture.losses().get("gpu_samples_lost", 0)
            span = (samples[-1][1] - samples[0][0]) / (interval * 1000)
            print(f"        {interval} us: {len(samples)} samples, {lost} lost, {span:.0f} intervals")
            gpus = len({s["gpu"] for s in capture.gpu_metric_samples})
            expect(f"samples and lost ones, of {gpus} GPUs", len(samples) + lost >= span * 0.98, True)


def test_samples_of_gpu_code_beside_counters():
    """Whichever recorder comes second does without, and says so; the program does not notice."""
    require_gpu()
    with Workspace() as work:
        counting = [recorder(), "-a", "--gpu-metrics", "-o", work.file("counters.xpu"), "--"]
        with subprocess.Popen([*counting, "sleep", "6"], stderr=subprocess.DEVNULL) as first:
            time.sleep(2.5)
            result = work.record("--gpu-samples", "--", program("gpu_counters"), timeout=120)
            first.wait()
        expect(f"status ({result.stderr})", result.returncode, 0)
        expect("samples", Capture(work.file("capture.xpu")).losses(), {"gpu_not_sampled": 1})
        counters = Capture(work.file("counters.xpu"))
        print("        counters:", len(counters.gpu_metric_samples), counters.losses())
    with Workspace() as work:
        sampled = [recorder(), "--gpu-samples", "-o", work.file("samples.xpu"), "--",
                   program("stall_kernels"), "--launches", "1500"]
        with subprocess.Popen(sampled, stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as first:
            time.sleep(3)
            result = work.record("-a", "--gpu-metrics", "--", "sleep", "3")
            expect("status of the program", first.wait(), 0)
        expect(f"status ({result.stderr})", result.returncode, 0)
        expect("counters", Capture(work.file("capture.xpu")).losses().get("gpu_metrics_refused"), 1)
        expect("samples", Capture(work.file("samples.xpu")).losses(), {})


def test_all_gpus_are_sampled():
    require_gpu()
    with Workspace() as work:
        _, capture = record(work, arguments=("--copies", 1))
        devices = {d["gpu"] for d in capture.gpu_devices}
        expect("devices", len(devices), number_of_gpus())
        sampled = {s["gpu"] for s in capture.gpu_metric_samples}
        print("        GPUs sampled:", len(sampled), "of", len(devices))
        expect("sampled", sampled, devices)


def test_bytes_per_sample():
    require_gpu()
    arguments = ("--idle-ms", 100, "--stream-mb", 1024, "--copies", 2000)
    sizes = []
    counts = []
    for interval in ("200us", "1s"):
        with Workspace() as work:
            _, capture = record(work, interval=interval, arguments=arguments)
            sizes.append(os.path.getsize(work.file("capture.xpu")))
            counts.append(len(capture.gpu_metric_samples))
    each = (sizes[0] - sizes[1]) / (counts[0] - counts[1])
    print(f"        {each:.2f} bytes each of {counts[0]} samples")
    expect(f"bytes {each}", each < 16, True)


def test_counters_are_free_after_sigkill():
    require_gpu()
    with Workspace() as work:
        with subprocess.Popen([recorder(), "--gpu-metrics", "-o", work.file("killed.xpu"), "--",
                               "sleep", "60"], stderr=subprocess.DEVNULL) as process:
            time.sleep(4)
            target = xpu_testing.program_of(process.pid, shutil.which("sleep"))
            process.send_signal(signal.SIGKILL)
            process.wait()
            os.kill(target, signal.SIGKILL)
        time.sleep(4)
        _, capture = record(work)
        expect("losses", capture.losses(), {})
        expect("samples", len(capture.gpu_metric_samples) > 0, True)


if __name__ == "__main__":
    prepare()
    main(globals())
