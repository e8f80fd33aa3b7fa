"""Training steps of a small network in PyTorch, for a machine with a GPU.

    pytorch_steps.py mlp|transformer [--steps N] [--graph] [--profile]

Prints one JSON line. --graph: the steps are captured into a CUDA graph once and replayed.
--profile: torch.profiler runs around all of it, and the line has what it counted: kernels by name
and their time; null when the profiler saw no GPU.
"""

import argparse
import contextlib
import json
import os

import torch
from torch import nn


def make_model(kind):
    if kind == "mlp":
        layers = [layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.GELU())]
        return nn.Sequential(*layers), torch.randn(64, 256, device="cuda")
    encoder = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(encoder, 2), torch.randn(8, 32, 128, device="cuda")


def train_step(model, optimizer, batch):
    optimizer.zero_grad(set_to_none=False)
    model(batch).square().mean().backward()
    optimizer.step()


def warm_up(model, optimizer, batch):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            train_step(model, optimizer, batch)
    torch.cuda.current_stream().wait_stream(stream)


def run_graph(model, optimizer, batch, steps):
    warm_up(model, optimizer, batch)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step(model, optimizer, batch)
    for _ in range(steps):
        graph.replay()


def run_eager(model, optimizer, batch, steps):
    for _ in range(steps):
        train_step(model, optimizer, batch)


def counted(profiler):
    names = {}
    total = 0
    for event in profiler.profiler.kineto_results.events():
        if event.device_type() != torch.autograd.DeviceType.CUDA:
            continue
        name = event.name()
        if name.startswith(("Memcpy", "Memset")) or event.is_user_annotation():
            continue
        names[name] = names.get(name, 0) + 1
        total += event.duration_ns()
    return {"kernels": sum(names.values()), "kernel_ns": total, "by_name": names} if names else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("mlp", "transformer"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    around = (torch.profiler.profile(activities=activities) if options.profile
              else contextlib.nullcontext())
    with around as profiler:
        torch.manual_seed(1)
        model, batch = make_model(options.model)
        model = model.cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        run = run_graph if options.graph else run_eager
        run(model, optimizer, batch, options.steps)
        torch.cuda.synchronize()
    print(json.dumps({"workload": "pytorch_steps", "pid": os.getpid(), "steps": options.steps,
                      "profiled": counted(profiler) if options.profile else None}))


if __name__ == "__main__":
    main()
