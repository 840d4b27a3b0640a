"""The context window of a model: what fits, and how a cut prompt is detected.

Ollama cuts a prompt that is too long down to about half of its window, from the front, and still
answers with status 200. What the model reads then lacks its role and its goal.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from prism.errors import LLMError
from prism.reasoner._spending import count_of, loop_time
from prism.reasoner._tokens import count_tokens

_NEAR_HALF = 5
"""Largest distance from half of the window of a cut prompt's token count."""

_OVER_HALF = 1.2
_OVER_ALL = 1.7
"""Least ratio of a cut prompt's estimate to its count: near half of the window, and anywhere."""

_LEAST = 200
"""A prompt with a smaller estimate fits into any window, so its count alone proves nothing: for the
shortest prompts, servers' own counts are far off."""

_SURE = 0.9
"""A prompt whose estimate takes at most this part of the window was not cut, whatever the count."""

_LOOK_AGAIN_SECONDS = 30.0
"""Seconds for which a reported window is trusted, while prompts may have been cut."""

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_DIGITS = re.compile(r"[0-9]{1,3}")
_REPEATED = re.compile(r"(.)\1{7,}")


class Prompt:
    """The texts of a conversation, whose tokens are counted on demand.

    Args:
        messages: The conversation.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        contents = (message.get("content") for message in messages)
        self._texts = [content for content in contents if isinstance(content, str)]

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return sum(map(count_tokens, self._texts))

    @cached_property
    def sure_tokens(self) -> int:
        """The estimated number of tokens in ASCII words, which all tokenizers read alike."""
        plain = "\n".join(_NOT_ASCII.sub("", text) for text in self._texts)
        return count_tokens(_REPEATED.sub(r"\1", _DIGITS.sub("1", plain)))


def lacking_room(prompt: Prompt, window: int | None, reply: int | None) -> str | None:
    """Return in words why a prompt and its reply do not fit into a window; None if they fit.

    Args:
        prompt: The prompt.
        window: Tokens of the window; None if they are unknown.
        reply: Tokens of the reply; None if they are unknown.
    """
    room = None if window is None else window - (reply or 0)
    if room is None or prompt.tokens <= room:
        return None

    of_reply = f" and {reply} of the reply" if reply else ""
    return (
        f"about {prompt.tokens} tokens of the prompt{of_reply} exceed the window of {window} "
        f"by {prompt.tokens - room}"
    )


def was_cut(prompt: Prompt, count: Any, window: int | None, *, is_told: bool = True) -> bool:
    """Return True if a server read only a part of a prompt.

    Args:
        prompt: The prompt.
        count: Number of tokens that the server says it has read; 0 or None for unknown.
        window: Tokens of its window; None if they are unknown.
        is_told: Whether the server itself reported the window, so a prompt that fits was not cut.
    """
    read = count_of(count)
    if not read or not is_doubtful(prompt, read, window):
        return False
    if is_told and window is not None and prompt.tokens <= _SURE * window:
        return False
    if is_near_half(read, window):
        return True

    least = max(_LEAST, _OVER_ALL * read)
    return prompt.tokens > least and prompt.sure_tokens > least


def is_doubtful(prompt: Prompt, count: Any, window: int | None) -> bool:
    """Return True if a prompt may have been cut, so the server's window must be looked up."""
    read = count_of(count)
    if not read or prompt.tokens <= _OVER_HALF * read:
        return False
    return window is not None or prompt.tokens >= _LEAST


def is_near_half(count: int, window: int | None) -> bool:
    """Return True if a count is about that of a cut prompt."""
    return window is not None and abs(count - window / 2) <= _NEAR_HALF


class Window:
    """The window of a model on a server.

    Args:
        asked: Tokens of prompt and reply together that the user has set, if any.
        reply: Tokens that a reply may have, if limited.
        report: Returns the window that the server reports, if it does.

    Attributes:
        told: Tokens that the server reported; None if it did not.
        tokens: Tokens of prompt and reply together; None if neither user nor server has set them.
    """

    def __init__(
        self, asked: int | None, reply: int | None, report: Callable[[], Awaitable[int | None]]
    ) -> None:
        self.told: int | None = None
        self.tokens: int | None = asked
        self._asked = asked
        self._reply = reply
        self._report = report
        self._has_looked = False
        self._looks_again = 0.0

    async def look(self) -> int | None:
        """Return the window on the server; None if the server does not report it.

        The reported window applies from then on. Ollama reports the window only of a loaded model.

        Raises:
            LLMError: If the server cannot be asked.
        """
        self._has_looked = True
        self.told = await self._report() or self.told
        known = [each for each in (self._asked, self.told) if each is not None]
        self.tokens = min(known, default=None)
        return self.told

    async def look_once(self) -> None:
        """Look up the window, unless it was looked up before, with or without an answer."""
        if not self._has_looked:
            with suppress(LLMError):
                await self.look()

    def lacking(self, prompt: Prompt) -> str | None:
        """Return in words why a prompt and its reply do not fit; None if they do."""
        return lacking_room(prompt, self.tokens, self._reply)

    async def what_was_cut(self, prompt: Prompt, count: Any) -> str | None:
        """Return in words that the server has read only a part of a prompt; None if it read all.

        Args:
            prompt: The prompt.
            count: Number of tokens that the server says it has read.
        """
        read = count_of(count)
        if not read or not is_doubtful(prompt, read, self.tokens):
            return None

        # a restarted server may have another window
        if loop_time() >= self._looks_again:
            self._looks_again = loop_time() + _LOOK_AGAIN_SECONDS
            with suppress(LLMError):
                await self.look()

        if not was_cut(prompt, read, self.tokens, is_told=self.told is not None):
            return None

        near = f", half of its window of {self.tokens}" if is_near_half(read, self.tokens) else ""
        return f"read {read} of about {prompt.tokens} tokens{near}: the prompt was cut"


def window_in_models(reply: Any, model: str) -> tuple[int | None, bool]:
    """Return the window that an OpenAI-compatible server lists with a model.

    Returns:
        The window, or None, and whether that is final: llama.cpp lists the window that the model
        was made for, and its own may be smaller.
    """
    found = _listed(reply, "data")
    own = next((each for each in found if each.get("id") == model), None)
    # llama.cpp serves its one model by any name
    own = found[0] if own is None and len(found) == 1 else own or {}

    # vLLM's and SGLang's word
    told = _tokens(own.get("max_model_len"))
    if told is not None:
        return told, True

    meta = own.get("meta")
    made_for = _tokens(meta.get("n_ctx_train")) if isinstance(meta, dict) else None
    return made_for, made_for is None


def window_in_props(
    reply: Any,
    model: str = "",  # noqa: ARG001 - it serves one
) -> tuple[int | None, bool]:
    """Return the window of one slot of a llama.cpp server, or None; this is final."""
    settings = reply.get("default_generation_settings") if isinstance(reply, dict) else None
    return (_tokens(settings.get("n_ctx")) if isinstance(settings, dict) else None), True


def window_in_running(reply: Any, model: str) -> tuple[int | None, bool]:
    """Return the window with which Ollama loaded a model, or None; this is final."""
    names = {model, model if ":" in model else f"{model}:latest"}
    own = (
        each for each in _listed(reply, "models") if names & {each.get("model"), each.get("name")}
    )
    return _tokens(next(own, {}).get("context_length")), True


def _listed(reply: Any, key: str) -> list[dict[str, Any]]:
    listed = reply.get(key) if isinstance(reply, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _tokens(value: Any) -> int | None:
    return count_of(value) or None
