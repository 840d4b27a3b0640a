"""Checks of what a run is given."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from reprlib import repr as brief
from typing import Any, ClassVar, Protocol, TypedDict

from prism.errors import FieldValueError, InputError
from prism.llm import Model
from prism.runlog import SimulatedClock
from prism.runs import WriterOptions
from prism.runs._options import DeciderOptions
from prism.statechart import BaseWriter, Decider
from prism.telemetry.loggers import EventLogger
from prism.worlds._people import AgentTable
from prism.worlds._world import DEFAULT_AGENTS


class Arguments(TypedDict, total=False):
    """The arguments of a `Run` by name."""

    rounds: int | None
    ticks: int | None
    seed: int
    model: Any
    reasoner: Decider | DeciderOptions
    writer: Any
    treatments: Sequence[str]
    parameters: Any
    logger: EventLogger | None
    clock: SimulatedClock | None
    log_agents: int | None


class RunsAlone(Protocol):
    """An agent whose class runs alone, such as a `CognitiveAgent`."""

    _prism_run_alone: ClassVar[str]


def population_of(agents: Any) -> Any:
    """Return the agents of a run: their number, a table, or the agents themselves."""
    if isinstance(agents, str) and agents.isdecimal():
        agents = int(agents)
    if isinstance(agents, (str, Path)):
        return AgentTable(agents)
    if isinstance(agents, Integral):
        agents = int(agents)
    if isinstance(agents, int) and agents < 1:
        raise InputError(f"must be 1 or more, got {agents}", field="agents")
    return DEFAULT_AGENTS if agents is None else agents


def treatments_of(treatments: Any) -> tuple[str, ...]:
    """Return the treatments of a run.

    Raises:
        InputError: If they are something else.
    """
    # a text is a sequence of letters
    if isinstance(treatments, str):
        problem = f"must be a list of texts, such as [{treatments!r}]"
        raise InputError(problem, field="treatments")
    return tuple(treatments)


def decider_of(model: Any, reasoner: Any) -> Any:
    """Return the reasoner or the model that decides.

    Raises:
        InputError: If both were given, or the reasoner cannot decide.
    """
    if model is not None and reasoner is not None:
        raise InputError("has no effect beside a reasoner: leave one out", field="model")
    if is_own(reasoner) and not callable(getattr(reasoner, "decide_many", None)):
        raise InputError(
            "must be a reasoner or a policy file, and a model is passed as model=...; "
            f"got {brief(reasoner)}",
            field="reasoner",
        )
    return reasoner if model is None else Model.of(model)


def writer_of(decides: Any, writer: Any) -> Any:
    """Return the writer: the user's own, or the options of a model that writes."""
    if writer is None or isinstance(writer, (WriterOptions, BaseWriter)):
        return writer
    asked = Model.of(writer)
    # a client that decides and writes is only one client
    return WriterOptions(None if asked == decides else asked)


def is_own(asked: Any) -> bool:
    """Return whether the reasoner or the writer is the user's own object."""
    return asked is not None and not hasattr(asked, "to_config")


def require_whole(name: str, value: int, least: int) -> int:
    """Return a number of rounds, ticks or agents.

    Raises:
        FieldValueError: If it is not a whole number of at least so much.
    """
    # numpy's whole numbers are whole numbers, too
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise FieldValueError(f"{name} must be a whole number, {least} or more, got {value!r}")
    return int(value)


def require_seed(value: int) -> int:
    """Return a seed.

    Raises:
        FieldValueError: If it is not a whole number.
        InputError: If it is too large.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise FieldValueError(f"seed must be a whole number, got {value!r}")
    # the largest whole number that every reader of JSON reads exactly
    if abs(value) > 2**53:
        raise InputError(f"must lie between -2^53 and 2^53, got {value}", field="seed")
    return int(value)


def askers_of(run: Any, fallback: Any) -> tuple[Any, BaseWriter | None]:
    """Return the reasoner and the writer of a run, if any were given."""
    reasoner, writer, later = run.reasoner, run.writer, run.later_deciders()
    if is_own(reasoner) and later:
        problem = "switch to another, but a reasoner of your own decides: leave out one"
        raise InputError(problem, field="treatments")
    own_reasoner, own_writer = (each if is_own(each) else None for each in (reasoner, writer))
    options = None if own_reasoner is not None else reasoner
    written = None if own_writer is not None else writer
    if options is None and written is None and not later:
        return own_reasoner, own_writer

    # the code that asks a model is loaded only by runs that have one
    from prism.runs._makers import make_askers

    decides, writes = make_askers(options, written, run.seed, fallback, later=later)
    return own_reasoner or decides, own_writer or writes
