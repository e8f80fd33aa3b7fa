"""Captures recorded on a GPU machine give the numbers that the recorded program counted itself.

tests/captures/NAME.xpu was recorded there, NAME.json is what the program printed, NAME.symbols its
functions (`nm -S`), since the program itself is not here."""

import functools
import json
import os
import re
from collections import Counter

import xpu_testing
from gpu_capture import GpuCapture, count_sites, plain_name
from gpu_operations import (Sites, check_all_matched, check_nodes, check_one_stack_per_call,
                            hidden_kernels)
from xpu_testing import (CAPTURES, expect, is_left_out, of_large_captures, real_captures, report,
                         table_rows)

PYTHON_FRAME = re.compile(r"(.+\.py):(.+):(\d+)$")


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


@functools.cache
def capture_of(path):
    return GpuCapture(path)


def load(name):
    account = json.loads((CAPTURES / f"{name}.json").read_text())
    return account, capture_of(CAPTURES / f"{name}.xpu")


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


def rows_of(name, table, *arguments):
    text = report("--top", "--format", "json", "--table", table, *arguments,
                  CAPTURES / f"{name}.xpu")
    return json.loads(text)[table]


def test_short_names_keep_kernels_apart():
    for path in real_captures():
        full = rows_of(path.stem, "cuda_gpu_kern_sum")
        short = rows_of(path.stem, "cuda_gpu_kern_sum", "--kernel-names", "short")
        expect(f"kernels of {path.name}", len({row["Name"] for row in short}), len(full))
    names = {row["Name"] for row in rows_of("pytorch_symbols", "cuda_gpu_kern_sum",
                                            "--kernel-names", "short")}
    expect("the functor of GELU", any("GeluCUDAKernelImpl" in name for name in names), True)


@of_large_captures
def test_paths_are_read_by_people():
    for row in rows_of("pytorch_python", "callpath_sum"):
        expect("length of a path", len(row["Path"]) < 2000, True)
    rows = rows_of("pytorch_python", "func_sum")
    expect("Python's functions with GPU time",
           any(row["Language"] == "Python" and row["GPU Self Time (ns)"] > 0 for row in rows), True)


@of_large_captures
def test_operators():
    # 300 steps of six layers, each two times forward or backward; the engine adds up biases.
    rows = {(row["Operator"], row["Pass"]): row for row in rows_of("first/mlp", "op_sum")}
    work = {name: row["GPU Work"] for name, row in rows.items()}
    expect("aten::mm", work["aten::mm", "backward"], 16 * 300)
    expect("aten::addmm", work["aten::addmm", "forward"], 12 * 300)
    expect("aten::gelu", work["aten::gelu", "forward"], 6 * 300)
    expect("aten::gelu_backward", work["aten::gelu_backward", "backward"], 6 * 300)
    expect("sums of biases", work["aten::sum", "backward"], 6 * 300)
    expect("the node of addmm", rows["AddmmBackward0", "backward"]["GPU Total Time (ns)"],
           rows["aten::mm", "backward"]["GPU Total Time (ns)"])
    gpu = rows_of("first/mlp", "cuda_gpu_sum")
    expect("GPU time of all operators", sum(row["GPU Self Time (ns)"] for row in rows.values()),
           sum(row["Total Time (ns)"] for row in gpu))
    rows = {row["Operator"]: row for row in rows_of("first/compile", "op_sum")}
    expect("a kernel of Triton", rows["triton_red_fused_sum_3"]["GPU Work"], 400)
    rows = {row["Operator"]: row for row in rows_of("first/jax", "op_sum")}
    expect("the module of XLA", rows["jit_step:command_buffer_1"]["Launches"], 300)
    libraries = {row["Library"] for row in rows_of("first/gpt2", "kernel_library_sum")}
    expect("libraries", {"PyTorch", "cuBLAS", "fused attention", "CUTLASS"} <= libraries, True)


@of_large_captures
def test_modules():
    # 39 tokens after the first, four blocks.
    rows = rows_of("first/gpt2", "module_sum")
    block = "GPT2LMHeadModel;GPT2Model;GPT2Block"
    calls = {(row["Path"].removeprefix(block + ";"), row["Called At"].rpartition(":")[2]): row["Calls"]
             for row in reversed(rows)}  # the largest of those of one name, not the first token
    expect("layers of the attention, by line", [calls["GPT2Attention;Conv1D", line]
                                                for line in ("185", "223")], [156, 156])
    expect("both layers of the feed-forward network", [calls["GPT2MLP;Conv1D", line]
                                                       for line in ("239", "241")], [156, 156])
    # 300 steps: a loop over six layers is one entry, and threads of the backward pass have no Python.
    rows = {row["Path"]: row for row in rows_of("first/mlp", "module_sum")}
    expect("linear layers", (rows["Sequential;Linear"]["Calls"], rows["Sequential;Linear"]["GPU Work"]),
           (6 * 300, 12 * 300))
    expect("their backward pass", rows["[backward];AddmmBackward0"]["GPU Work"], 16 * 300)
    expect("what only calls others has no calls", rows["Sequential"]["Calls"], None)
    # What torch.compile has made of a module has its own class.
    rows = {row["Path"]: row for row in rows_of("first/compile", "module_sum")}
    expect("a compiled module", rows["OptimizedModule"]["Called At"], "compile_step.py:<module>:11")
    for name in ("gpt2", "mlp", "compile", "loader"):
        gpu = rows_of(f"first/{name}", "cuda_gpu_sum")
        modules = rows_of(f"first/{name}", "module_sum")
        expect(f"GPU time of all modules of {name}", sum(row["GPU Self Time (ns)"] for row in modules),
               sum(row["Total Time (ns)"] for row in gpu))


