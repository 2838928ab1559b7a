"""Padded batches mean what they mean to verl 0.9.1."""

import pytest
import torch
from tensordict import TensorDict
from verl.workers.utils.padding import left_right_2_no_padding, no_padding_2_padding

from batches import assert_rows_equal
from isochron.torch import jagged_from_padded, last_tokens, padded_from_jagged, shift_right

PROMPT_WIDTH, ANSWER_WIDTH = 6, 9


def padded_batch(seed: int) -> TensorDict:
    """Prompts padded left, answers right, as a rollout gives them."""
    generator = torch.Generator().manual_seed(seed)
    prompts = torch.randint(1, PROMPT_WIDTH + 1, (7, 1), generator=generator)
    answers = torch.randint(1, ANSWER_WIDTH + 1, (7, 1), generator=generator)
    prompt_mask = torch.arange(PROMPT_WIDTH) >= PROMPT_WIDTH - prompts
    answer_mask = torch.arange(ANSWER_WIDTH) < answers
    mask = torch.cat([prompt_mask, answer_mask], 1).long()
    ids = torch.randint(1, 99, mask.shape, generator=generator) * mask
    return TensorDict(
        {
            "input_ids": ids,
            "prompts": ids[:, :PROMPT_WIDTH],
            "responses": ids[:, PROMPT_WIDTH:],
            "attention_mask": mask,
            "response_mask": answer_mask.long(),
            "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
        },
        batch_size=[7],
    )


@pytest.mark.parametrize("seed", range(20))
def test_rows_and_answers_are_those_of_verl(seed):
    batch = padded_batch(seed)
    mask = batch["attention_mask"]
    ids = jagged_from_padded(batch["input_ids"], mask)
    positions = jagged_from_padded(batch["position_ids"], mask)
    answer_lengths = batch["response_mask"].sum(1)
    of_verl = left_right_2_no_padding(batch)
    assert_rows_equal(ids, of_verl["input_ids"].unbind())
    assert_rows_equal(positions, of_verl["position_ids"].unbind())

    log_probs = torch.nested.nested_tensor_from_jagged(ids.values().double().sin(), ids.offsets())
    answers = padded_from_jagged(
        last_tokens(shift_right(log_probs), answer_lengths), width=ANSWER_WIDTH
    )
    assert torch.equal(answers, no_padding_2_padding(log_probs, of_verl))
