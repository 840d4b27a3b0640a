"""Actions of an application: described by a signature, checked, and carried out."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import pytest

from prism.errors import DefinitionError
from prism.programs.thinking import ActionRefusedError, CognitiveAgent, Config, Memory, action
from tests.kit.cognition import thought
from tests.kit.writers import prompts_of, writer_of

Metal = StrEnum("Metal", ["IRON", "GOLD"])
"""What a smith works with."""


@dataclass
class Place:
    """A place on a map."""

    x: int
    y: int


class Smith(CognitiveAgent):
    """An agent with actions of its own."""

    @action
    def forge(
        self, what: Literal["nail", "sword"], number: int = 1, metal: Metal = Metal.IRON
    ) -> str:
        """Forge something.

        More of this is not told.
        """
        if number > 9:
            raise ActionRefusedError("there is not enough iron")
        return f"{number} {what} of {metal}"

    @action
    def go(self, place: Place, names: list[str] | None = None) -> str:
        """Go to a place."""
        return f"{place.x + place.y} {names}"

    @action
    def rest(self) -> None:
        """Rest."""

    @action
    def shout(self, words: str) -> str:
        """Shout."""
        return words.upper()


def xml(kind: str, **fields: str) -> str:
    """Return a reply that asks for an action."""
    parts = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items())
    return f"<agent><action><type>{kind}</type>{parts}</action></agent>"


def tool(kind: str, **fields: Any) -> str:
    """Return the call of a tool."""
    return json.dumps({"name": kind, "arguments": fields})


async def result_of(reply: str) -> tuple[str, str | None]:
    """Return what came of a reply: the outcome, and the answer or the reason."""
    agent = Smith(Config(), Memory.in_memory({"state": "executing"}), writer_of([reply]))
    done = (await agent.cycle()).action
    assert done is not None
    return done.outcome, done.answer or done.reason


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (xml("forge", what="nail"), "1 nail of iron"),
        (xml("forge", what="sword", number="2", metal="gold"), "2 sword of gold"),
        (xml("forge", what="nail", number=" ", value=""), "1 nail of iron"),
        (tool("go", place={"x": 1, "y": 2}, names=["a"]), "3 ['a']"),
        (xml("shout", value="hello"), "HELLO"),
        (tool("shout", words=7), "7"),
        (xml("rest"), None),
    ],
)
async def test_an_action_is_carried_out(reply: str, answer: str | None) -> None:
    """Fields by name, with their types; the only field may have the only text."""
    assert await result_of(reply) == ("done", answer)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (xml("forge"), "what: Field required"),
        (xml("forge", what="nail", colour="red"), "colour: Extra inputs are not permitted"),
        (xml("forge", what="nail", number="10"), "there is not enough iron"),
        (
            xml("forge", what="nail", number="ten"),
            "number: Input should be a valid integer, "
            "unable to parse string as an integer, got 'ten'",
        ),
        (xml("forged", what="nail"), "'forged' is no action that can be carried out"),
    ],
)
async def test_an_action_is_refused(reply: str, reason: str) -> None:
    """What is wrong is told to the model in its next prompt."""
    outcome, told = await result_of(reply)
    assert outcome == "refused"
    assert str(told).startswith(reason)
    writer = writer_of([reply, thought()])
    agent = Smith(Config(), Memory.in_memory({"state": "executing"}), writer)
    await agent.cycle()
    await agent.cycle()
    assert reason.split(":")[0] in prompts_of(writer)[1]


async def test_the_next_prompt_says_what_an_action_was_about() -> None:
    """Its fields beside its answer; what a server failed with is not the model's concern."""
    forged = xml("forge", what="nail", number="3")
    writer = writer_of([forged, OSError("http://key@10.0.0.1 is down"), thought()])
    agent = Smith(Config(), Memory.in_memory({"state": "executing"}), writer)
    await agent.run(3)
    told = 'forge {"what":"nail","number":"3"}: done. 3 nail of iron\n'
    assert all(told in prompt and "10.0.0.1" not in prompt for prompt in prompts_of(writer)[1:])


async def test_actions_are_described() -> None:
    """By the first line of the docstring, and the types of the fields, in both states."""
    writer = writer_of([thought("x", "executing"), xml("rest")])
    agent = Smith(Config(), Memory.in_memory(), writer)
    await agent.run(2)
    line = "forge: Forge something. Fields: what: one of nail, sword, number (optional): integer,"
    assert all(f"{line} metal (optional): one of iron, gold." in p for p in prompts_of(writer))
    schema: Any = writer.calls[1].schema
    forge = schema["properties"]["agent"]["properties"]["action"]["anyOf"][0]["properties"]
    assert (forge["type"]["const"], forge["number"]["type"]) == ("forge", "integer")
    assert {"Metal", "Place"} == schema["$defs"].keys()


async def late(agent: Any) -> None: ...
def many(agent: Any, *words: str) -> None: ...
def kind(agent: Any, type: str) -> None: ...  # noqa: A002 - what is refused
def unknown(agent: Any, what: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize("function", [late, many, kind, unknown])
def test_what_no_reply_could_ask_for_is_refused(function: Any) -> None:
    """Where the action is defined, with its name."""
    with pytest.raises(DefinitionError, match="the action"):
        action(function)
