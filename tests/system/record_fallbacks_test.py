"""Each thing that newer kernels have and older ones do without (record/kernel_features.h), left out in
turn: what is recorded is right all the same."""

import contextlib
import os

import record_cpu_test
import record_gpu_test
import record_probe_test
import xpu_testing
from xpu_testing import Workspace, expect, workload

# What each has a part in.
TESTS = {
    "build_id_records": [record_gpu_test.test_every_launch_has_its_stack],
    "table_walk": [record_gpu_test.test_every_launch_has_its_stack,
                   record_cpu_test.test_kernel_frames_have_names],
    "lost_count": [record_cpu_test.test_threads_forks_and_execs_are_all_sampled],
    "map_tree": [record_cpu_test.test_threads_forks_and_execs_are_all_sampled],
    "peer_pidfd": [record_gpu_test.test_processes_are_told_apart],
    "uprobe_multi": [record_probe_test.test_shared_cudart],
}
BY_FRAME_POINTERS, BY_TABLES = 1, 2  # CallGraph, format/events.h


@contextlib.contextmanager
def without(features):
    os.environ["XPU_TEST_WITHOUT"] = features
    try:
        yield
    finally:
        del os.environ["XPU_TEST_WITHOUT"]


def test_each_left_out():
    xpu_testing.require_recording()
    for feature, tests in TESTS.items():
        print(f"  without {feature}", flush=True)
        with without(feature):
            for test in tests:
                test()


def test_all_left_out():
    xpu_testing.require_recording()
    with without(",".join(TESTS)):
        for test in {test for tests in TESTS.values() for test in tests}:
            test()


def call_graph(features):
    with Workspace() as work, without(features):
        expect("status", work.record("--cpu-only", workload("cpu_hot"), "--ms", "100").returncode, 0)
        return work.capture().recording_info[0]["call_graph"]


def test_capture_tells_how_stacks_were_walked():
    xpu_testing.require_recording()
    expect("as it is", call_graph(""), BY_TABLES)
    expect("before 5.17", call_graph("table_walk"), BY_FRAME_POINTERS)


if __name__ == "__main__":
    xpu_testing.main(globals())
