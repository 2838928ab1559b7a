"""slime's data iterators on one rank, with Megatron's parallel state: by hand, edges, at random."""

import itertools
import logging
import random
from types import SimpleNamespace

import pytest
from torch import distributed

from isochron.compat.slime import DataIterator, get_data_iterator
from megatron_ranks import args_of, data_of, model_of, parallel_state, virtual_stages
from slime_rule import schedule_of

SHAPE = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "kv_channels": 8,
    "num_query_groups": 2,
    "ffn_hidden_size": 64,
    "vocab_size": 32,
    "num_layers": 2,
}


@pytest.fixture(scope="module", autouse=True)
def _one_process():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    with parallel_state():
        yield
    distributed.destroy_process_group()


def schedule(lengths, *, gbs, cap, mode, vpp=None, group=None, **options):
    """The micro-batches of the first virtual stage, and their number in each step."""
    args = args_of(max_tokens_per_gpu=cap, global_batch_size=gbs, **options)
    with virtual_stages(vpp):
        iterators, counts = get_data_iterator(args, model_of(group), data_of(lengths), mode=mode)
    assert len(iterators) == (vpp or 1)
    assert all(each.micro_batch_indices is iterators[0].micro_batch_indices for each in iterators)
    return iterators[0].micro_batch_indices, counts


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_a_rollout_of_two_steps_by_hand(mode: str):
    args = args_of(max_tokens_per_gpu=10, global_batch_size=5)
    data = data_of([6, 5, 4, 3, 2, 10, 9, 1, 1, 2], rewards=list("abcdefghij"))
    (iterator,), counts = get_data_iterator(args, model_of(None), data, mode=mode)
    assert counts == [2, 3]
    rows = [iterator.get_next(["rewards", "tokens", "values"]) for _ in range(5)]
    letters = ["".join(sorted(each["rewards"])) for each in rows]
    assert sorted(letters[:2]) == ["ac", "bde"]
    # 10 and 9 fill a micro-batch each; the third of the step is what is left.
    assert letters[2] == "f"
    assert sorted("".join(letters[3:])) == list("ghij")
    assert all(sum(map(len, each["tokens"])) <= 10 for each in rows)
    assert all(each["values"] is None for each in rows)
    with pytest.raises(IndexError):
        iterator.get_next(["tokens"])
    assert iterator.reset() is iterator
    assert iterator.get_next(["rewards"]) == {"rewards": rows[0]["rewards"]}


