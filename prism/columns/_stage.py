"""A stage whose agents are columns: see `prism.worlds._stage.Stage`."""

from __future__ import annotations

from asyncio import CancelledError
from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

import numpy as np

from prism._faults import Place
from prism.columns import _table as T  # noqa: N812
from prism.columns._apart import Apart
from prism.columns._columns import Columns, number_in
from prism.columns._module import Machine, machine_of
from prism.columns._networks import TWINS, ColumnNetwork
from prism.columns._rows import Rows, RowSet, is_row
from prism.columns._types import FLOAT, Unit
from prism.columns._unit import problems_of, unit_of
from prism.errors import AgentError, DefinitionError, FieldValueError, InputError, SimulationError
from prism.randomness import RandomStream
from prism.runs._running import tell_place
from prism.statechart import PolicyReasoner
from prism.statechart._engine.writing import transition_frame
from prism.statechart._identity import Asked, announcer, identify
from prism.statechart.states import state_text
from prism.telemetry._loggers import active_logger, report_warning, tell_whole
from prism.telemetry.events import ANSWER_DISCARDED, TRANSITION
from prism.worlds import Agent, World
from prism.worlds._agent import plain_class
from prism.worlds._agent_set import natural_order
from prism.worlds._host import RunHost
from prism.worlds._kinds import charts_of, make_kinds, triggers_of
from prism.worlds._people import AgentTable
from prism.worlds._snapshot import Decoder, Encoder
from prism.worlds._stage import AgentStage, Setting
from prism.worlds._stage import population as made_by
from prism.worlds._ticks import Counts
from prism.worlds._world import defines, kinds_of

_GOLDEN = 0x9E3779B97F4A7C15
_Event: Any = namedtuple("_Event", [name for name, _ in T.packed(T.EVENT)])  # type: ignore[misc]
_REASONS = {T.HAS_MOVED: "moved", T.NOT_ENABLED: "not_enabled"}


class Everybody(RowSet):
    """All agents of a run in columns, from which networks are made.

    Attributes:
        host: The run.
        network_class: The class that holds their connections.
        twins: Faster versions of the functions of `prism.worlds` that make connections.
    """

    host: Any
    network_class = ColumnNetwork
    twins = TWINS


class ColumnHost(RunHost):
    """A run from the point of view of its world and its rows."""

    columns: Columns
    rows: Rows

    def look_at_order(self) -> None:
        """Have agents drawn by their ids if they were given others, in another order."""
        # ids that are made by rule are in their order
        if self.rows.ids:
            super().look_at_order()

    def draw_by_id(self) -> None:
        """Draw agents by their ids from now on, whatever the order of the list."""
        self.draws_by_id = True
        keys = [natural_order(self.rows.id_of(place)) for place in range(self.columns.size)]
        ranks = np.empty(len(keys), np.int32)
        ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        everybody: Any = self.agents
        everybody._ranks = ranks

    def count(self, state: Any) -> int:
        """Return the number of agents in a state."""
        number = self.columns.unit.layout.number_of(state)
        return 0 if number is None else int(self.columns["counts"][number])

    def able_to_be_in(self, state: Any) -> int:
        """Return the number of agents whose chart has a state."""
        return 0 if self.columns.unit.layout.number_of(state) is None else self.columns.size

    def classes(self) -> list[type]:
        """Return the class of all rows."""
        return [self.rows.cls]

    def keys_at(self, place: int) -> tuple[int, ...]:
        """Return an agent's 64-bit keys for its places and its steps."""
        return tuple(self.columns.agents[["key_place", "key_step"]][place].item())

    def neighbours_of(self, place: int) -> RowSet:
        """Return the neighbours of an agent."""
        offsets, places = self.columns["offsets"], self.columns["neighbours"]
        return RowSet(self.rows, places[offsets[place] : offsets[place + 1]])

    def take_network(self, offsets: Any, places: Any) -> None:
        """Take the connections of the agents."""
        self.columns.set("offsets", offsets)
        self.columns.set("neighbours", places if len(places) else np.zeros(1, np.int32))
        self.columns.run["has_network"] = 1

    def ticks_of(self, row: Any) -> int:
        """Return the number of turns that an agent has had in its state."""
        run, since = self.columns.run, self.columns.agents["since"][row._place]
        return int(run["now"] - (run["phase"] != T.OVER) - since)

    def set_ticks(self, agent: Any, ticks: int) -> None:
        """Refuse to set the time that an agent has been in its state."""
        del ticks
        raise SimulationError(
            f"ticks_in_state of {agent.agent_id!r} cannot be set in columns: let it fire an event, "
            "or run this world without columns"
        )


