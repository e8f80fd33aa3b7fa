"""xpu-record --no-inject: launches by probes on the CUDA libraries, with nothing loaded into the
program. On the simulated device."""

import json
import os
import shutil
import subprocess
import sys

import xpu_testing
from gpu_capture import up_to_launch
from other_users import as_nobody
from xpu_testing import PATIENCE_S, STACK_COMPLETE, Workspace, expect, expect_in, symbols_of

RUNTIME, DRIVER = 1, 2  # ProbePurpose


# The programs launch within a millisecond of their start, sooner than a library can be probed once
# it is mapped. Their run path tells the recorder of it beforehand, that of a shell does not.
FORESEEN = {}


# Copies of its own: return probes cut the stacks of all programs that use the file.
def puppet():
    return xpu_testing.find("tests/system/xpu_probe_puppet", own=True)


def odd_cudart():
    return xpu_testing.find("tests/system/probe_cudart/libcudart.so", own=True)


def fake_library(name):
    return xpu_testing.find(f"tests/fake_cuda/lib/{name}", own=True)


def workload(name):
    return xpu_testing.workload(name, own=True)


class ProbeCapture(xpu_testing.Capture):
    """Probe hits as calls: entry and return of one thread, nested as they were."""

    def __init__(self, path):
        super().__init__(path)
        self.probe_of = {p["probe"]: p for p in self.probes}
        self.calls = []
        open_calls = {}
        for hit in sorted(self.probe_hits, key=lambda h: h["time_ns"]):
            stack = open_calls.setdefault(hit["tid"], [])
            if hit["is_return"]:
                entry = stack.pop()
                expect("a return is of the function entered last", hit["probe"], entry["probe"])
                entry["returned"] = hit["return_value"]
                continue
            call = {**hit, "function": self.probe_of[hit["probe"]]["function"],
                    "purpose": self.probe_of[hit["probe"]]["purpose"],
                    "inside": stack[-1] if stack else None}
            self.calls.append(call)
            stack.append(call)
        expect("calls without a return", [c for s in open_calls.values() for c in s], [])

    def of(self, purpose):
        return [c for c in self.calls if c["purpose"] == purpose]

    def function_at(self, call, address):
        mapping = self.mapping_at(call["pid"], address, call["time_ns"])
        if mapping is None or not os.path.exists(mapping["path"]):
            return None
        in_file = address - mapping["start_address"] + mapping["file_offset"]
        return symbols_of(mapping["path"]).name_at(in_file)

    def frames(self, call):
        """Outermost first. All addresses are return addresses: the function is not in its stack."""
        names = [self.function_at(call, int(frame[1:], 16) - 1) for frame in call["stack"]]
        return [name for name in reversed(names) if name]


def recorded(work, *command, options=(), env=None):
    result = work.record("--no-inject", *options, "--", *map(str, command),
                         env={**os.environ, **(env or {})}, timeout=PATIENCE_S)
    expect(f"{command}: exit status ({result.stderr})", result.returncode, 0)
    return result, ProbeCapture(work.path / "capture.xpu")


def check_sites(capture, calls, account):
    """Launches by call path of the program, as it counts them itself."""
    expected = {}
    for site in account["sites"]:
        expected[site["path"]] = expected.get(site["path"], 0) + site["launches"]
    actual, known = {}, {}
    for call in calls:
        key = tuple(call["stack"])
        if key not in known:
            frames = up_to_launch(capture.frames(call))
            known[key] = next((p for p in expected
                               if frames[-len(p.split(";")):] == p.split(";")), ";".join(frames))
        actual[known[key]] = actual.get(known[key], 0) + 1
    expect("launches by call site", actual, expected)


def check_transformer(name):
    with Workspace() as work:
        result, capture = recorded(work, workload(name), "--requests", 8, "--layers", 2,
                                   "--threads", 2)
        account = json.loads(result.stdout.splitlines()[-1])
        expect("losses", capture.losses(), {})
        expect("how the stacks were taken", capture.recording_info[0]["launch_stacks"], 3)
        expect("processes of the injected library", capture.gpu_processes, [])
        driver = capture.of(DRIVER)
        expect("driver calls", len(driver), account["launches"])
        expect("return values", {c["returned"] for c in capture.calls}, {0})
        return account, capture, driver


