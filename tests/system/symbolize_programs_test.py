"""Functions, inlined functions and lines against addr2line and llvm-symbolizer.

The programs of tests/workloads/symbols, compiled in every way that puts DWARF somewhere else, and
our own binaries. Every frame of every address counts. A difference is accepted only where it is
known who is right; is_same_name() and is_symbol_of_outermost() say why.
"""

import os
import random
import re
import shutil
import subprocess

from xpu_testing import Workspace, expect, find, main, skip

SOURCES = os.path.join(os.path.dirname(__file__), "../workloads/symbols")
RANDOM = 20261121


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def ours(path, addresses, environment=None):
    text = run(find("tests/bench/symbolize_bench"), path, input="\n".join(addresses),
               env={**os.environ, **(environment or {})})
    return frames_by_address(text, addresses)


def slice_of(path, addresses, to):
    with open(to, "wb") as out:
        subprocess.run([find("tests/bench/symbolize_bench"), "--slice", path], check=True,
                       input="\n".join(addresses).encode(), stdout=out)


def addr2line(path, addresses):
    text = run("addr2line", "-a", "-f", "-i", "-e", path, input="\n".join(addresses))
    return frames_by_address(text, addresses)


def llvm(path, addresses):
    tool = shutil.which("llvm-symbolizer")
    if not tool:
        skip("llvm", "llvm-symbolizer is not installed")
    blocks = run(tool, "--inlines", "--no-demangle", f"--obj={path}",
                 input="\n".join(addresses)).split("\n\n")
    # It has a column after the line.
    return {address: frames([re.sub(r":\d+$", "", line) if i % 2 else line
                             for i, line in enumerate(block.splitlines())])
            for address, block in zip(addresses, blocks)}


def frames_by_address(text, addresses):
    blocks = re.split(r"^0x[0-9a-f]+\n", text, flags=re.MULTILINE)[1:]
    expect("answers", len(blocks), len(addresses))
    return {address: frames(block.splitlines()) for address, block in zip(addresses, blocks)}


def frames(lines):
    """(function, file, line) for each frame, innermost first."""
    found = []
    for function, place in zip(lines[::2], lines[1::2]):
        file, line = re.sub(r" \(discriminator \d+\)$", "", place).rsplit(":", 1)
        found.append((function, os.path.normpath(file), int(line) if line.isdigit() else 0))
    return found


def text_addresses(path, most):
    for line in run("readelf", "-SW", path).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1] == ".text":
            begin, size = int(fields[3], 16), int(fields[5], 16)
            numbers = range(begin, begin + size)
            return [hex(a) for a in random.Random(RANDOM).sample(numbers, min(most, size))]
    raise AssertionError(f"{path}: no .text")


def bare(name):
    return re.sub(r"(\.(cold|part|isra|constprop|lto_priv|llvm|localalias)(\.\d+)*)+$", "", name)


def is_same_name(our_name, other):
    """Others take the outermost name from the symbol table: it has a mangled name also where DWARF
    has only the plain one, and one name of several for the same code (constructors)."""
    our_name, other = bare(our_name), bare(other)
    if our_name == other:
        return True
    if our_name.startswith("_Z"):
        return re.sub(r"([CD])[0-4]", r"\1", our_name) == re.sub(r"([CD])[0-4]", r"\1", other)
    plain = re.sub(r"<.*", "", our_name).lstrip("~")
    return other.startswith("_Z") and (f"{len(plain)}{plain}" in other or plain == "operator()")


def is_symbol_of_outermost(mine, other):
    """addr2line gives an inlined function without a mangled name the symbol at the address, which is
    that of the function it was inlined into."""
    return (len(mine) > 1 and not mine[0][0].startswith("_Z") and
            is_same_name(mine[-1][0], other[0][0]))


def is_same_chain(mine, other):
    return len(mine) == len(other) and all(
        a[2] == b[2] and (is_same_name(a[0], b[0]) or (i == 0 and is_symbol_of_outermost(mine, other)))
        for i, (a, b) in enumerate(zip(mine, other)))


def compare(what, addresses, our_frames, other_frames):
    """Shares of the addresses of which the other one knows the line: leaf names, whole chains."""
    known = [a for a in addresses if any(line for _, _, line in other_frames[a])]
    leaves = chains = 0
    differences = []
    for address in known:
        mine, other = our_frames[address], other_frames[address]
        leaf = bool(mine) and (is_same_name(mine[0][0], other[0][0]) or
                               is_symbol_of_outermost(mine, other))
        chain = is_same_chain(mine, other)
        leaves += leaf
        chains += chain
        if not chain:
            differences.append((address, mine, other))
    print(f"        {what}: {len(known)} addresses, leaf names {100 * leaves / len(known):.2f} %, "
          f"chains {100 * chains / len(known):.2f} %")
    return leaves / len(known), chains / len(known), differences


