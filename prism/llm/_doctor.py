"""Checking a server and its model, with advice."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    LLMError,
    ModelMissingError,
    ReasonerError,
    TimedOutError,
)
from prism.llm._addresses import model_name
from prism.llm._host import Host
from prism.llm._pool import ModelPool
from prism.reasoner._faults import (
    UNAUTHORIZED,
    is_permanent_refusal,
    is_refused,
    is_retryable,
    lacks_path,
)
from prism.reasoner._model_client import Chat, Choices, Reply
from prism.reasoner._prompts import (
    QUESTION,
    Kind,
    PromptSettings,
    Request,
    answered,
    chances_of,
    requests_for,
)
from prism.reasoner._questions import Question
from prism.reasoner._spending import Cost

_OPTIONS = {"idle": "Put the phone away", "scrolling": "Read the next post"}
_ANN = SimpleNamespace(name="Ann")
_GREETING = "Say hello."
_MOST_LISTED = 5

Look = Callable[[Host], Awaitable[str]]
"""Examines one thing, and returns what it finds."""


@dataclass(frozen=True, slots=True)
class Check:
    """One step of an examination.

    Args:
        what: What was examined.
        ok: Whether it passed; None while a long step is running.
        found: The finding, and what to do about it; or how long the step may take.
    """

    what: str
    ok: bool | None
    found: str


async def diagnose(client: ModelPool) -> AsyncGenerator[Check, None]:
    """Check a server and a model, step by step, until one step fails.

    Args:
        client: The client that would be used. With several servers, the first is checked.

    Yields:
        The steps in order, each as soon as it has ended; only the last can fail.
    """
    host = client.servers[0]
    for what, look in (
        ("server", _server),
        ("model", _model),
        ("decisions", _decisions),
        ("load", _load),
    ):
        if look is _load:
            yield Check(what, ok=None, found=f"can take up to {host.settings['load_timeout']:g} s")

        check = await _check(what, look, host)
        yield check
        if not check.ok:
            return

    yield await _check("window", _window, host)
    yield await _check("answer", _try_both_orders, host)


async def _check(what: str, look: Look, host: Host) -> Check:
    began = perf_counter()
    try:
        found = await _looked(look, host)
    except LLMError as error:
        unknown = _unknown(look, host, error)
        return Check(what, ok=unknown is not None, found=unknown or str(error))

    return Check(what, ok=True, found=f"{found} ({(perf_counter() - began) * 1000:.0f} ms)")


def _unknown(look: Look, host: Host, error: LLMError) -> str | None:
    """Return what to say of a failure that does not show what is wrong; None of any other."""
    if look is _try_both_orders:
        return None
    if lacks_path(error):
        return host.dialect.hidden
    if look is _window:
        return f"unknown: {error}"

    # a list of models is of use only to find a misspelt name
    if look is _load:
        is_unclear = is_permanent_refusal(error) and not isinstance(error, ModelMissingError)
    elif isinstance(error, TimedOutError):
        # some gateways collect their list from many servers
        is_unclear = look is not _server
    else:
        is_unclear = not (host.dialect.lists_all or is_retryable(error))
        is_unclear = is_unclear and error.status != UNAUTHORIZED

    return f"unknown: {error}; the answer will show" if is_unclear else None


async def _looked(look: Look, host: Host) -> str:
    """Return what a look finds, after a second one if the first failure may pass, as in a run."""
    try:
        return await look(host)
    except LLMError as error:
        if not is_retryable(error) or is_refused(error) or isinstance(error, TimedOutError):
            raise
        return f"{await look(host)}, when asked again after: {error}"


async def _server(host: Host) -> str:
    return f"{await host.kind()} at {host.address}"


async def _model(host: Host) -> str:
    await host.decides()
    model, listed = host.model, await host.models()
    if model_name(model) not in map(model_name, listed):
        missing = f"{model} is not {_among(listed)}"
        if not host.dialect.lists_all:
            return f"{missing}; the server may still have it; the answer will show"

        raise ModelMissingError(
            f"{host.address} does not have the model: {missing}; "
            f"{host.dialect.advice.no_model.format(model=model)}"
        )

    return f"{model} is available, one of {len(listed)}"


def _among(listed: Sequence[str]) -> str:
    if not listed:
        return "in its list, which is empty"

    more = ", ..." if len(listed) > _MOST_LISTED else ""
    return f"among its {len(listed)}: {', '.join(listed[:_MOST_LISTED])}{more}"


async def _decisions(host: Host) -> str:
    decides = await host.decides()
    if decides is None:
        return host.dialect.hidden_decisions or host.dialect.hidden
    if decides:
        return "the model takes decision questions: prism will use them"

    return "the model takes no decision questions: prism will chat with it"


async def _window(host: Host) -> str:
    told, asked = await host.window.look(), host.settings["window"]
    if told is None and asked is None:
        return "unknown: the server does not say"

    whose = "" if told is None else "on the server"
    if asked is not None and (told is None or asked < told):
        whose = "as asked for"

    return f"{host.window.tokens} tokens of prompt and reply together, {whose}"


async def _load(host: Host) -> str:
    return await host.load()


async def try_out(host: Host, cost: Cost) -> str:
    """Ask as a `Reasoner` would, with the same strictness, and return the answer in words.

    Raises:
        LLMError: If there is no valid answer.
    """
    return _answers(host, (await _answer_in(host, list(_OPTIONS), cost)).told)


async def try_text(host: Host, cost: Cost) -> str:
    """Ask as a `Writer` would, and return the answer, whatever it says.

    Raises:
        LLMError: If there is no answer.
    """
    return (await host.chat(Chat([{"role": "user", "content": _GREETING}]), cost)).text


async def _try_both_orders(host: Host) -> str:
    """Ask as in `try_out`, in two orders of the options, and report the effect of the order."""
    said = await _answer_in(host, list(_OPTIONS), Cost())
    turned = await _answer_in(host, list(_OPTIONS)[::-1], Cost())
    apart = sum(abs(said.chances[one] - turned.chances[one]) for one in _OPTIONS) / 2
    if not apart:
        return _answers(host, said.told)

    return _answers(
        host,
        f"{said.told}; with the options in the other order {turned.told}: the order changes "
        f"{apart:.0%} of the answer (runs shuffle it, unless --option-order is chart)",
    )


def _answers(host: Host, told: str) -> str:
    refused = "".join(f"; it refuses {part}, so prism leaves that out" for part in host.omits)
    return f"answers {told}{refused}"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer of a model to the trial question.

    Args:
        told: The answer in words.
        chances: The probability of each option; without probabilities, 1 for the chosen one.
    """

    told: str
    chances: Mapping[str, float]


