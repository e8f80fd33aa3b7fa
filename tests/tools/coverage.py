"""How many lines of each directory the tests have run, from gcov's counts.

coverage.py BUILD [--files] [--least PERCENT]: of a build of the preset `coverage` whose tests were
run. --files lists each file that has lines that were not run. With --least it fails for a directory
below."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The others are tested by recording, which counts nothing.
DIRECTORIES = ["format", "symbolize", "report"]


def documents(build):
    """What gcov reports for each object, executed or not."""
    # What headers have is in the objects of those that include them.
    notes = [str(path) for directory in [*DIRECTORIES, "tests"]
             for path in sorted((build / directory).rglob("*.gcno"))]
    for first in range(0, len(notes), 50):
        text = subprocess.run(["gcov", "--json-format", "--stdout", *notes[first:first + 50]],
                              cwd=build, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
        yield from map(json.loads, text.splitlines())


def count_lines(build):
    """{file: {line: how often}}; of a template or header each user tells, the counts add up."""
    lines = collections.defaultdict(dict)
    for document in documents(build):
        for file in document["files"]:
            path = (pathlib.Path(document["current_working_directory"]) / file["file"]).resolve()
            if not path.is_relative_to(ROOT):
                continue
            name = str(path.relative_to(ROOT))
            if name.split("/")[0] in DIRECTORIES:
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[name][number] = lines[name].get(number, 0) + line["count"]
    return lines


def percent(counts):
    return 100 * sum(count > 0 for count in counts) / len(counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--least", type=float, default=0)
    arguments = parser.parse_args()
    lines = count_lines(arguments.build.resolve())
    low = []
    print("  lines    run  folder")
    for directory in DIRECTORIES:
        counts = [count for name, of_file in lines.items() if name.startswith(directory + "/")
                  for count in of_file.values()]
        print(f"{len(counts):7} {percent(counts):5.1f}%  {directory}")
        if percent(counts) < arguments.least:
            low.append(directory)
    for name, of_file in sorted(lines.items(), key=lambda item: percent(item[1].values())):
        if arguments.files and percent(of_file.values()) < 100:
            print(f"{len(of_file):7} {percent(of_file.values()):5.1f}%  {name}")
    if low:
        print(f"below {arguments.least:g} %: {', '.join(low)}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
