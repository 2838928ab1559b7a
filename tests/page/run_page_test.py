"""The page of training runs in a real browser: run_page_test.py MAKE_RUNS PROGRAM VENV"""

import re
import subprocess
import sys

from browser import LAPTOP, brightness, run_checks

PAGES = {
    "balanced": ["balanced"],
    "two": ["unbalanced", "balanced"],
    "reversed": ["balanced", "unbalanced"],
    "three": ["unbalanced", "balanced", "dynamic"],
    "ranks_64": ["ranks_64"],
    "no_plans": ["no_plans"],
    "empty": ["empty"],
    "hostile": ["hostile"],
    "killed": ["killed"],
}


def make_pages(make_runs, program, folder):
    subprocess.run([make_runs, folder], check=True)
    for name, runs in PAGES.items():
        subprocess.run([program, "report", *[folder / run for run in runs], "-o", folder / f"{name}.html"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip


def card(report, name):
    return report.page.locator(".figure", has_text=name).inner_text()


def chosen(report):
    return report.page.locator("#step-choice").input_value()


def check_figures(open_page):
    """The headline says how much, how fast, how well, and how far from the plan."""
    with open_page("balanced") as report:
        assert report.page.title() == "balanced · isochron"
        assert "steps 1 to 40" in report.text("#subtitle") and "2 ranks" in report.text("#subtitle")
        assert "40 with a plan, 40 traced" in card(report, "Steps")
        assert re.search(r"\d\d,\d{3}", card(report, "Tokens per second"))
        before, after = map(float, re.search(r"([\d.]+) → ([\d.]+)", card(report, "Imbalance before")).groups())
        assert before > 1.1 and after < 1.02, (before, after)
        assert float(re.search(r"measured ([\d.]+)", card(report, "Imbalance before")).group(1)) < 1.05
        assert float(re.search(r"±([\d.]+) %", card(report, "Prediction error")).group(1)) < 3
        assert re.search(r"factor of 1\.3\d×", card(report, "Prediction error"))
        assert report.page.locator(".banner").count() == 0
        assert report.page.locator("#verdict").is_hidden()
        assert "balance_batch: true" in report.page.locator("#configs pre").text_content()


def check_curves(open_page):
    """Every metric has a curve; pointing at it gives step and value."""
    with open_page("balanced") as report:
        titles = report.page.locator("#curves h3").all_inner_texts()
        assert titles == ["Loss", "Tokens per second", "Imbalance", "Learning rate", "Gradient norm", "Tokens per rank",
                          "Model FLOPs utilisation", "Memory"], titles  # fmt: skip
        canvas = report.page.locator("#curves canvas").first
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        report.page.mouse.move(box["x"] + box["width"] - 11, box["y"] + 60)
        tip = report.text("#tip")
        assert "Step 40" in tip and re.search(r"training\s+0\.\d+", tip) and "validation" in tip, tip
        report.page.mouse.move(5, 5)
        assert not report.page.locator("#tip").is_visible()
        report.page.locator("#other-curves-summary").click()
        assert "train/global_tokens" in report.text("#other-curves")
        report.settle()
        colors = report.page.locator("#other-curves canvas").evaluate("canvas => canvas.width")
        assert colors > 300, "a chart that was hidden is drawn once it is opened"


def check_timeline(open_page):
    """The plan lies over what was measured; a tip gives slot, sequences and both times."""
    with open_page("balanced") as report:
        legend = report.text("#legend")
        for kind in ("forward", "backward", "reduce", "optimizer", "planned", "measured"):
            assert kind in legend, (kind, legend)
        tips = []
        for y in (0.18, 0.38):  # rank 0: plan, run
            report.hover(0, 0.1, y)
            tips.append(report.text("#tip"))
        assert tips[0] == tips[1], "a block and its counterpart say the same"
        for part in ("Slot 0, rank 0, forward", "Planned, scaled", "Measured", "Tokens per rank", "Sequence", "Length"):
            assert part in tips[0], (part, tips[0])
        ratio = float(re.search(r"Measured / planned\s+([\d.]+)", tips[0]).group(1))
        assert 0.9 < ratio < 1.1, ratio
        assert report.pixels()[0] > 6
        report.lane().click(position={"x": 100, "y": 50})
        assert "balanced: Slot 0" in report.text("#detail")


def check_scale(open_page):
    """A plan is drawn as predicted, or stretched to what was measured."""
    with open_page("balanced") as report:
        scaled = report.pixels()
        assert "predicted × 1.3" in report.text("#every-step")
        report.page.get_by_role("button", name="As predicted").click()
        assert report.pixels() != scaled
        assert "predicted × 1.3" not in report.text("#every-step")
        report.hover(0, 0.1, 0.38)
        tip = report.text("#tip")
        assert "Planned, scaled" not in tip
        ratio = float(re.search(r"Measured / planned\s+([\d.]+)", tip).group(1))
        assert 1.2 < ratio < 1.4, ratio
        report.page.get_by_role("button", name="Scaled to the measured total").click()
        report.page.mouse.move(5, 5)
        assert report.pixels() == scaled


def check_step_chooser(open_page):
    """Steps are chosen by list, buttons, keys and by a click on the curve of all steps."""
    with open_page("balanced") as report:
        page = report.page
        assert page.locator("#step-choice option").count() == 40
        assert "1 (first)" in page.locator("#step-choice option").first.inner_text()
        assert any("slowest" in text for text in page.locator("#step-choice option").all_inner_texts())
        assert report.text("#timeline-heading") == "Step 1: first"
        first = report.pixels()
        page.locator("#next-step").click()
        assert report.text("#timeline-heading").startswith("Step 2")
        assert report.pixels() != first
        page.keyboard.press("n")
        assert chosen(report) == "2"
        page.keyboard.press("p")
        assert chosen(report) == "1"
        strip = page.locator("#every-step canvas")
        strip.focus()
        page.keyboard.press("End")
        assert report.text("#timeline-heading") == "Step 40: last"
        assert page.locator("#next-step").is_disabled()
        page.keyboard.press("ArrowRight")
        assert chosen(report) == "39"
        page.keyboard.press("ArrowLeft")
        assert chosen(report) == "38"
        page.keyboard.press("Home")
        assert chosen(report) == "0" and report.pixels() == first
        box = strip.bounding_box()
        strip.click(position={"x": box["width"] - 12, "y": 80})
        assert chosen(report) == "39"


def check_keyboard(open_page):
    """Arrows walk from block to block, down from the plan to what was measured."""
    with open_page("balanced") as report:
        report.lane().focus()
        report.page.keyboard.press("ArrowRight")
        assert "Slot 0, rank 0, forward" in report.text("#tip")
        report.page.keyboard.press("ArrowRight")
        assert "Slot 0, rank 0, backward" in report.text("#tip")
        report.page.keyboard.press("ArrowDown")
        said = report.page.locator(".lane [aria-live]").inner_text()
        assert said.startswith("Slot 0, rank 0, backward, measured"), said
        report.page.keyboard.press("Enter")
        assert "Sequence" in report.text("#detail")
        report.page.keyboard.press("Escape")
        assert not report.page.locator("#detail").is_visible()
        full = report.span()
        report.page.keyboard.press("+")
        assert report.span() != full


def check_two_runs(open_page):
    """Two runs share their axes, and the faster one is named whatever the order."""
    verdicts = []
    for name in ("two", "reversed"):
        with open_page(name) as report:
            verdicts.append(report.text("#verdict"))
            assert report.page.locator(".plot").count() == 2
            assert report.page.locator("#every-step canvas").count() == 2
            assert report.page.locator("#configs details").count() == 2
    assert verdicts[0] == verdicts[1], verdicts
    match = re.match(r"balanced is ([\d.]+)× as fast as unbalanced: ([\d,]+) against ([\d,]+) tokens", verdicts[0])
    factor, fast, slow = (float(part.replace(",", "")) for part in match.groups())
    assert factor > 1.1 and abs(factor - fast / slow) < 0.01, verdicts
    with open_page("two") as report:
        assert f"{factor:.2f}×" in card(report, "Speed-up")
        assert re.search(r"\+\d+\.\d %", card(report, "Tokens per second"))
        report.hover(0, 0.9, 0.38)  # the rank of the unbalanced run that waits
        assert "reduce" in report.text("#tip")
        tokens = report.page.locator("#comparison tr", has_text="Tokens per second").first.inner_text()
        assert tokens.index(match.group(3)) < tokens.index(match.group(2)), tokens


def check_three_runs(open_page):
    """Three runs stay readable: one sentence ranks them, and groups of ranks show their size."""
    with open_page("three") as report:
        page = report.page
        pattern = (r"(\w+) is ([\d.]+)× as fast as unbalanced: [\d,]+ against [\d,]+ tokens per second; "
                   r"(\w+) ([\d.]+)×\.")  # fmt: skip
        fastest, factor, other, between = re.fullmatch(pattern, report.text("#verdict")).groups()
        assert {fastest, other} == {"balanced", "dynamic"} and 1 < float(between) <= float(factor)
        assert page.locator(".plot").count() == 3
        assert page.locator("#comparison tr").first.locator("th").count() == 4
        assert page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]
        heads = [""] * 3
        for _ in range(40):  # to a step with a sequence that one rank cannot hold
            heads = page.locator(".lane-head").all_inner_texts()
            if "groups" in heads[2]:
                break
            page.keyboard.press("n")
        assert re.search(r"groups \d+ × 1, \d+ × 2 ranks", heads[2]), heads
        assert "groups" not in heads[0] + heads[1], heads
        report.lane(2).focus()
        for _ in range(40):
            page.keyboard.press("ArrowRight")
            if "Group" in report.text("#tip"):
                break
        assert re.search(r"Group\s+ranks 0–1", report.text("#tip")), report.text("#tip")


def check_many_ranks(open_page):
    """64 ranks and groups of them stay on the screen; not all steps are embedded, and the page says which."""
    with open_page("ranks_64") as report:
        box = report.lane().bounding_box()
        assert 300 <= box["height"] <= 800, box
        assert report.page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]
        assert re.search(r"\d+ of 60 steps are here in full: 1 \(first.*60 \(last", report.text("#shown-steps"))
        assert report.page.locator("#step-choice option").count() <= 40
        report.hover(0, 0.1, 0.009)
        assert re.search(r"rank 0, forward", report.text("#tip"))
    with open_page("ranks_64", viewport={"width": 420, "height": 800}) as report:
        assert report.page.evaluate("document.documentElement.scrollWidth") <= 420


