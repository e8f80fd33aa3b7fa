"""Steps of a network in PyTorch, for a machine with a GPU.

    pytorch_steps.py mlp|transformer|decode [--steps N] [--warmup W] [--graph] [--profile] [--turns]

mlp and transformer are trained. mlp is bound by its launches; transformer too, unless --large makes
it one whose kernels keep the GPU busy. decode makes a token in each step: a language model of 1.5
billion parameters, bound by its launches, without --graph and --compile. Prints one JSON line; "timed_ns" is the time of the N steps after the warm-up. --graph:
the steps are captured into a CUDA graph once and replayed. --profile: torch.profiler runs around
all of it, and the line has what it counted: kernels by name and by operator, and their time; null
when the profiler saw no GPU. --with: a profiler runs around all of it, and the line has nothing of what it saw.
--turns: the N steps are run, and the line is printed, again for each line of the standard input.
--times FILE: prints "running" after the warm-up and repeats the step until the standard input ends;
then FILE has one line, the thread's id and the time at which each step began, of CLOCK_MONOTONIC.
--compile: the model goes through torch.compile.
"""

import argparse
import contextlib
import functools
import itertools
import json
import os
import sys
import threading
import time

import torch
from torch import nn


def make_model(options):
    if options.model == "mlp":
        layers = [layer for _ in range(options.layers or 6)
                  for layer in (nn.Linear(256, 256), nn.GELU())]
        return nn.Sequential(*layers), torch.randn(64, 256, device="cuda")
    width, heads, feed_forward, batch, sequence = ((1024, 16, 4096, 8, 512) if options.large else
                                                   (128, 4, 256, 8, 32))
    encoder = nn.TransformerEncoderLayer(width, heads, feed_forward, dropout=0.0, batch_first=True)
    return (nn.TransformerEncoder(encoder, options.layers or 2),
            torch.randn(batch, sequence, width, device="cuda"))


KEPT_TOKENS = 256  # of which the decoder has keys and values


class DecoderLayer(nn.Module):
    """Grouped-query attention over the last tokens, and a gated feed-forward network."""

    def __init__(self, width, heads, key_heads, feed_forward, tokens):
        super().__init__()
        self.size = width // heads
        self.before_attention = nn.Parameter(torch.ones(width))
        self.before_network = nn.Parameter(torch.ones(width))
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, key_heads * self.size)
        self.value = nn.Linear(width, key_heads * self.size)
        self.output = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, feed_forward, bias=False)
        self.up = nn.Linear(width, feed_forward, bias=False)
        self.down = nn.Linear(feed_forward, width, bias=False)
        self.register_buffer("keys", torch.zeros(1, key_heads, tokens, self.size))
        self.register_buffer("values", torch.zeros(1, key_heads, tokens, self.size))

    @staticmethod
    def normalized(x, weight):
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    @staticmethod
    def rotated(x, cosine, sine):
        first, second = x.chunk(2, dim=-1)
        return x * cosine + torch.cat((-second, first), dim=-1) * sine

    def of_heads(self, x):
        return x.view(1, 1, -1, self.size).transpose(1, 2)

    def forward(self, x, place, cosine, sine):
        hidden = self.normalized(x, self.before_attention)
        query = self.rotated(self.of_heads(self.query(hidden)), cosine, sine)
        self.keys[:, :, place:place + 1] = self.rotated(self.of_heads(self.key(hidden)), cosine,
                                                        sine)
        self.values[:, :, place:place + 1] = self.of_heads(self.value(hidden))
        attention = nn.functional.scaled_dot_product_attention(query, self.keys, self.values,
                                                               enable_gqa=True)
        x = x + self.output(attention.transpose(1, 2).reshape(1, 1, -1))
        hidden = self.normalized(x, self.before_network)
        return x + self.down(nn.functional.silu(self.gate(hidden)) * self.up(hidden))


class Decoder(nn.Module):
    def __init__(self, layers, words=32_000, width=1536):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(DecoderLayer(width, 12, 2, 8960, KEPT_TOKENS)
                                    for _ in range(layers))
        angles = torch.outer(torch.arange(KEPT_TOKENS), 1e6 ** -torch.linspace(0, 1, 64))
        self.register_buffer("cosine", torch.cat((angles.cos(), angles.cos()), dim=-1))
        self.register_buffer("sine", torch.cat((angles.sin(), angles.sin()), dim=-1))

    def forward(self, word, place):
        x = self.words(word)
        for layer in self.layers:
            x = layer(x, place, self.cosine[place], self.sine[place])
        return nn.functional.linear(x, self.words.weight).argmax(-1)


