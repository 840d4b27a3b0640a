"""Checking a server and its model, with advice."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from time import perf_counter
from types import SimpleNamespace
from typing import NamedTuple

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    LLMError,
    ModelMissingError,
    ReasonerError,
    TimedOutError,
    UnreachableError,
)
from prism.llm._addresses import model_name
from prism.llm._pool import ModelPool
from prism.llm._servers import ModelServer, OllamaServer
from prism.reasoner._faults import is_refused, is_retryable
from prism.reasoner._messages import Chat, Choices, Reply
from prism.reasoner._prompts import PromptSettings
from prism.reasoner._questions import Question
from prism.reasoner._requests import (
    QUESTION,
    Kind,
    Request,
    answered,
    chances_of,
    requests_for,
)
from prism.reasoner._spending import Cost

_OPTIONS = {
    "idle": "Put the phone away",
    "scrolling": "Read the next post",
    "composing": "Write a post",
}
_ANN = SimpleNamespace(name="Ann")
_GREETING = "Say hello."
_MOST_LISTED = 5

_MUCH = 0.5
"""The part of an answer from which on the order of the options decides more than the question."""


class Found(NamedTuple):
    """What a look has found, and whether answers therefore mean little."""

    text: str
    is_doubtful: bool = False


Look = Callable[[ModelServer], Awaitable[Found]]


@dataclass(frozen=True, slots=True)
class Check:
    """One step of an examination.

    Args:
        what: What was examined.
        ok: Whether it passed; None while a long step is running.
        found: The finding, and what to do about it; or how long the step may take.
        is_doubtful: Whether it passed, and answers mean little.
    """

    what: str
    ok: bool | None
    found: str
    is_doubtful: bool = False


async def diagnose(client: ModelPool) -> AsyncGenerator[Check, None]:
    """Check a server and a model, step by step, until one step fails.

    Args:
        client: The client that would be used. With several servers, the first is checked.

    Yields:
        The steps in order, each as soon as it has ended; only the last can fail.
    """
    server = client.servers[0]
    for what, look in (("server", _server), ("decisions", _decisions)):
        check = await _checked(what, look, server)
        yield check
        if not check.ok:
            return

    yield Check("load", ok=None, found=f"can take up to {server.settings['load_timeout']:g} s")
    check = await _checked("load", _load, server)
    yield check
    if not check.ok:
        return

    yield await _checked("window", _window, server)
    kinds: tuple[Kind, ...] = ("letter", "name")
    if server.known_to_decide:
        kinds = ("decision",)
    for kind in kinds:
        yield await _checked(kind, partial(_in_all_rotations, kind), server)


async def _checked(what: str, look: Look, server: ModelServer) -> Check:
    """Look, and again if the first failure may pass, as a run does."""
    began = perf_counter()
    try:
        found = await _twice(look, server)
    except LLMError as error:
        is_unclear = _is_unclear(what, error)
        return Check(what, ok=is_unclear, found=f"unknown: {error}" if is_unclear else str(error))

    told = f"{found.text} ({(perf_counter() - began) * 1000:.0f} ms)"
    return Check(what, ok=True, found=told, is_doubtful=found.is_doubtful)


async def _twice(look: Look, server: ModelServer) -> Found:
    try:
        return await look(server)
    except LLMError as error:
        if not is_retryable(error) or is_refused(error) or isinstance(error, TimedOutError):
            raise
        found = await look(server)
        return found._replace(text=f"{found.text}, when asked again after: {error}")


def _is_unclear(what: str, error: LLMError) -> bool:
    """Return whether a failure does not show that questions would fail, too."""
    if what in ("letter", "name", "decision"):
        return False
    # gateways have few paths besides that of conversations, and need not list their models
    is_clear = (ModelMissingError, TimedOutError, UnreachableError)
    return what == "window" or (not isinstance(error, is_clear) and error.status != 401)


async def _server(server: ModelServer) -> Found:
    listed = await server.models()
    if model_name(server.model) in map(model_name, listed):
        return Found(f"{server.address} has {server.model}, one of {len(listed)} models")

    more = ", ..." if len(listed) > _MOST_LISTED else ""
    among = f"not among its {len(listed)} models: {', '.join(listed[:_MOST_LISTED])}{more}"
    # others serve more than they list
    if isinstance(server, OllamaServer):
        advice = server.no_model.format(model=server.model)
        raise ModelMissingError(f"{server.address}: {server.model} is {among}; {advice}")
    return Found(f"{server.address}: {server.model} is {among}; the answer will show")


async def _decisions(server: ModelServer) -> Found:
    decides = await server.decides()
    return Found(
        "a decision model" if decides else "no decision model: asked by letter, or by name"
    )


async def _load(server: ModelServer) -> Found:
    await server.load(Cost())
    return Found("loaded")


async def _window(server: ModelServer) -> Found:
    reported, asked = await server.reported_window(), server.settings["window"]
    known = [each for each in (reported, asked) if each is not None]
    if not known:
        return Found("unknown: the server does not say")
    whose = "as asked for" if min(known) == asked else "on the server"
    return Found(f"{min(known)} tokens of prompt and reply together, {whose}")


async def try_out(server: ModelServer, cost: Cost) -> str:
    """Ask as a `Reasoner` would, with the same strictness, and return the answer in words.

    Raises:
        LLMError: If there is no valid answer.
    """
    kind: Kind = "decision" if server.known_to_decide else "name"
    return _in_words(await _chances(server, kind, 0, cost))


async def try_text(server: ModelServer, cost: Cost) -> str:
    """Ask as a `Writer` would, and return the answer, whatever it says.

    Raises:
        LLMError: If there is no answer.
    """
    return (await server.chat(Chat([{"role": "user", "content": _GREETING}]), cost)).text


async def _in_all_rotations(kind: Kind, server: ModelServer) -> Found:
    """Ask a question in every order of its options, and report what the order decides."""
    try:
        said = [await _chances(server, kind, each, Cost()) for each in range(len(_OPTIONS))]
    except DecisionsUnsupportedError:
        return Found("the server gives no log-probabilities, so runs ask for the name of an option")
    except _TooLittleMassError as error:
        return Found(f"the letters have {error.mass:.0%} of the probability, so runs ask for names")

    mean = {each: sum(one[each] for one in said) / len(said) for each in _OPTIONS}
    apart = max(_distance(one, other) for one, other in combinations(said, 2))
    by_place = [_by_place(one, number) for number, one in enumerate(said)]
    same_place = 1 - max(_distance(one, other) for one, other in combinations(by_place, 2))
    refused = sorted(server.dropped)
    left_out = "".join(f"; it refuses {each}, so that is left out" for each in refused)
    told = (
        f"answers {_in_words(mean)} on average over {len(said)} orders of the options; the order "
        f"changes up to {apart:.0%} of an answer"
    )
    if apart < _MUCH:
        return Found(f"{told}{left_out}")

    places = f" (the places have the same shares to {same_place:.0%})" if same_place > _MUCH else ""
    return Found(
        f"{told}{places}: a single answer says more about the place in the list than about the "
        "question; keep the options shuffled and compare populations, or take a larger "
        f"model{left_out}",
        is_doubtful=True,
    )


def _distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the total variation distance of two distributions."""
    return sum(abs(one[each] - other[each]) for each in one) / 2


