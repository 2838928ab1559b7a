"""Answers are those of the program, byte for byte."""

import json
import pathlib
import random
import subprocess

import numpy as np
import pytest

import isochron
from program import PROGRAM, chosen, flags_of, random_lengths, run_program

SEEDS = range(24)


def random_groups(generator: random.Random, count: int) -> list[str]:
    return [f"prompt {generator.randrange(1 + count // 3)}" for _ in range(count)]


@pytest.mark.parametrize("seed", SEEDS)
def test_balance_gives_the_document_of_the_program(tmp_path: pathlib.Path, seed: int):
    generator = random.Random(seed)
    lengths = random_lengths(seed)
    ranks = generator.choice([1, 2, 5, 8])
    options = chosen(
        generator,
        {
            "equal_count": [None, True],
            "keep_groups": [None, "rank"],
            "capacity": [None, 10**9],
            "order": [None, "small_ends"],
            "max_work": [None, 1000],
        },
    )
    groups = random_groups(generator, len(lengths))
    cost = generator.choice(["verl", "qwen3-8b_h100"])
    result = isochron.balance(lengths, ranks, groups=groups, cost=cost, **options)
    flags = ["--ranks", ranks, "--cost", cost, *flags_of(options)]
    assert result.to_json() == run_program(tmp_path, "balance", lengths, *flags, group=groups)
    assert result.check() is None
    document = json.loads(result.to_json())
    for key in ("status", "reason", "max_cost", "mean_cost", "lower_bound", "sequences_of_rank"):
        assert getattr(result, key) == document[key]


@pytest.mark.parametrize("seed", SEEDS)
def test_pack_gives_the_document_of_the_program(tmp_path: pathlib.Path, seed: int):
    generator = random.Random(seed)
    lengths = random_lengths(seed)
    extra = [generator.randrange(10**6) for _ in lengths]
    options = chosen(
        generator,
        {
            "capacity": [1000, 8192, 30000],
            "multiple": [None, 3],
            "min_count": [None, 4],
            "max_sequences": [None, 5],
            "oversize": [None, "alone"],
            "short": [None, "drop", "error"],
            "order": [None, "small_ends"],
        },
    )
    result = isochron.pack(lengths, extra_cost_ns=extra, **options)
    expected = run_program(tmp_path, "pack", lengths, *flags_of(options), extra_cost_ns=extra)
    assert result.to_json() == expected
    assert result.check() is None
    document = json.loads(expected)
    for key in ("status", "reason", "lower_bound", "microbatches", "oversized", "dropped"):
        assert getattr(result, key) == document[key]


@pytest.mark.parametrize("seed", SEEDS)
def test_plan_step_gives_the_document_of_the_program(tmp_path: pathlib.Path, seed: int):
    generator = random.Random(seed)
    lengths = random_lengths(seed)
    machine = chosen(
        generator,
        {"ranks": [1, 4, 8], "capacity": [4096, 32768], "transfer_ns": [None, 1000]},
    )
    options = chosen(
        generator,
        {
            "context": [None, "dynamic", "dynamic:any"],
            "sync": [None, "microbatch"],
            "pass_": [None, "forward"],
            "max_sequences": [None, 6],
            "short": [None, "drop"],
            "pad_multiple": [None, 4],
            "keep_groups": [None, "microbatch", "rank"],
        },
    )
    stages = generator.choice([1, 2])
    groups = random_groups(generator, len(lengths))
    plan = isochron.plan_step(lengths, **machine, stages=stages, groups=groups, **options)
    flags = [*flags_of(machine), "--pipeline", stages, *flags_of(options)]
    assert plan.to_json() == run_program(tmp_path, "plan", lengths, *flags, group=groups)
    assert plan.check() is None
    assert isochron.check(plan, lengths, groups=groups) is None
    document = json.loads(plan.to_json())
    for key in ("ranks", "capacity", "predicted_step_ns", "lower_bound_ns", "hash", "options"):
        assert getattr(plan, key) == document[key]
    slots = [
        [{"ranks": group.ranks, "sequences": group.sequences} for group in slot]
        for slot in plan.microbatches
    ]
    for slot in document["microbatches"]:
        for group in slot:
            group.pop("exchange", None)
    assert slots == document["microbatches"]


