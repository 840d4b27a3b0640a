"""Estimating a run's cost: a few rounds by the policy, with prompts but without requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prism.errors import InputError
from prism.llm import Model
from prism.llm.settings import OF_DECISIONS
from prism.reasoner import PolicyReasoner
from prism.reasoner.requests import count_tokens
from prism.runs._journal import Wrapped
from prism.runs.documents import documents
from prism.runs.options import models_of
from prism.telemetry.loggers import LateLogger

ROUNDS, ROUNDS_ALONE = 3, 5
"""Most rounds to try in a world, and most turns or cycles of a single agent."""

AGENTS = 200
"""Most agents to try if the run creates its own."""

_LENGTH, _SHARE_OF_MOST = 200, 2 / 3
"""The assumed length of a text, and of one that has a maximum length."""

_COUNTS = ("decisions", "texts", "calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class Estimate:
    """The estimated cost of a run, or of all runs of a batch together.

    Args:
        rounds: Rounds that were tried.
        of_rounds: Rounds of the run.
        agents: Agents that were tried.
        of_agents: Agents of the run.
        models: By the model's name ``decisions``, ``texts``, ``calls``, ``input_tokens``,
            ``output_tokens`` and, if the prices are known, ``money``, in the whole run.
        runs: Number of runs.
    """

    rounds: int
    of_rounds: int
    agents: int
    of_agents: int
    models: dict[str, dict[str, float]]
    runs: int

    @property
    def money(self) -> float | None:
        """The cost of all models together; None unless all prices are known."""
        each = [counts.get("money") for counts in self.models.values()]
        sums = [money for money in each if money is not None]
        return sum(sums) if len(sums) == len(each) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain data."""
        tried = {"rounds": self.rounds, "agents": self.agents}
        all_of_it = {"rounds": self.of_rounds, "agents": self.of_agents, "runs": self.runs}
        return {"tried": tried, **all_of_it, "money": self.money, "models": self.models}


def estimate(*runs: Any, times: Sequence[int] | None = None) -> Estimate:
    """Estimate how often runs will ask their models, and what that costs.

    The policy runs a few rounds. A single agent takes a few turns or cycles, with replies that
    their schemas allow. The prompts are those that a model would get, but nothing is sent. The
    counts are scaled to all rounds and agents. Runs without a model are left out.

    Args:
        runs: The runs.
        times: For each of them the number of runs that differ from it only in their seeds.

    Raises:
        InputError: If none asks a model, or one is impossible.
        PrismError: If one turns out to be impossible.
    """
    total = Estimate(0, 0, 0, 0, {}, 0)
    for options, number in zip(runs, times or [1] * len(runs), strict=True):
        if next(models_of(options), None) is not None:
            _add(total, options, number)
    if not total.runs:
        raise InputError("needs a model: a run without one costs nothing", field="dry_run")
    return total


def _add(total: Estimate, options: Any, number: int) -> None:
    """Try a run, and add what so many of it ask."""
    is_alone, of_rounds = options.is_alone, options.rounds
    tried = options.replace(**_shortened(options))
    with documents():
        run = tried.prepare(LateLogger())
        clients = _counting(run, options.seed, decides=not is_alone)
        # some may join or leave
        agents = len(run.agents)
        run.run(lambda _summary: None)

    rounds, of_agents = len(run.finished), agents
    if not is_alone and tried.made_up != options.made_up:
        # a world need not make as many as it is asked for
        of_agents = options.made_up if agents == tried.made_up else len(options.agents)
    total.runs += number
    total.rounds += rounds
    total.agents += agents
    total.of_rounds += of_rounds * number
    total.of_agents += of_agents * number
    for client in clients:
        counts = total.models.setdefault(client.model, {})
        for name, count in client.counted(of_rounds / rounds * of_agents / agents).items():
            counts[name] = counts.get(name, 0) + count * number


