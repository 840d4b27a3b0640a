"""Fishers who share a lake, each carrying out a YAML workflow; after Gordon (1954)."""

from prism.programs.yaml import Workflow, WorkflowAgent
from prism.worlds import Guest, World, measure, param, state

WORKFLOW = """
name: fisher
state_machine:
  states: [fishing, resting]
steps:
  - name: fish
    in_state: fishing
    code: |
      import random
      catch = stock * random.random()
  - name: stop
    in_state: fishing
    run_if: stock < rest_below
    code: catch = 0
    transition_to: resting
  - name: wait
    in_state: resting
    run_if: stock > rest_below
    code: rested = context.get('rested', 0) + 1
    transition_to: fishing
"""


class Fisher(WorkflowAgent):
    """Somebody who fishes, or lets the lake recover, as the workflow says."""

    async def act(self, world: "Lake") -> None:
        """Look at the lake, take a turn, and take out what was caught."""
        self.context.update(stock=world.stock / len(world.agents), rest_below=world.rest_below)
        await super().act(world)
        world.stock -= self.context["catch"] * (self.state.value == "fishing")


class Lake(World[Guest[Fisher]]):
    """A lake with fish that grow by the logistic law."""

    rounds = 30
    growth: float = param(0.4, "growth a round, of a few fish in much water", least=0)
    rest_below: float = param(0.3, "share of the lake below which fishers rest", least=0, most=1)
    stock: float = state(0.0)

    def populate(self, agents: int) -> list[Guest[Fisher]]:
        """Give every fisher the same workflow, and the lake room in proportion."""
        self.stock, workflow = float(agents), Workflow.from_text(WORKFLOW)
        return [Guest(object=Fisher(workflow, agent_id=f"fisher_{n}")) for n in range(agents)]

    def round_ends(self) -> None:
        """Let the fish grow."""
        self.stock += self.growth * self.stock * (1 - self.stock / len(self.agents))

    @measure
    def left(self) -> float:
        """Return the stock of fish as a share of what the lake can hold."""
        return self.stock / len(self.agents)