@of_large_captures
def test_slow_steps():
    rows = json.loads(report("--slow-steps", "--format", "json", CAPTURES / "pytorch_loader.xpu"))
    rows = rows["slow_step_sum"]
    steps = rows_of("pytorch_loader", "step_trace")
    times = sorted(row["Duration (ns)"] for row in steps[1:])
    slow, median = times[-128:], times[322:-322]
    more = sum(slow) / len(slow) - sum(median) / len(median)
    idle = sum(row["Delta (ns)"] for row in rows if row["Kind"] == "idle GPU")
    expect(f"slow steps take {more:.0f} ns more, and the GPU is idle for as long: {idle}",
           abs(idle / more - 1) < 0.02, True)


def test_steps_are_found():
    # Steps as the programs counted them, and kernels of each.
    for name, steps, kernels in [("first/mlp", 300, 77), ("first/compile", 100, 49),
                                 ("first/loader", 40, 38), ("first/gpt2", 40, None),
                                 ("first/jax", 300, 0), ("llm_decode_graph", 32, 0),
                                 ("pytorch_mlp_graph", 20, None), ("transformer", 10, 20)]:
        if is_left_out(CAPTURES / f"{name}.xpu"):
            continue
        [row] = rows_of(name, "step_sum")
        expect(f"steps of {name}", row["Steps"], steps)
        trace = rows_of(name, "step_trace")
        expect(f"numbers of steps of {name}", [r["Step"] for r in trace], list(range(steps)))
        expect(f"time of steps of {name}", row["Total Time (ns)"],
               sum(r["Duration (ns)"] for r in trace[row["Warm-up"]:]))
        if kernels is not None:
            expect(f"kernels of a step of {name}",
                   sorted(r["Kernels"] for r in trace)[steps // 2], kernels)


@of_large_captures
def test_some_of_the_steps():
    parts = [sum(row["Instances"] for row in rows_of("first/mlp", "cuda_gpu_kern_sum",
                                                     "--step-range", steps))
             for steps in ("-9", "10", "11-20", "21-")]
    expect("kernels of parts of the steps", parts, [53 + 9 * 77, 77, 10 * 77, 279 * 77])
    trace = json.loads(report("--chrome-trace", "--step-range", "10-12",
                              CAPTURES / "first/mlp.xpu"))
    slices = [e for e in trace["traceEvents"] if e.get("cat") == "step"]
    expect("steps in the trace", [(s["name"], s["args"]["kernels"]) for s in slices],
           [("step 10", 77), ("step 11", 77), ("step 12", 77)])
    [row] = rows_of("first/mlp", "step_sum", "--step", "function:^sgd.py:SGD.step")
    expect("steps of the optimizer", (row["Steps"], row["Kernels"]), (300, 1))
    [row] = rows_of("first/jax", "step_sum", "--step", "nvtx:hlo_module=jit_step")
    expect("ranges of a module", row["Steps"], 300)


def test_critical_path():
    """It covers the steps without a gap; what is assumed is little where off-CPU time says all."""
    for name in ("pytorch_loader", "first/mlp", "first/loader", "first/jax", "llm_decode_graph",
                 "transformer"):
        if is_left_out(CAPTURES / f"{name}.xpu"):
            continue
        [steps] = rows_of(name, "step_sum")
        rows = rows_of(name, "critical_path_sum")
        total = sum(row["Total Time (ns)"] for row in rows)
        expect(f"{name}: {total} ns on the path, {steps['Total Time (ns)']} ns of steps",
               abs(total / steps["Total Time (ns)"] - 1) < 0.01, True)
        assumed = sum(row["Assumed (ns)"] for row in rows) / total
        print(f"{name}: {100 * assumed:.1f} % assumed")
        if name == "pytorch_loader":
            expect(f"assumed with off-CPU time: {assumed}", assumed < 0.01, True)
        folded = report("--folded", "--mode", "critical", "--unit", "ns", CAPTURES / f"{name}.xpu")
        in_stacks = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
        expect(f"{name}: {in_stacks} ns in stacks of {total}", abs(in_stacks / total - 1) < 1e-4,
               True)


@of_large_captures
def test_what_is_on_the_critical_path():
    """A path of GPU work and one of the CPU; what is not on it changes nothing."""
    largest = rows_of("llm_decode_graph", "critical_path_sum")[0]
    expect("bound by its replays", (largest["Kind"], largest["What"]),
           ("graph", "graph 2 (67 nodes)"))
    rows = rows_of("pytorch_loader", "what_if", "--what-if", "function:loader.py:main=0.5",
                   "--what-if", "function:_next_data=0", "--what-if", "kernel:.=0")
    shorter = [row["Shorter (%)"] for row in rows]
    expect(f"main at half, no loader, no kernels: {shorter}",
           (25 < shorter[0] < 50, 15 < shorter[1] < 30, shorter[2] < 2), (True, True, True))
    expect("nothing that matches", "--what-if kernel:no such: matches nothing in the steps\n" in
           xpu_testing.run_report("--what-if", "kernel:no such=0",
                                  CAPTURES / "pytorch_loader.xpu").stderr, True)
    trace = json.loads(report("--chrome-trace", "--step-range", "10-12",
                              CAPTURES / "first/mlp.xpu"))
    [track] = [e["tid"] for e in trace["traceEvents"]
               if e["name"] == "thread_name" and e["args"]["name"] == "critical path of the steps"]
    slices = sorted((e["ts"], round(e["ts"] + e["dur"], 3)) for e in trace["traceEvents"]
                    if e.get("tid") == track and e["ph"] == "X")
    steps = [e for e in trace["traceEvents"] if e.get("cat") == "step"]
    names = {e["name"] for e in trace["traceEvents"] if e.get("tid") == track and e["ph"] == "X"}
    expect("who decides", names, {"python3/845", "pt_autograd_0/887"})
    expect("from the first step to the last", (slices[0][0], slices[-1][1]),
           (steps[0]["ts"], round(steps[-1]["ts"] + steps[-1]["dur"], 3)))
    # Slices that follow one another end a nanosecond early.
    expect("gaps between them",
           max(round(b[0] - a[1], 3) for a, b in zip(slices, slices[1:])) <= 0.001, True)


@of_large_captures
def test_waits_in_the_script():
    capture = CAPTURES / "pytorch_loader.xpu"
    waits = [dict(pair.split("=", 1) for pair in line.split("\t")[1].split(" "))
             for line in report("--script", capture).splitlines() if "\tevent=off_cpu " in line]
    recorded = re.findall(r"^off_cpu_wait start_ns=(\d+) end_ns=(\d+) .* is_open=(\d) ",
                          report("--dump", capture), re.MULTILINE)
    expect("waits", (len(waits), len(waits) > 1000), (len(recorded), True))
    expect("their time", sum(int(wait["duration_ns"]) for wait in waits),
           sum(int(end) - int(start) for start, end, _ in recorded))
    expect("open", sum("open" in wait for wait in waits), sum(int(o) for _, _, o in recorded))
    expect("reasons", "futex" in {wait["reason"] for wait in waits}, True)


def test_graph():
    account, capture = load("graph")
    expect("replays", len(capture.of("graph_launch")), account["graph_launches"])
    folded = capture.folded("--mode", "gpu", "--unit", "ns")
    expect("folded ns of replays", sum(v for k, v in folded.items() if ";[GPU_Graph]" in k),
           sum(capture.duration(g) for g in capture.of("graph_launch")))


def sites_of(name, capture, program):
    [path] = {m["path"] for m in capture.of("mapping") if m["path"].endswith("/" + program)}
    return Sites(capture, program, path, StoredSymbols(CAPTURES / f"{name}.symbols"))


def folded_by_offsets(capture, sites, *arguments):
    """Folded lines as paths: the report shows the program's frames as file+offset here."""
    program = sites.path.rsplit("/", 1)[1]
    lines = {}
    for line, ns in capture.folded("--mode", "gpu", "--unit", "ns", *arguments).items():
        *frames, leaf = line.split(";")[1:]
        path = []
        for frame in frames:
            if frame.startswith(program + "+0x"):
                # The return address of the call.
                name = sites.symbols.name_at(int(frame.rsplit("+", 1)[1], 16) - 1)
                path += [name] if name and name != "_start" else []
            elif frame.startswith(("cuda", "cu", "[captured")):
                path.append(frame)
        if leaf.startswith("[GPU_Kernel]"):
            leaf = "[GPU_Kernel]" + plain_name(leaf.removeprefix("[GPU_Kernel]"))
        key = ";".join([*path, leaf])
        lines[key] = lines.get(key, 0) + ns
    return lines


def test_graph_nodes():
    """Captured, explicit, cloned, updated: each kernel of a replay under the code of its node."""
    account, capture = load("graph_paths")
    check_nodes(account, capture, sites_of("graph_paths", capture, "graph_paths"),
                folded_by_offsets)


def test_graph_replays():
    account, capture = load("graph_paths_replays")
    expect("replays", len(capture.of("graph_launch")),
           sum(g["replays"] for g in account["graphs"]))
    expect("kernels hidden in them", hidden_kernels(capture),
           sum(g["replays"] * g["kernel_nodes"] for g in account["graphs"]))
    check_all_matched(capture)


def test_every_entry_point_of_a_launch():
    account, capture = load("launch_doors")
    expect("kernels by name", capture.kernels_by_name(), account["kernels"])
    check_one_stack_per_call(capture)
    expect("launches seen", check_all_matched(capture)["seen"], account["launches"])
    calls = {(capture.plain[k["name"]], capture.call_name(capture.calls[capture.key(k)]))
             for k in capture.of("kernel")}
    # <<<>>> calls cudaLaunchKernel by way of a stub.
    expect("kernels and the call that launched them", calls,
           {(d["kernel"], d["api"]) for d in account["doors"] if d["record"] and d["launches"]})


def test_memory_operations_and_waits():
    account, capture = load("copies")
    check_one_stack_per_call(capture)
    sites = sites_of("copies", capture, "copies")
    found = {}
    for event in capture.of("memcpy") + capture.of("memset"):
        records, size = found.get(sites.innermost(event), (0, 0))
        found[sites.innermost(event)] = (records + 1, size + int(event["size_bytes"]))
    expect("records and bytes by function", found,
           {c["function"]: (c["calls"] * c["records_per_call"], c["calls"] * c["bytes_per_call"])
            for c in account["calls"] if c["bytes_per_call"] and c["records_per_call"]})
    expect("waits without their call",
           [s for s in capture.of("synchronization") if capture.key(s) not in capture.calls], [])


def test_two_gpus():
    """Between these two GPUs the driver copies by way of the host."""
    account, capture = load("peer")
    [actor] = account["actors"]
    expect("kernels by name", capture.kernels_by_name(), actor["kernels"])
    uuids = {d["device_id"]: d["uuid"] for d in capture.of("device")}
    expect("kernels and their devices",
           {(capture.plain[k["name"]], uuids[k["device_id"]]) for k in capture.of("kernel")},
           {(g["kernel"], g["uuid"]) for g in actor["gpus"]})
    tags = {line.split(";")[-1].split("]")[0] + "]"
            for line in capture.folded("--mode", "gpu", "--device-tags")}
    expect("device tags", tags, {"[GPU0_Kernel]", "[GPU1_Kernel]", "[GPU0_Memcpy]", "[GPU1_Memcpy]"})
    expect("copies", len(capture.of("memcpy")), 2 * sum(c["calls"] for c in actor["peer_copies"]))
    check_all_matched(capture)


def test_launches_by_probes():
    account, capture = load("no_inject")
    text = " ".join(report(capture.path).split())
    expect(f"launches recorded by probes in {text}",
           f"launches {account['launches']} recorded by probes, matched by nesting" in text, True)
    expect("probe hits: entry and return of the runtime's call and of the driver's inside it",
           len(capture.of("probe_hit")), 4 * account["launches"])


def test_pytorch_mlp():
    """Kernels of cuBLAS and PyTorch: counted by torch.profiler in a separate run."""
    account, capture = load("pytorch_mlp")
    expect("kernel records", len(capture.of("kernel")), account["kernels"])
    expect("kernels without a stack of their id", capture.unmatched(), [])


def python_frames(stack):
    """(file, function, line) of the Python frames."""
    frames = [PYTHON_FRAME.match(frame) for frame in stack.split(";")]
    return [(f[1].split("/")[-1], f[2].split(".")[-1], f[3]) for f in frames if f]


@of_large_captures
def test_pytorch_with_a_data_loader():
    """Recorded with --off-cpu."""
    path, steps = CAPTURES / "pytorch_loader.xpu", 1290
    capture = capture_of(path)
    [info] = capture.of("recording_info")
    [end] = capture.of("recording_end")
    expect("losses", capture.losses(), {})
    [row] = table_rows(path, "step_sum")
    expect("steps, kernels of each", (row["Steps"], row["Kernels"]), (steps, 48))
    operators = {(row["Operator"], row["Pass"]): row["Launches"]
                 for row in table_rows(path, "op_sum")}
    expect("launches of operators that each step has once",
           [operators[f"aten::{name}", "forward"] for name in ("mean", "_local_scalar_dense",
                                                               "_foreach_sqrt")], [steps] * 3)
    seconds = (int(end["time_ns"]) - int(info["start_ns"])) / 1e9
    threads, waits = Counter(), Counter()
    folded = capture.folded("--mode", "wall", "--unit", "ns", "--by", "thread")
    for stack, time_ns in folded.items():
        threads[stack.split(";")[0]] += int(time_ns) / 1e9
        if stack.endswith("[GPU wait]"):
            waits["at::_ops::item::call" in stack] += int(time_ns)
    expect(f"all time of the main thread of {seconds} s: {threads['python3/2608']}",
           seconds * 0.98 < threads["python3/2608"] <= seconds, True)
    expect("threads that live longer than the recording",
           [thread for thread, lived in threads.items() if lived > seconds], [])
    expect("waits for the GPU outside float(loss)", (waits[True] > 0, waits[False]), (True, 0))


def test_pytorch_python():
    """Every kernel under the lines of Python that traceback.extract_stack returned for its launch."""
    account, capture = load("pytorch_python")
    launches = {int(s["correlation_id"]): (int(s["tid"]), int(s["time_ns"]))
                for s in capture.of("launch_stack")}
    stacks = {}
    for line in report("--script", "--lines", capture.path).splitlines():
        columns = line.split("\t")[0].split(" ", 5)
        correlation = re.search(r"event=kernel .*correlation=(\d+)", line)
        if correlation:
            stacks[int(correlation[1])] = python_frames(columns[5])
    judged = 0
    for tid, begin_ns, end_ns, place in account["calls"]:
        wanted = python_frames(";".join(account["stacks"][place]))
        for correlation, (thread, time_ns) in launches.items():
            if thread == tid and begin_ns <= time_ns <= end_ns and correlation in stacks:
                found = stacks[correlation][:len(wanted)]
                # The innermost one went on to the next line.
                expect("callers", found[:-1], wanted[:-1])
                expect("function", found[-1][:2], wanted[-1][:2])
                judged += 1
    expect("kernels of known calls", judged, 180)


def test_pytorch_graph():
    """Twenty replays of a captured step: torch.profiler counted as many kernels."""
    account, capture = load("pytorch_mlp_graph")
    expect("kernel records", len(capture.of("kernel")), account["kernels"])
    ratio = capture.kernel_ns() / account["kernel_ns"]
    expect(f"time over the profiler's, {ratio:.4f}, within 3 %", abs(ratio - 1) <= 0.03, True)
    replayed = [line for line in capture.folded("--mode", "gpu", "--unit", "ns")
                if ";cudaGraphLaunch;[captured at];" in line]
    expect("kernels of replays under the call that made their node",
           {line.split(";")[-2] for line in replayed if "[GPU_Kernel]" in line},
           {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel"})
    expect("nodes of unknown origin", capture.entry("graph_node_unknown"), None)


def ranges_by_style(path):
    found = {"PushPop": {}, "StartEnd": {}}
    for row in table_rows(path, "nvtx_sum"):
        found[row["Style"]][row["Range"]] = row["Instances"]
    return found


def test_nvtx_ranges():
    account, capture = load("nvtx_ranges")
    expect("ranges", ranges_by_style(capture.path),
           {"PushPop": account["pushed"], "StartEnd": account["started"]})
    kernels = {}
    for row in table_rows(capture.path, "nvtx_kern_sum"):
        key = f"{row['NVTX Range']}/{plain_name(row['Kernel Name'])}"
        kernels[key] = kernels.get(key, 0) + row["Kern Inst"]
    expect("kernels in ranges", kernels, account["kernels"])
    expect("marks", sum(e["kind"] == "mark" for e in capture.of("nvtx_event")), account["marks"])


def test_language_model():
    """With a graph of the decode step, ranges, and its memory."""
    account, capture = load("llm_decode_graph")
    expect("kernels by name", capture.kernels_by_name(),
           {kernel: sum(paths.values()) for kernel, paths in account["launches"].items()})
    expect("replays", len(capture.of("graph_launch")), account["graph_launches"])
    expect("kernels hidden in them", hidden_kernels(capture),
           account["graph_launches"] * account["kernels_per_graph"])
    expect("ranges", ranges_by_style(capture.path)["PushPop"],
           {":" + name: count for name, count in account["nvtx"].items()})
    rows = [r for r in table_rows(capture.path, "gpu_mem_alloc_sum")
            if r["Path"].endswith(";cudaMalloc")]
    expect("allocations", sum(r["Count"] for r in rows), account["allocations"]["count"])
    megabytes = sum(r["Total (MB)"] for r in rows)
    expect(f"{megabytes} MB allocated, to the digits of its rows",
           abs(megabytes - account["allocations"]["bytes"] / 1e6) <= 0.0005 * len(rows), True)
    expect("not freed", sum(r["Not Freed"] for r in rows), 0)
    check_all_matched(capture)


def test_views_of_every_capture():
    for path in real_captures():
        trace = json.loads(report("--chrome-trace", path))
        slices = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
        capture = capture_of(path)
        expect(f"{path.name}: kernels in the Chrome trace", len(slices), len(capture.of("kernel")))
        expect(f"{path.name}: types of pid and tid",
               {(type(e["pid"]), type(e.get("tid", 0))) for e in trace["traceEvents"]},
               {(int, int)})
        starts = {e["id"] for e in trace["traceEvents"] if e["ph"] == "s"}
        ends = {e["id"] for e in trace["traceEvents"] if e["ph"] == "f"}
        expect(f"{path.name}: flow arrows end where they start", starts, ends)


TABLES = ("cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum", "cuda_gpu_graph_sum", "cuda_gpu_sum",
          "callpath_sum", "cuda_gpu_mem_time_sum", "cuda_overhead_sum", "cuda_gpu_mem_size_sum",
          "cuda_api_sum", "cuda_api_gpu_sum", "cpu_func_sum", "cuda_gpu_trace", "cuda_api_trace",
          "cuda_kern_exec_sum", "gpu_busy_sum",
          # Their content is checked of the captures that have it; each can be made of all.
          "op_sum", "module_sum", "step_sum", "step_trace", "critical_path_sum", "gpu_gaps")


@functools.cache
def tables_of(path):
    return json.loads(report("--top", "-n", "0", "--format", "json", "--table", ",".join(TABLES),
                             path))


def table(path, name):
    return tables_of(path)[name]


def totals(rows, total="Total Time (ns)", count="Instances"):
    return (sum(r[total] for r in rows), sum(r[count] for r in rows))


def raw_totals(capture, *kinds):
    """Time and number of the dumped records that have a time."""
    timed = [e for kind in kinds for e in capture.of(kind)
             if int(e["start_ns"]) and int(e["end_ns"]) >= int(e["start_ns"])]
    return sum(capture.duration(e) for e in timed), len(timed)


WORK = ("kernel", "memcpy", "memset", "graph_launch")
COPIES = ("memcpy", "memset")


def check_sums(path, capture):
    """The totals of each table are those of the raw events."""
    calls = raw_totals(capture, "api_call")
    expected = {
        "cuda_gpu_kern_sum": raw_totals(capture, "kernel"),
        "cuda_gpu_kern_gb_sum": raw_totals(capture, "kernel"),
        "cuda_gpu_graph_sum": raw_totals(capture, "graph_launch"),
        "cuda_gpu_sum": raw_totals(capture, *WORK),
        "callpath_sum": raw_totals(capture, *WORK),
    }
    for name, both in expected.items():
        expect(f"{path.name}: {name}", totals(table(path, name)), both)
    expect(f"{path.name}: cuda_gpu_mem_time_sum",
           totals(table(path, "cuda_gpu_mem_time_sum"), count="Count"),
           raw_totals(capture, *COPIES))
    expect(f"{path.name}: cuda_overhead_sum",
           totals(table(path, "cuda_overhead_sum"), count="Count"),
           raw_totals(capture, "overhead"))
    copied = sum(int(e["size_bytes"]) for kind in COPIES for e in capture.of(kind))
    rows = table(path, "cuda_gpu_mem_size_sum")
    expect(f"{path.name}: MB in cuda_gpu_mem_size_sum, to the digits of its rows",
           abs(sum(r["Total (MB)"] for r in rows) - copied / 1e6) <= 0.0005 * len(rows) + 1e-9,
           True)
    if not capture.of("probe_hit"):  # what probes saw is among the calls, too
        expect(f"{path.name}: cuda_api_sum",
               totals(table(path, "cuda_api_sum"), count="Num Calls"), calls)
        work = raw_totals(capture, *WORK)
        expect(f"{path.name}: cuda_api_gpu_sum", totals(table(path, "cuda_api_gpu_sum")),
               (calls[0] + work[0], calls[1] + work[1]))
    samples = table(path, "cpu_func_sum")
    expect(f"{path.name}: samples in cpu_func_sum", sum(r["Samples"] for r in samples),
           len(capture.of("cpu_sample")))


def check_traces(path, capture):
    """A row for each event, in order, at the times that the dump says."""
    start = int(capture.of("recording_info")[0]["start_ns"])
    rows = table(path, "cuda_gpu_trace")
    events = [e for kind in WORK for e in capture.of(kind)]
    expect(f"{path.name}: rows of cuda_gpu_trace", len(rows), len(events))
    expect(f"{path.name}: work by correlation id and duration",
           sorted((r["CorrId"], r["Duration (ns)"]) for r in rows if r["Duration (ns)"] is not None),
           sorted((int(e["correlation_id"]), capture.duration(e)) for e in events
                  if int(e["start_ns"])))
    starts = [r["Start (ns)"] for r in rows if r["Start (ns)"] is not None]
    expect(f"{path.name}: cuda_gpu_trace in order of time", starts, sorted(starts))
    expect(f"{path.name}: grids", sorted((r["GrdX"], r["BlkX"]) for r in rows if r["GrdX"] is not None),
           sorted((int(k["grid_x"]), int(k["block_x"])) for k in capture.of("kernel")))
    if not capture.of("probe_hit"):
        expect(f"{path.name}: cuda_api_trace",
               sorted((r["Start (ns)"], r["Duration (ns)"], r["CorrID"], r["Result"])
                      for r in table(path, "cuda_api_trace")),
               sorted((int(c["start_ns"]) - start, capture.duration(c), int(c["correlation_id"]),
                       int(c["return_value"])) for c in capture.of("api_call")))


def check_executions(path, capture):
    """Launch times from the calls, matched by id here."""
    kernels = [k for k in capture.of("kernel") if capture.key(k) in capture.calls]
    rows = table(path, "cuda_kern_exec_sum")
    expect(f"{path.name}: kernels in cuda_kern_exec_sum", sum(r["Count"] for r in rows),
           len(kernels))
    calls = sum(capture.duration(capture.calls[capture.key(k)]) for k in kernels)
    told = sum(r["AAvg (ns)"] * r["Count"] for r in rows)
    expect(f"{path.name}: time of their calls {told:.0f} ns, by the dump {calls} ns",
           abs(told - calls) <= 0.05 * len(kernels) + 1, True)
    ran = sum(capture.duration(k) for k in kernels)
    told = sum(r["KAvg (ns)"] * r["Count"] for r in rows)
    expect(f"{path.name}: time of kernels {told:.0f} ns, by the dump {ran} ns",
           abs(told - ran) <= 0.05 * len(kernels) + 1, True)


def union_ns(spans):
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def check_busy(path, capture):
    """Sum and union of each stream, and the union of all streams of each GPU."""
    rows = table(path, "gpu_busy_sum")
    events = [e for kind in WORK for e in capture.of(kind) if int(e["start_ns"])]
    streams = [r for r in rows if r["Strm"] is not None]
    expect(f"{path.name}: sums of streams", totals(streams), raw_totals(capture, *WORK))
    if len({e["instance"] for e in events}) > 1:
        return  # the clocks of processes differ; their numbers of GPUs may
    for row in rows:
        mine = [e for e in events if int(e["device_id"]) == row["DevId"]
                and (row["Strm"] is None or (int(e["context_id"]), int(e["stream_id"])) ==
                     (row["Ctx"], row["Strm"]))]
        union = union_ns((int(e["start_ns"]), int(e["end_ns"])) for e in mine)
        # The report's times are fitted to another clock: a nanosecond at each end, and its rate.
        slack = 2 * len(mine) + union // 1000
        expect(f"{path.name}: busy {row['Busy Time (ns)']} ns of {row}, by the dump {union} ns",
               abs(row["Busy Time (ns)"] - union) <= slack, True)


def test_tables_of_every_capture():
    for path in real_captures():
        capture = capture_of(path)
        check_sums(path, capture)
        check_traces(path, capture)
        check_busy(path, capture)
        check_executions(path, capture)


def test_difference_of_two_captures():
    """Of a capture and itself nothing changed; of two the deltas add up to the difference."""
    paths = [CAPTURES / f"{name}.xpu" for name in ("graph_paths", "transformer")]
    for before, after in ((paths[0], paths[0]), tuple(paths)):
        tables = json.loads(report("--diff", before, "-n", "0", "--format", "json", after))
        for name in ("cuda_gpu_kern_sum", "cuda_api_sum", "callpath_sum"):
            delta = (totals(table(after, name), count="Total Time (ns)")[0] -
                     totals(table(before, name), count="Total Time (ns)")[0])
            rows = tables[name]
            expect(f"{name} of {before.name} and {after.name}", sum(r["Delta (ns)"] for r in rows),
                   delta)
            expect(f"{name}: largest increase first", [r["Delta (ns)"] for r in rows],
                   sorted((r["Delta (ns)"] for r in rows), reverse=True))


@of_large_captures
def test_difference_of_operators():
    """Compiled code has other operators; those that both have are in one row."""
    before, after = (CAPTURES / "first" / f"{name}.xpu" for name in ("compile", "mlp"))
    rows = json.loads(report("--diff", before, "--table", "op_sum", "-n", "0", "--format", "json",
                             after))["op_sum"]
    sums = {path: {(r["Pass"], r["Operator"]): (r["GPU Self Time (ns)"], r["GPU Work"])
                   for r in table_rows(path, "op_sum")} for path in (before, after)}
    # Not those that only call others: they have no time of their own.
    expect("operators", {(r["Pass"], r["Operator"]) for r in rows},
           {key for of_path in sums.values() for key, (ns, _) in of_path.items() if ns > 0})
    for row in rows:
        key = row["Pass"], row["Operator"]
        expect(f"{key} before and after",
               [(row["Before (ns)"], row["GPU Work Before"]),
                (row["After (ns)"], row["GPU Work After"])],
               [sums[path].get(key, (0, 0)) for path in (before, after)])
    operators = {(r["Pass"], r["Operator"]): r for r in rows}
    expect("libraries of a product",
           operators["forward", "aten::addmm"]["Libraries"], "cuBLAS -> CUTLASS, cuBLASLt")
    expect("compiled away", operators["forward", "aten::gelu"]["Change"], "new")


def advice_of(path):
    """The part of the summary that says what to look at next."""
    text = report(path.name, cwd=path.parent)  # commands in it are wrapped by their length
    start = text.index("What to look at next\n")
    return text[start:text.index("\n\n", start) + 1]


@of_large_captures
def test_advice():
    """Of programs whose true bottleneck is known; captures/README.md says which it is.

    XPU_UPDATE_GOLDEN=1 writes the texts anew."""
    for path in real_captures("first"):
        expected = path.with_suffix(".txt")
        advice = advice_of(path)
        if os.environ.get("XPU_UPDATE_GOLDEN"):
            expected.write_text(advice)
        expect(f"{path.name}: what to look at next", advice, expected.read_text())


@of_large_captures
def test_what_an_import_costs_is_at_the_line_of_the_program():
    """The longest gap of a program that imports torch is one frame below its own line."""
    for name, line in (("mlp", "pytorch_steps.py:main:"), ("loader", "loader_step.py:main:")):
        longest = table_rows(CAPTURES / "first" / f"{name}.xpu", "gpu_gaps")[0]
        expect(f"end of the path of {name}", longest["Path"].split(";")[-1], "[import torch._dynamo]")
        expect(f"line of {name}: {longest['Line']}", longest["Line"].startswith(line), True)


@of_large_captures
def test_gaps_that_a_time_range_cuts():
    """A second within the longest gap is idle, and its cause is known."""
    path = CAPTURES / "first" / "mlp.xpu"
    [row] = table_rows(path, "gpu_gaps", "--time", "6s-7s")
    expect("start and length", (row["Start (ns)"], row["Duration (ns)"]), (6 * 10**9, 10**9))
    expect("call that ended it", row["API Name"], "cuLaunchKernel")
    text = " ".join(report(path, "--time", "6s-7s").split())
    expect(f"the cause in {text}", "idle for 100 % of the selected part, 1 s: importing Python "
           "modules (100 %)" in text, True)


@of_large_captures
def test_filters_leave_the_cause_of_idle_time():
    path = CAPTURES / "first" / "loader.xpu"
    for options in (("--device", "0"), ("--comm", "python3")):
        text = " ".join(report(path, *options).split())
        expect(f"the data loader with {options}",
               ": the data loader, mostly in loader_step.py:Slow.__getitem__" in text, True)


@of_large_captures
def test_advice_on_one_thread_names_it():
    """The flame graph of the advice has no other thread, and its share is of what it says."""
    path = CAPTURES / "first" / "loader.xpu"
    text = " ".join(report(path).split())
    expect("the place of most of it", ": code mostly in Py_FinalizeEx (95 %)" in text, True)
    command = re.search(r"--flamegraph --mode cpu -o end.html (--tid \d+) (--time \S+)",
                        text.replace(" \\ ", " "))
    threads = {line.split(";")[0] for line in
               report(path, "--folded", "--mode", "cpu", *command[1].split(),
                      *command[2].split()).splitlines()}
    expect("threads", len(threads), 1)


@of_large_captures
def test_an_overlap_of_no_work_is_none():
    text = report(CAPTURES / "first" / "mlp.xpu", "--time", "6s-7s")
    row = next(line for line in text.splitlines() if line.endswith(", 85.0 GB"))
    expect("overlap", row.split()[:5], ["0.0", "0", "ns", "1", "s"])
    expect("overlap of none", " - " in row, True)


@of_large_captures
def test_own_cost_in_the_steady_state():
    text = " ".join(report(CAPTURES / "first" / "mlp.xpu").split())
    expect("share in all and in the steady state",
           re.findall(r"overhead ([0-9.]+) %.*?; ([0-9.]+) % in the steady state of GPU 0", text),
           [("1.1", "21.2")])


@of_large_captures
def test_hints_for_missing_names():
    """Only what a package can have is to be installed."""
    text = " ".join(report(CAPTURES / "first" / "jax.xpu").split())
    expect("of ptxas", "/usr/local/cuda-13.0/bin/ptxas no symbol covers the addresses: NVIDIA "
           "publishes none for its files" in text, True)
    text = " ".join(report(CAPTURES / "first" / "compile.xpu").split())
    expect("of a compiler in /opt", "/opt/gcc/bin/cc1 no symbol covers the addresses: it is in no "
           "system package; build it without stripping" in text, True)
    expect("of a library of the system", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3 no symbol covers "
           "the addresses: install its package's -dbgsym" in text, True)


def test_symbols_travel():
    """Folded stacks read here, where there is no PyTorch, as on the machine that recorded it."""
    path = CAPTURES / "pytorch_symbols.xpu"
    expect("the folded stacks of the recording machine",
           report("--folded", "--mode", "gpu", path) ==
           (CAPTURES / "pytorch_symbols.folded").read_text(), True)
    for mode in ("gpu", "cpu"):
        frames = [frame for line in report("--folded", "--mode", mode, path).splitlines()
                  for frame in line.rsplit(" ", 1)[0].split(";")]
        nameless = sum("+0x" in frame for frame in frames)
        expect(f"{nameless} of {len(frames)} frames without a function are below 1 %",
               nameless < len(frames) / 100, True)


if __name__ == "__main__":
    xpu_testing.main(globals())
