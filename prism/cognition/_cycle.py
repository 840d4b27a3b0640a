"""A cycle, from the prompt to what becomes of the reply, and the results of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from prism.agents.words import words_of
from prism.cognition._actions import ActionRefusedError, ActionResult, carry_out, problem_of
from prism.cognition._chart import ACTED, EXECUTE, FAULT, OVERFLOW, PAGED, THINK, CognitiveState
from prism.cognition._memory._memory import Memory
from prism.cognition._paging import Paged, PagingReason
from prism.cognition._prompts import Prompt, is_echo, reply_schema
from prism.cognition._replies import AgentReply, AskedAction, read_reply
from prism.reasoner._spending import Cost
from prism.reasoner._texts import TextCall, Written
from prism.telemetry import events
from prism.telemetry.loggers import active_logger, describe, report

CycleOutcome = Literal["done", "refused", "unusable", "failed"]

_TRIGGERS: Mapping[str, str] = dict(zip(CognitiveState, (THINK, EXECUTE, OVERFLOW), strict=True))
"""The event that is fired when a reply names the next state."""

REPEATED = "it repeats the last thought"
ECHOED = "it repeats what the prompt shows"
"""The defects of a cycle that brings nothing new."""

_CUT_OFF = "the reply is cut off, perhaps with its action"
_SPENT = "BudgetSpentError"


@dataclass(frozen=True, slots=True)
class Cycle:
    """The result of a cycle.

    Args:
        number: The cycle, counted from 1 over the memory's life.
        state: State that it ran in: ``thinking``, ``executing`` or ``paging``.
        next_state: State after it.
        outcome: ``done``; ``refused`` if nothing that the reply asked for could be done;
            ``unusable`` if it was useless; ``failed`` if none came, or an error was raised.
        reason: Why it was not done.
        thought: The thought that was added to the log.
        action: The result of the requested action.
        paged: The memories that moved between working memory and storage.
        prompt_tokens: Tokens of the prompt by the agent's own count; None if no model was asked.
        memories: Entries of working memory afterwards.
        thoughts: Entries of the log afterwards.
        defects: Flaws of the reply that were mended.
        cost: What the model took, if one was asked.
        lost_calls: Calls to the model without a usable reply.
    """

    number: int
    state: str
    next_state: str
    outcome: CycleOutcome = "done"
    reason: str | None = None
    thought: str | None = None
    action: ActionResult | None = None
    paged: tuple[Paged, ...] = ()
    prompt_tokens: int | None = None
    memories: int = 0
    thoughts: int = 0
    defects: tuple[str, ...] = ()
    cost: Cost | None = None
    lost_calls: int = 0

    @property
    def transitions(self) -> int:
        """Number of transitions from one state to another."""
        return (self.state != self.next_state) + self.has_overflowed

    @property
    def has_overflowed(self) -> bool:
        """Whether it began in thinking, and paged because the soft limit was passed."""
        return any(paged.why == "soft_limit" for paged in self.paged)

    @property
    def has_acted(self) -> bool:
        """Whether an action was carried out in it."""
        return self.state == CognitiveState.EXECUTING.value and self.outcome == "done"

    @property
    def brought_nothing(self) -> str | None:
        """Why it was useless; None if it was not."""
        if self.outcome != "done" or (self.has_acted and self.action and self.action.reason):
            return (self.action.reason if self.action else None) or self.reason or self.outcome

        return next((each for each in (REPEATED, ECHOED) if each in self.defects), None)


def reason_to_stop(cycles: Sequence[Cycle], limit: int) -> str | None:
    """Return why a run ends early; None if it continues.

    A cycle is useless if it was not ``done``, if it repeats the last thought, or if its action
    found or changed nothing. Pagings do not count.

    Args:
        cycles: The cycles so far.
        limit: How many useless cycles in a row end the run.
    """
    last = cycles[-1] if cycles else None
    if last is not None and (last.reason or "").startswith(_SPENT):
        return last.reason

    useless = 0
    for cycle in reversed(cycles):
        if cycle.brought_nothing:
            useless += 1
        elif cycle.state != CognitiveState.PAGING.value:
            break
    if last is None or useless < limit:
        return None

    return f"{useless} cycles in a row had no effect; the last one: {last.brought_nothing}"


@dataclass(frozen=True, slots=True)
class CognitiveResults:
    """The results of a run of cycles.

    Args:
        agent_id: The agent.
        cycles: Cycles that the run had.
        cycle: Cycles over the memory's life.
        state: The agent's final state.
        transitions: Transitions between states.
        outcomes: How often cycles were ``done``, ``refused``, ``unusable`` or ``failed``.
        actions: How often actions were ``done``, ``missing`` or ``refused``.
        pagings: How often memories moved, to keep within a limit or because a reply asked for it.
        tokens: Tokens that the model read and wrote, if known.
        lost_calls: Calls to the model without a usable reply.
        memories: Entries of working memory at the end.
        thoughts: Entries of the log at the end.
        stored: Entries of storage at the end.
        stopped: Why the run ended early; None if it did not.
    """

    agent_id: str
    cycles: int
    cycle: int
    state: str
    transitions: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    pagings: int = 0
    tokens: int = 0
    lost_calls: int = 0
    memories: int = 0
    thoughts: int = 0
    stored: int = 0
    stopped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""
        return asdict(self)

    def totals(self) -> dict[str, int]:
        """Return the counts that end the log of every run."""
        return {"agent_ticks": self.cycles, "transitions": self.transitions}

    @classmethod
    def of(cls, agent: Any, cycles: Sequence[Cycle], stopped: str | None = None) -> Self:
        """Return the results of an agent's cycles.

        Args:
            agent: The `CognitiveAgent`, after the last of them.
            cycles: The cycles.
            stopped: Why the run ended early, if it did.
        """
        return cls(
            agent_id=agent.agent_id,
            cycles=len(cycles),
            cycle=agent.memory.cycle,
            state=agent.state.value,
            transitions=sum(cycle.transitions for cycle in cycles),
            outcomes=_counted(cycle.outcome for cycle in cycles),
            actions=_counted(c.action.outcome for c in cycles if c.action is not None),
            pagings=sum(len(cycle.paged) for cycle in cycles),
            tokens=sum(cycle.cost.tokens for cycle in cycles if cycle.cost is not None),
            lost_calls=sum(cycle.lost_calls for cycle in cycles),
            memories=len(agent.memory.working),
            thoughts=len(agent.memory.thoughts),
            stored=agent.memory.stored_count,
            stopped=stopped,
        )


class CycleUnderWay:
    """A cycle in progress, which tells the chart's guards and actions what the reply asks for.

    Args:
        agent: The `CognitiveAgent`, which makes it.

    Attributes:
        action: The action to carry out; None if there is none.
        told: The result so far.
    """

    def __init__(self, agent: Any) -> None:
        self.action: AskedAction | None = None
        self.told: Cycle = Cycle(agent.memory.cycle + 1, agent.state.value, agent.state.value)
        self._agent = agent
        self._memory: Memory = agent.memory
        self._why: PagingReason = "asked"
        self._prompt: Prompt | None = None
        self._written: Written | None = None
        self._reply = AgentReply()

    async def run(self) -> Cycle:
        """Run the cycle; the memory changes in one step after the reply has arrived."""
        agent = self._agent
        self._take_state()
        is_thinking = agent.state is CognitiveState.THINKING
        if is_thinking and agent._pager.has_passed_soft_limit(self._memory):
            self._why = "soft_limit"
            self._fire(OVERFLOW)

        self._note(state=agent.state.value)
        # paging by use needs no model
        if agent.state is not CognitiveState.PAGING or agent.config.paging.policy == "model":
            await self._ask()
        self._conclude()

        return self.told

    def _take_state(self) -> None:
        """Take the state from the memory, where somebody may have changed it."""
        agent, found = self._agent, state_of(self._memory)
        agent.state = found or CognitiveState.THINKING
        agent.ticks_in_state += 1
        if found is None:
            agent.ticks_in_state = 0
            states = {"from_state": self._memory.state, "to_state": agent.state.value}
            self._say(events.COGNITION_RESET, is_warning=True, **states)

    async def _ask(self) -> None:
        agent, state = self._agent, self.told.state
        self._prompt = prompt = agent._pager.fit(self._memory, state)
        call = TextCall(
            agent,
            f"{self.told.number}:{state}",
            prompt.text,
            reply_schema(state, agent.config.available_actions, agent.actions),
            read_reply,
            variation=self.told.number,
        )
        self._written = written = await agent._lent.writer.write(call, logger=agent._lent.logger)
        attempts = 0 if written.cost is None else written.cost.attempts
        lost = lost_calls(attempts, has_failed=written.has_failed)
        self._note(prompt_tokens=prompt.tokens, cost=written.cost, lost_calls=lost)

    def _conclude(self) -> None:
        """Do what the reply asks for; nothing waits here, so all of it happens or nothing."""
        is_broken_off = False
        try:
            self._do_as_asked()
        except BaseException as error:
            is_broken_off = True
            self._note(outcome="failed", reason=describe(error))
            raise
        finally:
            self._memory.state = self._agent.state.value
            self._memory.end_cycle()
            sizes = {"memories": len(self._memory.working), "thoughts": len(self._memory.thoughts)}
            self._note(next_state=self._memory.state, **sizes)
            # of a refusal, and of a model that fails, there is a warning already
            self._announce(is_warning=self.told.outcome == "unusable" or is_broken_off)

    def _do_as_asked(self) -> None:
        # what did not fit into the prompt goes first: the model wrote without having seen it
        if self._prompt is not None:
            self._note_paged(self._agent._pager.make_room(self._memory, self._prompt))
        failure = self._failure_to_write()
        if self._written is not None and failure is None:
            self._reply = self._written.value
            self._note(defects=self._reply.defects)

        if self.told.state == CognitiveState.PAGING:
            self._fire(PAGED)
        elif failure is not None:
            self._end("failed", failure)
        elif self.told.state == CognitiveState.THINKING:
            self._think()
        else:
            self._execute()
        # what a paging by use has moved is told beside the last action
        if self.told.state != CognitiveState.PAGING or self._written is not None:
            self._note_result()

    def _failure_to_write(self) -> str | None:
        if self._written is None or not self._written.has_failed:
            return None

        return self._written.reason or "the model wrote nothing useful"

    # What a reply asks for

    def _think(self) -> None:
        reply, refusal = self._reply, None
        if reply.action is not None:
            refusal = "an action is carried out while executing, not while thinking"
            self._refuse(reply.action, refusal)

        if reply.next_state is not None or reply.thinking_log is not None:
            self._fire(self._trigger())
        elif refusal is not None:
            # whoever only acts, as with a server's own tools, is asked to while executing
            self._note(outcome="refused", reason=refusal)
            self._fire(EXECUTE)
        else:
            self._end("unusable", self._unread("the reply has neither next_state nor thinking_log"))

    def _unread(self, problem: str) -> str:
        """Return a problem with why the reply was not read, if it was not."""
        return ": ".join((problem, *self._reply.defects[:1]))

    def _trigger(self) -> str:
        named = self._reply.next_state
        if named is None:
            self._note_defect("no next_state, so thinking goes on")
        elif named not in _TRIGGERS:
            self._note_defect(f"next_state {named!r} is not a state, so thinking goes on")

        return _TRIGGERS.get(named or "", THINK)

    def _execute(self) -> None:
        asked, agent = self._reply.action, self._agent
        problem = _CUT_OFF if self._reply.is_truncated else None
        problem = problem or problem_of(
            asked,
            self._memory,
            agent.config.available_actions,
            agent.actions,
            fits=agent._pager.has_room_for,
        )
        if problem is not None:
            problem = problem if asked is not None else self._unread(problem)
            self._refuse(asked, problem)
            self._end("refused", problem)
            return

        self.action = asked
        self._fire(ACTED)

    # What the chart's actions do

    def note_thought(self) -> None:
        """Add the thought of the reply to the log, if it has one."""
        log, thought = self._agent.config.thinking_log, self._reply.thinking_log
        if thought is None:
            return

        # what an agent thinks of counts as used: by use, it is the last to go
        self._memory.touch(_mentioned(self._memory, thought))
        known = [*self._memory.thoughts.values()]
        if is_echo(thought, known):
            self._note_defect(REPEATED if known[-1:] == [thought] else ECHOED)
            return

        self._note(thought=thought)
        if log.enable:
            self._memory.think(thought, key_prefix=log.key_prefix, max_entries=log.max_entries)

    def act(self) -> None:
        """Carry out the action that is asked for."""
        assert self.action is not None
        own = self._agent.actions.get(self.action.type)
        try:
            if own is None:
                done = carry_out(self._memory, self.action)
            else:
                done = self._agent.carry_out(own, self.action)
        except ActionRefusedError as error:
            self._refuse(self.action, str(error))
            self._note(outcome="refused", reason=str(error))
            return

        self._note(action=done)
        keys: dict[str, Any] = {"tags": "", "reason": None, **done.to_dict()}
        if own is not None:
            keys["fields"] = dict(self.action.fields)
        self._say(events.COGNITION_ACTION, **keys)

    def page(self) -> None:
        """Move memories between working memory and storage."""
        pager, asked, reason = self._agent._pager, self._reply.action, None
        if self._written is not None:
            reason = self._failure_to_write() or (_CUT_OFF if self._reply.is_truncated else None)
            reason = reason or pager.problem_of(asked, self._memory)
        use = asked if reason is None else None
        self._note_paged(pager.page(self._memory, self._why, use, reason))

    # Telling

    def _fire(self, trigger: str) -> None:
        """Make the transition that the cycle calls for."""
        about: dict[str, Any] = {"cycle": self.told.number}
        if trigger == ACTED and self.action is not None:
            about |= {"action": self.action.type, "tags": self.action.tags}
        self._agent._chart.fire(self._agent, trigger, about)

    def _end(self, outcome: CycleOutcome, reason: str) -> None:
        self._note(outcome=outcome, reason=reason)
        self._fire(FAULT)

    def _note(self, **told: Any) -> None:
        self.told = replace(self.told, **told)

    def _note_defect(self, defect: str) -> None:
        self._note(defects=(*self.told.defects, defect))

    def _refuse(self, asked: AskedAction | None, reason: str) -> None:
        refused = ActionResult(*_named(asked), "refused", reason)
        self._note(action=refused)
        about = {"state": self.told.state, "type": refused.type, "tags": refused.tags}
        self._say(events.COGNITION_REFUSED, is_warning=True, **about, reason=reason)

    def _note_result(self) -> None:
        """Note for the next prompt what was done, and the result."""
        result = self.told.action or self._result_without_action()
        if result is None:
            return

        told: dict[str, Any] = {"cycle": self.told.number, "state": self.told.state}
        if result.type:
            told |= result.to_dict()
            # else the model takes all of them for done
            if (surplus := self._reply.surplus) is not None:
                told["surplus"] = f"The reply has {surplus}"
        else:  # the last action is still the last one
            told = {**(self._memory.last_action or {}), "fault": told | result.to_dict()}
        self._memory.note_action(told | _moved(self.told.paged))

    def _result_without_action(self) -> ActionResult | None:
        """Return what there is to tell of a cycle in which no action was carried out, if any."""
        told = self.told
        for paged in told.paged:
            if paged.why == "asked":
                outcome: Any = "refused" if paged.reason else "done"
                return ActionResult(*_named(self._reply.action), outcome, paged.reason)
        if told.brought_nothing:
            return ActionResult("", "", told.outcome, told.reason or told.brought_nothing)

        return None

    def _note_paged(self, paged: Paged | None) -> None:
        if paged is None:
            return

        self._note(paged=(*self.told.paged, paged))
        # the next prompt says where memories are that the last one showed
        if moved := _moved(self.told.paged):
            self._memory.note_action({**(self._memory.last_action or {}), **moved})
        told: dict[str, Any] = asdict(paged)
        lists = {key: [*value] for key, value in told.items() if isinstance(value, tuple)}
        self._say(events.COGNITION_PAGED, **(told | lists))

    def _announce(self, *, is_warning: bool) -> None:
        told, pager, cost = self.told, self._agent._pager, self.told.cost or Cost()
        self._say(
            events.COGNITION_CYCLE,
            is_warning=is_warning,
            state=told.state,
            next_state=told.next_state,
            outcome=told.outcome,
            reason=told.reason,
            prompt_tokens=told.prompt_tokens,
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            thought=told.thought,
            soft_limit=pager.soft,
            hard_limit=pager.hard,
            memory_tokens=pager.tokens_of_memory(self._memory),
            memories=told.memories,
            thoughts=told.thoughts,
            stored=self._memory.stored_count,
            defects=list(told.defects),
        )

    def _say(self, event: str, *, is_warning: bool = False, **keys: Any) -> None:
        """Announce what happened; a warning is shown in any case."""
        about = {"agent_id": self._agent.agent_id, "cycle": self.told.number}
        if is_warning:
            report(self._agent._lent.logger, "warning", event, **about, **keys)
        elif (logger := active_logger(self._agent._lent.logger)) is not None:
            logger.info(event, **about, **keys)


def lost_calls(attempts: int, *, has_failed: bool) -> int:
    """Return how many of the calls for a text brought no usable reply."""
    # a cached text takes none
    return max(0, attempts - (not has_failed))


def state_of(memory: Memory) -> CognitiveState | None:
    """Return the state that a memory says its agent is in; None if there is no such state."""
    return next((state for state in CognitiveState if state == memory.state), None)


def _moved(paged: Sequence[Paged]) -> dict[str, list[str]]:
    names = ("moved_out", "moved_in")
    moved = {name: [tag for each in paged for tag in getattr(each, name)] for name in names}
    return {name: tags for name, tags in moved.items() if tags}


def _named(asked: AskedAction | None) -> tuple[str, str]:
    """Return the type and the tags that a reply asks for; empty if it asks for no action."""
    return ("", "") if asked is None else (asked.type, asked.tags)


def _mentioned(memory: Memory, text: str) -> list[str]:
    """Return the memories whose tags a text names, with spaces or underscores between words."""
    words = f" {' '.join(words_of(text))} "
    return [tag for tag in memory.working if f" {' '.join(words_of(tag))} " in words]


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
