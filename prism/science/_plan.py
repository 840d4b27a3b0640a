"""A plan of an experiment: parameters, arms and seeds, and the runs that they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any, Self

from prism._numbers import plain_data
from prism.errors import InputError, PrismError
from prism.files.source import Source
from prism.llm import Model
from prism.llm.settings import from_plain
from prism.runs import PolicyOptions, WriterOptions
from prism.science._plan_file import FEED, VARIED_SETTINGS, placed, plan_path, require_plan
from prism.worlds import Run

_MOST_NAME = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._=,+-]+")


@dataclass(frozen=True, slots=True)
class Configuration:
    """One point of a plan: its parameters in one arm. A run is a configuration and a seed.

    Args:
        name: Its name in tables and folders.
        arm: The arm; None in a plan without arms.
        parameters: The parameters, including those of the plan and the arm.
        settings: The other settings of the plan and the arm, under the keys of a plan file.
        seeds: Its seeds, if they differ from those of the plan.
    """

    name: str
    arm: str | None
    parameters: Mapping[str, Any]
    settings: Mapping[str, Any]
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A plan of an experiment.

    Args:
        data: Its contents, under the keys of a plan file: ``world``, ``agents``, ``rounds``,
            ``ticks``, ``seeds``, ``preset``, ``parameters``, ``vary``, ``arm``, ``treatments``,
            ``reasoner``, ``writer``, ``budget``, ``bounds``, ``measures``, ``target`` and the
            others on the page about experiments.
        file: The file it was read from, for messages.

    Raises:
        InputError: If it is not a valid plan.
    """

    data: Mapping[str, Any]
    file: Path | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what is no plan."""
        object.__setattr__(self, "data", plain_data(self.data))
        require_plan(Source.of(self.data, self.file))

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a plan from a TOML file, or one that comes with prism by name, such as ``rumour``.

        Relative paths in the plan are relative to its folder.

        Raises:
            InputError: If it cannot be read or is not a valid plan; the message names the key.
        """
        file = plan_path(path)
        plan = cls(Source.read(file, "toml").value, file)
        return replace(plan, data=placed(plan.data, file.parent))

    @classmethod
    def of(cls, plan: Self | Path | str) -> Self:
        """Return a plan, which may be given by its file; see `from_file`."""
        return plan if isinstance(plan, cls) else cls.from_file(plan)  # type: ignore[arg-type]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds. Every configuration runs with each of them."""
        seeds = self.data.get("seeds", 1)
        return tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)

    def with_seeds(self, seeds: int | Sequence[int]) -> Self:
        """Return the same plan with other seeds: a list, or their number, counted from 0."""
        plain = seeds if isinstance(seeds, Integral) else list(seeds)  # type: ignore[arg-type]
        return replace(self, data={**self.data, "seeds": plain})

    def configurations(self) -> tuple[Configuration, ...]:
        """Return the configurations: every combination of varied values in every arm."""
        vary: Mapping[str, Sequence[Any]] = self.data.get("vary", {})
        arms: Sequence[Mapping[str, Any]] = self.data.get("arm", [{}])
        configurations = []
        for arm in arms:
            for values in product(*vary.values()):
                varied = dict(zip(vary, values, strict=True))
                parts = [f"{key}={_value_text(key, value)}" for key, value in varied.items()]
                name = _folder_name(arm, parts)
                configurations.append(_configuration(self.data, arm, varied, name))

        return tuple(_named_apart(configurations))

    def samples(
        self, parameters: Sequence[Mapping[str, Any]], *, with_seeds: bool = False
    ) -> tuple[Configuration, ...]:
        """Return a configuration for each set of parameters, named by its number.

        Args:
            parameters: The parameters of each sample. Every arm runs it.
            with_seeds: Whether each sample gets its own seeds, as many as the plan has.
        """
        count, first = len(self.seeds), min(self.seeds)
        configured = []
        for number, each in enumerate(parameters):
            begin = first + number * count
            seeds = tuple(range(begin, begin + count)) if with_seeds else ()
            for arm in self.data.get("arm", [{}]):
                name = _folder_name(arm, [f"sample-{number + 1:05}"])
                configured.append(replace(_configuration(self.data, arm, each, name), seeds=seeds))

        return tuple(configured)

    def options(self, configuration: Configuration, seed: int, *, of: int = 1) -> Run[Any]:
        """Return one run of the plan.

        Args:
            configuration: One of its configurations.
            seed: The seed of all its random numbers.
            of: How many runs divide the plan's calls and tokens.

        Raises:
            InputError: If the configuration describes an impossible run.
        """
        settings = configuration.settings
        arguments: dict[str, Any] = {
            "seed": seed,
            "reasoner": _within(_reasoner(settings), self.data.get("budget", {}), of),
            "writer": WriterOptions(**settings["writer"]) if "writer" in settings else None,
            **{key: settings[key] for key in _OF_RUNS if key in settings},
        }
        world = settings.get("world", FEED)
        if "treatments" in settings:
            arguments["treatments"] = tuple(settings["treatments"])
        of_feed = {name: settings[key] for key, name in _OF_FEED.items() if key in settings}
        arguments["parameters"] = {**of_feed, **configuration.parameters}

        return Run(world, **arguments)

    def check(self, configurations: Sequence[Configuration] = ()) -> None:
        """Check the configurations before any run begins.

        Args:
            configurations: The configurations to check; by default all.

        Raises:
            InputError: If one is impossible; the message names the configuration.
        """
        chosen = configurations or self.configurations()
        kinds = _kinds(chosen).values()
        for each in chosen:
            try:
                run = self.options(each, self.seeds[0])
                # the first of each kind is set up as well
                if each in kinds:
                    run.prepare(None)
            except PrismError as error:
                raise self._impossible(each, error) from None

    def _impossible(self, configuration: Configuration, error: PrismError) -> InputError:
        """Return an error of a run as one of the plan, at the key of its field."""
        if not isinstance(error, InputError) or error.path is not None or error.field is None:
            return self.error(f"{error} (in {configuration.name})")
        key = _KEYS.get(error.field, error.field)
        return self.error(f"{error.problem} (in {configuration.name})", key)

    def error(self, problem: str, *where: str | int) -> InputError:
        """Return an error about a part of the plan."""
        return Source.of(self.data, self.file).error(problem, where)


