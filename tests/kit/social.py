"""Doubles for runs of the social feed."""

from collections.abc import Sequence
from typing import Any

from prism.social import Draft
from prism.statechart import BaseReasoner, Decision, Question


class AlwaysReasoner(BaseReasoner):
    """Always chooses one state."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._state = state

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        return [Decision(self._state, "policy") for _ in questions]


class KindComposer:
    """Always writes one kind of post."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def compose(self, agent: Any, post: Any, stream: Any) -> Draft:
        return Draft(self.kind, "composed", ("art",))
