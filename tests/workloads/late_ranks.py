"""Two ranks of PyTorch that are late at times:

    SECONDS=10 torchrun --nproc-per-node 2 late_ranks.py

Rank 0 decodes images for 40 ms in each fifth step, rank 1 tokenizes for 25 ms in each seventh. Each
prints when it did, on CLOCK_MONOTONIC, as JSON.
"""

import json
import os
import time

import torch
import torch.distributed as dist


def spin(milliseconds):
    until = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < until:
        pass


def decode_images():
    spin(40)


def tokenize():
    spin(25)


def is_over(flag, end):
    """The first rank decides, so that all leave in the same step."""
    flag.fill_(1 if time.monotonic() < end else 0)
    dist.broadcast(flag, 0)
    return flag.item() == 0


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    weights = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    gradients = torch.zeros(1 << 20, device="cuda")
    flag = torch.ones(1, device="cuda")
    late_ns, step, end = [], 0, time.monotonic() + float(os.environ["SECONDS"])
    while step % 20 != 0 or step == 0 or not is_over(flag, end):
        values = weights
        for _ in range(4):
            values = (values @ weights).clamp(-1, 1)
        if rank == 0 and step % 5 == 4:
            late_ns.append(time.monotonic_ns())
            decode_images()
        if rank == 1 and step % 7 == 6:
            late_ns.append(time.monotonic_ns())
            tokenize()
        dist.all_reduce(gradients)
        torch.cuda.synchronize()
        step += 1
    print(json.dumps({"rank": rank, "pid": os.getpid(), "late_ns": late_ns}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
