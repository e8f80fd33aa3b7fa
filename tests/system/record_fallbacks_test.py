"""Each thing that newer kernels have and older ones do without (record/kernel/kernel_features.h),
left out in turn: what is recorded is right all the same."""

import contextlib
import ctypes
import os
import struct
import traceback

import record_cpu_test
import record_gpu_test
import record_off_cpu_test
import record_probe_test
import record_user_probe_test
import xpu_testing
from xpu_testing import Workspace, expect, expect_in, workload

# What each has a part in.
TESTS = {
    "build_id_records": [record_gpu_test.test_every_launch_has_its_stack],
    "table_walk": [record_gpu_test.test_every_launch_has_its_stack,
                   record_cpu_test.test_kernel_frames_have_names],
    "lost_count": [record_cpu_test.test_threads_forks_and_execs_are_all_sampled],
    "map_tree": [record_cpu_test.test_threads_forks_and_execs_are_all_sampled],
    "peer_pidfd": [record_gpu_test.test_processes_are_distinguished],
    "uprobe_multi": [record_probe_test.test_shared_cudart],
    "uprobe_session": [record_probe_test.test_shared_cudart,
                       record_user_probe_test.test_entries_and_returns_make_calls],
    "scheduler_exit": [record_off_cpu_test.test_waits_have_their_wakers],
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


def test_capture_says_how_stacks_were_unwound():
    xpu_testing.require_recording()
    expect("as it is", call_graph(""), BY_TABLES)
    expect("before 5.17", call_graph("table_walk"), BY_FRAME_POINTERS)


def refuse_events_of_cpus():
    """As the seccomp filter of a container may: perf_event_open of a CPU (pid -1) gives EACCES."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    perf_event_open, errno_13, allow = 298, 0x0005000d, 0x7fff0000
    number_at, pid_at = 0, 24  # struct seccomp_data
    steps = [(load, 0, 0, number_at), (jump_if_equal, 0, 3, perf_event_open),
             (load, 0, 0, pid_at), (jump_if_equal, 0, 1, 0xffffffff),
             (give, 0, 0, errno_13), (give, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    set_no_new_privs, set_seccomp, mode_filter = 38, 22, 2
    for arguments in ((set_no_new_privs, 1, 0), (set_seccomp, mode_filter, program)):
        expect("prctl", prctl(*arguments, 0, 0), 0)


def test_clocks_of_cpus_are_refused():
    """Each thread then has a clock of its own."""
    xpu_testing.require_recording()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            refuse_events_of_cpus()
            with Workspace() as work:
                refused = work.record("--cpu-only", "-a", "true")
                expect_in("the filter works", "perf_event_open", refused.stderr)
            record_cpu_test.test_program_that_does_nothing()
            record_cpu_test.test_shares_of_known_functions_with_threads()
            record_cpu_test.test_threads_forks_and_execs_are_all_sampled()
            record_cpu_test.test_processes_shorter_than_a_period_are_sampled()
            status = 0
        except BaseException:  # whatever it is, this copy of the process ends here
            traceback.print_exc()
        finally:
            os._exit(status)
    expect("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


if __name__ == "__main__":
    xpu_testing.main(globals())
