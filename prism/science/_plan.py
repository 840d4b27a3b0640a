"""A plan of an experiment: parameters, arms and seeds, and the runs that they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

from prism.errors import InputError, PrismError
from prism.files._source import DocumentError, Problems, Source, Where
from prism.llm._addresses import shown_address
from prism.runs import ModelOptions, PolicyOptions, RunOptions, WriterOptions, digest
from prism.science._plan_file import SOCIAL, VARIED_SETTINGS, placed, plan_path, require_plan
from prism.social import Feed, Parameters, SocialRun
from prism.worlds import Treatment, WorldRun
from prism.worlds._addresses import address_of, load_world
from prism.worlds._treatment_tables import read_treatments

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
    file: Source | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what the schema refuses, and what contradicts itself."""
        require_plan(self.source)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a plan file, TOML, or one that ships, by its name such as ``herd``.

        Files that it names are looked for beside it.

        Raises:
            InputError: If it cannot be read, or says what no plan can; names line and key.
        """
        found = plan_path(path)
        file = Source.read(found, "toml")
        plan = cls(file.value, file)

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
        problems = Problems(self.source)
        tried: set[str] = set()
        for each in configurations or self.configurations():
            is_new = (kind := _kind_of(each)) not in tried
            tried.add(kind)
            _Trial(self, problems).look_at(each, is_new=is_new)

        problems.found = list(dict.fromkeys(problems.found))
        problems.raise_if_any()

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
        return None if self.file is None or self.file.path is None else Path(self.file.path)

    @property
    def source(self) -> Source:
        """What it says, with the place of each part if it was read from a file."""
        return Source.of(self.data) if self.file is None else replace(self.file, value=self.data)

    def error(self, problem: str, where: Where) -> InputError:
        """Return an error that says where in the plan something is wrong.

        Args:
            problem: What is wrong.
            where: The tables and keys that lead there, and places in lists.
        """
        return self.source.error(problem, where)

    def _with_reasoner(self, key: str, value: Any) -> Self:
        if "reasoner" not in self.data:
            raise InputError("is for a model, and this plan asks none: see [reasoner]", field=key)

        return replace(self, data={**self.data, "reasoner": {**self.data["reasoner"], key: value}})

    def _kinds(self) -> Sequence[Configuration]:
        """Return one of the configurations that differ in parameters of the world alone."""
        return tuple({_kind_of(each): each for each in self.configurations()}.values())

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

        def where(place: int) -> Where:
            return _of_treatment(self, configuration, "treatment", place)

        problems = Problems(self.source)
        tables = read_treatments(settings.get("treatment", ()), cls, problems, where)
        problems.raise_if_any()

        return (*settings.get("treatments", ()), *tables)


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


def _kind_of(configuration: Configuration) -> str:
    """Return what configurations have in common that differ in parameters of the world alone."""
    varied = [configuration.settings.get(name) for name in VARIED_SETTINGS]
    return repr((configuration.arm, varied))


# What no run of a plan can be, found before the first one begins


_KEYS_OF_FIELDS: Mapping[str | None, str] = {"ticks_per_round": "ticks", None: "world"}
_LEFT_OUT = ("preset", "agents", "posts", "keep", "rounds", "ticks")
"""Settings without which the rest of a run can still be looked at."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """Looks at configurations of a plan, and notes what no run of them can be."""

    plan: Plan
    problems: Problems

    def look_at(self, configuration: Configuration, *, is_new: bool) -> None:
        """Note what is wrong with a configuration, one thing after the other.

        Args:
            configuration: The configuration.
            is_new: Whether its run is to be made, too, as it is the first of its kind.
        """
        plan = self.plan
        try:
            options = plan.options(configuration, plan.seeds[0])
            if is_new:
                self._treat(configuration, options)
        except InputError as error:
            is_of_plan = error.path is None or Path(error.path) == plan.path
            if is_of_plan and isinstance(error, DocumentError):
                self.problems.found += error.problems
                return

            where, problem = _keys_of(plan, error, configuration), error.problem
            if not is_of_plan:
                # of a file that the plan names
                where, problem = _keys_of_file(plan, str(error.path), configuration), str(error)
            self.problems.add(where, problem)
            if (left := _without(configuration, str(where[-1]))) is not None:
                self.look_at(left, is_new=is_new)
        except PrismError as error:
            self.problems.add(_keys_in(plan, configuration, "world"), str(error))

    def _treat(self, configuration: Configuration, options: Any) -> None:
        """Make a run, and note what cannot be done to it.

        Raises:
            PrismError: If the run cannot be made even where nothing is done to it.
        """
        treatments: Sequence[Any] = getattr(options, "treatments", ())
        try:
            _make(options)
            return
        except PrismError as error:
            if not treatments:
                raise
            _make(replace(options, treatments=()))
            jointly = str(error)

        texts = len(configuration.settings.get("treatments", ()))
        found = False
        for place, each in enumerate(treatments):
            try:
                _make(replace(options, treatments=(each,)))
            except PrismError as error:
                table = "treatments" if place < texts else "treatment"
                number = place if place < texts else place - texts
                where = _of_treatment(self.plan, configuration, table, number)
                problem = error.problem if isinstance(error, InputError) else str(error)
                self.problems.add(where, problem)
                found = True

        # each could be done alone
        if not found:
            self.problems.add(_keys_in(self.plan, configuration, "treatment"), jointly)


def _make(options: Any) -> None:
    """Make a run, but for a file of answers, which another process may use."""
    reasoner = options.reasoner
    if isinstance(reasoner, ModelOptions) and reasoner.cache is not None:
        options = replace(options, reasoner=replace(reasoner, cache=None))

    options.prepare()(None, None)


def _without(configuration: Configuration, name: str) -> Configuration | None:
    """Return a configuration without a parameter or setting; None if that is needed."""
    parts = {"parameters": configuration.parameters}
    if name in _LEFT_OUT:
        parts["settings"] = configuration.settings
    for part, given in parts.items():
        if name in given:
            left = {each: value for each, value in given.items() if each != name}
            return replace(configuration, **{part: left})  # type: ignore[arg-type]

    return None


def _arm_of(plan: Plan, configuration: Configuration) -> tuple[int, Mapping[str, Any]]:
    """Return the place of the arm of a configuration, and what it says."""
    arms = enumerate(plan.data.get("arm", ()))
    return next((each for each in arms if each[1]["name"] == configuration.arm), (0, {}))


def _of_treatment(plan: Plan, configuration: Configuration, table: str, place: int) -> Where:
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

    return ("arm", _arm_of(plan, configuration)[0], table, place - common)


def _keys_of(plan: Plan, error: InputError, configuration: Configuration) -> Where:
    """Return where in the plan stands what an error of a run's options is about."""
    place, arm = _arm_of(plan, configuration)
    if error.field == "parameters":
        # what is wrong is said of a name; those that there are follow it
        said = set(re.findall(r"\w+", error.problem.partition(": it has")[0]))
        for name in (each for each in configuration.parameters if each in said):
            if name in arm.get("parameters", {}):
                return ("arm", place, "parameters", name)
            groups = (each for each in ("vary", "bounds") if name in plan.data.get(each, {}))
            return (next(groups, "parameters"), name)

    return _keys_in(plan, configuration, _KEYS_OF_FIELDS.get(error.field, error.field or ""))


def _keys_of_file(plan: Plan, path: str, configuration: Configuration) -> Where:
    """Return where in the plan a file is named."""
    settings = configuration.settings
    named = {**settings.get("reasoner", {}), **settings}
    key = next((name for name, value in named.items() if value == path), "world")

    return _keys_in(plan, configuration, key)


def _keys_in(plan: Plan, configuration: Configuration, key: str) -> Where:
    """Return where in the plan a key stands that holds for a configuration."""
    place, arm = _arm_of(plan, configuration)
    if key in arm:
        return ("arm", place, key)
    if key in arm.get("reasoner", {}):
        return ("arm", place, "reasoner", key)
    for table in ("reasoner", "vary", "bounds"):
        if key not in plan.data and key in plan.data.get(table, {}):
            return (table, key)

    return (key,)
