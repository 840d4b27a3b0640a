"""A plan of an experiment: parameters, arms and seeds, and the runs that they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Self, TypeVar

from prism.errors import InputError, PrismError
from prism.files._source import Problems, Source, Where
from prism.llm import Model
from prism.llm._addresses import shown_address
from prism.llm._settings import KEYS, from_plain
from prism.runs import PolicyOptions, WriterOptions
from prism.science._batch_folder import BatchFolder
from prism.science._measure_names import unknown_measure
from prism.science._plan_file import (
    FEED,
    VARIED_SETTINGS,
    placed,
    plan_path,
    require_plan,
)
from prism.social import Feed
from prism.worlds import Run, World
from prism.worlds._addresses import address_of, load_world

PlanT = TypeVar("PlanT", bound="Plan")

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
        file: The file it was read from, if any; errors name its lines.

    Raises:
        InputError: If it is not a valid plan.
    """

    data: Mapping[str, Any]
    file: Source | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Reject a plan that violates the schema or contradicts itself."""
        require_plan(self.source)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a plan from a TOML file, or one that comes with prism by name, such as ``rumour``.

        Relative paths in the plan are relative to its folder.

        Raises:
            InputError: If it cannot be read or is not a valid plan; the message names line and key.
        """
        found = plan_path(path)
        file = Source.read(found, "toml")
        plan = cls(file.value, file)
        return replace(plan, data=placed(plan.data, found.parent))

    @classmethod
    def of(cls, plan: Self | Path | str) -> Self:
        """Return a plan, which may be given by its file; see `from_file`."""
        return plan if isinstance(plan, cls) else cls.from_file(plan)  # type: ignore[arg-type]

    @classmethod
    def from_batch(cls, folder: Path) -> Self:
        """Return the plan of a batch; see `prism.science.read_batch`."""
        return cls(BatchFolder(folder).read()["plan"])

    @property
    def name(self) -> str:
        """The name of the plan; empty if it has none."""
        return str(self.data.get("name", ""))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds. Every configuration runs with each of them."""
        given = self.data.get("seeds", 1)
        return tuple(range(given)) if isinstance(given, int) else tuple(given)

    @property
    def budget(self) -> Mapping[str, Any]:
        """The limits of all runs together: ``max_calls``, ``max_tokens``, ``deadline``."""
        return dict(self.data.get("budget", {}))

    def with_seeds(self, seeds: int | Sequence[int]) -> Self:
        """Return the same plan with other seeds: a list, or their number, counted from 0."""
        given = seeds if isinstance(seeds, int) else list(seeds)
        return replace(self, data={**self.data, "seeds": given})

    def with_budget(self, **limits: float | None) -> Self:
        """Return the same plan with new limits; a limit of None stays as it is."""
        given = {name: value for name, value in limits.items() if value is not None}
        return replace(self, data={**self.data, "budget": {**self.budget, **given}})

    def with_hosts(self, hosts: Sequence[str]) -> Self:
        """Return the same plan with other server addresses, which may contain passwords.

        Raises:
            InputError: If the plan uses no model.
        """
        return _with_reasoner(self, "host", [*hosts])

    def with_model(self, model: str) -> Self:
        """Return the same plan with another model.

        Raises:
            InputError: If the plan uses no model.
        """
        return _with_reasoner(self, "model", model)

    def configurations(self) -> tuple[Configuration, ...]:
        """Return the configurations: every combination of varied values in every arm."""
        vary: Mapping[str, Sequence[Any]] = self.data.get("vary", {})
        arms: Sequence[Mapping[str, Any]] = self.data.get("arm", [{}])
        found = []
        for arm in arms:
            for values in product(*vary.values()):
                varied = dict(zip(vary, values, strict=True))
                found.append(_configuration(self.data, arm, varied, _name_of(arm, varied)))

        return tuple(_named_apart(found))

    def samples(
        self, parameters: Sequence[Mapping[str, Any]], *, with_seeds: bool = False
    ) -> tuple[Configuration, ...]:
        """Return a configuration for each set of parameters, named by its number.

        Args:
            parameters: The parameters of each sample. Every arm runs it.
            with_seeds: Whether each sample gets its own seeds, as many as the plan has.
        """
        count, first = len(self.seeds), min(self.seeds)
        found = []
        for number, each in enumerate(parameters):
            begin = first + number * count
            seeds = tuple(range(begin, begin + count)) if with_seeds else ()
            for arm in self.data.get("arm", [{}]):
                name = _name_of(arm, {"sample": f"{number + 1:05}"}).replace("sample=", "sample-")
                made = _configuration(self.data, arm, each, name)
                found.append(replace(made, seeds=seeds))

        return tuple(found)

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
        given: dict[str, Any] = {
            "seed": seed,
            "reasoner": _within(_reasoner(settings), self.budget, of),
            "writer": WriterOptions(**settings["writer"]) if "writer" in settings else None,
            **{key: settings[key] for key in _OF_RUNS if key in settings},
        }
        world = settings.get("world", FEED)
        if "treatments" in settings:
            given["treatments"] = tuple(settings["treatments"])
        of_feed = {name: settings[key] for key, name in _OF_FEED.items() if key in settings}
        given["parameters"] = {**of_feed, **configuration.parameters}

        return Run(world, **given)

    def check(self, configurations: Sequence[Configuration] = ()) -> None:
        """Check the configurations before any run begins.

        Args:
            configurations: The configurations to check; by default all.

        Raises:
            InputError: If one is impossible; the message names line and key if the plan is a file.
        """
        chosen = configurations or self.configurations()
        kinds: set[str] = set()
        for each in chosen:
            try:
                run = self.options(each, self.seeds[0])
                # the first of each kind is set up as well
                if (kind := _kind_of(each)) not in kinds:
                    kinds.add(kind)
                    run.prepare(None)
            except PrismError as error:
                problem = error.problem if isinstance(error, InputError) else str(error)
                raise self.source.error(problem, _where(self, error, each)) from None

        problems = Problems(self.source)
        _check_measures(self, chosen, problems)
        problems.raise_if_any()

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, with user names and passwords removed from addresses."""
        found = {**self.data}
        if isinstance(host := found.get("reasoner", {}).get("host"), (str, list)):
            hosts = [host] if isinstance(host, str) else host
            found["reasoner"] = {
                **found["reasoner"],
                "host": [shown_address(each) for each in hosts],
            }

        return found

    @property
    def source(self) -> Source:
        """Its contents, with the line of each part if it was read from a file."""
        return Source.of(self.data) if self.file is None else replace(self.file, value=self.data)