def _shortened(options: Any) -> dict[str, Any]:
    """Return the arguments that differ in a run with fewer rounds and agents, which asks nobody."""
    decider = options.reasoner
    rounds = min(options.rounds, ROUNDS_ALONE if options.is_alone else ROUNDS)
    changes: dict[str, Any] = {"rounds": rounds}
    if isinstance(decider, Model):
        changes["reasoner"] = _CountingClient.in_place_of(decider)
    if options.is_alone:
        return changes
    if options.made_up is not None:
        changes["agents"] = min(options.made_up, AGENTS)
    if (writer := options.writer) is not None and writer.model is not None:
        changes["writer"] = replace(writer, model=_CountingClient.in_place_of(writer.model))
    changes["treatments"] = [each for each in options.treatments if _round_of(each) <= rounds]
    return changes


def _round_of(treatment: str) -> int:
    number = treatment.rpartition("@")[2]
    return int(number) if number.isdecimal() else 0


def _counting(run: Any, seed: int, *, decides: bool) -> list[_CountingClient]:
    """Let a run count what it asks, and decide by the policy; return the clients, each once."""
    clients: dict[int, _CountingClient] = {}
    for asker in (run.reasoner, run.writer):
        for name, part in getattr(asker, "parts", {}).items():
            if isinstance(client := getattr(part, "client", None), _CountingClient):
                clients[id(client)] = client
                policy = PolicyReasoner(seed) if decides and asker is run.reasoner else None
                asker.parts[name] = _Tried(part, client, policy)
    return [*clients.values()]


class _Tried(Wrapped):
    """Makes a reasoner or a writer build its prompts, and decides by the policy."""

    def __init__(self, part: Any, client: _CountingClient, policy: PolicyReasoner | None) -> None:
        super().__init__(part)
        self._counts, self._policy = client.counts, policy

    async def answer(self, questions: Sequence[Any]) -> Any:
        self._counts["texts" if self._policy is None else "decisions"] += len(questions)
        answers = await self.part.answer(questions)
        return answers if self._policy is None else await self._policy.answer(questions)


class _CountingClient:
    """Counts questions, and answers at once with anything that the schema allows."""

    def __init__(self, model: Model) -> None:
        self.model = model.model
        # sampled questions are asked separately for each agent
        client = model.client
        usual = model.temperature or 0.0
        self.temperature = usual if client is None else getattr(client, "temperature", None)
        self.counts: Counter[str] = Counter()
        self._prices = model.price_of

    @classmethod
    def in_place_of(cls, model: Model) -> Model:
        """Return a model that is asked for the same by name, but only counts."""
        names = {*OF_DECISIONS} - {"mode", "stop_at_fallbacks"}
        settings: Any = {name: getattr(model, name) for name in names}
        return Model(model.model, client=cls(model), **settings)

    def counted(self, scale: float) -> Mapping[str, float]:
        """Return the counts of the whole run, which is so much longer than what was tried."""
        counts = {name: round(self.counts[name] * scale) for name in _COUNTS}
        money = self._prices(counts["input_tokens"], counts["output_tokens"])
        return counts if money is None else {**counts, "money": money}

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        format: dict[str, Any] | None = None,  # noqa: A002 - as Ollama names it
    ) -> Any:
        """Count a conversation."""
        reply = _such_as(format or {}, self.counts["calls"])
        text = reply if isinstance(reply, str) else json.dumps(reply)
        self.counts["calls"] += 1
        self.counts["input_tokens"] += sum(count_tokens(str(each["content"])) for each in messages)
        self.counts["output_tokens"] += count_tokens(text)
        return {"message": {"content": text}}


def _such_as(schema: Mapping[str, Any], number: int) -> Any:
    """Return data that a schema allows; each call has other texts, which make other prompts."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        parts: Iterable[tuple[str, Any]] = schema.get("properties", {}).items()
        return {name: _such_as(part, number) for name, part in parts}
    if kind == "array":
        return [_such_as(schema.get("items", {}), number)]
    if kind in ("number", "integer"):
        return schema.get("minimum", schema.get("maximum", 0))
    if kind == "boolean":
        return True
    length = int(schema.get("maxLength", _LENGTH) * _SHARE_OF_MOST)
    return f"{number} {'words ' * (length // 6)}"[:length].strip() or "x"
