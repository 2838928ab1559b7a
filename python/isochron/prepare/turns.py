"""Which tokens of a conversation are trained: message by message through the chat template.

A template renders whole conversations and does not say which token came from which message. So
every message is rendered alone, which gives its tokens and more: what the template puts in front of
a conversation (BOS, a default system prompt). Two probes say how much that is:

    one empty user message      [system prompt][user]
    two of them                 [system prompt][user][user]        ->  len([user]), [system prompt]
    one, to be answered         [system prompt][user][generation prompt]

Every message but the first loses its system prompt; of an assistant message the generation prompt
is not trained, because at inference it is given. Rendering the whole conversation at once must give
the same tokens.
"""

import dataclasses
from typing import Any

import numpy as np

from isochron.prepare.conversation import Conversation, Message
from isochron.prepare.rendering import RejectedError, Rendering, Template, join
from isochron.prepare.source import RowError


@dataclasses.dataclass(frozen=True)
class Probes:
    """What a template adds to messages."""

    system_prompt: np.ndarray  # tokens in front of every conversation without a system message
    generation_prompt: np.ndarray  # tokens after a conversation that is to be answered
    num_user_tokens: int  # of an empty user message


@dataclasses.dataclass(frozen=True)
class Turns:
    """A conversation as tokens."""

    rendering: Rendering  # of the messages one by one; media of the whole conversation
    loss_mask: np.ndarray  # uint8 [tokens], 1 where trained
    mismatch: str  # how the whole conversation differs; empty if it does not
    # Assistant messages that do not start with the generation prompt, though as many of their
    # tokens are not trained.
    num_without_prompt: int


class TurnRenderer:
    """Renders conversations; remembers what the template adds."""

    def __init__(self, template: Template, kwargs: dict[str, Any]) -> None:
        """`kwargs` go to the template, at every call."""
        self._template = template
        self._kwargs = kwargs
        self._user = {"role": "user", "content": template.text_content("")}
        self._probes: dict[bool | None, Probes] = {}

    def turns(self, conversation: Conversation) -> Turns:
        """The tokens and the mask of `conversation`. Raises RowError if the template rejects it."""
        messages = conversation.messages
        kwargs = self._kwargs_of(conversation.enable_thinking)
        probes = self.probes(conversation.enable_thinking)
        try:
            whole = self._template.render(messages, conversation.tools, kwargs)
        except RejectedError as error:
            raise RowError(f"is rejected by the chat template: {error}") from error

        parts, masks, num_without_prompt = [], [], 0
        for index, message in enumerate(messages):
            tools = conversation.tools if index == 0 else None
            part = self._message(index, message, tools, kwargs, probes)
            mask = np.zeros(len(part.ids), dtype=np.uint8)
            if message["role"] == "assistant":
                # The first message still has its system prompt, which is no part of an answer.
                start = _shared(part.ids, probes.system_prompt) if index == 0 else 0
                end = start + len(probes.generation_prompt)
                mask[end:] = 1
                num_without_prompt += not np.array_equal(
                    part.ids[start:end], probes.generation_prompt
                )
            parts.append(part)
            masks.append(mask)
        joined = join(parts)
        return Turns(
            dataclasses.replace(joined, media=whole.media),
            np.concatenate(masks),
            self._mismatch(parts, joined, whole, messages),
            num_without_prompt,
        )

    def probes(self, enable_thinking: bool | None) -> Probes:
        """What the template adds under this setting. Raises RowError if it rejects the probes."""
        if enable_thinking not in self._probes:
            try:
                self._probes[enable_thinking] = self._probe(self._kwargs_of(enable_thinking))
            except RejectedError as error:
                raise RowError(
                    "cannot be cut into messages: the chat template rejects an empty "
                    f"user message: {error}"
                ) from error
        return self._probes[enable_thinking]

    def _kwargs_of(self, enable_thinking: bool | None) -> dict[str, Any]:
        if enable_thinking is None:
            return self._kwargs
        return {**self._kwargs, "enable_thinking": enable_thinking}

    def _probe(self, kwargs: dict[str, Any]) -> Probes:
        one = self._template.render([self._user], None, kwargs).ids
        asked = self._template.render(
            [self._user], None, {**kwargs, "add_generation_prompt": True}
        ).ids
        try:
            num_user_tokens = len(self._template.render([self._user] * 2, None, kwargs).ids) - len(
                one
            )
        except RejectedError:  # roles must alternate
            answered = [self._user, {"role": "assistant", "content": self._user["content"]}]
            num_user_tokens = len(
                self._template.render([*answered, self._user], None, kwargs).ids
            ) - len(self._template.render(answered, None, kwargs).ids)
        num_user_tokens = max(0, min(num_user_tokens, len(one)))
        return Probes(one[: len(one) - num_user_tokens], asked[len(one) :], num_user_tokens)

    def _message(
        self,
        index: int,
        message: Message,
        tools: list[dict[str, Any]] | None,
        kwargs: dict[str, Any],
        probes: Probes,
    ) -> Rendering:
        try:
            part = self._template.render([message], tools, kwargs)
        except RejectedError as error:
            part = self._beside_user(index, message, tools, kwargs, probes, error)
        if index != 0 and message["role"] != "system":
            part = part.part(len(probes.system_prompt))
        return part

    def _beside_user(
        self,
        index: int,
        message: Message,
        tools: list[dict[str, Any]] | None,
        kwargs: dict[str, Any],
        probes: Probes,
        alone: RejectedError,
    ) -> Rendering:
        """A message that the template takes beside a user message only, without the tokens of that.

        The user message stands in front. A system message that opens the conversation comes first
        in every template, so there it follows.
        """
        num_user = probes.num_user_tokens
        try:
            if index == 0 and message["role"] == "system":
                both = self._template.render([message, self._user], tools, kwargs)
                return both.part(0, len(both.ids) - num_user)
            user = self._template.render([self._user], tools, kwargs)
            both = self._template.render([self._user, message], tools, kwargs)
        except RejectedError:
            raise RowError(
                f"messages[{index}] ({message['role']}) is rejected by the chat template: {alone}"
            ) from alone
        return join([user.part(0, len(user.ids) - num_user), both.part(len(user.ids))])

    def _mismatch(
        self, parts: list[Rendering], joined: Rendering, whole: Rendering, messages: list[Message]
    ) -> str:
        if np.array_equal(joined.ids, whole.ids):
            return ""
        both = min(len(joined.ids), len(whole.ids))
        different = np.flatnonzero(joined.ids[:both] != whole.ids[:both])
        at = int(different[0]) if len(different) else both
        ends = np.cumsum([len(part.ids) for part in parts])
        index = min(int(np.searchsorted(ends, at, side="right")), len(parts) - 1)
        here, there = (
            repr(self._template.decode(r.ids[at : at + 8].tolist())) for r in (joined, whole)
        )
        return (
            f"token {at} (messages[{index}], {messages[index]['role']}) differs: message by "
            f"message it reads {here}, in the whole conversation {there}"
        )


def _shared(ids: np.ndarray, prefix: np.ndarray) -> int:
    """The length of `prefix` if `ids` start with it, else 0."""
    return len(prefix) if np.array_equal(ids[: len(prefix)], prefix) else 0
