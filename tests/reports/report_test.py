#!/usr/bin/env python3
"""Opens pages of `rlx inspect --html` in a headless Chromium, clicks through them and looks at what is drawn.

usage: report_test.py --rlx build/dev/rlx [--model DIR] [--screenshots DIR]

Needs Chromium (Debian: chromium) and nothing else. An error on the console, an exception or a request to anywhere
fails the test.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import graphs
from browser import Browser

TABS = ("graph", "fusion", "memory", "kernels", "reports")
# How many different colours the largest canvas in sight has: a picture that is empty has one.
COLOURS = """(() => {
  const all = [...document.querySelectorAll('.tab.now canvas:not(.map)')].filter((c) => c.width > 50);
  if (!all.length) return 0;
  const c = all[0], data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
  for (let i = 0; i < data.length; i += 28) seen.add([data[i], data[i + 1], data[i + 2], data[i + 3]].join());
  return seen.size; })()"""


class Pages:
    def __init__(self, arguments, folder):
        self.rlx, self.folder, self.shots = arguments.rlx, folder, arguments.screenshots
        self.browser = Browser()

    def write(self, name, options, graph=None):
        """The page of a graph given as text, or of what the options name; its path and the seconds it took."""
        page = self.folder / f"{name}.html"
        source = []
        if graph is not None:
            path = self.folder / f"{name}.rlx"
            path.write_text(graph, encoding="utf-8")
            source = [str(path)]
        began = time.monotonic()
        subprocess.run([self.rlx, "inspect", *source, "--html", str(page), *options], check=True)
        return page, time.monotonic() - began

    def shot(self, name):
        if self.shots:
            self.browser.screenshot(self.shots / f"{name}.png")

    def check(self, holds, what):
        if not holds:
            self.shot("failed")
            raise SystemExit(f"report_test: {self.name}: {what}")

    def text(self, selector):
        return self.browser.js(f"document.querySelector({selector!r})?.innerText ?? ''")

    def count(self, selector):
        return self.browser.js(f"document.querySelectorAll({selector!r}).length")

    def open(self, page, name):
        self.name = name
        began = time.monotonic()
        self.browser.open(page)
        self.check(self.text("#title"), "the page has no title: its script did not run")
        return time.monotonic() - began

    def every_tab(self):
        for tab in TABS:
            self.browser.click(f"#to-{tab}")
            self.check(self.count(f"#tab-{tab}.now") == 1, f"tab {tab} does not open")
            self.check(len(self.text(f"#tab-{tab}")) > 10, f"tab {tab} is empty")
            self.shot(f"{self.name}-{tab}")
        self.browser.click("#to-graph")

    def every_stage(self):
        n = self.count(".stage")
        self.check(n > 2, f"only {n} stages")
        for k in range(n):
            self.browser.click(f"#stage-{k}")
            self.check(self.browser.js(COLOURS) > 5, f"stage {k} draws nothing")
            for mode in ("before", "both", "after") if k else ():
                self.browser.click(f"[data-value={mode}]")
                views = self.count(".view canvas:not(.map)")
                self.check(views == (2 if mode == "both" else 1), f"stage {k}, {mode}: {views} pictures")
                self.browser.js("document.activeElement.blur()")
                for _ in range(3):  # what the pass took away, changed and made
                    self.browser.key("n")
                if self.count(f"#stage-{k} .add, #stage-{k} .chg"):
                    shown = self.text("#details h2")
                    self.check(shown.startswith("%") or mode == "before", f"stage {k}, {mode}: no change is shown")
        self.browser.click("[data-value=table]")
        self.check(self.count(".vtable .row") > 2, "the table has no rows")
        self.shot(f"{self.name}-table")
        self.browser.click(".vtable .row", 1)
        self.check(self.text("#details h2").startswith("%"), "a row of the table shows no node")
        self.browser.click("[data-value=graph]")

    def search(self, query, least):
        self.browser.click("#search")
        self.browser.js("document.getElementById('search').value = ''")
        self.browser.type(query)
        self.browser.key("Enter")
        hits = self.text("#hits")
        self.check(hits.startswith("1 of ") and int(hits.split()[2]) >= least, f"search {query!r}: '{hits}'")
        self.check(self.text("#details h2").startswith("%"), f"search {query!r} shows no node")
        self.shot(f"{self.name}-search")
        self.browser.key("Escape")
        self.check(self.text("#hits") == "", "Escape does not end the search")

    def no_problems(self):
        self.check(not self.browser.problems, "the browser reports:\n" + "\n".join(self.browser.problems))

    # A click on what is drawn in the middle of the picture, the wheel, keys.
    def graph_by_hand(self):
        self.browser.click("#stage-0")
        box = "(() => { const b = document.querySelector('.view canvas').getBoundingClientRect();"
        x, y, w, h = self.browser.js(box + " return [b.x, b.y, b.width, b.height]; })()")
        self.browser.js("document.activeElement.blur()")
        found = False
        for row in range(4, 36):
            for column in range(2, 9):
                self.browser.call(
                    "Input.dispatchMouseEvent", type="mouseMoved", x=x + w * column / 10, y=y + h * row / 40
                )
                if self.browser.js("!document.getElementById('tip').hidden"):
                    self.browser.click_at(x + w * column / 10, y + h * row / 40)
                    found = True
                    break
            if found:
                break
        self.check(found, "there is no node under the pointer anywhere")
        chosen = self.text("#details h2")
        self.check(chosen.startswith("%"), f"a click on a node shows '{chosen}'")
        if self.count("#details li a"):
            self.browser.click("#details li a")
            self.check(self.text("#details h2") != chosen, "a link to a neighbour leads nowhere")
        for delta in (-400, 900):
            self.browser.wheel(x + w / 2, y + h / 2, delta)
        self.check(self.browser.js(COLOURS) > 3, "nothing is left after zooming")
        stage = self.text(".stage[aria-selected=true] .t")
        self.browser.key("]")
        self.check(self.text(".stage[aria-selected=true] .t") != stage, "the key ] does not go to the next stage")
        self.browser.key("f")
        self.browser.key("n")


def minilm(pages, model):
    page, _ = pages.write("minilm", ["--model", str(model), "--profile"])
    pages.open(page, "minilm")
    pages.every_tab()
    pages.every_stage()
    pages.graph_by_hand()
    pages.search("attention", 6)
    pages.browser.click("#to-kernels")
    rows = pages.count("#tab-kernels .vtable .row")
    pages.check(rows > 10, f"{rows} kernels in sight")
    pages.browser.click("#tab-kernels .head span", 3)
    pages.check("▾" in pages.text("#tab-kernels .head span.by"), "a click on a column does not sort")
    pages.browser.click("[data-by=kernel]")
    pages.shot("minilm-kernels-by-kernel")
    pages.check(0 < pages.count("#tab-kernels .vtable .row") < rows, "kernels are not summed")
    pages.browser.click("#to-memory")
    pages.check(pages.browser.js(COLOURS) > 10, "the memory plan draws nothing")
    pages.browser.click("#tab-memory .vtable .row", 2)
    pages.check("Memory".lower() in pages.text("#details").lower(), "a buffer shows no details")
    pages.browser.click("#to-fusion")
    if pages.count(".miss a"):
        pages.browser.click(".miss a")
        pages.check(pages.count("#tab-graph.now") == 1, "a missed fusion leads to no node")
        pages.check(pages.text("#details h2").startswith("%"), "a missed fusion shows no node")
        pages.shot("minilm-missed")
    pages.browser.size(1400, 900, dark=True)
    pages.browser.click("#to-graph")
    pages.shot("minilm-dark")
    pages.browser.size(1400, 900)


def large(pages, name, graph, least_size):
    page, seconds = pages.write(name, [], graph)
    size = page.stat().st_size
    pages.name = name
    pages.check(least_size < size < 6e6, f"10,000 nodes make a page of {size} bytes")
    opened = pages.open(page, name)
    pages.every_tab()
    if name == "tall":
        pages.every_stage()
    pages.graph_by_hand()
    pages.search("%4000", 1)
    pages.browser.click("#stage-0")
    pages.search("param", 1000)
    began = time.monotonic()
    pages.browser.js("document.getElementById('fit').click()")
    drawn = time.monotonic() - began
    pages.shot(f"{name}-whole")
    print(f"{name}: {size / 1e6:.2f} MB, written in {seconds:.2f} s, opened in {opened:.2f} s, drawn in {drawn:.3f} s")
    pages.check(seconds < 60 and opened < 60 and drawn < 10, "it hangs")  # on a machine with other work too


def hostile(pages):
    for device in ("cpu", "vulkan", "mlx"):
        page, _ = pages.write(f"hostile-{device}", ["--device", device], graphs.hostile())
        pages.open(page, f"hostile-{device}")
        pages.check(pages.browser.js("window.pwned === undefined"), "a label ran as a script")
        pages.check("</title>" not in pages.text("#title"), "the title is broken")
        pages.every_tab()
        if device == "cpu":  # the others differ in the plan
            pages.every_stage()
        pages.search("__proto__", 1)
        pages.search("scan", 1)
        if device == "cpu":
            pages.browser.click("#stage-2")
            pages.search("fused_dot", 1)
            pages.check("replaces" in pages.text("#details").lower(), "nobody knows what was fused")
            pages.browser.click("#stage-5")
            pages.search("scan", 1)
            pages.check("open @body" in pages.text("#details"), "the scan has no body to open")
            pages.browser.click("#details li a")
            pages.check("body @body" in pages.text(".caption"), "the body does not open")
            pages.shot("hostile-body")
            pages.search("tanh", 1)
            pages.browser.click("#leave-body")
            pages.check("body" not in pages.text(".caption"), "there is no way back from the body")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rlx", required=True, help="the program rlx")
    parser.add_argument("--model", type=pathlib.Path, help="folder of a sentence encoder; else it is left out")
    parser.add_argument("--screenshots", type=pathlib.Path, help="folder for pictures of what was seen")
    arguments = parser.parse_args()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pages = Pages(arguments, pathlib.Path(folder))
        try:
            hostile(pages)
            large(pages, "tall", graphs.tall(10000), 1e6)
            large(pages, "wide", graphs.wide(10000), 1e6)
            if arguments.model:
                minilm(pages, arguments.model)
            pages.no_problems()
        finally:
            pages.browser.close()
    print("pages: all passed")


if __name__ == "__main__":
    sys.exit(main())
