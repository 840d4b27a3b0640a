"""A plan of an experiment: parameters, arms and seeds, and the runs that they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Self

from prism.errors import InputError, PrismError
from prism.files._toml import TomlFile
from prism.llm._addresses import shown_address
from prism.runs import ModelOptions, PolicyOptions, RunOptions, WriterOptions, digest
from prism.science._plan_checks import contradictions
from prism.science._plan_places import placed
from prism.science._plan_schema import Keys, mistakes
from prism.science._shipped import plan_path
from prism.social import Feed, Parameters, SocialRun
from prism.worlds import Treatment, WorldRun
from prism.worlds._addresses import address_of, load_world
from prism.worlds._treatment_tables import read_treatments

SOCIAL = "social"
_MOST_TOLD = 5
_MOST_NAME = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._=,+-]+")


@dataclass(frozen=True, slots=True)
class Configuration:
    """One point of a plan: its parameters in one arm. A run is a configuration and a seed.

    Args:
        name: What it is called in tables and folders.
        arm: The arm; None in a plan without arms.
        parameters: The parameters, those of the plan and the arm included.
        settings: What else the plan and the arm say, with the keys of a plan.
    """

    name: str
    arm: str | None
    parameters: Mapping[str, Any]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """A plan of an experiment.

    Args:
        data: What it says, with the keys of a plan file: ``world``, ``agents``, ``rounds``,
            ``ticks``, ``seeds``, ``preset``, ``parameters``, ``vary``, ``arm``, ``treatments``,
            ``reasoner``, ``writer``, ``budget``, ``bounds``, ``measures`` and more, as
            ``docs/plan.schema.json`` has them.
        file: Where it was read, if anywhere; errors name its lines.

    Raises:
        InputError: If it says what no plan can.
    """

    data: Mapping[str, Any]
    file: TomlFile | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what the schema refuses, and what contradicts itself."""
        self._refuse(list(mistakes(self.data)))
        self._refuse(list(contradictions(self.data)))

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a plan file, TOML, or one that ships, by its name such as ``herd``.

        Files that it names are looked for beside it.

        Raises:
            InputError: If it cannot be read, or says what no plan can; names line and key.
        """
        found = plan_path(path)
        file = TomlFile.read(found)
        plan = cls(file.data, file)

        return replace(plan, data=placed(plan.data, found.parent))

    @property
    def name(self) -> str:
        """What the plan is called."""
        return str(self.data.get("name", ""))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, each of which every configuration is run with."""
        given = self.data.get("seeds", 1)
        return tuple(range(given)) if isinstance(given, int) else tuple(given)

    @property
    def budget(self) -> Mapping[str, Any]:
        """What all runs together may spend: ``max_calls``, ``max_tokens``, ``deadline``."""
        return dict(self.data.get("budget", {}))

    def with_seeds(self, seeds: int | Sequence[int]) -> Self:
        """Return the same plan with other seeds: how many, from 0 on, or which."""
        given = seeds if isinstance(seeds, int) else list(seeds)
        return replace(self, data={**self.data, "seeds": given})

    def with_budget(self, **limits: float | None) -> Self:
        """Return the same plan with other limits, as far as they are not None."""
        given = {name: value for name, value in limits.items() if value is not None}
        return replace(self, data={**self.data, "budget": {**self.budget, **given}})

    def with_hosts(self, hosts: Sequence[str]) -> Self:
        """Return the same plan with the addresses of the servers, those with passwords included.

        Raises:
            InputError: If no model is asked.
        """
        if "reasoner" not in self.data:
            raise InputError("is for a model, and this plan asks none", field="host")

        return replace(
            self, data={**self.data, "reasoner": {**self.data["reasoner"], "host": [*hosts]}}
        )

    def configurations(self) -> tuple[Configuration, ...]:
        """Return the configurations: every combination of varied values in every arm."""
        vary: Mapping[str, Sequence[Any]] = self.data.get("vary", {})
        arms: Sequence[Mapping[str, Any]] = self.data.get("arm", [{}])
        found = []
        for arm in arms:
            for values in product(*vary.values()):
                varied = dict(zip(vary, values, strict=True))
                found.append(self._configuration(arm, varied, _name_of(arm, varied)))

        return tuple(_named_apart(found))

    def samples(self, parameters: Sequence[Mapping[str, Any]]) -> tuple[Configuration, ...]:
        """Return configurations with parameters of their own, which are called by numbers."""
        return tuple(
            self._configuration({}, each, f"sample-{number:05}")
            for number, each in enumerate(parameters, start=1)
        )

    @property
    def asks_a_model(self) -> bool:
        """Whether a model is asked in any arm, from the beginning or later on."""
        arms = {each.arm: each for each in self.configurations()}.values()
        return not all(self.options(each, self.seeds[0]).is_repeatable for each in arms)

    def options(self, configuration: Configuration, seed: int) -> RunOptions[Any]:
        """Return one run of the plan.

        Args:
            configuration: One of its configurations.
            seed: Seed of every random number.

        Raises:
            InputError: If no run can be what the configuration says.
        """
        settings = configuration.settings
        given: dict[str, Any] = {
            "seed": seed,
            "keep": tuple(settings.get("keep", ())),
            "reasoner": self._reasoner(settings),
            "writer": self._writer(settings),
        }
        if "agents" in settings:
            given["agents"] = settings["agents"]
        for name, key in (("rounds", "rounds"), ("ticks_per_round", "ticks")):
            if key in settings:
                given[name] = settings[key]
        world = settings.get("world", SOCIAL)
        if treatments := self._treatments(configuration, world):
            given["treatments"] = treatments
        if configuration.parameters:
            given["parameters"] = dict(configuration.parameters)
        if "preset" in settings:
            given["preset"] = settings["preset"]

        if world != SOCIAL:
            return WorldRun(world, **given)

        posts = settings.get("posts")
        return SocialRun(posts=None if posts is None else Path(posts), **given)

    def feed_parameters(self, configuration: Configuration) -> Parameters:
        """Return all parameters of the social feed in one of the plan's configurations.

        Args:
            configuration: The configuration.

        Raises:
            InputError: If there is no such parameter or preset.
        """
        given, preset = configuration.parameters, configuration.settings.get("preset")
        return SocialRun(parameters=dict(given), preset=preset).feed_parameters

    @property
    def is_of_feed(self) -> bool:
        """Whether the runs are of the social feed."""
        return bool(self.data.get("world", SOCIAL) == SOCIAL)

    def check(self, configurations: Sequence[Configuration] = ()) -> None:
        """Refuse what no run could be, all of it together, before any run begins.

        Args:
            configurations: The configurations to look at; by default all.

        Raises:
            InputError: If there is anything; names line and key where the plan is a file.
        """
        wrong: list[tuple[Keys, str]] = []
        looked_into: set[str | None] = set()
        for each in configurations or self.configurations():
            is_new = each.arm not in looked_into
            looked_into.add(each.arm)
            wrong += self._wrong_in(each, is_new)

        self._refuse(list(dict.fromkeys(wrong)))

    def _wrong_in(self, configuration: Configuration, is_new: bool) -> Iterator[tuple[Keys, str]]:
        """Yield what is wrong with a configuration, a parameter after the other.

        Args:
            configuration: The configuration.
            is_new: Whether its run is to be made, too, as it is the first of its arm.
        """
        try:
            options = self.options(configuration, self.seeds[0])
            if is_new:
                _without_cache(options).prepare()
        except _MisplacedError as error:
            yield error.keys, error.problem
        except InputError as error:
            if error.path is not None and Path(error.path) != self._path:
                raise
            keys = self._keys_of(error, configuration)
            yield keys, error.problem
            left = {
                name: value for name, value in configuration.parameters.items() if name != keys[-1]
            }
            if len(left) < len(configuration.parameters):
                yield from self._wrong_in(replace(configuration, parameters=left), is_new)
        except PrismError as error:
            yield (
                self._keys_in(configuration, _KEYS_OF_WORLD[" treatment " in str(error)]),
                str(error),
            )

    def inputs(self) -> dict[str, str]:
        """Return the SHA-256 of every file that runs of the plan read, by its name.

        Raises:
            InputError: If one cannot be read.
        """
        found: dict[str, str] = {}
        for arm in {each.arm: each for each in self.configurations()}.values():
            found.update(self.options(arm, self.seeds[0]).to_config()["inputs"])
        for settings in (self.data, *self.data.get("arm", ())):
            models = settings.get("reasoner", {}).get("models")
            if models is not None:
                found[models] = digest(Path(models))

        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, without names and passwords of servers."""
        found = {**self.data}
        if isinstance(host := found.get("reasoner", {}).get("host"), (str, list)):
            hosts = [host] if isinstance(host, str) else host
            found["reasoner"] = {
                **found["reasoner"],
                "host": [shown_address(each) for each in hosts],
            }

        return found

    @cached_property
    def _path(self) -> Path | None:
        return None if self.file is None else self.file.path

    def _configuration(
        self, arm: Mapping[str, Any], varied: Mapping[str, Any], name: str
    ) -> Configuration:
        common = {key: value for key, value in self.data.items() if key not in _OF_PLAN}
        settings = {**common, **{key: arm[key] for key in arm if key not in ("name", "parameters")}}
        # an arm adds to what all have
        for key in ("treatments", "treatment"):
            both = [*common.get(key, ()), *arm.get(key, ())]
            if both:
                settings[key] = both
        if "reasoner" in arm:
            settings["reasoner"] = {**common.get("reasoner", {}), **arm["reasoner"]}

        parameters = {**self.data.get("parameters", {}), **varied, **arm.get("parameters", {})}

        return Configuration(name, arm.get("name"), parameters, settings)

    def _reasoner(self, settings: Mapping[str, Any]) -> ModelOptions | PolicyOptions | None:
        if "reasoner" not in settings:
            return None

        given = dict(settings["reasoner"])
        if "policy" in given:
            if len(given) > 1:
                problem = "decides instead of a model: leave out what is of a model"
                raise InputError(problem, field="policy")
            return PolicyOptions(Path(given["policy"]))

        for name in ("host", "attributes"):
            if isinstance(given.get(name), str):
                given[name] = [given[name]]
            if name in given:
                given[name] = tuple(given[name])
        if "cache" in given:
            given["cache"] = Path(given["cache"])

        models = given.pop("models", None)
        if models is not None:
            return ModelOptions.from_file(Path(models), **given)
        if "model" not in given:
            raise InputError(
                "needs a model, the name of one that the server lists", field="reasoner"
            )

        return ModelOptions(**given)

    def _writer(self, settings: Mapping[str, Any]) -> WriterOptions | None:
        return WriterOptions(**settings["writer"]) if "writer" in settings else None

    def _treatments(self, configuration: Configuration, world: str) -> tuple[str | Treatment, ...]:
        settings = configuration.settings
        cls = Feed if world == SOCIAL else load_world(address_of(world))
        common = len(self.data.get("treatment", ()))

        def refuse(problem: str, keys: Keys) -> InputError:
            place, *inside = keys
            assert isinstance(place, int)
            # those of the plan come before those of the arm
            if place < common:
                return _MisplacedError(self, problem, ("treatment", place, *inside))
            arm = self._arm_of(configuration)[0]
            return _MisplacedError(
                self, problem, ("arm", arm, "treatment", place - common, *inside)
            )

        tables = read_treatments(settings.get("treatment", ()), cls, refuse)

        return (*settings.get("treatments", ()), *tables)

    def _keys_of(self, error: InputError, configuration: Configuration) -> Keys:
        """Return where in the plan stands what an error of a run's options is about."""
        place, arm = self._arm_of(configuration)
        if error.field == "parameters":
            # what is wrong is said of a name; those that there are follow it
            said = set(re.findall(r"\w+", error.problem.partition(": it has")[0]))
            for name in (each for each in configuration.parameters if each in said):
                if name in arm.get("parameters", {}):
                    return ("arm", place, "parameters", name)
                groups = (each for each in ("vary", "bounds") if name in self.data.get(each, {}))
                return (next(groups, "parameters"), name)

        return self._keys_in(configuration, _KEYS_OF_FIELDS.get(error.field, error.field or ""))

    def _keys_in(self, configuration: Configuration, key: str) -> Keys:
        """Return where in the plan a key stands that holds for a configuration."""
        place, arm = self._arm_of(configuration)
        if key in arm:
            return ("arm", place, key)

        return ("reasoner", key) if key in self.data.get("reasoner", {}) else (key,)

    def _arm_of(self, configuration: Configuration) -> tuple[int, Mapping[str, Any]]:
        """Return the place of the arm of a configuration, and what it says."""
        arms = enumerate(self.data.get("arm", ()))
        return next((each for each in arms if each[1]["name"] == configuration.arm), (0, {}))

    def _refuse(self, wrong: Sequence[tuple[Keys, str]]) -> None:
        """Raise one error for all mistakes."""
        if not wrong:
            return

        (keys, problem), *others = wrong
        first = self.error(problem, keys)
        told = [str(self.error(said, where)) for where, said in others[: _MOST_TOLD - 1]]
        if self._path is not None:
            told = [each.removeprefix(f"{self._path}, ") for each in told]
        more = len(others) - len(told)
        tail = [f"and {more} more"] if more > 0 else []
        raise InputError(
            "; ".join([first.problem, *told, *tail]),
            path=first.path,
            line=first.line,
            field=first.field,
        )

    def error(self, problem: str, keys: Keys) -> InputError:
        """Return an error that says where in the plan something is wrong.

        Args:
            problem: What is wrong.
            keys: The tables and keys that lead there, and places in lists of tables.
        """
        if self.file is not None:
            return self.file.error(problem, keys)

        names = [key for key in keys if isinstance(key, str)]
        return InputError(problem, field=".".join(names) or None)


