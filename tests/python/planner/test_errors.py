"""Questions that cannot be asked are a ValueError with the words of C++; outcomes are fields."""

import pytest

import isochron
from isochron import _planner

LENGTHS = [5, 4, 3]

MISTAKES = {
    "[balance] ranks is 0, must be from 1 to 1048576": lambda: isochron.balance(LENGTHS, 0),
    "[balance] ranks is 1099511627776, must be an integer from 1 to 1048576": (
        lambda: isochron.balance(LENGTHS, 2**40)
    ),
    '[balance] ranks is "2", must be an integer from 1 to 1048576': (
        lambda: isochron.balance(LENGTHS, "2")
    ),
    '[balance] keep_groups is "microbatch", must be one of none, rank': (
        lambda: isochron.balance(LENGTHS, 2, keep_groups="microbatch")
    ),
    "[balance] equal_count is 1, must be true or false": (
        lambda: isochron.balance(LENGTHS, 2, equal_count=1)
    ),
    '[balance] unknown key "equal_counts", did you mean "equal_count"?': (
        lambda: isochron.balance(LENGTHS, 2, equal_counts=True)
    ),
    "[balance] costs has 2 entries, must be 3, one for each length": (
        lambda: isochron.balance(LENGTHS, 2, costs=[1, 2])
    ),
    "[balance] costs is given together with cost, must be one or the other": (
        lambda: isochron.balance(LENGTHS, 2, costs=LENGTHS, cost="verl")
    ),
    "[balance] costs is given together with extra_cost_ns, must be one or the other": (
        lambda: isochron.balance(LENGTHS, 2, costs=LENGTHS, extra_cost_ns=LENGTHS)
    ),
    "[balance] groups has 1 entries, must be 3, one for each sequence": (
        lambda: isochron.balance(LENGTHS, 2, groups=["a"])
    ),
    "[balance] groups[1] is 2, must be a text like the first": (
        lambda: isochron.balance(LENGTHS, 2, groups=["a", 2, "b"])
    ),
    "[balance] extra_cost_ns has 1 entries, must be 3, one for each length": (
        lambda: isochron.balance(LENGTHS, 2, extra_cost_ns=[1])
    ),
    "[balance] cost is 3, must be a CostModel or the name of one": (
        lambda: isochron.balance(LENGTHS, 2, cost=3)
    ),
    "[pack] capacity is 1.5, must be an integer from 1 to 9223372036854775807": (
        lambda: isochron.pack(LENGTHS, capacity=1.5)
    ),
    "[plan_step] capacity is 1.5, must be an integer from 1 to 4611686018427387904": (
        lambda: isochron.plan_step(LENGTHS, 2, 1.5)
    ),
    "[plan_step] max_sequences is 1.5, must be an integer from 0 to 2147483647": (
        lambda: isochron.plan_step(LENGTHS, 2, 9, max_sequences=1.5)
    ),
    "[plan_step] stages is 1.5, must be an integer from 1 to 4096": (
        lambda: isochron.plan_step(LENGTHS, 2, 9, stages=1.5)
    ),
    "[pack] capacity is 0, must be at least 1": lambda: isochron.pack(LENGTHS, capacity=0),
    '[pack] oversize is "widen", must be one of error, alone': (
        lambda: isochron.pack(LENGTHS, capacity=5, oversize="widen")
    ),
    "[pack] short is <object object>, must be a number, a text, a bool or None": (
        lambda: isochron.pack(LENGTHS, capacity=5, short=_Named())
    ),
    '[CostModel] unknown key "linear", did you mean "linear_ns"?': (
        lambda: isochron.CostModel(linear=1)
    ),
}


class _Named:
    def __repr__(self) -> str:
        return "<object object>"


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_one_line_with_the_value_and_what_is_allowed(message: str):
    with pytest.raises(ValueError, match=r"^\[") as caught:
        MISTAKES[message]()
    assert str(caught.value) == message


