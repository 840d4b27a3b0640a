"""Actions that an application gives its agents: offered, checked, carried out, and logged."""

from typing import Any, Literal

import pytest

from prism.cognition import (
    ActionRefusedError,
    ActionResult,
    CognitiveAgent,
    Config,
    Memory,
    action,
    cognitive_chart,
)
from prism.errors import DefinitionError
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


def test_each_own_action_is_a_row_of_the_chart() -> None:
    """A chart with own actions has a transition for each, as for those of the memory."""
    before, after = (len(cognitive_chart(names).transitions) for names in ((), ("forge",)))
    assert after == before + 1
    assert len(smith(ScriptedWriter([])).chart.transitions) == after


def test_what_can_be_no_action_is_refused() -> None:
    """A name of the memory's, an async function, fields without a name, one called type."""

    def storage_load(agent: Any) -> None: ...

    async def slow(agent: Any) -> None: ...

    def many(agent: Any, *things: str) -> None: ...

    def typed(agent: Any, type: str) -> None: ...  # noqa: A002

    for function in (storage_load, slow, many, typed):
        with pytest.raises(DefinitionError, match=function.__name__):
            thinker(actions=[function])
