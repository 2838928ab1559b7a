"""The page of plans in a real browser: page_test.py MAKE_PAGES VENV"""

import re
import subprocess
import sys

from browser import LAPTOP, PHONE, brightness, run_checks


def check_comparison(open_page):
    """All plans are there, in order, with the change against the first."""
    with open_page("ranks_4") as report:
        assert report.page.title() == "plan.json against naive and verl 0.9.1 · isochron"
        names = [cell.strip() for cell in report.page.locator("#comparison thead th").all_inner_texts()][1:]
        assert names == ["naive", "verl 0.9.1", "plan.json"], names
        assert report.page.locator(".lane").count() == 3
        assert "against naive" in report.text("#figures")
        assert report.page.locator("#figures .void").count() == 0
        step_time = report.page.locator("#comparison tbody tr", has_text="Step time").inner_text()
        assert step_time.count(" %") == 2, step_time
        for section in ("#load", "#fill", "#memory"):
            assert report.page.locator(f"{section} figure").count() == 3, section
        assert report.page.locator("#padding .track").count() == 3


def check_sizes(open_page):
    """Four and 512 ranks are drawn in colours of cost and stay inside a laptop screen."""
    for name in ("ranks_4", "ranks_64", "ranks_512"):
        with open_page(name) as report:
            colors, _ = report.pixels(2)
            assert colors > 10, (name, colors)
            box = report.lane(2).bounding_box()
            assert 90 <= box["height"] <= 600, (name, box)
            wide = report.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= LAPTOP["width"], (name, wide)
            for section in ("#load", "#fill", "#memory"):
                *ticks, _, _ = report.labels(f"{section} figure:last-child canvas")
                assert 3 <= len(ticks) <= 6 and ticks[0] == "0", (name, section, ticks)
    with open_page("ranks_64", viewport={"width": 420, "height": 800}) as report:
        assert report.page.evaluate("document.documentElement.scrollWidth") <= 420


def check_hover(open_page):
    """The tip names slot, ranks, tokens, times and the sequences with their lengths."""
    with open_page("ranks_4") as report:
        report.hover(2, 0.2, 0.1)
        tip = report.text("#tip")
        for part in ("Slot 0, rank 0", "c = 1", "Cost per rank", "of 16,384", "Begin – end", "Sequence", "Length"):
            assert part in tip, (part, tip)
        assert re.search(r"#\d+\s+[\d,]+", tip), tip
        report.hover(2, 0.95, 0.1)  # after its last micro-batch
        assert not report.page.locator("#tip").is_visible()
    with open_page("long") as report:
        report.hover(0, 0.9, 0.5)
        cost, begin, end = (float(report.page.locator("#tip dt", has_text=name).locator("+ dd").inner_text()
                                  .split(" – ")[part].removesuffix(" s").replace(",", ""))
                            for name, part in (("Cost per rank", 0), ("Begin", 0), ("Begin", 1)))  # fmt: skip
        assert begin > 1000 and abs(end - begin - cost) < 0.002 * cost, (begin, end, cost)


def check_wide_groups(open_page):
    """A group over several ranks is one block: all of its rows show the same."""
    with open_page("troubled") as report:
        tips = []
        for y in (0.05, 0.2, 0.45):
            report.hover(0, 0.1, y)
            tips.append(report.text("#tip"))
        assert "ranks 0–3" in tips[0] and "c = 4" in tips[0], tips[0]
        assert tips[0] == tips[1] == tips[2], tips


