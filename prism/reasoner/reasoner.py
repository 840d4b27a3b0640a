"""Deciding with a language model; if it does not decide, a fallback does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import combinations
from typing import Any, Unpack, get_args

from prism._faults import location_of
from prism.errors import LLMError, NoProbabilitiesError, ReasonerError, UselessReplyError
from prism.randomness import RandomStream, index_at
from prism.reasoner._templates import user_prompt
from prism.reasoner.asking import AskedOnce, AsksModel, Limits, Outcome, Pool, all_of
from prism.reasoner.clients import gives_chances
from prism.reasoner.faults import OtherLoopError
from prism.reasoner.prompts import (
    STATE_DESCRIPTIONS,
    PromptSettings,
    QuestionRequest,
    may_have_letters,
    request_for,
)
from prism.reasoner.questions import (
    AgentStreams,
    BaseReasoner,
    Decision,
    Draw,
    Kind,
    Mode,
    Question,
    Rotations,
    Source,
)
from prism.reasoner.replies import Reply
from prism.reasoner.requests import USUAL_TRIES, Cost, require_one_of, require_positive
from prism.reasoner.servers import LOGGER
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.telemetry.loggers import describe


class Reasoner(AsksModel, BaseReasoner):
    """Asks a language model which of several enabled transitions an agent takes.

    If the model fails, the decision is the fallback, and a warning gives the reason. The same
    happens if the agent or the context raises an exception; the reason names its file and line.

    If the client's ``temperature`` is 0, equal questions are asked once, and their answers are kept
    as long as the reasoner is. At any other or an unknown temperature, each agent is asked with its
    own seed from its random stream. Agents with the same prompt then answer independently, and
    identically in every run with the same seed.

    Args:
        client: A `prism.llm.Model`, or anything with an async ``chat``, ``get_response`` or
            ``run``: prism's `OllamaChatClient`, ``ollama.AsyncClient`` and ``openai.AsyncOpenAI``
            (which need ``model``), or an agent-framework client or agent.
        mode: ``auto`` asks for a letter, whose log-probabilities count, where the server gives
            them; once the letters have less than half of the probability, the model is asked for
            the name of an option. ``chat`` always asks for the name. An option is drawn from
            probabilities with the agent's random stream; the random number is drawn when the
            question is asked, whatever the answer.
        fallback: The state to take if the model gives no valid answer and this is an option; by
            default the first option, in the chart's order of transitions.
        model: Model name, for clients that need it with every call.
        descriptions: Meaning of each state for the prompt, by state; `STATE_DESCRIPTIONS` by
            default.
        prompt: Template of the model's prompt, with ``{fields}``. Memory, options and how to reply
            follow, unless the template names them. By default the prompt of the specification for
            the social chart, and elsewhere one with chart, options, agent and event;
            ``docs/models.md`` describes them.
        attributes: Attributes of the agents to include in the prompt.
        memory: How many of the last things an agent remembers when it decides: in the social feed,
            the posts that it saw, its reactions, and what it wrote; in a world, its notes, its
            messages and its transitions; for any other agent, the transitions in its
            ``state_history``.
        rotations: The order of options in the prompt, since models prefer certain letters and
            positions: ``none`` for that of the chart; ``drawn`` for a rotation of it, drawn for
            each decision, so that a population's shares are averages over all rotations; or ``all``
            to ask in every rotation and average the probabilities, which takes a request for each
            option, and logs how far the rotations lie apart.
        timeout: Seconds that one answer may take, including retries, once the question has a slot
            of the client; by default 120, or twice the ``timeout`` of a `Model` if that is more.
        concurrency: Simultaneous requests, for a client of another library; 16 by default.
        attempts: Requests for one question in case of temporary failures (a busy server, a broken
            connection, a time-out), for a client of another library; 3 by default, 1 for no
            retries.
        patience: Seconds to wait for a failing client of another library before questions to it
            fail at once; None means 0, and 60 in a run.
        seed: Seed of the draws of agents without a stream, and of sampling if the client takes a
            seed.
        budget: Limits of the run; when one is spent, decisions fall back.
        logger: A structlog logger for decisions.

    Raises:
        ReasonerError: If the client has none of the three methods, or blocks the event loop; if it
            needs a model and there is none; or if a prompt names an unknown field.
        FieldTypeError: If the budget is none.
        OtherLoopError: (an LLMError) when it is asked in two event loops at once.
        FieldValueError: If mode or rotations are unknown, if
            time-out, concurrency, attempts or memory are not above 0, or if concurrency or attempts
            are given for a `Model`, which has its own.
    """

    chooses_acts: bool = True

    def __init__(
        self,
        client: Any,
        *,
        mode: Mode = "auto",
        fallback: Any = None,
        descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS,
        prompt: str | None = None,
        attributes: Sequence[str] = (),
        memory: int | None = None,
        rotations: Rotations = "none",
        **limits: Unpack[Limits],
    ) -> None:
        require_one_of("mode", mode, get_args(Mode))
        require_one_of("rotations", rotations, get_args(Rotations))
        require_positive(memory=memory)
        AsksModel.__init__(self, client, **limits)
        is_able = isinstance(self.client, Pool) or gives_chances(self.client)
        self._asks_letters = mode == "auto" and is_able
        self._is_proven = self._has_letters = False
        self._fallback = fallback
        self._streams = AgentStreams(self._seed)
        self.memory: int = memory or 0
        self._settings = PromptSettings(
            descriptions,
            user_prompt(prompt, has_memory=memory is not None),
            (attributes,) if isinstance(attributes, str) else tuple(attributes),
            self.memory,
        )
        self._rotations = rotations
        self._replies: AskedOnce[Reply] = AskedOnce(keeps=not self._samples)
        self._proofs: AskedOnce[None] = AskedOnce()

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Ask every question, with as many simultaneous ones as the client allows.

        Random numbers are drawn before anything is awaited, so no draw depends on which answer
        comes first.
        """
        for question in questions:
            self._require_fallback(type(question.options[0]))
        draws = [self._draw(question) for question in questions]
        try:
            return await all_of(map(self._decided, questions, draws))
        except BaseException:
            for draw in draws:
                draw.put_back()

            raise

    def skip(self, question: Question, decision: Decision | None = None) -> None:
        """Draw the random numbers of a question that was answered elsewhere.

        Args:
            question: The question.
            decision: The answer; if a model gave it, equal questions are answered alike.
        """
        draw = self._draw(question)
        if decision is None:
            return
        self._note_kind(question, decision)
        if decision.source != "model" or not self._replies.keeps or self._rotations == "all":
            return

        (rotation,) = self._rotations_of(question, draw)
        chosen, chances = state_text(decision.chosen), decision.probabilities
        # a user's agent that raises will never be asked an equal question
        with suppress(Exception):
            request = self._request(decision.question_kind or "name", question, draw, rotation)
            reply = Reply("", chosen, chances, decision.option_mass)
            self._replies.keep(request.identity, reply)

    def _note_kind(self, question: Question, decision: Decision) -> None:
        """Note how an earlier process asked, so that a run keeps to one kind of question."""
        if decision.question_kind == "letter":
            self._is_proven = self._has_letters = True
            return
        had_a_choice = decision.question_kind == "name" and may_have_letters(question.options)
        if decision.option_mass is not None or (had_a_choice and not self._has_letters):
            self._asks_letters = False

    def _require_fallback(self, states: type[Any]) -> None:
        """Refuse a misspelt fallback before it is needed; a member may be of another kind's chart.

        Raises:
            ReasonerError: If it is a text that no state has.
        """
        fallback = self._fallback
        if fallback is None or isinstance(fallback, Enum) or not issubclass(states, Enum):
            return
        if fallback not in (texts := [state.value for state in states]):
            listed = ", ".join(map(str, texts))
            raise ReasonerError(
                f"the fallback {fallback!r} is no state of {states.__name__}: it has {listed}"
            )

    # Random numbers

    def _draw(self, question: Question) -> Draw:
        """Draw the random number of a question, whose agent must have a name."""
        try:
            agent_name(question.agent)
            stream = self._streams.of(question.agent)
            return Draw(stream, stream.take())
        except Exception as error:  # of the user's agent, which must not affect other questions
            return Draw(fault=error)

    def _rotations_of(self, question: Question, draw: Draw) -> Sequence[int | None]:
        """Return the rotations of the options in which a question is asked."""
        if self._rotations == "none":
            return (None,)

        size = len(question.options)
        if self._rotations == "all":
            return range(size)
        # depends on the agent and this draw alone
        key = (agent_name(question.agent), draw.variation)
        return (RandomStream(self._seed, "order", *key).index(size),)

    # One question

    async def _decided(self, question: Question, draw: Draw) -> Decision:
        """Ask a question, and choose with the random number drawn before."""
        if draw.fault is not None:
            return self._without_asking(question, draw.fault)
        if self._is_proven or not self._asks_letters:
            return await self._in_rotations(question, draw)

        # so a server without log-probabilities costs a run one request, not one for each agent
        decisions: list[Decision] = []

        async def prove(_cost: Cost) -> None:
            decisions.append(await self._in_rotations(question, draw))
            self._is_proven = True

        await self._proofs.do("letter", prove)
        return decisions[0] if decisions else await self._in_rotations(question, draw)

    async def _in_rotations(self, question: Question, draw: Draw) -> Decision:
        """Ask a question in one rotation of its options, or in all of them."""
        kind: Kind = "letter" if self._asks_letters else "name"
        rotations = self._rotations_of(question, draw)
        decisions = await all_of(self._ask_by(kind, question, draw, each) for each in rotations)
        options = [*map(state_text, question.options)]
        decision = _averaged(decisions, options) if len(decisions) > 1 else decisions[0]
        return self._chosen(question, draw, decision)

    async def _ask_by(
        self,
        kind: Kind,
        question: Question,
        draw: Draw,
        rotation: int | None,
        tries: int = USUAL_TRIES,
    ) -> Decision:
        """Ask a question, by name if a model cannot be asked for probabilities.

        An answer with probabilities chooses nothing yet. A useless reply to a question by letter is
        asked again by name.
        """
        try:
            request = self._request(kind, question, draw, rotation)
        except ReasonerError:
            raise
        except Exception as error:
            # an exception of the user's agent or post must not affect the other questions
            return self._without_asking(question, error)
        if (reply := self._replies.kept(request.identity)) is not None:
            return self._read(request, reply, "cache", None)

        tries = 1 if request.kind == "letter" else tries
        ask = partial(self.ask, request, tries=tries)
        outcome = await self._replies.do(request.identity, ask)
        if request.kind == "name" or not self._lacks_chances(outcome):
            return self._answered(request, outcome)

        cost = outcome.charge()
        left = USUAL_TRIES - isinstance(outcome.error, UselessReplyError)
        decision = await self._ask_by("name", question, draw, rotation, left)
        if decision.cost is not None:
            cost.follow(decision.cost)
        # tells a resumed run why names are asked for
        mass = None if outcome.result is None else outcome.result.option_mass
        return replace(decision, cost=cost, option_mass=mass)

    def _request(
        self, kind: Kind, question: Question, draw: Draw, rotation: int | None
    ) -> QuestionRequest:
        """Make a request, with the agent's own seed if answers are sampled."""
        variation = draw.variation if self._samples else 0
        return request_for(kind, question, self._settings, rotation, variation)

    def _lacks_chances(self, outcome: Outcome[Reply]) -> bool:
        """Return whether a model gave no probabilities, so that it is asked by name."""
        reply, error = outcome.result, outcome.error
        if reply is not None and reply.chances is not None:
            self._has_letters = True
            return False
        if isinstance(error, NoProbabilitiesError):
            self._asks_letters = False
            return True

        if reply is None and not isinstance(error, UselessReplyError):
            return False
        mass = None if reply is None else reply.option_mass
        what = "wrote no letter"
        if mass is not None:
            what = f"gave the letters of all options {mass:.2g} of the probability"
        # a reply without a letter says nothing about other questions, if some had one
        if self._asks_letters and (mass is not None or not self._has_letters):
            self._asks_letters = False
            model = self._model or "the model"
            LOGGER.warning("%s %s: from now on it is asked for the name of an option", model, what)
        return True

    # Answers

    def _answered(self, request: QuestionRequest, outcome: Outcome[Reply]) -> Decision:
        """Return the result of a request; a failure is a fallback."""
        reply, cost = outcome.result, outcome.charge()
        if isinstance(outcome.error, OtherLoopError):
            raise outcome.error
        if reply is None:
            answer = self._fall_back(request.question, outcome.error or LLMError("no reply"), cost)
            return replace(answer, prompt_hash=request.hash, prompt=request.text)

        self._replies.keep(request.identity, reply)
        return self._read(request, reply, "model", cost)

    def _read(
        self, request: QuestionRequest, reply: Reply, source: Source, cost: Cost | None
    ) -> Decision:
        options = {state_text(option): option for option in request.question.options}
        chances = reply.chances and {text: reply.chances[text] for text in options}
        return Decision(
            options.get(reply.chosen or ""),
            source,
            probabilities=chances,
            cost=cost,
            prompt_hash=request.hash,
            question_kind=request.kind,
            option_mass=reply.option_mass,
            rotation=request.rotation,
            prompt=request.text,
            reply=reply.text,
        )

    def _chosen(self, question: Question, draw: Draw, decision: Decision) -> Decision:
        """Choose an option by its probability, if the model gave probabilities."""
        if decision.probabilities is None:
            return replace(decision, sampling_seed=draw.variation) if self._samples else decision

        weights = list(decision.probabilities.values())
        number = index_at(draw.drawn[1], weights)
        rounded = {text: round(chance, 6) for text, chance in decision.probabilities.items()}
        return replace(decision, chosen=question.options[number], probabilities=rounded)

    def _without_asking(self, question: Question, fault: Exception) -> Decision:
        where = f" ({source})" if (source := location_of(fault)) is not None else ""
        return self._fall_back(question, fault, Cost(model=self._model), where)

    def _fall_back(
        self, question: Question, error: Exception, cost: Cost, where: str = ""
    ) -> Decision:
        options = question.options
        chosen = next((option for option in options if option == self._fallback), options[0])
        reason = f"{describe(error)}{where}"
        if cost.cut_short not in reason:
            reason += cost.cut_short
        failure = type(error).__name__
        return Decision(chosen, "fallback", reason=reason, cost=cost, failure=failure)