def inputs_of(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of every file that the runs of a plan read, by file name.

    Raises:
        InputError: If one cannot be read.
    """
    digests: dict[str, str] = {}
    for each in _kinds(plan.configurations()).values():
        digests.update(plan.options(each, plan.seeds[0]).to_config()["inputs"])

    return digests


_OF_FEED = {"preset": "preset", "posts": "first_posts"}
"""Keys of plans for the feed, and the feed's own names for them."""

_OF_RUNS = ("agents", "rounds", "ticks", "log_agents")
"""Keys of a plan that a run has as well."""

_KEYS = {"ticks_per_round": "ticks", "first_posts": "posts"}
"""Fields of runs that have other names in plans."""

_OF_PLAN = (
    "name", "description", "seeds", "parameters", "vary", "arm", "budget", "bounds",
    "measures", "target",
)  # fmt: skip
"""Keys that belong to the plan as a whole, not to a configuration."""


def _kinds(configurations: Sequence[Configuration]) -> dict[str, Configuration]:
    """Return the first of the configurations that differ only in parameters of the world."""
    kinds: dict[str, Configuration] = {}
    for each in configurations:
        varied = [each.settings.get(name) for name in VARIED_SETTINGS]
        kinds.setdefault(repr((each.arm, varied)), each)
    return kinds


def _configuration(
    data: Mapping[str, Any], arm: Mapping[str, Any], varied: Mapping[str, Any], name: str
) -> Configuration:
    common = {key: value for key, value in data.items() if key not in _OF_PLAN}
    of_arm = {key: value for key, value in arm.items() if key not in ("name", "parameters")}
    if "treatments" in of_arm:
        # an arm adds to the treatments of all arms
        of_arm["treatments"] = [*common.get("treatments", ()), *of_arm["treatments"]]
    if "reasoner" in of_arm:
        of_arm["reasoner"] = {**common.get("reasoner", {}), **of_arm["reasoner"]}

    sizes, parameters = dict(varied), dict(data.get("parameters", {}))
    for key in varied:
        if key not in VARIED_SETTINGS:
            parameters[key] = sizes.pop(key)

    settings = {**common, **of_arm, **sizes}
    return Configuration(
        name, arm.get("name"), {**parameters, **arm.get("parameters", {})}, settings
    )


def _reasoner(settings: Mapping[str, Any]) -> Model | PolicyOptions | None:
    if "reasoner" not in settings:
        return None

    options = dict(settings["reasoner"])
    if "policy" in options:
        if len(options) > 1:
            problem = "decides instead of a model: leave out the options of a model"
            raise InputError(problem, field="policy")
        return PolicyOptions(Path(options["policy"]))

    options = from_plain(options)
    if "model" not in options:
        raise InputError("needs the name of a model, as the server lists it", field="reasoner")

    return Model.of(options.pop("model"), **options)


def _within(
    reasoner: Model | PolicyOptions | None, budget: Mapping[str, Any], runs: int
) -> Model | PolicyOptions | None:
    """Give a model its run's part of the budget of all runs; each run has the whole time."""
    if not isinstance(reasoner, Model):
        return reasoner
    limits: dict[str, Any] = {}
    for name, limit in budget.items():
        part = limit if name == "deadline" else limit // runs
        if not part:
            raise InputError(f"{limit} is less than 1 for each of {runs} runs", field=name)
        limit_of_model = getattr(reasoner, name)
        limits[name] = part if limit_of_model is None else min(part, limit_of_model)
    return replace(reasoner, **limits)


def _folder_name(arm: Mapping[str, Any], parts: Sequence[str]) -> str:
    """Return the name of a configuration, which is that of its folder, too."""
    text = ",".join([arm["name"], *parts] if "name" in arm else parts)
    return _UNSAFE.sub("-", text).strip(".-")[:_MOST_NAME] or "all"


def _value_text(key: str, value: Any) -> str:
    """Return a varied value as it stands in a name; a file of agents without its folder."""
    if isinstance(value, list):
        return "+".join(_value_text(key, each) for each in value)
    if key == "agents":
        return Path(str(value)).name
    return str(value).lower() if isinstance(value, bool) else str(value)


def _named_apart(configurations: Sequence[Configuration]) -> Iterator[Configuration]:
    """Yield the configurations with distinct names; those that clash get numbers."""
    # names become folders, and some file systems ignore case
    names: set[str] = set()
    for each in configurations:
        name, number = each.name, 1
        while name.casefold() in names:
            number += 1
            name = f"{each.name}-{number}"
        names.add(name.casefold())
        yield replace(each, name=name)
