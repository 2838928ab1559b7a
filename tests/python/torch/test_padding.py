"""Padded rows to jagged ones and back; answers inside sequences."""

import pytest
import torch

from batches import MIXED_LENGTHS, assert_rows_equal, jagged_rows, message_of, random_field
from isochron.torch import (
    extend_left,
    jagged_from_padded,
    last_tokens,
    padded_from_jagged,
    padded_like,
    shift_right,
)

ROWS = jagged_rows([torch.tensor([1, 2, 3]), torch.tensor([4]), torch.tensor([5, 6])])


def test_rows_are_padded_right_and_left():
    assert padded_from_jagged(ROWS).tolist() == [[1, 2, 3], [4, 0, 0], [5, 6, 0]]
    left = padded_from_jagged(ROWS, side="left", width=4, fill=9)
    assert left.tolist() == [[9, 1, 2, 3], [9, 9, 9, 4], [9, 9, 5, 6]]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32, torch.bool])
def test_padding_and_back_changes_nothing(side, shape, dtype):
    field = random_field(1, MIXED_LENGTHS, shape, dtype)
    ones = random_field(1, MIXED_LENGTHS, dtype=torch.bool)
    padded = padded_from_jagged(field, side=side, width=50)
    mask = padded_from_jagged(ones, side=side, width=50)
    assert padded.shape == (len(MIXED_LENGTHS), 50, *shape)
    assert_rows_equal(jagged_from_padded(padded, mask), field.unbind())


def test_prompts_padded_left_and_answers_padded_right_make_one_row():
    mask = torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
    ids = torch.tensor([[0, 1, 2, 3, 0], [4, 5, 6, 0, 0]])
    rows = jagged_from_padded(ids, mask)
    assert_rows_equal(rows, [torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])])
    assert torch.equal(padded_like(rows, mask), ids)


def test_gradients_pass_through_padding():
    padded = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 0, 1], [0, 1, 0]])
    rows = jagged_from_padded(padded, mask)
    back = padded_like(rows, mask, fill=5)
    assert back.tolist() == [[1, 5, 1], [5, 1, 5]]
    (back * torch.arange(6.0).view(2, 3)).sum().backward()
    assert padded.grad.tolist() == [[0, 0, 2], [0, 4, 0]]


def test_answers_are_extended_to_sequences_and_cut_out_again():
    extended = extend_left(ROWS, [5, 1, 3], fill=-1)
    expected = [[-1, -1, 1, 2, 3], [4], [-1, 5, 6]]
    assert_rows_equal(extended, [torch.tensor(row) for row in expected])
    assert_rows_equal(last_tokens(extended, [3, 1, 2]), ROWS.unbind())


def test_an_answer_may_be_empty():
    assert_rows_equal(
        last_tokens(ROWS, [0, 1, 0]),
        [torch.zeros(0, dtype=torch.int64), torch.tensor([4]), torch.zeros(0, dtype=torch.int64)],
    )


def test_a_shift_stays_inside_its_row():
    assert_rows_equal(
        shift_right(ROWS, fill=7),
        [torch.tensor([7, 1, 2]), torch.tensor([7]), torch.tensor([7, 5])],
    )


def test_dims_before_the_tokens_are_kept():
    field = jagged_rows([torch.arange(6).view(2, 3), torch.arange(2).view(2, 1)])
    assert_rows_equal(
        shift_right(field), [torch.tensor([[0, 0, 1], [0, 3, 4]]), torch.zeros(2, 1).long()]
    )
    assert_rows_equal(
        last_tokens(field, [1, 1]), [torch.tensor([[2], [5]]), torch.tensor([[0], [1]])]
    )


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: jagged_from_padded(torch.zeros(2, 3), torch.ones(2, 4)),
         "[jagged_from_padded] padded has the shape [2, 3], must begin with that of the attention "
         "mask, [2, 4]"),
        (lambda: padded_like(ROWS, torch.ones(2, 4)),
         "[padded_like] the attention mask has 2 rows, must have 3"),
        (lambda: padded_like(ROWS, torch.ones(3, 3)),
         "[padded_like] row 1 of the attention mask names 3 tokens, must name 1"),
        (lambda: padded_from_jagged(ROWS, width=2),
         "[padded_from_jagged] width is 2, must be at least 3"),
        (lambda: padded_from_jagged(ROWS, side="top"),
         "[padded_from_jagged] side is 'top', must be 'left' or 'right'"),
        (lambda: last_tokens(ROWS, [3, 2, 1]), "[last_tokens] lengths[1] is 2, must be at most 1"),
        (lambda: last_tokens(ROWS, [3, -1, 1]),
         "[last_tokens] lengths[1] is -1, must be at least 0"),
        (lambda: extend_left(ROWS, [2, 2, 2]), "[extend_left] lengths[0] is 2, must be at least 3"),
        (lambda: extend_left(ROWS, [3, 3]),
         "[extend_left] lengths has the shape [2], must be [3]: one for each row"),
        (lambda: shift_right(torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])),
         "[shift_right] the field is a nested tensor of another layout, must be jagged: "
         "torch.nested.as_nested_tensor(rows, layout=torch.jagged) or jagged_from_padded()"),
    ],
)  # fmt: skip
def test_mistakes_are_named_in_one_line(call, message):
    assert message_of(call) == message
