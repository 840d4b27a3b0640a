"""Replies as models write them: each does what it says, or nothing."""

import asyncio
import json
from collections.abc import Callable, Mapping
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

TYPES = ("working_memory_add", "working_memory_remove", "storage_load", "storage_save")


def texts(max_size: int = 40) -> st.SearchStrategy[str]:
    """Return texts of any signs that XML can hold, and of markup.

    Not of a whole reply with a CDATA section in it: where those end cannot be told.
    """
    signs = st.characters(
        exclude_categories=("Cs", "Cc"),
        exclude_characters="\ufffe\uffff",
        include_characters="\t\n",
    )
    markup = st.sampled_from(
        [
            *("<b>", "</b>", "&", "&amp;", "<", "]]>", "<![CDATA[", "<!--", "{", '"'),
            *("<agent>", "</agent>", "</value>", "<value>", "</action>", "<type>", "</think>"),
        ]
    )
    drawn = st.lists(signs | markup, max_size=max_size).map("".join)

    return drawn.filter(lambda text: not ("<agent" in text and "<![CDATA[" in text))


REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "next_state": st.sampled_from(["thinking", "executing", "paging"]),
        "thinking_log": texts().map(str.strip).filter(bool),
        "action": st.fixed_dictionaries(
            {"type": st.sampled_from(TYPES), "tags": texts(8).map(str.split).map("_".join)},
            optional={"value": texts()},
        ),
    },
)
"""What well-formed replies may say."""


def as_xml(parts: Mapping[str, Any], write: Callable[[str], str], between: str = "") -> str:
    """Write the parts of an element, each as an element of its own."""
    elements = [
        f"<{name}>{write(part) if isinstance(part, str) else as_xml(part, write, between)}</{name}>"
        for name, part in parts.items()
    ]
    return between.join(["", *elements, ""])


def in_cdata(text: str) -> str:
    """Write a text as CDATA sections, of which none holds the end of one."""
    return "".join(f"<![CDATA[{part}]]>" for part in text.replace("]]>", "]]\0>").split("\0"))


def renderings(reply: Mapping[str, Any]) -> list[str]:
    """Write a reply as XML in several ways, and as JSON."""
    turned = dict(reversed(reply.items()))
    quoted = {'"': "&quot;", "'": "&#39;"}
    return [
        as_xml({"agent": reply}, escape),
        as_xml({"agent": turned}, lambda text: escape(text, quoted), "\n  "),
        as_xml({"agent": reply}, in_cdata, "\n"),
        json.dumps({"agent": reply}),
    ]


