"""Checking a server and its model, with advice."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import SimpleNamespace
from typing import NamedTuple, get_args

from prism.errors import (
    BadReplyError,
    LLMError,
    ModelMissingError,
    NoProbabilitiesError,
    TimedOutError,
    UnreachableError,
    UselessReplyError,
)
from prism.llm._servers import ModelServer, OllamaServer
from prism.llm.pool import ModelPool
from prism.reasoner import Cost, Question
from prism.reasoner.prompts import PromptSettings, request_for
from prism.reasoner.questions import Kind
from prism.reasoner.reasoner import farthest
from prism.reasoner.replies import Reply
from prism.reasoner.requests import Request, answered

_OPTIONS = {
    "idle": "Put the phone away",
    "scrolling": "Read the next post",
    "composing": "Write a post",
}
_ANN = SimpleNamespace(name="Ann")

_MUCH = 0.5
"""The part of an answer from which on the order of the options decides more than the question."""


class Finding(NamedTuple):
    """The result of a step, and whether answers therefore mean little."""

    text: str
    is_doubtful: bool = False


Look = Callable[[ModelServer], Awaitable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """One step of an examination.

    Args:
        what: What was examined.
        ok: Whether it passed; None while a long step is running.
        result: The finding, and what to do about it; or how long the step may take.
        is_doubtful: Whether it passed, and answers mean little.
    """

    what: str
    ok: bool | None
    result: str
    is_doubtful: bool = False


async def diagnose(client: ModelPool) -> AsyncGenerator[Check, None]:
    """Check a server and a model, step by step, until one step fails.

    Args:
        client: The client that would be used. With several servers, the first is checked.

    Yields:
        The steps in order, each as soon as it has ended; only the last can fail.
    """
    server: ModelServer = client.servers[0]
    check = await _checked("server", _server, server)
    yield check
    if check.ok:
        yield Check("load", ok=None, result=f"can take up to {server.settings['load_timeout']:g} s")
        check = await _checked("load", _load, server)
        yield check
    if check.ok:
        for kind in get_args(Kind):
            yield await _checked(kind, partial(_in_all_rotations, kind), server)


async def _checked(what: str, look: Look, server: ModelServer) -> Check:
    """Carry out a step of the examination, and measure its time."""
    began = perf_counter()
    try:
        finding = await look(server)
    except LLMError as error:
        # gateways have few paths besides that of conversations, and need not list their models
        is_clear = isinstance(error, (ModelMissingError, TimedOutError, UnreachableError))
        if what in get_args(Kind) or is_clear or error.status == 401:
            return Check(what, ok=False, result=str(error))
        return Check(what, ok=True, result=f"unknown: {error}")

    text = f"{finding.text} ({(perf_counter() - began) * 1000:.0f} ms)"
    return Check(what, ok=True, result=text, is_doubtful=finding.is_doubtful)


async def _server(server: ModelServer) -> Finding:
    listed = await server.models()
    if (among := server.lack_in(listed)) is None:
        return Finding(f"{server.address} has {server.model}, one of {len(listed)} models")

    # others serve more than they list
    if isinstance(server, OllamaServer):
        advice = server.no_model.format(model=server.model)
        raise ModelMissingError(f"{server.address}: {server.model} {among}; {advice}")
    return Finding(f"{server.address}: {server.model} {among}; the answer will show")


async def _load(server: ModelServer) -> Finding:
    await server.load(Cost())
    return Finding("loaded")


async def _in_all_rotations(kind: Kind, server: ModelServer) -> Finding:
    """Ask a question in every order of its options, and report what the order decides."""
    try:
        answers = [await _chances(server, kind, each) for each in range(len(_OPTIONS))]
    except NoProbabilitiesError as error:
        return Finding(f"{error}, so runs ask for names")

    mean = {each: sum(one[each] for one in answers) / len(answers) for each in _OPTIONS}
    shares = ", ".join(f"{each} {chance:.0%}" for each, chance in mean.items())
    apart = farthest(answers)
    same_position = 1 - farthest([_by_position(one, number) for number, one in enumerate(answers)])
    text = (
        f"answers {shares} on average over {len(answers)} orders of the options; the "
        f"order changes up to {apart:.0%} of an answer"
    )
    if apart < _MUCH:
        return Finding(text)

    alike = f" (equal by position to {same_position:.0%})" if same_position > _MUCH else ""
    return Finding(
        f"{text}{alike}: a single answer says more about its position in the list than about the "
        "question; keep the options shuffled and compare populations, or take a larger "
        "model",
        is_doubtful=True,
    )


def _by_position(chances: Mapping[str, float], rotation: int) -> dict[str, float]:
    """Return the probabilities by the options' positions in the prompt."""
    options = [*_OPTIONS]
    turned = [*options[rotation:], *options[:rotation]]
    return {str(position): chances[each] for position, each in enumerate(turned)}


async def _chances(server: ModelServer, kind: Kind, rotation: int) -> Mapping[str, float]:
    """Ask a question in the form of a run's own; return the probabilities of the options."""
    question = Question(_ANN, "awake", "evening", tuple(_OPTIONS), prompt="You are tired.")
    request = request_for(kind, question, PromptSettings(_OPTIONS), rotation)

    async def ask(wording: Request[Reply]) -> Reply:
        return wording.read(await server.chat(wording, Cost()))

    try:
        reply = await answered(request, ask)
    except UselessReplyError as error:
        raise BadReplyError(
            f"{server.model} chose none of the options of a trial question: {error}; try "
            "another model, such as a larger one of its kind, or one that is tuned to follow "
            "instructions"
        ) from error

    if kind == "letter" and reply.chances is None:
        mass = reply.option_mass or 0.0
        raise NoProbabilitiesError(f"the letters have {mass:.0%} of the probability")
    return reply.chances or {each: float(each == reply.chosen) for each in _OPTIONS}
