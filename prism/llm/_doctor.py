"""Finding out what is wrong with a server, with advice."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    LLMError,
    ModelMissingError,
    ReasonerError,
)
from prism.llm._addresses import model_name
from prism.llm._faults import is_permanent_refusal, lacks_path
from prism.llm._host import ModelHost
from prism.llm._pool import ModelPool
from prism.statechart.reasoner._cost import Cost
from prism.statechart.reasoner._prompts import answer_schema
from prism.statechart.reasoner._replies import parse_reasoner_response, read_probabilities

_OPTIONS = ["idle", "scrolling"]
_TRIAL = 'Choose a state: idle or scrolling. Respond with JSON only: {"next_state": "<state>"}'
_GREETING = "Say hello."
_MOST_LISTED = 5
_QUESTION = {
    "type": "choice",
    "instructions": "Choose a state.",
    "criteria": dict.fromkeys(_OPTIONS),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One step of an examination.

    Args:
        what: What was examined.
        ok: Whether it is as it should be; None while a long step is under way.
        found: What was found, and what to do if it is not; or how long it may take.
    """

    what: str
    ok: bool | None
    found: str


async def diagnose(client: ModelPool) -> AsyncGenerator[Check, None]:
    """Look at a server and a model, step by step, until something is wrong.

    Args:
        client: The client that would be used; of several servers the first is looked at.

    Yields:
        The steps in order, each as soon as it has ended; only the last may be wrong.
    """
    host = client.servers[0]
    for what, look in (
        ("server", _server),
        ("model", _model),
        ("decisions", _decisions),
        ("load", _load),
    ):
        if look is _load:
            yield Check(
                what, ok=None, found=f"can take up to {_duration(host.settings.load_timeout)}"
            )

        check = await _check(what, look, host)
        yield check
        if not check.ok:
            return

    yield await _check("answer", try_out, host)


async def _check(what: str, look: Callable[[ModelHost], Awaitable[str]], host: ModelHost) -> Check:
    began = perf_counter()
    try:
        found = await look(host)
    except LLMError as error:
        if look is not try_out and lacks_path(error):
            return Check(what, ok=True, found=host.hidden)
        is_refused = is_permanent_refusal(error) and not isinstance(error, ModelMissingError)
        if look is _load and is_refused:
            return Check(what, ok=True, found=f"unknown: {error}; so the answer has to show")

        return Check(what, ok=False, found=str(error))

    return Check(what, ok=True, found=f"{found} ({(perf_counter() - began) * 1000:.0f} ms)")


def _duration(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


async def _server(host: ModelHost) -> str:
    return f"{await host.kind()} at {host.address}"


async def _model(host: ModelHost) -> str:
    await host.decides()
    model, listed = host.settings.model, await host.models()
    if model_name(model) not in map(model_name, listed):
        missing = f"{model} is not {_among(listed)}"
        if not host.lists_all:
            return f"{missing}; the server may have it all the same, so the answer has to show"

        raise ModelMissingError(
            f"{host.address} does not have the model: {missing}; "
            f"{host.advice.no_model.format(model=model)}"
        )

    return f"{model} is there, one of {len(listed)}"


def _among(listed: Sequence[str]) -> str:
    if not listed:
        return "in its list, which is empty"

    more = ", ..." if len(listed) > _MOST_LISTED else ""
    return f"among its {len(listed)}: {', '.join(listed[:_MOST_LISTED])}{more}"


async def _decisions(host: ModelHost) -> str:
    decides = await host.decides()
    if decides is None:
        return host.hidden_decisions
    if decides:
        return "the model takes decision questions: prism will use them"

    return "the model takes no decision questions: prism will chat with it"


async def _load(host: ModelHost) -> str:
    return await host.load()


async def try_out(host: ModelHost) -> str:
    """Ask as a `Reasoner` would, be as strict with the answer, and return it in words.

    Raises:
        LLMError: If there is no valid answer.
    """
    try:
        answer = await _answer(host)
        refused = "".join(f"; it refuses {part}, so prism leaves that out" for part in host.omits)

        return f"answers {answer}{refused}"
    except ReasonerError as error:
        raise BadReplyError(
            f"{host.settings.model} does not keep to the options: {error}; try another model"
        ) from error


async def try_text(host: ModelHost) -> str:
    """Ask as a `Writer` would, and return the answer, whatever it says.

    Raises:
        LLMError: If there is no answer.
    """
    return (await host.chat([{"role": "user", "content": _GREETING}], None, Cost())).text


async def _answer(host: ModelHost) -> str:
    if await host.decides() is not False:
        with suppress(DecisionsUnsupportedError):
            return await _decision(host)

    messages = [{"role": "user", "content": _TRIAL}]
    reply = await host.chat(messages, answer_schema(_OPTIONS), Cost())

    return str(parse_reasoner_response(reply.text, list(_OPTIONS)))


async def _decision(host: ModelHost) -> str:
    decided = await host.systemone("Ann is tired.", {"q0": _QUESTION}, Cost())
    chances = read_probabilities(decided.answers.get("q0", {}).get("probabilities"), list(_OPTIONS))
    return ", ".join(f"{option} {chance:.0%}" for option, chance in chances.items())
