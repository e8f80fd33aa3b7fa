"""Clocks, power and hardware counters of GPUs, on the simulated device: what is recorded, what the
report makes of it, overflow, refusal, and that nothing is left when the recorder is killed."""

import fcntl
import os
import shutil
import signal
import subprocess
import time

import xpu_testing
from simulated_gpu import record, simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, require_recording,
                         table_rows, workload)

INTERVAL_NS = 200_000
USUAL = ["sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write"]


def libraries():
    return os.path.dirname(find("tests/fake_cuda/lib/libnvidia-ml.so.1"))


def with_gpu(**variables):
    return simulated(XPU_TEST_GPU_LIBRARIES=libraries(), **variables)


def program(seconds):
    """Uses CUDA, then goes on for a while."""
    return ["--", "sh", "-c", f"{workload('transformer')} && sleep {seconds}"]


def run_report(work, *arguments):
    result = xpu_testing.run_report(work.file("capture.xpu"), *arguments)
    expect(f"xpu-report {arguments}: {result.stderr}", result.returncode, 0)
    return result.stdout


def flat(text):
    return " ".join(text.split())


def row_of(rows, **wanted):
    found = [r for r in rows if all(r[key] == value for key, value in wanted.items())]
    expect(f"rows with {wanted} in {rows}", len(found), 1)
    return found[0]


def test_clocks_and_power():
    require_recording()
    with Workspace() as work:
        record(work, *program(0.7), env=with_gpu(XPU_FAKE_NVML_REASONS="4",
                                                 XPU_FAKE_NVML_XID="79"))
        capture = work.capture()
        expect("losses", capture.losses(), {})
        expect("GPUs", [d["uuid"] for d in capture.gpu_devices], [capture.devices[0]["uuid"]])
        device = capture.gpu_devices[0]
        expect("device", (device["power_limit"], device["max_sm_clock"], device["driver_version"]),
               (700_000, 1980, "580.00.simulated"))
        states = capture.gpu_states
        # Ten a second, also on a machine that is busy.
        expect(f"states: {len(states)}", 3 <= len(states) <= 60, True)
        for state in states:
            expect("clock", state["sm_clock"], 1755)
            expect("reasons", state["throttle_reasons"], 4)
        energies = [state["energy"] for state in states]
        expect("energy grows", energies, sorted(energies))
        expect("faults", [(f["kind"], f["code"]) for f in capture.gpu_faults], [(8, 79)])

        rows = table_rows(work.file("capture.xpu"), "gpu_metric_sum")
        power = row_of(rows, Metric="power", Name="[all]")
        expect(f"power: {power}", abs(power["Avg"] - 350) < 5, True)
        expect("samples", power["Samples"], len(states))
        expect("of peak", row_of(rows, Metric="sm_clock")["Peak (%)"], 88.6)
        reasons = table_rows(work.file("capture.xpu"), "gpu_throttle_sum")
        expect("reasons", {r["Reason"] for r in reasons},
               {"power limit (software)", "power limit (driver's counter)"})
        sampled = row_of(reasons, Reason="power limit (software)")
        expect("all the time", sampled["Time (%)"], 100.0)

        summary = flat(run_report(work))
        expect_in("clocks", "GPU clocks and power", summary)
        expect_in("power cap", "GPU 0 was power-capped for 100 % of the time", summary)
        expect_in("Xid", "Xid 79 for GPU 0", summary)
        trace = run_report(work, "--chrome-trace=-")
        for counter in ("SM clock", "power", "temperature", "throttled"):
            expect_in("trace", f'"name":"{counter}"', trace.replace('": "', '":"'))


def test_what_does_not_use_cuda_has_no_clocks():
    require_recording()
    with Workspace() as work:
        record(work, "--", "sleep", "0.3", env=with_gpu())
        expect("devices", work.capture().gpu_devices, [])
    for option in ("--no-gpu-clocks", "--cpu-only"):
        with Workspace() as work:
            record(work, option, *program(0.3), env=with_gpu())
            capture = work.capture()
            expect(f"devices with {option}", capture.gpu_devices + capture.gpu_states, [])


def test_a_machine_without_driver_says_nothing():
    require_recording()
    with Workspace() as work:
        record(work, *program(0.2), env=simulated())


def samples_of(capture):
    samples = sorted(capture.gpu_metric_samples, key=lambda sample: sample["start_ns"])
    expect("there are samples", len(samples) > 0, True)
    return samples