def check_themes(open_page):
    """Light and dark, as the system has it or as somebody chooses."""
    with open_page("two", color_scheme="dark") as report:
        dark = report.pixels()
        assert brightness(report.background()) < 150
        report.page.get_by_role("button", name="Light").click()
        assert brightness(report.background()) > 600
        assert report.pixels() != dark


def check_without_plans(open_page):
    """A run without plans shows its metrics, and says what it cannot show."""
    with open_page("no_plans") as report:
        banner = report.text(".banner")
        assert "plans/ has no step_N.json" in banner, banner
        assert not report.page.locator("#timeline-section").is_visible()
        assert report.page.locator("#every-step canvas").count() == 1, "predictions are in the metrics, too"
        assert "No step has a plan or a trace." in report.text("#shown-steps")
        assert report.page.locator("#curves canvas").count() == 8


def check_empty(open_page):
    """A run that has done nothing yet is a page that says so."""
    with open_page("empty") as report:
        banner = report.text(".banner")
        assert "metrics.jsonl is missing" in banner and "trace/ has no rank_R.json" in banner, banner
        for section in ("#every-step-section", "#timeline-section", "#curves-section", "#steps"):
            assert not report.page.locator(section).is_visible(), section
        assert re.search(r"Steps\s+0", card(report, "Steps"))


