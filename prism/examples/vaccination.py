"""Parents who decide about a vaccination, with or without a model."""

from enum import StrEnum
from typing import ClassVar

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, param, small_world, uniform

View = StrEnum("View", ["UNDECIDED", "ACCEPTS", "REFUSES"])


class Parent(Agent):
    """A parent of a small child."""

    chart = Statechart(
        View,
        [Transition("considers", View.UNDECIDED, view) for view in View],
        initial=View.UNDECIDED,
        name="vaccination",
        decision_states=[View.UNDECIDED],
    )
    trust: float = uniform(0, 1)

    def persona(self) -> str:
        """Say who the parent is."""
        trusts = "trust" if self.trust > 0.5 else "do not trust"
        return f"You are {self.name}, who has a small child. You {trusts} your doctor."


class Vaccination(World[Parent]):
    """Parents whose doctor offers a vaccination, and who look at what their friends have done."""

    friends: int = param(4, "friends of each parent", least=2)
    meanings: ClassVar = {
        View.UNDECIDED: "Think it over until next month",
        View.ACCEPTS: "Have your child vaccinated",
        View.REFUSES: "Refuse for good",
    }

    def setup(self) -> None:
        """Connect parents."""
        self.network = small_world(self, self.friends, 0)

    @during(View.UNDECIDED)
    async def visit(self, parent: Parent) -> None:
        """Let a parent decide, knowing what friends have done."""
        done = sum(friend.state is View.ACCEPTS for friend in parent.neighbours)
        odds = {View.UNDECIDED: 2, View.ACCEPTS: parent.trust + done, View.REFUSES: 0.2}
        prompt = f"Your doctor offers a measles vaccination. {done} of your friends had it done."
        if await parent.decide("considers", weights=odds, prompt=prompt) is View.ACCEPTS:
            self.log("vaccinated", agent=parent, dose=1)

    @measure
    def covered(self) -> float:
        """Return the share of the parents who had their child vaccinated."""
        return self.share(View.ACCEPTS)
