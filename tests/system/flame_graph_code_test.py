"""The panel of a kernel in the flame graph's page: its lines beside its instructions, and what its
warps wait for. XPU_SCREENSHOTS names a directory that gets pictures of it."""

import os

import webdriver
from flame_graph_test import ESCAPE, RIGHT, Graph
from record_gpu_samples_test import LAUNCHES
from record_gpu_sources_test import SOURCES, TEXT, recorded
from xpu_testing import Workspace, expect, expect_in, main, report, require_recording

DOWN = "\ue015"
NVDISASM = """#!/bin/sh
echo "        /*0010*/                   MOV R1, R2 ;"
echo "        /*00c0*/                   FFMA R4, R5, R6, R7 ;"
echo "        /*00d0*/                   FADD R8, R4, R4 ;"
echo "        /*00f0*/                   <script>LDG</script> R2, [R4] ;"
"""
# Of tests/fake_cuda: the samples of a launch by offset; lines by instruction number.
WAIT, LOAD, ISSUE = 6 * LAUNCHES, 3 * LAUNCHES, LAUNCHES


class Panel:
    def __init__(self, browser, work, *arguments, has_disassembler=True):
        path = f"{work.path}:/usr/bin:/bin" if has_disassembler else "/usr/bin:/bin"
        before = os.environ.get("PATH")
        os.environ["PATH"] = path
        try:
            self.graph = Graph(browser, work.file("capture.xpu"), work.path, "--mode", "gpu",
                               *arguments)
        finally:
            os.environ["PATH"] = before
        self.browser = browser
        self.run = self.graph.run
        self.text = self.graph.text

    def node(self, name, below=""):
        node = self.run("""(() => {
            const {tree} = flameGraph;
            for (let i = 1; i < tree.size; ++i) {
              const path = tree.pathOf(i).map(node => tree.nameOf(node));
              if (path[path.length - 1].includes(arguments[0]) &&
                  path.some(each => each.includes(arguments[1]))) return i;
            }
            return -1;
        })()""", name, below)
        expect(f"a frame {name}", node > 0, True)
        return node

    def click(self, name, below=""):
        self.run("flameGraph.reset()")
        self.browser.click(*self.graph.place(self.node(name, below)))

    def rows(self, column):
        """[share, number, text, stalls] of what has samples."""
        return self.run("""[...document.querySelectorAll('#' + arguments[0] + ' [role=option]')]
            .map(row => ['b', 'u', 'span', 'em'].map(
                part => row.querySelector(part).textContent.trim()))""", column)

    def selected(self):
        return self.run("""[...document.querySelectorAll('#code [aria-selected=true] u')]
            .map(row => row.textContent.trim())""")

    @property
    def is_hidden(self):
        return self.run("document.getElementById('code').hidden")


def recorded_kernel(work):
    source = work.file("kernel.cu", TEXT)
    # Instructions take turns: 0x10 and 0xf0 are odd, 0xc0 is even.
    recorded(work, [(source, 60), (source, 20)], *SOURCES)
    os.unlink(source)
    work.path.chmod(0o755)
    work.file("nvdisasm", NVDISASM, mode=0o755)
    return source


def test_lines_beside_instructions():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        source = recorded_kernel(work)
        panel = Panel(browser, work)
        expect("hidden", panel.is_hidden, True)
        panel.click("[GPU_Kernel]fma_chain")
        expect("hidden", panel.is_hidden, False)
        expect_in("kernel", "fma_chain(float*, int)", panel.text("code-head"))
        expect_in("samples", f"{WAIT + LOAD + ISSUE} samples", panel.text("code-head"))
        expect("lines", panel.rows("code-lines"), [
            ["40.0 %", "20", "text of line 20", "long scoreboard 75%, selected 25%"],
            ["60.0 %", "60", "text of line 60", "wait 100%"]])
        expect_in("file", source, panel.text("code-lines"))
        expect_in("around it", "text of line 59", panel.text("code-lines"))
        expect("instructions", panel.rows("code-instructions"), [
            ["10.0 %", "0x0010", "MOV R1, R2", "selected 100%"],
            ["60.0 %", "0x00c0", "FFMA R4, R5, R6, R7", "wait 100%"],
            ["30.0 %", "0x00f0", "<script>LDG</script> R2, [R4]", "long scoreboard 100%"]])
        expect_in("near it", "FADD R8, R4, R4", panel.text("code-instructions"))
        expect("the hottest line", panel.selected(), ["60"])
        # The sentences are those of the text view.
        stalls = panel.text("code-stalls")
        expect_in("reason", "100 % wait", stalls)
        meaning = stalls.splitlines()[-1]
        expect_in("sentence", meaning, report("--annotate", "fma_chain", work.file("capture.xpu")))
        expect("notes", panel.text("code-notes"), "")
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            panel.graph.picture(f"code_{scheme}")
        panel.graph.check_quiet()


def test_a_line_is_selected():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded_kernel(work)
        panel = Panel(browser, work)
        panel.click("kernel.cu:20", "fma_chain")
        expect("line", panel.selected(), ["20"])
        expect_in("stalls", "75 % long scoreboard", panel.text("code-stalls"))
        expect("its instructions", panel.run("""[...document.querySelectorAll(
            '#code-instructions .same u')].map(each => each.textContent.trim())"""),
               ["0x0010", "0x00f0"])
        panel.click("[stall] wait", "fma_chain")
        expect("of what is waited for", panel.selected(), ["60"])


def test_keyboard():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded_kernel(work)
        panel = Panel(browser, work)
        browser.press("l")
        expect_in("hint", "Select a kernel", panel.text("details"))
        panel.graph.run(f"flameGraph.select({panel.node('[GPU_Kernel]fma_chain')})")
        zoom = panel.graph.zoom
        browser.press("l", "\ue013")  # up
        expect("line", panel.selected(), ["20"])
        browser.press(RIGHT, DOWN)
        expect("instruction of the line", panel.selected(), ["0x0010"])
        browser.press(DOWN)
        expect("the next one", panel.selected(), ["0x00c0"])
        expect_in("stalls", "wait", panel.text("code-stalls"))
        expect("zoom", panel.graph.zoom, zoom)
        browser.press(ESCAPE)
        expect("hidden", panel.is_hidden, True)
        expect("focus", panel.run("document.activeElement.id"), "view")
        panel.graph.check_quiet()


def test_what_is_missing():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        source = work.file("kernel.cu", TEXT)
        recorded(work, [(source, 60)])
        panel = Panel(browser, work, has_disassembler=False)
        panel.click("[GPU_Kernel]fma_chain")
        expect_in("disassembler", "nvdisasm", panel.text("code-notes"))
        expect_in("sources", "xpu-record --gpu-samples --sources=hit", panel.text("code-notes"))
        # A page is given to others: what is only here is not in it.
        expect("text", "text of line" in panel.graph.page.read_text(), False)
        expect("offsets", [row[1] for row in panel.rows("code-instructions")],
               ["0x0010", "0x00c0", "0x00f0"])
        panel.click("cudaLaunch")
        expect("of another frame", panel.is_hidden, True)


if __name__ == "__main__":
    main(globals())
