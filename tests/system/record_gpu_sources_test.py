"""The source text of sampled kernels travels with the capture (--gpu-samples --sources=hit), and
what line tables say are sources is read as any name that a program chooses."""

import os
import pathlib
import time

from cubins import with_lines
from hostile_sources import OTHERS, SECRET, hostile_files
from record_gpu_samples_test import CUBINS, STALL_KERNELS, record_samples
from xpu_testing import (Workspace, expect, expect_in, main, report, require_recording, run_report,
                         skip)

TEXT = "".join(f"text of line {number}\n" for number in range(1, 101))
SOURCES = ["--sources=hit", "--symbols=slice"]  # of kernels, not of native code


def cubin_of(work, files):
    file = work.path / "made.cubin"
    file.write_bytes(with_lines((CUBINS / "inlines.cubin").read_bytes(), files))
    file.chmod(0o644)
    return file


def recorded(work, files, *options, program=STALL_KERNELS):
    record_samples(work, *options, cubin=cubin_of(work, files), program=program)
    return work.capture()


def annotated(work, name="capture.xpu"):
    return run_report("--annotate", "fma_chain", work.file(name))


def test_lines_travel():
    require_recording()
    with Workspace() as work:
        source = pathlib.Path(work.file("kernel.cu", TEXT))
        capture = recorded(work, [(str(source), 60)], *SOURCES)
        expect("losses", capture.losses(), {})
        [text] = capture.source_texts
        # Twenty lines before and after.
        expect("stored", (text["path"], text["first_line"], text["text"]),
               (str(source), 40, "".join(TEXT.splitlines(True)[39:80])))
        source.unlink()
        shown = annotated(work)
        expect_in("line", "text of line 60 ", shown.stdout)
        expect("complaints", "source file" in shown.stderr, False)


def test_another_file_of_the_name_is_not_shown():
    require_recording()
    with Workspace() as work:
        source = pathlib.Path(work.file("kernel.cu", TEXT))
        recorded(work, [(str(source), 60)], *SOURCES)
        source.write_text("another text\n" * 100)
        expect("another text", "another text" in annotated(work).stdout, False)


def test_nothing_stored():
    require_recording()
    with Workspace() as work:
        source = pathlib.Path(work.file("kernel.cu", TEXT))
        capture = recorded(work, [(str(source), 60)])
        expect("texts", capture.source_texts, [])
        expect_in("read where it is", "text of line 60 ", annotated(work).stdout)
        source.unlink()
        shown = annotated(work)
        expect_in("its place", " 60  ", shown.stdout)
        expect_in("why", f"the text of 1 source file is neither in the capture nor here: {source}",
                  shown.stderr)
        expect_in("hint", "hint: xpu-record --gpu-samples --sources=hit", shown.stderr)


def test_reports_read_nothing_but_sources():
    require_recording()
    with Workspace() as work:
        secret = work.file("secret", SECRET)
        recorded(work, [(secret, 1)])
        expect("secret", SECRET.strip() in annotated(work).stdout, False)


def test_generated_python():
    """As Triton's: a file in a temporary directory, relative to the program's own."""
    require_recording()
    with Workspace() as work:
        work.file("kernel.py", TEXT)
        here = "kernel.py"
        capture = recorded(work, [(here, 3)], *SOURCES)
        [text] = capture.source_texts
        expect("stored", (text["path"], text["first_line"]), (here, 1))
        expect_in("line", "text of line 3 ", annotated(work).stdout)
        expect("losses", capture.losses(), {})


def test_each_part_has_its_text():
    require_recording()
    with Workspace() as work:
        source = work.file("kernel.cu", TEXT)
        record_samples(work, *SOURCES, "--rotate-size", "1M", cubin=cubin_of(work, [(source, 60)]),
                       program=("stall_kernels", "--launches", 260_000, "--scale", 1))
        os.unlink(source)
        # On a busy machine samples come in a later part than their kernels.
        shown = [text for part in sorted(work.path.glob("*.xpu"))
                 if (text := annotated(work, part.name).stdout)]
        expect("parts with samples", len(shown) >= 2, True)
        for text in shown:
            expect_in("a part", "text of line 60 ", text)


def test_hostile_names():
    require_recording()
    with Workspace() as work:
        up = "../" * 40
        tried = [*hostile_files(work, "cu"), str(work.path / "none.cu"), up + "none.cu"]
        names = [*tried, *OTHERS, work.file("secret"), up + "etc/shadow", "x" * 5000,
                 "\x1b[31m.py\n", ""]
        begin = time.monotonic()
        capture = recorded(work, [(name, 1) for name in names if name], *SOURCES)
        expect("it waits for none of them", time.monotonic() - begin < 20, True)
        expect("texts", capture.source_texts, [])
        # Those whose names end as sources do were tried, "\n" is no end of one.
        expect("refused", capture.losses(), {"sources_not_stored": len(tried)})
        expect("secret", SECRET.strip().encode() in (work.path / "capture.xpu").read_bytes(), False)
        shown = annotated(work)
        expect("status", shown.returncode, 0)
        expect("secret", SECRET.strip() in shown.stdout, False)


def test_damaged_line_table():
    require_recording()
    with Workspace() as work:
        source = work.file("kernel.cu", TEXT)
        file = cubin_of(work, [(source, 60)])
        data = bytearray(file.read_bytes())
        at = data.rindex(source.encode()) - 20
        data[at:at + 8] = b"\xff" * 8
        file.write_bytes(data)
        record_samples(work, *SOURCES, cubin=file)
        expect("samples", bool(work.capture().gpu_samples), True)
        report("--annotate", "fma_chain", work.file("capture.xpu"))


def test_files_that_the_user_may_not_read():
    require_recording()
    if os.geteuid() != 0:
        skip("root", "only root can record as another user")
    with Workspace() as work:
        work.path.chmod(0o755)
        secret = pathlib.Path(work.file("secret.cu", SECRET + TEXT, mode=0o600))
        shared = pathlib.Path(work.file("shared.cu", TEXT, mode=0o644))
        files = [(str(secret), 1), (str(shared), 1)]
        capture = recorded(work, files, *SOURCES, "--user", "nobody")
        expect("files", {text["path"] for text in capture.source_texts}, {str(shared)})
        expect("refused", capture.losses(), {"sources_not_stored": 1})
        capture = recorded(work, files, *SOURCES)
        expect("as root", {text["path"] for text in capture.source_texts},
               {str(secret), str(shared)})


if __name__ == "__main__":
    main(globals())
