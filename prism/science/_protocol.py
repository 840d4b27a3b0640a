"""Can a policy take a model's place? A protocol of runs that says how far they lie apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from prism.errors import FieldValueError, InputError
from prism.files import make_folder, parse_json, reading, write_durably
from prism.randomness import RandomStream
from prism.runs import ModelOptions, Observer, PolicyOptions, begin, resume
from prism.runs._folder import SUMMARY_NAME
from prism.runs._policy_file import ModelKind, Policy
from prism.science._calibrate import LEAST, calibrate_choices
from prism.science._choices import Choices, read_choices
from prism.science._divergence import BINS, SPLITS, compare_choices
from prism.social import SocialRun

if TYPE_CHECKING:
    import polars as pl

Strategy = Literal["base", "guided", "probabilistic"]
"""What a model is told of how users of its type behave: nothing, in words, or in numbers."""

AGENTS = 1000
DECISIONS = 10_000
MOST_ROUNDS = 300
PROTOCOL_NAME = "protocol.json"
TIMES_NAME = "times.json"
RESULTS_NAME = "divergence.csv"
SPEED_NAME = "speed.csv"

_REFERENCE = "reference"
_TEMPLATE = """{persona}

{situation}

%s

{options}

{reply}"""


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is run: a model, an explicit policy for reference, and one calibrated on the model.

    After Buitrago Lopez, Pastor-Galindo and Ruiperez-Valiente (2026, arXiv:2606.12369), who had
    1,000 agents make 10,000 decisions by a Markov policy with probabilities by type of user, and by
    language models told nothing, guidance in words, or the probabilities; and compared the two by
    the Jensen-Shannon divergence with Laplace smoothing, and by time.

    Args:
        run: The run of the model: its agents, seed, and a `prism.runs.ModelOptions`. Its rounds are
            as many as the reference needs for the decisions.
        decisions: Decisions that are compared, the first of each run.
        strategies: What the model is told of how users behave; a run for each.
        kind: What is calibrated on the model.
        reference: The explicit policy; None for the built-in one.
        least: Fewest decisions that identify a cell.
        smoothing: What is added to every count before the divergence is taken.

    Raises:
        FieldValueError: If a number is out of its range, or there is no such strategy.
        InputError: If the run has no model, or one with a prompt of its own and strategies.
    """

    run: SocialRun
    decisions: int = DECISIONS
    strategies: tuple[Strategy, ...] = ("base",)
    kind: ModelKind = "markov"
    reference: Path | None = None
    least: int = LEAST
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        unknown = [name for name in self.strategies if name not in get_args(Strategy)]
        if unknown or not self.strategies:
            known = ", ".join(get_args(Strategy))
            raise FieldValueError(f"strategies must be some of {known}, got {self.strategies!r}")
        if self.decisions < 1 or self.smoothing < 0:
            raise FieldValueError(
                "decisions must be 1 or more, and smoothing 0 or more; "
                f"got {self.decisions} and {self.smoothing}"
            )

        model = self.run.reasoner
        if not isinstance(model, ModelOptions):
            raise InputError("must be a model: the protocol compares one", field="reasoner")
        if model.prompt is not None and self.strategies != ("base",):
            problem = "has the place of what guided and probabilistic say: leave out one of them"
            raise InputError(problem, field="prompt")

    def to_config(self) -> dict[str, Any]:
        """Return the protocol as plain data."""
        return {
            "run": self.run.to_config(),
            "decisions": self.decisions,
            "strategies": list(self.strategies),
            "kind": self.kind,
            "reference": None if self.reference is None else str(self.reference),
            "least": self.least,
            "smoothing": self.smoothing,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The plain data.
            path: Where it stands, for messages.

        Raises:
            InputError: If it is something else, or a file that the run reads has changed.
        """
        try:
            return cls(
                SocialRun.from_config(config["run"], path),
                config["decisions"],
                tuple(config["strategies"]),
                config["kind"],
                None if config["reference"] is None else Path(config["reference"]),
                config["least"],
                config["smoothing"],
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"holds no protocol ({error})", path=path) from None


@dataclass(frozen=True)
class ProtocolResults:
    """What a protocol came to.

    Args:
        divergence: One row for each strategy, comparison and level, as `divergence` has them:
            ``comparison`` is ``reference`` (the model against the explicit policy) or
            ``calibrated`` (the agents of the model that its policy has not seen, against the same
            agents in a run of that policy).
        speed: One row a run: ``run``, ``decisions``, ``seconds``, ``milliseconds_per_decision``,
            ``fallbacks``, and ``times_reference``, how many times as long as the reference a
            decision takes.
        folder: Where everything is kept.
        protocol: What was run.
    """

    divergence: pl.DataFrame
    speed: pl.DataFrame
    folder: Path
    protocol: Protocol


def run_protocol(
    protocol: Protocol | None,
    folder: Path | str,
    *,
    hosts: Sequence[str] = (),
    observer: Observer | None = None,
) -> ProtocolResults:
    """Carry out a protocol, or go on with one that was stopped.

    The folder gets the runs ``reference``, ``model-STRATEGY`` and ``policy-STRATEGY``, the policies
    ``policy-STRATEGY.json``, and the results.

    Args:
        protocol: What is run; None to go on with the one in the folder.
        folder: Where to keep it.
        hosts: Addresses of servers with names and passwords, which no run keeps.
        observer: What to tell of the runs.

    Raises:
        InputError: If the folder holds another protocol or none, or a run is impossible.
        MissingExtraError: If the extra ``science`` is not installed.
    """
    made = _Made.of(protocol, Path(folder))
    steps = _Steps(made, tuple(hosts), observer or Observer())
    steps.carry_out(_REFERENCE, replace(made.run, reasoner=made.reference))
    told = _guidance(calibrate_choices(steps.choices(_REFERENCE), "markov"))

    for strategy in made.protocol.strategies:
        model = made.model(strategy, told)
        steps.carry_out(f"model-{strategy}", replace(made.run, reasoner=model))
        path = made.folder / f"policy-{strategy}.json"
        _calibrate(steps.choices(f"model-{strategy}"), made, path)
        steps.carry_out(f"policy-{strategy}", replace(made.run, reasoner=PolicyOptions(path)))

    divergence, speed = _diverge(made, steps), _speed(made, steps)
    results = ProtocolResults(divergence, speed, made.folder, made.protocol)
    results.divergence.write_csv(made.folder / RESULTS_NAME)
    results.speed.write_csv(made.folder / SPEED_NAME)

    return results


@dataclass(frozen=True)
class _Made:
    """A protocol in its folder, with the rounds that it takes.

    Args:
        protocol: What is run.
        rounds: Number of rounds.
        folder: Where it is kept.
    """

    protocol: Protocol
    rounds: int
    folder: Path

    @property
    def run(self) -> SocialRun:
        return replace(self.protocol.run, rounds=self.rounds)

    @property
    def reference(self) -> PolicyOptions | None:
        given = self.protocol.reference
        return None if given is None else PolicyOptions(given)

    def model(self, strategy: Strategy, told: Mapping[str, str]) -> ModelOptions:
        options = self.protocol.run.reasoner
        assert isinstance(options, ModelOptions)
        return (
            options if strategy == "base" else replace(options, prompt=_TEMPLATE % told[strategy])
        )

    @classmethod
    def of(cls, protocol: Protocol | None, folder: Path) -> Self:
        path = folder / PROTOCOL_NAME
        if path.exists():
            with reading(path):
                found = parse_json(path.read_text(encoding="utf-8"), path=path)
            kept = Protocol.from_config(found["protocol"], path)
            if protocol is not None and protocol.to_config() != kept.to_config():
                raise InputError("holds another protocol: choose another folder", path=folder)
            return cls(kept, found["rounds"], folder)
        if protocol is None:
            raise InputError(f"holds no protocol: there is no {PROTOCOL_NAME}", path=folder)

        rounds = _rounds_for(protocol)
        make_folder(folder)
        content = {"protocol": protocol.to_config(), "rounds": rounds}
        write_durably(path, (json.dumps(content, indent=2) + "\n").encode())

        return cls(protocol, rounds, folder)


class _EnoughError(Exception):
    """There are decisions enough."""


def _rounds_for(protocol: Protocol) -> int:
    """Return the rounds in which the reference makes the decisions.

    Raises:
        InputError: If it does not make them.
    """
    decided, rounds = 0, 0

    def count(summary: Any) -> None:
        nonlocal decided, rounds
        decided += summary.activity.decisions_asked
        rounds += 1
        if decided >= protocol.decisions:
            raise _EnoughError

    reference = None if protocol.reference is None else PolicyOptions(protocol.reference)
    try:
        begin(replace(protocol.run, rounds=MOST_ROUNDS, reasoner=reference), on_round=count)
    except _EnoughError:
        return rounds

    raise InputError(
        f"are more than the {decided:,} that {protocol.run.agents} agents decide in "
        f"{MOST_ROUNDS:,} rounds: take more agents",
        field="decisions",
    )


@dataclass(frozen=True)
class _Steps:
    """The runs of a protocol, each carried out once, however often it is stopped."""

    made: _Made
    hosts: tuple[str, ...]
    observer: Observer
    read: dict[str, Choices] = field(default_factory=dict)

    @property
    def how(self) -> dict[str, Any]:
        # a round of a model takes far longer than a checkpoint
        return {"observer": self.observer, "checkpoint_every": 0}

    def carry_out(self, name: str, run: SocialRun) -> None:
        folder = self.made.folder / name
        with self._timed(name):
            if (folder / SUMMARY_NAME).exists():
                resume(folder, SocialRun, hosts=self.hosts, **self.how)
            else:
                begin(run, folder, **self.how)

    def choices(self, name: str) -> Choices:
        """Return the first decisions of a run."""
        from prism.analysis import read_log

        if name not in self.read:
            found = read_choices(read_log(self.made.folder / name))
            self.read[name] = found.first(self.made.protocol.decisions)

        return self.read[name]

    def times(self) -> dict[str, float]:
        path = self.made.folder / TIMES_NAME
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Add the seconds of a block to those that a run has taken before."""
        folder, begun = self.made.folder, monotonic()
        was_complete = _is_complete(folder / name)
        try:
            yield
        finally:
            if not was_complete:
                times = self.times()
                times[name] = round(times.get(name, 0.0) + monotonic() - begun, 3)
                write_durably(folder / TIMES_NAME, (json.dumps(times, indent=2) + "\n").encode())


def _is_complete(folder: Path) -> bool:
    from prism.runs import run_status

    return (folder / SUMMARY_NAME).exists() and run_status(folder).state == "complete"


def _halves(choices: Choices, seed: int) -> tuple[set[str], set[str]]:
    """Return two halves of the agents that decided anything, by a draw of the seed's own."""
    agents = choices.table["agent_id"].unique().sort().to_list()
    shuffled = RandomStream(seed, "protocol", "halves").shuffled(agents)
    half = len(shuffled) // 2

    return set(shuffled[:half]), set(shuffled[half:])


def _calibrate(choices: Choices, made: _Made, path: Path) -> None:
    if path.exists():
        return

    seen, _ = _halves(choices, made.run.seed)
    protocol = made.protocol
    policy = calibrate_choices(choices.of_agents(seen), protocol.kind, least=protocol.least)
    policy.to_file(path)


def _diverge(made: _Made, steps: _Steps) -> pl.DataFrame:
    """Compare every run of the model with the reference, and with what was calibrated on it."""
    import numpy as np
    import polars as pl

    reference = steps.choices(_REFERENCE)
    settings = BINS, SPLITS, made.protocol.smoothing
    tables = []
    for strategy in made.protocol.strategies:
        model, policy = (steps.choices(f"{kind}-{strategy}") for kind in ("model", "policy"))
        _, unseen = _halves(model, made.run.seed)
        pairs = {
            "reference": (model, reference),
            "calibrated": (model.of_agents(unseen), policy.of_agents(unseen)),
        }
        for name, (ours, theirs) in pairs.items():
            random = np.random.default_rng(abs(made.run.seed))
            found = compare_choices(ours, theirs, *settings, random)
            names = [pl.lit(strategy).alias("strategy"), pl.lit(name).alias("comparison")]
            tables.append(found.select(*names, pl.all()))

    return pl.concat(tables)


def _speed(made: _Made, steps: _Steps) -> pl.DataFrame:
    import polars as pl

    times, rows = steps.times(), []
    kinds = [f"{kind}-{each}" for each in made.protocol.strategies for kind in ("model", "policy")]
    for name in (_REFERENCE, *kinds):
        with reading(path := made.folder / name / SUMMARY_NAME):
            totals = json.loads(path.read_text(encoding="utf-8"))["results"]["totals"]
        asked, answered = totals["decisions_asked"], totals["decisions_answered"]
        seconds = times[name]
        each = 1000 * seconds / asked if asked else None
        rows.append((name, asked, seconds, each, asked - answered))

    columns = ("run", "decisions", "seconds", "milliseconds_per_decision", "fallbacks")
    table = pl.DataFrame(rows, schema=list(columns), orient="row")
    base = table["milliseconds_per_decision"][0]

    return table.with_columns(times_reference=pl.col("milliseconds_per_decision") / base)


def _guidance(policy: Policy) -> dict[str, str]:
    """Return what models are told of a policy: in words, and in numbers."""
    words, numbers = [], []
    for cell in policy.cells:
        if cell.group is None or cell.probabilities is None:
            continue

        shares = dict(zip(cell.options, cell.probabilities, strict=True))
        order = sorted(shares, key=lambda option: -shares[option])
        whose = f"{cell.group} who is {cell.state}" if cell.group != "none" else cell.state
        words.append(f"- {whose}: most often {order[0]}, then {', then '.join(order[1:])}")
        numbers.append(
            f"- {whose}: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        )

    said = "How users of each type behave:\n"
    asked = "How likely each choice is for users of each type; choose with these probabilities:\n"

    return {"guided": said + "\n".join(words), "probabilistic": asked + "\n".join(numbers)}
