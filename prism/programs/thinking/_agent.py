"""An agent that thinks, executes and pages, one cycle at a time: three steps on a chart."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any, ClassVar

from prism.errors import AgentError, InputError, PromptTooLongError
from prism.programs._layer import Step, writer_of
from prism.programs.thinking._actions import (
    Acting,
    Action,
    ActionRefusedError,
    ActionResult,
    actions_of,
)
from prism.programs.thinking._config import Config, with_window
from prism.programs.thinking._cycle import (
    STEPS,
    CognitiveState,
    Cycle,
    cognitive_chart,
    number_of_cycles,
    reason_to_stop,
    state_of,
)
from prism.programs.thinking._memory import Memory, to_json
from prism.programs.thinking._prompts import Form, Paged, Pager, PagingReason, Prompt
from prism.programs.thinking._replies import HOW_AGAIN, ActionRequest, AgentReply, folded, reader
from prism.reasoner import Cost, TextCall, Written
from prism.reasoner.requests import TokenCounter, count_tokens
from prism.runs.documents import hold
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger, describe
from prism.worlds.guests import Services


class CognitiveAgent(Acting):
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
        actions: Its actions, by name.
        world: The world in which it is acting; None outside of one.

    Raises:
        InputError: If the fixed parts of every prompt already exceed a limit.
    """

    config: Config = Config()
    _prism_run_alone: ClassVar[str] = "CognitiveRun"

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
        self.actions: Mapping[str, Action] = actions_of(type(self))
        self.world: Any = None
        self._cycles: deque[Cycle] = deque(maxlen=100)
        self._count = count
        self._noted: dict[str, Any] = {}
        self._prompt: Prompt | None = None
        # cycles and revision of its file while a run repeats what led to that
        self._file: tuple[int, str] | None = None
        services = Services(writer_of(with_window(client, config)), logger)
        super().__init__(cognitive_chart(), STEPS, services, agent_id=agent_id)
        if self._recorded is not None:
            if memory.path is not None:
                self._file = memory.cycle, memory.revision
            memory.replace(Memory.read(self._recorded).to_dict())
            self._compare_with_file()
        self.state = state_of(memory) or CognitiveState.THINKING

    def join(self, services: Services) -> None:
        """Continue with the writer, log and time of a run."""
        super().join(services)
        self._pager = Pager(Form(self.config, self.actions), self._count)
        self._has_window = False
        self._recorded = hold(self.agent_id, lambda: to_json(self.memory.to_dict()))

    def _compare_with_file(self) -> None:
        """Stop repeating what an earlier process did once the memory is what its file has.

        Raises:
            InputError: If somebody has changed the file since that process stopped.
        """
        if self._file is None or self.memory.cycle < self._file[0]:
            return
        if (self.memory.cycle, self.memory.revision) != self._file:
            problem = "has changed since the run stopped: begin another run with it, or restore"
            raise InputError(f"{problem} what it was", path=self.memory.path)
        self._file = None

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
        self._cycles.clear()
        while len(done) < number and not (done and self.stopped):
            done.append(await self.cycle())
            # a writer may answer at once: let an interruption have a turn
            await asyncio.sleep(0)
        return done

    async def cycle(self) -> Cycle:
        """Run one cycle, which is a turn, and commit the memory, even if an error is raised.

        The memory changes after the reply has arrived. If the model fails, that is not an error but
        a failed cycle. Five useless cycles in a row make the agent stop.

        Raises:
            AgentError: If a cycle of this agent, or of another with its memory, is under way.
        """
        if self.memory.user not in (None, self):
            raise AgentError(f"agent {self.agent_id!r} needs a memory that no other agent uses")
        self.stopped = None
        await self.turn()
        self.stopped = reason_to_stop(self._cycles)
        if self.stopped is not None:
            self._say(events.COGNITION_STOPPED, is_warning=True, reason=self.stopped)
        return self._cycles[-1]

    async def begin_turn(self) -> None:
        """Take the state from the memory, where somebody may have changed it; begin a cycle."""
        self.memory.user = self
        state = state_of(self.memory)
        self.state: StrEnum = state or CognitiveState.THINKING
        self._noted = {"number": self.memory.cycle + 1, "state": self.state.value}
        if state is None:
            self.ticks_in_state = 0
            states = {"from_state": self.memory.state, "to_state": self.state.value}
            self._say(events.COGNITION_RESET, is_warning=True, **states)
        if not self._has_window:
            await self._take_window()
        is_thinking = self.state is CognitiveState.THINKING
        if is_thinking and self._pager.has_passed_soft_limit(self.memory):
            self.chart.fire_to(self, "overflow", CognitiveState.PAGING, {"step": "overflow"})

    async def _take_window(self) -> None:
        """Lower the limits to the window that the server has."""
        self._has_window = True
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
            self._note(outcome="failed", reason=describe(fault), failure=type(fault).__name__)
        memory.state = self.state.value
        cycle = Cycle(**self._noted, next_state=memory.state)
        self._cycles.append(cycle)
        cycle.tell(memory.progress)
        memory.end_cycle()
        memory.user = None
        if cycle.failure == PromptTooLongError.__name__:
            self._has_window = False
        self._announce_cycle(cycle)
        self._compare_with_file()
        if self._file is None:
            memory.commit()

    # Alone in a run

    async def take_round(self) -> Cycle:
        """Take a round of a run, which is a cycle."""
        return await self.cycle()

    def final(self) -> dict[str, Any]:
        """Return how many cycles the memory has seen, and how much it holds."""
        memory = self.memory
        sizes = {"memories": memory.working, "thoughts": memory.thoughts, "stored": memory.storage}
        return {"cycle": memory.cycle, **{name: len(each) for name, each in sizes.items()}}

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()

    # In a world

    async def turn_in(self, world: Any) -> None:
        """Perceive the news, and think until an action is carried out, or the agent stops.

        This takes at most four cycles. News that the agent has not acted on is shown again in its
        next turn.
        """
        self.tell(*self.perceive(world))
        self.world = world
        try:
            for _ in range(4):
                if (await self.cycle()).has_acted:
                    self.tell(instead=True)
                    return
                if self.stopped is not None:
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
        progress = self.memory.progress
        progress.news = [*([] if instead else progress.news), *news][-50:]

    # Steps

    def is_due(self, step: Step) -> bool:
        """Return whether a step should run; a cycle that has paged does not think."""
        return step.kind == "paging" or "paging" not in self._noted.values()

    def question(self, step: Step) -> TextCall:
        """Return the request of a step that asks a model."""
        state, number, form = step.kind, self._noted["number"], self._pager.form
        self._prompt = prompt = self._pager.fit(self.memory, state)
        schema = form.schema(state)
        return TextCall(
            self,
            f"{number}:{state}",
            prompt.text,
            schema,
            reader(state, form.instructions(state), schema),
            variation=number,
            reply_tokens=self._pager.reply,
            how=HOW_AGAIN[state],
        )

    async def do(self, step: Step, written: Written | None) -> str:
        """Page, or take the reply of the model; return the next state."""
        if written is None:
            return self._page()
        assert self._prompt is not None
        self._note(prompt_tokens=self._prompt.tokens, cost=written.cost)
        # what did not fit into the prompt goes first: the model wrote without having seen it
        self._note_paged(self._pager.make_room(self.memory, self._prompt))
        if not written.has_failed:
            take = self._think if step.name == "think" else self._execute
            return await take(written.value)

        reason = written.reason or "the model wrote nothing useful"
        outcome = "failed" if written.text is None else "unusable"
        self._note(outcome=outcome, reason=reason, failure=written.failure)
        if step.name == "execute" and written.text is not None:
            self._refuse(ActionRequest(""), reason)
        return "thinking"

    async def _think(self, reply: AgentReply) -> str:
        """Keep the thought of a reply, and return the state that it names."""
        if reply.action is not None:
            refusal = "an action is carried out while executing, not while thinking"
            self._refuse(reply.action, refusal)
            if reply.next_state is None and reply.thinking_log is None:
                # a model that only acts, as with a server's own tools, is asked to while executing
                return "executing"
            self._note(outcome="done", reason=None)
        if reply.thinking_log is not None:
            self._keep(reply.thinking_log)
        return str(reply.next_state) if reply.next_state in list(CognitiveState) else "thinking"

    def _keep(self, thought: str) -> None:
        log, memory = self.config.thinking_log, self.memory
        # what an agent thinks of counts as used: by use, it is the last to go
        words = {word.casefold() for word in thought.replace("_", " ").split()}
        memory.touch(tag for tag in memory.working if words.issuperset(tag.casefold().split("_")))
        if folded(thought) in map(folded, memory.thoughts.values()):
            problem = "the thought repeats an earlier one, and is not kept: think of something else"
            self._note(repeats=problem)
            return
        self._note(thought=thought)
        if log.enable:
            memory.think(thought, key_prefix=log.key_prefix, max_entries=log.max_entries)

    async def _execute(self, reply: AgentReply) -> str:
        """Carry out the action of a reply; return to thinking, whatever the result."""
        request = reply.action
        assert request is not None
        try:
            done = await self._do(request)
        except ActionRefusedError as error:
            self._refuse(request, str(error))
            return "thinking"

        deed = json.dumps([request.type, request.content, done.outcome, done.answer, done.matches])
        if self.memory.is_recent(deed) and done.reason is None:
            done = replace(done, reason="it repeats an earlier action with the same result")
        done = replace(done, fields=dict(request.fields))
        self._note(action=done)
        about = {"tags": "", "reason": None, "fields": {}, **done.to_dict()}
        self._say(events.COGNITION_ACTION, **about)
        return "thinking"

    def _page(self) -> str:
        """Move what was used least to storage."""
        why: PagingReason = "asked" if self._noted["state"] == "paging" else "soft_limit"
        self._note(state="paging")
        self._note_paged(self._pager.page(self.memory, why))
        return "thinking"

    # What is noted and logged

    def _note(self, **notes: Any) -> None:
        self._noted |= notes

    def _refuse(self, request: ActionRequest, reason: str) -> None:
        action = ActionResult(request.type, request.tags, "refused", reason)
        self._note(outcome="refused", reason=reason, action=action)
        about = {"type": action.type, "tags": action.tags, "reason": reason}
        self._say(events.COGNITION_REFUSED, is_warning=True, state=self._noted["state"], **about)

    def _note_paged(self, paged: Paged | None) -> None:
        if paged is not None:
            self._note(paged=(*self._noted.get("paged", ()), paged))
            self._say(events.COGNITION_PAGED, **{**asdict(paged), "moved_out": [*paged.moved_out]})

    def _announce_cycle(self, cycle: Cycle) -> None:
        cost = cycle.cost or Cost()
        keys = ("state", "next_state", "outcome", "reason", "prompt_tokens", "thought")
        self._say(
            events.COGNITION_CYCLE,
            **{key: getattr(cycle, key) for key in keys},
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            soft_limit=self._pager.soft,
            hard_limit=self._pager.hard,
            **self.final(),
            defects=[cycle.repeats] if cycle.repeats else [],
        )

    def _say(self, event: str, *, is_warning: bool = False, **keys: Any) -> None:
        self.say(event, is_warning=is_warning, **{"cycle": self._noted["number"], **keys})
