"""A council of agents that think, execute and page, and share a board."""

from prism.cognition import CognitiveAgent, Config, Memory
from prism.worlds import Guest, World, measure, param, state

ROLES = ("a doctor", "a teacher", "a shopkeeper", "a bus driver", "a gardener")


class Member(CognitiveAgent):
    """Somebody who finds the board in working memory, and posts by adding to it as a note."""

    async def act(self, world: "Council") -> None:
        """Read the board, run a cycle, and post the note that came of it."""
        self.memory.add("board", "\n".join(world.board[-world.shown :]) or "empty")
        cycle = await self.cycle()
        if cycle.action is None or cycle.action.outcome != "done":
            return
        if cycle.action.type == "working_memory_add" and cycle.action.tags.startswith("note"):
            world.board.append(f"{self.agent_id}: {self.memory.working[cycle.action.tags]}")
            world.log("posted", agent=world.acting, text=world.board[-1])


class Council(World[Guest[Member]]):
    """A few people who are to agree on something."""

    rounds = 12
    question: str = param("Should the town close its main street to cars?", "what is discussed")
    shown: int = param(10, "notes of the board that are shown", least=1)
    board: list[str] = state(list)

    def populate(self, agents: int) -> list[Guest[Member]]:
        """Give everybody a role, and a memory."""
        return [Guest(object=self.member(number)) for number in range(agents)]

    def member(self, number: int) -> Member:
        """Make one of the council."""
        role = ROLES[number % len(ROLES)]
        goal = (
            f"You are {role}. The council discusses: {self.question} Think about what is on the "
            "board, then say what you think by adding a memory with the tag note."
        )
        config = Config(goal=goal)
        return Member(config, Memory.in_memory(), agent_id=f"member_{number + 1}")

    @measure
    def posted(self) -> int:
        """Return the number of notes on the board."""
        return len(self.board)