class ColumnStage(AgentStage):
    """Agents in columns, whose steps are compiled.

    Args:
        setting: The other parts of the run.

    Raises:
        DefinitionError: If the world cannot be compiled; the message names place and reason.
        InputError: If a reasoner other than the policy is to decide.
    """

    host_class = ColumnHost
    host: ColumnHost

    def __init__(self, setting: Setting) -> None:
        if problems := problems_of(type(setting.world)):
            raise DefinitionError("\n".join(problems))

        reasoner = setting.answerers.reasoner
        if type(reasoner) is not PolicyReasoner:
            problem = (
                f"is a {type(reasoner).__name__}: in columns, only weights can decide, not a "
                "model, a policy file or an earlier run: run this world without columns"
            )
            raise InputError(problem, field="reasoner")
        if setting.answerers.has_writer:
            raise InputError("has nothing to write in columns: leave it out", field="writer")

        super().__init__(setting)
        self.unit: Unit = unit_of(type(setting.world))
        self._machine: Machine
        self._apart: Apart | None = None
        self._about: Any = None
        self._passed: dict[str, Any] = {}
        self._has_beginning = defines(type(setting.world), "tick_begins")
        self._has_end = defines(type(setting.world), "tick_ends")
        self._counted = SimpleNamespace(counts=Counts(), open_questions=0)
        self.ticks: Any = self._counted

    # Beginning

    def populate(self, agents: int | Iterable[Any] | AgentTable) -> None:
        """Make columns for the population."""
        world, host = self._world, self.host
        cls: Any = kinds_of(type(world))[0]
        # so many alike are not made one by one
        is_counted = type(agents) is int and type(world).populate is World.populate
        made: list[Any] = [] if is_counted else list(made_by(world, agents))
        size: Any = agents if is_counted else len(made)
        if size < 1:
            raise FieldValueError("a run needs at least one agent")

        self._kinds = make_kinds(
            world, [cls], self._setting.parts, self.logger, self.host.count_transition
        )
        self._kind = kind = self._kinds[cls]
        host.charts = charts_of(world, [cls])
        host.triggers = triggers_of(host.charts)
        host.columns = self._columns = Columns(self.unit, size)
        host.rows = self._rows = Rows(cls, self._columns, host, kind)
        everybody = Everybody(self._rows)
        everybody.host = host
        host.agents = everybody  # type: ignore[assignment]
        first = self.unit.layout.number_of(kind.chart.definition.initial)
        self._columns["state"][:] = first
        self._columns["counts"][first] = size
        host.roster = None
        # those with columns refuse to be changed by a measure
        self.has_fields = bool(self.unit.layout.others)

        given = self._given(cls, made)
        ids = self._join()
        for name, each in cls.fields.items():
            if name not in Agent.fields:
                self._fill(f"{cls.__name__}.{name}", each.declared, given.get(name, {}), ids)

    def _given(self, cls: Any, made: Sequence[Any]) -> dict[str, dict[int, Any]]:
        """Return the values that agents were created with, by field and place."""
        rows = self._rows
        given: dict[str, dict[int, Any]] = {"agent_id": rows.ids, "name": rows.names}
        for place, agent in enumerate(made):
            if not isinstance(agent, Agent) or plain_class(agent) is not cls:
                raise AgentError(
                    f"{type(self._world).__name__}.populate returns a {type(agent).__name__}: "
                    f"columns hold one kind of agents, {cls.__name__}"
                )
            if agent._attributes:
                raise AgentError(
                    f"{agent!r} has attributes of a table, which have no column: declare them as "
                    f"fields of {cls.__name__}, or keep none"
                )
            for name, value in agent._given.items():
                given.setdefault(name, {})[place] = value
            if agent._begin_state is not None:
                rows.at(place)._state = agent._begin_state

        return given

    def _join(self) -> list[str]:
        """Give agents the keys of their random streams, and return their ids."""
        rows, size, seed = self._rows, self._columns.size, self._setting.seed
        ids = [rows.id_of(place) for place in range(size)]
        if rows.ids and len(set(ids)) < size:
            twice = next(each for each, count in Counter(ids).items() if count > 1)
            raise FieldValueError(f"agent ids must be unique, used more than once: {twice}")

        digests = b"".join(
            blake2b(ascii((seed, "agent", each)).encode(), digest_size=24).digest() for each in ids
        )
        self._columns.take_keys(np.frombuffer(digests, "<u8").reshape(size, 3))
        self.host.look_at_order()
        return ids

    def _fill(self, what: str, declared: Any, given: Mapping[int, Any], ids: Sequence[str]) -> None:
        """Fill a field with given values, drawn ones, or its default."""
        cls, _, name = what.partition(".")
        if declared.is_required and len(given) < len(ids):
            raise AgentError(
                f"{what} has no value: give it one, {cls}({name}=...), or a default in the class"
            )

        stored = self.unit.layout.fields.get(name)
        if stored is not None and declared.draw is None and declared.make is None:
            column = self._columns.agents[stored.name]
            if len(given) < len(ids):
                column[:] = number_in(stored, declared.default, what)
            for place, value in given.items():
                column[place] = number_in(stored, value, what)
            return

        seed = self._setting.seed
        values: Iterator[Any] = (
            given[place]
            if place in given
            else declared.value(lambda each=each: RandomStream(seed, "field", each, name))
            for place, each in enumerate(ids)
        )
        self._keep(name, values, what)

    def _keep(self, name: str, values: Iterable[Any], what: str) -> None:
        """Store the values of a field, in a column if it has one."""
        stored = self.unit.layout.fields.get(name)
        if stored is None:
            self._rows.others[name] = list(values)
        else:
            column = self._columns.agents[stored.name]
            numbers = (number_in(stored, each, what) for each in values)
            column[:] = np.fromiter(numbers, column.dtype, len(column))

    def ready(self) -> None:
        """Compile the steps, and prepare the ticks, after the world's `setup`."""
        columns = self._columns
        self._machine = machine_of(self.unit)
        if self.unit.may_be_endless:
            self._apart = Apart(lambda: columns["interrupted"].fill(1))
        columns.run["phase"] = T.OVER
        self._set_due(0)
        most = self.logged_agents()
        logged = None if most is None else self._canonical()[:most]
        columns["logged"][:] = 1 if logged is None else 0
        if logged is not None:
            columns["logged"][logged] = 1
            self.tell_of(map(self._rows.id_of, logged.tolist()))
        columns.prepare(columns.size if logged is None else len(logged))
        if type(self._world).activation != "all":
            columns.set("canonical", self._canonical())
        self.host.roster = self.host

    def _canonical(self) -> Any:
        """Return places in an order that does not depend on that of the list."""
        return np.argsort(self._columns.agents["key_place"], kind="stable").astype(np.int32)

    def _set_due(self, now: int) -> None:
        """Record when agents time out, between two ticks."""
        kind, columns = self._kind, self._columns
        if not kind.has_limits:
            return
        state = columns["state"]
        after = [kind.due_after.get(each, -1) for each in self.unit.layout.states]
        due = columns.agents["since"] + np.array(after, np.int64)[state]
        never = np.array(after)[state] < 0
        columns["due"][:] = np.where(never, T.NEVER, np.minimum(np.maximum(due, now + 1), T.NEVER))

    def announce(self) -> None:
        """Announce the agents that the log covers."""
        logger = active_logger(self.logger)
        if logger is not None:
            places = np.flatnonzero(self._columns["logged"]).tolist()
            self._announce(map(self._rows.at, places), logger)

    # Rounds

    def begin_round(self) -> None:
        """Reset the counts, and begin new random streams."""
        host = self.host
        host.begin_round()
        host.receive_events(self._fire)
        self._counted.counts, self._turns = Counts(), 0
        run = self._columns.run
        run["moved"] = run["decided"] = 0
        self._columns["timed_out"][:] = 0
        if type(self._world).activation != "all":
            run["turn_at"] = host.turn_stream()._key

    async def tick(self) -> None:
        """Give a turn to every agent that has something to do."""
        host, world, run = self.host, self._world, self._columns.run
        self._turns += self._columns.size
        with host.explaining():
            run["now"] = host.ticks
            run["phase"] = T.NOT_BEGUN
            run["salt"] = (host.ticks * _GOLDEN) % 2**64
            if self._has_beginning:
                with host.guarding():
                    world.tick_begins()

            self._refresh()
            with self._told():
                self._call(self._machine.tick, self._columns.address)
            run["phase"] = T.OVER
            host.acting = None
            if self._has_end:
                with host.guarding():
                    world.tick_ends()

    def _refresh(self) -> None:
        """Pass the world's current values to compiled code."""
        run, host, world = self._columns.run, self.host, self._world
        run["epoch"], run["round"], run["tick"] = host.epoch, host.round, host.tick
        run["stopped"] = host.stopped is not None
        for name, stored in self.unit.layout.values.items():
            value = getattr(world, name)
            if value is not self._passed.get(name):
                run[stored.name] = number_in(stored, value, f"{type(world).__name__}.{name}")
                self._passed[name] = value

    def _call(self, compiled: Callable[..., int], *given: int) -> int:
        return compiled(*given) if self._apart is None else self._apart.call(compiled, *given)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Write to the log what compiled code does inside the block, and say what ends it."""
        run = self._columns.run
        run["fault"] = 0
        try:
            yield
        except RuntimeError:
            if not run["fault"]:
                raise
            raise self._fault() from None
        except (CancelledError, KeyboardInterrupt):
            if run["fault"] and (place := self._place_of_fault()) is not None:
                tell_place("interrupted", place, f"in {self._turn_of_fault()}")
            raise
        finally:
            self._tell()

        counts = self._counted.counts
        self.host.transitions = int(run["moved"])
        counts.decisions_asked = counts.decisions_answered = int(run["decided"])
        if self.unit.has_limits:
            self.host.timeouts = +Counter(self._by_state("timed_out"))

    def _fault(self) -> Exception:
        """Return the fault in a step, with its line."""
        run = self._columns.run
        fault = int(run["fault"])
        self.host.acting = self._rows.at(int(run["acting"]))
        python: Any = {T.DIVISION: ZeroDivisionError, T.EMPTY: IndexError}
        kind = python.get(fault, SimulationError)
        error: Exception = kind(f"{T.FAULTS[fault]}, in {self._turn_of_fault()}")
        if (place := self._place_of_fault()) is not None:
            error.add_note(f"{place}: {place.text}")
        return error

    def _turn_of_fault(self) -> str:
        return f"the step of {self._rows.id_of(int(self._columns.run['acting']))!r}"

    def _place_of_fault(self) -> Place | None:
        """Return the line of a fault, if it has one."""
        number = int(self._columns.run["line"])
        return self.unit.places[number - 1] if number else None

    def _fire(self, agent: Any, trigger: str, context: Any, _chosen: Any) -> Any:
        """Fire an event for a hook, at once."""
        layout = self.unit.layout
        if trigger not in layout.triggers:
            # says what is wrong, or warns, as for any agent
            agent._chart._require_trigger(trigger, context)
            return None

        self._refresh()
        place = context._place if is_row(context, self._rows) else -1
        self._about = None if place >= 0 else context
        given = self._columns.address, agent._place, layout.triggers.index(trigger), place
        try:
            with self._told():
                state = self._call(self._machine.fire, *given)
        finally:
            self._about = None
        return None if state < 0 else layout.states[state]

    def states(self) -> dict[str, int]:
        """Return the number of agents in each state."""
        return self._by_state("counts")

    def _by_state(self, column: str) -> dict[str, int]:
        numbers = self._columns[column].tolist()
        return dict(zip(map(state_text, self.unit.layout.states), numbers, strict=True))

    # The log

    def _tell(self) -> None:
        """Write the events of compiled code."""
        columns = self._columns
        count = int(columns.run["told"])
        columns.run["told"] = 0
        logger = active_logger(self.logger)
        if not count or logger is None:
            return

        events = columns["events"][:count]
        order = range(count)
        if self.unit.is_apart and type(self._world).order != "listed":
            # turns in the order of the list, told in that of the places
            order = np.argsort(events["place"], kind="stable").tolist()
        told = [_Event(*event) for event in events.tolist()]
        announce = announcer(self.logger)
        for number in order:
            self._tell_one(logger, announce, number, told[number])

    def _tell_one(
        self, logger: Any, announce: Callable[..., None], number: int, event: Any
    ) -> None:
        layout, at = self.unit.layout, self._rows.at
        about = at(event.context) if event.context >= 0 else self._about
        trigger = layout.triggers[event.trigger]
        agent_id = self._rows.id_of(event.agent)
        first, then = layout.states[event.first], layout.states[event.then]
        if event.kind == T.TRANSITION:
            frame = transition_frame(
                self._kind.definition.name, state_text(first), state_text(then), trigger
            )
            keys = {"ticks_in_state": event.dwell, "context": identify(about)}
            tell = getattr(type(logger), "_prism_tell", tell_whole)
            tell(logger, TRANSITION, agent_id, frame, keys)
            return

        begin = number * self._columns.states
        numbers = self._columns["options"][begin : begin + max(event.options, 1)].tolist()
        if event.kind == T.DISCARDED:
            report_warning(
                self.logger,
                ANSWER_DISCARDED,
                chart=self._kind.definition.name,
                agent_id=agent_id,
                trigger=trigger,
                asked_in=state_text(first),
                now_in=state_text(layout.states[numbers[0]]),
                chosen=state_text(then),
                reason=_REASONS[event.reason],
            )
        else:
            chances = self._columns["chances"][begin : begin + event.options].tolist()
            options = [layout.states[each] for each in numbers]
            rounded = {
                state_text(option): round(chance, 6)
                for option, chance in zip(options, chances, strict=True)
            }
            asked = Asked(at(event.agent), first, trigger, options, about)
            announce(asked, then, "policy", how={"reason": None, "probabilities": rounded})

    async def close(self) -> None:
        """End the thread of compiled code, if there is one."""
        if self._apart is not None:
            self._apart.close()

    # Keeping

    def snapshot(self, code: Encoder) -> dict[str, Any]:
        """Return the agents' states and fields, in the form that is kept for objects."""
        columns, rows = self._columns, self._rows
        texts = [state.value for state in self.unit.layout.states]
        kept = {
            "ids": [rows.id_of(place) for place in range(columns.size)],
            "states": [texts[number] for number in columns["state"].tolist()],
            "ticks": (self.host.ticks - columns.agents["since"]).tolist(),
            **self.held(code)[0],
        }
        return {"kinds": [kept]}

    def held(self, code: Encoder) -> list[dict[str, Any]]:
        """Return the agents' fields, in the form that is kept for objects."""
        fields = {
            name: self._shown(name, code)
            for name, each in self._kind.cls.fields.items()
            if name not in Agent.fields and each.declared.kept
        }
        return [{"inboxes": [], "fields": fields}]

    def _shown(self, name: str, code: Encoder) -> Any:
        """Return the values of a field as plain data."""
        columns, stored = self._columns, self.unit.layout.fields.get(name)
        if stored is None:
            return code.column(range(columns.size), self._rows.others[name].__getitem__, name)
        if stored.type.options:
            coded = [code.value(option) for option in stored.type.options]
            return [coded[number] for number in columns.agents[stored.name].tolist()]
        values = columns.values(stored)
        if stored.type is FLOAT and not np.isfinite(columns.agents[stored.name]).all():
            return list(map(code.value, values))
        return values

    def restore(self, snapshot: Mapping[str, Any], code: Decoder) -> None:
        """Restore the agents from the snapshot of another run.

        Raises:
            SimulationError: If the snapshot is of another population.
        """
        columns, rows, layout = self._columns, self._rows, self.unit.layout
        kept = snapshot["kinds"][0]
        if kept["ids"] != [rows.id_of(place) for place in range(columns.size)]:
            raise SimulationError(
                "the run to resume has different agents: give the same population"
            )

        numbers = {state.value: number for number, state in enumerate(layout.states)}
        columns["state"][:] = [numbers[text] for text in kept["states"]]
        columns.agents["since"][:] = self.host.ticks - np.array(kept["ticks"], np.int64)
        columns["counts"][:] = np.bincount(columns["state"], minlength=columns.states)
        for name, column in kept["fields"].items():
            self._keep(name, map(code.value, column), name)
        self._set_due(self.host.ticks)