def test_shared_cudart():
    account, capture, driver = check_transformer("transformer")
    runtime = capture.of(RUNTIME)
    expect("runtime calls", len(runtime), account["launches"])
    expect("functions", {c["function"] for c in runtime}, {"cudaLaunchKernel"})
    expect("driver calls outside a runtime call",
           [c for c in driver if c["inside"] is None or c["inside"]["purpose"] != RUNTIME], [])
    expect("runtime calls with a driver call inside",
           len({id(c["inside"]) for c in driver}), len(runtime))
    check_sites(capture, runtime, account)
    expect("callers of the driver", {capture.frames(c)[-1] for c in driver[:20]},
           {"cudaLaunchKernel"})
    kernels = {}
    for call in runtime:
        name = capture.function_at(call, call["kernel"]).removeprefix("void ")
        kernels[name] = kernels.get(name, 0) + 1
    expect("kernels by the address of their host function", kernels, account["kernels"])


def test_static_cudart():
    account, capture, driver = check_transformer("transformer-static")
    expect("runtime calls", capture.of(RUNTIME), [])
    check_sites(capture, driver, account)


def test_named_library():
    """It is probed from the start, whatever its name; the others are probed as usual."""
    with Workspace() as work:
        named = work.path / "renamed.so"
        shutil.copy(odd_cudart(), named)
        result, capture = recorded(work, puppet(), "late", named, 20,
                                   options=("--cuda-lib", str(named)))
        expect_in("files probed", str(named), {p["path"] for p in capture.probes})
        check_late(capture, 20)
        result, capture = recorded(work, workload("driver_api"), "--launches", 5,
                                   options=("--cuda-lib", str(named)))
        account = json.loads(result.stdout.splitlines()[-1])
        expect("driver calls", len(capture.of(DRIVER)), account["launches"])


def test_unusable_library():
    with Workspace() as work:
        for path, reason in ((work.file("absent.so"), "No such file or directory"),
                             (work.file("text.so", "no ELF"), "too short for an ELF file"),
                             ("/bin/true", "defines no launch function")):
            result = work.record("--no-inject", "--cuda-lib", path, "--", "/bin/touch",
                                 work.path / "ran")
            expect(f"{path}: exit status", result.returncode, 125)
            expect_in(path, path if path != "/bin/true" else "true", result.stderr)
            expect_in(path, reason, result.stderr)
        expect("the program ran", (work.path / "ran").exists(), False)


def test_graph_and_driver_api():
    with Workspace() as work:
        _, capture = recorded(work, workload("graph"), "--nodes", 4, "--replays", 5)
        replays = [c for c in capture.of(RUNTIME) if c["function"] == "cudaGraphLaunch"]
        expect("replays", len(replays), 5)
        expect("kernels of replays", {c["kernel"] for c in replays}, {0})
        expect("callers", {capture.frames(c)[-1] for c in replays}, {"ReplayGraph"})
        result, capture = recorded(work, workload("driver_api"), "--launches", 50)
        account = json.loads(result.stdout.splitlines()[-1])
        counts = {}
        for call in capture.calls:
            counts[call["function"]] = counts.get(call["function"], 0) + 1
        expect("calls", sum(counts.values()), sum(account["kernels"].values()))
        expect("functions", set(counts), {"cuLaunchKernel", "cuLaunchKernelEx"})


