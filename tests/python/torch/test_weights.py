"""Loss weights: one denominator for the whole batch, whatever the plan."""

import pytest
import torch

from batches import MIXED_LENGTHS, all_microbatches, jagged_rows, message_of, plan_of, random_field
from isochron.torch import pack_next, shard_of, token_weights

MASK = jagged_rows([torch.tensor([1, 0, 1, 1]), torch.tensor([0, 0]), torch.tensor([1, 1, 0])])


@pytest.mark.parametrize(
    "aggregation, expected",
    [
        ("token-mean", [0, 0, 1 / 3, 1 / 3, 0, 0, 0, 1 / 3, 0]),
        ("token-sum", [0, 0, 1, 1, 0, 0, 0, 1, 0]),
        ("seq-mean-token-sum", [0, 0, 1 / 3, 1 / 3, 0, 0, 0, 1 / 3, 0]),
        ("seq-mean-token-mean", [0, 0, 1 / 6, 1 / 6, 0, 0, 0, 1 / 3, 0]),
        ("seq-mean-token-sum-norm", [0, 0, 1 / 24, 1 / 24, 0, 0, 0, 1 / 24, 0]),
    ],
)
def test_the_first_token_of_a_row_counts_nowhere(aggregation, expected):
    weights = token_weights(
        plan_of([4, 2, 3], 1, 16), MASK, aggregation, loss_scale_factor=8, dtype=torch.float64
    )
    assert weights.values().tolist() == pytest.approx(expected, abs=1e-15)
    assert weights.offsets().tolist() == [0, 4, 6, 9]


def test_dropped_rows_and_padding_rows_do_not_count():
    plan = plan_of([4, 5, 6], 2, 6, counts="equal", short="drop")
    assert list(plan.dropped) == [2]
    ones = jagged_rows([torch.ones(n) for n in (4, 5, 6)])
    mean = token_weights(plan, ones, "seq-mean-token-sum", dtype=torch.float64)
    assert mean.values().tolist() == [0, *[0.5] * 3, 0, *[0.5] * 4, *[0] * 6]
    padded = plan_of([4, 5, 6], 2, 16, pad_multiple=4)
    assert float(token_weights(padded, ones, "seq-mean-token-sum").values().max()) == pytest.approx(
        1 / 3
    )


def test_a_batch_without_a_trained_token_weighs_nothing():
    plan = plan_of([4, 2, 3], 1, 16)
    for mask in (
        torch.zeros_like(MASK),
        jagged_rows([torch.tensor([1] + [0] * (n - 1)) for n in (4, 2, 3)]),
    ):
        assert token_weights(plan, mask).values().tolist() == [0] * 9
        assert token_weights(plan, mask, "seq-mean-token-mean").values().tolist() == [0] * 9


@pytest.mark.parametrize("aggregation", ["token-mean", "seq-mean-token-mean"])
def test_the_loss_does_not_depend_on_the_plan(aggregation):
    mask = random_field(1, MIXED_LENGTHS) % 2
    losses = random_field(2, MIXED_LENGTHS)  # of each token as a label
    totals = []
    for ranks, capacity, options in [
        (1, 128, {}),
        (3, 48, {}),
        (4, 24, {"context": "dynamic", "pad_multiple": 12}),
        (3, 24, {"context": "dynamic:any"}),
    ]:
        plan = plan_of(MIXED_LENGTHS, ranks, capacity, **options)
        weights = token_weights(plan, mask, aggregation, dtype=torch.float64)
        totals.append(
            sum(
                float((pack_next(weights, shard_of(m)) * pack_next(losses, shard_of(m))).sum())
                for part in all_microbatches(plan)
                for m in part
            )
        )
    trained = [row[1:].sum() for row in mask.unbind()]
    sums = [
        (row_mask[1:] * row[1:]).sum()
        for row_mask, row in zip(mask.unbind(), losses.unbind(), strict=True)
    ]
    if aggregation == "token-mean":
        expected = float(sum(sums) / sum(trained))
    else:
        means = [float(s / t) for s, t in zip(sums, trained, strict=True) if t]
        expected = sum(means) / len(MIXED_LENGTHS)
    assert totals == pytest.approx([expected] * 4, rel=1e-13)


def test_mistakes_are_named_in_one_line():
    plan = plan_of([4, 2, 3], 1, 16)
    short = jagged_rows([torch.ones(4)])
    assert (
        message_of(lambda: token_weights(plan, short))
        == "[token_weights] the mask has 1 rows, must have 3"
    )
    assert message_of(lambda: token_weights(plan, MASK, "mean")) == (
        "[token_weights] aggregation is 'mean', must be one of token-mean, token-sum, "
        "seq-mean-token-sum, seq-mean-token-mean, seq-mean-token-sum-norm"
    )
