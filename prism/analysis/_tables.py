"""The tables: the SQL of each, what it reads, and which of its columns say something."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import duckdb
import orjson

from prism.analysis.loading import column_types, quoted, script
from prism.errors import InputError
from prism.statechart.names import did_you_mean

_OF_EVENTS = ("visits", "decided", "wrong", "refused", "assigned", "messages", "happened")
"""Views with a row for each event of a kind, of which most queries need few."""

_KEYS_AS_COLUMNS = {
    **{"agents": "attributes", "run_measures": "measures", "measured_in": "measures"},
    "events_of": "keys",
}
"""The columns of objects whose keys become columns."""

_OF_FEED = (
    "archetype", "interests", "following", "weighed", "posts", "replies", "reshares", "likes",
    "replies_received", "reshares_received", "likes_received",
)  # fmt: skip
_OF_ONE = {"agent": "agent_id", "events_of": "event"}
_BY_CHART = ("states", "transitions", "dwell", "stuck", "agent")

_UNPACED = "create table paced as select null as run, null as line, null as rounds_in_state limit 0"
"""Steps are followed for their lengths only where events happen at rates."""

_PARAMETERS = (
    "(select run, if(json_type(parameters) = 'OBJECT', parameters, '{}') as by_name from runs)"
)

_STATEMENT = re.compile(r"^create (?:view|macro) (\w+)", re.MULTILINE)
_USED = re.compile(r"\b(?:from|join)\s+(?:lateral\s+)?(\w+)|(\w+)\(|\('(\w+)'\)", re.IGNORECASE)


@cache
def statements() -> Mapping[str, str]:
    """Return the statement that makes each view and macro, by its name."""
    return {
        name: text
        for each in ("helpers.sql", "tables.sql", "levels.sql", "notes.sql")
        for name, text in _statements_of(each).items()
    }


@cache
def _statements_of(name: str) -> Mapping[str, str]:
    texts = [statement.query for statement in duckdb.extract_statements(script(name))]
    return {_STATEMENT.search(text)[1]: text for text in texts}  # type: ignore[index]


@cache
def computed() -> frozenset[str]:
    """Return the views whose rows are computed once, since a table is read faster than a view."""
    views = {name for name, text in statements().items() if f"create view {name}" in text}
    return frozenset(views.difference(_OF_EVENTS))


@cache
def needed(name: str, follows_lengths: bool) -> tuple[str, ...]:
    """Return a view or macro, after all that it reads, directly or not; nothing for another name.

    Args:
        name: The name.
        follows_lengths: Whether ``paced`` needs the steps.
    """
    ordered: dict[str, None] = {}

    def visit(each: str) -> None:
        if each in ordered or each in waiting or each not in statements():
            return
        waiting.add(each)
        text = re.sub(r"--.*", "", statements()[each])
        for used in () if each == "paced" and not follows_lengths else _USED.findall(text):
            for other in used:
                visit(other)
        ordered[each] = None

    waiting: set[str] = set()
    visit(name)
    return tuple(ordered)


def table_names() -> list[str]:
    """Return the names of the tables."""
    hidden = {"dwell_of", *_statements_of("helpers.sql"), *_statements_of("notes.sql")}
    return [name for name in statements() if name not in hidden]


class Tables:
    """The tables of a database with the view ``events``, each made once something reads it.

    Args:
        connection: The database.
        are_several: Whether it has the events of several runs.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, are_several: bool) -> None:
        self._connection = connection
        self._are_several = are_several
        self._made: set[str] = set()

    def is_made(self, name: str) -> bool:
        """Return whether a view or macro is made."""
        return name in self._made

    def make(self, name: str) -> None:
        """Make a view or macro, after those that it reads."""
        for each in needed(name, self._follows_lengths(name)):
            if each in self._made:
                continue
            self._made.add(each)
            text = statements()[each]
            if each in computed():
                text = text.replace(f"create view {each}", f"create table {each}", 1)
            if each == "paced" and not self._facts["rates"]:
                text = _UNPACED
            # what is kept of a log that has grown is made anew
            self._connection.execute(text.replace("create", "create or replace", 1))

    def _follows_lengths(self, name: str) -> bool:
        """Return whether a view needs steps for their lengths in time."""
        return "paced" not in needed(name, True) or bool(self._facts["rates"])

    def forget(self) -> None:
        """Have what was computed be computed again."""
        self._made -= computed()
        self.__dict__.pop("_facts", None)

    def rows(self, query: str, *needs: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, after making the views that it needs."""
        for name in needs:
            self.make(name)
        return self._connection.execute(query).fetchall()

    def relation(self, name: str, arguments: Sequence[object]) -> duckdb.DuckDBPyRelation:
        """Return a table with the columns that say something; see `Log.table`.

        Raises:
            InputError: If there is no such table, agent or event, or if it takes other arguments.
        """
        if name not in table_names():
            raise InputError(f"there is no table {name!r}{did_you_mean(name, table_names())}")
        takes = re.search(r"create macro \w+\((.*)\)", statements()[name])
        names = takes[1].split(", ") if takes else []
        if len(arguments) != len(names):
            use = f"{name}({', '.join(names)})".removesuffix("()")
            raise InputError(f"the table {name!r} must be used as {use}")
        if name == "diff" and (number := self.rows("select count(*) from logs")[0][0]) != 2:
            raise InputError(f"diff compares two logs, not {number}")
        if name in _OF_ONE:
            self._require(_OF_ONE[name], arguments[0])
        if name.endswith("_by"):
            _require_columns(name, arguments[0])
        self.make(name)
        source = f"{name}({', '.join(map(_literal, arguments))})" if arguments else name
        columns = self._connection.sql(f"from {source}").columns
        hidden = self._hidden(name, columns)
        if name == "events_of":
            hidden |= self._empty(source, columns) - {"keys"}
        chosen = {each: f't."{each}"' for each in columns if each not in hidden}
        if (objects := _KEYS_AS_COLUMNS.get(name)) is not None:
            chosen[objects] = self._keys_as_columns(source, objects, columns)
        if "run" in chosen:
            chosen["run"] = "t.run::varchar as run"
        beside, joined = self._parameters(columns)
        first, *others = chosen.values()
        listed = ", ".join(filter(None, (first, *beside, *others)))
        return self._connection.sql(f"select {listed} from {source} t {joined}")

    def _require(self, column: str, value: object) -> None:
        """Refuse an agent or an event that the logs have not."""
        query = f"select count(*) from events where {column} = ?"
        if not self._connection.execute(query, [value]).fetchall()[0][0]:
            raise InputError(f"no {column.removesuffix('_id')} {value!r} in the log")

    def _hidden(self, name: str, columns: Sequence[str]) -> set[str]:
        """Return the columns that say nothing about these logs."""
        facts = self._facts
        hidden = set() if self._are_several else {"run"}
        if name == "agents":
            hidden |= {"chart"} if facts["has_feed"] else {*_OF_FEED}
        elif facts["charts"] < 2 and name.partition("_")[0] in _BY_CHART:
            hidden.add("chart")
        units = facts["units"]
        if units == ["time"] and name.partition("_")[0] in ("states", "stuck", "agent"):
            hidden |= {"round", "tick"}
        if name.startswith("states"):
            hidden |= {"time", "tick"} - {*units}
        has = {"arm": facts["assigned"] or name == "arms", "rounds_in_state": facts["rates"]}
        has["parent"] = facts["born"]
        hidden |= {column for column, is_there in has.items() if not is_there}
        return hidden & {*columns}

    @cached_property
    def _facts(self) -> Mapping[str, Any]:
        query = (
            "select coalesce(bool_or(has_feed), true), coalesce(max(charts_seen), 0), "
            "coalesce(list(distinct unit), ['tick']), bool_or(seconds_per_round is not null), "
            "(select count(*) > 0 from events where event = 'treatment.assigned'), "
            "(select count(parent) > 0 from events where event = 'agent.joined') from runs"
        )
        names = ("has_feed", "charts", "units", "rates", "assigned", "born")
        return dict(zip(names, self.rows(query, "runs")[0], strict=True))

    def _empty(self, source: str, columns: Sequence[str]) -> set[str]:
        """Return the columns without any value."""
        counts = ", ".join(f"count({_name(each)})" for each in columns)
        ((*numbers,),) = self.rows(f"select {counts} from {source}")
        return {name for name, number in zip(columns, numbers, strict=True) if not number}

    # Keys of objects

    def _keys_as_columns(self, source: str, column: str, columns: Sequence[str]) -> str:
        """Return the keys of a column of objects as columns."""
        parts = []
        for name, kind in self._kinds(source, column).items():
            if column == "keys" and name in columns:
                continue
            label = f"{column[:-1]}_{name}" if name in columns else name
            parts.append(f"{_value_at(f't.{_name(column)}', name, kind)} as {_name(label)}")
        return ", ".join(parts)

    def _parameters(self, columns: Sequence[str]) -> tuple[list[str], str]:
        """Return the columns of the parameters that tell runs apart, and the join for them."""
        if not self._are_several or "run" not in columns:
            return [], ""
        rows = self.rows(f"select by_name from {_PARAMETERS} order by run", "runs")
        every = [orjson.loads(by_name) for (by_name,) in rows]
        kinds = self._kinds(_PARAMETERS, "by_name")
        listed = []
        for name in _apart(every):
            label = f"parameter_{name}" if name in columns else name
            listed.append(f"{_value_at('by_name', name, kinds[name])} as {_name(label)}")
        return listed, f"left join {_PARAMETERS} as parameters using (run)" if listed else ""

    def _kinds(self, source: str, column: str) -> dict[str, Any]:
        """Return the keys of a column of objects, with the kinds of their values."""
        ((structure,),) = self.rows(f"select json_group_structure({_name(column)}) from {source}")
        kinds = orjson.loads(structure or "{}")
        return kinds if isinstance(kinds, dict) else {}


def _require_columns(name: str, names: object) -> None:
    """Refuse to group by what is no column."""
    others = {*names} - {*column_types(), "what"} if isinstance(names, Sequence) else set()
    if others:
        raise InputError(
            f"{name} cannot group by {', '.join(sorted(map(str, others)))}: use columns of events, "
            "such as state, model, source, reason, host or round"
        )


def _literal(value: object) -> str:
    if isinstance(value, str):
        return f"'{quoted(value)}'"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_literal, value))}]"
    return "null" if value is None else str(value)


def _value_at(column: str, key: str, kind: object) -> str:
    """Return the value of a key of a column of objects, of the kind that DuckDB finds in them."""
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    path = quoted(f'$."{escaped}"')
    value = f"json_extract_string({column}, '{path}')"
    # objects, lists and keys of several kinds stay texts
    if not isinstance(kind, str) or kind in ("JSON", "NULL", "VARCHAR"):
        return value
    return f"try_cast({value} as {kind.removeprefix('U')})"


def _name(text: str) -> str:
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


def _apart(every: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the parameters that distinguish runs."""
    names = dict.fromkeys(name for each in every for name in each)
    return [name for name in names if len({repr(each.get(name)) for each in every}) > 1]
