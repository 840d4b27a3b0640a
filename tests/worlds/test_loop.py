"""What every run does around its rounds: it pays, gives others their turn, and closes."""

import asyncio
from collections.abc import Sequence

from prism import Run
from prism.examples import Rumour
from prism.statechart import Budget, Decision, PolicyReasoner, Question


class Paying(PolicyReasoner):
    """The policy, which pays for each answer out of a budget, and has a connection to close."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(max_calls=1000)
        self.is_closed = False

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Pay for every answer."""
        for _ in questions:
            self.budget.take()
        return await super().answer(questions)

    async def close(self) -> None:
        """Close the connection."""
        self.is_closed = True


def test_a_budget_goes_on_after_a_restore() -> None:
    """What a reasoner had spent when the snapshot was taken is spent after it is restored."""
    payer, again = Paying(), Paying()
    whole = Run(Rumour(), 30, rounds=3, reasoner=payer)
    whole.run()
    other = Run(Rumour(), 30, rounds=3, reasoner=again)
    other.loop.restore(whole.loop.snapshot(), [])
    assert again.budget.to_dict() == payer.budget.to_dict()
    assert again.budget.calls > 0


def test_connections_are_closed_at_the_end() -> None:
    """A reasoner that can be closed is closed when the run has ended."""
    payer = Paying()
    Run(Rumour(), 10, rounds=1, reasoner=payer).run()
    assert payer.is_closed


async def test_a_run_leaves_others_their_turn() -> None:
    """`arun` gives the results of `run`, and others in the event loop get their turn."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    results = await Run(Rumour(), 10, rounds=8).arun()
    task.cancel()
    assert turns >= 8
    assert results == await asyncio.to_thread(Run(Rumour(), 10, rounds=8).run)
