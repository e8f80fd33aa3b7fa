"""Each view of a small capture, made by make_scene.cpp, is exactly the text beside this file.

XPU_UPDATE_GOLDEN=1 writes the texts anew; read the difference before you believe it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

VIEWS = {
    "summary.txt": [],
    "folded_merge_us.txt": ["--folded"],
    "folded_gpu_ns.txt": ["--folded", "--mode", "gpu", "--unit", "ns"],
    "folded_cpu_samples.txt": ["--folded", "--mode", "cpu", "--unit", "samples"],
    "folded_internal_mangled_ns.txt": ["--folded", "--mode", "gpu", "--unit", "ns",
                                       "--keep-internal-frames", "--kernel-names", "mangled"],
    "top.txt": ["--top"],
    "top_kernels.csv": ["--top", "--format", "csv", "--table", "cuda_gpu_kern_sum"],
    "top.json": ["--top", "-n", "2", "--format", "json"],
    "dump.txt": ["--dump"],
    "chrome_trace.json": ["--chrome-trace"],
}


def report(binary, folder, arguments):
    result = subprocess.run([binary, *arguments, f"{folder}/scene.xpu"], capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.replace(folder, "DIR"), result.stderr.replace(folder, "DIR")


def differences(name, expected, actual):
    if name.endswith(".json"):
        if json.loads(expected) == json.loads(actual):
            return
    elif expected == actual:
        return
    a, b = expected.splitlines(), actual.splitlines()
    yield f"{name} differs:"
    for line in a:
        if line not in b:
            yield f"  - {line}"
    for line in b:
        if line not in a:
            yield f"  + {line}"


def main():
    scene_maker, binary = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([scene_maker, folder], check=True)
        for name, arguments in VIEWS.items():
            out, err = report(binary, folder, arguments)
            texts = [(here / name, out)]
            if name == "folded_merge_us.txt":  # what is said beside the views is much the same
                texts.append((here / f"{name}.stderr", err))
            for path, text in texts:
                if os.environ.get("XPU_UPDATE_GOLDEN"):
                    path.unlink(missing_ok=True)
                    if text:
                        path.write_text(text)
                expected = path.read_text() if path.exists() else ""
                problems += differences(path.name, expected, text)
    print("\n".join(problems) or f"{len(VIEWS)} views are as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