def repeated(text: str, before: str = "", after: str = "") -> str:
    """Return a text of the greatest length that repeats another between two."""
    length = LONGEST - len(before) - len(after)
    return before + (text * (length // len(text) + 1))[:length] + after


_VALUE = (
    "<agent><action><type>storage_save</type><tags>a</tags><value>",
    "</value></action></agent>",
)

HOSTILE = {
    **{
        text: repeated(text)
        for text in (
            *("<", "&", "{", '"', "\\", " ", "\0", "\ud800", "&amp;", "<agent>", "<agent></agent>"),
            *("<agent a='\"' b=\"'\">", "<think>", "</think>", "<![CDATA[", "<!--", "<!DOCTYPE["),
            *(
                "<|im_end|>",
                "[INST]",
                "<<SYS>>",
                '{"a":[{',
                '{"action":{}}',
                '{"action":"}',
                "<value ",
            ),
        )
    },
    "elements not closed": repeated("<type>x<tags>y<value>z", "<agent>"),
    "CDATA not closed in a value": repeated("<![CDATA[", _VALUE[0], "]]>" + _VALUE[1]),
    "references in a value": repeated("&#65;", *_VALUE),
    "blanks behind a type": repeated(" ", "<agent><action><abc>", "x</action></agent>"),
    "entities": repeated('<!ENTITY a "&b;&b;">', "<!DOCTYPE a [", "]><agent></agent>"),
    "attributes": repeated('a="b" ', "<agent ", ">"),
    "a word of a state": repeated("a-", "<agent><next_state>", "</next_state></agent>"),
    "tags with blanks": repeated("a ", "<agent><action><tags>", "</tags></action></agent>"),
    "escapes in JSON": repeated('\\"', '{"action":"'),
    "digits in JSON": repeated("9", '{"action":', "}"),
    "keys in JSON": '{"agent":{' + ",".join(f'"k{n}":1' for n in range(15_000)) + "}}",
    "lists in JSON": repeated("[", '{"action":{"type":"a","tags":"b","value":'),
}
"""Replies of which each is as long as can be, and made to be slow or large to read."""


CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "agent_replies.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
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
        f"[INST]{WHOLE}</agent>[/INST]",
        f"<agent><next_state>thinking</next_state></agent>{WHOLE}</agent>",
        json.dumps({"action": SAVE}),
        f"Here: {json.dumps({'agent': {'action': SAVE}})}",
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
        json.dumps({"action": SAVE})[:-2],
        json.dumps({"action": SAVE}) * 2,
        '{"action": {"type": "storage_save", "tags": "a", "tags": "b", "value": "v"}}',
        f"{WHOLE}</agent>".replace("v<", "x <b>y</b><"),
        f"{WHOLE}</agent>".replace("v<", "a < b<"),
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


@given(said=REPLIES)
async def test_a_well_formed_reply_is_read_as_it_was_meant(said: Any) -> None:
    """Whatever texts hold: written as XML in several ways, or as JSON, it does the same."""
    *found, of_json = [await deed(reply) for reply in renderings(said)]
    assert of_json in [*found, {}]
    assert all(each in (found[0], {}) for each in found)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sampled(12)
async def test_no_reply_takes_long(name: str) -> None:
    """Two hundred thousand characters of one kind neither hang nor raise."""
    await deed(HOSTILE[name])


PLACEHOLDERS = ["...", " \u2026 ", "<tags>", "{value}", "[your value]", "val", "Value_2", "string"]
PLACEHOLDERS += ["empty", "tags_tags_list", "tag1 tag2", "your text here", "action", "thoughts"]
CONTENT = ["tagged", "value of gold", "tea", "none", "name", "list", "type of tea", "2", "1:2"]


@pytest.mark.parametrize("text", [*PLACEHOLDERS, *CONTENT])
@pytest.mark.parametrize("part", ["tags", "value", "thinking_log"])
async def test_no_placeholder_becomes_content(part: str, text: str) -> None:
    """What only names a part of the form is refused, quoted, and told; all else is kept."""
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
        assert f"cannot be used: {part} is only the placeholder " in prompts_of(writer)[1]


async def test_a_value_that_only_repeats_its_tags_is_no_content() -> None:
    """It would take the place of what is known."""
    assert await deed(action("storage_save", "alice", "Alice")) == {}


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("state", ["thinking", "executing"])
async def test_a_reply_that_is_not_read_is_asked_about_again(state: str, is_json: bool) -> None:
    """Once, with what was wrong and the reply; no schema follows the form that was shown."""
    better = thought("tea") if state == "thinking" else action("storage_save", "a", "v")
    client = Client(["I would rather not.", better])
    with FakeOllama(write=lambda prompt, *_: asyncio.run(client.run(prompt))) as server:
        asked = Model("llama3.2", hosts=(server.url,)) if is_json else client
        agent = CognitiveAgent(Config(), Memory.in_memory({"state": state}), asked)
        assert (await agent.cycle()).outcome == "done"
    first, second = client.prompts
    assert second.startswith(first.rstrip())
    assert "there is no agent element and no object with its keys; the reply was" in second
    assert "'I would rather not.'" in second
    assert len(second) - len(first) < 400
    assert "Respond in the form that is shown above." in second
