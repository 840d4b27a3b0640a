"""Runs of a single agent, whose rounds are its turns or cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from prism.files.records import digest
from prism.worlds._run import Run
from prism.worlds.arguments import plain_value
from prism.worlds.fields import state
from prism.worlds.guests import Guest
from prism.worlds.loop import Loop
from prism.worlds.world import World


class Soloist(Guest[Any]):
    """The agent of a run of its own, which takes a turn or a cycle in each round."""

    async def act(self, world: Any) -> None:
        """Take a round."""
        world.outcomes.append(await self.object.take_round())


class Alone(World[Any]):
    """The world of a single agent.

    Attributes:
        agent: The agent, which says what a round is, when the run is over, and what its results
            are.
        outcomes: What came of each round so far.
    """

    agent: Any = None
    outcomes: list[Any] = state(list)

    def populate(self, agents: int) -> list[Soloist]:  # noqa: ARG002 - there is one
        """Let the agent take part."""
        return [Soloist(object=self.agent)]

    def tick_ends(self) -> None:
        """End the run if the agent says so."""
        if self.agent.stopped is not None:
            self.stop(self.agent.stopped)


class AloneLoop(Loop):
    """Runs a single agent, a turn or a cycle a round."""

    async def arun(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run all rounds, and close the agent."""
        with closing(self.world.agent):
            return await super().arun(on_round)

    async def _round(self, number: int) -> Any:
        await super()._round(number)
        return self.world.outcomes[-1]

    def _results(self) -> Any:
        return self.world.agent.results(self.finished)

    def _about_world(self) -> dict[str, Any]:
        return {}


class AloneRun(Run[Any]):
    """A run of a single agent whose model only writes, made by `Run` for the agent's file.

    Args:
        world: The file that the agent is read from.
        options: The model that writes, and the arguments in ``takes``.

    Attributes:
        takes: The arguments that ``run.json`` keeps besides the file, and their defaults.
        file: The file that the agent is read from.
        agent_id: Name of the agent.

    Raises:
        InputError: If an argument is missing or out of range, or JSON cannot hold a value.
    """

    takes: ClassVar[Mapping[str, Any]] = {"rounds": None, "agent_id": "agent", "seed": 0}

    is_alone = True
    _unasked = "nobody"

    file: Path
    agent_id: str

    def _take(self, world: Any, **named: Any) -> None:
        vars(self).update(named)
        self.file = Path(world) if isinstance(world, str) else world
        self._check()
        super()._take(Alone, **{**Run.takes, "agents": 1, "rounds": self.rounds, "seed": self.seed})

    def _check(self) -> None:
        """Refuse values that JSON cannot hold, and arguments that do not fit together."""

    def __repr__(self) -> str:
        """Show the file."""
        return f"<Run of {self.file}, seed {self.seed}>"

    def _to_plain(self) -> dict[str, Any]:
        named = {"agent": self.file, **{name: getattr(self, name) for name in self.takes}}
        return {name: plain_value(each) for name, each in named.items()}

    @classmethod
    def _from_plain(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        return {"world": config["agent"], **{name: config[name] for name in cls.takes}}

    def _inputs(self) -> Sequence[Path]:
        """Return the files that the run only reads."""
        return [self.file]

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is only read, by its name."""
        return {str(file): digest(file) for file in self._inputs()}
