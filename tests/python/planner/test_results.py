"""What comes out: plain objects that keep what they were made from."""

import gc
import html
import json
import pickle
import re
import sys
import types

import numpy as np
import pytest

import isochron
from isochron import _planner

LENGTHS = [7258, 7812, 8030, 2606]


@pytest.fixture
def plan() -> isochron.StepPlan:
    return isochron.plan_step(LENGTHS, 2, 16384, groups=["a", "b", "a", "c"])


def test_a_plan_survives_its_document(plan: isochron.StepPlan):
    again = isochron.StepPlan.from_json(plan.to_json())
    assert again == plan
    assert again.to_json() == plan.to_json()
    assert again.hash == plan.hash == json.loads(plan.to_json())["hash"]
    assert plan != isochron.plan_step(LENGTHS, 1, 32768)
    assert plan != 3


def test_plans_and_costs_travel_to_other_processes(plan: isochron.StepPlan):
    assert pickle.loads(pickle.dumps(plan)) == plan
    cost = isochron.cost_preset("qwen3-8b_h100")
    assert pickle.loads(pickle.dumps(cost)) == cost


def test_a_cost_model_survives_its_document_and_its_repr():
    cost = isochron.CostModel(
        name="mine",
        linear_ns=3,
        context=[
            isochron.ContextCost(
                kind="all_gather_kv",
                bytes_per_token=2.5,
                links=[isochron.ContextLink(max_ranks=8, gb_per_s=100.0)],
            )
        ],
    )
    assert isochron.CostModel.from_json(cost.to_json()) == cost
    assert eval(repr(cost), vars(_planner)) == cost
    assert cost.context[0].links[0].gb_per_s == 100
    for name in ("model", "hardware"):
        preset = getattr(isochron, f"{name}_names")()[0]
        shape = getattr(isochron, f"{name}_preset")(preset)
        assert eval(repr(shape), vars(_planner)) == shape


def test_large_arrays_are_views_that_keep_their_owner(plan: isochron.StepPlan):
    first, second = plan.lengths, plan.lengths
    assert first.ctypes.data == second.ctypes.data
    assert (first.dtype, first.tolist()) == (np.dtype(np.int64), LENGTHS)
    del plan
    gc.collect()
    assert first.tolist() == LENGTHS


def test_results_cannot_be_changed(plan: isochron.StepPlan):
    with pytest.raises(AttributeError):
        plan.imbalance = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        plan.lengths[0] = 1
    plan.microbatches.clear()
    plan.options.clear()
    assert plan.check() is None
    assert plan == isochron.StepPlan.from_json(plan.to_json())


def test_every_repr_says_what_it_is(plan: isochron.StepPlan):
    balance = isochron.balance(LENGTHS, 2)
    assert repr(balance).startswith("Balance(status='optimal', max_cost=")
    assert repr(isochron.pack(LENGTHS, capacity=9000)).startswith("Packing(status='optimal'")
    assert repr(plan).startswith("StepPlan(status='optimal', ranks=2, sequences=4, slots=1")
    assert repr(plan.microbatches[0][0]) == "ContextGroup(ranks=[0], sequences=[0, 1])"
    assert repr(plan.batch) == "Batch of 4 sequences"
    assert re.match(r"Timeline\(step_ns=\d+, operations=4\)", repr(isochron.simulate(plan)))


def test_everything_public_has_a_docstring():
    for name in isochron.__all__:
        thing = getattr(isochron, name)
        assert thing.__doc__, name
        if isinstance(thing, type):
            for attribute, value in vars(thing).items():
                assert attribute.startswith("__") or value.__doc__, f"{name}.{attribute}"


def test_a_notebook_gets_the_report_in_a_frame(plan: isochron.StepPlan):
    frame = plan._repr_html_()
    match = re.fullmatch(
        r'<iframe [^>]*sandbox="allow-scripts"[^>]* srcdoc="([^"]*)"></iframe>', frame
    )
    assert match is not None
    assert html.unescape(match[1]) == isochron.report(plan)


def test_a_report_needs_nothing_else(plan: isochron.StepPlan):
    page = isochron.report({'<b>&"before"': plan, "after": plan})
    assert "<b>&" not in page
    assert re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page) is None


def test_show_prints_the_path_of_a_page_outside_a_notebook(
    plan: isochron.StepPlan, capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plan.show()
    path = capsys.readouterr().out.strip()
    assert path.startswith(str(tmp_path))
    with open(path, encoding="utf-8") as page:
        assert page.read() == isochron.report(plan)


def test_show_displays_the_frame_in_a_notebook(plan: isochron.StepPlan, monkeypatch, capsys):
    # IPython is no dependency: what show() uses of it, with the shell of a kernel.
    shown: list[str] = []
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    display = types.ModuleType("IPython.display")
    display.HTML = lambda text: text
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    plan.show()
    assert shown == [plan._repr_html_()]
    assert capsys.readouterr().out == ""
