"""A writer that writes from a script."""

import json
from typing import Any

import pytest

from prism.statechart import TextCall, Written
from prism.testing import ScriptedWriter, WriterMaker


def call(key: str = "1:see", agent: str = "ada", **changes: Any) -> TextCall:
    return TextCall(agent, key, f"Prompt of {key}.", **changes)


async def write(writer: ScriptedWriter, *calls: TextCall) -> list[Any]:
    return [written.text for written in await writer.write_many(calls)]


async def test_texts_come_in_order() -> None:
    """A list is written from front to back; what is no text is written as JSON."""
    writer = ScriptedWriter(["one", {"n": 2}])
    assert await write(writer, call(), call("2:act")) == ["one", '{"n": 2}']
    assert [asked.key for asked in writer.calls] == ["1:see", "2:act"]
    writer.assert_used_up()


@pytest.mark.parametrize("matcher", ["ada", "1:see", "see", lambda asked: "of 1" in asked.prompt])
async def test_rule_by_agent_key_step_or_predicate(matcher: Any) -> None:
    """A rule writes for calls by agent, key, the part behind its colon, or predicate."""
    writer = ScriptedWriter({"bo": ["no"], matcher: "yes"})
    assert await write(writer, call(), call()) == ["yes", "yes"]
    assert writer.left_over() == ["bo: no"]


async def test_first_rule_with_a_text_left_is_used() -> None:
    """Of several rules that fit the first with a text left is taken."""
    writer = ScriptedWriter({"ada": ["first"], "see": "then"})
    assert await write(writer, call(), call(), call(agent="bo")) == ["first", "then", "then"]


async def test_a_function_writes_every_text() -> None:
    """A function is asked for every text, and has nothing left over."""
    writer = ScriptedWriter(lambda asked: {"key": asked.key})
    assert json.loads((await write(writer, call()))[0]) == {"key": "1:see"}
    assert writer.left_over() == []


async def test_a_failure_may_be_scripted() -> None:
    """A whole answer is given as it is, such as a failure of the model."""
    gone = Written(None, "failed", reason="gone")
    assert await ScriptedWriter([gone]).answer([call()]) == [gone]
    assert await ScriptedWriter({"see": gone}).answer([call(), call()]) == [gone, gone]


async def test_a_text_of_no_use_is_asked_again() -> None:
    """Each text is what one request brings: the next is taken while the call may be asked again."""
    writer = ScriptedWriter(["x", "y", "[3]", "[4]"])
    (written,) = await writer.answer([call(read=json.loads, tries=4)])
    assert (written.value, written.source, writer.left_over()) == ([3], "script", ["[4]"])
    (failed,) = await ScriptedWriter(["x", "y"]).answer([call(read=json.loads, tries=2)])
    assert (failed.text, failed.source) == ("y", "failed")
    (once,) = await ScriptedWriter(["x", "[1]"]).answer([call(read=json.loads)])
    assert once.has_failed


async def test_an_unexpected_call_shows_the_prompt() -> None:
    """A call without a text fails with its key, its agent and its prompt, also when swallowed."""
    writer = ScriptedWriter({"see": ["one"]})
    await write(writer, call())
    with pytest.raises(AssertionError) as caught:
        await write(writer, call("2:see"))
    text = str(caught.value)
    assert "call 2, '2:see' of agent 'ada': the script has no text for it" in text
    assert "Prompt of 2:see." in text
    with pytest.raises(AssertionError, match="call 2, '2:see'"):
        writer.assert_used_up()


def test_unused_texts_fail() -> None:
    """Texts and rules that nothing was asked for are named, long ones by their beginning."""
    message = "after 0 calls the script has texts left over: one, {'n': 2}"
    with pytest.raises(AssertionError, match=message):
        ScriptedWriter(["one", {"n": 2}]).assert_used_up()

    def by_hand(asked: TextCall) -> bool:
        return True

    writer = ScriptedWriter({"ada": ["x"], "see": {"n": 1}, by_hand: "y" * 99})
    assert writer.left_over() == ["ada: x", "see: {'n': 1}", f"by_hand: {'y' * 57}..."]


async def test_maker_checks_all_it_made() -> None:
    """A maker checks every writer it has made."""
    make = WriterMaker()
    await write(make(["one"]), call())
    make.assert_used_up()
    make(["two"])
    with pytest.raises(AssertionError, match="left over: two"):
        make.assert_used_up()


@pytest.mark.parametrize(
    ("script", "mend"),
    [
        ("one", r"write \['one'\]"),
        (3, r"write \[3\]"),
        (Written("x", "script"), r"write \[Written\("),
        ({"one"}, r"write list\(\.\.\.\) of it"),
    ],
)
def test_script_must_be_a_list_rules_or_a_function(script: Any, mend: str) -> None:
    """What is none of these is refused, with the list to write instead."""
    with pytest.raises(TypeError, match="a list of texts, a mapping of rules or a fun.*" + mend):
        ScriptedWriter(script)


async def test_the_fixture_makes_a_writer(scripted_writer: WriterMaker) -> None:
    """The fixture of the plugin is a maker, whose writers are checked when the test has ended."""
    assert await write(scripted_writer(["one"]), call()) == ["one"]
