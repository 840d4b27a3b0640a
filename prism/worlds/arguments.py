"""What a run is given, checked: its arguments, and the parameters of its world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from numbers import Integral
from pathlib import Path
from reprlib import repr as brief
from typing import Any, ClassVar, Protocol, TypedDict

from prism._numbers import plain_number
from prism.errors import InputError
from prism.llm import Model
from prism.reasoner import BaseWriter
from prism.runlog import SimulatedClock
from prism.runs import WriterOptions
from prism.runs.options import DeciderOptions
from prism.statechart import Decider
from prism.telemetry.loggers import EventLogger
from prism.worlds.fields import Declares, Field, read_value, refuse_unknown

MOST = 2**53


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
    agent_id: str
    memory: str | Path


class RunsAlone(Protocol):
    """An agent whose class runs alone, such as a ``CognitiveAgent``."""

    _prism_run_alone: ClassVar[str]


def decider_of(model: Any, reasoner: Any) -> Any:
    """Return the reasoner or the model that decides.

    Raises:
        InputError: If both were given, or the reasoner cannot decide.
    """
    if model is not None and reasoner is not None:
        raise InputError("has no effect beside a reasoner: leave one out", field="model")
    if is_custom(reasoner) and not callable(getattr(reasoner, "decide_many", None)):
        problem = f"must be a reasoner or a policy file (pass model=...), got {brief(reasoner)}"
        raise InputError(problem, field="reasoner")
    return reasoner if model is None else Model.of(model)


def writer_of(decides: Any, writer: Any) -> Any:
    """Return the writer: the user's own, or the options of a model that writes.

    Raises:
        InputError: If a text names no model.
    """
    if writer is None or isinstance(writer, (WriterOptions, BaseWriter)):
        return writer
    try:
        model = Model.of(writer)
    except InputError as error:
        raise InputError(error.problem, field="writer") from None
    # a client that decides and writes is only one client
    return WriterOptions(None if model == decides else model)


def is_custom(service: Any) -> bool:
    """Return whether the reasoner or the writer is the user's own object."""
    return service is not None and not hasattr(service, "to_config")


def require_whole(name: str, value: Any, least: int) -> int:
    """Return a seed, or a number of rounds, ticks or agents.

    Raises:
        InputError: If it is not a whole number from ``least`` to 2**53, up to which every reader of
            JSON reads it exactly.
    """
    # numpy's whole numbers are whole numbers, too
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not least <= value <= MOST:
        problem = f"must be a whole number from {least:,} to {MOST:,}, got {value!r}"
        raise InputError(problem, field=name)
    return int(value)


def askers_of(run: Any, fallback: Any) -> tuple[Any, BaseWriter | None]:
    """Return the reasoner and the writer of a run, if any were given."""
    services = run.reasoner, run.writer
    reasoner, writer = (each if is_custom(each) else None for each in services)
    decider, written = (None if is_custom(each) else each for each in services)
    if decider is None and written is None and run.before is None:
        return reasoner, writer

    # the code that asks a model is loaded only by runs that have one
    from prism.runs.makers import make_askers

    decides, writes = make_askers(decider, written, run.seed, fallback, before=run.before)
    return reasoner or decides, writer or writes


# Parameters of worlds


def parameters_of(cls: type[Declares]) -> dict[str, Field]:
    """Return the parameters of a world's class by name."""
    return {name: field for name, field in cls.fields.items() if not field.is_state}


def parameter_values(world: Any) -> dict[str, Any]:
    """Return the current values of a world's parameters by name."""
    return {name: getattr(world, name) for name in parameters_of(type(world))}


def read_parameters(cls: type[Declares], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters, converted from texts and checked by their types and bounds.

    Raises:
        TypeError: If there is no such parameter.
        FieldTypeError: If a value has the wrong type.
        FieldValueError: If a value is out of its range.
    """
    refuse_unknown(cls, values, "parameter", parameters_of(cls))
    return {name: read_value(cls, name, value) for name, value in values.items()}


def plain_value(value: Any) -> Any:
    """Return a value as JSON represents it: an enum by its value, a tuple as a list."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if isinstance(value, (list, tuple)):
        return [plain_value(each) for each in value]
    if isinstance(value, Path):
        return str(value)
    return plain_number(value)
