"""The page of --flamegraph in a real browser: what it shows is what --folded says.

XPU_SCREENSHOTS names a directory that gets pictures of it to look at."""

import itertools
import os
import pathlib
import re
import subprocess
import tempfile
import time

import webdriver
import xpu_testing
from xpu_testing import expect, report

CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "captures"
CAPTURE = CAPTURES / "pytorch_mlp.xpu"
PYTHON = CAPTURES / "pytorch_python.xpu"
LOADER = CAPTURES / "pytorch_loader.xpu"
STACKS = 100_000
ESCAPE, ENTER, UP, RIGHT = "\ue00c", "\ue007", "\ue013", "\ue014"


class Folded:
    """The lines of --folded in ns, as lists of frames."""

    def __init__(self, capture, *arguments):
        folded = report("--folded", "--unit", "ns", *arguments, capture)
        self.lines = [(line.rpartition(" ")[0].split(";"), int(line.rpartition(" ")[2]))
                      for line in folded.splitlines()]
        self.total = self.below([])

    def below(self, path):
        return sum(ns for frames, ns in self.lines if frames[:len(path)] == path)

    def matching(self, pattern, path=()):
        return sum(ns for frames, ns in self.lines if frames[:len(path)] == list(path)
                   and any(re.search(pattern, frame) for frame in frames))


def share(part, whole):
    return f"{100 * part / whole:.2f} %"


class Graph:
    """The page of a capture, open in a browser."""

    def __init__(self, browser, capture, directory, *arguments):
        self.browser = browser
        self.page = directory / f"{pathlib.Path(capture).stem}.html"
        report("--flamegraph", "-o", self.page, *arguments, capture)
        browser.open("/dev/null")  # leaves the page that a browser starts with
        browser.requests()
        browser.console()
        browser.open(self.page)

    def show_all_frames(self):
        """As --folded has them."""
        self.run("flameGraph.setShape(false, '')")

    def run(self, expression, *arguments):
        return self.browser.run(f"return {expression}", *arguments)

    def text(self, element):
        return self.run("document.getElementById(arguments[0]).innerText", element)

    @property
    def zoom(self):
        return self.run("flameGraph.picture.zoom")

    def path(self, node):
        return self.run("flameGraph.stackText(arguments[0]).split('\\n').filter(Boolean)", node)

    def widest(self, kind, depth=0):
        """The node of a kind that takes the most time, at this depth at least."""
        return self.run("""(() => {
            const {tree} = flameGraph;
            const kind = KINDS.findIndex(each => each.id === arguments[0]);
            let widest = -1;
            for (let i = 1; i < tree.size; ++i) {
              if (tree.kindOf(i) !== kind || tree.depth[i] < arguments[1]) continue;
              if (widest < 0 || tree.total[i] > tree.total[widest]) widest = i;
            }
            return widest;
        })()""", kind, depth)

    def place(self, node):
        """The middle of a node on the screen, scrolled there."""
        return self.run("""(() => {
            const node = arguments[0];
            flameGraph.select(node);
            const box = flameGraph.picture.boxOf(node);
            const canvas = document.getElementById("picture").getBoundingClientRect();
            return [canvas.left + box.x + box.width / 2, canvas.top + box.y + 9];
        })()""", node)

    def picture(self, name):
        if "XPU_SCREENSHOTS" in os.environ:
            time.sleep(0.2)
            self.browser.screenshot(pathlib.Path(os.environ["XPU_SCREENSHOTS"]) / f"{name}.png")

    def check_quiet(self):
        expect("messages in the console", self.browser.console(), [])
        expect("requests but the page", [url for url in self.browser.requests()
                                         if url not in (f"file://{self.page}", "file:///dev/null")],
               [])


def tip_facts(graph):
    rows = graph.run("[...document.querySelectorAll('#tip tr')]"
                     ".map(row => [...row.children].map(cell => cell.textContent))")
    return dict(rows)


