"""Training with slow steps whose numbers are known, in PyTorch, for a machine with a GPU.

    planted_steps.py [--steps N] [--compile|--graph]

Three things make steps slow: the loader sleeps for 5 ms in every 37th, the program waits for the
GPU in every 50th, an extra kernel runs in every 64th. A step takes the GPU two to three times as
long as its launches take the CPU, compiled or not, so that much is queued when the program waits,
yet less than the queue holds.
--compile: the model goes through torch.compile. --graph: the step is captured into a CUDA graph
once and replayed. Prints one JSON line: the numbers of the planted steps, and the times
(CLOCK_MONOTONIC) at which each step began and the last one ended.
"""

import argparse
import functools
import json
import os
import time

import torch
from torch import nn

WIDTH, ROWS, LAYERS = 1024, 12288, 3
EXTRA_WIDTH = 5632
SLEEP_SECONDS = 0.005
EVERY = {"load": 37, "synchronize": 50, "kernel": 64}


def load_batch(batch, loaded, is_slow):
    if is_slow:
        time.sleep(SLEEP_SECONDS)
    batch.copy_(loaded, non_blocking=True)


def train_step(model, optimizer, batch):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


def graph_step(model, optimizer, batch):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            train_step(model, optimizer, batch)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step(model, optimizer, batch)
    return graph.replay


def extra_kernel(matrix, product):
    torch.mm(matrix, matrix, out=product)


def run(steps, planted, step, batch):
    loaded = torch.randn(ROWS, WIDTH).pin_memory()
    matrix = torch.randn(EXTRA_WIDTH, EXTRA_WIDTH, device="cuda")
    product = torch.empty_like(matrix)
    # The first call loads the kernel, which waits for the GPU.
    extra_kernel(matrix, product)
    torch.cuda.synchronize()
    times = []
    for i in range(steps):
        times.append(time.monotonic_ns())
        load_batch(batch, loaded, i in planted["load"])
        step()
        if i in planted["synchronize"]:
            torch.cuda.synchronize()
        if i in planted["kernel"]:
            extra_kernel(matrix, product)
    times.append(time.monotonic_ns())
    torch.cuda.synchronize()
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--graph", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    model = nn.Sequential(*(layer for _ in range(LAYERS)
                            for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU()))).cuda()
    # One kernel for all parameters keeps the launches of a step few.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    if options.compile:
        model = torch.compile(model)
    batch = torch.randn(ROWS, WIDTH, device="cuda")
    step = (graph_step(model, optimizer, batch) if options.graph else
            functools.partial(train_step, model, optimizer, batch))
    planted = {name: list(range(every, options.steps, every)) for name, every in EVERY.items()}
    times = run(options.steps, planted, step, batch)
    print(json.dumps({"workload": "planted_steps", "pid": os.getpid(), "steps": options.steps,
                      "planted": planted, "times_ns": times}), flush=True)


if __name__ == "__main__":
    main()
