"""Names of things in histories, logs and documents: contexts, agents, guards, actions, decisions.

A guard may receive any object as context, such as the post an agent looks at. History and log keep
only its identifying fields, never the object, so that a thousand records do not keep a thousand
posts alive.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, NamedTuple
from weakref import WeakSet

from prism.statechart.states import state_text
from prism.telemetry.events import DECISION
from prism.telemetry.loggers import (
    EventLogger,
    active_logger,
    pass_over,
    report,
)

Scalar = str | int | float | bool | None
Keys = str | tuple[str, ...] | None
"""Keys of a recorded context: one, several, or none because there was no context."""

MOST_SHARED_TEXTS = 4096
shared_texts: dict[str, str] = {}
"""The one copy of each text that records refer to: see `share`."""

_SCALARS = (str, int, float, bool, type(None))
SCALARS = frozenset(_SCALARS)
"""The types of values that a record keeps as they are."""

_CONTAINERS = (Mapping, list, tuple, deque, set, frozenset)
_DEEPEST = 8
_LEAF_MODULES = ("datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid")
id_names: dict[type, tuple[str, str]] = {}
"""The attribute with the identifier of a class's objects, and its key in records, once known."""

_nameless: WeakSet[Any] = WeakSet()
_LOGGER = logging.getLogger("prism.statechart")


def identify(context: object) -> dict[str, Any] | None:
    """Reduce a context to plain data for a record.

    A mapping keeps its keys, with each value made plain; a scalar becomes ``{"value": scalar}``;
    any other object keeps its identifier: for a class ``Post`` the attribute ``post_id``, else
    ``id``, recorded as ``post_id`` either way. An object without an identifier is recorded as
    ``{"type": class name}``.

    Args:
        context: Anything that was passed to ``fire``.

    Returns:
        A new dict of JSON values, or None for None.
    """
    return _reduce(context)


def pack(context: object) -> tuple[Keys, Any]:
    """Split a context into keys, which many records have in common, and values.

    The common ``{"post_id": ...}`` becomes a bare key and a bare value, so it costs a record only
    two references. Texts are interned: agents that saw the same post refer to one copy of its id.

    Returns:
        ``(None, None)`` for None, ``(key, value)`` for one key, else ``(keys, values)`` as two
        tuples.
    """
    if isinstance(context, dict) and len(context) == 1:
        (key,) = context
        value = context[key]
    elif known := id_names.get(type(context)):
        attribute, key = known
        value = getattr(context, attribute, None)
    else:
        return _pack_any(context)

    if type(value) is str and type(key) is str:
        # looked up here first, to save the call of `share`
        return key, shared_texts.get(value) or share(value)

    return _pack_any(context)


def unpack(keys: Keys, value: Any) -> dict[str, Any] | None:
    """Undo `pack`: return the recorded context as a new dict, or None."""
    if keys is None:
        return None
    if isinstance(keys, str):
        return {keys: _copied(value)}

    return {key: _copied(item) for key, item in zip(keys, value, strict=True)}


def share(text: str) -> str:
    """Return the one copy of a text that all records refer to."""
    known = shared_texts.get(text)
    if known is not None:
        return known

    # unlike ``sys.intern``, which may keep the ids of a long run for ever
    if len(shared_texts) >= MOST_SHARED_TEXTS:
        shared_texts.clear()

    shared_texts[text] = text

    return text


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _pack_any(context: object) -> tuple[Keys, Any]:
    plain = _reduce(context)
    if plain is None:
        return None, None

    values = tuple(share(value) if type(value) is str else value for value in plain.values())
    return (next(iter(plain)), values[0]) if len(values) == 1 else (tuple(plain), values)


def _reduce(context: object) -> dict[str, Any] | None:
    if context is None:
        return None
    if isinstance(context, Mapping):
        return _plain_mapping(context, _DEEPEST)
    if isinstance(context, (*_SCALARS, Real)) or _is_leaf(context):
        return {"value": _plain(context, _DEEPEST)}

    return _identity(context)


def _plain(value: object, depth: int) -> Any:
    # the usual case, without the checks of the general one
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Enum):
        return _plain(value.value, depth)
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, Real):
        # also a number of numpy's, for which JSON has no form
        return int(value) if isinstance(value, Integral) else float(value)
    if depth and isinstance(value, _CONTAINERS):
        return _plain_container(value, depth - 1)
    if _is_leaf(value):
        return value.isoformat() if hasattr(value, "isoformat") else str(value)

    identity = _identity(value)

    return next(iter(identity.values())) if len(identity) == 1 else identity


