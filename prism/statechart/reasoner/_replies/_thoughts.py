"""What a reply says, without what its model thought before."""

from __future__ import annotations

import re

_MOST_TAGS = 1_000

_NAMES = ("think", "thought", "reasoning", "reflection", "scratchpad")
_TAG = re.compile(
    r"""[<\[◁] \|?+ (?P<end>/|end_(?:of_)?)?+ (?:(?:begin|start)_(?:of_)?)?+ (?:seed:)?+
        (?:think|thinking|thoughts?|reasoning|reflection|scratchpad) \s{0,3}\|?[>\]▷]
    """,
    re.VERBOSE | re.IGNORECASE,
)
_DONE_THINKING = "...done thinking."

_CHANNEL = "<|channel|>"
_FINAL_MESSAGE = re.compile(r"\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call|start)\|>")
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|eot_id|endoftext|end_of_text|end_of_turn|end|return)\|>|</s>|<end_of_turn>"
)


def what_is_said(reply: str) -> str:
    """Return the model's own turn without its thoughts.

    Thoughts stand between tags of the kinds in use, or in another channel than the final one. A
    model that goes on after the end of its turn writes the turns of others.
    """
    after_channels = _final_channel(reply)
    said = without_thoughts(after_channels.rpartition(_DONE_THINKING)[2])
    turns = (turn for turn in _END_OF_TURN.split(said) if turn.strip())
    return next(turns, "")


def without_thoughts(text: str) -> str:
    """Drop everything between tags of thoughts."""
    lowered = text.lower()
    if not any(name in lowered for name in _NAMES):
        return text

    # what precedes a lone end tag, or follows a lone start tag, is a thought, too
    said: list[str] = []
    position, is_thinking = 0, False
    for number, tag in enumerate(_TAG.finditer(text)):
        if number == _MOST_TAGS:
            return ""  # nobody thinks so often: the model repeats itself without end

        if tag["end"] is None:
            if not is_thinking:
                said.append(text[position : tag.start()])
            is_thinking = True
        else:
            if not is_thinking:
                said.clear()
            is_thinking, position = False, tag.end()

    return "".join(said) if is_thinking else "".join((*said, text[position:]))


def _final_channel(text: str) -> str:
    """Return what a model of the gpt-oss family says in its final channel; all, if it has none."""
    if _CHANNEL in text:
        finals = (
            _END_OF_MESSAGE.split(part[start.end() :], maxsplit=1)[0]
            for part in text.split(_CHANNEL)
            if (start := _FINAL_MESSAGE.match(part))
        )
        return "".join(finals)

    # servers that drop special tokens leave the names of role and channel
    if text.lstrip().startswith("analysis"):
        return text.rpartition("assistantfinal")[2]

    return text
