"""PyTorch work, and for each piece of it what Python says of its stack.

usage: pytorch_python.py LOG ROUNDS

LOG: `calls` are [thread, begin, end (CLOCK_MONOTONIC, ns), place in `stacks`].
"""

import json
import os
import sys
import threading
import time
import traceback

import torch
from torch import nn

stacks = {}
calls = []
lock = threading.Lock()


def known(operation):
    stack = tuple(f"{os.path.basename(f.filename)}:{f.name}:{f.lineno}"
                  for f in traceback.extract_stack())
    begin_ns = time.monotonic_ns()
    result = operation()
    end_ns = time.monotonic_ns()
    with lock:
        place = stacks.setdefault(stack, len(stacks))
        calls.append([threading.get_native_id(), begin_ns, end_ns, place])
    return result


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64, device="cuda")

    def forward(self, x):
        return known(lambda: torch.relu(self.linear(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[Inner() for _ in range(4)])

    def forward(self, x):
        return self.layers(x)


def recurse(depth, x):
    if depth == 0:
        return known(lambda: x + 1)
    return recurse(depth - 1, x)


def generator(x):
    for _ in range(3):
        yield known(lambda: x * 2)


def worker(x):
    for i in range(20):
        recurse(i, x)


def main(rounds):
    model = Model()
    x = torch.randn(32, 64, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(rounds):
        loss = model(x).sum()
        known(loss.backward)
        known(optimizer.step)
        recurse(i % 60, x)
        list(generator(x))
        sorted([1, 2], key=lambda k: known(lambda: x - k).sum().item())
    threads = [threading.Thread(target=worker, args=(x,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()

main(int(sys.argv[2]))
with open(sys.argv[1], "w", encoding="utf-8") as log:
    json.dump({"stacks": list(map(list, stacks)), "calls": calls}, log)
