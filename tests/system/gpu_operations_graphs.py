"""Scenarios of gpu_operations_test.py about CUDA graphs: who made the nodes, replays as one."""

import os
from collections import Counter

import xpu_testing
from gpu_capture import field, stream_dump
from gpu_operations import (Sites, check_all_matched, check_nodes, check_one_stack_per_call,
                            figures, folded_paths, hidden_kernels)
from gpu_programs import REAL, program, recorded
from xpu_testing import ABOUT_STACKS, PATIENCE_S, Workspace, expect, expect_in, report


def check_node_paths(work, replays, env=None):
    account, capture = recorded(work, "graph_paths", "--replays", replays,
                                options=("--cuda-graph-trace=node",), env=env)
    expect("losses", capture.losses(), {})
    check_nodes(account, capture, Sites(capture, "graph_paths"))
    return account, capture


def test_graph_nodes():
    with Workspace() as work:
        account, capture = check_node_paths(work, 5)
        figures(f"{sum(g['replays'] for g in account['graphs'])} replays, "
                f"{len(capture.of('kernel'))} kernels, {len(capture.of('graph_node'))} changes of "
                "nodes, each kernel under the code that made its node")


def test_graph_nodes_when_ids_wrap():
    if REAL:
        raise xpu_testing.Skip("the ids of a real device begin where they begin")
    with Workspace() as work:
        _, capture = check_node_paths(
            work, 80, {"XPU_FAKE_FIRST_CORRELATION_ID": str((1 << 32) - 1000)})
        ids = [int(k["correlation_id"]) for k in capture.of("kernel")]
        before = sum(i > 0xffff0000 for i in ids)
        expect("some ids on each side of the wrap", 0 < before < len(ids), True)
        figures(f"{before} kernels with ids up to 2^32 - 1, {len(ids) - before} with ids from 1")


def test_graph_replays():
    with Workspace() as work:
        account, capture = recorded(work, "graph_paths", "--replays", 5)
        expect("losses", capture.losses(), {})
        check_one_stack_per_call(capture)
        replays = sum(g["replays"] for g in account["graphs"])
        expect("graph launches", len(capture.of("graph_launch")), replays)
        expect("kernels of their own", capture.of("kernel"), [])
        sites = Sites(capture, "graph_paths")
        # Those of a child graph, not the node that holds it.
        nodes = {path: g["nodes"] for g in account["graphs"] for path in g["launch_paths"]}
        wanted, launched = Counter(), Counter()
        for replay in capture.of("graph_launch"):
            path = sites.of(replay)
            leaf = f"graph {replay['graph_id']} ({nodes[path]} node{'s' * (nodes[path] > 1)})"
            wanted[f"{path};cudaGraphLaunch;[GPU_Graph]{leaf}"] += capture.duration(replay)
            launched[path] += 1
        expected = Counter()
        for graph in account["graphs"]:
            expected.update(graph["launch_paths"])
        expect("replays by path", dict(launched), dict(expected))
        expect("folded", folded_paths(capture, sites), dict(wanted))
        counts = check_all_matched(capture)
        expect("launches", counts["seen"], replays)
        kernels = sum(g["kernel_nodes"] * g["replays"] for g in account["graphs"])
        inner = sum(g["replays"] for g in account["graphs"] if g["part"] == "child")
        hidden = hidden_kernels(capture)
        expect(f"hidden kernels {hidden} of {kernels}, {inner} of them in a child graph",
               hidden in (kernels, kernels - inner), True)
        figures(f"{replays} replays, {hidden} kernels hidden of {kernels} (in child graphs "
                f"{inner}), {counts['captured']} launches captured")


def test_soak_of_graph_nodes():
    """More node records than CUPTI has buffers for on the device: they come without times."""
    buffers, records = 8, 375  # the simulated device has so many records in each
    kept = buffers * records
    nodes, replays = (100, 12000) if REAL else (50, 100)
    env = {"XPU_TEST_DEVICE_BUFFERS": str(buffers), "XPU_FAKE_DEVICE_BUFFER_RECORDS": str(records)}
    with Workspace() as work:
        result = work.record("--cuda-graph-trace=node", "--", program("graph_storm"), "--nodes",
                             str(nodes), "--replays", str(replays), env={**os.environ, **env},
                             timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        path = work.path / "capture.xpu"
        total = untimed = valid_ns = 0
        losses = {}
        for kind, line in stream_dump(path, "kernel", "ledger"):
            if kind == "ledger":
                if "severity=note" not in line:
                    losses[line.split('"')[1]] = field(line, "count")
                continue
            start, end = field(line, "start_ns"), field(line, "end_ns")
            total += 1
            if start == 0 or end < start:
                untimed += 1
            else:
                valid_ns += end - start
        expect("records without times in the ledger", losses.pop("invalid_time", 0), untimed)
        if REAL:  # A million records a second may be too many: then the ledger has them.
            lost = losses.pop("wire_ring_full", 0) + losses.pop("cupti_dropped", 0)
            expect(f"kernels {total}, lost {lost}", 0 <= nodes * replays - total <= lost, True)
        else:
            lost = 0
            expect("kernels", total, nodes * replays)
        losses = {n: c for n, c in losses.items() if n not in ABOUT_STACKS}
        expect("other losses", losses, {})
        if not REAL:
            expect("kernels without times", untimed, nodes * replays - kept)
        folded = sum(int(line.rsplit(" ", 1)[1]) for line in
                     report("--folded", "--mode", "gpu", "--unit", "ns", path).splitlines()
                     if "[GPU_Kernel]" in line)
        expect("folded ns are those of the kernels with times", folded, valid_ns)
        text = " ".join(report(path).split())
        if untimed:
            expect_in("whose they are", f"{untimed:,} of them from CUDA graph nodes", text)
            expect_in("and what to do", "--cuda-graph-trace=graph", text)
        figures(f"{total} node records, {untimed} without times, {lost} "
                f"lost, {os.path.getsize(path) / total:.1f} bytes each")


TESTS = {name: test for name, test in globals().items() if name.startswith("test_")}
