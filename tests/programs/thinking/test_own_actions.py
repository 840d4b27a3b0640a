"""Actions that an application gives its agents: offered, checked, carried out, and logged."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import Field

from prism.errors import DefinitionError
from prism.programs.thinking import (
    ActionRefusedError,
    ActionResult,
    CognitiveAgent,
    Config,
    Memory,
    action,
)
from prism.testing import ScriptedWriter
from tests.kit.cognition import thinker, thought


class Smith(CognitiveAgent):
    """An agent that forges."""

    @action
    def forge(self, what: Literal["nail", "sword"], number: int = 1) -> str:
        """Forge something of iron."""
        if what == "sword" and number > 1:
            raise ActionRefusedError("there is iron for one sword only")
        return f"{number} {what}"


def smith(writer: ScriptedWriter, **settings: Any) -> Smith:
    """Return an agent that is executing."""
    return Smith(Config(), Memory.in_memory({"state": "executing"}), writer, **settings)


def forging(**fields: Any) -> str:
    """Return a reply that asks for it, as XML."""
    told = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return f"<agent><action><type>forge</type>{told}</action></agent>"


async def test_an_own_action_is_carried_out(logger: Any, capture: Any) -> None:
    """Its fields have the types of the annotations, and what it returns is told and logged."""
    writer = ScriptedWriter([forging(what="nail", number="3"), thought("on")])
    agent = smith(writer, logger=logger)
    cycle, _ = await agent.run(2)
    assert cycle.action == ActionResult("forge", "", answer="3 nail")
    assert "forge: done. 3 nail" in writer.calls[1].prompt
    (event,) = [e for e in capture.entries if e["event"] == "cognition.action"]
    assert (event["type"], event["fields"], event["answer"]) == (
        "forge", {"what": "nail", "number": "3"}, "3 nail",
    )  # fmt: skip
    moved = [e for e in capture.entries if e["event"] == "statechart.transition"]
    assert (moved[0]["trigger"], moved[0]["context"]["action"]) == ("acted", "forge")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "the action lacks what"),
        ({"what": "plough"}, "what must be one of nail, sword, got 'plough'"),
        ({"what": "nail", "number": "many"}, "number must be a whole number, got 'many'"),
        ({"what": "nail", "colour": "red"}, "forge has no field 'colour'; it has what, number"),
        ({"what": "..."}, "the reply repeats the example of the prompt"),
        ({"what": "sword", "number": 2}, "there is iron for one sword only"),
    ],
)
async def test_an_own_action_is_refused(fields: dict[str, Any], reason: str) -> None:
    """A field that is wrong, or the action itself, refuses; the next prompt says why."""
    writer = ScriptedWriter([forging(**fields), thought("on")])
    cycle, _ = await smith(writer).run(2)
    assert (cycle.outcome, cycle.next_state) == ("refused", "thinking")
    assert cycle.reason is not None
    assert cycle.reason.startswith(reason)
    assert reason.partition("'")[0] in writer.calls[1].prompt


async def test_own_actions_are_offered() -> None:
    """The prompt of executing says what each does, which fields it has, and shows the first."""
    writer = ScriptedWriter([forging(what="nail")])
    await smith(writer).cycle()
    (call,) = writer.calls
    told = "forge: Forge something of iron. Fields: what: one of nail, sword, number (optional): "
    assert told in call.prompt
    shown = "<type>forge</type>\n<what>...</what>\n<number>...</number>"
    assert f"<action>\n{shown}\n</action>" in call.prompt
    assert 'JSON: {"action": {"type": "forge", "what": "...", "number": "..."}}' in call.prompt
    assert call.schema is not None
    parts = call.schema["properties"]["agent"]["properties"]["action"]["properties"]
    assert parts["what"]["enum"] == ["nail", "sword"]
    assert "forge" in parts["type"]["enum"]


async def test_the_example_is_not_an_action_that_was_just_refused() -> None:
    """After a refusal the prompt shows another own action, and the first one after that is done."""

    def sleep(agent: CognitiveAgent) -> str:
        """Sleep for a while."""
        return f"{agent.agent_id} sleeps"

    acted = [forging(what="plough"), "<agent><action><type>sleep</type></action></agent>"]
    reply = thought("on", next_state="executing")
    writer = ScriptedWriter([acted[0], reply, acted[1], reply, acted[1]])
    await smith(writer, actions=[sleep]).run(5)
    shown = [call.prompt.partition("<action>\n<type>")[2][:5] for call in writer.calls]
    assert shown == ["forge", "", "sleep", "", "forge"]


async def test_functions_are_actions_too() -> None:
    """A function takes the agent first; one field may stand in any place of the reply."""

    def greet(agent: CognitiveAgent, whom: str) -> str:
        """Greet somebody."""
        return f"{agent.agent_id} greets {whom}"

    for reply in ("<whom>Ann</whom>", "<value>Ann</value>", "<tags>Ann</tags>"):
        text = f"<agent><action><type>greet</type>{reply}</action></agent>"
        cycle = await thinker([text], {"state": "executing"}, actions=[greet]).cycle()
        assert cycle.action is not None
        assert cycle.action.answer == "agent greets Ann"


class Colour(StrEnum):
    """What can be painted with."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place on the wall."""

    x: int
    y: int


