"""The words of OpenAI's chat completions: what a request says, and what is read from a reply."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from string import ascii_uppercase
from typing import Any, Literal

from prism.errors import ReasonerError
from prism.statechart.reasoner._prompts import answer_schema
from prism.statechart.reasoner._replies import parse_reasoner_response

CHAT = "/chat/completions"
MODELS = "/models"

MOST_ALTERNATIVES = 20
"""How many log-probabilities a server gives for a token, at most."""

FormatKind = Literal["json_schema", "json_object"]
"""How a request says which schema its answer has to follow."""

_NEVER = -10_000.0
"""A logarithm so small that its probability is 0; JSON may carry one that no float can."""

_WRAPPING = " \t\n\"'`:{}▁Ġ"
"""What may stand in one token with the letter of an option, as ``"B`` and ``B"`` in JSON.

The last two are what some servers show for a space.
"""

PARTS: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprob",),
    "response_format": ("response_format", "schema", "grammar", "guided", "structured"),
    "chat_template_kwargs": ("chat_template", "think"),
    "reasoning_effort": ("reasoning", "effort", "think"),
    "seed": ("seed",),
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens",),
}
"""Parts of a request that a server may refuse, and words by which it names them."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What is read from a reply.

    Args:
        text: What the model wrote; empty if nothing.
        input_tokens: Tokens that it read, where known.
        output_tokens: Tokens that it wrote, where known.
        tokens: Those of the reply that the server gives with their alternatives.
    """

    text: str
    input_tokens: int | None
    output_tokens: int | None
    tokens: Sequence[Mapping[str, Any]] = ()


def part_refused(message: str, sent: Container[str]) -> str | None:
    """Return the part of a request that the text of an error names, None if it names none.

    Args:
        message: The text.
        sent: What was sent.
    """
    said = message.lower()
    named = (part for part, words in PARTS.items() if any(word in said for word in words))
    return next((part for part in named if part in sent), None)


def response_format(schema: Mapping[str, Any], kind: FormatKind = "json_schema") -> dict[str, Any]:
    """Return a JSON schema as a request has it; strict if it can be, which OpenAI enforces only.

    Args:
        schema: The schema.
        kind: How to say it: as OpenAI does, or as llama-cpp-python does.
    """
    if kind == "json_object":
        return {"type": kind, "schema": dict(schema)}

    named: dict[str, Any] = {"name": "answer", "schema": dict(schema)}
    if _is_flat(schema):
        # strict schemas have to say that there is nothing else
        named["schema"]["additionalProperties"] = False
        named["strict"] = True

    return {"type": "json_schema", "json_schema": named}


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Return True for an object that a strict schema may describe: plain members, all required."""
    members = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(members, Mapping):
        return False

    simple = all(
        isinstance(member, Mapping)
        and member.get("type") in ("string", "number", "integer")
        # which strict schemas must not have
        and "maxLength" not in member
        for member in members.values()
    )
    return simple and set(schema.get("required", ())) == set(members)


def takes_json_object(message: str, sent: Mapping[str, Any]) -> bool:
    """Return True if the text of an error says that a schema is taken in the other form.

    Args:
        message: The text.
        sent: What was sent.
    """
    kind = sent.get("response_format", {}).get("type")
    return kind == "json_schema" and "json_object" in message


def thinking(think: bool | str | None) -> dict[str, Any]:
    """Return how a request says whether the model may think first, or how much."""
    if think is None:
        return {}
    if isinstance(think, str):
        return {"reasoning_effort": think}

    # the first is Ollama's and OpenAI's word, the second vLLM's, llama.cpp's and SGLang's
    switch = {"chat_template_kwargs": {"enable_thinking": think}}
    return switch if think else {"reasoning_effort": "none", **switch}


