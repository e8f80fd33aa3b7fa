"""Programs that allocate GPU memory by PyTorch's caching allocator, for a machine with a GPU.

    pytorch_memory.py mlp|transformer|leak|fragment [--steps N] [--history] [--turns]

Ends without giving anything back, after a JSON line: PyTorch's own peaks, and how much of what is
there at the end was allocated under which Python stack, innermost frame first, as far as
--history (torch.cuda.memory._record_memory_history) knows it. leak keeps the loss of each step,
fragment asks for ever larger blocks. --turns: the N steps are run, and a line with the nanoseconds
of a step is printed, again for each line of the standard input.
"""

import argparse
import json
import os
import sys
import time

import torch
from torch import nn

kept = []


def make_model(name):
    if name == "transformer":
        encoder = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
        return nn.TransformerEncoder(encoder, 2).cuda(), torch.randn(8, 32, 128, device="cuda")
    layers = [layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.GELU())]
    return nn.Sequential(*layers).cuda(), torch.randn(64, 256, device="cuda")


def train_step(model, optimizer, batch):
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def leaking_step(model, optimizer, batch):
    train_step(model, optimizer, batch)
    kept.append(torch.ones(50_000, device="cuda"))


def fragmenting_step(step):
    block = torch.empty((64 + 8 * step) << 20, dtype=torch.uint8, device="cuda")
    del block


def steps_of(options):
    model, batch = make_model(options.model)
    optimizer = torch.optim.Adam(model.parameters())
    step = leaking_step if options.model == "leak" else train_step
    loss = None
    for number in range(options.steps):
        if options.model == "fragment":
            fragmenting_step(number)
        else:
            loss = step(model, optimizer, batch)
    torch.cuda.synchronize()
    return model, optimizer, batch, loss


def take_turns(options):
    model, batch = make_model(options.model)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        train_step(model, optimizer, batch)
    torch.cuda.synchronize()
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = time.monotonic_ns()
        for _ in range(options.steps):
            train_step(model, optimizer, batch)
        torch.cuda.synchronize()
        print((time.monotonic_ns() - begin) / options.steps, flush=True)


def blocks_by_stack():
    stacks = {}
    for segment in torch.cuda.memory._snapshot()["segments"]:
        for block in segment["blocks"]:
            if block["state"] != "active_allocated":
                continue
            frames = tuple((os.path.basename(frame["filename"]), frame["line"])
                           for frame in block.get("frames", ()))
            stacks[frames] = stacks.get(frames, 0) + block["size"]
    return [{"frames": frames, "bytes": size} for frames, size in stacks.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["mlp", "transformer", "leak", "fragment"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--history", action="store_true")
    parser.add_argument("--turns", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    if options.history:
        torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python")
    if options.turns:
        take_turns(options)
        return
    state = steps_of(options)
    print(json.dumps({"allocated": torch.cuda.memory_allocated(),
                      "max_allocated": torch.cuda.max_memory_allocated(),
                      "max_reserved": torch.cuda.max_memory_reserved(),
                      "stacks": blocks_by_stack() if options.history else None}), flush=True)
    os._exit(0 if state else 1)


if __name__ == "__main__":
    main()
