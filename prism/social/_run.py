"""Runs of the social feed: `Simulation`, and `SocialRun`, its options as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, cast

from prism.agents import (
    Population,
    SeedPost,
    SocialAgent,
    load_population,
    load_posts,
    synthetic_population,
)
from prism.errors import InputError, PrismError
from prism.runlog import SimulatedClock
from prism.runs import DeciderOptions, ModelAssignment, ReplayOptions, WriterOptions
from prism.runs._config import (
    DECIDER_KINDS,
    MOST_SEED,
    check_config,
    digest,
    naming,
    read_decider,
    read_writer,
    require_model_of,
    require_unchanged,
    too_large_a_seed,
)
from prism.runs._options import asks_a_model, deadline_of, files_of, replayed_writer
from prism.social._activity import FREQUENCY
from prism.social._composing import Composer
from prism.social._feed import DEFAULT_ROUNDS, DEFAULT_TICKS_PER_ROUND, DEFAULTS, Feed
from prism.social._networks import code_in
from prism.social._parameters import Parameters
from prism.social._posts import Network
from prism.social._results import Results, RoundSummary
from prism.social._stage import FeedStage
from prism.statechart import AgentState, BaseWriter, Guard, Statechart, Wording
from prism.telemetry._loggers import EventLogger
from prism.worlds import Decider, Loop, Treatment
from prism.worlds._loop import require_count
from prism.worlds._options import kept_treatments
from prism.worlds._parameters import in_groups, parsed_parameters
from prism.worlds._treatments import later_models, require_models, tables_of

DEFAULT_AGENTS = "100"

_POLICY = "policy"


_KINDS: Mapping[str, Any] = {
    "agents": str,
    "posts": str | None,
    "rounds": int,
    "ticks_per_round": int,
    "seed": int,
    "reasoner": (_POLICY, *DECIDER_KINDS),
    "inputs": dict,
}


class Simulation(Loop[Feed, RoundSummary, Results]):
    """A population of social agents that scroll, weigh, write and reshare.

    Each tick every agent takes one step: its time-out if due, else what its state calls for. The
    decisions of one tick are asked together and applied in agent order, so a run depends on the
    seed and the answers alone, never on which answer came first. Random numbers are keyed by (seed,
    agent, round).

    Args:
        agents: The population, in the order in which it acts.
        posts: What was posted before the first round, oldest first; None for what the parameter
            ``opening`` says.
        rounds: Number of rounds, from 1 on.
        ticks_per_round: Steps that an agent takes in a round, from 1 on.
        seed: Seed of every random number.
        reasoner: Decides where several transitions are enabled; a `PolicyReasoner` by default.
        writer: Who writes the words of what agents publish, such as a `prism.statechart.Writer`;
            without one, and where it fails, those of the composer stand.
        wording: Length and language of these words; by default 280 characters.
        composer: Drafts what agents publish; a `TemplateComposer` by default.
        logger: Where to write the run's events; None means structlog's own logger, once it is
            configured.
        clock: The run's clock.
        should_engage: As for `social_media_chart`, for agents whose own method takes something else
            than a post.
        world: A feed of your own, with parameters, measures and treatments.
        parameters: All numbers of the feed's behaviour; by default those that ``world`` has.
        treatments: Treatments of that feed and the rounds at whose beginning they are applied, and
            ready-made ones: ``["warning@3", Likes(1, share=0.5)]``.

    Attributes:
        world: The feed as a world.
        agents: The population.
        chart: The chart of every agent.
        network: Posts and feeds.
        rounds: Number of rounds.
        finished: The rounds that have ended.
        reasoner: Who decides.
        writer: Who writes; None if nobody was given.
        clock: The run's clock.

    Raises:
        AgentError: If agents lack what the chart or the feed needs; lists all that they lack.
        FieldValueError: If there are no agents, two have the same id, a post is by nobody among
            them, or rounds or ticks are below 1.
    """

    def __init__(
        self,
        agents: Iterable[SocialAgent],
        posts: Iterable[SeedPost] | None = (),
        *,
        rounds: int = DEFAULT_ROUNDS,
        ticks_per_round: int = DEFAULT_TICKS_PER_ROUND,
        seed: int = 0,
        reasoner: Decider | None = None,
        writer: BaseWriter | None = None,
        wording: Wording | None = None,
        composer: Composer | None = None,
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
        should_engage: Guard | None = None,
        world: Feed | None = None,
        parameters: Parameters | None = None,
        treatments: Sequence[str | Treatment] = (),
    ) -> None:
        feed = Feed() if world is None else world
        if parameters is not None:
            feed.parameters = parameters
        feed.give(
            posts=None if posts is None else list(posts), composer=composer, guard=should_engage
        )
        super().__init__(
            feed,
            list(agents),
            rounds=rounds,
            ticks=require_count("ticks_per_round", ticks_per_round),
            seed=seed,
            reasoner=reasoner,
            writer=writer,
            wording=wording,
            treatments=treatments,
            logger=logger,
            clock=clock,
        )
        stage = cast(FeedStage, self._stage)
        self.agents: list[SocialAgent] = stage.agents
        self.chart: Statechart[AgentState] = stage.chart
        self.network: Network = stage.network


@dataclass(frozen=True, slots=True)
class SocialRun:
    """A run of the social feed, for `prism.runs.begin`.

    Args:
        agents: How many agents to make up, or a file of them.
        posts: File of posts to begin with.
        rounds: Number of rounds.
        ticks_per_round: Steps that an agent takes in a round.
        seed: Seed of every random number.
        reasoner: Who decides: a model, an earlier run, a policy file, or by default the seeded
            policy.
        keep: Fields of the file of agents to keep as `prism.agents.SocialAgent.attributes`.
        writer: Who writes the words of posts; by default they come from templates.
        treatments: Ready-made treatments of the feed, such as `Likes`.
        parameters: Parameters of the feed, or some of them by name, whose texts are read as values
            of their types; the others are those of the preset.
        preset: Name of a preset; by default that of `Simulation`.

    Raises:
        InputError: If JSON has no room for a value.
    """

    agents: int | str | Path = DEFAULT_AGENTS
    posts: Path | None = None
    rounds: int = DEFAULT_ROUNDS
    ticks_per_round: int = DEFAULT_TICKS_PER_ROUND
    seed: int = 0
    reasoner: DeciderOptions = None
    keep: tuple[str, ...] = ()
    writer: WriterOptions | None = None
    treatments: tuple[str | Treatment, ...] = ()
    parameters: Parameters | Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None

    def __post_init__(self) -> None:
        """Refuse what JSON has no room for."""
        # as run.json has it, so that options read from there are equal to these
        object.__setattr__(self, "agents", str(self.agents))
        if abs(self.seed) > MOST_SEED:
            raise too_large_a_seed(self.seed)

        object.__setattr__(self, "keep", tuple(dict.fromkeys(self.keep)))
        object.__setattr__(self, "parameters", _parameters(self.parameters, self.preset))
        # the parameters say it all, so that options read from run.json are equal to these
        object.__setattr__(self, "preset", None)
        object.__setattr__(self, "treatments", tuple(self.treatments))
        if self.treatments:
            require_models(self.reasoner, self.treatments)
        if self.writer is not None or self.reasoner is not None:
            require_model_of(self.reasoner, self.writer)

    @property
    def feed_parameters(self) -> Parameters:
        """All parameters of the feed."""
        assert isinstance(self.parameters, Parameters)
        return self.parameters

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again."""
        later = self._later()
        is_policy = self.reasoner is None and self.writer is None and not later
        return is_policy or not asks_a_model(self.reasoner, self.writer, later)

    @property
    def deadline(self) -> float | None:
        """Seconds that the run may ask a model for; None without a limit."""
        return deadline_of(self.reasoner, self.writer)

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its decisions and texts taken from an earlier one."""
        texts = replayed_writer(self.writer)
        return replace(self, reasoner=ReplayOptions(recorded), writer=texts)

    def prepare(self) -> Callable[[EventLogger | None, SimulatedClock | None], Simulation]:
        """Read and make all that the run needs.

        Returns:
            A function that makes the simulation, given a logger for its events and a clock.

        Raises:
            InputError: If something is wrong with a file or an option.
        """
        population = self._population()
        posts = (
            load_posts(self.posts, population.agents)
            if self.posts is not None
            else population.posts or None
        )
        reasoner, writer = None, None
        later = self._later()
        if self.reasoner is not None or self.writer is not None or later:
            # what asks a model is loaded by runs that have one
            from prism.runs._makers import make_askers

            reasoner, writer = make_askers(
                self.reasoner,
                self.writer,
                self.seed,
                AgentState.SCROLLING,
                chart=self.feed_parameters.chart,
                later=later,
            )

        def make(logger: EventLogger | None, clock: SimulatedClock | None) -> Simulation:
            return Simulation(
                population.agents,
                posts,
                rounds=self.rounds,
                ticks_per_round=self.ticks_per_round,
                seed=self.seed,
                reasoner=reasoner,
                writer=writer,
                wording=None if self.writer is None else self.writer.wording(),
                treatments=self.treatments,
                parameters=self.feed_parameters,
                logger=logger,
                clock=clock,
            )

        return make

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        return {
            "agents": self.agents,
            "posts": None if self.posts is None else str(self.posts),
            "rounds": self.rounds,
            "ticks_per_round": self.ticks_per_round,
            "seed": self.seed,
            **({"reasoner": _POLICY} if self.reasoner is None else self.reasoner.to_config()),
            # only where it is given: other runs are described as they always were
            **({"keep": list(self.keep)} if self.keep else {}),
            **({} if self.writer is None else {"writer": self.writer.to_config()}),
            **({"treatments": tables_of(self.treatments)} if self.treatments else {}),
            **({"parameters": told} if (told := self.feed_parameters.changes()) else {}),
            "inputs": self._digests(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: Where it stands, for messages.

        Raises:
            InputError: If it is something else, or a file that the run reads has changed.
        """
        optional = {"keep": list, "writer": dict, "treatments": object, "parameters": dict}
        check_config(config, path, _KINDS, optional)
        with naming(path):
            run = cls(
                agents=config["agents"],
                posts=None if config["posts"] is None else Path(config["posts"]),
                rounds=config["rounds"],
                ticks_per_round=config["ticks_per_round"],
                seed=config["seed"],
                reasoner=read_decider(config),
                keep=tuple(config.get("keep", ())),
                writer=read_writer(config, path),
                treatments=kept_treatments(config.get("treatments", []), Feed, path),
                parameters=config.get("parameters", {}),
                preset="classic",
            )

        require_unchanged(config["inputs"], run._digests(), path)

        return run

    def _later(self) -> Mapping[str, ModelAssignment]:
        """Return the models that are asked in the course of the run."""
        return later_models(self.treatments) if self.treatments else {}

    def _population(self) -> Population:
        given, now = str(self.agents), self.feed_parameters
        size = _number(given)
        if size is None:
            if not given.strip():
                raise InputError("must be a number or a file, got nothing", field="agents")
            hours = (FREQUENCY,) if now.hours == "file" else ()
            keep = tuple(dict.fromkeys((*self.keep, *hours)))
            try:
                return load_population(
                    Path(given),
                    seed=self.seed,
                    keep=keep,
                    archetypes=now.archetypes(),
                    most_keywords=now.most_keywords,
                )
            except InputError as error:
                # of a column that nobody has asked for by that option
                if error.field != "keep" or not hours or repr(FREQUENCY) not in error.problem:
                    raise
                problem = f"hours = 'file' needs the field {FREQUENCY}, which {given} does not have"
                raise InputError(problem) from None

        if not size.is_integer():
            raise InputError(f"must be a whole number or a file, got {given}", field="agents")
        if size < 1:
            raise InputError(f"must be 1 or more, got {given}", field="agents")

        if self.keep:
            raise InputError(
                "needs a file of agents: made-up ones have nothing to keep", field="keep"
            )

        # what they have posted before is for the parameters to say
        made_up = synthetic_population(
            int(size),
            seed=self.seed,
            archetypes=now.archetypes(),
            communities=now.communities(),
        )

        return Population(made_up.agents)

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read, by its name."""
        files = {} if self.posts is None else {str(self.posts): self.posts}
        agents = str(self.agents)
        if _number(agents) is None:
            files[agents] = Path(agents)
        if self.reasoner is not None:
            files |= files_of(self.reasoner)
        if self.feed_parameters.functions:
            files |= code_in(self.feed_parameters.functions)

        return {name: digest(path) for name, path in files.items()}


def _parameters(given: Parameters | Mapping[str, Any], preset: str | None) -> Parameters:
    """Return all parameters of a feed: those that are given, and for the rest the preset's.

    Raises:
        InputError: If there is no such preset or parameter, or a value is not valid.
    """
    if isinstance(given, Parameters):
        if preset is not None:
            raise InputError("leave it out where all parameters are given", field="preset")
        return given
    if not given and preset is None:
        return DEFAULTS

    try:
        plain = DEFAULTS if preset is None else Parameters.preset(preset)
    except PrismError as error:
        raise InputError(str(error), field="preset") from None
    try:
        changed = in_groups(Feed, parsed_parameters(Feed, given), {"parameters": plain})
    except (TypeError, PrismError) as error:
        raise InputError(str(error), field="parameters") from None

    found: Parameters = changed.get("parameters", plain)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