def check_zoom(open_page):
    """Buttons, wheel, drag and keys change the axis; Fit brings it back."""
    with open_page("ranks_64") as report:
        page = report.page
        begin, full = report.span()
        assert begin == 0
        page.locator("#zoom-in").click()
        begin, end = report.span()
        assert begin > 0 and abs((end - begin) / full - 0.6) < 1e-9
        report.hover(0, 0.5, 0.5)
        before = page.evaluate("scrollY")
        page.keyboard.down("Control")
        page.mouse.wheel(0, -200)
        page.keyboard.up("Control")
        report.wait_until(lambda: report.span()[1] < end)
        zoomed = report.span()
        assert page.evaluate("scrollY") == before
        page.mouse.down()
        page.mouse.move(400, page.locator(".plot").first.bounding_box()["y"] + 60, steps=4)
        page.mouse.up()
        assert report.span()[0] > zoomed[0], "dragging to the left moves on in time"
        page.locator("#zoom-fit").click()
        assert report.span() == (0, full)
        fitted = report.pixels(0)
        page.locator("#rows-in").click()
        assert report.pixels(0) != fitted
        assert report.span() == (0, full)


def check_keyboard(open_page):
    """Arrows walk the micro-batches, Enter lists the sequences, Escape closes."""
    with open_page("ranks_4") as report:
        report.lane(2).focus()
        report.page.keyboard.press("ArrowRight")
        assert "Slot 0, rank 0" in report.text("#tip")
        report.page.keyboard.press("ArrowRight")
        assert "Slot 1, rank 0" in report.text("#tip")
        report.page.keyboard.press("ArrowDown")
        assert "rank 1" in report.text("#tip")
        report.page.keyboard.press("Enter")
        detail = report.text("#detail")
        assert "plan.json: Slot" in detail and "Sequence" in detail, detail
        report.page.keyboard.press("Escape")
        assert not report.page.locator("#detail").is_visible()
        full = report.span()
        report.page.keyboard.press("+")
        assert report.span() != full
        report.page.keyboard.press("0")
        assert report.span() == full


def check_themes(open_page):
    """The system decides until somebody chooses; the drawing follows."""
    with open_page("ranks_4", color_scheme="dark") as report:
        dark = report.pixels()
        assert brightness(report.background()) < 150
        report.page.get_by_role("button", name="Light").click()
        assert brightness(report.background()) > 600
        assert report.pixels() != dark
        report.page.get_by_role("button", name="Auto").click()
        assert report.pixels() == dark
    with open_page("ranks_4", color_scheme="light") as report:
        assert brightness(report.background()) > 600
        report.page.emulate_media(color_scheme="dark")
        report.wait_until(lambda: brightness(report.background()) < 150)


def check_contrast(open_page):
    """Labels can be read on every shade of a block."""
    for name in ("ranks_4", "ranks_64", "pipeline"):
        for scheme in ("light", "dark"):
            with open_page(name, color_scheme=scheme) as report:
                report.page.locator("#rows-in").click()  # room for labels
                assert report.least_contrast() >= 4.5, (name, scheme, report.least_contrast())


def check_long_names(open_page):
    """Names and reasons without a space wrap, and leave each other room."""
    for viewport in ({"width": 1440, "height": 900}, PHONE):
        with open_page("long_names", viewport=viewport) as report:
            wide = report.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= viewport["width"], (viewport, wide)
            assert "against aaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaa.json" in report.text("#figures")
    for name in ("long_names", "troubled"):
        with open_page(name, viewport=PHONE) as report:
            for box in [part.bounding_box() for part in report.page.locator(".banner > span").all()]:
                assert box["width"] > 250, (name, box)


def check_details_in_sight(open_page):
    """What a click, a tap or Enter opens is on the screen, under its timeline."""
    with open_page("ranks_4", reduced_motion="reduce") as report:
        report.lane(0).click(position={"x": 100, "y": 20})
        assert "naive: Slot" in report.text("#detail")
        assert report.is_in_sight("#detail"), "without motion it is there at once"
        width = report.lane(0).bounding_box()["width"]
        report.lane(0).click(position={"x": width - 20, "y": 5})  # idle
        assert not report.page.locator("#detail").is_visible()
        report.lane(0).click(position={"x": 100, "y": 20}, button="right")
        assert not report.page.locator("#detail").is_visible(), "the menu of the browser is asked for"
    with open_page("ranks_4") as report:
        report.lane(2).focus()
        report.page.keyboard.press("ArrowRight")
        report.page.keyboard.press("Enter")
        report.wait_until(lambda: report.is_in_sight("#detail"))
    with open_page("ranks_4", viewport=PHONE, has_touch=True, is_mobile=True) as report:
        assert report.page.locator(".for-touch").is_visible()
        assert not report.page.locator(".for-mouse").is_visible()
        report.lane(1).tap(position={"x": 100, "y": 20})
        report.wait_until(lambda: report.is_in_sight("#detail .sequences tbody tr:first-child"))


