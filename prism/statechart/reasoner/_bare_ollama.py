"""The call shape of ``ollama.AsyncClient``, for clients that have it or a part of it.

Outside `prism.llm`, this is the only module that knows Ollama's options, counts and statuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.errors import BadReplyError, DecisionsUnsupportedError
from prism.statechart.reasoner._cost import Cost
from prism.statechart.reasoner._duck_typing import (
    accepted,
    awaited,
    first,
    has,
    of_kind,
    parameters,
)
from prism.statechart.reasoner._model_client import Reply
from prism.statechart.states import state_text

_INPUT_TOKENS = ("input_tokens", "prompt_eval_count", "input_token_count")
_OUTPUT_TOKENS = ("output_tokens", "eval_count", "output_token_count")
_SAID_OF_THE_REPLY = ("total_duration", "load_duration", "eval_duration", "done_reason")


@dataclass(frozen=True, slots=True)
class Answers:
    """A reply to decision questions.

    Args:
        answers: By the name of the question, its ``probabilities``, or None.
    """

    answers: Mapping[str, Mapping[str, Any]]


class BareOllama:
    """Adapts a client whose ``chat`` takes messages.

    Of the other arguments (model, format, options, think) it gets those that it takes. A ``chat``
    with a ``think`` is given False, as thinking models think otherwise, until the model refuses it.

    Args:
        client: The client.
        model: Model name, for a client that needs one with every call.
        seed: Seed of the sampling; goes into ``options`` beside a model name.
    """

    def __init__(self, client: Any, model: str | None, seed: int | None) -> None:
        self._client = client
        self._model = model
        self._seed = seed
        self._omits_think = False

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any],  # noqa: A002 - as Ollama names it
        cost: Cost,
    ) -> Reply:
        """Send a conversation, once more if the model refuses ``think=False``.

        Raises:
            BadReplyError: If the reply has no text.
        """
        arguments = self._chat_arguments(messages, format)
        try:
            reply = await timed(cost, self._client.chat, **arguments)
        except Exception as error:
            if "think" not in arguments or not _refuses_think(error):
                raise

            self._omits_think = True
            del arguments["think"]
            reply = await timed(cost, self._client.chat, **arguments)

        return text_reply(reply, cost)

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]], *, cost: Cost
    ) -> Answers:
        """Put choice questions about one state to a decision model.

        Returns:
            The reply; where the model left a question unanswered, its probabilities are None.

        Raises:
            DecisionsUnsupportedError: If the server is too old, or the model not made for such
                questions.
            BadReplyError: If the reply has no answers.
        """
        offered = {"state": state, "questions": questions, "model": self._model}
        try:
            asked = accepted(self._client.systemone, offered)
            reply = await timed(cost, self._client.systemone, **asked)
        except Exception as error:
            if _refuses_decisions(error):
                raise DecisionsUnsupportedError(
                    f"no decision questions are taken ({error})"
                ) from error
            raise

        _add_cost(reply, first(reply, "usage"), cost)
        answers = first(reply, "answers")
        if not isinstance(answers, Mapping):
            raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no answers")

        return Answers(
            {
                name: {"probabilities": first(answers.get(name), "probabilities")}
                for name in questions
            }
        )

    async def offers_decisions(self) -> bool:
        """Return True if server and model take decision questions, or if only one can tell.

        A client may say so itself; one like ``ollama.AsyncClient`` is asked for the model's
        capabilities.
        """
        if not has(self._client, "systemone"):
            return False
        if has(self._client, "offers_decisions"):
            return bool(await awaited(self._client.offers_decisions()))
        if self._model is None or not has(self._client, "show"):
            return False

        try:
            shown = await awaited(self._client.show(self._model))
        except Exception as error:
            # a server that cannot show a model is not Ollama, but may take decision questions
            if _lacks_path(error):
                return True
            raise

        return "decision" in (first(shown, "capabilities") or ())

    def _chat_arguments(
        self, messages: Sequence[Mapping[str, Any]], schema: dict[str, Any]
    ) -> dict[str, Any]:
        offered: dict[str, Any] = {"messages": messages, "format": schema}
        if self._model is not None:
            offered["model"] = self._model
            if self._seed is not None:
                offered["options"] = {"seed": self._seed}

        # only where it is named: a chat with **arguments may not expect it
        if "think" in parameters(self._client.chat)[0] and not self._omits_think:
            offered["think"] = False

        return accepted(self._client.chat, offered)


async def timed(cost: Cost, ask: Callable[..., Any], *positional: Any, **named: Any) -> Any:
    """Return the reply to one request, and count the request and its time."""
    cost.attempts += 1
    cost.request_began()
    try:
        return await awaited(ask(*positional, **named))
    finally:
        cost.request_ended()


def text_reply(reply: Any, cost: Cost) -> Reply:
    """Return a reply's text, and add to its cost what it says of that.

    Raises:
        BadReplyError: If there is no text in it.
    """
    usage = first(reply, "usage_details")
    _add_cost(reply, reply if usage is None else usage, cost)
    return Reply(_text_of(reply))


def _text_of(reply: Any) -> str:
    for path in ((), ("message", "content"), ("text",), ("content",), ("output",)):
        found = reply
        for name in path:
            found = first(found, name)

        if isinstance(found, str):
            return found

        # agents with typed results return data instead of text
        chosen = first(found, "next_state")
        if chosen is not None:
            return json.dumps({"next_state": state_text(chosen)})

    raise BadReplyError(f"the client's reply of type {type(reply).__name__} has no text")


def _add_cost(reply: Any, usage: Any, cost: Cost) -> None:
    cost.model = of_kind(str, first(reply, "model")) or cost.model
    cost.host = of_kind(str, first(reply, "host")) or cost.host
    cost.add_tokens(
        of_kind(int, first(usage, *_INPUT_TOKENS)), of_kind(int, first(usage, *_OUTPUT_TOKENS))
    )
    cost.note_reply({name: first(reply, name) for name in _SAID_OF_THE_REPLY})


def _refuses_decisions(error: Exception) -> bool:
    """Return True if the server has no decision questions, or the model does not take them."""
    status, message = getattr(error, "status_code", None), str(error).lower()
    return _lacks_path(error) or (status == 400 and "support" in message)


def _lacks_path(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status in (405, 501) or (status == 404 and "model" not in str(error).lower())


def _refuses_think(error: Exception) -> bool:
    return getattr(error, "status_code", None) in (400, 422) and "think" in str(error).lower()