def test_only_the_target_and_its_descendants():
    outside = subprocess.Popen([puppet(), "outside"], stdout=subprocess.PIPE, text=True)
    try:
        outside.stdout.readline()
        for mode in ("fork", "exec", "threads"):
            with Workspace() as work:
                result, capture = recorded(work, "/bin/sh", "-c",
                                           f"{workload('two_kernels')} --mode={mode} "
                                           "--launches 200; exit $?", env=FORESEEN)
                account = json.loads(result.stdout.splitlines()[-1])
                expect(f"{mode}: losses", capture.losses(), {})
                calls = {}
                for call in capture.of(RUNTIME):
                    key = (call["pid"], call["tid"])
                    calls[key] = calls.get(key, 0) + 1
                expect(f"{mode}: runtime calls by process and thread", calls,
                       {(a["pid"], a["tid"]): sum(a["kernels"].values())
                        for a in account["actors"]})
        expect("the other program still runs", outside.poll(), None)
    finally:
        outside.kill()
        outside.wait()


def test_nested_pid_namespace():
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode:
        xpu_testing.skip("root", "unshare --pid does not work here")
    with Workspace() as work:
        result, capture = recorded(work, "unshare", "--pid", "--fork",
                                   workload("transformer"), "--requests", 4, env=FORESEEN)
        account = json.loads(result.stdout.splitlines()[-1])
        expect("the program's own pid", account["pid"], 1)
        expect("runtime calls", len(capture.of(RUNTIME)), account["launches"])
        pids = {c["pid"] for c in capture.calls}
        forked = {e["pid"] for e in capture.process_events if e["kind"] == 1}
        expect("pids are the recorder's", len(pids) == 1 and pids <= forked, True)


def check_late(capture, count):
    calls = {}
    for call in capture.calls:
        if not call["function"].startswith("cuda"):
            continue
        caller = capture.frames(call)[-2:]
        key = (call["function"], call["kernel"], call["returned"], *caller)
        calls[key] = calls.get(key, 0) + 1
    # What the compiler makes of Late is its symbol without its namespace.
    calls = {(*k[:3], k[3].split("::")[-1], k[4]): v for k, v in calls.items()}
    expect("calls, their kernels, results and callers", calls,
           {("cudaLaunchKernel", 0x11, 1, "main", "CallLaunchKernel"): count,
            ("cudaLaunchKernelExC", 0x22, 2, "main", "CallLaunchKernelExC"): count,
            ("cudaGraphLaunch", 0, 3, "main", "CallGraphLaunch"): count})


def test_library_loaded_late():
    """No search finds it before it is mapped; how its functions begin does not matter."""
    with Workspace() as work:
        copy = work.path / "libcudart-9335f6a2.so.13"
        shutil.copy(odd_cudart(), copy)
        _, capture = recorded(work, puppet(), "late", copy, 20)
        expect("losses", capture.losses(), {})
        expect_in("files probed", str(copy), {p["path"] for p in capture.probes})
        check_late(capture, 20)


def test_one_by_one():
    """As on kernels before 6.6."""
    with Workspace() as work:
        copy = work.path / "libcudart.so.13"
        shutil.copy(odd_cudart(), copy)
        result, capture = recorded(work, puppet(), "late", copy, 20,
                                   options=("-v", "--cuda-lib", str(copy)),
                                   env={"XPU_TEST_WITHOUT": "uprobe_multi"})
        expect_in("how they are placed", "launch probes: one by one; ", result.stderr)
        expect_in("the file that was named", f"; 3 in {copy}", result.stderr)
        expect("losses", capture.losses(), {})
        check_late(capture, 20)


def test_library_without_launch_functions():
    with Workspace() as work:
        library = work.path / "libcudart.so.7"
        shutil.copy(xpu_testing.find("cupti_inject/libxpu_inject.so"), library)
        result, capture = recorded(work, sys.executable, "-c", "import ctypes, time\n"
                                   f"ctypes.CDLL('{library}')\ntime.sleep(0.3)")
        expect("losses", capture.losses(), {"probe_not_placed": 1})
        expect_in("reason", f"{library}: defines no launch function", result.stderr)


def test_names_the_missing_privileges():
    with Workspace() as work:
        result = as_nobody(work, "--no-inject", "--gpu-only", "touch", "started")
        expect("status", result.returncode, 125)
        expect("first line", result.stderr.splitlines()[0],
               "xpu-record: launch probes need CAP_BPF and CAP_PERFMON, which this process lacks")
        expect("the program was not started", os.listdir(work.path / "out"), [])