def ns_of(text):
    number, unit = text.replace(",", "").split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def check_tip(graph, folded, node):
    graph.browser.hover(*graph.place(node))
    facts = tip_facts(graph)
    ns = folded.below(graph.path(node))
    expect("time of the tip within its digits",
           abs(ns_of(facts["Time"]) - ns) <= 0.0006 * ns + 0.5, True)
    expect("share of the tip", facts["Share"], share(ns, folded.total))
    expect("details", facts["Share"] in graph.text("details"), True)
    return facts


def check_search(graph, folded, pattern):
    graph.browser.press("/", pattern)
    matched = folded.matching(pattern)
    expect(f"{pattern} matches something", matched > 0, True)
    text = graph.text("matched")
    expect(f"matched share in: {text}", text.startswith(f"Matched {share(matched, folded.total)},"),
           True)


def test_a_real_capture():
    webdriver.require_browser()
    folded = Folded(CAPTURE)
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, CAPTURE, pathlib.Path(directory))
        expect("ns of the root", graph.run("flameGraph.tree.total[0]"), folded.total)
        graph.show_all_frames()
        expect("the same of all frames", graph.run("flameGraph.tree.total[0]"), folded.total)
        graph.picture("start")
        check_tip(graph, folded, graph.widest("user", 6))
        facts = check_tip(graph, folded, graph.widest("other"))
        expect("CPU and GPU in the tip", {"CPU", "GPU", "Count"} <= facts.keys(), True)
        graph.picture("hover")

        node = graph.widest("gpu")
        expect("only GPU time", graph.run("KINDS.forEach((kind, i) => { if (kind.part === 'CPU' && "
                                          "flameGraph.tree.selfNs.some((ns, n) => ns > 0 && "
                                          "flameGraph.tree.kindOf(n) === i)) "
                                          "flameGraph.switchKind(i); }) || "
                                          "flameGraph.tree.total[0]"),
               sum(ns for frames, ns in folded.lines if frames[-1].startswith("[GPU_")))
        graph.picture("gpu")
        browser.click(*graph.place(node))
        expect("a click zooms", graph.zoom, node)
        expect("the address keeps it", f"zoom={node}" in graph.run("location.hash"), True)
        browser.press(ESCAPE)
        expect("Esc resets", (graph.zoom, graph.run("flameGraph.tree.total[0]")), (0, folded.total))

        check_search(graph, folded, r"cuda\w+Kernel|[Gg]emm")
        graph.picture("searched")
        browser.press(ENTER)
        expect("Enter selects a match",
               graph.run("flameGraph.search.matches(flameGraph.picture.selected)"), True)
        expect("Enter keeps the zoom", graph.zoom, 0)
        expect("the share of the zoomed",
               share(folded.matching(r"cuda\w+Kernel|[Gg]emm", graph.path(graph.zoom)),
                     folded.below(graph.path(graph.zoom))) in graph.text("matched"), True)
        graph.picture("jumped")
        browser.press(ESCAPE, "/", "(", ESCAPE)
        graph.check_quiet()


def test_keys_and_appearance():
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, CAPTURE, pathlib.Path(directory), "--title", "<b>&amp; title")
        expect("title", graph.text("title"), "<b>&amp; title")
        browser.press(UP)
        first = graph.run("flameGraph.picture.selected")
        expect("up: the widest thread", graph.run("flameGraph.tree.depth[arguments[0]]", first), 1)
        browser.press(RIGHT)
        expect("right: the next one", graph.run("flameGraph.tree.parent[flameGraph.picture.selected]"
                                                " === 0 && flameGraph.picture.selected > 1"), True)
        browser.press(ENTER)
        expect("Enter zooms", graph.zoom > 1, True)
        graph.picture("zoomed")
        browser.press("i")
        expect("icicle", graph.run("flameGraph.picture.yOf(0)"), 0)
        graph.picture("icicle")
        light = graph.run("getComputedStyle(document.body).backgroundColor")
        browser.press("d")
        expect("dark differs", graph.run("getComputedStyle(document.body).backgroundColor") != light,
               True)
        graph.picture("dark")
        browser.press("?")
        expect("help is open", graph.run("document.getElementById('keys').open"), True)
        graph.picture("help")
        browser.press(ESCAPE)
        browser.resize(420, 760)
        graph.picture("narrow")
        expect("no wider than the window",
               graph.run("document.documentElement.scrollWidth <= innerWidth"), True)
        browser.open(graph.page, "#zoom=2&search=main&off=user")
        expect("the address is read", graph.run("[flameGraph.picture.zoom, flameGraph.search.pattern,"
                                                " flameGraph.isShown[0]]"), [2, "main", False])
        graph.check_quiet()


