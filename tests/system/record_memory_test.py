"""--gpu-memory: what was allocated and freed, by which code, the peak, and what remained."""

from simulated_gpu import record
from xpu_testing import Workspace, expect, main, require_recording, table_rows, workload

ALLOCATED, FREED = 1, 2
DEVICE = 3


def test_allocations_and_frees():
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-memory", workload("transformer"))
        capture = work.capture()
        expect("losses", capture.losses(), {})
        operations = capture.memory_operations
        allocated = [o for o in operations if o["operation"] == ALLOCATED]
        freed = [o for o in operations if o["operation"] == FREED]
        expect("freed addresses", sorted(o["address"] for o in freed),
               sorted(o["address"] for o in allocated))
        stacks = {(s["instance"], s["correlation_id"]) for s in capture.launch_stacks}
        expect("operations without a stack",
               [o for o in operations if (o["instance"], o["correlation_id"]) not in stacks], [])
        now = peak = 0
        for operation in operations:
            if operation["memory_kind"] == DEVICE:
                now += operation["size_bytes"] * (1 if operation["operation"] == ALLOCATED else -1)
                peak = max(peak, now)
        rows = table_rows(work.file("capture.xpu"), "gpu_mem_alloc_sum")
        expect("count", sum(r["Count"] for r in rows), len(allocated))
        expect("peak", round(sum(r["Peak (MB)"] for r in rows), 3), round(peak / 1e6, 3))
        expect("not freed", sum(r["Not Freed"] for r in rows), 0)
        expect("calls", {r["Path"].split(";")[-1] for r in rows},
               {"cudaMalloc", "cudaMallocHost"})


def test_only_on_request():
    require_recording()
    with Workspace() as work:
        record(work, workload("transformer"))
        expect("operations", work.capture().memory_operations, [])


if __name__ == "__main__":
    main(globals())