def check_hostile_text(open_page):
    """Markup in names, reasons and groups is shown as it is written, and never runs."""
    with open_page("hostile") as report:
        page = report.page
        page.wait_for_timeout(100)
        assert page.evaluate("window.attacked") is None
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        for selector in ("#comparison", "#subtitle", "#banners", "#lanes"):
            assert "<script>window.attacked = true</script>" in report.text(selector), selector
        report.hover(0, 0.1, 0.1)
        assert "<script>" in report.text("#tip")
        page.evaluate("""() => { const made = document.createElement("script");
          made.textContent = "window.attacked = true"; document.body.append(made); }""")
        assert page.evaluate("window.attacked") is None, "the policy lets foreign scripts run"
        report.troubles = [trouble for trouble in report.troubles if "Content Security Policy" not in trouble]


def check_troubled_plans(open_page):
    """An invalid plan has a banner and a hatch, an infeasible one its reason."""
    with open_page("troubled") as report:
        banners = report.page.locator(".banner").all_inner_texts()
        assert len(banners) == 2, banners
        assert "over.json is invalid" in banners[0] and "exceed the capacity" in banners[0]
        assert "none.json: no plan exists" in banners[1] and "8 ranks hold 131072" in banners[1]
        assert "hatched: invalid" in report.text("#legend")
        assert report.pixels(0) != report.pixels(1), "the same plan, once valid and once not"
        states = report.page.locator("#comparison tbody tr").first.inner_text().split()
        assert states == ["Status", "feasible", "invalid", "infeasible"], states


def check_nothing_to_draw(open_page):
    """Without a plan there is its reason, and nothing to zoom or to explain."""
    with open_page("none") as report:
        assert "8 ranks hold 131072" in report.text("#lanes")
        for part in ("#legend", "#zoom-fit", "#axis", ".hint >> nth=0"):
            assert not report.page.locator(part).is_visible(), part
    with open_page("troubled") as report:
        assert report.page.locator("#legend").is_visible() and report.page.locator("#zoom-fit").is_visible()


def check_steps(open_page):
    """A file of several plans has a step to choose, and the time of all of them."""
    with open_page("steps") as report:
        first = report.text("#comparison")
        assert report.page.locator("#step-choice option").count() == 6
        assert report.page.locator("#previous-step").is_disabled()
        report.page.locator("#next-step").click()
        assert report.text("#comparison") != first
        report.page.locator("#step-choice").select_option("0")
        assert report.text("#comparison") == first
        assert "6 steps" in report.text("#history")
        together = report.text("#all-steps")
        assert re.fullmatch(r"6 steps of plans.jsonl take [\d.]+ s, [\d.]+ % less time than naive\.", together), together
        spread = [line.split("\t") for line in report.text("#spread").splitlines()]
        assert [line[0] for line in spread[2:]] == ["Gap to the bound", "Imbalance", "Padding"], spread
        for name, *values in spread[2:]:
            least, mean, median, most_but_few, most = (float(value.removesuffix(" %")) for value in values)
            assert least <= mean <= most and least <= median <= most_but_few <= most, (name, values)
        report.page.locator("#zoom-in").click()
        begin, end = report.span()
        full = end / 0.8  # six tenths in the middle
        report.page.locator("#next-step").click()
        next_begin, next_end = report.span()
        assert abs(next_begin / next_end - begin / end) < 1e-9 and next_end != end, "zoom stays, on another axis"
        report.page.locator("#zoom-fit").click()
        assert report.span()[0] == 0
        report.page.locator("#previous-step").click()
        assert abs(report.span()[1] - full) < 1e-6 * full
        report.page.locator("#history canvas").last.click(position={"x": 600, "y": 60})
        assert report.page.locator("#step-choice").input_value() == "5"
    with open_page("alone") as report:
        assert not report.page.locator("#steps").is_visible()


