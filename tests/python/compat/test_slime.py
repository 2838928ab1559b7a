"""slime's schedule: golden answers, a second implementation, the promises of both modes."""

import itertools
import random
import sys
from types import ModuleType, SimpleNamespace

import pytest

from isochron import _planner
from isochron.compat import slime as ours

LC = [6933, 3171, 6225, 7308, 3461, 347, 2137, 7925, 4204, 3996, 3333, 7538, 6436, 6814, 2500, 7944]
SHAPE = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "kv_channels": 8,
    "num_query_groups": 2,
    "ffn_hidden_size": 64,
    "vocab_size": 32,
    "num_layers": 2,
}


def args_of(**options) -> SimpleNamespace:
    defaults = {
        "use_dynamic_batch_size": True,
        "max_tokens_per_gpu": None,
        "micro_batch_size": None,
        "balance_data": False,
        "balance_by_flops": False,
        "num_experts": None,
    }
    return SimpleNamespace(**{**defaults, **SHAPE, **options})


def schedule(
    lengths, *, rollouts=None, gbs=None, dp=1, cp=1, vpp=1, group=1, mode="exact", **options
):
    rollouts = list(range(len(lengths))) if rollouts is None else rollouts
    return ours.build_dp_schedule(
        args_of(**options),
        {
            "dp_size": dp,
            "cp_size": cp,
            "vpp_size": vpp,
            "microbatch_group_size_per_vp_stage": group,
        },
        lengths,
        global_batch_size=len(set(rollouts)) if gbs is None else gbs,
        rollout_indices=rollouts,
        mode=mode,
    )


def test_golden_schedules():
    partitions, indices, counts, sizes = schedule(
        [15, 3, 3, 3, 3, 3, 3, 3], max_tokens_per_gpu=10, dp=2
    )
    assert partitions == [[0, 4, 5, 6], [1, 2, 3, 7]]
    assert indices == [[[0], [1, 2, 3]], [[0, 1, 2], [3]]]
    assert (counts, sizes) == ([2], [8])
    assert schedule([5] * 8, max_tokens_per_gpu=10, dp=2)[0] == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert schedule([4] * 32, max_tokens_per_gpu=8, dp=2, vpp=2, group=2, gbs=16)[2] == [4, 4]
    dropped = schedule([3] * 8, rollouts=[0, 0, 1, 2, 2, 3, 4, 4], gbs=2, max_tokens_per_gpu=12)
    assert sorted(dropped[0][0]) == [0, 1, 2, 3, 4, 5]
    partitions, _, counts, _ = schedule(LC, max_tokens_per_gpu=4096, cp=2, dp=2, vpp=2, group=2)
    assert counts == [6]
    assert partitions == [[0, 5, 2, 6, 8, 9, 10, 12, 14], [1, 4, 3, 7, 11, 13, 15]]
    alone = schedule(
        [1, 2, 3, 4, 5, 7, 9, 10],
        use_dynamic_batch_size=False,
        micro_batch_size=1,
        balance_data=True,
        dp=2,
    )
    assert alone[0] == [[1, 2, 5, 6], [0, 3, 4, 7]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"lengths": [10] * 18, "use_dynamic_batch_size": False, "micro_batch_size": 2, "dp": 4},
            r"^static path: num_mbs \(9\) is not a multiple of dp_size \* mb_group \(4\); got ",
        ),
        (
            {"lengths": [1, 2, 3, 4, 5], "max_tokens_per_gpu": 9, "dp": 2, "vpp": 2, "group": 4},
            r"^dynamic path: could only produce 5 mbs after maximal splitting; need 8\. step 0 ",
        ),
        (
            {"lengths": [9] * 5, "max_tokens_per_gpu": 10, "dp": 2},
            r"^dynamic path: could only produce 5 mbs after maximal splitting; need 6\. step 0 ",
        ),
        (
            {"lengths": [1, 2], "max_tokens_per_gpu": 9, "gbs": 3},
            r"^num_rollouts \(2\) < global_batch_size \(3\); need at least one rollout per step\.$",
        ),
        (
            {"lengths": [1, 2], "max_tokens_per_gpu": 9, "dp": 3},
            r"^step 0: 2 samples < dp_size 3; each step needs at least one sample per rank\.$",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["exact", "best"])
