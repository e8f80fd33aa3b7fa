"""A rank of a distributed PyTorch run, one GPU each:

    python -m torch.distributed.run --nproc-per-node 2 pytorch_ranks.py [--steps N] [--profile]

Each step multiplies matrices and sums the product over the ranks with NCCL. A rank prints one JSON
line; with --profile it has what torch.profiler counted in the process.
"""

import argparse
import contextlib
import json
import os

import torch
import torch.distributed

from pytorch_steps import counted


def run(steps):
    matrix = torch.randn(512, 512, device="cuda")
    for _ in range(steps):
        product = matrix @ matrix
        torch.distributed.all_reduce(product)
        matrix = product / product.norm()
    torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    around = (torch.profiler.profile(activities=activities) if options.profile
              else contextlib.nullcontext())
    with around as profiler:
        torch.distributed.init_process_group("nccl")
        run(options.steps)
    line = {"workload": "pytorch_ranks", "pid": os.getpid(), "rank": torch.distributed.get_rank(),
            "steps": options.steps, "profiled": counted(profiler) if options.profile else None}
    torch.distributed.destroy_process_group()
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
