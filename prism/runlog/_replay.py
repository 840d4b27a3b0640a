"""Answering questions and text calls with the decisions and texts of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from prism.reasoner._router import CostsByModel
from prism.runlog._recorded import RecordedAnswers
from prism.statechart import BaseReasoner, BaseWriter, Decision, Question, TextCall, Written
from prism.telemetry.events import DECISION, TEXT_WRITTEN
from prism.telemetry.loggers import EventLogger


class _Replaying:
    """The common part of a reasoner and a writer that answer from a log."""

    _event: str
    _asked_for: str

    def __init__(self, log: PathLike[str] | str, *, verbatim: bool) -> None:
        self.recorded: RecordedAnswers = RecordedAnswers(log, verbatim=verbatim, of=[self._event])
        self.costs: CostsByModel = CostsByModel()

    @property
    def tells_models(self) -> bool:
        """Whether the earlier run's log names its models."""
        return bool(self.recorded.models(self._asked_for))

    def models_for(self, agents: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the model of each agent in the earlier run.

        Args:
            agents: All agents of the run, the same as in the earlier one.
        """
        del agents
        return self.recorded.models(self._asked_for)

    def remember(self, event: Mapping[str, Any]) -> None:
        """Skip an answer that the run took from this log before it was interrupted.

        Args:
            event: The answer's event, ``reasoner.decision`` or ``text.written``.
        """
        self.costs.add_event(event)
        self.recorded.remember(event)


class ReplayReasoner(_Replaying, BaseReasoner):
    """Answers from the log of an earlier run, to repeat a run with a model without the model.

    A question is identified by its agent, state, trigger, options and context. Repeated questions
    get their answers in the order of the log.

    Args:
        log: The log, plain or compressed with gzip, or the folder of the run.
        verbatim: Report decisions exactly as in the log, so that the repeated run writes the same
            bytes. By default their source is ``replay``.
        logger: A structlog logger for the decisions.

    Raises:
        InputError: If the log cannot be read, is empty, has two runs or a newer schema, or has a
            line that is not an event; the message names the line.
    """

    _event, _asked_for = DECISION, "decisions"

    def __init__(
        self,
        log: PathLike[str] | str,
        *,
        verbatim: bool = False,
        logger: EventLogger | None = None,
    ) -> None:
        BaseReasoner.__init__(self, logger)
        _Replaying.__init__(self, log, verbatim=verbatim)

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed chose among all acts in the earlier run."""
        return self.recorded.chooses_acts

    def chooses_acts_for(self, agent: Any) -> bool:
        """Return whether an agent chooses among all acts in its next decision."""
        return bool(self.recorded.recorded_acts(agent))

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Return the decisions of the log.

        Raises:
            ReplayError: If a question is not in the log, or its decision not among the options.
        """
        decisions = [self.recorded.decision(question) for question in questions]
        for decision in decisions:
            self.costs.add(decision)

        return decisions


class ReplayWriter(_Replaying, BaseWriter):
    """Answers text calls from the log of an earlier run, to repeat it without the model.

    A call is identified by its agent and key, and its prompt must be that of the log. Repeated
    calls get their texts in the order of the log, including failures.

    Args:
        log: The log, plain or compressed with gzip, or the folder of the run.
        verbatim: Report texts exactly as in the log, so that the repeated run writes the same
            bytes. By default their source is ``replay``.
        logger: A structlog logger for the texts.

    Raises:
        InputError: As for `ReplayReasoner`.
    """

    _event, _asked_for = TEXT_WRITTEN, "texts"

    def __init__(
        self,
        log: PathLike[str] | str,
        *,
        verbatim: bool = False,
        logger: EventLogger | None = None,
    ) -> None:
        BaseWriter.__init__(self, logger)
        _Replaying.__init__(self, log, verbatim=verbatim)

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return the texts of the log.

        Raises:
            ReplayError: If a call is not in the log, or its text would be different now.
        """
        texts = [self.recorded.text(call) for call in calls]
        for written in texts:
            self.costs.add(written)

        return texts