def test_any_text_can_be_shown():
    for text in ("\u00fc" * 100, "\U0001f600" * 40, "\ud800"):
        with pytest.raises(ValueError, match=r"^\[pack\] lengths is '"):
            isochron.pack(text, capacity=5)
        for ask in (
            lambda text=text: isochron.pack(LENGTHS, capacity=5, oversize=text),
            lambda text=text: isochron.balance(LENGTHS, 2, cost=text),
        ):
            with pytest.raises(ValueError, match=r"^\["):
                ask()
    with pytest.raises(ValueError, match="groups is .*, must be a text that UTF-8 can hold"):
        isochron.balance(LENGTHS, 2, groups=["a", "\ud800", "b"])
    with pytest.raises(ValueError, match="oversize is .*, must be a text that UTF-8 can hold"):
        isochron.pack(LENGTHS, capacity=5, oversize="\ud800")


def test_a_name_that_is_unknown_comes_with_the_nearest():
    with pytest.raises(ValueError, match="qwen3-8b"):
        isochron.model_preset("qwen3-8")
    with pytest.raises(ValueError, match="h100"):
        isochron.hardware_preset("h101")
    with pytest.raises(ValueError, match="verl"):
        isochron.balance(LENGTHS, 2, cost="verI")
    with pytest.raises(AttributeError, match="no attribute 'balanse'"):
        isochron.balanse  # noqa: B018


def test_no_answer_is_an_outcome():
    packing = isochron.pack([5, 40], capacity=10)
    assert (packing.status, packing.microbatches) == ("infeasible", [])
    assert "40" in packing.reason
    assert packing.check() is None
    plan = isochron.plan_step([5, 40], 2, 10)
    assert (plan.status, plan.microbatches) == ("infeasible", [])
    assert plan.check() is None
    with pytest.raises(ValueError, match="infeasible"):
        isochron.simulate(plan)


def test_a_cost_model_is_checked_when_it_is_made():
    with pytest.raises(ValueError, match="linear_ns is -1"):
        isochron.CostModel(linear_ns=-1)
    with pytest.raises(ValueError, match=r"context is \[1\], must be a list of ContextCost"):
        isochron.CostModel(context=[1])
    with pytest.raises(ValueError, match="kind"):
        isochron.ContextCost(kind="telepathy")
    with pytest.raises(ValueError, match="JSON"):
        isochron.CostModel.from_json("{")


def test_documents_that_are_none_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        isochron.check("{")
    with pytest.raises(ValueError, match="JSON"):
        isochron.StepPlan.from_json("[")
    with pytest.raises(ValueError, match="must be a StepPlan, a Balance, a Packing"):
        isochron.check(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be a StepPlan or a dict of them"):
        isochron.report([3])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="plans is empty"):
        isochron.report({})


def test_a_plan_that_was_tampered_with_is_named():
    plan = isochron.plan_step([900, 800], 2, 1024)
    with pytest.raises(ValueError, match="hash"):
        isochron.StepPlan.from_json(plan.to_json().replace('"reason":""', '"reason":"why not"'))
    assert isochron.check(plan, [900, 801]) is not None
    naive = isochron.naive_plan([2000, 1], 1, 1024)  # over the capacity
    assert naive.check() is not None
    with pytest.raises(ValueError, match="the plan is invalid"):
        isochron.simulate(naive)


def test_what_verl_asserts_is_an_assertion_error():
    with pytest.raises(AssertionError, match="^max_token_len must be greater than"):
        _planner.verl_microbatches([5, 9], max_token_len=4)
    with pytest.raises(AssertionError) as caught:
        _planner.verl_microbatches(
            [4, 4], max_token_len=4, min_num_micro_batch=3, rule="before_7553"
        )
    assert caught.value.args == ()


def test_an_error_of_a_callback_is_passed_on():
    def broken(_numbers: list[int]) -> list[int]:
        raise KeyError("lost rank")

    with pytest.raises(KeyError, match="lost rank"):
        _planner.verl_microbatches([5, 9], max_token_len=10, all_reduce_max=broken)
    with pytest.raises(ValueError, match="all_reduce_max returned 0 numbers, must be 1"):
        _planner.verl_microbatches([5, 9], max_token_len=10, all_reduce_max=lambda _: [])


def test_arguments_that_are_missing_are_a_type_error():
    with pytest.raises(TypeError):
        isochron.balance([1, 2])  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        isochron.plan_step([1, 2], 2)  # type: ignore[call-arg]