def require(what, result, least_leaves=0.99, least_chains=0.98):
    leaves, chains, differences = result
    if leaves < least_leaves or chains < least_chains:
        listed = "\n".join(f"{a}\n  ours   {mine}\n  theirs {other}"
                           for a, mine, other in differences[:5])
        raise AssertionError(f"{what}: leaf names {leaves:.4f}, chains {chains:.4f}\n{listed}")


class Compiler:
    def __init__(self, name, directory):
        self.c, self.cpp = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}[name]
        self.directory = directory

    def build(self, name, *flags, link=()):
        """DIRECTORY/NAME/program; the objects (and .dwo files) are beside it."""
        directory = os.path.join(self.directory, name)
        os.makedirs(directory)
        objects = []
        for compiler, source in ((self.cpp, "inlines.cpp"), (self.cpp, "inlines_part.cpp"),
                                 (self.c, "plain.c")):
            objects.append(os.path.splitext(source)[0] + ".o")
            subprocess.run([compiler, "-O2", *flags, "-c", os.path.join(SOURCES, source), "-o",
                            objects[-1]], check=True, cwd=directory)
        subprocess.run([self.cpp, "-O2", *flags, *link, *objects, "-o", "program"], check=True,
                       cwd=directory)
        return os.path.join(directory, "program")


def check_program(what, path, reference=llvm):
    addresses = text_addresses(path, 3000)
    result = compare(what, addresses, ours(path, addresses), reference(path, addresses))
    require(what, result, 1, 0.999)


def compilers(*names):
    return [name for name in names if shutil.which(name)]


def test_versions_and_compilers():
    with Workspace() as work:
        for name in compilers("gcc", "clang"):
            compiler = Compiler(name, work.path)
            for version in (3, 4, 5):
                check_program(f"{name} DWARF {version}",
                              compiler.build(f"{name}-{version}", f"-gdwarf-{version}"))
            check_program(f"{name} -O0", compiler.build(f"{name}-O0", "-g", "-O0"))
            check_program(f"{name} -O3", compiler.build(f"{name}-O3", "-g", "-O3"))


def test_addr2line_says_the_same():
    # Of DWARF 4: binutils 2.40 finds no names in some of DWARF 5.
    with Workspace() as work:
        path = Compiler("gcc", work.path).build("program", "-gdwarf-4")
        addresses = text_addresses(path, 3000)
        result = compare("addr2line", addresses, ours(path, addresses), addr2line(path, addresses))
        require("addr2line", result)


def test_how_it_is_linked():
    with Workspace() as work:
        for name in compilers("gcc", "clang"):
            compiler = Compiler(name, work.path)
            check_program(f"{name} types", compiler.build(f"{name}-types", "-g",
                                                          "-fdebug-types-section"))
            check_program(f"{name} sections", compiler.build(
                f"{name}-sections", "-g", "-ffunction-sections", link=["-Wl,--gc-sections"]))
        check_program("gcc link time optimisation", Compiler("gcc", work.path).build(
            "lto", "-g", "-flto"))


def check_same(what, plain, other, environment=None):
    """The same code with its debug information elsewhere: the same answers."""
    addresses = text_addresses(plain, 3000)
    expect(f"{what}: addresses", text_addresses(other, 3000), addresses)
    expected, found = ours(plain, addresses), ours(other, addresses, environment)
    wrong = [a for a in addresses if expected[a] != found[a]]
    if wrong:
        raise AssertionError(f"{what}: {len(wrong)} of {len(addresses)} differ: {wrong[0]}\n"
                             f"{expected[wrong[0]]}\n{found[wrong[0]]}")
    if not any(len(f) > 2 for f in found.values()):
        raise AssertionError(f"{what}: no inlined functions")


def test_compressed_sections():
    with Workspace() as work:
        compiler = Compiler("gcc", work.path)
        plain = compiler.build("plain", "-g")
        for kind in ("zlib", "zlib-gnu"):
            check_same(kind, plain, compiler.build(kind, "-g", f"-gz={kind}"))


def test_split_files():
    with Workspace() as work:
        for name in compilers("gcc", "clang"):
            for version in (4, 5):
                compiler = Compiler(name, work.path)
                flag = f"-gdwarf-{version}"
                plain = compiler.build(f"{name}-plain{version}", flag)
                split = compiler.build(f"{name}-split{version}", flag, "-gsplit-dwarf")
                check_same(f"{name} split {version}", plain, split)


