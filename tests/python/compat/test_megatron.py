"""Megatron's schedulers: the one of megatron-core beside ours, and what verl demands of plans."""

import random
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from megatron.core.datasets import data_schedule
from megatron.core.pipeline_parallel import hybrid_cp_schedule
from tensordict import TensorDict

from isochron.compat import megatron as ours

POWERS = [1, 2, 4, 8, 16]
OTHERS = [3, 5, 6, 7, 10, 12, 14]


class Group:
    """As much of a process group as a scheduler asks for."""

    def __init__(self, size: int, rank: int = 0) -> None:
        self._size, self._rank = size, rank

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return type(error), str(error)


def random_batches(seed: int, count: int, sizes: list[int]):
    generator = random.Random(seed)
    for _ in range(count):
        ranks, cap = generator.choice(sizes), generator.choice([4, 10, 100])
        longest = generator.choice([cap, 2 * cap, max(1, cap * ranks // 2), cap * ranks])
        num_samples = generator.randint(0, 20)
        yield ranks, cap, [(i, generator.randint(1, longest)) for i in range(num_samples)]


def test_the_older_scheduler_gives_megatron_cores_groups_and_errors():
    errors = set()
    for ranks, cap, samples in random_batches(1, 10_000, POWERS + OTHERS):
        theirs = hybrid_cp_schedule.BalancedCPScheduler(cap, Group(ranks))
        mine = ours.BalancedCPScheduler(cap, Group(ranks), mode="exact")
        expected = outcome(theirs.get_groups_and_subsamples, samples, None)
        assert outcome(mine.get_groups_and_subsamples, samples, None) == expected
        if isinstance(expected[0], type):
            errors.add(expected[0])
    assert errors == {AssertionError, IndexError}
    mine = ours.BalancedCPScheduler(4, Group(4), mode="exact")
    with pytest.raises(ValueError, match=str(outcome(math_error)[1])):
        mine.get_groups_and_subsamples([(0, 0)], None)


def math_error() -> None:
    import math

    math.log2(0)


def test_the_older_scheduler_by_hand():
    mine = ours.BalancedCPScheduler(4, Group(4), mode="exact")
    lengths, ids = mine.get_groups_and_subsamples([(0, 7), (1, 3), (2, 5)], None)
    assert ids == [[[0], [0], [2], [2]], [[1], [1], [1], [1]]]
    assert lengths == [[[7], [7], [5], [5]], [[3], [3], [3], [3]]]


def dynamic(ranks: int, cap: int, group: int | None = None, mode: str = "exact"):
    return ours.DefaultDynamicCPScheduler(
        max_seqlen_per_dp_cp_rank=cap,
        cp_size=1,
        dp_size=ranks,
        microbatch_group_size_per_vp_stage=group,
        mode=mode,
    ).get_groups_and_subsamples


@pytest.mark.parametrize(
    ("lengths", "ranks", "cap", "groups"),
    [
        ([6144, 2048], 2, 4096, [[[0, 1], [0, 1]]]),
        ([50, 50], 14, 100, [[[0, 1]] * 14]),
        ([7, 3, 5], 4, 4, [[[0], [0], [2, 1], [2, 1]]]),
        ([3900, 1000, 1000, 500], 2, 2000, [[[0], [0]], [[1, 3], [2]]]),
        (
            [16000, 1000, 1000, 1000, 1000, 2000, 3000, 4000],
            4,
            4096,
            [[[0]] * 4, [[7], [6, 1], [5, 2, 3], [4]]],
        ),
        ([1000] * 5, 4, 4096, [[[0, 4], [1], [2], [3]]]),
        ([100], 4, 4096, [[[0]] * 4]),
        ([], 4, 100, []),
    ],
)
def test_the_dynamic_scheduler_gives_its_golden_answers(lengths, ranks, cap, groups):
    assert dynamic(ranks, cap)(list(enumerate(lengths))) == groups
    named = [(10 + i, length) for i, length in enumerate(lengths)]
    assert dynamic(ranks, cap)(named) == [
        [[10 + i for i in rank] for rank in group] for group in groups
    ]


@pytest.mark.parametrize(
    ("lengths", "ranks", "cap", "group", "error", "text"),
    [
        (
            [9000],
            4,
            2000,
            None,
            AssertionError,
            "Sequence length 9000 requires CP size 8, but only",
        ),
        ([500], 6, 100, None, AssertionError, "requires CP size 8, but only 6 DPxCP ranks are av"),
        ([3, 3], 10, 8, None, IndexError, "list assignment index out of range"),
        ([32, 7], 6, 8, 2, RuntimeError, "does not end"),
        ([100], 4, 4096, 2, AssertionError, "no tail microbatch has enough ids to split"),
        ([0], 4, 4096, None, ValueError, ""),
    ],
)
def test_where_the_dynamic_scheduler_fails_exact_mode_does(lengths, ranks, cap, group, error, text):
    with pytest.raises(error, match=text):
        dynamic(ranks, cap, group)(list(enumerate(lengths)))


def test_where_the_dynamic_scheduler_fails_best_mode_finds_a_plan():
    assert dynamic(6, 100, mode="best")([(0, 500)]) == [[[0]] * 6]
    assert dynamic(10, 8, mode="best")([(0, 3), (1, 3)])
    assert len(dynamic(6, 8, 2, mode="best")([(0, 32), (1, 7)])) == 2


def assert_valid(groups, samples, ranks: int, cap: int, multiple: int = 1) -> None:
    """What verl and Megatron demand of a plan, and the padded cap."""
    length_of = dict(samples)
    assert len(groups) % multiple == 0
    seen = []
    for group in groups:
        assert len(group) == ranks
        first = 0
        while first < ranks:
            ids = group[first]
            assert ids  # no rank is idle
            size = sum(each == ids for each in group)
            assert group[first : first + size] == [ids] * size
            assert first % size == 0
            assert size == ranks or (size & (size - 1) == 0 and 2 * size <= ranks)
            pad = 2 * size if size > 1 else 1
            assert sum(-(length_of[i] // -pad) * pad for i in ids) <= cap * size
            seen += ids
            first += size
    assert sorted(seen) == sorted(length_of)


@pytest.mark.parametrize("sizes", [POWERS, OTHERS], ids=["powers of two", "other numbers"])
def test_best_groups_are_aligned_under_the_cap_and_leave_no_rank_idle(sizes: list[int]):
    num_planned = 0
    for ranks, cap, samples in random_batches(2, 1_500, sizes):
        answer = outcome(dynamic(ranks, cap, mode="best"), samples)
        if isinstance(answer, tuple):
            assert answer[0] is ValueError
            pad = 2 * ranks if ranks > 1 else 1
            assert any(-(length // -pad) * pad > cap * ranks for _, length in samples), answer
            continue
        assert_valid(answer, samples, ranks, cap)
        num_planned += 1
    assert num_planned > 1_000


def test_best_groups_of_the_older_scheduler_are_valid_too():
    for ranks, cap, samples in random_batches(3, 300, [*POWERS, *OTHERS]):
        mine = ours.BalancedCPScheduler(cap, Group(ranks))
        answer = outcome(mine.get_groups_and_subsamples, samples, None)
        if isinstance(answer[0], type):
            continue
        lengths, ids = answer
        assert_valid(ids, samples, ranks, cap)
        length_of = dict(samples)
        assert lengths == [[[length_of[i] for i in rank] for rank in group] for group in ids]


@pytest.mark.parametrize("multiple", [2, 4])
def test_best_counts_are_a_multiple_where_stages_are_virtual(multiple: int):
    num_planned = 0
    for ranks, cap, samples in random_batches(4, 200, [1, 2, 4, 6, 8]):
        answer = outcome(dynamic(ranks, cap, multiple, mode="best"), samples)
        if isinstance(answer, tuple):
            continue
        assert_valid(answer, samples, ranks, cap, multiple)
        num_planned += 1
    assert num_planned > 100


def dp_balanced(dp: int, cp: int, cap: int, mode: str, **options):
    return ours.DpBalancedScheduler(
        cap, cp, dp, options.get("group"), options.get("max_num_seqs"), mode=mode
    ).get_groups_and_subsamples


def test_the_static_scheduler_packs_in_order():
    samples = [(i, length) for i, length in enumerate([3, 3, 5, 5, 3])]
    assert dp_balanced(1, 1, 8, "exact")(samples) == [[[0, 1]], [[2]], [[3, 4]]]
    assert dp_balanced(2, 1, 8, "exact")(samples) == [[[0, 1], [2]], [[3], [4]]]
    assert dp_balanced(1, 2, 4, "exact")(samples) == [[[0, 1]] * 2, [[2]] * 2, [[3, 4]] * 2]
    assert dp_balanced(1, 1, 8, "exact", max_num_seqs=1)(samples) == [[[i]] for i in range(5)]
    assert dp_balanced(1, 1, 8, "exact")([(7, 9), (8, 1), (9, 2)]) == [[[]], [[0]], [[1, 2]]]
    assert dp_balanced(2, 1, 8, "exact")([(0, 1), (1, 1)]) == [[[0], [1]]]
    assert dp_balanced(2, 1, 8, "exact")([]) == []
    with pytest.raises(AssertionError, match="^Not enough samples to move$"):
        dp_balanced(2, 1, 8, "exact")([(0, 1)])


def test_best_static_groups_keep_the_cap_with_fewer_micro_batches():
    generator = random.Random(5)
    num_fewer = 0
    for _ in range(2_000):
        dp, cp, cap = generator.choice([1, 2, 3]), generator.choice([1, 2]), 20
        group = generator.choice([None, None, 2])
        samples = [
            (100 + i, generator.randint(1, cap * cp)) for i in range(generator.randint(1, 30))
        ]
        theirs = outcome(dp_balanced(dp, cp, cap, "exact", group=group), samples)
        answer = outcome(dp_balanced(dp, cp, cap, "best", group=group), samples)
        if isinstance(answer, tuple):
            assert answer == theirs == (AssertionError, "Not enough samples to move")
            continue
        length_of = dict(samples)
        assert len(answer) % (group or 1) == 0
        for ranks in answer:
            assert all(ids and sum(length_of[i] for i in ids) <= cap * cp for ids in ranks)
            assert all(ranks[rank] == ranks[rank // cp * cp] for rank in range(dp * cp))
        assert sorted(i for ranks in answer for ids in ranks[::cp] for i in ids) == sorted(
            length_of
        )
        if isinstance(theirs, list):
            assert len(answer) <= len(theirs)
            num_fewer += len(answer) < len(theirs)
    assert num_fewer > 100
    with pytest.raises(ValueError, match="sequence 1"):
        dp_balanced(1, 1, 8, "best")([(0, 3), (1, 9)])


# install()


@pytest.fixture
def installed():
    yield ours.install
    ours.uninstall()


def test_the_real_loader_gets_our_scheduler_and_back(installed):
    original = hybrid_cp_schedule.BalancedCPScheduler
    groups = SimpleNamespace(dp_cp=Group(4), dp=Group(4), tp=Group(1))
    config = SimpleNamespace(max_seqlen_per_dp_cp_rank=4)

    def scheduler():
        wrapper = data_schedule.HybridCPDataLoaderWrapper(None, config, groups)
        return wrapper.cp_balancing_scheduler

    assert type(scheduler()) is original
    installed()
    assert isinstance(scheduler(), original)
    assert (
        hybrid_cp_schedule.BalancedCPScheduler is data_schedule.BalancedCPScheduler is not original
    )
    samples = [(0, 7), (1, 3), (2, 5)]
    best = ours.BalancedCPScheduler(4, Group(4)).get_groups_and_subsamples(samples, config)
    assert scheduler().get_groups_and_subsamples(samples, config) == best
    installed("exact")
    exact = original(4, Group(4)).get_groups_and_subsamples(samples, config)
    assert scheduler().get_groups_and_subsamples(samples, config) == exact
    ours.uninstall()
    assert type(scheduler()) is original
    assert hybrid_cp_schedule.BalancedCPScheduler is original


def test_the_scheduler_map_of_newer_versions_is_filled(installed, monkeypatch: pytest.MonkeyPatch):
    class DefaultDynamicCPScheduler:
        """With the attributes of the development branch."""

        def __init__(self, max_seqlen_per_dp_cp_rank, cp_size, dp_size, group, min_cp_size=1):
            self.max_seqlen_per_dp_cp_rank = max_seqlen_per_dp_cp_rank
            self.cp_size, self.dp_size = cp_size, dp_size
            self.microbatch_group_size_per_vp_stage = group
            self.min_cp_size = min_cp_size

        def get_groups_and_subsamples(self, sample_id_seqlens):
            raise NotImplementedError

        def run(self):
            return self.get_groups_and_subsamples([(0, 500)])

    name = "DefaultDynamicCPScheduler"
    scheduler_map = {"default_dynamic_cp": DefaultDynamicCPScheduler}
    monkeypatch.setattr(data_schedule, name, DefaultDynamicCPScheduler, raising=False)
    monkeypatch.setattr(data_schedule, "scheduler_map", scheduler_map, raising=False)
    installed()
    assert scheduler_map["default_dynamic_cp"] is data_schedule.DefaultDynamicCPScheduler
    assert scheduler_map["default_dynamic_cp"](100, 1, 6, None).run() == [[[0]] * 6]
    ours.uninstall()
    assert scheduler_map == {"default_dynamic_cp": DefaultDynamicCPScheduler}
    assert data_schedule.DefaultDynamicCPScheduler is DefaultDynamicCPScheduler


# verl's own adapter: it rejects a plan with an idle rank, a gap or a start that is not aligned.


@pytest.mark.parametrize("mode", ["best", "exact"])
def test_verls_dynamic_cp_adapter_accepts_the_plans(monkeypatch: pytest.MonkeyPatch, mode: str):
    from verl.utils import dynamic_cp_scheduler

    class InMode(ours.DefaultDynamicCPScheduler):
        def __init__(self, **options) -> None:
            super().__init__(**options, mode=mode)

    monkeypatch.setattr(
        dynamic_cp_scheduler, "get_megatron_dynamic_cp_scheduler_cls", lambda: InMode
    )
    generator = random.Random(6)
    for ranks in [2, 4, 8] if mode == "exact" else [2, 4, 6, 8, 10]:
        for _ in range(5):
            lengths = [generator.randint(1, 16 * ranks) for _ in range(generator.randint(1, 9))]
            rows = [torch.arange(length) for length in lengths]
            batch = TensorDict(
                {"input_ids": torch.nested.as_nested_tensor(rows, layout=torch.jagged)},
                batch_size=[len(rows)],
            )
            adapter = dynamic_cp_scheduler.DynamicCPScheduler(32, dp_size=ranks, cp_size=1)
            led = []
            for rank in range(ranks):
                for part in adapter.schedule(batch, Group(ranks, rank), tp_size=1):
                    if part[dynamic_cp_scheduler.DCP_GROUP_LEADER]:
                        led += part[dynamic_cp_scheduler.DCP_SAMPLE_IDS]
            assert sorted(led) == list(range(len(lengths)))


def test_an_unknown_mode_is_refused():
    with pytest.raises(
        ValueError, match=r'^\[DpBalancedScheduler\] mode is "fast", must be best or '
    ):
        ours.DpBalancedScheduler(8, 1, 1, None, mode="fast")


def test_modules_that_are_no_modules_are_left_alone(monkeypatch: pytest.MonkeyPatch, installed):
    lazy = ModuleType("lazy")
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    monkeypatch.setitem(sys.modules, "gone", None)
    installed()
    assert "BalancedCPScheduler" not in vars(lazy)