def collapsed(folded):
    """Names of the families in place of runs of their frames: those whose functions tell it."""
    def family(frame):
        is_import = frame.startswith("<frozen importlib") or frame.startswith("importlib/__init__.py:")
        return "[import]" if is_import else frame
    lines = {}
    for frames, ns in folded.lines:
        path = [name for name, run in itertools.groupby(map(family, frames))
                for _ in (run if name != "[import]" else "1")]
        lines[tuple(path)] = lines.get(tuple(path), 0) + ns
    return lines


def test_families_are_one_frame():
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, PYTHON, pathlib.Path(directory), "--python=only")
        imports = {path: ns for path, ns in collapsed(Folded(PYTHON, "--python=only")).items()
                   if "[import]" in path}
        shown = graph.run("""(() => {
            const {tree} = flameGraph, found = {};
            for (let i = 1; i < tree.size; ++i) {
              const path = flameGraph.stackText(i);
              if (tree.selfNs[i] > 0 && path.includes("[import]")) found[path] = tree.selfNs[i];
            }
            return found;
        })()""")
        expect("paths with imports", len(imports) > 100, True)
        expect("time of paths with imports", shown,
               {"\n".join(path): ns for path, ns in imports.items()})
        fewer = graph.run("flameGraph.tree.size")
        total = graph.run("flameGraph.tree.total[0]")
        browser.press("f")
        expect("all frames", graph.run("flameGraph.tree.size") > fewer, True)
        expect("the same time", graph.run("flameGraph.tree.total[0]"), total)
        expect("the address says it", "frames=all" in graph.run("location.hash"), True)
        browser.open(graph.page, "#frames=all")
        expect("and is read", graph.run("flameGraph.isCollapsed"), False)
        graph.check_quiet()


def test_sandwich():
    """What a function calls and what calls it have the time that it has wherever it is."""
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, CAPTURE, pathlib.Path(directory))
        graph.show_all_frames()
        folded = Folded(CAPTURE)
        name = "cudaLaunchKernel"
        with_it = [(frames, ns) for frames, ns in folded.lines if name in frames]
        total = sum(ns for _, ns in with_it)
        node = graph.run(f"flameGraph.tree.frame.findIndex(frame => flameGraph.tree.names[frame] === "
                         f"'{name}')")
        graph.run("flameGraph.select(arguments[0])", node)
        browser.press("s")
        expect("time of the function and of its callers",
               graph.run("[1, flameGraph.tree.end[1]].map(node => flameGraph.tree.total[node])"),
               [total, total])
        callers = {}
        for frames, ns in with_it:
            caller = frames[frames.index(name) - 1]
            callers[caller] = callers.get(caller, 0) + ns
        shown = graph.run("""(() => {
            const {tree} = flameGraph;
            return Object.fromEntries(tree.childrenOf(tree.end[1]).map(
                node => [tree.nameOf(node), tree.total[node]]));
        })()""")
        expect("callers", shown, callers)
        expect("its share", "100.00 %" in graph.run("flameGraph.describe(1) || "
                                                    "document.getElementById('details').innerText"),
               True)
        graph.picture("sandwich")
        address = graph.run("location.hash")
        expect("the address says it", f"function={name}" in address, True)
        browser.press("s")
        expect("the whole graph again", graph.run("flameGraph.tree.total[0]"), folded.total)
        browser.open(graph.page, address)
        expect("the address is read", graph.run("flameGraph.tree.total[1]"), total)
        graph.check_quiet()