def test_needs_no_injected_library():
    with Workspace() as work:
        alone = shutil.copy(xpu_testing.recorder(), work.path / "xpu-record")
        capture = work.path / "capture.xpu"
        result = subprocess.run([alone, "--no-inject", "-o", capture, "--",
                                 workload("vector_add")], capture_output=True, text=True)
        expect(f"exit status ({result.stderr})", result.returncode, 0)
        expect("calls", [c["function"] for c in ProbeCapture(capture).of(RUNTIME)],
               ["cudaLaunchKernel"])


def test_program_may_use_cupti():
    with Workspace() as work:
        result = work.record("--", puppet(), "subscribe")
        expect("cuptiSubscribe while we hold CUPTI", result.stdout.strip() != "0", True)
        for option in ("--yield-cupti", "--no-inject"):
            result = work.record(option, "--", puppet(), "subscribe")
            expect(f"{option}: cuptiSubscribe", (result.stdout, result.returncode), ("0\n", 0))


def spares_others(work):
    """Whether this kernel lets probes at returns leave other programs alone."""
    result = work.record("--cpu-only", "--uretprobe", f"{puppet()}:PuppetThrows", "true",
                         output="asked.xpu")
    expect(f"status ({result.stderr})", result.returncode, 0)
    return "before Linux 6.13" not in result.stderr


def test_exceptions_of_other_programs():
    """They pass through a function whose returns are probed."""
    with Workspace() as work:
        if not spares_others(work):
            return
        other = subprocess.Popen([puppet(), "throws"], stdout=subprocess.PIPE, text=True)
        try:
            other.stdout.readline()
            result = work.record("--cpu-only", "--uretprobe", f"{puppet()}:PuppetThrows",
                                 "sleep", "0.3")
            expect(f"status ({result.stderr})", result.returncode, 0)
            expect("the other program still runs", other.poll(), None)
        finally:
            other.kill()
            other.wait()


def test_stacks_of_another_recording():
    """Probes at returns of the functions that it launches through would end them there."""
    with Workspace() as work:
        if not spares_others(work):
            return
        program = [workload("paced_launches"), "--rate", "2000", "--seconds"]
        env = {**os.environ, **FORESEEN}
        other = subprocess.Popen([xpu_testing.recorder(), "-o", work.file("other.xpu"), *program,
                                  "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        result = work.record("--no-inject", *program, "1", env=env)
        expect(f"status ({result.stderr})", result.returncode, 0)
        other.communicate()
        capture = work.capture("other.xpu")
        expect("launches of the other", len(capture.launch_stacks) > 1000, True)
        expect("those that are not whole",
               [s for s in capture.launch_stacks if not s["stack_flags"] & STACK_COMPLETE], [])


def test_environment_is_not_changed():
    with Workspace() as work:
        plain = subprocess.run(["env"], capture_output=True, text=True, cwd=work.path).stdout
        result, _ = recorded(work, "env")
        expect("variables", {v for v in result.stdout.splitlines() if not v.startswith("_=")},
               {v for v in plain.splitlines() if not v.startswith("_=")})


def test_hits_are_recorded_or_lost():
    with Workspace() as work:
        result = work.record("--no-inject", "-v", "--", workload("empty_launches"),
                             "--launches", "5000", "--threads", "2",
                             env={**os.environ, "XPU_TEST_DROP": "probe:10"})
        expect("exit status", result.returncode, 0)
        account = json.loads(result.stdout.splitlines()[-1])
        hits = 4 * account["launches"]
        expect_in("summary", f"launch probes: {hits} hits, {hits} recorded, 0 dropped",
                  result.stderr)
        capture = xpu_testing.Capture(work.path / "capture.xpu")
        expect("losses", capture.losses(), {"probe_ring_full": hits // 10})
        expect("hits", len(capture.probe_hits), hits - hits // 10)


if __name__ == "__main__":
    xpu_testing.require_recording()
    FORESEEN["LD_LIBRARY_PATH"] = os.path.dirname(fake_library("libcudart.so.13"))
    xpu_testing.main(globals())
