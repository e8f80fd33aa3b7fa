"""The packages that cpack makes: what is in them, that they run from anywhere, and that purging
the .deb leaves nothing."""

import functools
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile

import xpu_testing
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, require_recording,
                         skip, workload)

CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "captures"
PROGRAMS = ["bin/xpu-record", "bin/xpu-report"]
LIBRARY = "lib/xpu/libxpu_inject.so"
FILES = {
    *PROGRAMS,
    LIBRARY,
    "share/bash-completion/completions/xpu-record",
    "share/bash-completion/completions/xpu-report",
    "share/doc/xpu/CHANGELOG.md",
    "share/doc/xpu/LICENSE",
    "share/doc/xpu/LICENSE.bpf",
    "share/doc/xpu/README.md",
    "share/doc/xpu/man/compatibility.md",
    "share/doc/xpu/man/flame-graph.svg",
    "share/doc/xpu/queries/hottest_kernels.sql",
    "share/doc/xpu/queries/idle_gpus.sql",
    "share/doc/xpu/queries/regressions.sql",
    "share/doc/xpu/queries/time_by_commit.sql",
    "share/doc/xpu/queries/time_by_host.sql",
    "share/man/man1/xpu-record.1",
    "share/man/man1/xpu-report.1",
    "share/man/man5/xpu-capture.5",
    "share/man/man5/xpu-export.5",
    "share/zsh/vendor-completions/_xpu-record",
    "share/zsh/vendor-completions/_xpu-report",
}
THIRD_PARTY = "share/doc/xpu/third-party/"


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=PATIENCE_S, **options)
    expect(f"status of {command} ({result.stdout}{result.stderr})", result.returncode, 0)
    return result.stdout


@functools.cache
def packages():
    """A directory that lives as long as the test, the .deb and the .tar.gz in it."""
    build = os.environ["XPU_BUILD_DIR"]
    directory = tempfile.TemporaryDirectory(prefix="xpu-packages-")
    path = pathlib.Path(directory.name)
    run("cpack", "--config", f"{build}/CPackConfig.cmake", "-B", path)
    [deb], [archive] = path.glob("*.deb"), path.glob("*.tar.gz")
    return directory, deb, archive


def unpacked(work):
    _, _, archive = packages()
    with tarfile.open(archive) as tar:
        [top] = {member.name.split("/")[0] for member in tar}
        tar.extractall(work.path)
    return work.path / top


def files_below(directory):
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()}


def glibc_needed(path):
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", path))
    return max((int(major), int(minor)) for major, minor in versions)


def test_contents():
    with Workspace() as work:
        _, deb, _ = packages()
        run("dpkg-deb", "-x", deb, work.path)
        root = work.path / "usr"
        found = {name for name in files_below(root) if not name.startswith(THIRD_PARTY)}
        expect("files of the .deb", found, FILES)
        expect("files of the .tar.gz", files_below(unpacked(work)), files_below(root))
        sections = {name: run("readelf", "-SW", root / name) for name in [*PROGRAMS, LIBRARY]}
        expect("files that are not stripped",
               [name for name, text in sections.items() if ".symtab" in text or ".debug_" in text],
               [])
        [(major, minor)] = re.findall(r"libc6 \(>= (\d+)\.(\d+)\)",
                                      run("dpkg-deb", "-f", deb, "Depends"))
        expect("the libc it depends on is new enough",
               max(glibc_needed(root / name) for name in [*PROGRAMS, LIBRARY]) <=
               (int(major), int(minor)), True)
        owners = {line.split()[1] for line in run("dpkg-deb", "-c", deb).splitlines()}
        expect("owners", owners, {"root/root"})


def test_directory_works_anywhere():
    """The library is found beside the programs, and the report reads what they recorded."""
    require_recording()
    with Workspace() as work:
        top = unpacked(work)
        moved = top.rename(work.path / "a folder")
        library = os.path.dirname(find("tests/fake_cuda/lib/libcupti.so.13")) + "/libcupti.so.13"
        capture = work.path / "capture.xpu"
        run(moved / "bin/xpu-record", "-o", capture, "--cupti-lib", library, "--",
            workload("transformer"), "--requests", "2", "--layers", "2")
        mapped = {m["path"] for m in xpu_testing.Capture(capture).mappings
                  if m["path"].endswith("libxpu_inject.so")}
        expect("the library in the program", mapped, {str(moved / LIBRARY)})
        summary = run(moved / "bin/xpu-report", capture)
        expect_in("launches", "launches  40: 40 with their kernel, 0 pending", summary)


def test_install_and_purge():
    if os.geteuid() != 0:
        skip("root", "dpkg installs as root")
    with Workspace() as work:
        root = work.path / "root"
        for name in ["updates", "info"]:
            (root / "var/lib/dpkg" / name).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()

        def dpkg(*arguments):
            # This root has no libc6 and no shell.
            run("dpkg", "--root", root, "--force-depends", "--force-script-chrootless", *arguments)

        def installed():
            return {name for name in files_below(root) if not name.startswith("var/l")}

        expect("before", installed(), set())
        dpkg("-i", packages()[1])
        expect("installed", {f"usr/{name}" for name in FILES} - installed(), set())
        summary = run(root / "usr/bin/xpu-report", CAPTURES / "transformer.xpu")
        expect_in("report", "launches", summary)
        # As root's recordings leave it.
        (root / "var/cache/xpu/unwind").mkdir(parents=True)
        (root / "var/cache/xpu/unwind/table").touch()
        dpkg("-P", "xpu")
        expect("left", installed(), set())
        expect("left folders", sorted(p.name for p in root.iterdir()), ["var"])


if __name__ == "__main__":
    main(globals())