def gaps_of(samples):
    return [(later["start_ns"] - sample["end_ns"]) // INTERVAL_NS
            for sample, later in zip(samples, samples[1:]) if later["start_ns"] != sample["end_ns"]]


def test_counters():
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-metrics", *program(0.6), env=with_gpu())
        capture = work.capture()
        expect("losses", capture.losses(), {})
        names = {metric["metric"]: metric["name"] for metric in capture.gpu_metrics}
        expect("metrics", [names[number] for number in sorted(names)], USUAL)
        sources = {metric["name"]: metric["source"] for metric in capture.gpu_metrics}
        expect("of a group", sources["tensor_active"],
               "TPC.TriageSim.sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed")
        expect("other name", sources["dram_read"], "dram__read_bytes.sum")
        samples = samples_of(capture)
        expect("gaps", gaps_of(samples), [])
        expect("interval", {s["end_ns"] - s["start_ns"] for s in samples}, {INTERVAL_NS})
        expect("values of sm_active", {s["value_0"] for s in samples}, {0, 8000})
        expect("rest", {s["value_5"] for s in samples}, {0})
        # What happened before the program's exec and after its end is covered.
        expect(f"samples: {len(samples)}", len(samples) >= 3000, True)
        instances = {s["instance"] for s in samples}
        expect("clock", {p["instance"] for p in capture.clock_pairs} >= instances, True)

        rows = table_rows(work.file("capture.xpu"), "gpu_metric_sum")
        for name, average in (("sm_active", 40), ("dram_read", 750)):
            row = row_of(rows, Metric=name, Name="[all]")
            expect(f"{name}: {row}", abs(row["Avg"] / average - 1) < 0.06, True)
            expect("samples", row["Samples"], len(samples))
        read = row_of(rows, Metric="dram_read", Name="[all]")
        expect(f"peak: {read}", abs(read["Peak (%)"] - 25) < 1.5, True)
        expect(f"max: {read}", abs(read["Max"] - 1500) < 1, True)
        expect_in("summary", "GPU counters", run_report(work))
        trace = run_report(work, "--chrome-trace=-")
        expect_in("trace", "dram_read", trace)


def test_which_counters():
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-metrics", "--gpu-metric-set=l2_hit_rate,dram,sm__warps_active.avg",
               "--gpu-metric-interval=1ms", *program(0.3), env=with_gpu())
        capture = work.capture()
        numbers = {m["metric"]: m["name"] for m in capture.gpu_metrics}
        expect("metrics", [numbers[n] for n in sorted(numbers)],
               ["l2_hit_rate", "dram_read", "dram_write", "sm__warps_active.avg"])
        expect("interval", {s["end_ns"] - s["start_ns"] for s in samples_of(capture)}, {1_000_000})


def test_counters_that_do_not_fit_are_named():
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-metrics", *program(0.2), env=with_gpu(XPU_FAKE_PM_METRICS_PER_PASS="3"))
        capture = work.capture()
        expect("metrics", len({m["name"] for m in capture.gpu_metrics}), 3)
        expect_in("left out", "dram_read, dram_write",
                  " ".join(capture.details("gpu_metrics_refused")))
        expect("samples", len(samples_of(capture)) > 0, True)


def test_what_overflows_is_counted():
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-metrics", *program(0.6), env=with_gpu(XPU_FAKE_PM_OVERFLOW_AFTER="10"))
        capture = work.capture()
        gaps = gaps_of(samples_of(capture))
        expect(f"one gap: {gaps}", len(gaps), 1)
        lost = capture.losses()
        expect("losses", set(lost), {"gpu_samples_lost"})
        expect(f"lost {lost}, missing {gaps}", abs(lost["gpu_samples_lost"] - gaps[0]) <= 1, True)
        expect_in("ledger", "samples lost", flat(run_report(work)))


def test_a_refusal_is_said_and_the_rest_goes_on():
    require_recording()
    for variable, code, text in (("XPU_FAKE_PM_ERROR", 35, "run as root"),
                                 ("XPU_FAKE_PM_ENABLE_ERROR", 26, "another profiler")):
        with Workspace() as work:
            record(work, "--gpu-metrics", *program(0.3), env=with_gpu(**{variable: str(code)}))
            capture = work.capture()
            expect("losses", capture.losses(), {"gpu_metrics_refused": 1})
            expect_in("reason", text, capture.details("gpu_metrics_refused")[0])
            expect("samples", capture.gpu_metric_samples, [])
            expect("states", len(capture.gpu_states) > 1, True)
            expect("kernels", len(capture.kernels) > 0, True)
    with Workspace() as work:
        record(work, *program(0.2), env=with_gpu(XPU_FAKE_NVML_ERROR="4"))
        expect_in("reason", "Insufficient Permissions",
                  work.capture().details("gpu_clocks_refused")[0])