def test_exact_goes_back_to_first_fit_and_says_so(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        answer = schedule([3, 3, 5, 5, 3], gbs=5, cap=10, mode="exact")
    assert answer == ([[0, 1, 4], [2, 3]], [2])
    assert caplog.messages == [
        "step 0: a balanced micro-batch has 11 tokens, above the cap of 10; "
        "its samples go by first fit"
    ]
    caplog.clear()
    assert schedule([3, 3, 5, 5, 3], gbs=5, cap=11, mode="exact")[1] == [2]
    assert caplog.messages == []


def test_best_needs_fewer_micro_batches_than_first_fit():
    lengths = [4, 4, 6, 6]  # in this order first fit closes no micro-batch with 10
    assert schedule(lengths, gbs=4, cap=10, mode="exact")[1] == [3]
    micro_batches, counts = schedule(lengths, gbs=4, cap=10, mode="best")
    assert counts == [2]
    assert [sum(lengths[i] for i in each) for each in micro_batches] == [10, 10]


def test_best_balances_flops_where_the_arguments_describe_the_model():
    lengths = [9000, 3000, 3000, 3000, 3000, 1000]
    by_flops, _ = schedule(lengths, gbs=6, cap=14000, mode="best", **SHAPE)
    assert by_flops == [[0], [1, 2, 3, 4, 5]]  # so small a model does little but attend
    by_workload, _ = schedule(lengths, gbs=6, cap=14000, mode="best")
    assert by_workload == [[1, 2, 3, 4], [0, 5]]


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_one_sample_is_one_micro_batch(mode: str):
    assert schedule([7], gbs=1, cap=10, mode=mode) == ([[0]], [1])


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_a_rollout_without_samples_has_no_steps(mode: str):
    assert schedule([], gbs=2, cap=10, mode=mode) == ([], [])


def test_a_sample_above_the_cap_stands_alone_in_best_and_stops_exact():
    lengths = [3, 15, 3, 3]
    assert schedule(lengths, gbs=4, cap=10, mode="best") == ([[1], [0, 2, 3]], [2])
    with pytest.raises(AssertionError, match="^This should never happen.$"):
        schedule(lengths, gbs=4, cap=10, mode="exact")


def test_a_sample_without_a_token_has_a_place():
    micro_batches, counts = schedule([0, 5, 0, 5], gbs=4, cap=6, mode="best")
    assert counts == [2]
    assert sorted(itertools.chain.from_iterable(micro_batches)) == [0, 1, 2, 3]
    assert all(len(each) == 2 for each in micro_batches)


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_virtual_stages_share_aligned_micro_batches(mode: str):
    lengths = [5, 5, 5, 5, 5, 5, 5]
    micro_batches, counts = schedule(lengths, gbs=7, cap=12, mode=mode, vpp=2, group=3)
    assert counts == [6]
    assert sorted(len(each) for each in micro_batches) == [1, 1, 1, 1, 1, 2]
    with pytest.raises(AssertionError, match=r"^number of items:\[7\] < k_partitions:\[8\]$"):
        schedule(lengths, gbs=7, cap=12, mode=mode, vpp=2, group=8)
    assert schedule(lengths, gbs=7, cap=12, mode=mode, group=8)[1] == [4]  # no virtual stages


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_samples_that_fill_no_step_are_an_error(mode: str):
    with pytest.raises(AssertionError, match="^5 samples of a rank fill no whole number of steps"):
        schedule([1, 1, 1, 1, 1], gbs=2, cap=10, mode=mode)
    with pytest.raises(ZeroDivisionError):
        schedule([1], gbs=0, cap=10, mode=mode)
    with pytest.raises(AssertionError):
        schedule([1], gbs=1, cap=None, mode=mode)


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_the_rollout_may_bring_its_own_batch_size(mode: str, caplog: pytest.LogCaptureFixture):
    args = args_of(max_tokens_per_gpu=10, global_batch_size=2)
    data = data_of([5, 5, 5, 5], dynamic_global_batch_size=4)
    with caplog.at_level(logging.INFO, "isochron.compat.slime_iterators"):
        (iterator,), counts = get_data_iterator(args, model_of(None), data, mode=mode)
    assert counts == [2]
    assert len(iterator.micro_batch_indices) == 2
    assert caplog.messages == [
        "global batches of 4 samples instead of 2: 1 steps for 4 samples of this rank"
    ]


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_fixed_micro_batches_are_runs(mode: str):
    args = args_of(use_dynamic_batch_size=False, micro_batch_size=2, global_batch_size=4)
    data = data_of([1, 2, 3, 4, 5, 6, 7, 8])
    with virtual_stages(2):
        iterators, counts = get_data_iterator(args, model_of(2), data, mode=mode)
    assert counts == [2, 2]
    for iterator in iterators:
        lengths = [iterator.get_next(["total_lengths"])["total_lengths"] for _ in range(4)]
        assert lengths == [[1, 2], [3, 4], [5, 6], [7, 8]]
    with pytest.raises(AssertionError, match=r"^offset: 8, micro_batch_size: 2, len\(vals\): 8$"):
        iterators[0].get_next(["tokens"])


def test_an_iterator_has_a_size_or_indices():
    with pytest.raises(AssertionError):
        DataIterator({}, 2, [[0]])


def test_an_unknown_mode_is_an_error():
    with pytest.raises(ValueError, match='mode is "fast", must be best or exact'):
        get_data_iterator(args_of(), [], {}, mode="fast")


def random_questions(seed: int, count: int):
    generator = random.Random(seed)
    for _ in range(count):
        step_size, num_steps = generator.randint(1, 14), generator.randint(1, 3)
        extra = generator.choice([0] * 9 + [1])
        longest = generator.choice([4, 20, 5000])
        lengths = [generator.randint(1, longest) for _ in range(step_size * num_steps + extra)]
        yield SimpleNamespace(
            lengths=lengths,
            step_size=step_size,
            cap=generator.randint(longest - longest // 8, 3 * longest),
            group=generator.choice([1, 1, 2, 3]),
        )


def answer(question: SimpleNamespace, mode: str):
    try:
        return schedule(
            question.lengths,
            gbs=question.step_size,
            cap=question.cap,
            vpp=2 if question.group > 1 else None,
            group=question.group,
            mode=mode,
        )
    except AssertionError:
        return AssertionError


def test_exact_is_slimes_rule():
    num_errors = 0
    for question in random_questions(1, 1_000):
        q = question
        expected = schedule_of([q.lengths], 0, q.step_size, q.cap, q.group)
        assert answer(question, "exact") == expected, question
        num_errors += expected is AssertionError
    assert 100 < num_errors < 700


def test_best_keeps_the_cap_and_every_promise():
    num_fewer = num_solved = 0
    for question in random_questions(2, 1_000):
        q = question
        expected = schedule_of([q.lengths], 0, q.step_size, q.cap, q.group)
        best = answer(question, "best")
        if best is AssertionError:
            assert expected is AssertionError
            continue
        micro_batches, counts = best
        ends = list(itertools.accumulate(counts))
        for step, end in enumerate(ends):
            of_step = micro_batches[end - counts[step] : end]
            samples = range(step * q.step_size, (step + 1) * q.step_size)
            assert sorted(itertools.chain.from_iterable(of_step)) == list(samples)
            assert all(of_step)
            assert len(of_step) % q.group == 0
            for each in of_step:
                assert len(each) == 1 or sum(q.lengths[i] for i in each) <= q.cap
        if expected is AssertionError:
            num_solved += 1
        else:
            assert all(a <= b for a, b in zip(counts, expected[1], strict=True))
            num_fewer += counts != expected[1]
    assert num_fewer > 10
    assert num_solved > 10