def check_what_is_compared(open_page):
    """Only plans of one batch on one machine are compared, and sums are over the same steps."""
    with open_page("others") as report:
        banners = report.page.locator(".banner").all_inner_texts()
        assert len(banners) == 1, banners
        assert "a.json and c.json are not compared with b.json" in banners[0]
        assert "other sequences, 8 and 4 ranks" in banners[0]
        assert "rank speeds" not in banners[0], banners[0]
        assert "against" not in report.text("#figures")
        assert "%" not in "".join(report.page.locator("#comparison td.change").all_inner_texts())
    with open_page("ranks_64") as report:
        assert "against" in report.text("#figures")
        fill = re.search(r"Token fill\s+([\d.]+ %)", report.text("#figures")).group(1)
        assert f"together {fill} of the capacity" in report.page.locator("body").inner_text()
    with open_page("gap") as report:
        history = report.text("#history")
        assert history.count("6 steps, the 5 that all have take ") == 2, history
        assert history.count("1 without a valid plan") == 1, history
        ticks = report.labels("#history canvas")
        assert max(float(tick.split()[0]) for tick in ticks if tick.endswith(" s")) < 10, ticks


def check_questions(open_page):
    """Plans of other questions are not compared, and the page says why."""
    with open_page("questions") as report:
        why = {}
        for banner in report.page.locator(".banner").all_inner_texts():
            name, words = re.fullmatch(r"(\w+) is not compared with plan.json\s+.*: (.*)", banner, re.S).groups()
            why[name] = words
        assert why == {
            "speeds": "other rank speeds",
            "extra": "other extra costs",
            "kept": "none and rank as kept groups",
            "virtual": "1 and 2 virtual stages per stage, 1 and 4 slots at a time",
            "shares": "other shares of the stages",
            "transfer": "other times between stages",
            "numbers": "other numbers under the name qwen3-8b_h100",
        }, why
        assert "against equal" in report.text("#figures")


def check_what_is_asked(open_page):
    """What the drawing does not show is said, padding is one number, names are told apart."""
    with open_page("one_name") as report:
        subtitle = report.text("#subtitle")
        for part in ("rank speeds 0.5 to 1, 1 of 4 ranks other than 1", "max_sequences 50", "pad_multiple 4"):
            assert part in subtitle, (part, subtitle)
        names = [cell.strip() for cell in report.page.locator("#comparison thead th").all_inner_texts()][1:]
        assert names == ["plan.json (1)", "plan.json (2)"], names
        rows = {cells[0]: cells[1:] for cells in (
            row.split("\t") for row in report.text("#comparison tbody").splitlines())}
        tokens = re.search(r"(\d+) tokens?", rows["Padding"][0]).group(1)
        assert int(tokens) >= 4 and f" {tokens} padding," in report.text("#padding"), (tokens, report.text("#padding"))
        assert [cell for cell in rows["Capacity"] if cell.strip()] == ["16,384", "32,768"], rows["Capacity"]
        assert "Sync" not in rows
        assert report.page.locator("#figures .value.void").count() == report.page.locator(".figure").count() > 0
        imbalances = [cell for cell in rows["Imbalance"] if cell.strip()]
        assert len(imbalances) == 2 and imbalances[0] == imbalances[1], imbalances


