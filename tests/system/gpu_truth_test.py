"""What a capture of a CUDA program says, against what the program knows of itself. The same
assertions on the simulated device and, with XPU_TEST_GPU=1 and XPU_WORKLOAD_DIR (made by
tests/workloads/build_gpu.sh), on a real GPU."""

import json
import os
import subprocess
from collections import Counter

import xpu_testing
from gpu_capture import GpuCapture, plain_name
from gpu_programs import REAL, check_sites, prepare, program, recorded
from xpu_testing import PATIENCE_S, Workspace, expect, report, symbols_of, table_rows

def check_transformer(name, *arguments):
    with Workspace() as work:
        account, capture = recorded(work, name, *arguments)
        expect("kernel records", len(capture.of("kernel")), account["launches"])
        expect("kernels by name", capture.kernels_by_name(), account["kernels"])
        expect("kernels without a stack of their id", capture.unmatched(), [])
        expect("losses", capture.losses(), {})
        gpu = sum(v for k, v in capture.folded("--mode", "gpu", "--unit", "ns").items()
                  if k.split(";")[-1].startswith("[GPU_Kernel]"))
        expect("folded ns of kernels", gpu, capture.kernel_ns())
        check_sites(name, capture, account, program(name))
        copies = [c for c in capture.of("memcpy") if c["copy_kind"] in ("1", "2")]
        expect("bytes copied", sum(int(c["size_bytes"]) for c in copies),
               sum(c["bytes"] for c in account["copies"].values()))
        expect("bytes set", sum(int(m["size_bytes"]) for m in capture.of("memset")),
               account["memset"]["bytes"])
        tables = json.loads(report("--top", "-n", "0", "--format", "json", work.path / "capture.xpu"))
        expect("instances in cuda_gpu_kern_sum",
               sum(r["Instances"] for r in tables["cuda_gpu_kern_sum"]), account["launches"])
        margin = capture.worst_margin_ns()
        expect(f"no kernel starts before its launch call (worst margin {margin} ns)", margin >= 0,
               True)
        print(f"        {name}: {account['launches']} launches, worst margin {margin} ns, "
              f"{os.path.getsize(work.path / 'capture.xpu')} bytes")
        return account, capture


def test_transformer_shared_cudart():
    check_transformer("transformer", "--requests", 12, "--layers", 3)


def test_transformer_static_cudart():
    check_transformer("transformer-static", "--requests", 12, "--layers", 3)


def test_transformer_threads():
    check_transformer("transformer", "--requests", 8, "--layers", 2, "--threads", 4)


def test_time_agrees_with_events():
    with Workspace() as work:
        account, capture = recorded(work, "transformer", "--requests", 20, "--layers", 4,
                                    "--event-time", "--kernel-us", 500 if REAL else 200)
        requests = []
        for kernel in sorted(capture.of("kernel"), key=lambda k: int(k["start_ns"])):
            if capture.plain[kernel["name"]] == "gate_kernel":
                requests.append(0)
            else:
                requests[-1] += capture.duration(kernel)
        expect("requests", len(requests), len(account["event_ns"]))
        ratios = [kernels / events for kernels, events in zip(requests, account["event_ns"])
                  if events]
        expect("requests without a gap", len(ratios) >= 5, True)
        for ratio in ratios:
            expect(f"GPU time over cudaEvent time, {ratio:.4f}, within 2 %", abs(ratio - 1) <= 0.02,
                   True)
        print(f"        GPU time / cudaEvent time = {min(ratios):.4f} to {max(ratios):.4f}")


def check_two_kernels(mode):
    """Threads or processes that launch different kernels alternately: nothing mixed."""
    name = "two_kernels"
    with Workspace() as work:
        account, capture = recorded(work, name, f"--mode={mode}", "--launches", 200)
        expect("losses", capture.losses(), {})
        path = program(name)
        for actor in account["actors"]:
            kernel = next(iter(actor["kernels"]))
            mine = [k for k in capture.of("kernel") if capture.plain[k["name"]] == kernel]
            expect(f"{mode}: {kernel}s", len(mine), actor["kernels"][kernel])
            stacks = [capture.stacks[capture.key(k)] for k in mine]
            expect(f"{mode}: pids of {kernel}", {int(s["pid"]) for s in stacks}, {actor["pid"]})
            expect(f"{mode}: tids of {kernel}", {int(s["tid"]) for s in stacks}, {actor["tid"]})
        accounts = {"sites": [s for a in account["actors"] for s in a["sites"]]}
        check_sites(f"two_kernels {mode}", capture, accounts, path)


def test_two_threads():
    check_two_kernels("threads")


def test_two_processes():
    check_two_kernels("fork")


def test_two_programs():
    check_two_kernels("exec")