def many_inlined_calls(functions):
    """A source whose inlined calls have more than 64 KiB of range lists."""
    lines = ["""#include <cstdint>
#include <cstdio>
template <int N> inline uint64_t Mix(uint64_t x, const uint64_t* p) {
  if (x % (N + 3) == 1) return x * p[N & 7] + N;
  return (x ^ p[(N + 1) & 7]) - N;
}
template <int N> inline uint64_t Step(uint64_t x, const uint64_t* p) {
  const uint64_t y = Mix<N>(x, p), z = Mix<N + 1>(x + 1, p);
  if (y < z) return Mix<N + 2>(y, p);
  return y * z;
}"""]
    for i in range(functions):
        lines.append(f"""__attribute__((noinline)) uint64_t Run{i}(uint64_t x, const uint64_t* p) {{
  const uint64_t a = Step<{i}>(x, p), b = Step<{i} + 7>(x * 3, p);
  return a > b ? Step<{i} + 2>(a, p) : b;
}}""")
    calls = " + ".join(f"Run{i}(argc, p)" for i in range(functions))
    lines.append(f"""int main(int argc, char**) {{
  const uint64_t p[8] = {{1, 2, 3, 4, 5, 6, 7, 8}};
  std::printf("%llu\\n", static_cast<unsigned long long>({calls}));
}}""")
    return "\n".join(lines)


def test_split_unit_with_many_ranges():
    """The range lists of a .dwo file can be larger than all sections of the program."""
    with Workspace() as work:
        source = os.path.join(work.path, "many.cpp")
        with open(source, "w", encoding="utf-8") as out:
            out.write(many_inlined_calls(470))
        programs = []
        for name, flags in (("plain", []), ("split", ["-gsplit-dwarf"])):
            directory = os.path.join(work.path, name)
            os.makedirs(directory)
            subprocess.run(["g++", "-O2", "-gdwarf-5", *flags, "-c", source, "-o", "many.o"],
                           check=True, cwd=directory)
            subprocess.run(["g++", "many.o", "-o", "program"], check=True, cwd=directory)
            programs.append(os.path.join(directory, "program"))
        check_same("g++ split unit with many ranges", *programs)


def test_debug_files():
    with Workspace() as work:
        plain = Compiler("gcc", work.path).build("plain", "-g")
        subprocess.run(["objcopy", "--only-keep-debug", plain, f"{plain}.debug"], check=True)
        check_same("debug file", plain, f"{plain}.debug")


def test_dwz():
    if not shutil.which("dwz"):
        skip("dwz", "dwz is not installed")
    with Workspace() as work:
        compiler = Compiler("gcc", work.path)
        plain = compiler.build("plain", "-g")
        one = shutil.copy(plain, f"{work.path}/one")
        subprocess.run(["dwz", one], check=True)
        check_same("dwz", plain, one)
        first = shutil.copy(plain, f"{work.path}/first")
        second = shutil.copy(compiler.build("other", "-g", "-O3"), f"{work.path}/second")
        subprocess.run(["dwz", "-m", "common", first, second], check=True, cwd=work.path)
        check_same("dwz -m", plain, first, {"ALTERNATE": f"{work.path}/common"})


def test_our_own_binaries():
    for name in ("record/xpu-record", "report/xpu-report"):
        check_binary(find(name))


def check_binary(path):
    if ".debug_info" not in run("readelf", "-SW", path):
        skip("debug", f"{path} has no debug information")
    name = os.path.basename(path)
    addresses = text_addresses(path, 10000)
    mine = ours(path, addresses)
    require(name, compare(f"{name} llvm-symbolizer", addresses, mine, llvm(path, addresses)))


def test_slices():
    """A slice says the same of every address of its functions, also to other tools."""
    with Workspace() as work:
        paths = [Compiler(name, work.path).build(name, "-g") for name in compilers("gcc", "clang")]
        for path in paths + [find("report/xpu-report")]:
            addresses = text_addresses(path, 3000)
            expected = ours(path, addresses)
            # Padding after a function has a line but no function.
            addresses = [a for a in addresses if expected[a] and expected[a][0][0] != "??"]
            to = f"{path}.slice" if path in paths else f"{work.path}/own.slice"
            slice_of(path, addresses, to)
            wrong = [a for a, frames_found in ours(to, addresses).items()
                     if frames_found != expected[a]]
            expect(f"{path}: differences of the slice", wrong, [])
            name = os.path.basename(path)
            require(name, compare(f"{name} slice, addr2line", addresses, expected,
                                  addr2line(to, addresses)), 0.95, 0.95)
            require(name, compare(f"{name} slice, llvm-symbolizer", addresses, expected,
                                  llvm(to, addresses)))


if __name__ == "__main__":
    main(globals())