def _averaged(decisions: Sequence[Decision], options: Sequence[str]) -> Decision:
    """Return the decisions on one question, asked in several rotations, as one.

    Its probabilities are the averages; a choice by name counts as certain. Rotations that fell back
    are left out, unless all did.

    Args:
        decisions: One decision for each rotation.
        options: The texts of the options.
    """
    answered = [each for each in decisions if each.source != "fallback"] or decisions
    # one by name, if there is one
    first = min(answered, key=lambda each: each.question_kind == "letter")
    cost = decisions[0].cost
    for each in decisions[1:]:
        if cost is not None and each.cost is not None:
            cost.follow(each.cost)
    if first.source == "fallback":
        return replace(first, cost=cost)

    chances = [
        each.probabilities or {text: float(text == state_text(each.chosen)) for text in options}
        for each in answered
    ]
    mean = {text: sum(each[text] for each in chances) / len(chances) for text in options}
    # that of a decision by name tells a resumed run why names are asked for
    of = answered if first.question_kind == "letter" else [first]
    masses = [each.option_mass for each in of if each.option_mass is not None]
    return replace(
        first,
        probabilities=mean,
        cost=cost,
        rotation=None,
        rotations_apart=round(farthest(chances), 6),
        option_mass=round(sum(masses) / len(masses), 6) if masses else None,
    )


def farthest(answers: Sequence[Mapping[str, float]]) -> float:
    """Return the largest total variation distance of any two distributions, from 0 to 1."""
    pairs = combinations(answers, 2)
    apart = (sum(abs(one[text] - other[text]) for text in one) / 2 for one, other in pairs)
    return max(apart, default=0.0)
