"""What the words around an answer make of it: whether it is ruled out, quoted or taken back."""

from __future__ import annotations

import re

# the part of a sentence that counts begins here: what precedes is its reason, or a contrast
_TURN = re.compile(r",\s*(?:but|so|thus|therefore|hence|then|I|we|my)\b", re.IGNORECASE)

_REPLYING = (
    r"choos\w*|chosen|pick\w*|select\w*|go(?:ing)?\s+(?:with|for)|say\w*|answer\w*|respon[ds]\w*|"
    r"repl(?:y|ies)\w*|return\w*|output\w*|recommend\w*"
)
_RULED_OUT = re.compile(
    rf"""(?:\b(?:not|never|cannot|no)|n't)\b (?:\s+\w+){{0,4}}? \s+ (?:{_REPLYING})\b
       | (?:\b(?:not|never)|n't) \s+ (?:this|that|be|do|use|want|take) [^\w.!?]*$
       | \b(?:not|never|instead\s+of|rather\s+than|other\s+than|anything\s+but|except|unlike|avoid
            |avoiding|reject\w*|rul\w+\s+out|dismiss\w*|against|neither|nor)\b [^\w.!?]*$
       | \b(?:mistake|wrong|incorrect|invalid|bad|refus\w*|no\s+(?:circumstances|way|case)|forbid\w*
            |forbidden|mustn't|unacceptable)\b
       | \b(?:earlier|previously|formerly|yesterday|last\s+time|used\s+to)\b
       | \b(?:possible|(?:options?|choices|answers)\s+(?:are|include\w*))\b | [❌✗✘🚫⛔]
       | \bif\b .* \bwould\b
       | ^\W*(?: if\b (?!\s+I\b) .* \b(?:were|had)\b | had\b (?!\s+I\b) .* \bbeen\b )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""^\W*(?:(?:and|but|while|since|the|this|that|his|her|their|original|quoted)\s+)*
          (?:post|tweet|message|comment|thread|author|prompt|example|instructions?)\b
          (?: [^.!?\n]{0,60}\b(?:contain\w*|includ\w*|reads?|was|is|has|had|quot\w+) | 's\s+\w+
            | \s+(?:json|text|content|body) )?
          (?:\s+(?:was|is))? [^\w.!?]*$
       | (?<!\bI\ )\b(?:says|said|wrote|writes|written|posted|tweeted|commented|typed|asked|asks
            |told|tells|claims|claimed|answered|replied|responded|quot\w+)\b
       | \b(?:for\s+(?:example|instance)|e\.g|such\s+as|example)\b \.? [^\w.!?]*$
       | ^\W*(?:(?:the|a|required|expected|valid|output|response|reply|answer|json)\s+){0,4}
          (?:format|schema|syntax|template)
          (?:\s+(?:is|was|looks?\s+like|(?:should|must|has\s+to)\s+be))? [^\w.!?]*$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"""\balternative(?:ly)?\b | \bon\s+second\s+thoughts?\b | \bscratch\s+that\b | \bnever\s?mind\b
      | \bno,?\s+wait\b | \bwait,?\s+no\b | \bkidding\b | \bchanged\s+my\s+mind\b
      | \btake\s+(?:that|it)\s+back\b | \bcorrection\b | \bmy\s+mistake\b | \bI\s+meant?\b
      | \bsorry\b | \bapologi[ez]\w*\b
      | \b(?:strike|scrap|discard|disregard|cancel|belay|opposite)\b | [❌✗✘🚫⛔]
      | \b(?:ignore|forget)\s+(?:that|it|this|the\s+above)\b
      | \b(?:that|this|it|which|answer|choice)(?:'s|\s+is|\s+was|\s+would(?:\s+be)?)\s+
          (?:wrong|incorrect|a\s+mistake|not\s+(?:be\s+)?(?:right|correct|my|the|what))\b
      | (?:^|[.!?\n])\W{0,9}(?:no,|wait\b|actually\b|hmm\b|or\b|unless\b|maybe\b|perhaps\b|rather,)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# a sentence that goes on behind an answer may make anything of it: few ways to go on are harmless
_GOES_ON = re.compile(r"(?:</?\w+>|[^\w\n.!?<])*([^\W\d_])")
_AGREES = re.compile(
    r"""[^\w\n]*(?:because|since|as|for|given|fits|matches|suits|makes\s+sense|thanks|please|here|now
          |(?:it\s+)?(?:is|seems|feels|would\s+be)\s+(?:clearly\s+)?(?:the\s+|my\s+)?
            (?:best|right|correct|answer|choice|decision|most|natural|next|fitting|what\s+I))\b
          (?![^.!?\n]*(?:\bnot\b|n't\b|\bnever\b|\bno\b))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_QUALIFIED = re.compile(
    r"""[^\w\n?]*\?
      | [^\w\n]*(?:or|and/or|unless|maybe|perhaps|if|not|no|but|don't|do\s+not|was|wasn't)\b
      | [^\w\n]*(?:is|would\s+be|seems|sounds|looks|isn't)\b[^.!?\n]*?
          (?:\bnot\b|n't\b|\bwrong\b|\bincorrect\b|\bnever\b|\bmistake\b|\bbad\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"\b(?:wait|actually|on second thoughts?|scratch that|correction|correct(?:ed)? answer|"
    r"final(?:ly)?|but this|but choose|changed my mind)\b",
    re.IGNORECASE,
)
_OFFERED = re.compile(
    r"\b(?:alternative(?:ly)?|or|otherwise|maybe|perhaps|either|if|unless|could|might|post|tweet|"
    r"message|example|also|said|says|wrote)\b",
    re.IGNORECASE,
)
_PREFERRED = re.compile(
    r"\b(?:or|better|instead(?! of)|also|equally|as well|too|should be|must be|likely|unless)\b",
    re.IGNORECASE,
)

_PASSES_OVER = re.compile(
    r"\b(?:than|instead of|over|not|never|no|nothing|without|cannot|if|would|might|could|though|"
    r"although|before|was|were)\b|n't\b",
    re.IGNORECASE,
)

_SENTENCE_END = re.compile(r"(?<!\be\.g)[.!?](?=\s|$)|\n")
_MOST_LEAD_CHARACTERS = 300
_MOST_SENTENCE_CHARACTERS = 380


def lead_of(before: str) -> str:
    """Return the part of a sentence that leads up to what follows it; empty if none does."""
    before = before[-_MOST_LEAD_CHARACTERS:].rstrip(" \t`*\"'")
    line = before.rstrip()
    # on a line of its own, only a colon connects what follows
    if line != before and not line.endswith(":"):
        return ""

    *_, last = _SENTENCE_END.split(line)
    turns = list(_TURN.finditer(last))

    return last[turns[-1].start() + 1 :] if turns else last


def is_ruled_out(lead: str) -> bool:
    """Return True if what follows is named as what is not chosen."""
    return bool(_RULED_OUT.search(lead))


def is_quoted(lead: str) -> bool:
    """Return True if what follows is somebody else's, or an example."""
    return bool(_QUOTED.search(lead))


def is_corrected(before: str) -> bool:
    """Return True if what follows replaces what was said before."""
    return bool(_CORRECTED.search(before)) and not _OFFERED.search(before)


def is_taken_back(after: str) -> bool:
    """Return True if words say that something before them does not hold."""
    return bool(_TAKEN_BACK.search(after))


def is_qualified(after: str) -> bool:
    """Return True if words right behind an answer put it in doubt, or deny it."""
    goes_on = _GOES_ON.match(after)
    if goes_on and goes_on[1].islower() and not _AGREES.match(after):
        return True

    return bool(_QUALIFIED.match(after))


def is_preferred(sentence: str) -> bool:
    """Return True if a sentence puts what it names beside an answer, or above it."""
    return bool(_PREFERRED.search(sentence)) or not _PASSES_OVER.search(sentence)


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the sentence around a part of a text begins and ends, with its last sign."""
    begin = max(0, start - _MOST_SENTENCE_CHARACTERS)
    for sign in _SENTENCE_END.finditer(text, begin, start):
        begin = sign.end()

    most = min(len(text), end + _MOST_SENTENCE_CHARACTERS)
    last = _SENTENCE_END.search(text, end, most)

    return begin, most if last is None else last.end()
