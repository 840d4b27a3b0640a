"""What holds for every text, and for every reply that is well-formed."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.programs.thinking._replies import AgentReply, AskedAction, read_reply
from tests.kit.agent_replies import HOSTILE, RENDERINGS, Rendering, as_json, replies, texts
from tests.kit.texts import ANY

PIECES = (
    *("<agent>", "</agent>", "<action>", "</action>", "<value>", "</value>", "<type>", "</type>"),
    *("<next_state>", "</next_state>", "<tags a='", "<value/>", "</think>", "<think>", "<!--"),
    *(
        "-->",
        "<![CDATA[",
        "]]>",
        "&lt;agent&gt;",
        '{"action":',
        '{"agent":{',
        "}}",
        '"',
        "storage_save",
    ),
    *("<|im_end|>", "<|channel|>final<|message|>", "<!DOCTYPE a [", "&#xD800;", "\ud800", "\0"),
)


def assert_sound(text: str) -> None:
    """Assert that a text is read, to something that can be kept."""
    reply = read_reply(text)
    assert isinstance(reply, AgentReply)
    assert reply.next_state is None or reply.next_state.strip()
    assert reply.thinking_log is None or reply.thinking_log.strip()
    assert isinstance(reply.is_truncated, bool)
    assert all(isinstance(defect, str) for defect in reply.defects)

    if reply.action is not None:
        assert isinstance(reply.action, AskedAction)
        assert "_".join(reply.action.tags.split()) == reply.action.tags
        assert reply.action.value is None or isinstance(reply.action.value, str)
        for kept in (reply.action.type, reply.action.tags, reply.action.value or ""):
            kept.encode()
            assert "\0" not in kept


@given(st.text(st.characters()) | st.binary().map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_is_read(text: str) -> None:
    """No text raises, and what it gives has the right types."""
    assert_sound(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    """No bytes raise, however they were decoded."""
    assert_sound(data.decode("utf-8", "surrogateescape"))
    assert_sound(data.decode("latin-1"))
    assert_sound(data.decode("utf-16", "replace"))


@given(st.lists(st.sampled_from(PIECES) | st.text(ANY, max_size=3), max_size=30).map("".join))
def test_any_heap_of_pieces_is_read(text: str) -> None:
    """No order of tags, quotes and braces raises."""
    assert_sound(text)


@given(replies(), st.sampled_from(RENDERINGS), st.data())
def test_any_damaged_reply_is_read(
    reply: AgentReply, render: Rendering, data: st.DataObject
) -> None:
    """A well-formed reply with parts cut out, doubled or put in does not raise."""
    text = data.draw(st.sampled_from([render(reply), as_json(reply)]))
    for _ in range(data.draw(st.integers(1, 4))):
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        put_in = data.draw(st.sampled_from(PIECES) | st.just(text[start:end] * 2) | st.just(""))
        text = text[:start] + put_in + text[end:]

    assert_sound(text)


@given(replies(), st.sampled_from(RENDERINGS))
def test_a_reply_in_xml_is_read_as_it_was_written(reply: AgentReply, render: Rendering) -> None:
    """A well-formed reply gives what was written, sign by sign, and without a defect."""
    assert read_reply(render(reply)) == reply


@given(replies(), st.sampled_from([None, 2]), st.booleans())
def test_a_reply_in_json_is_read_as_it_was_written(
    reply: AgentReply, indent: int | None, is_ascii: bool
) -> None:
    """A reply in JSON gives what was written, sign by sign, and without a defect."""
    assert read_reply(as_json(reply, indent=indent, ensure_ascii=is_ascii)) == reply


@given(replies(), st.sampled_from(RENDERINGS))
def test_no_beginning_of_a_reply_is_carried_out(reply: AgentReply, render: Rendering) -> None:
    """Wherever a reply is cut off, its action is flagged."""
    for text in (render(reply), as_json(reply), as_json(reply, indent=1)):
        for end in range(len(text)):
            cut = read_reply(text[:end])
            assert cut.action is None or cut.is_truncated, text[:end]


@given(texts(), st.sampled_from(RENDERINGS))
def test_values_are_what_a_strict_parser_reads(value: str, render: Rendering) -> None:
    """In well-formed XML a value is what the standard library's parser finds in it."""
    text = render(AgentReply(action=AskedAction("storage_save", "a", value)))
    strict = ElementTree.fromstring(text).findtext(".//value") or ""

    action = read_reply(text).action
    assert action is not None
    assert action.value is not None
    assert action.value == strict


@pytest.mark.parametrize("family", HOSTILE)
@pytest.mark.sampled(24)
def test_hostile_replies_are_read(family: str) -> None:
    """The longest replies that are made to be slow give something sound, too."""
    assert_sound(HOSTILE[family])