def check_token_room(open_page):
    """What is over the capacity fills no room that others leave: all of it adds up."""
    for name, is_over in (("ranks_4", False), ("over", True)):
        with open_page(name) as report:
            note = report.page.locator("#padding .note").last.inner_text()
            found = re.fullmatch(
                r"([\d,]+) tokens, ([\d,]+) padding, ([\d,]+) unused of ([\d,]+)(, ([\d,]+) over the capacity)?", note)
            real, padding, unused, room, over = (
                int((found.group(i) or "0").replace(",", "")) for i in (1, 2, 3, 4, 6))
            assert real + padding + unused == room + over and (over > 0) == is_over and unused > 0, note
            bar, track = (report.page.locator(part).last.bounding_box() for part in ("#padding .real", "#padding .track"))
            assert abs(bar["width"] / track["width"] - real / (room + over)) < 0.01, (bar, track)


def check_lines_are_explained(open_page):
    """The legends name the lines; a table that is cut off says so."""
    with open_page("ranks_4") as report:
        assert "lower bound" in report.text("#legend") and "lower bound" in report.text("#load-legend")
        assert "capacity" in report.text("#fill-legend") and "limit" not in report.text("#memory-legend")
        assert not report.page.locator("#comparison-hint").is_visible()
    with open_page("questions", viewport=PHONE) as report:
        assert "scroll" in report.text("#comparison-hint")


def check_phone(open_page):
    """Three plans fit side by side on a phone, each with its change below."""
    for name in ("ranks_4", "steps"):
        with open_page(name, viewport=PHONE) as report:
            assert not report.page.locator("#comparison-hint").is_visible()
            for part in ("#comparison", "#spread"):
                assert report.page.evaluate("part => document.querySelector(part).scrollWidth", part) <= PHONE["width"] - 32
            row = report.page.locator("#comparison tbody tr", has_text="Step time")
            values, changes = (row.locator(part) for part in ("td.value", "td.change"))
            assert values.count() == changes.count() > 1
            for value, change in zip(values.all(), changes.all(), strict=True):
                over, under = value.bounding_box(), change.bounding_box()
                assert over["x"] == under["x"] and over["y"] + over["height"] <= under["y"] + 1, (over, under)


def check_pipeline(open_page):
    """Stages are rows, forward and backward are told apart."""
    with open_page("pipeline") as report:
        assert "4 ranks × 4 stages" in report.text("#subtitle")
        report.lane().focus()
        report.page.keyboard.press("ArrowRight")
        assert re.search(r"stage 0, forward", report.text("#tip"))
        report.page.keyboard.press("ArrowDown")
        assert re.search(r"stage 1, forward", report.text("#tip"))
        assert "Cost of all stages" in report.text("#tip") and "Cost of all stages" in report.text("#legend")
        assert "busiest stage" in report.text("#load-legend")
        for part in ("2F: forward of slot 2", "faded: forward", "dotted: placeholder"):
            assert part in report.text("#legend"), report.text("#legend")
    with open_page("ranks_4") as report:
        for part in ("2F", "placeholder"):
            assert part not in report.text("#legend"), report.text("#legend")
        assert "busiest" not in report.text("#load-legend")


def check_forward(open_page):
    """A pass without a backward has the colours of the legend: nothing is faded."""
    with open_page("forward") as report:
        assert "faded" not in report.text("#legend") and report.shows("--ramp-4")


CHECKS = [check_comparison, check_sizes, check_hover, check_wide_groups, check_zoom, check_keyboard, check_themes,
          check_contrast, check_long_names, check_details_in_sight, check_hostile_text, check_troubled_plans,
          check_nothing_to_draw, check_steps, check_what_is_compared, check_questions, check_what_is_asked,
          check_token_room, check_lines_are_explained, check_phone, check_pipeline, check_forward]  # fmt: skip


if __name__ == "__main__":
    make_pages, venv = sys.argv[1:3]
    sys.exit(run_checks(lambda folder: subprocess.run([make_pages, folder], check=True), venv, CHECKS))