class _MisplacedError(InputError):
    """An error that knows where in a plan it is about."""

    def __init__(self, plan: Plan, problem: str, keys: Keys) -> None:
        found = plan.error(problem, keys)
        super().__init__(problem, path=found.path, line=found.line, field=found.field)
        self.keys = keys


_KEYS_OF_FIELDS: Mapping[str | None, str] = {"ticks_per_round": "ticks", None: "world"}
_KEYS_OF_WORLD = ("world", "treatments")
_OF_PLAN = (
    "name",
    "description",
    "seeds",
    "parameters",
    "vary",
    "arm",
    "budget",
    "bounds",
    "measures",
)
"""Keys that say nothing about one configuration."""


def _name_of(arm: Mapping[str, Any], varied: Mapping[str, Any]) -> str:
    parts = [arm["name"]] if "name" in arm else []
    parts += [f"{name}={_shown(value)}" for name, value in varied.items()]
    name = _UNSAFE.sub("-", ",".join(parts)).strip(".-")[:_MOST_NAME]

    return name or "all"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _named_apart(found: Sequence[Configuration]) -> Iterator[Configuration]:
    """Yield configurations whose names differ, also where names of files do not tell apart."""
    seen: set[str] = set()
    for each in found:
        name, number = each.name, 1
        while name.casefold() in seen:
            number += 1
            name = f"{each.name}-{number}"
        seen.add(name.casefold())
        yield replace(each, name=name)


def _without_cache(options: Any) -> Any:
    """Return the same options without a file of answers, which another process may use."""
    reasoner = options.reasoner
    if isinstance(reasoner, ModelOptions) and reasoner.cache is not None:
        return replace(options, reasoner=replace(reasoner, cache=None))
    return options
