"""An agent that thinks, executes and pages, one cycle at a time: four steps on a chart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

from prism.errors import FieldValueError, InputError
from prism.llm import Model
from prism.programs._layer import ProgramAgent, Step, always
from prism.programs.thinking._actions import (
    ActionRefusedError,
    ActionResult,
    OwnAction,
    actions_of,
    carry_out,
    problem_of,
)
from prism.programs.thinking._config import Config
from prism.programs.thinking._cycle import Cycle, reason_to_stop
from prism.programs.thinking._memory import Memory, document_of, to_json
from prism.programs.thinking._paging import Paged, Pager, PagingReason, Prompt
from prism.programs.thinking._prompts import Form
from prism.programs.thinking._replies import (
    AgentReply,
    AskedAction,
    UnreadReplyError,
    is_placeholder,
    read_reply,
)
from prism.reasoner._spending import Cost
from prism.reasoner._texts import TextCall, Written
from prism.reasoner._words import TokenCounter, count_tokens
from prism.runs._documents import hold
from prism.runs._services import Services, writer_of
from prism.statechart import Statechart, Transition
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger, describe

CHART_NAME = "cognition"
MOST_CYCLES_OF_ROUND = 4
_MOST_NEWS = 50
_MOST_REASON = 300
_MOST_TAGS = 10
_TOO_LONG = "PromptTooLongError"
_REPEATS_THOUGHT = "it repeats an earlier thought"


class CognitiveState(StrEnum):
    """The states of a thinking agent."""

    THINKING = "thinking"
    EXECUTING = "executing"
    PAGING = "paging"


@cache
def cognitive_chart() -> Statechart[CognitiveState]:
    """Return the chart on which a `CognitiveAgent` moves."""
    thinking, executing, paging = CognitiveState
    rows = [
        *(Transition("think", thinking, state) for state in CognitiveState),
        Transition("overflow", thinking, paging),
        Transition("execute", executing, thinking),
        Transition("page", paging, thinking),
    ]
    return Statechart(CognitiveState, rows, thinking, name=CHART_NAME)


class CognitiveAgent(ProgramAgent):
    """An agent with a finite working memory and an unbounded storage, which a model manages.

    Run it by `run`, or a `cycle` at a time. A subclass can add actions with the decorator `action`.
    ``Run`` and ``prism run file.py:Class`` run a subclass like the file of a configuration, with
    the `Config` in its attribute ``config``.

    Args:
        config: Its instructions and limits.
        memory: Its knowledge: an open memory that nothing else uses.
        client: Answers its prompts: a writer, or any client that a `Writer` takes. None for an
            agent of a world, which has the run's.
        agent_id: Its name, in logs.
        count: Counts the tokens of a prompt, for the limits.
        logger: A structlog logger for its events. None means structlog's own, once it is
            configured.

    Attributes:
        config: Its goal, instructions and limits.
        memory: Its knowledge.
        actions: Its actions besides those of the memory, by name.
        last: The result of its last cycle; None before the first.
        stopped: Why the last run ended early; None if it did not.
        world: The world in which it is acting; None outside of one.

    Raises:
        InputError: If the fixed parts of every prompt already exceed a limit.
    """

    config: Config = Config()
    _prism_run_alone: ClassVar[str] = "cognition"

    def __init__(
        self,
        config: Config,
        memory: Memory,
        client: Any = None,
        *,
        agent_id: str = "agent",
        count: TokenCounter = count_tokens,
        logger: EventLogger | None = None,
    ) -> None:
        self.config = config
        self.memory: Memory = memory
        self.actions: Mapping[str, OwnAction] = actions_of(type(self))
        self.last: Cycle | None = None
        self.stopped: str | None = None
        self.world: Any = None
        self._count = count
        self._cycle: Cycle | None = None
        self._prompt: Prompt | None = None
        self._reply = AgentReply()
        self._file_revision, self._file_cycle, self._met_file = "", 0, False
        services = Services(writer_of(with_window(client, config)), logger)
        steps = _steps(asks_to_page=config.paging.policy == "model")
        super().__init__(cognitive_chart(), steps, services, agent_id=agent_id)
        self.state = _state_of(self.memory) or CognitiveState.THINKING

    def join(self, services: Services) -> None:
        """Continue with the writer, log and time of a run."""
        super().join(services)
        self._pager = Pager(Form(self.config, self.actions), self._count)
        self._window_is_known = False
        before = hold(self.agent_id, lambda: to_json(self.memory.to_dict()))
        # a run is joined by an agent that may have been made in it
        if before is not None and not self._file_revision:
            self._rewind(document_of(before))

    def _rewind(self, data: Mapping[str, Any]) -> None:
        """Go back to an earlier memory, from which a run is carried out again.

        The file keeps what it has until the run has come to that.
        """
        self._met_file = False
        self._file_revision, self._file_cycle = self.memory.revision, self.memory.cycle
        self.memory.replace(data)
        self.state = _state_of(self.memory) or CognitiveState.THINKING
        self._look_at_file()

    def _look_at_file(self) -> None:
        self._met_file |= self.memory.revision == self._file_revision

    def _save(self) -> None:
        """Write the memory to its file, unless a run only repeats what an earlier process did.

        Raises:
            InputError: If somebody has changed the file since that process stopped.
        """
        if self._file_revision:
            self._look_at_file()
            if self.services.writer.is_repeating:
                return
            if not self._met_file:
                # cycles after the last answer may have asked nothing
                if self.memory.cycle <= self._file_cycle:
                    return
                problem = "has changed since the run stopped: begin another run with it, or restore"
                raise InputError(f"{problem} what it was", path=self.memory.path)
            self._file_revision = ""
        self.memory.commit()

    # Cycles

    async def run(self, cycles: int | None = None) -> list[Cycle]:
        """Run a number of cycles, and return the result of each.

        It ends early after five useless cycles in a row, or once the budget is spent; ``stopped``
        says why.

        Args:
            cycles: Number of cycles; the default and the maximum is ``iterate.max_iterations``.

        Raises:
            FieldValueError: If neither is given.
        """
        number, done = number_of_cycles(self.config, cycles), list[Cycle]()
        self.stopped = None
        while len(done) < number and self.stopped is None:
            done.append(await self.cycle())
            self.stopped = reason_to_stop(done)
            # a writer may answer at once: let an interruption have a turn
            await asyncio.sleep(0)
        return done

    async def cycle(self) -> Cycle:
        """Run one cycle, which is a turn, and commit the memory, even if an error is raised.

        The memory changes after the reply has arrived. If the model fails, that is not an error but
        a failed cycle.

        Raises:
            AgentError: If a cycle of this agent is under way.
        """
        await self.turn()
        assert self.last is not None
        return self.last

    async def begin_turn(self) -> None:
        """Take the state from the memory, where somebody may have changed it; begin a cycle."""
        state, number = _state_of(self.memory), self.memory.cycle + 1
        self.state: StrEnum = state or CognitiveState.THINKING
        self._cycle = Cycle(number, self.state.value, self.state.value)
        self._prompt, self._reply = None, AgentReply()
        if state is None:
            self.ticks_in_state = 0
            states = {"from_state": self.memory.state, "to_state": self.state.value}
            self._say(events.COGNITION_RESET, is_warning=True, **states)
        if not self._window_is_known:
            await self._take_window()

    async def _take_window(self) -> None:
        """Lower the limits to the window that the server has."""
        self._window_is_known = True
        writer, before = self.services.writer, self._pager
        window = await writer.window()
        form = Form(self.config, self.actions, writer.sends_schemas)
        self._pager = pager = Pager(form, self._count, window)
        if (pager.soft, pager.hard) != (before.soft, before.hard):
            limits = {"soft_limit": pager.soft, "hard_limit": pager.hard}
            self.say(events.COGNITION_WINDOW, is_warning=True, window=window, **limits)

    def end_turn(self, fault: Exception | None) -> None:
        """Count the cycle, tell the next prompt of it, log it and put it on disk."""
        memory = self.memory
        if fault is not None:
            self._note(outcome="failed", reason=describe(fault))
        memory.state = self.state.value
        self._note_result()
        memory.end_cycle()
        self.last = cycle = replace(self._under_way, next_state=memory.state)
        self._cycle = None
        if (cycle.reason or "").startswith(_TOO_LONG):
            self._window_is_known = False
        self._announce_cycle(cycle)
        self._save()

    @property
    def _under_way(self) -> Cycle:
        assert self._cycle is not None
        return self._cycle

    # In a world

    async def act(self, world: Any) -> None:
        """Take a turn in a world: perceive the news, and think until an action is carried out.

        This takes at least two cycles, and at most four. News that the agent has not acted on is
        shown again in its next turn.
        """
        self.tell(*self.perceive(world))
        self.world = world
        try:
            for _ in range(MOST_CYCLES_OF_ROUND):
                if (await self.cycle()).has_acted:
                    self.tell(instead=True)
                    return
        finally:
            self.world = None

    def perceive(self, world: Any) -> Iterable[str]:
        """Return the agent's news in a world; by default its messages."""
        inbox = world.acting.inbox
        news = [f"{message.sender.agent_id}: {message.content}" for message in inbox]
        inbox.clear()
        return news

    def tell(self, *news: str, instead: bool = False) -> None:
        """Add to the agent's news, which its prompts show.

        Args:
            news: The news; the last 50 items are kept.
            instead: Whether to replace the earlier news.
        """
        own = self.memory.own
        own.news = [*([] if instead else own.news), *news][-_MOST_NEWS:]

    # Steps

    def question(self, state: str) -> TextCall:
        """Return the request to the model in a state."""
        memory, number = self.memory, self._under_way.number
        self._prompt = prompt = self._pager.fit(memory, state)
        return TextCall(
            self,
            f"{number}:{state}",
            prompt.text,
            self._pager.form.schema(state),
            _reader(state),
            variation=number,
            reply_tokens=self._pager.reply,
        )

    def _take_reply(self, written: Written | None) -> str | None:
        """Take the reply to a question; return why there is none."""
        if self._prompt is None or written is None:
            return None
        self._note(prompt_tokens=self._prompt.tokens, cost=written.cost)
        # what did not fit into the prompt goes first: the model wrote without having seen it
        self._note_paged(self._pager.make_room(self.memory, self._prompt))
        if not written.has_failed:
            self._reply = written.value
            return None
        reason = written.reason or "the model wrote nothing useful"
        self._note(outcome="failed" if written.text is None else "unusable", reason=reason)
        return reason

    async def think(self, written: Written | None) -> str:
        """Keep the thought of a reply, and return the state that it names."""
        if self._take_reply(written) is not None:
            return "thinking"
        reply = self._reply
        if reply.action is not None:
            refusal = "an action is carried out while executing, not while thinking"
            self._refuse(reply.action, refusal)
            if reply.next_state is None and reply.thinking_log is None:
                # a model that only acts, as with a server's own tools, is asked to while executing
                self._note(outcome="refused", reason=refusal)
                return "executing"
        if (thought := reply.thinking_log) is not None:
            self._keep(thought)
        is_state = reply.next_state in list(CognitiveState)
        return str(reply.next_state) if is_state else "thinking"

    def _keep(self, thought: str) -> None:
        log, memory = self.config.thinking_log, self.memory
        # what an agent thinks of counts as used: by use, it is the last to go
        words = {word.casefold() for word in thought.replace("_", " ").split()}
        memory.touch(tag for tag in memory.working if words.issuperset(tag.casefold().split("_")))
        if thought in memory.thoughts.values():
            self._note(repeats=_REPEATS_THOUGHT)
            return
        self._note(thought=thought)
        if log.enable:
            memory.think(thought, key_prefix=log.key_prefix, max_entries=log.max_entries)

    async def execute(self, written: Written | None) -> str:
        """Carry out the action of a reply; return to thinking, whatever the result."""
        if (failure := self._take_reply(written)) is not None:
            if self._under_way.outcome == "unusable":
                self._note(outcome="refused")
                self._refuse(None, failure)
            return "thinking"

        asked, memory = self._reply.action, self.memory
        assert asked is not None
        available = self.config.available_actions
        problem = problem_of(asked, memory, available, self.actions, self._pager.has_room_for)
        try:
            if problem is not None:
                raise ActionRefusedError(problem)
            own = self.actions.get(asked.type)
            done = (
                carry_out(memory, asked) if own is None else await self._carry_out_own(own, asked)
            )
        except ActionRefusedError as error:
            self._refuse(asked, str(error))
            self._note(outcome="refused", reason=str(error))
            return "thinking"

        deed = json.dumps([asdict(asked), asdict(done)], sort_keys=True)
        if memory.is_recent(deed) and done.reason is None:
            done = replace(done, reason="it repeats an earlier action with the same result")
        self._note(action=done)
        keys: dict[str, Any] = {"tags": "", "reason": None, **done.to_dict()}
        if own is not None:
            keys["fields"] = dict(asked.fields)
        self._say(events.COGNITION_ACTION, **keys)
        return "thinking"

    async def _carry_out_own(self, own: OwnAction, asked: AskedAction) -> ActionResult:
        """Carry out one of the agent's own actions.

        Raises:
            ActionRefusedError: If a field is wrong, there is no world, or the action refuses.
        """
        fields = own.values_of(asked)
        if own.takes_world and self.world is None:
            raise ActionRefusedError("the agent is in no world")
        world = {"world": self.world} if own.takes_world else {}

        async def effect() -> Any:
            try:
                answer = own.function(self, **world, **fields)
            except ActionRefusedError as error:
                return {"refused": str(error)}
            return {"answer": None if answer is None else str(answer)}

        key = f"{self.agent_id}:{self._under_way.number}:{own.name}"
        once = self.services.writer.once
        interrupted = {"refused": "the run was stopped in the middle of it, and does not repeat it"}
        result = await (once(key, effect, interrupted) if own.is_outside else effect())
        if "refused" in result:
            raise ActionRefusedError(result["refused"])
        return ActionResult(own.name, asked.tags, answer=result["answer"])

    async def page(self, written: Written | None) -> str:
        """Move memories between working memory and storage."""
        reason = self._take_reply(written)
        why: PagingReason = "asked" if self._under_way.state == "paging" else "soft_limit"
        self._note(state="paging", outcome="done", reason=None)
        asked = self._reply.action
        if written is not None and reason is None:
            reason = self._pager.problem_of(asked, self.memory)
        use = asked if written is not None and reason is None else None
        self._note_paged(self._pager.page(self.memory, why, use, reason))
        return "thinking"

    async def overflow(self, _written: Written | None) -> str:
        """Go on in the state paging, since the prompt is above the soft limit."""
        return "paging"

    @property
    def passes_soft_limit(self) -> bool:
        """Whether its thinking prompt is above the soft limit, and anything can move."""
        return self._pager.has_passed_soft_limit(self.memory)

    # What is noted and logged

    def _note(self, **notes: Any) -> None:
        self._cycle = replace(self._under_way, **notes)

    def _refuse(self, asked: AskedAction | None, reason: str) -> None:
        kind, tags = (asked.type, asked.tags) if asked is not None else ("", "")
        self._note(action=ActionResult(kind, tags, "refused", reason))
        state = self._under_way.state
        about = {"state": state, "type": kind, "tags": tags, "reason": reason}
        self._say(events.COGNITION_REFUSED, is_warning=True, **about)

    def _note_paged(self, paged: Paged | None) -> None:
        if paged is None:
            return
        self._note(paged=(*self._under_way.paged, paged))
        values = asdict(paged)
        lists = {key: [*value] for key, value in values.items() if isinstance(value, tuple)}
        self._say(events.COGNITION_PAGED, **(values | lists))

    def _note_result(self) -> None:
        """Note for the next prompt what was done, and the result."""
        cycle, own, result = self._under_way, self.memory.own, self._under_way.action
        place, own.fault = f"In cycle {cycle.number} ({cycle.state}): ", ""
        if result is not None and result.type:
            # else the model takes all of them for done
            surplus = self._reply.surplus and f"The reply has {self._reply.surplus}"
            reasons = filter(None, (result.reason, result.answer, surplus))
            what = f"{result.type} {result.tags}".strip()
            parts = (f"{place}{what}: {result.outcome}", *map(_shortened, reasons))
            own.last_action, own.found = ". ".join(parts), list(result.found)
            own.refused = result.type if result.outcome == "refused" else ""
        else:
            paging = (paged.reason for paged in cycle.paged if paged.reason)
            if (reason := cycle.brought_nothing or next(paging, None)) is not None:
                own.fault = f"{place}no action: {cycle.outcome}. {_shortened(reason)}"
        moved = {"Moved to storage": "moved_out", "Brought back": "moved_in"}
        for words, key in moved.items():
            if tags := [tag for paged in cycle.paged for tag in getattr(paged, key)]:
                more = f" and {len(tags) - _MOST_TAGS} more" if len(tags) > _MOST_TAGS else ""
                line = _shortened(f"{words}: {', '.join(tags[:_MOST_TAGS])}") + more
                own.fault = f"{own.fault}\n{line}".strip()

    def _announce_cycle(self, cycle: Cycle) -> None:
        cost = cycle.cost or Cost()
        keys = ("state", "next_state", "outcome", "reason", "prompt_tokens", "thought")
        self._say(
            events.COGNITION_CYCLE,
            cycle=cycle.number,
            **{key: getattr(cycle, key) for key in keys},
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            soft_limit=self._pager.soft,
            hard_limit=self._pager.hard,
            memory_tokens=self._pager.tokens_of_memory(self.memory),
            memories=len(self.memory.working),
            thoughts=len(self.memory.thoughts),
            stored=len(self.memory.storage),
            defects=[cycle.repeats] if cycle.repeats else [],
        )

    def _say(self, event: str, *, is_warning: bool = False, **keys: Any) -> None:
        if self._cycle is not None:
            keys = {"cycle": self._cycle.number, **keys}
        self.say(event, is_warning=is_warning, **keys)


