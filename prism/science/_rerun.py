"""Counterfactuals: repeat a run with a change from some round on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from prism.analysis import Log, read_log
from prism.errors import InputError
from prism.files import make_folder, parse_json, write_durably
from prism.llm import Model
from prism.llm._addresses import with_credentials
from prism.runs import Observer, Outcome, PolicyOptions
from prism.runs._folder import RERUN_NAME, SUMMARY_NAME, RunFolder, read_summary
from prism.telemetry.events import (
    COGNITION_ACTION,
    DECISION,
    TEXT_WRITTEN,
    TRANSITION,
    WORKFLOW_ACTION,
)
from prism.worlds import Run, resume
from prism.worlds._treatments import read_treatment, setting

_WRITTEN: Mapping[str, str] = {
    TEXT_WRITTEN: "text",
    WORKFLOW_ACTION: "action of a workflow",
    COGNITION_ACTION: "action",
}
"""What agents wrote and did otherwise."""


@dataclass(frozen=True, slots=True)
class Parted:
    """Where two runs diverge: the first decision or transition that only one of them has.

    Args:
        round: Its round; the earlier one if they differ.
        tick: Its tick.
        was: What the original run has there: agent, state, trigger and so on; None for nothing.
        is_now: What the new run has there; None for nothing.
    """

    round: int
    tick: int
    was: Mapping[str, Any] | None
    is_now: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Rerun:
    """A completed counterfactual.

    Args:
        outcome: The outcome of the run; None if it was already complete.
        folder: The folder of the run.
        run: The run that was repeated.
        from_round: First round in which something is different.
        decision: The first decision that differs; None if none does.
        transition: The first transition that differs; None if none does.
    """

    outcome: Outcome[Any] | None
    folder: Path
    run: Path
    from_round: int
    decision: Parted | None
    transition: Parted | None

    @property
    def parted(self) -> bool:
        """Whether the two runs differ in any decision or transition."""
        return self.decision is not None or self.transition is not None

    def to_dict(self) -> dict[str, Any]:
        """Return where they diverge, as plain data."""
        return {
            "run": str(self.run),
            "from_round": self.from_round,
            "decision": None if self.decision is None else asdict(self.decision),
            "transition": None if self.transition is None else asdict(self.transition),
        }


def rerun(
    run: Path | str,
    folder: Path | str,
    *,
    from_round: int,
    treatments: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    model: Model | str | Mapping[str, Any] | None = None,
    policy: Path | str | None = None,
    writer: Any = None,
    agents: Any = None,
    seed: int | None = None,
    ticks: int | None = None,
    rounds: int | None = None,
    hosts: Sequence[str] = (),
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Rerun:
    """Repeat a run with something else from some round on.

    The rounds before are repeated with the same random numbers, to the same lines of the log. If a
    model decided, its answers are taken from the journal up to the first question that differs.
    From there on, the model is asked. Repeated answers cost nothing, although the log
    contains their original cost.

    Args:
        run: The folder of a complete run.
        folder: Where to keep the new run, which is an ordinary one.
        from_round: First round in which something is different.
        treatments: Treatments of that round or later ones.
        parameters: Parameters that have other values from that round on.
        model: What answers from that round on: another model, or settings of the run's model that
            change, such as ``{"prompt": ...}``. In a run without a model, a model by its text.
        policy: A policy file that decides from that round on.
        writer: What writes the texts from that round on, as a `Run` takes it.
        agents: Another population, from round 1 on alone: their number, or a file of agents.
        seed: Another seed, from round 1 on alone.
        ticks: Another number of ticks in a round, from round 1 on alone.
        rounds: Another number of rounds.
        hosts: Addresses of its servers with user names and passwords, which no run keeps.
        on_round: Called with every round as it ends, after it has been kept.
        observer: Receives the progress of the run.

    Raises:
        InputError: If the folder holds no complete run of the feed or of a world, a treatment is
            due in an earlier round, or the rounds before differ from the original.
    """
    source, target = Path(run), Path(folder)
    options = _kept(source, hosts)
    given = {"agents": agents, "seed": seed, "ticks": ticks}
    for name in (name for name, value in given.items() if value is not None):
        _require_first(name, from_round)
    options = options.replace(
        **{name: each for name, each in {**given, "rounds": rounds}.items() if each is not None}
    )
    _require_round(from_round, options.rounds)
    changes = [setting(name, value, from_round) for name, value in (parameters or {}).items()]
    treatments = (*changes, *treatments)
    asked = _model_of(options, model)
    answering = {
        "reasoner": asked if policy is None else PolicyOptions(policy),
        "writer": writer,
    }
    answering = {name: each for name, each in answering.items() if each is not None}
    if _has_journal(options):
        until = from_round if answering else None
        options = options.replace(**answering).repeating(source, asks=True, until=until)
    elif asked is not None:
        treatments = (_switch(from_round, asked), *treatments)
    else:
        # a policy draws the same numbers again
        for name in answering:
            _require_first("policy" if name == "reasoner" else name, from_round)
        options = options.replace(**answering)
    options = _treated(options, from_round, treatments)
    with _noted(target, {"run": str(source), "from_round": from_round}):
        outcome: Outcome[Any] = options.keep(target, on_round=on_round, observer=observer)

    return _told(outcome, target, source, from_round)


def resume_rerun(
    folder: Path | str,
    *,
    hosts: Sequence[str] = (),
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Rerun:
    """Resume a counterfactual that was stopped, however it was stopped, and complete it.

    Args:
        folder: The folder of the run.
        hosts: Addresses of its servers with user names and passwords, which no run keeps.
        on_round: Called with every round as it ends, after it has been kept.
        observer: Receives the progress of the run.

    Raises:
        InputError: If the folder holds none, or a file that it reads has changed.
    """
    path = Path(folder)
    file = path / RERUN_NAME
    if not file.is_file():
        problem = f"holds no rerun (no {RERUN_NAME}): resume it as an ordinary run"
        raise InputError(problem, path=path)

    note: Any = parse_json(file.read_text(encoding="utf-8"), path=file)
    outcome = resume(
        path,
        hosts=hosts,
        on_round=on_round,
        observer=observer,
    )

    return _told(outcome, path, Path(note["run"]), int(note["from_round"]))


def _kept(source: Path, hosts: Sequence[str]) -> Run[Any]:
    """Return the options of a complete run."""
    summary = read_summary(source)
    if "results" not in summary:
        raise InputError("has not ended: resume it first", path=source)

    config, file = summary["config"], source / SUMMARY_NAME
    Run.from_config(config, file)  # reports damage first
    options: Run[Any] = Run.from_config(with_credentials(config, hosts, file), file)
    return options


def _require_round(from_round: int, rounds: int) -> None:
    if not 1 <= from_round <= rounds:
        problem = f"must be a round of the run, 1 to {rounds}, got {from_round}"
        raise InputError(problem, field="from_round")


def _require_first(name: str, from_round: int) -> None:
    if from_round != 1:
        problem = "can only be changed from round 1 on: leave it out, or rerun from round 1"
        raise InputError(problem, field=name)


def _has_journal(options: Run[Any]) -> bool:
    """Return whether the answers of a run were those of a model."""
    is_asked = isinstance(options.reasoner, Model) or options.repeats is not None
    return is_asked or options.writer is not None or bool(options.later_models())


def _model_of(options: Run[Any], model: Model | str | Mapping[str, Any] | None) -> Model | None:
    """Return the model that is to answer, if another one is."""
    if not isinstance(model, Mapping):
        return None if model is None else Model.of(model)
    if not isinstance(options.reasoner, Model):
        raise InputError("asked none so far: name one, as in ollama:llama3.2", field="model")
    return replace(options.reasoner, **model)


def _switch(from_round: int, model: Model) -> str:
    """Return the treatment by which a run without a model asks one."""
    text = f"{model.server}:{model.model}"
    text += f"@{','.join(model.hosts)}" if model.hosts else ""
    if Model.of(text) == model:
        return f"model={text}@{from_round}"
    problem = "asked none so far: give it one by a text alone, as in ollama:llama3.2"
    raise InputError(problem, field="model")


def _treated(options: Run[Any], from_round: int, treatments: Sequence[str]) -> Run[Any]:
    """Return the run with further treatments."""
    for each in treatments:
        number = read_treatment(each).round
        if number < from_round:
            problem = f"is of round {number}, but nothing may differ before round {from_round}"
            raise InputError(problem, field="treatments")
    return options.replace(treatments=(*options.treatments, *treatments))


@contextmanager
def _noted(folder: Path, note: Mapping[str, Any]) -> Iterator[None]:
    """Record the purpose of a folder before its run begins, and undo that if none does."""
    RunFolder.for_new(folder)
    make_folder(folder)
    _note(folder, note)
    try:
        yield
    finally:
        if not (folder / SUMMARY_NAME).exists():
            (folder / RERUN_NAME).unlink(missing_ok=True)
            # if the folder holds anything else, it stays
            with suppress(OSError):
                folder.rmdir()


def _note(folder: Path, note: Mapping[str, Any]) -> None:
    write_durably(folder / RERUN_NAME, (json.dumps(note, indent=2) + "\n").encode())


def _told(outcome: Outcome[Any] | None, folder: Path, run: Path, from_round: int) -> Rerun:
    parted = differences(read_log(run, folder))
    decision, transition = parted["decision"], parted["transition"]
    early = [each for each in (decision, transition) if each and each.round < from_round]
    if early:
        problem = (
            f"its rounds before round {from_round} differ from the original, first in round "
            f"{min(each.round for each in early)}: another version of prism made it, or its world "
            "is not repeatable (see prism world check)"
        )
        raise InputError(problem, path=run)

    found = Rerun(outcome, folder, run, from_round, decision, transition)
    _note(folder, found.to_dict())

    return found


def differences(log: Log) -> dict[str, Parted | None]:
    """Return the first decision, transition, text and action that only one of two runs has.

    Texts and actions are left out where neither run has any.

    Raises:
        InputError: If the two are of other samples of the agents, or hold no agents at all.
    """
    _require_same_agents(log)
    names = {DECISION: "decision", TRANSITION: "transition", **_WRITTEN}
    query = f"select distinct event from events where event in {tuple(names)!r}"
    there = {DECISION, TRANSITION, *(event for (event,) in log.sql(query).fetchall())}
    found: dict[str, Parted | None] = {names[each]: None for each in names if each in there}
    for row in log.rows("diff"):
        was, is_now = (_event(row[side]) for side in ("was", "is_now"))
        found[row["what"]] = Parted(row["round"], row["tick"], was, is_now)
    return found


def _event(text: str | None) -> Mapping[str, Any] | None:
    """Return the keys of an event, with a list as one text."""
    event: Mapping[str, Any] | None = None if text is None else json.loads(text)
    return event and {
        name: ", ".join(value)
        if isinstance(value, list)
        else json.dumps(value, separators=(",", ":"))
        if isinstance(value, dict)
        else value
        for name, value in event.items()
    }


def _require_same_agents(log: Log) -> None:
    was, now = log.runs if len(log.runs) == 2 else (log.runs[0], log.runs[0])
    if was.logged_agents is None and now.logged_agents is None:
        return

    are_as_many = was.logged_agents == now.logged_agents != 0
    query = (
        "select run, list_sort(list(distinct agent_id)) from events "
        "where event = 'agent.joined' and round = 0 group by run"
    )
    joined = [agents for _, agents in log.sql(query).fetchall()]
    if are_as_many and len(joined) == 2 and joined[0] == joined[1]:
        return

    told = [_sample(each.logged_agents) for each in (was, now)]
    others = ", but not the same" * are_as_many
    problem = f"has {told[0]}, the other log {told[1]}{others}: there is nothing to compare"
    raise InputError(problem, path=was.path)


def _sample(logged: int | None) -> str:
    if logged == 0:
        return "the rounds only"
    return "all agents" if logged is None else f"{logged:,} agents"