async def _answer_in(host: Host, options: Sequence[str], cost: Cost) -> _Answer:
    """Return the answer to the trial question, in probabilities if the host gives some."""
    try:
        if await host.decides() is not False:
            with suppress(DecisionsUnsupportedError):
                return await _asked(host, "decision", options, cost)

        return await _asked(host, "chat", options, cost)
    except ReasonerError as error:
        raise BadReplyError(
            f"{host.model} chose none of the options of a trial question: {error}; try "
            "another model, such as a larger one of its kind, or one that is tuned to follow "
            "instructions; where probabilities were asked for, --mode chat may help"
        ) from error


async def _asked(host: Host, kind: Kind, options: Sequence[str], cost: Cost) -> _Answer:
    """Ask a question in the form of a run's own, and read the reply in the same way."""
    question = Question(_ANN, "awake", "evening", tuple(options), prompt="You are tired.")
    (request,) = requests_for(kind, [question], PromptSettings(_OPTIONS))
    asked: list[Request] = []

    async def ask(each: Request) -> Reply:
        asked.append(each)
        if each.choice is not None:
            choices = Choices(each.text, {QUESTION: each.choice})
            return chances_of(await host.systemone(choices, cost))

        messages = [{"role": "user", "content": each.text}]
        return Reply((await host.chat(Chat(messages, each.schema), cost)).text)

    reply = await answered(request, ask)
    again = ", but only when asked once more, as a run asks, too" if len(asked) > 1 else ""
    chosen, chances = request.answer_in(reply)
    if chances is not None:
        chances = {option: chances[option] for option in _OPTIONS}
        told = ", ".join(f"{each} {chances[each]:.0%}" for each in chances)
        return _Answer(f"{told}{again}", chances)

    mass = reply.option_mass
    lacks = "" if kind == "chat" else " without probabilities"
    why = "" if mass is None else f", since all options together have {mass:.2g}"
    told = f"{chosen}{lacks}{why}{again}"
    return _Answer(told, {one: float(one == chosen) for one in options})
