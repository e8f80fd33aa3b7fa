"""The strip of the flame graph's page with what GPUs did over time: activity, counters, power and
clocks on the simulated device; and the choice of a span. XPU_SCREENSHOTS names a directory that
gets pictures of it."""

import webdriver
from flame_graph_test import ENTER, ESCAPE, RIGHT, Graph, bar_of
from record_gpu_metrics_test import with_gpu
from simulated_gpu import record
from xpu_testing import Workspace, expect, expect_in, main, require_recording, workload

REASON = "4"  # the power limit
NAMES = ["busy", "SM active", "tensor cores", "DRAM", "power", "SM clock",
         "throttled: power limit (software)"]


def recorded(work, *command, options=("--gpu-metrics",)):
    record(work, *options, "--", *command, env=with_gpu(XPU_FAKE_NVML_REASONS=REASON))


def page_of(browser, work, *arguments):
    return Graph(browser, work.file("capture.xpu"), work.path, *arguments)


def lanes(graph):
    return graph.run("flameGraph.panel.strip.lanes.map(lane => lane.name)")


def gpu_ns(graph):
    return graph.run("flameGraph.tree.partsOf(0)[KINDS.findIndex(kind => kind.id === 'gpu')].ns")


def choose(graph, text):
    graph.run("document.getElementById('chosen').focus()")
    graph.run("document.getElementById('chosen').select()")
    graph.browser.press(text, ENTER)


# Without steps: a few launches, with pauses.
SPARSE = ["sh", "-c", f"{workload('vector_add')} && sleep 0.5 && {workload('vector_add')}"]


def test_a_span_of_time():
    """What is chosen is what the GPU did then, as its lane says."""
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded(work, *SPARSE)
        graph = page_of(browser, work, "--mode", "gpu")
        expect("lanes", lanes(graph), [f"GPU 0 {name}" for name in NAMES])
        expect_in("what", "parts of", graph.text("strip-how"))
        whole = gpu_ns(graph)
        busy, length = graph.run("""(() => {
            const [lane] = flameGraph.panel.strip.lanes;
            return [[...lane.values], lane.ends[0] - lane.starts[0]];
        })()""")
        expect("parts", len(busy), 240)
        expect("of the recording", graph.run("""(() => {
            const {strip} = flameGraph.panel;
            const [lane] = strip.lanes;
            return [lane.starts[0] === strip.fromNs, lane.ends[239] === strip.toNs,
                    strip.toNs <= 1.02 * flameGraph.data.durationNs];
        })()"""), [True, True, True])
        some = [part for part, value in enumerate(busy) if value > 0]
        # Between the two programs.
        before, after = max(zip(some, some[1:]), key=lambda pair: pair[1] - pair[0])
        expect(f"a pause: {before} to {after}", after - before > 2, True)
        sums = 0
        for part in some:
            choose(graph, str(part))
            ns = gpu_ns(graph)
            expect(f"part {part}: {ns}", abs(ns - busy[part] / 100 * length) <= 0.001 * ns + 2,
                   True)
            sums += ns
        expect("all of them", sums, whole)
        choose(graph, f"{before + 1}-{after - 1}")
        expect("in between", gpu_ns(graph), 0)
        choose(graph, f"0-{after - 1}")
        expect("a part of it", 0 < gpu_ns(graph) < whole, True)
        expect("the address says it", "steps=0-" in graph.run("location.hash"), True)
        graph.picture("gpus_span")
        browser.press(ESCAPE)
        expect("all again", gpu_ns(graph), whole)
        graph.check_quiet()


def test_mouse_and_keyboard():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded(work, *SPARSE)
        graph = page_of(browser, work)
        browser.drag(*bar_of(graph, 60), *bar_of(graph, 120))
        first, last = map(int, graph.run("document.getElementById('chosen').value").split("-"))
        expect("a drag chooses about these", abs(first - 60) < 3 and abs(last - 120) < 3, True)
        browser.press(ESCAPE)
        graph.run("document.getElementById('strip-picture').focus()")
        browser.press(RIGHT, RIGHT)
        expect("keys", graph.run("document.getElementById('chosen').value"), "1")
        # In any lane, and not on its name.
        x, y = graph.run("""(() => {
            const {strip} = flameGraph.panel;
            const lane = strip.lanes.find(({name}) => / power$/.test(name));
            const box = strip.boxOf(lane, 100);
            const canvas = strip.canvas.getBoundingClientRect();
            return [canvas.left + box.x + box.width / 2, canvas.top + lane.y + 8];
        })()""")
        browser.hover(x, y)
        tip = graph.text("tip")
        expect_in("lane", "GPU 0 power", tip)
        expect_in("value", "350 W", tip)
        browser.click(x, y)
        expect("chosen", graph.run("document.getElementById('chosen').value"), "100")
        browser.click(20, y)
        expect("a name is no bar", graph.run("document.getElementById('chosen').value"), "100")
        graph.check_quiet()


def test_below_steps():
    """A click in a lane of the GPU chooses the step of that time."""
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded(work, workload("transformer"))
        graph = page_of(browser, work)
        names = lanes(graph)
        expect("the GPU's", [name for name in names if name.startswith("GPU 0 ")],
               [f"GPU 0 {name}" for name in NAMES])
        expect("steps first", graph.run("flameGraph.panel.strip.lanes[0].unit"), "ns")
        x, _ = bar_of(graph, 4)
        y = graph.run("""(() => {
            const {strip} = flameGraph.panel;
            return strip.canvas.getBoundingClientRect().top + strip.lanes[1].y + 8;
        })()""")
        browser.click(x, y)
        expect("step", graph.run("document.getElementById('chosen').value"), "4")
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            graph.picture(f"gpus_step_{scheme}")
        graph.check_quiet()


def test_clocks_alone():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded(work, *SPARSE, options=())
        graph = page_of(browser, work)
        expect("lanes", lanes(graph), [f"GPU 0 {name}" for name in ("busy", *NAMES[4:])])
        # Times of waiting belong to no part: nothing can be chosen.
        graph = page_of(browser, work, "--mode", "idle")
        expect("lanes", len(lanes(graph)), 4)
        expect("choice", graph.run("document.getElementById('strip-choice').hidden"), True)
        graph.check_quiet()


def test_nothing_is_known():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded(work, *SPARSE, options=("--no-gpu-clocks",))
        graph = page_of(browser, work)
        expect("strip", graph.run("document.getElementById('strip').hidden"), True)
        graph.check_quiet()


if __name__ == "__main__":
    main(globals())
