"""Opens pages in Chromium for tests: playwright out of .venv, the network watched.

A request, an error in the console or a failed check is a failure. The tests exit 77, which is
"skipped", if the system has no Chromium.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

SKIPPED = 77
CHROMIUM = shutil.which("chromium", path="/usr/bin")  # not the snap: it sees no files outside of home
LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}

# Wraps the drawing of text: for each pixel that is all ink, the ink and what was there before.
NOTE_INKS = """() => {
  const draw = CanvasRenderingContext2D.prototype.fillText;
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  window.inks = new Set();
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (!this.canvas.classList.contains("plot")) return draw.call(this, text, x, y);
    const scale = window.devicePixelRatio;
    const box = [x * scale, (y - 8) * scale, this.measureText(text).width * scale, 16 * scale].map(Math.round);
    const before = this.getImageData(...box).data;
    draw.call(this, text, x, y);
    const after = this.getImageData(...box).data;
    const ink = channels(this.fillStyle);
    for (let i = 0; i < after.length; i += 4) {
      const isInk = ink.every((value, k) => Math.abs(value - after[i + k]) < 24);
      const isChanged = ink.some((value, k) => Math.abs(before[i + k] - after[i + k]) > 24);
      if (isInk && isChanged) window.inks.add([...ink, ...before.slice(i, i + 3)].join());
    }
  };
}"""

# Wraps the drawing of text: what is written on the canvases of a selector.
NOTE_TEXTS = """selector => {
  const draw = (window.drawText ??= CanvasRenderingContext2D.prototype.fillText);
  window.texts = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (this.canvas.matches(selector)) window.texts.push(text);
    draw.call(this, text, x, y);
  };
}"""


def enter_venv(folder):
    """Starts this script again under the python of `folder`, which has playwright."""
    python = pathlib.Path(folder, "bin", "python")
    if not python.exists():
        sys.exit(f"{python} is missing: cmake/setup.sh tests makes it")
    sys.exit(subprocess.run([python, *sys.argv, "inside"]).returncode)


class Report:
    """One open page, and what it did that it must not."""

    def __init__(self, browser, path, **context):
        self.context = browser.new_context(**{"viewport": LAPTOP, **context})
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("console", lambda message: self.troubles.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("request", self.note_request)
        self.address = path.as_uri()
        self.page.goto(self.address)

    def note_request(self, request):
        if request.url != self.address:
            self.troubles.append(f"request: {request.url}")

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        self.context.close()
        if self.troubles and error is None:
            raise AssertionError("; ".join(self.troubles))

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def lane(self, index=0):
        return self.page.locator(".plot").nth(index)

    def hover(self, index, x, y):
        """Moves to a share of the width and height of a timeline, of which the page may show a part only."""
        lane = self.lane(index)
        lane.scroll_into_view_if_needed()
        box = lane.bounding_box()
        middle = self.page.viewport_size["height"] / 2
        self.page.evaluate("by => window.scrollBy(0, by)", box["y"] + y * box["height"] - middle)
        box = lane.bounding_box()
        self.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])

    def settle(self):
        """Waits for the frame after this one: drawing waits for the next."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def wait_until(self, holds):
        """For what the browser does in its own time; its own way to wait is what the policy forbids."""
        for _ in range(50):
            if holds():
                return
            self.page.wait_for_timeout(100)
        raise AssertionError("it did not happen in 5 seconds")

    def span(self):
        """Begin and end of the time axis, in nanoseconds, once it is drawn."""
        self.settle()
        begin, end = self.page.locator("#axis").get_attribute("data-span").split()
        return float(begin), float(end)

    def pixels(self, index=0):
        """How many colours a timeline has, and a checksum, to tell two drawings apart."""
        self.settle()
        return self.lane(index).evaluate(
            """canvas => {
              const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
              const context = copy.getContext("2d", { willReadFrequently: true });
              context.drawImage(canvas, 0, 0);
              const data = context.getImageData(0, 0, copy.width, copy.height).data;
              const colors = new Set();
              let sum = 0;
              for (let i = 0; i < data.length; i += 4) {
                colors.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
                sum = (sum * 31 + data[i] + data[i + 1] * 7 + data[i + 2] * 13) % 1000003;
              }
              return [colors.size, sum];
            }""")

    def shows(self, name, index=0):
        """Whether a timeline has a colour of the theme."""
        self.settle()
        return self.lane(index).evaluate(
            """(canvas, name) => {
              const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
              const color = [1, 3, 5].map((at) => parseInt(value.slice(at, at + 2), 16));
              const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
              for (let i = 0; i < data.length; i += 4) {
                if (color.every((part, k) => part === data[i + k])) return true;
              }
              return false;
            }""",
            name)

    def least_contrast(self):
        """Of the labels of all timelines, drawn again, with what is behind them."""
        self.page.evaluate(NOTE_INKS)
        self.page.evaluate("window.dispatchEvent(new Event('resize'))")
        self.settle()
        # Looking at pixels is the test's own doing.
        self.troubles = [trouble for trouble in self.troubles if "willReadFrequently" not in trouble]
        pairs = [[int(part) for part in pair.split(",")] for pair in self.page.evaluate("[...window.inks]")]
        return min(contrast(pair[:3], pair[3:]) for pair in pairs)

    def labels(self, selector):
        """What is written on canvases, drawn again."""
        self.page.evaluate(NOTE_TEXTS, selector)
        self.page.evaluate("window.dispatchEvent(new Event('resize'))")
        self.settle()
        return self.page.evaluate("window.texts")

    def is_in_sight(self, selector):
        """Whether all of an element is on the screen."""
        box = self.page.locator(selector).bounding_box()
        return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= self.page.viewport_size["height"]

    def background(self):
        return self.page.evaluate("getComputedStyle(document.body).backgroundColor")


def brightness(color):
    return sum(int(part) for part in re.findall(r"\d+", color)[:3])


def contrast(first, second):
    """As WCAG 2 has it; text needs 4.5."""

    def luminance(color):
        parts = [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4 for value in color]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, light = sorted(luminance(color) for color in (first, second))
    return (light + 0.05) / (dark + 0.05)


def run_checks(make_pages, venv, checks):
    """make_pages(folder) writes NAME.html; each check gets open_page(NAME). Comes back with the exit status."""
    if CHROMIUM is None:
        print("there is no Chromium on this system")
        return SKIPPED
    if sys.argv[-1] != "inside":
        enter_venv(venv)
    from playwright.sync_api import sync_playwright

    failed = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        make_pages(pathlib.Path(folder))
        # A sandbox needs rights that containers lack; the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=60_000)

        def open_page(name, **context):
            return Report(browser, pathlib.Path(folder, f"{name}.html"), **context)

        for check in checks:
            try:
                check(open_page)
                print(f"ok      {check.__name__}: {check.__doc__}")
            except Exception:
                failed += 1
                print(f"FAILED  {check.__name__}: {check.__doc__}")
                traceback.print_exc()
        browser.close()
    return 1 if failed else 0