def test_threads():
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, CAPTURE, pathlib.Path(directory))
        threads = graph.run("[...document.getElementById('thread').options].map(o => o.text)")
        expect("threads", sorted(threads[1:]), sorted({f[0] for f, _ in Folded(CAPTURE).lines}))
        graph.run("(() => { const thread = document.getElementById('thread'); "
                  "thread.value = thread.options[2].value; "
                  "thread.dispatchEvent(new Event('change')); })()")
        expect("the thread is zoomed", graph.run("flameGraph.tree.nameOf(flameGraph.picture.zoom)"),
               threads[2])
        graph.check_quiet()


def test_slow_steps():
    """The page has the numbers of --folded, and says what is compared."""
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, LOADER, pathlib.Path(directory), "--slow-steps")
        slow = median = 0
        for line in report("--slow-steps", "--folded", "--unit", "ns", LOADER).splitlines():
            before, after = map(int, line.split(" ")[-2:])
            slow, median = slow + after, median + before
        expect("ns of a slow step", graph.run("flameGraph.tree.total[0]"), slow)
        expect("more than of a median one", graph.run("flameGraph.tree.growth[0]"), slow - median)
        expect("what is compared", graph.text("compared").startswith("slow    128 of 1,289 steps"),
               True)
        graph.picture("slow")
        browser.press("v")
        expect("colors are those of kinds", graph.run("flameGraph.picture.showsChange"), False)
        graph.check_quiet()


def paths_of(graph):
    """What the graph shows: ns by path."""
    return graph.run("""(() => {
        const {tree} = flameGraph, found = {};
        for (let i = 1; i < tree.size; ++i) {
          if (tree.selfNs[i] > 0) found[flameGraph.stackText(i)] = tree.selfNs[i];
        }
        return found;
    })()""")


def expect_steps(graph, steps, *arguments):
    """The graph has what --step-range leaves, path by path."""
    folded = {}
    for frames, ns in Folded(LOADER, "--step-range", steps, *arguments).lines:
        path = "\n".join(frames)
        folded[path] = folded.get(path, 0) + ns
    # Frames whose names --folded writes differently are no matter of steps.
    shown = {re.sub(r";", ":", path): ns for path, ns in paths_of(graph).items()}
    expect(f"paths of step {steps}", len(folded) > 3, True)
    expect(f"time by path in step {steps}", shown, folded)


def bar_of(graph, step):
    """The middle of a bar of the strip on the screen."""
    return graph.run("""(() => {
        const {strip} = flameGraph.panel;
        const lane = strip.lanes[0];
        const box = strip.boxOf(lane, arguments[0] - flameGraph.panel.slices.first - lane.first);
        const canvas = strip.canvas.getBoundingClientRect();
        return [canvas.left + box.x + box.width / 2, canvas.top + box.y + box.height / 2];
    })()""", step)


def test_steps_are_chosen():
    """Of chosen steps the graph shows what --step-range shows."""
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, LOADER, pathlib.Path(directory))
        graph.show_all_frames()
        whole = graph.run("flameGraph.tree.total[0]")
        expect("bars", graph.run("flameGraph.panel.strip.lanes.map(lane => lane.size)"), [1290])
        graph.run("document.getElementById('chosen').focus()")
        browser.press("37", ENTER)
        expect_steps(graph, "37")
        graph.picture("step")
        expect("the address says it", "steps=37" in graph.run("location.hash"), True)
        graph.run("document.getElementById('strip-picture').focus()")
        browser.press(RIGHT)
        expect_steps(graph, "38")
        browser.open(graph.page, "#frames=all&steps=100-199")
        expect_steps(graph, "100-199")
        graph.picture("steps")
        # The slowest one of a picture's column is the one that a click on it chooses.
        slowest = graph.run("""(() => {
            const lane = flameGraph.panel.strip.lanes[0];
            return lane.values.reduce((best, value, i) => value > lane.values[best] ? i : best, 0);
        })()""")
        browser.hover(*bar_of(graph, slowest))
        expect("tip", graph.text("tip").startswith(f"step {slowest}\n"), True)
        browser.click(*bar_of(graph, slowest))
        expect_steps(graph, str(slowest))
        browser.click(*bar_of(graph, slowest))
        expect("a second click shows all", graph.run("flameGraph.tree.total[0]"), whole)
        left, right = bar_of(graph, 300), bar_of(graph, 900)
        browser.drag(*left, *right)
        first, last = map(int, graph.run("document.getElementById('chosen').value").split("-"))
        expect("a drag chooses about these", abs(first - 300) < 5 and abs(last - 900) < 5, True)
        expect_steps(graph, f"{first}-{last}")
        browser.press(ESCAPE)
        expect("Esc shows all", graph.run("[flameGraph.chosen, flameGraph.tree.total[0]]"),
               [None, whole])
        expect("no such step", graph.run("flameGraph.panel.slices.choiceOf('5000')"), None)
        graph.check_quiet()