def test_many_launches_on_two_threads():
    with Workspace() as work:
        account, capture = recorded(work, "empty_launches", "--launches", 20000, "--threads", 2,
                                    options=("-F", "999"))
        expect("losses", capture.losses(), {})
        expect("kernel records", len(capture.of("kernel")), account["launches"])
        expect("kernels without a stack of their id", len(capture.unmatched()), 0)
        print(f"        {account['launches']} launches, "
              f"{os.path.getsize(work.path / 'capture.xpu') / account['launches']:.1f} bytes each, "
              "samples and API calls included")


def test_driver_api_only():
    with Workspace() as work:
        account, capture = recorded(work, "driver_api", "--launches", 50)
        expect("kernels by name", capture.kernels_by_name(), account["kernels"])
        expect("kernels without a stack of their id", capture.unmatched(), [])
        leaves = {tuple(line.split(";")[-2:]) for line in capture.folded("--mode", "gpu")
                  if "[GPU_Kernel]" in line}
        expect("API calls that launched", {call for call, _ in leaves},
               {"cuLaunchKernel", "cuLaunchKernelEx"})


def test_graph_replays():
    with Workspace() as work:
        account, capture = recorded(work, "graph", "--nodes", 20, "--replays", 10)
        expect("graph launches", len(capture.of("graph_launch")), 10)
        replays = {line: ns for line, ns in capture.folded("--mode", "gpu", "--unit", "ns").items()
                   if "[GPU_Graph]" in line}
        expect("folded ns of replays", sum(replays.values()),
               sum(capture.duration(g) for g in capture.of("graph_launch")))
        for line in replays:
            expect("the call before the replay", line.split(";")[-2], "cudaGraphLaunch")


# ---- llm_decode: a language model that counts its own launches ----------------------------------


def recorded_model(work, *arguments, options=()):
    counts = work.path / "counts.json"
    result = work.record(*options, "--", program("llm_decode"), *map(str, arguments), "--counts",
                         str(counts), timeout=PATIENCE_S)
    expect(f"llm_decode: exit status ({result.stderr})", result.returncode, 0)
    account, capture = json.loads(counts.read_text()), GpuCapture(work.path / "capture.xpu")
    expect("losses", capture.losses(), {})
    expect("kernels without a stack of their id", capture.unmatched(), [])
    return account, capture


def sites_of(launches):
    """(path, kernel, launches) of the launches that --counts prints."""
    return [(path, kernel, count) for kernel, paths in launches.items()
            for path, count in paths.items()]


def range_counts(capture):
    """Of the default domain, whose name is empty."""
    return {row["Range"].removeprefix(":"): row["Instances"]
            for row in table_rows(capture.path, "nvtx_sum")}


def model_paths(capture):
    """How often which kernel or graph ran, by path from the function Generate on, with the calls of
    CUDA; copies are left out."""
    paths = Counter()
    for row in table_rows(capture.path, "callpath_sum"):
        *frames, leaf = row["Path"].split(";")
        if not leaf.startswith(("[GPU_Kernel]", "[GPU_Graph]")):
            continue
        names = []
        for part in ";".join(map(plain_name, frames)).split(";[captured at];"):
            part = part.split(";")
            names.append(";".join(part[part.index("Generate"):]))
        what = leaf.removeprefix("[GPU_Kernel]")
        leaf = "graph" if leaf.startswith("[GPU_Graph]") else plain_name(what)
        paths[";[captured at];".join(names) + ";" + leaf] += row["Instances"]
    return dict(paths)


def check_model_copies(account, capture):
    for direction, kind in (("HtoD", "1"), ("DtoH", "2")):
        expect(f"bytes copied {direction}",
               sum(int(c["size_bytes"]) for c in capture.of("memcpy") if c["copy_kind"] == kind),
               account["copies"][direction]["bytes"])
    expect("bytes set", sum(int(m["size_bytes"]) for m in capture.of("memset")),
           account["memset"]["bytes"])


def check_model_ranges(account, capture):
    """NVTX ranges, and the kernels launched in each: the functions that hold a range are known."""
    expect("ranges", range_counts(capture), account["nvtx"])
    if not account["nvtx"]:
        return
    found = Counter()
    for row in table_rows(capture.path, "nvtx_kern_sum"):
        found[row["NVTX Range"].removeprefix(":").split()[0]] += row["Kern Inst"]
    expected = Counter()
    for path, _, count in sites_of(account["launches"]):
        for function, name in (("Prefill", "prefill"), ("DecodeStep", "decode"),
                               ("Layer::Forward", "layer")):
            expected[name] += count if function in path.split(";") else 0
    expect("kernels in ranges", dict(found), dict(+expected))


