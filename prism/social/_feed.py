"""The social feed as a world, to which you can add parameters, treatments and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from prism.agents import SeedPost, SocialAgent, load_population, load_posts, synthetic_population
from prism.errors import FieldValueError, InputError, PrismError, SimulationError
from prism.randomness._stream import streams_of
from prism.social._activity import FREQUENCY, Hours, activities, first_hour, waits
from prism.social._composing import share_topics
from prism.social._dependence import depends_with
from prism.social._feeds import Feeds, Rank
from prism.social._networks import code_in, follow_network
from prism.social._parameters import (
    LIBRARY,
    SECONDS_PER_HOUR,
    SETTLED,
    Parameters,
    archetypes_of,
    refuse_hidden,
)
from prism.social._population import (
    NEEDS,
    acts_with,
    check_authors,
    feed_chart,
    in_keyed_order,
    opened_by,
    take_archetypes,
)
from prism.social._posts import Draft, HoldingLogger, Post
from prism.social._presets import preset_named
from prism.social._publishing import Action, Network
from prism.social._readers import Reader, attributes_of
from prism.social._results import (
    Activity,
    Results,
    RoundSummary,
    count_names,
    summarize,
)
from prism.social._steps import FeedSteps, Playing
from prism.social._treatments import (
    Dislikes,
    Likes,
    PostTreatment,
    PublishPost,
    RemoveAgents,
)
from prism.social._writing import PostTexts, writer_template
from prism.statechart import AgentState, Guard, RandomStream, Statechart
from prism.statechart.inspection import require_fit
from prism.statechart.social import SEES_POST
from prism.telemetry.events import (
    AGENT_REMOVED,
    FOLLOW_CHANGED,
    POST_DISLIKED,
    POST_LIKED,
    POST_PUBLISHED,
    POST_VOTED,
    TRANSITION,
)
from prism.worlds import AgentTable
from prism.worlds._agent_set import AgentSet
from prism.worlds._fields import derived
from prism.worlds._guest import passed_on
from prism.worlds._phase import Phase

_OWN: Mapping[str, Any] = {
    "first_posts": None,
    "composer": None,
    "engages": None,
    "model_acts": True,
    "writer_prompt": None,
}
"""Arguments of a feed that are not parameters, with their defaults."""


def _is_set(feed: Feed, name: str) -> bool:
    try:
        # `hasattr` would have the world look for names like a missing one
        object.__getattribute__(feed, name)
    except AttributeError:
        return False
    return True


class PeopleFile(AgentTable):
    """A file of social agents in any format of `load_population`; it is read with the run.

    Args:
        path: The file.
        keep: Its fields to keep as `SocialAgent.attributes`.
    """

    def __init__(self, path: Path | str, keep: Iterable[str] = ()) -> None:
        self.path = Path(path)
        self.keep = tuple(dict.fromkeys(keep))


class Feed(FeedSteps):
    """Social agents who read, weigh, write, like and reshare posts.

    In each tick, every agent takes one step: its time-out if one is due, otherwise the step of its
    state. All decisions of a tick are asked together and applied in the order of turns. A run
    therefore depends only on the seed and the answers, never on which answer came first.

    Derive from it to declare parameters, state, measures and treatments as in any world, to log
    events of your own, or to decide who engages and what is written::

        class Warned(Feed):
            threshold: float = 0.3

            def should_engage(self, agent: SocialAgent, post: Post) -> bool:
                return agent.relevance(post) > self.threshold

            @treatment
            def warning(self) -> None:
                self.threshold = 0.6

            @measure
            def replies(self) -> float:
                return sum(post.kind == "reply" for post in self.posts)

    As in any world, each state has a step, which your own feed can override. A step gets a
    `Reader`, which represents the social agent.

    Args:
        parameters: The numbers that set the feed's behaviour, by name; the others are those of the
            preset.
        preset: Name of a preset; by default ``conversation``. A class of your own may have one,
            ``preset = "classic"``.
        first_posts: Posts from before the first round, oldest first: `SeedPost` objects, or a file
            of them. By default the parameter ``opening_authors`` makes them.
        composer: Drafts what agents publish; a `TemplateComposer` by default.
        engages: The ``should_engage`` of `social_media_chart`, for agents whose own method takes no
            post.
        model_acts: Whether a model chooses among replying, resharing, writing a new post and
            liking. If not, the model only chooses to write, and chance decides what, by the
            parameters, as for a policy.
        writer_prompt: Template of the writer's prompt, with ``{fields}`` such as ``{task}``,
            ``{thread}`` and ``{reason}``; None for the default prompt.

    Each parameter is an attribute of its name, which only a treatment changes.
    """

    __slots__ = (*_OWN, "_opening")

    rounds = 10
    ticks = 12
    overlap: ClassVar[bool] = True
    treatment_classes: ClassVar[Sequence[type]] = (
        Likes,
        Dislikes,
        PublishPost,
        RemoveAgents,
    )
    _prism_table: ClassVar[Any] = PeopleFile
    _prism_arguments = ("preset", *_OWN)

    if TYPE_CHECKING:  # slots, not parameters
        preset: str | None = None
        first_posts: Sequence[SeedPost] | Path | str | None = None
        engages: Guard | None = None
        model_acts: bool = True
        writer_prompt: str | None = None
    else:
        preset = None

    @property
    def chart(self) -> Statechart[AgentState]:
        """The chart of every agent."""
        found: Statechart[AgentState] = self.posted.readers[0]._chart
        return found

    @property
    def posted(self) -> Network:
        """The posts, likes and feeds."""
        return self._played().network

    @property
    def agents(self) -> AgentSet[Any]:
        """The population: social agents, in the order in which they were given."""
        return self._played("agents").agents

    @property
    def posts(self) -> Sequence[Post]:
        """All posts, oldest first."""
        return self._played().network.posts

    def agent(self, agent_id: str) -> SocialAgent:
        """Return the agent with an id.

        Raises:
            FieldValueError: If there is no such agent.
        """
        return self._played().network.reader(agent_id).agent

    def likes_of(self, post: Post) -> int:
        """Return how often a post has been liked."""
        return self._played().network.likes.get(post.post_id, 0)

    def publish(self, author: SocialAgent | str, text: str, topics: Iterable[str] = ()) -> Post:
        """Publish a post in an agent's name. For treatments and the hooks of a round.

        Args:
            author: The agent, or its id.
            text: Its text.
            topics: Its topics.

        Raises:
            SimulationError: Between rounds, or in a measure.
            FieldValueError: If no agent has the author's id.
        """
        playing, name = self._in_round("publish"), _name_of(author)
        if name not in {agent.agent_id for agent in playing.agents}:
            raise FieldValueError(f"posts must be by agents of the population, got {name!r}")

        post = playing.network.publish(name, Draft("post", text, tuple(topics)), None)
        playing.counts.posts += 1
        self._announce_post(post)

        return post

    def vote(self, post: Post, *, likes: int = 0, dislikes: int = 0) -> None:
        """Give a post likes or dislikes that come from no agent. For treatments.

        Args:
            post: The post.
            likes: Number of likes.
            dislikes: Number of dislikes.

        Raises:
            SimulationError: Between rounds, or in a measure.
        """
        playing = self._in_round("vote")
        playing.network.vote(post, likes, dislikes)
        playing.host.emit(POST_VOTED, post_id=post.post_id, likes=likes, dislikes=dislikes)

    def score_of(self, post: Post) -> int:
        """Return a post's likes minus its dislikes."""
        return self._played().network.score(post)

    def remove(self, agent: SocialAgent | str) -> None:
        """Remove an agent, which takes no further step. For treatments and the hooks of a round.

        From then on it follows nobody and nobody follows it. Its posts stay.

        Args:
            agent: The agent, or its id.

        Raises:
            SimulationError: Between rounds, or in a measure.
            FieldValueError: If there is no such agent.
        """
        playing = self._in_round("remove an agent")
        reader = playing.network.reader(_name_of(agent))
        if reader.agent_id in playing.network.removed:
            return

        playing.network.remove(reader.agent_id)
        playing.host.gone.add(reader._place)
        playing.host.emit(
            AGENT_REMOVED,
            agent_id=reader.agent_id,
            state=reader.agent.state.value,
            ticks_in_state=reader.agent.ticks_in_state,
        )

    def follow(self, agent: SocialAgent | str, other: SocialAgent | str) -> None:
        """Make an agent follow another one, whose posts it sees from now on.

        Like `unfollow`, `mute` and `unmute`, it is for treatments, for the hooks of a round, and
        for steps of the agent itself.

        Args:
            agent: The agent, or its id.
            other: The agent to follow, or its id.

        Raises:
            SimulationError: Between rounds, or in a measure.
            FieldValueError: If one of them does not exist, or both are the same.
        """
        self._change("follow", agent, other)

    def unfollow(self, agent: SocialAgent | str, other: SocialAgent | str) -> None:
        """Make an agent stop following another one; see `follow`."""
        self._change("unfollow", agent, other)

    def mute(self, agent: SocialAgent | str, other: SocialAgent | str) -> None:
        """Hide another agent's posts from an agent, even if others share them; see `follow`."""
        self._change("mute", agent, other)

    def unmute(self, agent: SocialAgent | str, other: SocialAgent | str) -> None:
        """Show another agent's posts to an agent again; see `follow`."""
        self._change("unmute", agent, other)

    def treat_posts(self, treatment: PostTreatment) -> None:
        """Apply a treatment to every post as it is published, from now on.

        Args:
            treatment: An object with a method ``treat(feed, posts)``. When a run is resumed, its
                ``go_on`` calls this method again.
        """
        self._played().of_posts.append(treatment)

    # What your own feed may override

    def populate(self, agents: int) -> Iterable[SocialAgent]:
        """Make the population of a run that was given only a number; by default a synthetic one."""
        return synthetic_population(
            agents,
            seed=self._played().host.seed,
            archetypes=archetypes_of(self),
        ).agents

    def _from_table(self, table: Any) -> Iterable[SocialAgent]:
        """Make the population from any file that `load_population` reads."""
        seed = self._played().host.seed
        hours = (FREQUENCY,) if self.hours == "file" else ()
        try:
            population = load_population(
                table.path,
                seed=seed,
                keep=tuple(dict.fromkeys((*table.keep, *hours))),
                archetypes=archetypes_of(self),
            )
        except InputError as error:
            # the column was not requested by that option
            if error.field != "keep" or not hours or repr(FREQUENCY) not in error.problem:
                raise
            lacks = f"which {table.path} does not have"
            raise InputError(f"hours = 'file' needs the field {FREQUENCY}, {lacks}") from None

        # such a file may lack posts
        if population.posts and self.first_posts is None:
            object.__setattr__(self, "first_posts", population.posts)

        return population.agents

    def opening(self) -> Iterable[SeedPost]:
        """Return the posts from before the first round, oldest first."""
        given = self.first_posts
        if isinstance(given, Path):
            return load_posts(given, self.agents)
        if given is not None and not isinstance(given, str):
            return given

        seed = self._played().host.seed
        return opened_by(self.agents, self.opening_authors, self.opening_bias, seed)

    def should_engage(self, agent: Any, post: Post) -> bool:
        """Return whether a post is relevant enough for an agent. By default, the agent decides."""
        return bool(agent.should_engage(post))

    def rank(
        self,
        agent: SocialAgent,  # noqa: ARG002
        posts: Sequence[Post],
        stream: RandomStream,  # noqa: ARG002
    ) -> Iterable[Post]:
        """Return posts in the order in which an agent's feed shows them.

        By default, the parameter ``feed`` selects the ranking. Override this method to use your
        own.

        Args:
            agent: The agent whose feed it is.
            posts: The newest posts that it has not seen, newest first: up to ``candidates`` by
                authors whom it follows, and the same number by anybody.
            stream: Random numbers for this feed only.
        """
        return posts

    # The run's side

    def _prism_take(self, own: Mapping[str, Any]) -> Mapping[str, Any]:
        """Store the arguments that are not parameters, and return the parameters of the preset."""
        refuse_hidden(type(self))
        for name, default in _OWN.items():
            if name in own or not _is_set(self, name):
                value = own.get(name, default)
                is_file = name == "first_posts" and isinstance(value, str)
                object.__setattr__(self, name, Path(value) if is_file else value)

        preset = own.get("preset", type(self).preset)
        if preset is None:
            return {}
        try:
            values = preset_named(preset).values
        except PrismError as error:
            problem = str(error).removeprefix("preset ")
            raise InputError(problem, field="preset") from None

        # what the user's own feed declares holds for every preset
        own, usual = type(self).fields, Parameters.fields
        return {name: value for name, value in values.items() if own[name] is usual[name]}

    def _prism_told(self) -> dict[str, Any]:
        """Return the arguments that are not parameters, except those with default values."""
        return {
            name: value
            for name, default in _OWN.items()
            if (value := getattr(self, name)) != default
        }

    def _prism_files(self) -> dict[str, Path]:
        """Return the file of posts, and the files of the user's own functions."""
        posts = self.first_posts
        files = {str(posts): posts} if isinstance(posts, Path) else {}
        named = (self.feed, self.follow_network)
        return files | code_in(
            each for each in named if ":" in each and not each.startswith(f"{LIBRARY}:")
        )

    def _prism_fallback(self) -> tuple[AgentState, str]:
        """Return the act of an agent when a model gives no valid answer, and its chart."""
        return AgentState.SCROLLING, "social_feed" if self.posts_per_tick else "social_media"

    @classmethod
    def _prism_check_prompt(cls, prompt: str) -> None:
        try:
            writer_template(prompt)
        except PrismError as error:
            raise InputError(str(error), field="writer") from None

    def _prism_comes_to(self) -> Results:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Tell type checkers the type of a run's results."""
        raise NotImplementedError

    def guard(self) -> Guard | None:
        """Return the function that judges whether a post is relevant; None if each agent does."""
        given = self.engages
        if type(self).should_engage is Feed.should_engage:
            return given
        if given is not None:
            raise FieldValueError(
                f"{type(self).__name__} has its own should_engage: leave the other one out"
            )

        return self.should_engage

    def ranking(self) -> Rank | None:
        """Return `rank` if the user's feed overrides it."""
        return None if type(self).rank is Feed.rank else self.rank

    def _change(self, action: Action, agent: SocialAgent | str, other: SocialAgent | str) -> None:
        playing = self._in_round(action)
        network = playing.network
        reader, author = network.reader(_name_of(agent)), network.reader(_name_of(other))
        if reader is author:
            raise FieldValueError(f"agent {reader.agent_id!r} cannot {action} itself")

        network.change(reader, action, author.agent_id)
        reader.agent.following = tuple(reader.follows)
        playing.host.emit(
            FOLLOW_CHANGED, agent_id=reader.agent_id, action=action, author_id=author.agent_id
        )

    def _in_round(self, doing: str) -> Playing:
        """Return the run, if the feed may change now.

        Raises:
            SimulationError: If it may not.
        """
        playing = self._played(doing)
        reason = playing.host.refusing or playing.host.late
        if playing.host.phase is Phase.SETTING_UP:
            reason = "the first round has not begun: return earlier posts from opening"
        if reason is not None:
            raise SimulationError(f"{type(self).__name__} cannot {doing}: {reason}")

        return playing

    def _played(self, doing: str = "posts") -> Playing:
        self._hosted(doing)
        return self._playing

    # The run's side: beginning

    def _prism_logger(self, setting: Any) -> Any:
        """Return the logger of events, which may delay them until the words of a post arrive."""
        writes = setting.answerers.has_writer
        return HoldingLogger(setting.logger, setting.clock) if writes else setting.logger

    def _prism_begin(self, setting: Any, host: Any) -> None:
        """Store the parts of the run."""
        answerers = setting.answerers
        setting.clock.seconds_per_tick = SECONDS_PER_HOUR / self.ticks_per_hour
        acts, chooses_acts_for = acts_with(answerers.reasoner, self.model_acts)
        texts = PostTexts(answerers.wording, self.writer_prompt, tells_thread=acts)
        playing = Playing(
            host,
            acts,
            chooses_acts_for,
            texts if answerers.has_writer else None,
            has_ideas=self.posts_per_tick > 0,
            values=_values_of(self),
        )
        object.__setattr__(self, "_playing", playing)

    def _prism_invite(self, agents: Iterable[Any]) -> Iterable[Reader]:
        """Make readers for social agents of any class."""
        playing = self._playing
        population = playing.agents = AgentSet(agents)
        chart = feed_chart(self, self.guard(), acts=playing.acts)
        require_fit(population, chart.definition, NEEDS)
        take_archetypes(population, archetypes_of(self))
        follow_network(population, self, playing.host.seed)
        share_topics(population, self.common_topics, playing.host.seed)
        kind = derived(Reader, chart=chart, **passed_on(Reader, population))

        return [kind(object=each, agent_id=each.agent_id, name=each.name) for each in population]

    def _prism_joined_all(self) -> None:
        """Set up the feeds, now that the agents have joined."""
        playing = self._playing
        agents, seed = playing.agents, playing.host.seed
        playing.network = Network(playing.host.agents, self.candidates)
        playing.network.now = playing.host.clock()
        playing.feeds = Feeds(playing.network, seed, playing.host.clock, self, self.ranking())
        playing.hours = None if self.hours == "always" else Hours(agents, self, seed)
        for reader, activity in zip(
            playing.network.readers, activities(agents, self, seed), strict=True
        ):
            reader.activity = activity

        opening = in_keyed_order(self.opening(), seed)
        check_authors(agents, opening)
        object.__setattr__(self, "_opening", opening)

    def _prism_described(self, told: dict[str, Any]) -> dict[str, Any]:
        """Describe the feed for the log; only the user's own feed has a name."""
        if type(self) is Feed:
            del told["world"]
        return told

    def _prism_joined(self, reader: Any) -> Mapping[str, Any]:
        """Describe an agent for the log."""
        agent = reader.agent
        tells_follows = self.logs_follows
        return {
            "display_name": agent.name,
            "archetype": None if agent.archetype is None else agent.archetype.name,
            "interests": agent.interests,
            "following": len(agent.following),
            **({"follows": list(agent.following)} if tells_follows else {}),
            "state": agent.state.value,
            "timeout_threshold": agent.timeout_threshold,
            **({"attributes": own} if (own := attributes_of(agent)) else {}),
        }

    def _prism_announce(self) -> None:
        """Publish the posts from before the first round."""
        for post in self._playing.network.seed(self._opening):
            self._announce_post(post)

    # Rounds

    def _prism_begin_round(self) -> None:
        """Give every agent its random numbers for the round, and draw its ideas."""
        playing = self._playing
        # a treatment may publish before the first tick
        playing.network.now = playing.host.clock()
        playing.counts = Activity()
        number = playing.host.clock.round
        agents, names = playing.agents, [agent.agent_id for agent in playing.agents]
        for agent, stream in zip(agents, streams_of(playing.host.seed, names, number), strict=True):
            agent.random = stream

        self._draw_ideas()

    def _prism_depends(self) -> Callable[[Any, Iterable[Any]], bool] | None:
        """Return which turns of readers depend on others, if all of it is known."""
        return depends_with(self, self._playing)

    def _prism_begin_tick(self) -> None:
        """Continue with the current parameters and the agents that are awake."""
        playing = self._playing
        playing.network.now = playing.host.clock()
        if (now := _values_of(self)) != playing.values:
            self._take_parameters(now)
        if playing.hours is not None:
            passed = (playing.host.clock.ticks - 1) // self.ticks_per_hour
            playing.host.asleep = playing.hours.asleep(first_hour(self, playing.host.seed) + passed)

    def _take_parameters(self, now: tuple[Any, ...]) -> None:
        """Continue with the parameters that a treatment has set.

        Raises:
            FieldValueError: If it has changed one that determined the population or the chart.
        """
        playing = self._playing
        pairs = zip(_NAMES, playing.values, now, strict=True)
        different = [name for name, before, value in pairs if value != before]
        changed = [name for name in different if name in SETTLED]
        if self.posts_per_tick and not playing.has_ideas:
            changed.append("posts_per_tick")
        if changed:
            raise FieldValueError(
                f"{changed[0]} cannot change during a run: it is read only at the start"
            )

        self._prism_check()
        playing.values = now
        for reader in playing.network.readers:
            reader.found_nothing = False
        if "posts_per_tick" in different:
            self._draw_ideas()

    def _draw_ideas(self) -> None:
        """Draw when each agent has ideas in this round, at its own rate."""
        playing = self._playing
        rate, number = self.posts_per_tick, playing.host.clock.round
        readers = playing.network.readers
        for reader in readers:
            reader.ideas = None

        having = [reader for reader in readers if rate * reader.activity]
        names = [reader.agent_id for reader in having]
        # separate from the draws of a policy, which a replay of the run does not make
        streams = streams_of(playing.host.seed, names, number, "ideas")
        for reader, stream in zip(having, streams, strict=True):
            reader.ideas = waits(rate * reader.activity, stream)
            reader.before_idea = next(reader.ideas)

    def _prism_summary(self, summary: Any) -> RoundSummary:
        """Summarize a round, including what agents did at their feeds."""
        counts = self._playing.counts
        for name in _COUNTED:
            setattr(counts, name, getattr(summary, name))
        counts.timeouts, counts.texts = Counter(summary.timeouts), Counter(summary.texts)
        counts.fallbacks = Counter(summary.fallbacks)
        counts.fallback_examples = dict(summary.fallback_examples)

        return RoundSummary(summary.number, summary.states, counts, summary.measures)

    def _prism_summary_of(self, event: Mapping[str, Any]) -> RoundSummary:
        """Summarize a round from its line in the log."""
        counts = {name: event[name] for name in count_names()}
        for name in ("timeouts", "fallbacks", "texts"):
            counts[name] = Counter(event.get(name, {}))
        counts["fallback_examples"] = dict(event.get("fallback_examples", {}))
        activity, measures = Activity(**counts), event.get("measures", {})

        return RoundSummary(event["round"], event["states"], activity, measures)

    def _prism_results(self, rounds: Sequence[Any]) -> Results:
        """Return the totals of all rounds and the largest cascades."""
        return summarize(self._playing.network, rounds)

    # Resuming

    def _prism_recall(self, event: Mapping[str, Any]) -> None:
        """Repeat the publishing, liking, following and removing in the log."""
        recall = _RECALLED.get(event["event"])
        if recall is not None:
            recall(self._playing.network, event)

    def _prism_recalled(self) -> None:
        """Let agents continue to read and write where they stopped."""
        network = self._playing.network
        for reader in network.readers:
            reader.take_up(network.posts)
        self._playing.host.gone = {network.reader(name)._place for name in network.removed}