def _plain_container(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return _plain_mapping(value, depth)

    # a set has no order of its own, and a log is to be the same each time
    items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value

    return [_plain(item, depth) for item in items]


def _plain_mapping(mapping: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    # the usual values are looked at here first, to save the calls
    return {
        key if type(key) is str else str(key.value if isinstance(key, Enum) else key): value
        if type(value) in _SCALARS
        else _plain(value, depth)
        for key, value in mapping.items()
    }


def _is_leaf(value: object) -> bool:
    """Return True for values of the standard library, such as dates, that are recorded as text."""
    module = type(value).__module__.partition(".")[0]
    return module in _LEAF_MODULES or isinstance(value, (bytes, complex))


def _identity(value: object) -> dict[str, Any]:
    cls = type(value)
    try:
        names = id_names.get(cls)
        if names is None or not hasattr(value, names[0]):
            names = _find_id_name(value)
            if names is None:
                return {"type": cls.__name__}
            id_names[cls] = names

        attribute, key = names
        identifier = getattr(value, attribute)

        return {key: identifier if isinstance(identifier, _SCALARS) else str(identifier)}
    except Exception:
        # a property of the user's failed, such as that of a detached database row; the
        # transition must not fail with it
        return {"type": cls.__name__}


def _find_id_name(value: object) -> tuple[str, str] | None:
    key = _own_key(type(value).__name__)
    for attribute in (key, "post_id", "agent_id", "id", "unique_id"):
        if hasattr(value, attribute):
            recorded_as = key if attribute in ("id", "unique_id") else attribute
            return attribute, recorded_as

    return None


@lru_cache(maxsize=256)
def _own_key(name: str) -> str:
    """Return the attribute that a class names after itself, such as ``ticket_id`` of a Ticket."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_") + "_id"


def agent_name(agent: object) -> str:
    """Return what logs and messages call an agent: its id or name, else its class and address.

    Raises:
        Exception: What a property of the user's raises, such as that of a detached database row.
    """
    # the usual case, without the calls of the general one
    try:
        name: Any = agent.agent_id  # type: ignore[attr-defined]
    except AttributeError:
        name = None
    if type(name) is str:
        return name

    found = given_name(agent)
    if not found:
        found = f"{type(agent).__name__}@{id(agent):x}"
        _warn_once(type(agent), found)

    return found


def name_or_number(agent: object) -> str:
    """Return the `agent_name`, or class and address of an agent whose name cannot be read."""
    try:
        return agent_name(agent)
    except Exception:
        return f"{type(agent).__name__}@{id(agent):x}"


def given_name(agent: object) -> str | None:
    """Return an agent's id or name, or None if it has neither."""
    for attribute in ("agent_id", "unique_id", "id", _own_key(type(agent).__name__), "name"):
        value = getattr(agent, attribute, None)
        if value is not None:
            return str(value)

    return None


def _warn_once(cls: type, name: str) -> None:
    if cls not in _nameless:
        _nameless.add(cls)
        _LOGGER.warning(
            "a %s has no agent_id, unique_id, id, %s or name, so logs and prompts call it %s: "
            "give it one of these, by which it can be found again",
            cls.__name__,
            _own_key(cls.__name__),
            name,
        )


def id_text(agent: Any) -> str:
    """Return the `agent_name` of an agent, which has a ``state``; anything else is an id."""
    return agent_name(agent) if hasattr(agent, "state") else str(agent)


def own_name(function: object) -> str | None:
    """Return the name that a guard or an action has by itself.

    That is its ``__qualname__`` from the innermost function on, or else a ``__name__``, which
    callable objects may set. A lambda and a `functools.partial` have none.
    """
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    inner = name.rpartition("<locals>.")[2] if isinstance(name, str) else ""
    return inner if inner and "<lambda>" not in inner else None


def shown_name(function: object, kind: str) -> str | None:
    """Return what pictures and reports call a guard or an action; None if there is none.

    Args:
        function: The function, or None.
        kind: ``guard`` or ``action``, for a function that has no name of its own.
    """
    return None if function is None else own_name(function) or kind


class Announced:
    """Whether the decision on one open question has been announced.

    Args:
        agent: The agent that is asked.
        trigger: The event that opened the question.
        chart: The definition of the chart that asks.

    Attributes:
        already: True once somebody has announced it.
        chart: The definition of the chart that asks.
    """

    __slots__ = ("_agent", "_trigger", "already", "chart")

    def __init__(self, agent: object, trigger: str, chart: Any = None) -> None:
        self._agent = agent
        self._trigger = trigger
        self.already: bool = False
        self.chart: Any = chart

    def is_about(self, agent: object, trigger: str) -> bool:
        """Return whether this is the question."""
        return agent is self._agent and trigger == self._trigger


_awaited: ContextVar[Announced | None] = ContextVar("prism_awaited", default=None)


@contextmanager
def awaiting_announcement(agent: object, trigger: str, chart: Any = None) -> Iterator[Announced]:
    """Find out whether a decision is announced meanwhile, be it by a task that is started."""
    before, announced = _awaited.get(), Announced(agent, trigger, chart)
    _awaited.set(announced)
    try:
        yield announced
    finally:
        # a coroutine that is forgotten may be closed in the context of another one
        if _awaited.get() is announced:
            _awaited.set(before)


def chart_asking(agent: object, trigger: str) -> Any:
    """Return the definition of the chart on whose behalf an agent is asked; None if nobody's."""
    awaited = _question(agent, trigger)
    return None if awaited is None else awaited.chart


def _question(agent: object, trigger: str) -> Announced | None:
    """Return the question to an agent whose announcement somebody waits for, if anybody does."""
    awaited = _awaited.get()
    return awaited if awaited is not None and awaited.is_about(agent, trigger) else None


def is_heard(given: EventLogger | None) -> bool:
    """Return whether anybody takes note of decisions that are announced, fallbacks apart."""
    return _awaited.get() is not None or _listener(given) is not None


def _listener(given: EventLogger | None) -> EventLogger | None:
    """Return the logger of a decision, or None if nobody listens."""
    # a logger that relays events looks itself for who listens, when it passes them on
    return given if getattr(given, "relays", False) else active_logger(given)


class Asked(NamedTuple):
    """An ambiguous event, as it is announced.

    Args:
        agent: Who decided.
        state: Its state.
        trigger: The event that opened the question.
        options: What there was to choose from.
        context: The event's context.
    """

    agent: object
    state: Any
    trigger: str
    options: Sequence[Any]
    context: object


_NOBODY_KNOWS: Mapping[str, Any] = {"reason": None, "probabilities": None}
_NOTHING: Mapping[str, Any] = {}


def announcer(given: EventLogger | None) -> Callable[..., None]:
    """Return what logs decisions, for as long as nothing else is done.

    Finding out who listens takes longer than telling it, so this is made once for many decisions.
    A fallback is a warning, which is shown even without structlog.

    Args:
        given: The reasoner's or the chart's own logger, if it has one.

    Returns:
        A function of what was asked (`Asked`, or an object with its attributes), what was chosen,
        and who chose; then either the weights of the options by which the choice was drawn, or the
        keys of how it was made and further keys, which stand after the context.
    """
    active, awaited = _listener(given), _awaited.get()

    def announce(
        asked: Any,
        chosen: Any,
        source: str,
        weights: Sequence[float] | None = None,
        how: Mapping[str, Any] = _NOBODY_KNOWS,
        more: Mapping[str, Any] = _NOTHING,
    ) -> None:
        if awaited is not None and awaited.is_about(asked.agent, asked.trigger):
            awaited.already = True
        if active is None and source != "fallback":
            return

        name = name_or_number(asked.agent)
        options = [state_text(option) for option in asked.options]
        outcome = {
            "state": state_text(asked.state),
            "trigger": asked.trigger,
            "options": options,
            "chosen": state_text(chosen),
            "source": source,
        }
        about = identified(asked.context)
        if weights is None:
            told = {**how, "context": about, **more}
        else:
            chances = rounded(options, weights)
            told = {"reason": None, "probabilities": chances, "context": about}
        try:
            if source == "fallback":
                report(given, "warning", DECISION, agent_id=name, **outcome, **told)
            elif active is not None:
                active.info(DECISION, agent_id=name, **outcome, **told)
        except Exception as error:
            pass_over(error, DECISION)

    return announce


def rounded(texts: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """Return the probabilities of options for a log, rounded to six digits."""
    # loaded late: it takes a fifth of the time that importing a chart takes
    from prism.randomness._stream import total_of

    total = total_of(weights)
    return {text: round(part / total, 6) for text, part in zip(texts, weights, strict=True)}


def known(**values: Any) -> dict[str, Any]:
    """Return what is not None: other logs have the keys they always had."""
    return {name: value for name, value in values.items() if value is not None}


def identified(context: object) -> dict[str, Any] | None:
    """Return what identifies a context, or its class if that cannot be read."""
    try:
        return identify(context)
    except Exception:
        return {"type": type(context).__name__}