def test_virtual_stages_take_the_stages_as_their_group(tmp_path: pathlib.Path):
    lengths = random_lengths(4)
    plan = isochron.plan_step(lengths, 2, 32768, stages=2, virtual=2)
    flags = ["--ranks", 2, "--capacity", 32768, "--pipeline", 2, "--virtual", 2]
    assert plan.to_json() == run_program(tmp_path, "plan", lengths, *flags)
    assert plan.pipeline["group"] == 2


def test_a_report_is_the_page_of_the_program(tmp_path: pathlib.Path):
    plan = isochron.plan_step(random_lengths(3), 4, 32768)
    (tmp_path / "plan").write_text(plan.to_json())
    subprocess.run(
        [PROGRAM, "report", "plan", "-o", "page.html"], check=True, cwd=tmp_path, timeout=60
    )
    page = (tmp_path / "page.html").read_text()
    assert isochron.report(plan) == page

    other = isochron.naive_plan(plan.batch, 4, 32768)
    (tmp_path / "other").write_text(other.to_json())
    subprocess.run(
        [PROGRAM, "report", "other", "plan", "-o", "page.html"],
        check=True,
        cwd=tmp_path,
        timeout=60,
    )
    page = (tmp_path / "page.html").read_text()
    assert isochron.report({"other": other, "plan": [plan]}) == page


def test_a_timeline_is_what_the_program_traces(tmp_path: pathlib.Path):
    plan = isochron.plan_step(random_lengths(4), 4, 32768, context="dynamic", stages=2)
    (tmp_path / "plan.json").write_text(plan.to_json())
    command = [PROGRAM, "simulate", tmp_path / "plan.json", "--trace", "-"]
    trace = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    timeline = isochron.simulate(plan)
    assert timeline.trace_json() == trace
    assert timeline.step_ns == plan.predicted_step_ns == timeline.end_ns.max()
    assert len(timeline) == len(timeline.begin_ns) == len(timeline.is_backward)
    assert (timeline.is_backward.dtype, timeline.is_backward.mean()) == (np.dtype(bool), 0.5)
    busy = np.zeros_like(timeline.busy_ns)
    np.add.at(busy, timeline.rank * 2 + timeline.stage, timeline.end_ns - timeline.begin_ns)
    assert (busy == timeline.busy_ns).all()
    assert (timeline.peak_activation_bytes == plan.peak_activation_bytes).all()


def test_other_costs_give_another_timeline():
    plan = isochron.plan_step([900, 800, 700], 2, 4096, cost="qwen3-8b_h100")
    assert isochron.simulate(plan, cost="qwen3-8b_a100").step_ns > isochron.simulate(plan).step_ns


def test_every_option_of_a_plan_can_be_asked_again():
    plan = isochron.plan_step([900, 800, 700, 5000], 4, 4096, context="dynamic", pass_="forward")
    again = isochron.plan_step(plan.lengths, 4, 4096, **plan.options)
    assert again == plan
    assert again.hash == plan.hash == f"{isochron.plan_hash(plan):016x}"


def test_a_rank_runs_the_groups_it_is_in():
    plan = isochron.plan_step(random_lengths(4), 4, 8192, context="dynamic")
    for rank in range(4):
        expected = [group for slot in plan.microbatches for group in slot if rank in group.ranks]
        assert plan.groups_of_rank(rank) == expected
    with pytest.raises(ValueError, match="rank is 4, must be an integer from 0 to 3"):
        plan.groups_of_rank(4)


def test_ranks_share_one_packing():
    lengths = random_lengths(4)
    schedule = isochron.schedule_ranks(lengths, 4, capacity=32768, multiple=2)
    places = [place for rank in schedule.microbatches_of_rank for place in rank]
    assert sorted(places) == list(range(len(schedule.packing.microbatches)))
    assert {len(rank) % 2 for rank in schedule.microbatches_of_rank} == {0}
    assert schedule.packing.check() is None
    assert schedule.lower_bound <= schedule.max_cost
    assert schedule.status == schedule.packing.status