def check_killed(open_page):
    """What a killed run left is shown, and what is broken is named."""
    with open_page("killed") as report:
        banner = report.text(".banner")
        for part in ("config.yaml is missing", "metrics.jsonl: the last line is incomplete", "plans/step_5.json cannot be used",
                     "trace/rank_1.json: the last line is incomplete"):  # fmt: skip
            assert part in banner, (part, banner)
        report.page.locator("#step-choice").select_option(index=4)
        assert "The run has no plan of this step." in report.text("#lanes")
        assert report.pixels()[0] > 4


def check_hostile_text(open_page):
    """Markup in names, notes, metrics, scopes and the configuration is shown as text."""
    with open_page("hostile") as report:
        page = report.page
        page.wait_for_timeout(100)
        page.locator("#configs summary").click()
        assert "<script>window.attacked = true</script>" in report.text("#configs")
        page.locator("#other-curves-summary").click()
        assert "<script>" in report.text("#other-curves")
        banner = report.text(".banner")
        assert "<b>five</b>" in banner and "train/loss is not a number in 1 of 4 steps, first in step 4" in banner, banner
        assert page.locator("#other-curves canvas").count() == 5, "numbers beyond counting are drawn, too"
        report.hover(0, 0.3, 0.45)
        assert page.evaluate("window.attacked") is None
        assert page.locator("img").count() == 0 and page.locator("script").count() == 2


CHECKS = [check_figures, check_curves, check_timeline, check_scale, check_step_chooser, check_keyboard, check_two_runs,
          check_three_runs, check_many_ranks, check_themes, check_without_plans, check_empty, check_killed, check_hostile_text]  # fmt: skip

if __name__ == "__main__":
    make_runs, program, venv = sys.argv[1:4]
    sys.exit(run_checks(lambda folder: make_pages(make_runs, program, folder), venv, CHECKS))
