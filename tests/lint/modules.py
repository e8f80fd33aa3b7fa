"""Which module may include which, and which module uses each third-party library."""

import pathlib
import re
import sys

# Module -> prefixes of our own headers that it may include. The longest matching module counts.
OWN = {
    "format/base": ["format/base/"],
    "format": ["format/"],
    "bpf": ["bpf/events.h", "bpf/python_layout.h", "bpf/unwind_layout.h", "bpf/watched_layout.h"],
    "cupti_inject": ["cupti_inject/", "format/base/", "bpf/python_layout.h",
                     "symbolize/unwind/unwind_table.h", "symbolize/unwind/unwind_walk.h"],
    "record": ["record/", "format/", "bpf/events.h", "bpf/python_layout.h", "bpf/unwind_layout.h",
               "bpf/watched_layout.h", "cupti_inject/wire.h", "cupti_inject/wire_stacks.h",
               "cupti_inject/attach_request.h", "cupti_inject/cupti_abi.h", "cupti_inject/cupti_places.h",
               "cupti_inject/cupti_versions.h",
               "cupti_inject/cupti_records.inc", "cupti_inject/pm_abi.h",
               "symbolize/elf/", "symbolize/unwind/", "symbolize/demangle.h", "symbolize/dwarf/debug_reader.h",
               "symbolize/file_finder.h", "symbolize/file_symbols.h", "symbolize/gpu_code_lines.h", "symbolize/slice_maker.h",
               "symbolize/text_reader.h"],
    "symbolize/elf": ["symbolize/elf/", "format/base/"],
    "symbolize/unwind": ["symbolize/unwind/", "symbolize/elf/", "format/base/"],
    "symbolize": ["symbolize/", "format/base/"],
    "report": ["report/", "format/", "symbolize/"],
    "man": ["man/", "format/base/", "record/cli/help.h", "record/cli/help_groups.h", "record/cli/command_line.h", "report/cli/options.h"],
}

# Third-party header -> the only users that may include it (a module, or a file).
THIRD_PARTY = [
    (r"fmt/", ["format/base/text.h", "format/base/text.cpp"]),
    (r"(capnp|kj)/|.*capture\.capnp\.h$", ["format"]),
    (r"zstd\.h$", ["format", "report/export/parquet", "symbolize/elf/compressed_section.cpp"]),
    (r"(zstd_errors|xxhash)\.h$", ["format"]),
    (r"CLI/", ["record/cli/command_line.cpp", "record/cli/metric_options.cpp",
               "record/cli/metric_options.h", "report/cli/options.cpp", "report/cli/view_choice.cpp"]),
    (r"bpf/(libbpf|bpf|btf)\.h$|.*\.skel\.h$", ["record"]),
    (r"bpf/bpf_.*\.h$", ["bpf"]),
    (r"elfutils/|dwarf\.h$|libelf\.h$|gelf\.h$|lzma\.h$", ["symbolize"]),
    (r"libiberty/", ["symbolize/demangle.cpp"]),
    (r"zlib\.h$", ["report", "symbolize"]),
    (r"sqlite3\.h$", ["report/export/sqlite"]),
    (r"thrift/", ["report/export/parquet"]),
    (r"google/protobuf/|.*\.pb\.h$", ["report/export/pprof", "report/views/perfetto"]),
    (r"(cupti|cuda|generated_cuda)[a-z_]*\.h$",
     ["cupti_inject/cupti_abi_check.cpp", "cupti_inject/cupti_records_check.cpp",
      "cupti_inject/pm_abi_check.cpp"]),
    (r"nvtx3/", ["cupti_inject/nvtx_abi_check.cpp"]),
    (r"gtest/|gmock/", []),
]

# Headers that other modules include: they must not expose third-party libraries.
INTERFACES = ["format/events.h", "format/gpu_events.h", "format/stack.h", "format/losses.h", "format/writer.h", "format/reader.h",
         "cupti_inject/wire.h", "cupti_inject/wire_stacks.h", "cupti_inject/cupti_abi.h",
         "bpf/events.h"]

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def module_of(path):
    return max((r for r in OWN if path.startswith(r + "/")), key=len, default=None)


def problems_of(path, text):
    module = module_of(path)
    top_levels = {r.split("/")[0] for r in OWN}
    for header in INCLUDE.findall(text):
        for pattern, users in THIRD_PARTY:
            if not re.match(pattern, header):
                continue
            if path in INTERFACES and not path.endswith("text.h"):
                yield f"{path}: an interface includes the third-party header {header}"
            elif not any(path == p or path.startswith(p + "/") for p in users):
                yield f"{path}: {header} may be included only in: {', '.join(users) or 'tests'}"
            break
        else:
            if header.split("/")[0] in top_levels and "/" in header:
                if not any(header.startswith(prefix) for prefix in OWN[module]):
                    yield f"{path}: module {module} may not include {header}"


def self_test():
    """The rules find what they are for."""
    bad = [
        ("report/a.cpp", '#include "record/b.h"'),
        ("record/a.cpp", "#include <CLI/CLI.hpp>"),
        ("report/a.cpp", "#include <zstd.h>"),
        ("format/reader.h", "#include <capnp/message.h>"),
        ("symbolize/a.cpp", '#include "format/events.h"'),
        ("cupti_inject/a.cpp", '#include <cupti.h>'),
        ("bpf/a.bpf.c", '#include "format/events.h"'),
        ("record/a.cpp", '#include "symbolize/symbolizer.h"'),
        ("symbolize/elf/a.cpp", '#include "symbolize/unwind/unwind_table.h"'),
        ("report/a.cpp", "#include <elfutils/libdw.h>"),
        ("record/a.cpp", "#include <dwarf.h>"),
    ]
    good = [
        ("record/cli/command_line.cpp", "#include <CLI/CLI.hpp>"),
        ("record/a.cpp", '#include "cupti_inject/wire.h"\n#include <bpf/libbpf.h>'),
        ("bpf/a.bpf.c", '#include <bpf/bpf_helpers.h>\n#include "bpf/events.h"'),
        ("format/block.cpp", "#include <zstd.h>"),
    ]
    for path, text in bad:
        assert list(problems_of(path, text)), f"not found: {path}: {text}"
    for path, text in good:
        assert not list(problems_of(path, text)), f"wrongly found: {path}: {text}"


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    files = [p for r in {r.split("/")[0] for r in OWN} for p in sorted((root / r).rglob("*"))
             if p.suffix in (".h", ".cpp", ".c", ".S")]
    problems = [line for p in files
                for line in problems_of(p.relative_to(root).as_posix(), p.read_text())]
    print("\n".join(problems) or f"{len(files)} files keep to their modules")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
