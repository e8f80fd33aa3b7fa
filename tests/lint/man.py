"""The man pages are clean roff and name every option that --help all names, and no other; --help
itself names a part of them within a screen."""

import pathlib
import re
import shutil
import subprocess
import sys

from xpu_testing import skip

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]+|-[A-Za-z])(?![\w-])")


MAX_LINES, MAX_COLUMNS = 46, 80


def help_of(binary, *group):
    return subprocess.run([binary, "--help", *group], capture_output=True, text=True,
                          check=True).stdout


def options_of_help(binary, group="all"):
    text = help_of(binary, *([group] if group else []))
    # The lines that define options begin with one.
    lines = [line for line in text.splitlines() if re.match(r"\s+-", line)]
    return {o for line in lines for o in OPTION.findall(re.split(r"\s{2,}", line.strip())[0])}


def options_of_page(page):
    """Options that an item of a tagged paragraph defines: lines that begin with .B or .BR -."""
    text = page.read_text().replace("\\-", "-")
    lines = re.findall(r"^\.(?:B|BR|BI|IP|OP) \"?(-.*)$", text, re.MULTILINE)
    return {o for line in lines for o in OPTION.findall(line)}


def main():
    root, made, *binaries = sys.argv[1:]
    problems = []
    # Those in the tree, and the one that the build makes of its template.
    for page in sorted((pathlib.Path(root) / "man").glob("*.[15]")) + [pathlib.Path(made)]:
        if page.stat().st_size == 0:
            problems.append(f"{page.name}: empty")
        for command in (["groff", "-ww", "-man", "-Tutf8", str(page)],
                        ["man", "--warnings", "-l", str(page)]):
            if not shutil.which(command[0]):
                skip(command[0], f"no {command[0]}")
            result = subprocess.run(command, capture_output=True, text=True,
                                    env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8",
                                         "MANROFFSEQ": "", "MANWIDTH": "100"})
            if result.stderr.strip():
                problems.append(f"{page.name}: {command[0]}: {result.stderr.strip()[:500]}")
    for binary in binaries:
        name = binary.rsplit("/", 1)[-1]
        page = pathlib.Path(root) / "man" / f"{name}.1"
        help_options, page_options = options_of_help(binary), options_of_page(page)
        if not help_options:
            problems.append(f"{name}: --help lists no option")
        for option in sorted(options_of_help(binary, "") - help_options):
            problems.append(f"{name}: {option} is in --help and not in --help all")
        for group, most in (("", MAX_LINES), ("all", 10**9)):
            lines = help_of(binary, *group.split()).splitlines()
            if len(lines) > most or max(map(len, lines)) > MAX_COLUMNS:
                problems.append(f"{name}: --help {group}: more than {most} lines of {MAX_COLUMNS} columns")
        for option in sorted(help_options - page_options):
            problems.append(f"{name}: {option} is in --help all and not in the man page")
        for option in sorted(page_options - help_options):
            problems.append(f"{name}: {option} is in the man page and not in --help all")
    print("\n".join(problems) or "the man pages are clean and agree with --help")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
