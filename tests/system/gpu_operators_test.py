"""GPU work by operator against torch.profiler, which counts it in a run of its own: three models,
forward and backward. With XPU_TEST_GPU=1 and XPU_TEST_PYTHON, a Python with PyTorch."""

from gpu_operations_pytorch import profiled, recorded
from gpu_programs import REAL, prepare
from xpu_testing import Skip, Workspace, expect, main, table_rows

# What is shorter differs by more from run to run than any operator should.
SHORT_NS = 200_000
# Activities of CUPTI that torch.profiler lists with the operators, though no operator makes them.
OVERHEADS = ("Lazy Function Loading", "Runtime Triggered Module Loading", "Command Buffer Full")
# Copies of pageable memory, as of a model's weights, take as long as the host does.
COPIES, COPIES_NEAR, NEAR = "aten::copy_ forward", 0.15, 0.03


def operators_of(path):
    return {f"{row['Operator']} {row['Pass']}": row for row in table_rows(path, "op_sum")
            if row["GPU Work"] > 0}


def check_operators(*arguments):
    if not REAL:
        raise Skip("XPU_TEST_GPU is not 1")
    wanted = {name: each for name, each in profiled(*arguments)["by_operator"].items()
              if not name.startswith(OVERHEADS)}
    with Workspace() as work:
        capture = recorded(work, *arguments)
        found = operators_of(capture.path)
        gpu_ns = sum(row["Total Time (ns)"] for row in table_rows(capture.path, "cuda_gpu_sum"))
        modules = table_rows(capture.path, "module_sum")
    for name in sorted(wanted.keys() | found.keys()):
        ours, theirs = found.get(name), wanted.get(name)
        print(f"        {name:44} {ours and ours['GPU Work']} {theirs and theirs['work']} "
              f"{ours and ours['GPU Self Time (ns)']} {theirs and round(theirs['ns'])}")
    expect("operators with GPU work", sorted(found), sorted(wanted))
    expect("GPU work of each", {name: row["GPU Work"] for name, row in found.items()},
           {name: each["work"] for name, each in wanted.items()})
    ratios = {name: found[name]["GPU Self Time (ns)"] / each["ns"]
              for name, each in wanted.items() if each["ns"] >= SHORT_NS}
    expect(f"GPU time over the profiler's, within 3 %: {ratios}",
           {name: ratio for name, ratio in ratios.items()
            if abs(ratio - 1) > (COPIES_NEAR if name == COPIES else NEAR)}, {})
    expect("GPU time of all operators", sum(row["GPU Self Time (ns)"] for row in found.values()),
           gpu_ns)
    expect("GPU time of all modules", sum(row["GPU Self Time (ns)"] for row in modules), gpu_ns)


def test_small_network():
    check_operators("mlp")


def test_transformer():
    check_operators("transformer")


def test_large_transformer():
    check_operators("transformer", "--large")


if __name__ == "__main__":
    prepare()
    main(globals())
