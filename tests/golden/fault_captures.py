"""Captures of programs that a fault of the GPU ended, or that hang, recorded on a GPU machine: the
work that was made to fail or not to end is named, or among the candidates.

tests/captures/README.md says how each was recorded."""

from collections import Counter

from xpu_testing import CAPTURES, expect, expect_in, main, report, table_rows

FAULTS = CAPTURES / "faults"


def rows_of(name, state):
    return [row for row in table_rows(str(FAULTS / f"{name}.xpu"), "unfinished_sum")
            if row["State"] == state]


def kernels_of(rows):
    return [row["Name"].partition("(")[0] for row in rows]


def first_finding(name):
    text = " ".join(report(str(FAULTS / f"{name}.xpu")).split())
    return text.partition("What to look at next - ")[2].partition(" - ")[0]


def test_a_kernel_in_the_stream_of_pytorch():
    """The 301st launch of `gather`, with 1,022 operations after it and no wait in between."""
    failed = rows_of("triton", "failed")
    expect("kernel", kernels_of(failed), ["gather"])
    expect_in("launched by", "crash_nosync.py:lookup_embeddings", failed[0]["Path"])
    expect("after it", len(rows_of("triton", "waits for its stream")), 1022)
    reported = rows_of("triton", "returned the error")
    expect("result", [(row["Name"], row["Result"]) for row in reported], [("cudaLaunchKernel", 700)])
    finding = first_finding("triton")
    expect_in("finding", "The work that failed is `gather`, grid 64x1x1, block 128x1x1, launched by "
              "crash_nosync.py:<module> > crash_nosync.py:step > crash_nosync.py:lookup_embeddings",
              finding)
    expect_in("error", "cudaLaunchKernel, called by crash_nosync.py:<module> > crash_nosync.py:step "
              "> crash_nosync.py:rest, returned error 700, an illegal memory access (Xid 31)", finding)


def test_a_trap_in_the_only_stream():
    expect("kernel", kernels_of(rows_of("trap", "failed")), ["culprit"])
    expect("after it", len(rows_of("trap", "waits for its stream")), 50)
    expect_in("finding", "an unspecified launch failure (Xid 43). The work that failed is `culprit`",
              first_finding("trap"))


def test_one_of_four_streams():
    candidates = rows_of("streams", "candidate")
    expect("kernels", kernels_of(candidates), ["culprit"] + 3 * ["ordinary"])
    expect("streams", len({row["Strm"] for row in candidates}), 4)
    expect_in("finding", "3 times `ordinary`", first_finding("streams"))


def test_a_node_of_a_replay_recorded_as_a_whole():
    expect("replay", kernels_of(rows_of("graph", "failed")), ["graph 2 "])
    nodes = Counter(row["Path"].split(";")[-2] for row in rows_of("graph", "made nodes of it"))
    expect("nodes", nodes, {"LaunchOrdinary": 6, "LaunchCulprit": 1})


def test_a_node_of_a_replay_recorded_by_nodes():
    candidates = rows_of("graph_nodes", "candidate")
    expect("kernels", kernels_of(candidates), ["culprit"] + 3 * ["ordinary"])
    expect_in("finding", "added to it by main > MakeGraph > LaunchCulprit",
              first_finding("graph_nodes"))


def test_a_kernel_that_never_ends():
    """Recorded from the start; the records were taken 10 s after the last call."""
    expect("kernel", kernels_of(rows_of("hang", "pending")), ["culprit"])
    expect("after it", len(rows_of("hang", "waits for its stream")), 50)
    finding = first_finding("hang")
    expect_in("finding", "The GPU had not finished `culprit`, grid 2x1x1, block 64x1x1, launched by "
              "main > LaunchCulprit. It was pending for 18.65 s when the program ended", finding)
    expect_in("the call that waits", "cudaDeviceSynchronize, called by main > WaitForGpu, had not "
              "returned.", finding)


def test_an_attach_to_a_program_that_hangs():
    expect_in("finding", "The GPU had not finished the work that process 954 launched before the "
              "attach, so its GPU activity is missing. Its main thread was in WaitForGpu",
              first_finding("attached_late"))


def test_a_collective_that_one_rank_did_not_enter():
    text = " ".join(report(str(FAULTS / "ranks.xpu")).split())
    expect_in("finding", "Rank 0 waited in AllReduce #57 of communicator 0x841f5b36f9d29a32 for "
              "25.73 s, in stuck.py:<module> > stuck.py:train_step; rank 1 has not called it: rank 1 "
              "was in stuck.py:<module> > stuck.py:train_step > stuck.py:load_batch.", text)
    expect("kernel", kernels_of(rows_of("ranks", "pending")),
           ["ncclDevKernel_AllReduce_Sum_f32_RING_LL"])


if __name__ == "__main__":
    main(globals())
