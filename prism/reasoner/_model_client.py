"""The interface of clients for reasoners, and helpers for reading replies."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from prism.reasoner._faults import FILTERED
from prism.reasoner._replies._objects import what_is_said
from prism.reasoner._spending import Cost, choice_in, first

KindT = TypeVar("KindT")

_MOST_REFUSAL = 120


def has(client: object, method: str) -> bool:
    """Return True if an object has a method of this name."""
    return callable(getattr(client, method, None))


def of_kind(kind: type[KindT], value: Any) -> KindT | None:
    """Return a value if it is of a type, else None."""
    return value if isinstance(value, kind) else None


async def awaited(result: Any) -> Any:
    """Return the result of a call, awaited if necessary."""
    return await result if inspect.isawaitable(result) else result


def accepted(method: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value and that a method accepts."""
    names, takes_any = parameters(method)
    return {
        name: value
        for name, value in offered.items()
        if value is not None and (takes_any or name in names)
    }


def parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return the parameter names of a method, and whether it accepts any other."""
    return _parameters_of(getattr(method, "__func__", method), hasattr(method, "__func__"))


@lru_cache(maxsize=64)
def _parameters_of(function: Callable[..., Any], bound: bool) -> tuple[tuple[str, ...], bool]:
    found = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in found)
    named = [item.name for item in found if item.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(named), takes_any


def declined_in(reply: Any) -> str:
    """Return how a reply says that its text is no answer, as what its model did; usually empty.

    Only what OpenAI's servers say outside of the text counts: a ``refusal``, and the end of a text
    by a content filter. Words such as "I'm sorry, but" may be just what an agent says.
    """
    choice = choice_in(reply)
    refusal = first(first(choice, "message"), "refusal")
    if isinstance(refusal, str) and refusal:
        return f"declined to answer: {' '.join(refusal.split())[:_MOST_REFUSAL]}"

    # Gemini says what is prohibited behind it
    is_filtered = str(first(choice, "finish_reason")).startswith(FILTERED)
    return "gave a reply that its server's content filter withheld or cut" if is_filtered else ""


def text_with_calls(text: str, calls: Any, schema: Mapping[str, Any] | None) -> str:
    """Return the text of a message as the model wrote it, with its tool calls as JSON.

    Servers that know how a model calls tools cut the calls out of its text. A call may be the
    answer to a choice, with no words beside it but thoughts, which might deny it; then nothing is
    told if one of the calls cannot be read, since it may say something else than the others. The
    reply of a thinking agent is read with its words and all of its calls. Other texts have none.
    """
    asked = (schema or {}).get("properties") or ()
    told = _told(calls)
    is_choice = not {"next_state", "letter"}.isdisjoint(asked) and not what_is_said(text)
    if not told or not ("agent" in asked or is_choice):
        return text
    if is_choice and not all(map(_is_whole, told)):
        return ""

    return f"{text}\n{json.dumps(told, default=str)}".strip()


def _told(calls: Any) -> list[dict[str, Any]]:
    """Return the names and arguments of tool calls, if a message has any."""
    functions = [first(call, "function") for call in calls] if isinstance(calls, list) else []
    # arguments stay as they are, because a key may stand there twice
    return [
        {"name": first(each, "name"), "arguments": first(each, "arguments") or {}}
        for each in functions
    ]


def _is_whole(call: Mapping[str, Any]) -> bool:
    """Return False for a call that has no name, or broken arguments."""
    arguments = call["arguments"]
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return False

    return isinstance(call["name"], str) and (read is None or isinstance(read, Mapping))


class TextReply(Protocol):
    """A reply to a conversation."""

    @property
    def text(self) -> str:
        """The text of the model."""


class ChoiceReply(Protocol):
    """A reply to decision questions."""

    @property
    def answers(self) -> Mapping[str, Mapping[str, Any]]:
        """By the name of the question: its ``probabilities`` by option, or None.

        A reply that was read from log-probabilities also has the ``choice`` and the ``option_mass``
        of all options together; without ``probabilities``, the choice counts.
        """


class ModelClient(Protocol):
    """A client with its own slots, such as `prism.llm.OllamaChatClient`.

    Other clients are adapted to it.

    It adds everything that it sends and reads to the cost of a request. Through the cost, it also
    reports when the request gets a slot (``cost.allowance.admitted()``) and whether it waits for
    one while nobody is served (``cost.allowance.stalled(...)``).

    A method that accepts ``lacks`` gets a function that returns how many of the requested answers a
    reply lacks, so that another server can be asked after a bad reply. One that accepts
    ``variation`` gets a number to add to its sampling seed. A client whose ``temperature`` is 0
    does not sample, so equal questions are asked once; any other client is asked for each agent.
    """

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None,  # noqa: A002 - as Ollama names it
        cost: Cost,
    ) -> TextReply:
        """Send a conversation; the reply follows a JSON schema, if there is one."""
        ...

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]], *, cost: Cost
    ) -> ChoiceReply:
        """Ask a decision model choice questions about one state.

        Raises:
            DecisionsUnsupportedError: If the server or the model does not support them.
        """
        ...

    async def offers_decisions(self) -> bool:
        """Return True if server and model support decision questions, or if it is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation to send.

    Args:
        messages: ``{"role": ..., "content": ...}``, oldest first.
        schema: JSON schema that the reply must follow.
        variation: A number added to the seed, so that the same prompt may get another answer.
        most_tokens: Tokens that the reply may have; None for as many as the host's settings allow.
        chances: Whether to request the log-probabilities of its tokens.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: dict[str, Any] | None = None
    variation: int = 0
    most_tokens: int | None = None
    chances: bool = False


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply to a conversation.

    Args:
        text: Its text; empty if there is none.
        model: The model.
        host: Server it runs on.
        input_tokens: Tokens that it read, if known.
        output_tokens: Tokens that it wrote, if known.
        tokens: The reply's tokens with their alternatives, if the server gives them.
        has_thoughts: Whether the model's thoughts came beside the text.
        declined: Why the text is no reply, if the model declined to answer or a filter withheld it.
    """

    text: str
    model: str = ""
    host: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    has_thoughts: bool = False
    declined: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """Choice questions about one state, in the wire format of ``/v1/systemone``.

    Args:
        state: The subject of the questions.
        questions: The questions by name.
        variation: As for `Chat`.
    """

    state: str
    questions: Mapping[str, Mapping[str, Any]]
    variation: int = 0


@dataclass(frozen=True, slots=True)
class DecisionReply:
    """A decision model's answers.

    Args:
        answers: By question: ``choice``, ``probabilities`` by option, and ``confidence``.
        model: Model that answered.
        host: Server it runs on.
    """

    answers: Mapping[str, Mapping[str, Any]]
    model: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply.

    Args:
        text: Text of a chat reply.
        chances: Probabilities of a decision reply, by option, or None.
        choice: The chosen option, if the reply has an option mass.
        option_mass: The probability of all options together.
    """

    text: str = ""
    chances: Any = None
    choice: str | None = None
    option_mass: float | None = None

    @property
    def is_bare_choice(self) -> bool:
        """Whether a decision reply has a choice, and no probabilities."""
        return self.chances is None and self.choice is not None
