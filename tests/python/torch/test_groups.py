"""Which context groups stay open from step to step."""

import random

from batches import message_of, plan_of
from isochron.torch import ContextGroups
from isochron.torch.groups import GroupCache


def groups_of(plan):
    """The groups of several ranks in the order of the plan, each once."""
    found = (tuple(group.ranks) for slot in plan.microbatches for group in slot)
    return list(dict.fromkeys(ranks for ranks in found if len(ranks) > 1))


def plan_on(ranks_of_group, num_ranks):
    """A plan in which one sequence needs so many ranks, and nothing else runs."""
    return plan_of([16 * ranks_of_group], num_ranks, 16, context=f"static:{ranks_of_group}")


def test_what_is_open_is_not_opened_again():
    cache = GroupCache(4)
    pair = plan_on(2, 4)
    assert cache.advance(pair) == ([], [(0, 1)])
    assert cache.advance(pair) == ([], [])


def test_the_one_that_was_used_least_recently_is_closed():
    cache = GroupCache(2)
    pair, all_ranks, three = plan_on(2, 12), plan_on(12, 12), plan_on(3, 12)
    assert cache.advance(pair) == ([], [(0, 1)])
    assert cache.advance(all_ranks) == ([], [tuple(range(12))])
    assert cache.advance(pair) == ([], [])
    assert cache.advance(three) == ([tuple(range(12))], [(0, 1, 2)])
    assert cache.advance(all_ranks) == ([(0, 1)], [tuple(range(12))])


def test_random_plans_keep_the_limit_and_lose_nothing_that_they_need():
    draw = random.Random(1)
    num_closed = num_over = 0
    for max_open in (1, 2, 3, 5):
        cache, is_open = GroupCache(max_open), set()
        for _ in range(60):
            lengths = [draw.choice([3, 9, 20, 40, 70]) for _ in range(draw.randint(1, 12))]
            plan = plan_of(lengths, 6, 16, context=draw.choice(["dynamic", "dynamic:any"]))
            needed = groups_of(plan)
            closed, opened = cache.advance(plan)
            assert opened == [ranks for ranks in needed if ranks not in is_open]
            assert is_open >= set(closed)
            assert not set(closed) & set(needed)
            before = is_open | set(opened)
            is_open = before - set(closed)
            for rank in range(6):
                count = sum(rank in ranks for ranks in is_open)
                own = sum(rank in ranks for ranks in needed)
                assert count <= max(max_open, own)
                num_over += count > max_open
            for ranks in closed:  # some member had too many
                counts = [sum(rank in other for other in before) for rank in ranks]
                assert max(counts) > max_open
            num_closed += len(closed)
    assert num_closed > 50
    assert num_over > 0


def test_a_limit_below_one_is_an_error():
    message = message_of(lambda: ContextGroups(max_open=0))
    assert message == "[ContextGroups] max_open is 0, must be at least 1"