def decode_step(options):
    with torch.device("cuda"), torch.no_grad():
        model = Decoder(options.layers or 28).to(torch.bfloat16)
        word = torch.zeros(1, 1, dtype=torch.long)
    places = itertools.cycle(range(KEPT_TOKENS))

    @torch.inference_mode()
    def step():
        nonlocal word
        word = model(word, next(places))
    return step


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


def graph_step(model, optimizer, batch):
    warm_up(model, optimizer, batch)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step(model, optimizer, batch)
    return graph.replay


def training_step(options):
    model, batch = make_model(options)
    model = model.cuda()
    if options.compile:
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if options.graph:
        return graph_step(model, optimizer, batch)
    return functools.partial(train_step, model, optimizer, batch)


def timed_ns(step, warmup, steps):
    if warmup > 0:
        for _ in range(warmup):
            step()
        torch.cuda.synchronize()
    begin = time.monotonic_ns()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return time.monotonic_ns() - begin


def run_until_end_of_input(step, path):
    ends = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
    times = []
    print("running", flush=True)
    while not ends.is_set():
        times.append(time.monotonic_ns())
        step()
    times.append(time.monotonic_ns())
    torch.cuda.synchronize()
    with open(path, "w", encoding="ascii") as file:
        print(threading.get_native_id(), *times, file=file)


def torch_profiler(cpu=True, stacks=False):
    activities = [torch.profiler.ProfilerActivity.CUDA]
    if cpu:
        activities.append(torch.profiler.ProfilerActivity.CPU)
    return torch.profiler.profile(activities=activities, with_stack=stacks)


@contextlib.contextmanager
def proton(context, output):
    import triton.profiler
    triton.profiler.start(output, context=context)
    yield
    triton.profiler.finalize()


def around(options):
    """The profiler to run under, by the name that --with has."""
    if options.profile:
        return torch_profiler()
    return {
        None: contextlib.nullcontext,
        "torch": torch_profiler,
        "torch-stacks": functools.partial(torch_profiler, stacks=True),
        "torch-cuda": functools.partial(torch_profiler, cpu=False),
        "proton-shadow": functools.partial(proton, "shadow", options.output),
        "proton-python": functools.partial(proton, "python", options.output),
    }[options.profiler]()


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
    if not names:
        return None
    return {"kernels": sum(names.values()), "kernel_ns": total, "by_name": names,
            "by_operator": by_operator(profiler)}


def is_backward(event):
    while event is not None:
        if event.name.startswith("autograd::engine::evaluate_function"):
            return True
        event = event.cpu_parent
    return False


def by_operator(profiler):
    """GPU operations and their time by the innermost operator that launched them."""
    sums = {}
    for event in profiler.events():
        if not event.kernels or event.device_type != torch.autograd.DeviceType.CPU:
            continue
        key = f"{event.name} {'backward' if is_backward(event) else 'forward'}"
        count, us = sums.get(key, (0, 0))
        sums[key] = (count + len(event.kernels),
                     us + sum(kernel.duration for kernel in event.kernels))
    return {key: {"work": count, "ns": us * 1000} for key, (count, us) in sums.items()}


def tell(options, duration_ns, profiled):
    print(json.dumps({"workload": "pytorch_steps", "pid": os.getpid(), "steps": options.steps,
                      "unit": "step", "timed_units": options.steps, "timed_ns": duration_ns,
                      "profiled": profiled}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("mlp", "transformer", "decode"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--with", dest="profiler",
                        choices=("torch", "torch-stacks", "torch-cuda", "proton-shadow",
                                 "proton-python"))
    parser.add_argument("--output", default="proton", help="where Proton writes")
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--times")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    with around(options) as profiler:
        torch.manual_seed(1)
        step = decode_step(options) if options.model == "decode" else training_step(options)
        if options.times:
            timed_ns(step, options.warmup, 0)
            run_until_end_of_input(step, options.times)
            return
        if options.turns:
            timed_ns(step, options.warmup, 0)
            for _ in sys.stdin:
                tell(options, timed_ns(step, 0, options.steps), None)
            return
        duration_ns = timed_ns(step, options.warmup, options.steps)
    tell(options, duration_ns, counted(profiler) if options.profile else None)


if __name__ == "__main__":
    main()
