"""Replies as models write them: each does what it says, or nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.llm import Model
from prism.programs.thinking import CognitiveAgent, Config, Memory
from prism.testing import FakeOllama
from tests.kit.clients import Client
from tests.kit.cognition import action, thought
from tests.kit.writers import prompts_of, writer_of

LONGEST = 200_000
"""Characters of the longest reply that is read whole."""

SIGNS = st.characters(
    exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff", include_characters="\t\n"
)
MARKUP = ["<b>", "</b>", "&", "&amp;", "<", "]]>", "<![CDATA[", "<!--", "{", '"', "</think>"]
MARKUP += ["<agent>", "</agent>", "</value>", "<value>", "</action>", "<type>"]
TEXTS = st.lists(SIGNS | st.sampled_from(MARKUP), max_size=40).map("".join)


def in_cdata(text: str) -> str:
    """Write a text as CDATA sections, of which none holds the end of one."""
    return "".join(f"<![CDATA[{part}]]>" for part in text.replace("]]>", "]]\0>").split("\0"))


ONE_SIGN = ["<", "&", "{", '"', "\\", " ", "\0", "\ud800", "&amp;", "<value ", "<agent></agent>"]
ONE_SIGN += ["<agent>", "<think>", "</think>", "<![CDATA[", "<!--", "<!DOCTYPE[", "<|im_end|>"]
ONE_SIGN += ["[INST]", "<<SYS>>", '{"a":[{', '{"action":{}}', '{"action":"}', "<agent a='b' c=''>"]
VALUE = "<agent><action><type>storage_save</type><tags>a</tags><value>"
HOSTILE = [
    *(("", sign, "") for sign in ONE_SIGN),
    ("<agent>", "<type>x<tags>y<value>z", ""),
    (VALUE, "<![CDATA[", "]]></value></action></agent>"),
    (VALUE, "&#65;", "</value></action></agent>"),
    ("<agent><action><abc>", " ", "x</action></agent>"),
    ("<!DOCTYPE a [", '<!ENTITY a "&b;&b;">', "]><agent></agent>"),
    ("<agent ", 'a="b" ', ">"),
    ("<agent><next_state>", "a-", "</next_state></agent>"),
    ("<agent><action><tags>", "a ", "</tags></action></agent>"),
    ('{"action":"', '\\"', ""),
    ('{"action":', "9", "}"),
    ('{"agent":{', '"k":1,', "}}"),
    ('{"action":{"type":"a","tags":"b","value":', "[", ""),
]
"""What replies begin with, repeat, and end with, made to be slow or large to read."""


FILE = Path(__file__).parents[2] / "data" / "agent_replies.jsonl"
CORPUS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
SAVE = {"type": "storage_save", "tags": "a", "value": "v"}
WHOLE = "<agent><action><type>storage_save</type><tags>a</tags><value>v</value></action>"


async def deed(reply: str) -> dict[str, Any]:
    """Return what a reply changes while executing."""
    before = {"state": "executing", "working_memory": {"alice": "w"}, "storage": {"x": "y"}}
    agent = CognitiveAgent(Config(), Memory.in_memory(before), writer_of([reply]))
    await agent.cycle()
    return {
        name: value
        for name, value in agent.memory.to_dict().items()
        if name in ("working_memory", "storage") and value != before[name]
    }


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case["why"])
@pytest.mark.sampled(8)
async def test_no_reply_does_anything_else_than_it_says(case: dict[str, Any]) -> None:
    """Whatever stands around it, a reply changes what a careful reader would, or nothing."""
    done = await deed(case["reply"])
    if case["action"] is None:
        # an action is forgiven a missing end of the element around it
        assert not done or case["reply"].rstrip().endswith("</action>")
    elif done:
        kind, tags, value = case["action"][:3]
        assert done == await deed(action(kind, tags, value))


@pytest.mark.parametrize(
    "reply",
    [
        f"{WHOLE}</agent>",
        WHOLE,
        f"Sure.\n```xml\n{WHOLE}</agent>\n```",
        f"<think>{WHOLE}</think>{WHOLE}</agent>",
        f"<|im_start|>assistant\n{WHOLE}</agent><|im_end|>",
        f"<agent><next_state>thinking</next_state></agent>{WHOLE}</agent>",
        json.dumps({"action": SAVE}),
        json.dumps({"name": "storage_save", "arguments": {"tags": "a", "value": "v"}}),
        json.dumps([{"name": "action", "arguments": json.dumps(SAVE)}]),
    ],
)
async def test_what_is_read(reply: str) -> None:
    """An element, an object or a tool call, with words, fences and thoughts around it."""
    assert (await deed(reply))["storage"] == {"x": "y", "a": "v"}


@pytest.mark.parametrize(
    "reply",
    [
        WHOLE[:-9],
        WHOLE[: WHOLE.index("</value>")],
        json.dumps({"action": SAVE}) * 2,
        '{"action": {"type": "storage_save", "tags": "a", "tags": "b", "value": "v"}}',
        f"{WHOLE}</agent>".replace("v<", "x <b>y</b><"),
        f"{WHOLE}</agent>".replace("v<", "x<!-- y --><"),
        f"<agent><action><type>storage_save</type><tags>b</tags><value>Use {WHOLE}</agent> always",
        "<action><type>storage_save</type><tags>a</tags><value>v</value></action>",
        "storage_save a v",
    ],
)
async def test_what_is_refused(reply: str) -> None:
    """Cut off, twice, or with markup inside: the next prompt says what was wrong."""
    assert not await deed(reply)
    writer = writer_of([reply, thought()])
    agent = CognitiveAgent(Config(), Memory.in_memory({"state": "executing"}), writer)
    first = await agent.cycle()
    await agent.cycle()
    assert first.outcome == "refused"
    assert "refused" in prompts_of(writer)[-1]


async def test_an_ampersand_stands_for_itself() -> None:
    """Models do not escape it."""
    reply = WHOLE.replace("<value>v", "<value>Tom & Jerry &lt;3") + "</agent>"
    assert (await deed(reply))["storage"]["a"] == "Tom & Jerry <3"


@given(text=TEXTS.filter(lambda text: not ("<agent" in text and "<![CDATA[" in text)))
async def test_a_text_is_read_as_it_was_written(text: str) -> None:
    """Whatever it holds: escaped, in a CDATA section or in JSON it is the same, or refused.

    Where a section ends that holds an element and another section cannot be told.
    """
    escaped = await deed(action("storage_save", "a", text))
    in_section = await deed(action("storage_save", "a", "V").replace(">V<", f">{in_cdata(text)}<"))
    of_json = await deed(json.dumps({"action": {**SAVE, "value": text}}))
    assert escaped in ({"storage": {"x": "y", "a": text}}, {})
    assert in_section in (escaped, {})
    assert of_json in (escaped, {})


@pytest.mark.parametrize(("before", "repeated", "after"), HOSTILE)
@pytest.mark.sampled(9)
async def test_no_reply_takes_long(before: str, repeated: str, after: str) -> None:
    """As much as is read, two hundred thousand characters, neither hangs nor raises."""
    times = (LONGEST - len(before) - len(after)) // len(repeated)
    await deed(before + repeated * times + after)


PLACEHOLDERS = ["...", " \u2026 ", "<tags>", "{value}", "[your value]", "val", "Value_2", "string"]
PLACEHOLDERS += ["empty", "tags_tags_list", "tag1 tag2", "your text here", "action", "thoughts"]
PLACEHOLDERS += ["---", "???", "_ _ _", "\u2014!", "?", "Write words of your own there."]
CONTENT = ["tagged", "value of gold", "tea", "none", "name", "list", "type of tea", "2", "1:2"]
CONTENT += ["+", "\U0001f44d"]


@pytest.mark.parametrize("text", [*PLACEHOLDERS, *CONTENT])
@pytest.mark.parametrize("part", ["tags", "value", "thinking_log"])
async def test_no_placeholder_becomes_content(part: str, text: str) -> None:
    """What only names a part, or is only signs, is refused and told; all else is kept."""
    state, reply = "thinking", thought(text)
    if part != "thinking_log":
        fields = {"tags": "good", "value": "tea with milk", part: text}
        state = "executing"
        reply = action("storage_save", escape(fields["tags"]), fields["value"])
    writer = writer_of([reply, "no"])
    agent = CognitiveAgent(Config(), Memory.in_memory({"state": state}), writer)
    cycle = await agent.cycle()
    await agent.cycle()
    kept = [*agent.memory.storage, *agent.memory.storage.values(), *agent.memory.thoughts.values()]
    if text in CONTENT:
        assert text.replace(" ", "_" if part == "tags" else " ") in kept
    else:
        assert (cycle.outcome, kept) == ("unusable" if state == "thinking" else "refused", [])
        assert f"cannot be used: {part} is only a placeholder: " in prompts_of(writer)[1]


async def test_a_value_that_only_repeats_its_tags_is_no_content() -> None:
    """It would take the place of what is known."""
    assert await deed(action("storage_save", "alice", "Alice")) == {}


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("state", ["thinking", "executing"])
async def test_a_reply_that_is_not_read_is_asked_about_again(state: str, is_json: bool) -> None:
    """Once, with what was wrong; the reply is not shown, as it would be written again."""
    better = thought("tea") if state == "thinking" else action("storage_save", "a", "v")
    client = Client(["I would rather not.", better])
    with FakeOllama(write=lambda prompt, *_: asyncio.run(client.run(prompt))) as server:
        asked = Model("llama3.2", hosts=(server.url,)) if is_json else client
        agent = CognitiveAgent(Config(), Memory.in_memory({"state": state}), asked)
        assert (await agent.cycle()).outcome == "done"
    first, second = client.prompts
    assert ("XML" in first, '{"agent"' in first) == (not is_json, is_json)
    assert second.startswith(first.rstrip())
    assert "there is no agent element and no object with its keys" in second
    assert "I would rather not" not in second
    assert len(second) - len(first) < 400
    assert "Respond in the form that is shown above." in second
