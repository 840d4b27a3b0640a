"""A council of thinking agents that share a board."""

from collections.abc import Iterable

from prism.programs.thinking import CognitiveAgent, Config, Memory, action
from prism.worlds import Guest, World, measure, param, state

ROLES = ("a doctor", "a teacher", "a shopkeeper", "a bus driver", "a gardener")


class Member(CognitiveAgent):
    """Somebody who perceives the board, and can post a note to it."""

    def perceive(self, world: "Council") -> Iterable[str]:
        """Read the last notes on the board, which replace those read before."""
        self.tell(instead=True)
        return world.board[-world.recent :] or ["The board is empty."]

    @action
    def post(self, world: "Council", text: str) -> None:
        """Post a short note to the board, which all others read."""
        world.board.append(f"{self.agent_id}: {text}")
        world.log("posted", agent=world.acting, text=world.board[-1])


class Council(World[Guest[Member]]):
    """A few people who have to agree on something."""

    rounds = 12
    question: str = param("Should the town close its main street to cars?", "what is discussed")
    recent: int = param(10, "notes that the board shows, the newest", least=1)
    board: list[str] = state(list)

    def populate(self, agents: int) -> list[Guest[Member]]:
        """Give everybody a role, and a memory."""
        return [Guest(object=self.member(number)) for number in range(agents)]

    def member(self, number: int) -> Member:
        """Make a member of the council."""
        role = ROLES[number % len(ROLES)]
        goal = (
            f"You are {role}. The council discusses: {self.question} Think about what the others "
            "say, then post what you think."
        )
        config = Config(goal=goal)
        return Member(config, Memory.in_memory(), agent_id=f"member_{number + 1}")

    @measure
    def posted(self) -> int:
        """Return the number of notes on the board."""
        return len(self.board)