def _steps(*, asks_to_page: bool) -> list[Step]:
    """Return the steps of a cycle, which carries out one of the three states."""

    def step(name: str, state: str, is_due: Callable[[Any], bool] = always) -> Step:
        async def do(agent: CognitiveAgent, written: Written | None) -> str:
            return str(await getattr(agent, name)(written))

        def ask(agent: CognitiveAgent) -> TextCall:
            return agent.question(state)

        states = frozenset((state,))
        return Step(name, do, kind=state, states=states, is_due=is_due, ask=ask, trigger=name)

    def begins_the_cycle(agent: CognitiveAgent) -> bool:
        return not agent._under_way.paged and agent._under_way.state == "thinking"

    overflow = step("overflow", "thinking", lambda agent: agent.passes_soft_limit)
    page = step("page", "paging")
    return [
        replace(overflow, ask=None),
        page if asks_to_page else replace(page, ask=None),
        step("execute", "executing"),
        step("think", "thinking", begins_the_cycle),
    ]


def _reader(state: str) -> Callable[[str], AgentReply]:
    """Return the reader of a state's replies, which refuses what the state has no use for."""

    def read(text: str) -> AgentReply:
        reply = read_reply(text)
        if state == "thinking":
            if reply.thinking_log is not None and is_placeholder(reply.thinking_log):
                raise UnreadReplyError("the thinking_log is a placeholder: write what you think")
            if (reply.next_state, reply.thinking_log, reply.action) == (None, None, None):
                raise UnreadReplyError("the reply has neither next_state nor thinking_log")
        elif reply.action is None:
            raise UnreadReplyError("the reply asks for no action")
        return reply

    return read


