"""Kernels of Triton and of cuBLAS, for a machine with a GPU.

    triton_kernels.py [--launches N]

Computes a softmax (memory-bound, compiled from the lines below) and a product of matrices, N times
each, and prints one JSON line.
"""

import argparse
import json

import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 16384, 4096


@triton.jit
def softmax_kernel(out, data, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    values = tl.load(data + at, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + at, values / tl.sum(values, axis=0), mask=inside)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, default=100)
    options = parser.parse_args()
    data = torch.randn(ROWS, COLUMNS, device="cuda")
    out = torch.empty_like(data)
    factors = [torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    torch.cuda.synchronize()
    for _ in range(options.launches):
        softmax_kernel[(ROWS,)](out, data, COLUMNS, BLOCK=COLUMNS)
        torch.mm(*factors)
    torch.cuda.synchronize()
    wrong = (out - torch.softmax(data, 1)).abs().max().item()
    print(json.dumps({"workload": "triton_kernels", "launches": options.launches,
                      "is_right": wrong < 1e-5}))


if __name__ == "__main__":
    main()