def test_what_slime_asserts_is_asserted(options: dict, text: str, mode: str):
    with pytest.raises(AssertionError, match=text):
        schedule(**options, mode=mode)


def random_questions(seed: int, count: int):
    generator = random.Random(seed)
    for _ in range(count):
        num_samples = generator.randint(1, 40)
        longest = generator.choice([4, 100, 5000])
        lengths = [generator.randint(1, longest) for _ in range(num_samples)]
        rollouts = [generator.randint(0, max(1, num_samples // 2)) for _ in range(num_samples)]
        options = {
            "rollouts": rollouts,
            "gbs": generator.randint(1, max(1, len(set(rollouts)) // 2)),
            "dp": generator.choice([1, 2, 3]),
            "cp": generator.choice([1, 2]),
            "vpp": generator.choice([1, 1, 2]),
            "group": generator.choice([1, 2]),
            "use_dynamic_batch_size": generator.random() < 0.8,
            "max_tokens_per_gpu": generator.randint(max(1, longest // 2), 2 * longest),
            "micro_batch_size": generator.choice([1, 2, 3]),
            "balance_data": generator.random() < 0.5,
            "balance_by_flops": generator.random() < 0.3,
        }
        yield lengths, options


def outcome(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except AssertionError as error:
        return str(error)


def in_cpp(lengths, *, rollouts, gbs, dp, cp, vpp, group, **options):
    answer = _planner.slime_schedule(
        lengths,
        rollouts,
        _planner.SlimeShape(**SHAPE),
        global_batch_size=gbs,
        dp_size=dp,
        cp_size=cp,
        vpp_size=vpp,
        microbatch_group_size_per_vp_stage=group,
        **options,
    )
    return (
        answer.partitions,
        answer.micro_batch_indices,
        answer.num_microbatches,
        answer.global_batch_sizes,
    )


def test_python_and_cpp_give_the_same_exact_schedules():
    num_errors = 0
    for lengths, options in random_questions(seed=1, count=5_000):
        expected = outcome(in_cpp, lengths, **options)
        assert outcome(schedule, lengths, **options) == expected
        num_errors += isinstance(expected, str)
    assert 500 < num_errors < 4_500


def micro_batches_of(answer, rank: int) -> list[list[int]]:
    partitions, indices, _, _ = answer
    return [[partitions[rank][place] for place in places] for places in indices[rank]]


def test_the_best_schedule_keeps_slimes_promises_and_the_cap():
    num_fewer = 0
    for lengths, options in random_questions(seed=2, count=2_500):
        expected = outcome(schedule, lengths, **options)
        answer = outcome(schedule, lengths, **options, mode="best")
        if isinstance(answer, str):
            assert isinstance(expected, str)
            continue
        partitions, indices, counts, sizes = answer
        if not isinstance(expected, str):
            assert sizes == expected[3]
            kept = sorted(itertools.chain.from_iterable(expected[0]))
            assert sorted(itertools.chain.from_iterable(partitions)) == kept
        group = options["group"] if options["vpp"] > 1 else 1
        cap = options["max_tokens_per_gpu"] * options["cp"]
        for rank in range(options["dp"]):
            assert [i for each in indices[rank] for i in each] == list(range(len(partitions[rank])))
            assert len(indices[rank]) == sum(counts)
            assert all(count % group == 0 for count in counts)
            for samples in micro_batches_of(answer, rank):
                assert samples
                if options["use_dynamic_batch_size"]:
                    tokens = sum(lengths[sample] for sample in samples)
                    assert tokens <= cap or len(samples) == 1
        keeps_cap = options["use_dynamic_batch_size"] and not options["balance_by_flops"]
        if keeps_cap and not isinstance(expected, str):
            assert sum(counts) <= sum(expected[2])
            num_fewer += sum(counts) < sum(expected[2])
    assert num_fewer > 30


def test_a_step_holds_whole_rollouts():
    rollouts = [7, 7, 3, 9, 3, 1, 9, 5]
    answer = schedule([3] * 8, rollouts=rollouts, gbs=2, dp=2, max_tokens_per_gpu=6, mode="best")
    first, second = answer[2]
    in_first = {
        rollouts[sample]
        for rank in range(2)
        for each in micro_batches_of(answer, rank)[:first]
        for sample in each
    }
    assert in_first == {7, 3}
    assert sum(len(p) for p in answer[0]) == 7  # rollout 5 fills no step
    assert second == 1


def test_bins():
    assert ours.first_fit_pack([15, 3, 3, 8], 10) == [[0], [1, 2], [3]]
    bins = [[0, 1, 2], [3, 4]]
    ours.expand_bins_by_splitting(bins, 4, [5, 4, 3, 2, 1])
    assert bins == [[0], [3, 4], [1], [2]]
    assert ours._split_bin_by_tokens([0, 1, 2, 3], [1, 5, 5, 2]) == [[1, 3], [2, 0]]
    assert ours.get_minimum_num_micro_batch_size([15, 3, 3, 8], 10) == 3
    assert ours._get_capped_partitions([3, 3, 5, 5, 3], 2, 10) == [[0, 1, 4], [2, 3]]
    assert ours._get_capped_partitions([3], 2, 10) == [[0], []]
    with pytest.raises(AssertionError, match="^This should never happen.$"):
        ours._get_capped_partitions([15, 3, 3], 2, 10)


def test_flops_of_dense_models_are_those_of_cpp():
    shape = _planner.SlimeShape(**SHAPE)
    for length in (1, 7, 4096, 131072):
        flops = ours.calculate_fwd_flops([length], args_of())
        assert flops == _planner.slime_forward_flops(length, shape)
        assert isinstance(flops, float)
    assert ours.calculate_fwd_flops([3, 5], args_of()) == sum(
        ours.calculate_fwd_flops([length], args_of()) for length in (3, 5)
    )


def test_experts_count_by_what_a_token_runs():
    dense = ours.calculate_fwd_flops([64], args_of(ffn_hidden_size=3 * 20 + 4))
    experts = args_of(
        num_experts=8,
        moe_ffn_hidden_size=20,
        moe_router_topk=3,
        moe_shared_expert_intermediate_size=4,
    )
    assert ours.calculate_fwd_flops([64], experts) == dense
    experts.moe_layer_freq = [0, 1]
    one_dense = ours.calculate_fwd_flops([64], experts)
    experts.moe_layer_freq = 2
    assert ours.calculate_fwd_flops([64], experts) == one_dense
    assert one_dense == (dense + ours.calculate_fwd_flops([64], args_of())) / 2


# slime is on no package index: these modules have its names and signatures.


@pytest.fixture
def slime(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    balancing = ModuleType("slime.utils.seqlen_balancing")
    schedules = ModuleType("slime.utils.dp_schedule")

    def karmarkar_karp(seqlen_list, k_partitions, equal_size):
        raise NotImplementedError

    def get_seqlen_balanced_partitions(seqlen_list, k_partitions, equal_size):
        raise NotImplementedError

    def first_fit_pack(total_lengths, max_tokens_per_bin):
        raise NotImplementedError

    def build_dp_schedule(
        args, train_parallel_config, total_lengths, *, global_batch_size, rollout_indices
    ):
        raise NotImplementedError

    for function in (karmarkar_karp, get_seqlen_balanced_partitions, first_fit_pack):
        setattr(balancing, function.__name__, function)
        setattr(schedules, function.__name__, function)  # imported by name there
    schedules.build_dp_schedule = build_dp_schedule
    package, utils = ModuleType("slime"), ModuleType("slime.utils")
    package.utils, utils.seqlen_balancing, utils.dp_schedule = utils, balancing, schedules
    for module in (package, utils, balancing, schedules):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return SimpleNamespace(balancing=balancing, schedules=schedules)


def test_install_reaches_slimes_modules_and_goes_again(slime: SimpleNamespace):
    original = slime.schedules.build_dp_schedule
    ours.install()
    assert slime.balancing.first_fit_pack([3, 3], 6) == [[0, 1]]
    assert slime.schedules.get_seqlen_balanced_partitions([1, 2], 2, True) == [[1], [0]]
    config = {"dp_size": 1, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}
    answer = slime.schedules.build_dp_schedule(
        args_of(max_tokens_per_gpu=6), config, [3, 3], global_batch_size=2, rollout_indices=[0, 1]
    )
    assert answer == ([[0, 1]], [[[0, 1]]], [1], [2])
    ours.uninstall()
    assert slime.schedules.build_dp_schedule is original
    with pytest.raises(NotImplementedError):
        slime.schedules.first_fit_pack([1], 1)


def test_a_slime_with_other_arguments_is_left_as_it_is(slime: SimpleNamespace):
    def build_dp_schedule(args, steps):
        raise NotImplementedError

    slime.schedules.build_dp_schedule = build_dp_schedule
    with pytest.raises(ValueError, match=r"build_dp_schedule takes \(args, steps\), must be"):
        ours.install()
    with pytest.raises(NotImplementedError):
        slime.balancing.first_fit_pack([1], 1)


@pytest.fixture
def older_slime(slime: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """As of pull request 1823: no schedules on the rollout side."""

    def get_data_iterator(args, model, rollout_data):
        raise NotImplementedError

    monkeypatch.setitem(sys.modules, "slime.utils.dp_schedule", None)  # cannot be imported
    del slime.balancing.first_fit_pack
    data, actor = ModuleType("slime.backends.megatron_utils.data"), ModuleType("slime.actor")
    data.get_data_iterator = actor.get_data_iterator = get_data_iterator
    data.get_seqlen_balanced_partitions = slime.balancing.get_seqlen_balanced_partitions
    for name in ("slime.backends", "slime.backends.megatron_utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for module in (data, actor):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return SimpleNamespace(balancing=slime.balancing, data=data, actor=actor)


def test_install_gives_an_older_slime_its_data_iterators(older_slime: SimpleNamespace):
    original = older_slime.data.get_data_iterator
    ours.install("exact")
    for module in (older_slime.data, older_slime.actor):
        assert module.get_data_iterator.func is ours.get_data_iterator
        assert module.get_data_iterator.keywords == {"mode": "exact"}
    assert older_slime.data.get_seqlen_balanced_partitions([1, 2], 2, True) == [[1], [0]]
    ours.uninstall()
    assert older_slime.data.get_data_iterator is original
    assert older_slime.actor.get_data_iterator is original


def test_an_older_slime_without_megatron_gets_the_rest(
    older_slime: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "slime.backends.megatron_utils.data", None)
    ours.install()
    assert older_slime.balancing.get_seqlen_balanced_partitions([1, 2], 2, True) == [[1], [0]]
    ours.uninstall()


def test_a_data_iterator_with_other_arguments_is_left_as_it_is(older_slime: SimpleNamespace):
    def get_data_iterator(rollout_data):
        raise NotImplementedError

    older_slime.data.get_data_iterator = get_data_iterator
    with pytest.raises(ValueError, match=r"get_data_iterator takes \(rollout_data\), must be"):
        ours.install()
    with pytest.raises(NotImplementedError):
        older_slime.balancing.get_seqlen_balanced_partitions([1], 1, True)