def test_the_zoom_stays_in_a_step():
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, LOADER, pathlib.Path(directory), "--mode", "gpu")
        node = graph.widest("api")
        graph.run("flameGraph.zoomTo(arguments[0])", node)
        path = graph.path(node)
        graph.run("document.getElementById('chosen').focus()")
        browser.press("100-199", ENTER)
        expect("the zoom", graph.path(graph.zoom), path)
        expect("its time", 0 < graph.run("flameGraph.tree.total[flameGraph.picture.zoom]"), True)
        graph.show_all_frames()
        expect_steps(graph, "100-199", "--mode", "gpu")
        graph.check_quiet()


def test_no_strip_without_steps():
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        graph = Graph(browser, CAPTURE, pathlib.Path(directory), "--mode", "idle")
        expect("strip", graph.run("document.getElementById('strip').hidden"), True)
        browser.open(graph.page, "#steps=3")
        expect("all is shown", graph.run("flameGraph.tree.total[0] > 0"), True)
        graph.check_quiet()


def test_dark_as_the_system_is():
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        browser.prefer("dark")
        graph = Graph(browser, CAPTURE, pathlib.Path(directory))
        theme = "document.documentElement.dataset.theme"
        expect("theme at the start", graph.run(theme), "dark")
        browser.prefer("light")
        for _ in range(50):  # pages are notified a little later
            if graph.run(theme) == "light":
                break
            time.sleep(0.1)
        expect("theme after a change", graph.run(theme), "light")


def test_100_000_stacks():
    webdriver.require_browser()
    with tempfile.TemporaryDirectory() as directory, webdriver.Browser() as browser:
        capture = pathlib.Path(directory) / "many.xpu"
        subprocess.run([xpu_testing.find("tests/system/xpu_many_stacks"), str(capture),
                        str(STACKS)], check=True)
        folded = Folded(capture)
        graph = Graph(browser, capture, pathlib.Path(directory))
        print(f"{len(folded.lines)} stacks, {graph.run('flameGraph.tree.size')} nodes, "
              f"{graph.page.stat().st_size} bytes")
        expect("ns of the root", graph.run("flameGraph.tree.total[0]"), STACKS * 1_000_000)
        check_tip(graph, folded, graph.widest("kernel", 5))
        check_search(graph, folded, "level1[01]_2")
        graph.picture("many")
        milliseconds = graph.run("""(() => {
            const draw = () => { for (let i = 0; i < 20; ++i) flameGraph.drawNow(); };
            draw();  // compiles
            const start = performance.now();
            draw();
            document.getElementById("picture").getContext("2d").getImageData(0, 0, 1, 1);
            return (performance.now() - start) / 20;
        })()""")
        loaded = graph.run("performance.timing.loadEventEnd - performance.timing.navigationStart")
        print(f"{milliseconds:.1f} ms a redraw, loaded in {loaded} ms")
        graph.check_quiet()


if __name__ == "__main__":
    xpu_testing.main(globals())
