"""What no run of a plan can be, found before the first one begins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from prism.errors import InputError, PrismError
from prism.runs import ModelOptions, RunOptions
from prism.science._configuration import Configuration, kind_of
from prism.science._plan_schema import Keys

_KEYS_OF_FIELDS: Mapping[str | None, str] = {"ticks_per_round": "ticks", None: "world"}
_LEFT_OUT = ("preset", "agents", "posts", "keep", "rounds", "ticks")
"""Settings without which the rest of a run can still be looked at."""

Wrong = tuple[Keys, str]


class Plan(Protocol):
    """What a plan is asked for here; see `prism.science.Plan`."""

    @property
    def data(self) -> Mapping[str, Any]:
        """What it says."""

    @property
    def path(self) -> Path | None:
        """The file that it was read from, if it was."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds."""

    def options(self, configuration: Configuration, seed: int) -> RunOptions[Any]:
        """Return one run of the plan."""

    def error(self, problem: str, keys: Keys) -> InputError:
        """Return an error that says where in the plan something is wrong."""


class MisplacedError(InputError):
    """An error that knows where in a plan it is about."""

    def __init__(self, plan: Plan, problem: str, keys: Keys) -> None:
        found = plan.error(problem, keys)
        super().__init__(problem, path=found.path, line=found.line, field=found.field)
        self.keys = keys


def impossible_in(plan: Plan, configurations: Sequence[Configuration]) -> Iterator[Wrong]:
    """Yield what no run of some configurations can be, and where in the plan it stands.

    Args:
        plan: The plan.
        configurations: The configurations.
    """
    tried: set[str] = set()
    for each in configurations:
        is_new = (kind := kind_of(each)) not in tried
        tried.add(kind)
        yield from _wrong_in(plan, each, is_new)


def arm_of(plan: Plan, configuration: Configuration) -> tuple[int, Mapping[str, Any]]:
    """Return the place of the arm of a configuration, and what it says."""
    arms = enumerate(plan.data.get("arm", ()))
    return next((each for each in arms if each[1]["name"] == configuration.arm), (0, {}))


def keys_of_treatment(plan: Plan, configuration: Configuration, table: str, place: int) -> Keys:
    """Return where a treatment stands: those of the plan come before those of the arm.

    Args:
        plan: The plan.
        configuration: The configuration that has it.
        table: ``treatment`` for tables, ``treatments`` for texts.
        place: Its place among those of its kind that the configuration has.
    """
    common = len(plan.data.get(table, ()))
    if place < common:
        return (table, place)

    return ("arm", arm_of(plan, configuration)[0], table, place - common)


def _wrong_in(plan: Plan, configuration: Configuration, is_new: bool) -> Iterator[Wrong]:
    """Yield what is wrong with a configuration, one thing after the other.

    Args:
        plan: The plan.
        configuration: The configuration.
        is_new: Whether its run is to be made, too, as it is the first of its kind.
    """
    try:
        options = plan.options(configuration, plan.seeds[0])
        if is_new:
            yield from _wrong_treatments(plan, configuration, options)
    except MisplacedError as error:
        yield error.keys, error.problem
    except InputError as error:
        keys, problem = _keys_of(plan, error, configuration), error.problem
        if error.path is not None and Path(error.path) != plan.path:
            # of a file that the plan names
            keys, problem = _keys_of_file(plan, error.path, configuration), str(error)
        yield keys, problem
        if (left := _without(configuration, str(keys[-1]))) is not None:
            yield from _wrong_in(plan, left, is_new)
    except PrismError as error:
        yield _keys_in(plan, configuration, "world"), str(error)


def _wrong_treatments(
    plan: Plan, configuration: Configuration, options: RunOptions[Any]
) -> Iterator[Wrong]:
    """Make a run, and yield what cannot be done to it.

    Raises:
        PrismError: If the run cannot be made even where nothing is done to it.
    """
    treatments: Sequence[Any] = getattr(options, "treatments", ())
    try:
        _make(options)
    except PrismError as error:
        if not treatments:
            raise
        _make(_with_treatments(options, ()))
        joint = _keys_in(plan, configuration, "treatment"), str(error)
    else:
        return

    texts = len(configuration.settings.get("treatments", ()))
    found = False
    for place, each in enumerate(treatments):
        try:
            _make(_with_treatments(options, (each,)))
        except PrismError as error:
            is_text = place < texts
            table, number = ("treatments", place) if is_text else ("treatment", place - texts)
            keys = keys_of_treatment(plan, configuration, table, number)
            yield keys, error.problem if isinstance(error, InputError) else str(error)
            found = True

    # each could be done alone
    if not found:
        yield joint


def _with_treatments(options: Any, treatments: Sequence[Any]) -> Any:
    return replace(options, treatments=tuple(treatments))


def _make(options: Any) -> None:
    """Make a run, but for a file of answers, which another process may use."""
    reasoner = options.reasoner
    if isinstance(reasoner, ModelOptions) and reasoner.cache is not None:
        options = replace(options, reasoner=replace(reasoner, cache=None))

    options.prepare()(None, None)


def _without(configuration: Configuration, name: str) -> Configuration | None:
    """Return a configuration without a parameter or setting; None if that is needed."""
    if name in configuration.parameters:
        return replace(configuration, parameters=_but(configuration.parameters, name))
    if name in _LEFT_OUT and name in configuration.settings:
        return replace(configuration, settings=_but(configuration.settings, name))

    return None


def _but(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in given.items() if each != name}


def _keys_of(plan: Plan, error: InputError, configuration: Configuration) -> Keys:
    """Return where in the plan stands what an error of a run's options is about."""
    place, arm = arm_of(plan, configuration)
    if error.field == "parameters":
        # what is wrong is said of a name; those that there are follow it
        said = set(re.findall(r"\w+", error.problem.partition(": it has")[0]))
        for name in (each for each in configuration.parameters if each in said):
            if name in arm.get("parameters", {}):
                return ("arm", place, "parameters", name)
            groups = (each for each in ("vary", "bounds") if name in plan.data.get(each, {}))
            return (next(groups, "parameters"), name)

    return _keys_in(plan, configuration, _KEYS_OF_FIELDS.get(error.field, error.field or ""))


def _keys_of_file(plan: Plan, path: str, configuration: Configuration) -> Keys:
    """Return where in the plan a file is named."""
    settings = configuration.settings
    named = {**settings.get("reasoner", {}), **settings}
    key = next((name for name, value in named.items() if value == path), "world")

    return _keys_in(plan, configuration, key)


def _keys_in(plan: Plan, configuration: Configuration, key: str) -> Keys:
    """Return where in the plan a key stands that holds for a configuration."""
    place, arm = arm_of(plan, configuration)
    if key in arm:
        return ("arm", place, key)
    if key in arm.get("reasoner", {}):
        return ("arm", place, "reasoner", key)
    for table in ("reasoner", "vary", "bounds"):
        if key not in plan.data and key in plan.data.get(table, {}):
            return (table, key)

    return (key,)
