"""Layers inside a stage: each directory is a CMake target, and what that links is what its files may
include. No cycles between directories, none between files (a header and the source of its name are
one). Of a stage that is one directory only the latter."""

import pathlib
import posixpath
import re
import sys

STAGES = ["record", "report"]
# Built as several targets of the same sources.
FLAT = ["cupti_inject"]
# Where the targets are that STAGES link.
OTHERS = ["format", "symbolize"]

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
COMMAND = re.compile(r"\b(add_library|target_link_libraries)\s*\(([^()]*)\)")
KEYWORDS = {"STATIC", "INTERFACE", "OBJECT", "PUBLIC", "PRIVATE"}
SOURCES = (".h", ".cpp")


def directory_of(cmake_file, sources):
    """That of the sources, as far as they are named; a target of a list that CMake makes has those
    of its own directory."""
    here = posixpath.dirname(cmake_file)
    named = [posixpath.dirname(posixpath.join(here, s)) for s in sources
             if s.endswith(".cpp") and "$" not in s]
    return posixpath.commonpath(named) if named else here


def read_targets(files):
    """Directory -> its targets, target -> what it links."""
    targets, links = {}, {}
    for path, text in files.items():
        if not path.endswith("CMakeLists.txt"):
            continue
        for command, words in COMMAND.findall(re.sub(r"#.*", "", text)):
            name, *rest = words.split()
            rest = [word for word in rest if word not in KEYWORDS]
            if command == "target_link_libraries":
                links.setdefault(name, set()).update(rest)
            elif "INTERFACE" not in words.split():
                targets.setdefault(directory_of(path, rest), []).append(name)
    return targets, links


def cycle_in(graph):
    """The nodes of a cycle in their order; empty: there is none."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return []
        path.append(node)
        for other in sorted(graph.get(node, ())):
            if found := visit(other):
                return found
        path.pop()
        done.add(node)
        return []

    return next((found for node in sorted(graph) if (found := visit(node))), [])


def problems_of(files):
    """Of path -> text."""
    targets, links = read_targets(files)
    by_target = {name: directory for directory, names in targets.items() for name in names}
    sources = {path: text for path, text in files.items()
               if path.endswith(SOURCES) and path.split("/")[0] in STAGES}
    directories, units = {}, {}
    for directory in sorted({posixpath.dirname(path) for path in sources}):
        if len(targets.get(directory, ())) != 1:
            yield f"{directory}: is not one target"
        for name in targets.get(directory, ()):
            linked = {by_target[link] for link in links.get(name, ()) if link in by_target}
            directories.setdefault(directory, set()).update(linked)
    for path, text in sources.items():
        directory = posixpath.dirname(path)
        for header in INCLUDE.findall(text):
            place = posixpath.dirname(header)
            if (header.split("/")[0] in STAGES + OTHERS and place != directory
                    and place not in directories.get(directory, ())):
                yield f"{path}: {header}: the target of {directory} does not link that of {place}"
    for path, text in files.items():
        if path.endswith(SOURCES) and path.split("/")[0] in STAGES + FLAT:
            unit = path.rsplit(".", 1)[0]
            included = {header.rsplit(".", 1)[0] for header in INCLUDE.findall(text)}
            units.setdefault(unit, set()).update(included - {unit})
    for what, graph in (("directories", directories), ("files", units)):
        if cycle := cycle_in(graph):
            yield f"a cycle between {what}: {' -> '.join(cycle)}"


def self_test():
    """The rules find what they are for."""
    tree = {
        "format/CMakeLists.txt": "add_library(f_base STATIC base/b.cpp)  # f_format\n"
                                 "add_library(f STATIC a.cpp c.cpp)\n",
        "report/low/CMakeLists.txt": "file(GLOB s *.cpp)\nadd_library(low STATIC ${s})\n"
                                     "target_link_libraries(low PUBLIC f PRIVATE Z::Z)\n",
        "report/low/a.h": '#include <vector>\n\n#include "format/a.h"\n',
        "report/low/a.cpp": '#include "report/low/a.h"\n\n#include "report/low/b.h"\n',
        "report/low/b.h": "",
        "report/high/CMakeLists.txt": "add_library(high STATIC ${s})\n"
                                      "target_link_libraries(high\n  PUBLIC low f_base)\n",
        "cupti_inject/a.h": '#include "cupti_inject/b.h"\n',
        "cupti_inject/b.cpp": '#include "cupti_inject/b.h"\n',
        "report/high/a.cpp": '#include "format/base/x.h"\n#include "report/low/a.h"\n',
    }
    assert not list(problems_of(tree)), list(problems_of(tree))
    planted = [
        ("report/low/a.cpp", '#include "report/high/x.h"', "does not link"),
        ("report/low/b.h", '#include "format/base/x.h"', "does not link"),
        ("report/high/a.cpp", '#include "format/a.h"', "does not link"),
        ("report/low/b.h", '#include "report/low/a.h"', "between files"),
        ("cupti_inject/b.cpp", '#include "cupti_inject/a.h"', "between files"),
        ("report/low/CMakeLists.txt", "target_link_libraries(low PUBLIC high)",
         "between directories"),
        ("report/low/CMakeLists.txt", "add_library(more STATIC ${s})", "not one target"),
        ("report/other/a.h", "", "not one target"),
    ]
    for path, text, problem in planted:
        with_it = {**tree, path: f"{tree.get(path, '')}\n{text}\n"}
        found = list(problems_of(with_it))
        assert any(problem in line for line in found), f"not found: {path}: {text}: {found}"


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    files = {path.relative_to(root).as_posix(): path.read_text()
             for top in STAGES + FLAT + OTHERS for path in sorted((root / top).rglob("*"))
             if path.name == "CMakeLists.txt" or path.suffix in SOURCES}
    problems = list(problems_of(files))
    print("\n".join(problems) or f"{', '.join(STAGES + FLAT)} are in layers")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