_NAMES = tuple(Parameters.fields)

_values_of: Callable[[Feed], tuple[Any, ...]] = attrgetter(*_NAMES)
"""Returns the values of all parameters."""

_COUNTED = ("agent_ticks", "transitions", "decisions_asked", "decisions_answered")


def _name_of(agent: Any) -> str:
    return agent if isinstance(agent, str) else str(agent.agent_id)


def _recall_post(network: Network, event: Mapping[str, Any]) -> None:
    network.now = _seconds(event["timestamp"])
    parent = None if event["parent_id"] is None else network.post(event["parent_id"])
    words = event.get("template"), event.get("source")
    draft = Draft(event["kind"], event["text"], tuple(event["topics"]), *words)
    network.publish(event["agent_id"], draft, parent, event["post_id"])


def _recall_transition(network: Network, event: Mapping[str, Any]) -> None:
    if event["trigger"] == SEES_POST:
        seen = _post_of(network, event["context"])
        network.reader(event["agent_id"]).seen.add(seen.number)


def _recall_follow(network: Network, event: Mapping[str, Any]) -> None:
    reader = network.reader(event["agent_id"])
    network.change(reader, event["action"], event["author_id"])
    reader.agent.following = tuple(reader.follows)


def _post_of(network: Network, keys: Mapping[str, Any]) -> Post:
    post = network.post(keys["post_id"])
    assert post is not None
    return post


_RECALLED: Mapping[str, Callable[[Network, Mapping[str, Any]], object]] = {
    TRANSITION: _recall_transition,
    POST_PUBLISHED: _recall_post,
    POST_LIKED: lambda network, event: network.like(
        _post_of(network, event), network.reader(event["agent_id"])
    ),
    POST_DISLIKED: lambda network, event: network.vote(_post_of(network, event), 0, 1),
    POST_VOTED: lambda network, event: network.vote(
        _post_of(network, event), event["likes"], event["dislikes"]
    ),
    FOLLOW_CHANGED: _recall_follow,
    AGENT_REMOVED: lambda network, event: network.remove(event["agent_id"]),
}
"""The handler of each event that is repeated on resuming."""


@lru_cache(maxsize=1024)
def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
