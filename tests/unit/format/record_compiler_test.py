"""The compiler of records refuses what capture.capnp says only half of."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]

# What is changed in the schema, and what is said of it.
MISTAKES = [
    ("  cpu @5 :Column $u32;", "  cpu @5 :Column;", "CpuSample.cpu: has no type"),
    ("  cpu @5 :Column $u32;", "  cpu @5 :Column $u32 $u64;", "CpuSample.cpu: has two types"),
    ('$enumeration("ClockKind")', '$enumeration("NoSuch")', "NoSuch: there is no such thing"),
    ('$enumeration("ClockKind")', '$enumeration("Kernel")', "Kernel: is not an enum"),
    ("  queuedNs @6 :Column $u64 $time(cupti);", "  queuedNs @6 :Column $u64;",
     "Kernel.queued_ns: a name with _ns and $time go together"),
    ("  cacheSizeBytes @10 :Column $u64 $unit(\"bytes\");", "  cacheSizeBytes @10 :Column $u64;",
     "JitOperation.cache_size_bytes: lacks the unit bytes"),
    ("  # The GPU ran a kernel.\n  rows @0 :UInt32;\n  instance @1 :Column $instance;\n",
     "  # The GPU ran a kernel.\n  instance @1 :Column $instance;\n  rows @0 :UInt32;\n",
     "Kernel: rows is not in its place"),
]


def compile_schema(compiler, text):
    with tempfile.TemporaryDirectory() as directory:
        schema = pathlib.Path(directory) / "capture.capnp"
        schema.write_text(text, encoding="utf-8")
        (pathlib.Path(directory) / "format").mkdir()
        return subprocess.run(
            ["capnp", "compile", f"-o{compiler}:{directory}", f"--src-prefix={directory}", schema],
            capture_output=True, text=True, check=False)


def main():
    compiler = sys.argv[1]
    schema = (ROOT / "format" / "capture.capnp").read_text(encoding="utf-8")
    problems = []
    good = compile_schema(compiler, schema)
    if good.returncode != 0:
        problems.append(f"the schema as it is: {good.stderr}")
    for before, after, said in MISTAKES:
        if schema.count(before) != 1:
            problems.append(f"{schema.count(before)} times: {before!r}")
            continue
        result = compile_schema(compiler, schema.replace(before, after))
        if result.returncode == 0 or said not in result.stderr:
            problems.append(f"{after!r}: {result.returncode}, {result.stderr!r}")
    print("\n".join(problems) or f"{len(MISTAKES)} mistakes are refused")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
