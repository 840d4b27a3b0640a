"""The call shape of ``ollama.AsyncClient``, for clients that have it or a part of it.

Outside `prism.llm`, this is the only module that knows Ollama's options, counts and statuses.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from random import uniform
from typing import Any, NoReturn

from prism.errors import BadReplyError, DecisionsUnsupportedError, LLMError
from prism.statechart.reasoner._cost import Cost
from prism.statechart.reasoner._model_client import (
    Reply,
    accepted,
    awaited,
    first,
    has,
    of_kind,
    parameters,
)
from prism.statechart.states import state_text
from prism.telemetry._loggers import describe

_INPUT_TOKENS = ("input_tokens", "prompt_eval_count", "input_token_count")
_OUTPUT_TOKENS = ("output_tokens", "eval_count", "output_token_count")
_SAID_OF_THE_REPLY = ("total_duration", "load_duration", "eval_duration", "done_reason")

_LACKS_MODEL = re.compile(
    r"\bmodel\b.*\b(not found|not exist|no such|unknown)|\b(no such|unknown) model\b",
    re.IGNORECASE | re.DOTALL,
)

_PASSING = (429, 502, 503, 504, -1)
"""Statuses of a busy server, a gateway without one, and an error in the middle of a stream."""

_INTERNAL = 500
_MOST_SAID = 200
_MOST_RECORDED = 1024 * 1024
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
_LONGEST_RETRY_AFTER = 30.0


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
        attempts: Requests for one question while its failures pass, at most.
    """

    def __init__(self, client: Any, model: str | None, seed: int | None, attempts: int = 1) -> None:
        self._client = client
        self._model = model
        self._seed = seed
        self._attempts = attempts
        self._omits_think = False

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None,  # noqa: A002 - as Ollama names it
        cost: Cost,
    ) -> Reply:
        """Send a conversation, once more if the model refuses ``think=False``.

        Raises:
            BadReplyError: If the reply has no text.
        """
        arguments = self._chat_arguments(messages, format)
        try:
            reply = await self._sent(lambda: self._client.chat(**arguments), cost)
        except Exception as error:
            if "think" not in arguments or not _refuses_think(error):
                raise

            self._omits_think = True
            del arguments["think"]
            cost.admitted()
            reply = await self._sent(lambda: self._client.chat(**arguments), cost)

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
        arguments = accepted(self._client.systemone, offered)
        try:
            reply = await self._sent(lambda: self._client.systemone(**arguments), cost)
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

    async def _sent(self, send: Callable[[], Any], cost: Cost) -> Any:
        """Return what a request gives, made again while that may help."""
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        attempt = 1
        while True:
            cost.attempts += 1
            cost.request_began()
            try:
                reply = await awaited(send())
                if cost.trail is not None:
                    cost.request_replied(_shown(reply))

                return reply
            except Exception as error:
                cost.request_failed(describe(error))
                most = min(self._attempts, _worth_attempts(error))
                if attempt >= most or cost.is_exhausted:
                    _raise_what_is_said(error)
                pause = _pause_after(attempt, error)
            finally:
                cost.request_ended()

            await asyncio.sleep(pause)
            # a retry has to be within the budget, too
            cost.admitted()
            attempt += 1

    def _chat_arguments(
        self, messages: Sequence[Mapping[str, Any]], schema: dict[str, Any] | None
    ) -> dict[str, Any]:
        offered: dict[str, Any] = {"messages": messages}
        if schema is not None:
            offered["format"] = schema
        if self._model is not None:
            offered["model"] = self._model
            if self._seed is not None:
                offered["options"] = {"seed": self._seed}

        # only where it is named: a chat with **arguments may not expect it
        if "think" in parameters(self._client.chat)[0] and not self._omits_think:
            offered["think"] = False

        return accepted(self._client.chat, offered)


def _shown(reply: Any) -> str:
    """Return a client's reply as it may be recorded: as JSON where it knows how."""
    if isinstance(reply, str):
        return reply

    as_json = getattr(reply, "model_dump_json", None)
    try:
        text = as_json() if callable(as_json) else json.dumps(reply, default=str)
    except Exception:  # of the user's client: what it looks like says enough
        text = repr(reply)

    return str(text)[:_MOST_RECORDED]