def is_of_feed(plan: Plan) -> bool:
    """Return whether a plan runs the social feed."""
    return bool(plan.data.get("world", FEED) == FEED)


def feed_parameters(configuration: Configuration) -> Feed:
    """Return a social feed with the parameters of a configuration.

    Raises:
        InputError: If there is no such parameter or preset.
    """
    preset = configuration.settings.get("preset")
    of_preset = {} if preset is None else {"preset": preset}
    return Feed(**of_preset, **configuration.parameters)


def inputs_of(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of every file that the runs of a plan read, by file name.

    Raises:
        InputError: If one cannot be read.
    """
    found: dict[str, str] = {}
    for each in _kinds(plan):
        found.update(plan.options(each, plan.seeds[0]).to_config()["inputs"])

    return found


_OF_FEED = {"preset": "preset", "posts": "first_posts"}
"""Keys of plans for the feed, and the feed's own names for them."""

_OF_RUNS = ("agents", "rounds", "ticks", "log_agents")
"""Keys of a plan that a run has as well."""

_OF_PLAN = (
    *("name", "description", "seeds", "parameters", "vary", "arm", "budget", "bounds"),
    *("measures", "target"),
)
"""Keys that belong to the plan as a whole, not to a configuration."""


def _with_reasoner(plan: PlanT, key: str, value: Any) -> PlanT:
    if "reasoner" not in plan.data:
        raise InputError("is for a model, but this plan asks none: add [reasoner]", field=key)

    return replace(plan, data={**plan.data, "reasoner": {**plan.data["reasoner"], key: value}})


def _kinds(plan: Plan) -> Sequence[Configuration]:
    """Return one configuration of each kind; see `_kind_of`."""
    return tuple({_kind_of(each): each for each in plan.configurations()}.values())


def _configuration(
    data: Mapping[str, Any], arm: Mapping[str, Any], varied: Mapping[str, Any], name: str
) -> Configuration:
    common = {key: value for key, value in data.items() if key not in _OF_PLAN}
    own = {key: value for key, value in arm.items() if key not in ("name", "parameters")}
    if "treatments" in own:
        # an arm adds to the treatments of all arms
        own["treatments"] = [*common.get("treatments", ()), *own["treatments"]]
    if "reasoner" in own:
        own["reasoner"] = {**common.get("reasoner", {}), **own["reasoner"]}

    sizes, parameters = dict(varied), dict(data.get("parameters", {}))
    for key in varied:
        if key not in VARIED_SETTINGS:
            parameters[key] = sizes.pop(key)

    settings = {**common, **own, **sizes}
    return Configuration(
        name, arm.get("name"), {**parameters, **arm.get("parameters", {})}, settings
    )


def _reasoner(settings: Mapping[str, Any]) -> Model | PolicyOptions | None:
    if "reasoner" not in settings:
        return None

    given = dict(settings["reasoner"])
    if "policy" in given:
        if len(given) > 1:
            problem = "decides instead of a model: leave out the options of a model"
            raise InputError(problem, field="policy")
        return PolicyOptions(Path(given["policy"]))

    given = from_plain(given)
    if "model" not in given:
        raise InputError("needs the name of a model, as the server lists it", field="reasoner")

    return Model.of(given.pop("model"), **given)


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
        own = getattr(reasoner, name)
        limits[name] = part if own is None else min(part, own)
    return replace(reasoner, **limits)


def _name_of(arm: Mapping[str, Any], varied: Mapping[str, Any]) -> str:
    parts = [arm["name"]] if "name" in arm else []
    # a file of agents appears by its name, without its folder
    told = {
        key: Path(value).name if key == "agents" and isinstance(value, str) else value
        for key, value in varied.items()
    }
    parts += [f"{name}={_shown(value)}" for name, value in told.items()]
    name = _UNSAFE.sub("-", ",".join(parts)).strip(".-")[:_MOST_NAME]

    return name or "all"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _named_apart(found: Sequence[Configuration]) -> Iterator[Configuration]:
    """Yield the configurations with distinct names; those that clash get numbers."""
    # names become folders, and some file systems ignore case
    seen: set[str] = set()
    for each in found:
        name, number = each.name, 1
        while name.casefold() in seen:
            number += 1
            name = f"{each.name}-{number}"
        seen.add(name.casefold())
        yield replace(each, name=name)


def _kind_of(configuration: Configuration) -> str:
    """Return a key that is equal for configurations that differ only in world parameters."""
    varied = [configuration.settings.get(name) for name in VARIED_SETTINGS]
    return repr((configuration.arm, varied))


# Checks before the first run


def _check_measures(
    plan: Plan, configurations: Sequence[Configuration], problems: Problems
) -> None:
    """Note measures that no run will have, and targets of rounds that there will not be."""
    measures, targets = plan.data.get("measures", ()), plan.data.get("target", ())
    if not measures and not targets:
        return

    world = plan.data.get("world", FEED)
    cls: type[World[Any]] = Feed if world == FEED else load_world(address_of(world))
    # what is sampled is explained and fitted by the tables alone
    is_sampled = "bounds" in plan.data
    for place, name in enumerate(measures):
        if problem := unknown_measure(name, cls, only_tables=is_sampled):
            problems.add(("measures", place), problem)
    for place, target in enumerate(targets):
        if problem := unknown_measure(target["measure"], cls, only_tables=True):
            problems.add(("target", place, "measure"), problem)
        arm = target.get("arm")
        of_arm = [each for each in configurations if arm in (None, each.arm)]
        least = min(int(each.settings.get("rounds", cls.rounds)) for each in of_arm)
        if target.get("round", 1) > least:
            problem = f"is {target['round']}, but the run has the rounds 1 to {least}"
            problems.add(("target", place, "round"), problem)


def _where(plan: Plan, error: PrismError, configuration: Configuration) -> Where:
    """Return the location in the plan of what makes a configuration impossible.

    The words of the message decide between the parameters, treatments and files of the plan.
    """
    # it names what is wrong before it lists what there is
    text = str(error).partition(": it has")[0]
    words = {*re.findall(r"[^\s'\":,]+", text), *re.findall(r"\w+", text)}
    arms = plan.data.get("arm", ())
    place = next((i for i, arm in enumerate(arms) if arm["name"] == configuration.arm), 0)
    inside: Where = ("arm", place)
    arm = arms[place] if arms else {}

    for group, where in ((arm, inside), (plan.data, ())):
        for table in ("parameters", "vary", "bounds", "reasoner"):
            for name, value in group.get(table, {}).items():
                names = {name, KEYS.get(name, name), value if isinstance(value, str) else name}
                if words & names or name == _field_of(error):
                    return (*where, table, name)
        for index, treatment in enumerate(group.get("treatments", ())):
            if words & {treatment, treatment.partition("@")[0]}:
                return (*where, "treatments", index)
        for key, value in group.items():
            is_named = isinstance(value, str) and value in words and key != "name"
            if is_named or (key in _OF_FEED and key in words):
                return (*where, key)
        key = _FEED_KEYS.get(_field_of(error), _field_of(error))
        if key in group:
            return (*where, key)

    return (_FEED_KEYS.get(_field_of(error), _field_of(error)),)


_FEED_KEYS = {"ticks_per_round": "ticks", "first_posts": "posts"}
"""Fields of runs that have other names in plans."""


def _field_of(error: PrismError) -> str:
    return (error.field or "world") if isinstance(error, InputError) else "world"
