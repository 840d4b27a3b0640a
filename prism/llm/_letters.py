"""Decision questions as conversations: options get letters, whose log-probabilities count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from string import ascii_uppercase
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner._model_client import ChatReply
from prism.reasoner._prompts import answer_schema
from prism.reasoner._replies._reading import read_choice

MOST_ALTERNATIVES = 20
"""Most log-probabilities that a server gives for a token."""

LEAST_MASS = 0.5
"""Least total probability of all options for using their probabilities. Below it, the model would
rather say something else, so its preference among the options means little."""

_KEY = "letter"

_NEVER = -10_000.0
"""A logarithm whose probability is 0, since JSON may contain one that no float can hold."""

_WRAPPING = " \t\n\"'`:{}▁Ġ"
"""Characters that may share a token with an option's letter, as in ``"B`` and ``B"`` in JSON.

The last two are how some servers show a space.
"""


@dataclass(frozen=True, slots=True)
class LetteredChoice:
    """A choice question whose options have letters, so that a single token reveals the choice.

    Several options may begin with the same token, such as ``engaging_like`` and ``engaging_reply``,
    so the probabilities of their own first tokens would not distinguish them.

    Args:
        prompt: The question with its options.
        letters: The options by their letters.
    """

    prompt: str
    letters: Mapping[str, str]

    @classmethod
    def of(cls, state: str, question: Mapping[str, Any]) -> LetteredChoice:
        """Assign letters to the options of a question in the wire format of ``/v1/systemone``.

        Raises:
            ValueError: If there are more options than log-probabilities that a server gives.
        """
        criteria: Mapping[str, Any] = question["criteria"]
        if len(criteria) > MOST_ALTERNATIVES:
            raise ValueError(
                f"{len(criteria)} options exceed the {MOST_ALTERNATIVES} for which a server "
                "gives log-probabilities: use chat mode"
            )

        letters = dict(zip(ascii_uppercase, criteria, strict=False))
        listed = "\n".join(
            f"{letter}: {criteria[option] or option}" for letter, option in letters.items()
        )
        # with "<letter>" in its place, or both name and meaning of an option, small models would
        # rather write the option's name: its letter had 2 to 26 % of the probability, and not 97 %
        prompt = (
            f"{state}\n\n{question['instructions']}\n\nOptions:\n{listed}\n\n"
            "Respond with JSON only, with the letter of one option:\n"
            f'{{"{_KEY}": "{_either(list(letters))}"}}\n'
        )

        return cls(prompt, letters)

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the reply."""
        return answer_schema(list(self.letters), key=_KEY)

    def read(self, reply: ChatReply) -> dict[str, Any]:
        """Return the option that a reply chooses, and the probability of every option.

        Returns:
            The ``choice``, the ``option_mass``, which is the total probability of all options, the
            ``probabilities``, and the highest as ``confidence``. The last two are left out or None
            if the mass is below a half or the choice is not among the most likely tokens, since the
            model would rather have said something else. Where the reply names the option itself, or
            comes without log-probabilities, the mass is None, too.

        Raises:
            ValueError: If it chooses none, or its tokens do not contain the choice.
        """
        letter, is_named = self._chosen(reply.text)
        if is_named or not reply.tokens:
            return {"choice": self.letters[letter], "option_mass": None, "probabilities": None}

        place = _last_place(reply.tokens, letter)
        likeliest = _alternatives(place)
        listed = {one: likeliest[one] for one in self.letters if one in likeliest}
        is_listed = listed.get(letter, 0.0) > 0
        # forced on the model, or missing from the list of the most likely tokens
        own = 0.0 if is_listed else _probability(place.get("logprob"))
        mass = sum(listed.values()) + own
        if not is_listed and not own > 0:
            raise ValueError(f"its log-probabilities do not show its choice, {letter!r}")

        answer = {"choice": self.letters[letter], "option_mass": round(min(1.0, mass), 6)}
        if not is_listed or mass < LEAST_MASS:
            return {**answer, "probabilities": None}

        chances = self._chances(listed, likeliest)
        return {**answer, "probabilities": chances, "confidence": max(chances.values())}

    def _chosen(self, text: str) -> tuple[str, bool]:
        """Return the letter that a reply chooses, and whether it names the option instead."""
        try:
            return read_choice(text, list(self.letters), key=_KEY), False
        except ReasonerError as error:
            by_option = {option: letter for letter, option in self.letters.items()}
            try:
                return by_option[read_choice(text, list(by_option), key=_KEY)], True
            except ReasonerError:
                raise ValueError(str(error)) from error

    def _chances(
        self, listed: Mapping[str, float], likeliest: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the probabilities of the options, which add up to 1.

        An option that is not listed is not impossible: its probability is at most that of the last
        listed token, and all unlisted tokens together have the remaining probability.
        """
        unlisted = max(1, len(self.letters) - len(listed))
        left = max(0.0, 1.0 - sum(likeliest.values()))
        bound = min(*likeliest.values(), left / unlisted)

        weights = {option: listed.get(one, bound) for one, option in self.letters.items()}
        total = sum(weights.values())
        return {option: weight / total for option, weight in weights.items()}


def _either(letters: Sequence[str]) -> str:
    """Return letters as a choice in words, such as ``A, B or C``."""
    return " or ".join(filter(None, (", ".join(letters[:-1]), letters[-1])))


def listed_in(token: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the most likely tokens at a token's position."""
    listed = token.get("top_logprobs")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _last_place(tokens: Sequence[Mapping[str, Any]], letter: str) -> Mapping[str, Any]:
    """Return the last token with a letter, since thoughts before the answer may have some, too."""
    return next((one for one in reversed(tokens) if _letter(one) == letter), {})


def _letter(token: Mapping[str, Any]) -> str:
    text = token.get("token")
    return text.strip(_WRAPPING) if isinstance(text, str) else ""


def _alternatives(token: Mapping[str, Any]) -> dict[str, float]:
    """Return the most likely tokens at a token's position, with their probabilities."""
    found: dict[str, float] = {}
    for one in listed_in(token):
        text = _letter(one)
        # a letter may be listed in several spellings, with a space or a quote before it
        found[text] = found.get(text, 0.0) + _probability(one.get("logprob"))

    return found


def _probability(logarithm: Any) -> float:
    is_number = isinstance(logarithm, (int, float)) and not isinstance(logarithm, bool)
    # NaN and positive values are not logarithms of a probability
    return exp(max(logarithm, _NEVER)) if is_number and logarithm <= 0 else 0.0
