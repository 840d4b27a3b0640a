"""A plan of an experiment: parameters, arms and seeds, and the runs that they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

from prism.errors import InputError
from prism.files._toml import TomlFile
from prism.llm._addresses import shown_address
from prism.runs import ModelOptions, PolicyOptions, RunOptions, WriterOptions, digest
from prism.science._configuration import Configuration, kind_of
from prism.science._plan_checks import SOCIAL, contradictions
from prism.science._plan_places import placed
from prism.science._plan_schema import VARIED_SETTINGS, Keys, mistakes
from prism.science._plan_trials import MisplacedError, impossible_in, keys_of_treatment
from prism.science._shipped import plan_path
from prism.social import Feed, Parameters, SocialRun
from prism.worlds import Treatment, WorldRun
from prism.worlds._addresses import address_of, load_world
from prism.worlds._treatment_tables import read_treatments

_MOST_TOLD = 5
_MOST_NAME = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._=,+-]+")


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
        return self._with_reasoner("host", [*hosts])

    def with_model(self, model: str) -> Self:
        """Return the same plan with another model.

        Raises:
            InputError: If no model is asked.
        """
        return self._with_reasoner("model", model)

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
        return not all(self.options(each, self.seeds[0]).is_repeatable for each in self._kinds())

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
        wrong = impossible_in(self, configurations or self.configurations())
        self._refuse(list(dict.fromkeys(wrong)))

    def inputs(self) -> dict[str, str]:
        """Return the SHA-256 of every file that runs of the plan read, by its name.

        Raises:
            InputError: If one cannot be read.
        """
        found: dict[str, str] = {}
        for each in self._kinds():
            found.update(self.options(each, self.seeds[0]).to_config()["inputs"])
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

    @property
    def path(self) -> Path | None:
        """The file that it was read from, if it was."""
        return None if self.file is None else self.file.path

    def _with_reasoner(self, key: str, value: Any) -> Self:
        if "reasoner" not in self.data:
            raise InputError("is for a model, and this plan asks none: see [reasoner]", field=key)

        return replace(self, data={**self.data, "reasoner": {**self.data["reasoner"], key: value}})

    def _kinds(self) -> Sequence[Configuration]:
        """Return one of the configurations that differ in parameters of the world alone."""
        return tuple({kind_of(each): each for each in self.configurations()}.values())

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
        settings |= {name: varied[name] for name in VARIED_SETTINGS if name in varied}
        if "reasoner" in arm:
            settings["reasoner"] = {**common.get("reasoner", {}), **arm["reasoner"]}

        others = {name: varied[name] for name in varied if name not in VARIED_SETTINGS}
        parameters = {**self.data.get("parameters", {}), **others, **arm.get("parameters", {})}

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

        def refuse(problem: str, keys: Keys) -> InputError:
            place, *inside = keys
            assert isinstance(place, int)
            table = keys_of_treatment(self, configuration, "treatment", place)
            return MisplacedError(self, problem, (*table, *inside))

        tables = read_treatments(settings.get("treatment", ()), cls, refuse)

        return (*settings.get("treatments", ()), *tables)

    def _refuse(self, wrong: Sequence[tuple[Keys, str]]) -> None:
        """Raise one error for all mistakes."""
        if not wrong:
            return

        (keys, problem), *others = wrong
        first = self.error(problem, keys)
        told = [str(self.error(said, where)) for where, said in others[: _MOST_TOLD - 1]]
        if self.path is not None:
            told = [each.removeprefix(f"{self.path}, ") for each in told]
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
    # a file of agents by its name: where it lies says nothing
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
    """Yield configurations whose names differ, also where names of files do not tell apart."""
    seen: set[str] = set()
    for each in found:
        name, number = each.name, 1
        while name.casefold() in seen:
            number += 1
            name = f"{each.name}-{number}"
        seen.add(name.casefold())
        yield replace(each, name=name)
