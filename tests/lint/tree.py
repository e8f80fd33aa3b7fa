"""Formatting, sizes of files, the fixed top level, and nothing that belongs to one machine."""

import pathlib
import re
import shutil
import subprocess
import sys

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "record", "report", "format", "bpf", "cupti_inject",
    "symbolize", "tests", "man", "README.md", "LICENSE", "CHANGELOG.md", "bootstrap.sh",
    ".ci", ".clang-format", ".clang-tidy", ".gitignore",
}
MAX_LINES = 400
SOURCES = (".h", ".cpp", ".c", ".cu", ".S")


def tracked(root):
    if not (root / ".git").exists():
        return [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
    out = subprocess.run(["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files"],
                         capture_output=True, text=True, check=True).stdout
    return [line for line in out.splitlines() if (root / line).exists()]


def main():
    root = pathlib.Path(sys.argv[1])
    files = tracked(root)
    problems = []
    for extra in sorted({f.split("/")[0] for f in files} - TOP_LEVEL):
        problems.append(f"{extra}: not part of the top level")
    sources = [f for f in files if f.endswith(SOURCES)]
    for name in sources:
        lines = (root / name).read_text().count("\n")
        if lines > MAX_LINES and not name.startswith("tests/"):
            problems.append(f"{name}: {lines} lines, the limit is {MAX_LINES}")
    for name in files:
        if name == "tests/lint/tree.py" or name.startswith("tests/captures/"):
            continue
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            continue
        for match in re.finditer(r"/(work|home|root)/[a-z]\w*", text):
            problems.append(f"{name}: a path of one machine: {match.group()}")
    formatter = shutil.which("clang-format")
    if not formatter:
        print("skipped: no clang-format")
        return 77
    formatted = [str(root / f) for f in sources if not f.endswith((".S", ".c", "bpf/events.h"))]
    result = subprocess.run([formatter, "--dry-run", "-Werror", *formatted],
                            capture_output=True, text=True)
    if result.returncode != 0:
        problems.append(result.stderr[:4000])
    print("\n".join(problems) or f"{len(files)} files are in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
