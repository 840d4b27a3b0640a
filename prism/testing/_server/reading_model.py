"""A model that reads its prompt in a window, with the habits of real models.

The figures here were observed: of a prompt that is too long, an Ollama server keeps about half of
its window; a llama.cpp server that was forced to write a letter gave it 0.0014.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Literal

from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.testing._server.reading import Option, Reading
from prism.testing._server.tokens import TOKEN, count_tokens, tokens_in
from prism.testing._server.wire import Said

_TOKENS_OF_TEMPLATE = 4
"""The text that a server adds to each message of a conversation."""

_LONGEST_WINDOW = 131_072

_FURTHER_TOKENS = 24
"""Number of tokens other than options that share the remaining probability."""

_JUNK = (
    "I'm sorry, but as an AI language model I cannot make this choice for somebody else.",
    "",
    "Sure! Here is a summary of the situation so far, and some thoughts about what it may mean.",
    '{"action": "none of the above"}',
    "the the the the the the the the the the the the",
)

_LOST = "I am not sure what you would like me to do. Could you say more?"


class PromptTooLongError(Exception):
    """A prompt that does not fit into the window, on a server that refuses it."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    """The part of a conversation that fits into the window, and its wording."""

    text: str
    tokens: int
    was_reworded: bool


class ReadingModel:
    """A model for `FakeOllama` and `FakeOpenAI` that answers only from what it reads.

    A few rules replace a language model: it prefers options that share words with the prompt,
    without a list of options does as the example of an answer shows, and writes about what the
    prompt repeats. So a lost goal, a cut prompt or a missing list of options shows in the answers::

        with FakeOllama(reader=ReadingModel(window=2048, first_option=0.3)) as server:
            ...

    Args:
        window: Tokens of prompt and reply together. Ollama's ``num_ctx`` overrides it.
        too_long: What to do with a longer prompt: ``cut`` keeps its last half window, with status
            200, as Ollama does; ``refuse`` answers 400.
        first_option: Share of all questions that are answered with the first option, whatever it
            is: models prefer places and letters (Zheng et al., ICLR 2024).
        option_mass: Total probability of all options, if log-probabilities are requested; other
            tokens share the rest.
        junk: Share of all questions that get a useless answer, until they are asked in other words
            or a further message says what was wrong.
        seed: Seed of the draws. At temperature 0 a conversation always has the same answer; at any
            other temperature, options are drawn by their probabilities and the seed of the request.

    Raises:
        FieldValueError: If a share is not between 0 and 1, or the window has no room.

    Attributes:
        window: Tokens of prompt and reply together, unless the request sets them.
        longest_window: The largest window that a request may ask for, shown by ``/api/show``.
        cuts: How many prompts were cut.
    """

    def __init__(
        self,
        *,
        window: int = 4096,
        too_long: Literal["cut", "refuse"] = "cut",
        first_option: float = 0.0,
        option_mass: float = 1.0,
        junk: float = 0.0,
        seed: int = 0,
    ) -> None:
        shares = {"first_option": first_option, "option_mass": option_mass, "junk": junk}
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise FieldValueError(f"{name} must be between 0 and 1, got {share}")
        if window < 2:
            raise FieldValueError(f"window must be 2 tokens or more, got {window}")
        if too_long not in ("cut", "refuse"):
            raise FieldValueError(f"too_long must be 'cut' or 'refuse', got {too_long!r}")

        self.window: int = window
        self.longest_window: int = max(window, _LONGEST_WINDOW)
        self.cuts: int = 0
        self._refuses = too_long == "refuse"
        self._first_option = first_option
        self._option_mass = option_mass
        self._junk = junk
        self._seed = seed
        self._unseeded = 0
        self._junked: dict[str, list[frozenset[str]]] = {}

    def reply(
        self,
        messages: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None = None,
        *,
        window: int | None = None,
        most_tokens: int | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
    ) -> Said:
        """Return the model's reply to a conversation.

        Args:
            messages: The conversation, with ``role`` and ``content``.
            schema: JSON Schema of the reply; None for a text.
            window: Tokens of the window for this request; None for its own.
            most_tokens: Tokens that the reply may have; None for as many as fit.
            temperature: Temperature of the sampling; 0 takes the likeliest option.
            seed: Seed of the sampling; without one, every answer is drawn anew.

        Raises:
            PromptTooLongError: If the prompt does not fit, and the model refuses such prompts.
        """
        window = min(window or self.window, self.longest_window)
        conversation = self._read(messages, window)
        reading = Reading(conversation.text)
        likeliest = self._chosen(reading)
        weights = self._weights(reading, likeliest)
        chosen, draws = likeliest, None
        if temperature > 0:
            draws = self._draws(reading, seed)
            if likeliest is not None:
                odds = [weights[each.answer] ** (1 / temperature) for each in reading.options]
                chosen = reading.options[draws.weighted_index(odds)]

        text = self._text(conversation, reading, chosen, schema, draws)
        room = max(0, window - conversation.tokens)
        kept, written = _first_tokens(text, min(room, most_tokens or room))

        return Said(
            kept,
            conversation.tokens,
            written,
            "stop" if kept == text else "length",
            weights,
        )

    def choose(self, prompt: str, options: Sequence[str]) -> str:
        """Return the choice among the options of a request."""
        listed = "\n".join(f"- {option}" for option in options)
        chosen = self._chosen(Reading(f"{prompt}\n\n{listed}"))
        return options[0] if chosen is None else chosen.answer

    def _read(self, messages: Sequence[Mapping[str, Any]], window: int) -> _Conversation:
        """Return what fits into the window.

        Raises:
            PromptTooLongError: If the prompt does not fit and may not be cut.
        """
        text = "\n\n".join(str(message.get("content") or "") for message in messages)
        tokens = count_tokens(text) + _TOKENS_OF_TEMPLATE * len(messages)
        was_reworded = any(message.get("role") == "assistant" for message in messages) or (
            self._says_more_than_before(text)
        )
        if tokens <= window:
            return _Conversation(text, tokens, was_reworded)

        if self._refuses:
            raise PromptTooLongError(
                f"This model's maximum context length is {window} tokens. However, your messages "
                f"resulted in {tokens} tokens. Please reduce the length of the messages."
            )

        self.cuts += 1
        return _Conversation(_last_tokens(text, window // 2), window // 2 + 2, was_reworded)

    def _says_more_than_before(self, text: str) -> bool:
        """Return whether a prompt extends one that got junk."""
        lines = frozenset(text.splitlines())
        return any(earlier < lines for earlier in self._junked.get(_first_line(text), ()))

    def _chosen(self, reading: Reading) -> Option | None:
        if reading.options and self._draw("first", reading.text) < self._first_option:
            return reading.options[0]
        return reading.choose()

    def _draws(self, reading: Reading, seed: int | None) -> RandomStream:
        """Return the random numbers that a request is sampled with."""
        if seed is None:
            self._unseeded += 1
        owner = ("unseeded", self._unseeded) if seed is None else ("seeded", seed)

        return RandomStream(self._seed, *owner, reading.text)

    def _text(
        self,
        conversation: _Conversation,
        reading: Reading,
        chosen: Option | None,
        schema: Mapping[str, Any] | None,
        draws: RandomStream | None,
    ) -> str:
        if not conversation.was_reworded and self._draw("junk", reading.text) < self._junk:
            lines = frozenset(conversation.text.splitlines())
            self._junked.setdefault(_first_line(conversation.text), []).append(lines)
            return _JUNK[int(self._draw("kind", reading.text) * len(_JUNK))]

        if schema is not None:
            return json.dumps(self._filled(reading, chosen, schema, draws))
        if chosen is not None:
            key = reading.key_of_answer
            return f"I would choose {chosen.answer}." if key is None else _object(key, chosen)

        return reading.write() if reading.subjects else _LOST

    def _filled(
        self,
        reading: Reading,
        chosen: Option | None,
        schema: Mapping[str, Any],
        draws: RandomStream | None,
    ) -> Any:
        """Return an answer for a schema, with the choice wherever it is allowed.

        If a prompt has no options, all values of a list are equally likely.
        """
        filled = reading.fill(schema)
        for name, member in schema.get("properties", {}).items():
            values = member.get("enum", ())
            if chosen is not None and chosen.answer in values:
                filled[name] = chosen.answer
            elif chosen is None and draws is not None and values:
                filled[name] = values[draws.weighted_index([1.0] * len(values))]

        return filled

    def _weights(self, reading: Reading, chosen: Option | None) -> Mapping[str, float]:
        """Return the probabilities of the tokens in the choice's place, most likely first."""
        if chosen is None:
            return {}

        odds = {one.answer: exp(reading.speaks_for(one)) for one in reading.options}
        # what was chosen for its place is the likeliest, too
        odds[chosen.answer] = 1.5 * max(odds.values())
        share = self._option_mass / sum(odds.values())
        weights = {answer: each * share for answer, each in odds.items()}
        other = (1 - self._option_mass) / _FURTHER_TOKENS
        weights |= {f" other{number}": other for number in range(_FURTHER_TOKENS) if other}

        return dict(sorted(weights.items(), key=lambda item: -item[1]))

    def _draw(self, kind: str, text: str) -> float:
        return RandomStream(self._seed, kind, text).random()


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _first_tokens(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text that has so many tokens at most, and how many it has."""
    count = 0
    for found in TOKEN.finditer(text):
        more = tokens_in(found[0])
        if count + more > most:
            return text[: found.start()], count
        count += more

    return text, count


def _last_tokens(text: str, most: int) -> str:
    """Return the end of a text that has so many tokens at most."""
    count = 0
    for found in reversed(list(TOKEN.finditer(text))):
        count += tokens_in(found[0])
        if count > most:
            return text[found.end() :]

    return text


def _object(key: str, chosen: Option) -> str:
    return json.dumps({key: chosen.answer})