def _by_place(chances: Mapping[str, float], rotation: int) -> dict[str, float]:
    """Return the probabilities by the options' places in the prompt."""
    options = [*_OPTIONS]
    turned = [*options[rotation:], *options[:rotation]]
    return {str(place): chances[each] for place, each in enumerate(turned)}


def _in_words(chances: Mapping[str, float]) -> str:
    return ", ".join(f"{each} {chance:.0%}" for each, chance in chances.items())


class _TooLittleMassError(BadReplyError):
    """The letters have too little of the probability."""

    def __init__(self, mass: float) -> None:
        super().__init__(f"the letters have {mass:.0%} of the probability")
        self.mass = mass


async def _chances(
    server: ModelServer, kind: Kind, rotation: int, cost: Cost
) -> Mapping[str, float]:
    """Ask a question in the form of a run's own; return the probabilities of the options."""
    request = _request(kind, rotation, [*_OPTIONS])

    async def ask(each: Request) -> Reply:
        if each.choice is not None:
            choices = Choices(each.text, {QUESTION: each.choice})
            return chances_of(await server.systemone(choices, cost))

        messages = [{"role": "user", "content": each.text}]
        most_tokens, chances = each.most_tokens, each.asks_chances
        chat = Chat(messages, each.schema, most_tokens=most_tokens, chances=chances)
        return each.read(await server.chat(chat, cost))

    try:
        reply = await answered(request, ask)
        if kind == "letter" and reply.chances is None:
            raise _TooLittleMassError(reply.option_mass or 0.0)
        chosen, chances = request.answer_in(reply)
    except ReasonerError as error:
        raise BadReplyError(
            f"{server.model} chose none of the options of a trial question: {error}; try "
            "another model, such as a larger one of its kind, or one that is tuned to follow "
            "instructions"
        ) from error

    return chances or {each: float(each == chosen) for each in _OPTIONS}


def _request(kind: Kind, rotation: int, options: Sequence[str]) -> Request:
    question = Question(_ANN, "awake", "evening", tuple(options), prompt="You are tired.")
    (request,) = requests_for(kind, [question], PromptSettings(_OPTIONS), [rotation])
    return request
