"""Decision questions put as conversations: options get letters, whose log-probabilities count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from string import ascii_uppercase
from typing import Any

from prism.errors import ReasonerError
from prism.llm._dialect import Completion
from prism.statechart.reasoner._prompts import answer_schema
from prism.statechart.reasoner._replies import parse_reasoner_response

MOST_ALTERNATIVES = 20
"""How many log-probabilities a server gives for a token, at most."""

LEAST_MASS = 0.5
"""Least probability that all options have together for each to have one: the model would rather
say something else, and what it thinks of the options is hardly asked."""

_NEVER = -10_000.0
"""A logarithm so small that its probability is 0; JSON may carry one that no float can."""

_WRAPPING = " \t\n\"'`:{}▁Ġ"
"""What may stand in one token with the letter of an option, as ``"B`` and ``B"`` in JSON.

The last two are what some servers show for a space.
"""


@dataclass(frozen=True, slots=True)
class LetteredChoice:
    """A choice question whose options have letters, so that one token tells which is chosen.

    Several options may begin with the same token, as ``engaging_like`` and ``engaging_reply`` do:
    the probabilities of their own first tokens would not tell them apart.

    Args:
        prompt: The question with its options.
        letters: The options by their letters.
    """

    prompt: str
    letters: Mapping[str, str]

    @classmethod
    def of(cls, state: str, question: Mapping[str, Any]) -> LetteredChoice:
        """Put letters to the options of a question in the wire format of ``/v1/systemone``.

        Raises:
            ValueError: If there are more options than a server gives log-probabilities for.
        """
        criteria: Mapping[str, Any] = question["criteria"]
        if len(criteria) > MOST_ALTERNATIVES:
            raise ValueError(
                f"{len(criteria)} options exceed the {MOST_ALTERNATIVES} for which a server "
                "gives log-probabilities: use chat mode"
            )

        letters = dict(zip(ascii_uppercase, criteria, strict=False))
        listed = "\n".join(
            f"{letter}: {option}" + (f" ({criteria[option]})" if criteria[option] else "")
            for letter, option in letters.items()
        )
        prompt = (
            f"{state}\n\n{question['instructions']}\n\nOptions:\n{listed}\n\n"
            'Respond with JSON only, with the letter of one option:\n{"next_state": "<letter>"}\n'
        )

        return cls(prompt, letters)

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the reply."""
        return answer_schema(list(self.letters))

    def read(self, completion: Completion) -> dict[str, Any]:
        """Return the option that a reply chooses, and the probability of every option.

        Returns:
            The ``choice``, the ``option_mass``, which is the probability that all options have
            together, the ``probabilities``, and the highest as ``confidence``. The last two are
            left out or None where the mass is below a half or the choice is not among the likeliest
            tokens: the model would rather have said something else.

        Raises:
            ValueError: If it chooses none, or its tokens do not show the choice.
        """
        try:
            letter = parse_reasoner_response(completion.text, list(self.letters))
        except ReasonerError as error:
            raise ValueError(str(error)) from error

        place = _last_place(completion.tokens, letter)
        likeliest = _alternatives(place)
        listed = {one: likeliest[one] for one in self.letters if one in likeliest}
        is_listed = listed.get(letter, 0.0) > 0
        # forced on the model, or cut off from the list of the likeliest
        own = 0.0 if is_listed else _probability(place.get("logprob"))
        mass = sum(listed.values()) + own
        if not is_listed and not own > 0:
            raise ValueError(f"its log-probabilities do not show its choice, {letter!r}")

        answer = {"choice": self.letters[letter], "option_mass": round(min(1.0, mass), 6)}
        if not is_listed or mass < LEAST_MASS:
            return {**answer, "probabilities": None}

        chances = self._chances(listed, likeliest)
        return {**answer, "probabilities": chances, "confidence": max(chances.values())}

    def _chances(
        self, listed: Mapping[str, float], likeliest: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the probabilities of the options, which add up to 1.

        An option that is not listed is unknown, not impossible: it is as likely as the last token
        that is listed at most, and what is not listed has together what is left.
        """
        unlisted = max(1, len(self.letters) - len(listed))
        left = max(0.0, 1.0 - sum(likeliest.values()))
        bound = min(*likeliest.values(), left / unlisted)

        weights = {option: listed.get(one, bound) for one, option in self.letters.items()}
        total = sum(weights.values())
        return {option: weight / total for option, weight in weights.items()}


def listed_in(token: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the likeliest tokens in a token's place."""
    listed = token.get("top_logprobs")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _last_place(tokens: Sequence[Mapping[str, Any]], letter: str) -> Mapping[str, Any]:
    """Return the last token with a letter, as thoughts before the answer may have some, too."""
    return next((one for one in reversed(tokens) if _letter(one) == letter), {})


def _letter(token: Mapping[str, Any]) -> str:
    text = token.get("token")
    return text.strip(_WRAPPING) if isinstance(text, str) else ""


def _alternatives(token: Mapping[str, Any]) -> dict[str, float]:
    """Return the likeliest in a token's place, each with its probability."""
    found: dict[str, float] = {}
    for one in listed_in(token):
        text = _letter(one)
        # a letter may be listed in several spellings, with a space or a quote before it
        found[text] = found.get(text, 0.0) + _probability(one.get("logprob"))

    return found


def _probability(logarithm: Any) -> float:
    is_number = isinstance(logarithm, (int, float)) and not isinstance(logarithm, bool)
    # NaN and what is above 0 are no logarithms of a probability
    return exp(max(logarithm, _NEVER)) if is_number and logarithm <= 0 else 0.0