def paint(
    agent: CognitiveAgent,
    tags: list[str],
    second: Colour | None = None,
    path: list[Point] | None = None,
    coats: Annotated[int, Field(ge=1)] = 1,
) -> str:
    """Paint a wall."""
    return f"{tags} {second} {path} {coats}"


def hang(agent: CognitiveAgent, path: str) -> str:
    """Hang a picture."""
    return f"{agent.agent_id} hangs {path}"


async def test_fields_may_have_types_of_the_application() -> None:
    """Enums, dataclasses and bounds are told, checked, and in a schema that holds by itself."""
    path = '"path": [{"x": 1, "y": "2"}]'
    asked = f'{{"action": {{"type": "paint", "tags": ["a"], "second": "blue", {path}}}}}'
    on = thought("on", next_state="executing")
    writer = ScriptedWriter([asked, on, asked.replace("blue", "green"), on,
                             asked.replace('"path"', '"coats": 0, "path"')])  # fmt: skip
    agent = thinker(writer, {"state": "executing"}, actions=[paint, hang])
    done, _, green, _, uncoated = await agent.run(5)
    assert done.action == ActionResult("paint", "a", answer="['a'] blue [Point(x=1, y=2)] 1")
    assert str(green.reason).startswith("second must be one of red, blue or null, got 'green'")
    assert str(uncoated.reason).startswith("coats must be a whole number, got 0")
    told = "tags: a list, second (optional): one of red, blue or null, path (optional): a list or"
    assert told in writer.calls[0].prompt

    check = jsonschema.Draft202012Validator(writer.calls[0].schema or {})
    for path, is_right in (([{"x": 1, "y": 2}], True), ("the hall", True), ([{"x": "1"}], False)):
        assert check.is_valid({"agent": {"action": {"type": "hang", "path": path}}}) == is_right


async def test_fields_may_stand_in_the_value() -> None:
    """The fields of an action are read from an object that stands in the place of its value."""
    asked = "<agent><action><type>forge</type><value>{}</value></action></agent>"
    writer = ScriptedWriter([asked.format('{"what": "nail", "number": 2}')])
    cycle = await smith(writer).cycle()
    assert cycle.action == ActionResult("forge", "", answer="2 nail")


async def test_an_action_in_a_world_needs_one() -> None:
    """Outside of a world, an action that takes one is refused."""

    def vote(agent: CognitiveAgent, world: "Nowhere", what: str) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Vote for something."""

    text = "<agent><action><type>vote</type><what>it</what></action></agent>"
    cycle = await thinker([text], {"state": "executing"}, actions=[vote]).cycle()
    assert (cycle.outcome, cycle.reason) == ("refused", "the agent is in no world")


def test_a_field_that_no_reply_can_give_is_refused() -> None:
    """A field whose type is unknown, or no data, is refused when the action is made."""

    def call(agent: Any, whom: Callable[[], int]) -> None: ...

    def give(agent: Any, what: Smith) -> None: ...

    def lend(agent: Any, what: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def mix(agent: Any, what: "Colour.GREEN") -> None: ...  # type: ignore[name-defined]

    for function, why in (
        (call, "Callable.*, which no reply could give: use text"),
        (give, "Smith, which no reply could give: use text"),
        (mix, "Colour.GREEN, which is not found"),
        (lend, "Nowhere, which is not found: define or import it in the module, above the action"),
    ):
        name = function.__name__
        with pytest.raises(DefinitionError, match=f"of the action '{name}' has the type {why}"):
            action(function)


def test_two_actions_of_one_name_are_refused() -> None:
    """Of two functions with one name, a reply could not say which it asks for."""
    with pytest.raises(DefinitionError, match="two actions 'hang': rename one"):
        thinker(actions=[hang, hang])


def test_what_can_be_no_action_is_refused() -> None:
    """A name of the memory's, an async function, fields without a name, one called type."""

    def storage_load(agent: Any) -> None: ...

    async def slow(agent: Any) -> None: ...

    def many(agent: Any, *things: str) -> None: ...

    def typed(agent: Any, type: str) -> None: ...  # noqa: A002

    for function in (storage_load, slow, many, typed):
        with pytest.raises(DefinitionError, match=function.__name__):
            thinker(actions=[function])