def in_ollamas_words(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reply says of its cost, of its end and of an error, as Ollama would say it."""
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    choice = _first_choice(reply)
    said = {
        "prompt_eval_count": usage.get("prompt_tokens"),
        "eval_count": usage.get("completion_tokens"),
        "done_reason": choice.get("finish_reason"),
    }
    # lists of models have no choices, and some servers have an error that is null in every reply
    return said if choice else {**said, "error": reply.get("error")}


def read_completion(reply: Any) -> Completion:
    """Read the reply to a chat.

    Raises:
        ValueError: If it is none.
    """
    choice = _first_choice(reply) if isinstance(reply, dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ValueError("it has no choices with a message")

    said = in_ollamas_words(reply)
    chances = choice.get("logprobs")
    tokens = chances.get("content") if isinstance(chances, dict) else None
    tokens = tokens if isinstance(tokens, list) else []

    return Completion(
        _text_of(message.get("content")),
        said["prompt_eval_count"],
        said["eval_count"],
        [token for token in tokens if isinstance(token, dict) and _listed(token)],
    )


def read_models(reply: Any) -> list[str]:
    """Read a list of models.

    Raises:
        ValueError: If it is none.
    """
    listed = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it has no list of models")

    return [str(item["id"]) for item in listed if isinstance(item, dict) and "id" in item]


def _first_choice(reply: Mapping[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _text_of(content: Any) -> str:
    """Return a message's text, which some servers send in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))

    return content if isinstance(content, str) else ""


@dataclass(frozen=True, slots=True)
class LetteredChoice:
    """A choice question whose options have letters, so that one token tells which is chosen.

    Several options may begin with the same token, as ``engaging_like`` and ``engaging_reply`` do:
    the probabilities of their own first tokens would not tell them apart.

    Args:
        prompt: The question with its options.
        letters: The options by their letters.
    """

    prompt: str
    letters: Mapping[str, str]

    @classmethod
    def of(cls, state: str, question: Mapping[str, Any]) -> LetteredChoice:
        """Put letters to the options of a question in the wire format of ``/v1/systemone``.

        Raises:
            ValueError: If there are more options than a server gives log-probabilities for.
        """
        criteria: Mapping[str, Any] = question["criteria"]
        if len(criteria) > MOST_ALTERNATIVES:
            raise ValueError(
                f"{len(criteria)} options are more than the {MOST_ALTERNATIVES} that a server "
                "gives log-probabilities for: ask in chat mode"
            )

        letters = dict(zip(ascii_uppercase, criteria, strict=False))
        listed = "\n".join(
            f"{letter}: {option}" + (f" ({criteria[option]})" if criteria[option] else "")
            for letter, option in letters.items()
        )
        prompt = (
            f"{state}\n\n{question['instructions']}\n\nOptions:\n{listed}\n\n"
            'Respond with JSON only, with the letter of one option:\n{"next_state": "<letter>"}\n'
        )

        return cls(prompt, letters)

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the reply."""
        return answer_schema(list(self.letters))

    def read(self, completion: Completion) -> dict[str, Any]:
        """Return the option that a reply chooses, and the probability of every option.

        Raises:
            ValueError: If it chooses none, or its tokens do not show the choice.
        """
        try:
            letter = parse_reasoner_response(completion.text, list(self.letters))
        except ReasonerError as error:
            raise ValueError(str(error)) from error

        by_letter = self._chances(completion.tokens, letter)
        total = sum(by_letter.values())
        if not total > 0:
            raise ValueError(f"its log-probabilities do not show its choice, {letter!r}")

        # what is left went to tokens that are no option
        chances = {option: by_letter[one] / total for one, option in self.letters.items()}
        return {
            "choice": self.letters[letter],
            "probabilities": chances,
            "confidence": max(chances.values()),
        }

    def _chances(self, tokens: Sequence[Mapping[str, Any]], letter: str) -> dict[str, float]:
        """Return the probabilities of all letters where a reply has the one that it chooses."""
        found = dict.fromkeys(self.letters, 0.0)
        # the last one, as thoughts before the answer may have letters, too
        place = next((one for one in reversed(tokens) if _letter(one) == letter), None)
        if place is None:
            return found

        for text, chance in _alternatives(place):
            if text in found:
                found[text] += chance

        return found


def _listed(token: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the likeliest tokens in a token's place."""
    listed = token.get("top_logprobs")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _letter(token: Mapping[str, Any]) -> str:
    text = token.get("token")
    return text.strip(_WRAPPING) if isinstance(text, str) else ""


def _alternatives(token: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Return what could stand in a token's place, each with its probability, once."""
    likeliest = _listed(token)
    # the token itself need not be among the likeliest
    if all(one.get("token") != token.get("token") for one in likeliest):
        likeliest.append(dict(token))

    for one in likeliest:
        yield _letter(one), _probability(one.get("logprob"))


def _probability(logarithm: Any) -> float:
    is_number = isinstance(logarithm, (int, float)) and not isinstance(logarithm, bool)
    # NaN and what is above 0 are no logarithms of a probability
    return exp(max(logarithm, _NEVER)) if is_number and logarithm <= 0 else 0.0