def test_costs_can_be_given_instead_of_a_model():
    costs = [5, 4, 3, 2, 1]
    result = isochron.balance(None, 2, costs=costs)
    assert (result.max_cost, result.lower_bound, result.status) == (8, 8, "optimal")
    assert sorted(sum(costs[i] for i in ids) for ids in result.sequences_of_rank) == [7, 8]
    with pytest.raises(ValueError, match="made from costs alone, must be from lengths"):
        result.to_json()
    with_lengths = isochron.balance([9, 9, 9, 9, 9], 2, costs=costs)
    assert with_lengths.sequences_of_rank == result.sequences_of_rank
    assert with_lengths.check() is None
    packing = isochron.pack([3, 3, 3, 3], costs=[9, 1, 1, 9], capacity=6)
    assert packing.max_cost == 10
    assert packing.check() is None


def test_a_file_of_lengths_is_a_batch():
    text = "length,group,extra_cost_ns\n5,a,10\n3,b,20\n4,a,30\n"
    batch = isochron.parse_batch(text)
    assert batch.lengths.tolist() == [5, 3, 4]
    assert batch.groups.tolist() == [0, 1, 0]
    assert batch.group_names == ["a", "b"]
    assert batch == isochron.Batch([5, 3, 4], groups=["a", "b", "a"], extra_cost_ns=[10, 20, 30])
    assert isochron.balance(batch, 2, keep_groups="rank").sequences_of_rank == [[0, 2], [1]]


def test_rows_are_padded_to_a_multiple():
    rows = isochron.pad(10, pad="rows", multiple=4, minibatch=4)
    assert (rows.status, rows.num_real, rows.num_padding) == ("optimal", 10, 2)
    assert sorted(rows.rows.tolist()) == list(range(12))
    assert [m.num_real for m in rows.minibatches] == [
        int((rows.rows[m.begin : m.end] < 10).sum()) for m in rows.minibatches
    ]
    assert isochron.pad(10, pad="error", multiple=4).status == "infeasible"
    assert isochron.num_padding_rows(10, 4) == 2
    assert isochron.required_multiple(0, actor_ranks=4, actor_ppo_mini_batch_size=6) == 12


def test_lengths_become_what_a_rank_holds():
    layout = isochron.layouts.packed_layout([5, 3], context_size=2, context_rank=1)
    assert layout.cu_seqlens.tolist() == [0, 8, 12]
    assert layout.source.tolist() == [2, 3, 4, -1, 6, 7]
    assert layout.positions.tolist() == [2, 3, 4, 0, 1, 2]
    assert layout.target.tolist() == [3, 4, -1, -1, 7, -1]
    assert isochron.layouts.padded_length(5, 2) == 8


def test_models_and_devices_have_costs():
    shape = isochron.model_preset("qwen3-8b")
    hardware = isochron.hardware_preset("h100")
    cost = isochron.analytic_cost(shape, hardware)
    assert cost == isochron.cost_preset("qwen3-8b_h100")
    assert isochron.analytic_cost(shape, hardware, recompute="full").name == "qwen3-8b_h100_full"
    assert isochron.find_hardware("NVIDIA H100 80GB HBM3") == hardware
    assert isochron.find_hardware("abacus") is None
    assert isochron.num_parameters(shape) == 8_190_735_360
    costs = isochron.sequence_costs("verl", [1, 2])
    assert costs.tolist() == [24577, 49156]
    forward = isochron.forward_flops(shape, [4096])
    assert isochron.backward_flops(shape, [4096]) == 2 * forward
    assert isochron.model_flops(shape, [4096]) == 3 * forward
    assert isochron.mfu(hardware.peak_flops, 2.0, hardware, 1) == 0.5
    capacity = isochron.auto_capacity(shape, hardware, ranks=64, recompute="full")
    assert capacity.tokens == capacity.activation_bytes // capacity.activation_bytes_per_token
    assert isochron.state_bytes(10) == 180
    assert isochron.activation_bytes_per_token(shape, "full") == 2 * shape.hidden * shape.layers
    assert isochron.logits_bytes(shape, 1) > 4 * shape.vocabulary