def text_reply(reply: Any, cost: Cost) -> Reply:
    """Return a reply's text, and add to its cost what it says of that.

    Raises:
        BadReplyError: If there is no text in it.
    """
    if type(reply) is str:
        # it says nothing of itself
        cost.note_reply({})
        return Reply(reply)

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


def _worth_attempts(error: Exception) -> float:
    """Return how many requests a question is worth that fails in this way."""
    # prism's own clients, inside another, have made their retries
    if isinstance(error, LLMError):
        return 1

    status = status_of(error)
    if status in _PASSING or (status is None and any(map(_is_transport_fault, _causes(error)))):
        return inf

    return 2 if status == _INTERNAL or error_in_body(error) is not None else 1


def _raise_what_is_said(error: Exception) -> NoReturn:
    """Raise a client's exception; where a reply was an error, what that says."""
    said = error_in_body(error)
    if said is None:
        raise error

    brief = " ".join(said[:2000].split())[:_MOST_SAID]
    raise BadReplyError(f"the server answered with an error instead of a reply: {brief}") from error


def _pause_after(attempt: int, error: Exception) -> float:
    """Return the seconds before a retry, which grow; at least as many as the server asks for."""
    longest = min(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), _LONGEST_PAUSE_SECONDS)
    asked_for = min(retry_after_of(error) or 0.0, _LONGEST_RETRY_AFTER)

    return asked_for + uniform(0, longest)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an exception or one of its causes has."""
    for raised in _causes(error):
        response = getattr(raised, "response", None)
        status = first(raised, "status_code", "status") or getattr(response, "status_code", None)
        if isinstance(status, int):
            return status

    return None


def is_refused(error: BaseException) -> bool:
    """Return True if a server refused a request, and would refuse the same one again."""
    status = status_of(error) or 0
    return 400 <= status < _INTERNAL and status not in _PASSING


def retry_after_of(error: BaseException) -> float | None:
    """Read a Retry-After header, seconds or a date (RFC 9110, section 10.2.3), as seconds."""
    for raised in _causes(error):
        headers = getattr(getattr(raised, "response", None), "headers", None)
        given = headers.get("retry-after", "") if isinstance(headers, Mapping) else ""
        for read in (float, _seconds_until):
            try:
                return max(0.0, read(given))
            except ValueError:
                continue

    return None


def error_in_body(error: BaseException) -> str | None:
    """Return the error that stands in a reply with status 200, which was no valid reply then."""
    for raised in _causes(error):
        # of pydantic, which is not imported for this
        read_errors = getattr(raised, "errors", None)
        if type(raised).__name__ != "ValidationError" or not callable(read_errors):
            continue

        inputs = [item.get("input") for item in read_errors()]
        said = [given for given in inputs if isinstance(given, Mapping) and "error" in given]
        if said:
            return str(said[0]["error"])

    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an exception and those that it was raised from, or in place of."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _is_transport_fault(error: BaseException) -> bool:
    httpx = sys.modules.get("httpx")
    kinds = (ConnectionError, TimeoutError)
    return isinstance(error, kinds if httpx is None else (*kinds, httpx.TransportError))


def _seconds_until(date: str) -> float:
    # a tenth of importing the engine, for a header that is rare
    from email.utils import parsedate_to_datetime

    then = parsedate_to_datetime(date)
    return ((then if then.tzinfo else then.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()


def _refuses_decisions(error: Exception) -> bool:
    """Return True if the server has no decision questions, or the model does not take them."""
    status, message = getattr(error, "status_code", None), str(error).lower()
    return _lacks_path(error) or (status == 400 and "support" in message)


def _lacks_path(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status in (405, 501) or (status == 404 and not says_model_is_missing(str(error)))


def says_model_is_missing(message: str) -> bool:
    """Return True if the text of a 404 says that the server lacks the model, not the path."""
    # a web page may say anything
    return not message.lstrip().startswith("<") and _LACKS_MODEL.search(message) is not None


def _refuses_think(error: Exception) -> bool:
    return getattr(error, "status_code", None) in (400, 422) and "think" in str(error).lower()