def _state_of(memory: Memory) -> CognitiveState | None:
    """Return the state that a memory names, in whatever case; None if there is no such state."""
    name = memory.state.strip().lower()
    return CognitiveState(name) if name in list(CognitiveState) else None


def number_of_cycles(config: Config, cycles: int | None) -> int:
    """Return how many cycles a run has.

    Args:
        config: Its configuration, whose ``iterate`` is the most.
        cycles: How many are asked for, if a number is.

    Raises:
        FieldValueError: If neither says how many, or it is no whole number from 1 on.
    """
    if cycles is not None and (type(cycles) is not int or cycles < 1):
        raise FieldValueError(f"cycles must be a whole number, 1 or more, got {cycles!r}")
    most = config.iterate.max_iterations if config.iterate.enable else None
    bounds = [number for number in (cycles, most) if number is not None]
    if not bounds:
        raise FieldValueError(
            "give the number of cycles: the configuration has no iterate.max_iterations"
        )
    return min(bounds)


def with_window(client: Any, config: Config) -> Any:
    """Return a model with a window for the largest prompt and a reply, if none is given.

    Args:
        client: A `Model` or the text of one; any other client is returned as it is.
        config: Its hard limit is the largest prompt.
    """
    model = Model.of(client) if isinstance(client, str) else client
    if not isinstance(model, Model) or not config.hard_limit.enable:
        return client
    # only Ollama loads a model with the window that it is asked for
    if model.window is not None or model.client is not None or model.server != "ollama":
        return model
    hard = config.hard_limit.max_tokens
    # an estimate may be too low
    return replace(model, window=hard * 3 // 2 + (model.reply_tokens or -(-hard // 3)))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_REASON else f"{text[:_MOST_REASON]} …"
