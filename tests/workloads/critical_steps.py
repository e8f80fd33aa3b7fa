"""Training steps whose bottleneck is known, in PyTorch, for a machine with a GPU.

    critical_steps.py loader|workers|kernel|launch [--steps N] [--amount A] [--turns]

What takes most of a step, and halves with A: loader computes A hashes in decode_batch(), workers in
two processes of a DataLoader, kernel lets a kernel spin for A thousands of cycles, launch launches A
small kernels in launch_many(). Prints one JSON line: how long a step took, the median over blocks of
steps after the warm-up, so that what else the machine does for a while does not count. Each step is
an NVTX range. --turns: the N steps are run, and the line is printed, for each line of the standard
input, so that programs that are compared can take turns.
"""

import argparse
import hashlib
import json
import os
import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

WIDTH, ROWS = 512, 64
WARM_UP = 50
BLOCK = 20
AMOUNTS = {"loader": 14_000, "workers": 40_000, "kernel": 8_000, "launch": 200}


def decode_batch(hashes):
    """Computes in native code that lets other threads have the interpreter, as a decoder does."""
    hashlib.pbkdf2_hmac("sha256", b"batch", b"salt", hashes)
    return torch.zeros(ROWS, WIDTH)


class Batches(Dataset):
    def __init__(self, hashes):
        self.hashes = hashes

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return decode_batch(self.hashes)


def batches_of(bottleneck, amount):
    if bottleneck == "workers":
        yield from DataLoader(Batches(amount), batch_size=None, num_workers=2)
    batch = torch.zeros(ROWS, WIDTH)
    while True:
        yield decode_batch(amount) if bottleneck == "loader" else batch


def launch_many(tensor, count):
    for _ in range(count):
        tensor.add_(1)


def train_step(model, optimizer, batch, bottleneck, amount):
    loss = model(batch.to("cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if bottleneck == "kernel":
        torch.cuda._sleep(1000 * amount)
    if bottleneck == "launch":
        launch_many(loss.detach().clone(), amount)
    optimizer.step()
    return loss.item()


def run_steps(count, step):
    """How long one took."""
    times = [time.monotonic_ns()]
    for _ in range(count):
        step()
        times.append(time.monotonic_ns())
    return statistics.median((times[i + BLOCK] - times[i]) / BLOCK
                             for i in range(0, len(times) - BLOCK, BLOCK))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bottleneck", choices=sorted(AMOUNTS))
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--amount", type=int, default=0)
    parser.add_argument("--turns", action="store_true")
    options = parser.parse_args()
    amount = options.amount or AMOUNTS[options.bottleneck]
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(3)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = batches_of(options.bottleneck, amount)

    def step():
        torch.cuda.nvtx.range_push("step")
        train_step(model, optimizer, next(batches), options.bottleneck, amount)
        torch.cuda.nvtx.range_pop()

    run_steps(WARM_UP, step)
    for _ in sys.stdin if options.turns else [""]:
        print(json.dumps({"workload": "critical_steps", "pid": os.getpid(), "amount": amount,
                          "step_ns": run_steps(options.steps, step)}), flush=True)


if __name__ == "__main__":
    main()
