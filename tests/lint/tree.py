"""Formatting, sizes of files, the fixed top level, and nothing that belongs to one machine."""

import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys

from xpu_testing import skip

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "record", "report", "format", "bpf", "cupti_inject",
    "symbolize", "tests", "man", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
    "bootstrap.sh",
    ".ci", ".clang-format", ".clang-tidy", ".gitignore",
}
MAX_LINES = 800
SOURCES = (".h", ".cpp", ".c", ".cu", ".S")


def tracked(root):
    """What git tracks; of a tree without git what .gitignore leaves."""
    if not (root / ".git").exists() or not shutil.which("git"):
        return sorted(not_ignored(root))
    out = subprocess.run(["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z"],
                         capture_output=True, text=True, check=True).stdout
    return [name for name in out.split("\0") if name and (root / name).exists()]


def not_ignored(root):
    patterns = [line.strip() for line in (root / ".gitignore").read_text().splitlines()]
    patterns = [pattern for pattern in patterns if pattern and not pattern.startswith("#")]
    for pattern in patterns:
        # Those that mean more than is_ignored understands.
        assert not re.search(r"^!|\*\*|[^/]/[^/]", pattern), f".gitignore: {pattern}"
    directories = [root]
    while directories:
        for path in directories.pop().iterdir():
            name = path.relative_to(root).as_posix()
            is_directory = path.is_dir() and not path.is_symlink()
            if name == ".git" or is_ignored(name, is_directory, patterns):
                continue
            if is_directory:
                directories.append(path)
            elif path.is_file():
                yield name


def is_ignored(name, is_directory, patterns):
    """As gitignore(5): a slash at the beginning means the root, one at the end a directory."""
    return any((is_directory or not pattern.endswith("/")) and
               fnmatch.fnmatchcase(name if pattern.startswith("/") else name.split("/")[-1],
                                   pattern.strip("/")) and
               (not pattern.startswith("/") or "/" not in name)
               for pattern in patterns)


def self_test():
    patterns = ["/build/", "__pycache__/", "compile_commands.json", "/*.xpu"]
    ignored = [("build", True), ("tests/__pycache__", True), ("compile_commands.json", False),
               ("a/compile_commands.json", False), ("capture.xpu", False)]
    kept = [("build", False), ("tests/build", True), ("tests/captures/a.xpu", False),
            ("compile_commands.json.in", False), ("README.md", False)]
    for name, is_directory in ignored:
        assert is_ignored(name, is_directory, patterns), f"not ignored: {name}"
    for name, is_directory in kept:
        assert not is_ignored(name, is_directory, patterns), f"ignored: {name}"


def main():
    self_test()
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
        skip("clang-format", "no clang-format")
    formatted = [str(root / f) for f in sources if not f.endswith((".S", ".c", "bpf/events.h"))]
    result = subprocess.run([formatter, "--dry-run", "-Werror", *formatted],
                            capture_output=True, text=True)
    if result.returncode != 0:
        problems.append(result.stderr[:4000])
    print("\n".join(problems) or f"{len(files)} files are in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
