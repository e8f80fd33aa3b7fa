"""A rank that runs collectives of NCCL of known sizes, one GPU each:

    torchrun --nproc-per-node 2 nccl_collectives.py [--mib N] [--repeat N] [--late-ms N]

Each operation is repeated and timed with CUDA events. Then follow a few steps of an all-reduce, in
which the last rank is late: it sleeps in load_slowly(). Each rank prints one JSON line.
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist

LATE_STEPS = 5


def factor(operation, ranks):
    return 2 * (ranks - 1) / ranks if operation == "AllReduce" else (ranks - 1) / ranks


def timed(operation, call, whole_bytes, call_bytes, repeat):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    dist.barrier()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeat):
        call()
    end.record()
    torch.cuda.synchronize()
    seconds = begin.elapsed_time(end) / 1000 / repeat
    algorithm = whole_bytes / seconds / 1e9
    return {"operation": operation, "calls": repeat + 3, "bytes": call_bytes,
            "algorithm": algorithm, "bus": algorithm * factor(operation, dist.get_world_size())}


def load_slowly(milliseconds):
    time.sleep(milliseconds / 1000)


def late_steps(values, milliseconds):
    last = dist.get_rank() == dist.get_world_size() - 1
    for _ in range(LATE_STEPS):
        torch.cuda.synchronize()
        dist.all_reduce(torch.ones(256, device="cuda"))
        torch.cuda.synchronize()
        if last:
            load_slowly(milliseconds)
        dist.all_reduce(values)
    torch.cuda.synchronize()


def grouped(values, count):
    """Two collectives that NCCL runs as one kernel."""
    with dist._coalescing_manager(device=torch.device("cuda", torch.cuda.current_device())):
        for value in values:
            dist.all_reduce(value)
    torch.cuda.synchronize()
    return count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--late-ms", type=int, default=40)
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    ranks = dist.get_world_size()
    whole_bytes = options.mib << 20
    whole = torch.zeros(whole_bytes // 4, device="cuda")
    part = torch.zeros(whole.numel() // ranks, device="cuda")
    rows = [
        timed("AllReduce", lambda: dist.all_reduce(whole), whole_bytes, whole_bytes,
              options.repeat),
        timed("AllGather", lambda: dist.all_gather_into_tensor(whole, part), whole_bytes,
              whole_bytes // ranks, options.repeat),
        timed("ReduceScatter", lambda: dist.reduce_scatter_tensor(part, whole), whole_bytes,
              whole_bytes // ranks, options.repeat),
    ]
    late_steps(torch.zeros(1 << 20, device="cuda"), options.late_ms)
    groups = grouped([torch.zeros(1000 + i, device="cuda") for i in range(2)], 2)
    line = {"workload": "nccl_collectives", "pid": os.getpid(), "rank": dist.get_rank(),
            "ranks": ranks, "timed": rows, "late_steps": LATE_STEPS, "late_ms": options.late_ms,
            "late_bytes": 4 << 20, "grouped": groups,
            "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    dist.destroy_process_group()
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