def test_an_older_cupti_has_no_counters():
    require_recording()
    for version in ("11.8", "12.0", "12.4"):
        with Workspace() as work:
            record(work, "--gpu-metrics", *program(0.2), env=with_gpu(XPU_FAKE_CUPTI_VERSION=version))
            capture = work.capture()
            expect("losses", capture.losses(), {"gpu_metrics_refused": 1, "old_cupti": 1})
            expect_in("reason", "hardware counters need CUPTI 12.6 or newer",
                      capture.details("gpu_metrics_refused")[0])
            expect("samples", capture.gpu_metric_samples, [])
            expect("kernels", len(capture.kernels) > 0, True)
    with Workspace() as work:
        record(work, "--gpu-metrics", *program(0.6), env=with_gpu(XPU_FAKE_CUPTI_VERSION="12.9"))
        capture = work.capture()
        expect("losses", capture.losses(), {"old_cupti": 1})
        expect("samples", len(capture.gpu_metric_samples) > 0, True)


def test_a_library_that_others_can_write_is_not_loaded():
    require_recording()
    with Workspace() as work:
        place = work.path / "open"
        place.mkdir()
        library = place / "libcupti.so.13"
        library.write_bytes(b"")
        place.chmod(0o777)
        record(work, "--gpu-metrics", f"--cupti-lib={library}", *program(0.2), env=with_gpu())
        detail = work.capture().details("gpu_metrics_refused")[0]
        expect_in("reason", "others can write", detail)


def test_pauses():
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-metrics", "--delay=400ms", *program(0.8), env=with_gpu())
        capture = work.capture()
        expect("losses", capture.losses(), {})
        begin_ns = min(s["time_ns"] for s in capture.recording_switches if s["is_on"])
        early = [s for s in capture.gpu_states if s["time_ns"] < begin_ns]
        expect("states before", early, [])
        span_ns = samples_of(capture)[-1]["end_ns"] - samples_of(capture)[0]["start_ns"]
        whole_ns = capture.recording_end[0]["time_ns"] - capture.recording_info[0]["start_ns"]
        expect(f"sampled {span_ns} of {whole_ns}", span_ns < whole_ns - 300_000_000, True)


def is_free(lock):
    with open(lock, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        expect("in time", time.monotonic() < deadline, True)
        time.sleep(0.02)


def test_counters_are_free_after_sigkill():
    require_recording()
    with Workspace() as work:
        lock = work.file("lock")
        sleep = shutil.which("sleep")
        env = with_gpu(XPU_FAKE_PM_LOCK=lock)
        with subprocess.Popen([xpu_testing.recorder(env), "--gpu-metrics", "-o",
                               work.file("capture.xpu"), "--", "sleep", "600"], env=env,
                              stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: os.path.exists(lock) and not is_free(lock))
            wait_until(lambda: xpu_testing.program_of(process.pid, sleep))
            target = xpu_testing.program_of(process.pid, sleep)
            process.send_signal(signal.SIGKILL)
            process.wait()
            wait_until(lambda: is_free(lock))
            os.kill(target, signal.SIGKILL)


def test_wrong_options():
    with Workspace() as work:
        for options, text in ((["--gpu-metrics", "--gpu-metric-set=tensr"], "did you mean tensor"),
                              (["--gpu-metrics", "--gpu-metric-interval=1us"], "from 5us to 1s"),
                              (["--gpu-metric-set=sm"], "--gpu-metrics")):
            result = work.record(*options, "--", "true", env=dict(os.environ))
            expect(f"{options}: {result.stderr}", result.returncode, 125)
            expect_in("message", text, result.stderr)


def test_the_list():
    result = subprocess.run([find("record/xpu-record-for-tests"), "--list-gpu-metrics"],
                            env=with_gpu(), capture_output=True, text=True, check=False)
    expect("status", result.returncode, 0)
    for text in ("GPU 0: ", "(SIM100)", "dram_read", "tensor_active", "nvlink"):
        expect_in("list", text, result.stdout)


if __name__ == "__main__":
    main(globals())