def test_model():
    with Workspace() as work:
        account, capture = recorded_model(work, "--steps", 12, "--layers", 3, "--dim", 128,
                                          "--kv-heads", 2)
        sites = sites_of(account["launches"])
        check_sites("llm_decode", capture, {"sites": [
            {"path": p, "kernel": k, "launches": n} for p, k, n in sites]}, program("llm_decode"))
        expect("launches by path", model_paths(capture),
               {f"{path};cudaLaunchKernel;{kernel}": n for path, kernel, n in sites})
        check_model_copies(account, capture)
        check_model_ranges(account, capture)
        print(f"        {sum(n for *_, n in sites)} launches from {len(sites)} call paths, "
              f"{sum(account['nvtx'].values())} NVTX ranges")


def check_model_graph(trace):
    """The decode step as a graph: replays, or with node records each kernel where it was made."""
    if os.environ.get("XPU_FAKE_CUPTI_VERSION") == "11.8":
        xpu_testing.skip("nodes of graphs", "CUPTI 11.8 does not tell who makes them "
                         "(record_cupti_versions_test)")
    steps = 12
    with Workspace() as work:
        account, capture = recorded_model(work, "--graph", "--steps", steps, "--layers", 3, "--dim",
                                          128, options=(f"--cuda-graph-trace={trace}",))
        expect("replays that the program counts", account["graph_launches"], steps)
        [(launch, replays)] = account["graph_launches_from"].items()
        expected = {f"{path};cudaLaunchKernel;{kernel}": n
                    for path, kernel, n in sites_of(account["launches"])}
        captured = sites_of(account["captured"])
        if trace == "graph":
            expect("graph launches", len(capture.of("graph_launch")), replays)
            expected[f"{launch};cudaGraphLaunch;graph"] = replays
        else:
            expected.update({f"{launch};cudaGraphLaunch;[captured at];{path};cudaLaunchKernel;"
                             f"{kernel}": n * replays for path, kernel, n in captured})
        expect("launches and replays by path", model_paths(capture), expected)
        counts = capture.launch_counts()
        expect("launches captured into the graph", counts["captured"],
               account["kernels_per_graph"])
        expect("launches lost, pending", (counts["lost"], counts["pending"]), (0, 0))
        check_model_copies(account, capture)
        expect("ranges", range_counts(capture), account["nvtx"])
        print(f"        {replays} replays of {account['kernels_per_graph']} kernels, "
              f"{len(capture.of('kernel'))} kernel records")


def test_model_as_a_graph():
    check_model_graph("graph")


def test_model_as_nodes_of_a_graph():
    check_model_graph("node")


def test_model_computes_what_it_says():
    """On a real GPU: its logits are those of the plain CPU code, with and without a graph."""
    if not REAL:
        raise xpu_testing.Skip("the simulated device does not run kernels")
    for arguments in ((), ("--graph", "--temperature", "1", "--top-k", "40"),
                      ("--heads", "5", "--kv-heads", "1", "--dim", "330", "--prompt", "x"),
                      ("--heads", "2", "--dim", "512", "--prompt", "word " * 70)):
        result = subprocess.run([program("llm_decode"), "--check", *arguments], timeout=PATIENCE_S,
                                capture_output=True, text=True)
        expect(f"status with {arguments} ({result.stdout})", result.returncode, 0)


def test_dropped_stacks_change_nothing_else():
    """Every 7th stack left out: the rest of the attributions stay identical."""
    arguments = ("transformer", "--requests", 6, "--layers", 2)
    path = program("transformer")

    def attributions(env):
        with Workspace() as work:
            _, capture = recorded(work, *arguments, env=env)
            return [(capture.key(k)[1], capture.plain[k["name"]],
                     capture.frames(capture.stacks[capture.key(k)], path, symbols_of(path))
                     if capture.key(k) in capture.stacks else None)
                    for k in sorted(capture.of("kernel"), key=lambda k: int(k["correlation_id"]))
                    ], capture.losses()

    whole, losses = attributions({})
    expect("losses of the whole capture", losses, {})
    thinned, losses = attributions({"XPU_TEST_DROP": "stack:7"})
    expect("kernels", len(thinned), len(whole))
    missing = [i for i, t in enumerate(thinned) if t[2] is None]
    expect("some stacks are missing", len(missing) > 0, True)
    expect("the rest", [t for t in thinned if t[2] is not None],
           [w for w, t in zip(whole, thinned) if t[2] is not None])


def test_program_that_never_touches_cuda():
    with Workspace() as work:
        result = work.record("--", "/bin/true")
        expect("status", result.returncode, 0)
        capture = GpuCapture(work.path / "capture.xpu")
        expect("CUDA processes", capture.of("gpu_process"), [])


if __name__ == "__main__":
    prepare()
    xpu_testing.main(globals())
