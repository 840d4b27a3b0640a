"""A run's log as tables: SQL views over its lines, read by DuckDB.

`read_log` opens logs, each an argument of its own. ``log.table("states")`` is a table,
``log.sql("select ...")`` the rows of a query; both are relations of DuckDB, which print themselves
and become pandas (``.df()``), Arrow (``.to_arrow_table()``) or polars
(``polars.DataFrame(relation)``) by one call.
``log.runs`` describes the runs, ``log.notes`` what is wrong with their files.

===================== ==========================================================================
``runs``              each run, as its first line describes it
``states``            agents in each state at the end of every tick; nested: ``states_at(depth)``
``transitions``       every kind of transition: count, and probability among those out of its state
``dwell``             ticks that agents stay in each state; in queries, ``visits`` has each
``decisions``         asked, answered, fallbacks, requests, tokens, latency, entropy
``costs``             requests, tokens and seconds of each model, in decisions and texts
``faults``            guards and actions that raised, answers that were not used
``stuck``             events that made no transition, why, and whether agents are still there
``stuck_agents``      who is there since when, and the last event that did not move it
``agents``            every agent: its fields, where it is, and how much it did
``agent(id)``         everything that one agent did, in order
``messages``          what agents said to each other
``cascades``          size, depth, breadth, structural virality and lifetime of every cascade
``participation``     who is silent, writes or creates, and the top 1 %'s share of all writing
``measures``          the measures of a world, round by round
``arms``              the arms of experiments, compared
``world``             the number of events of each kind that a world logged itself
``run_measures``      each run as one row of numbers; ``measured_in(first, last)`` by round
``diff``              where the second of two logs first differs from the first
===================== ==========================================================================

The views are in ``tables.sql`` beside this module, with the rule and the source of each: copy one
into a query to count otherwise. Needs the extra ``analysis``: ``pip install '.[analysis]'`` in a
checkout.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.analysis._check import Conformance, check_log
    from prism.analysis._log import Log, Note, Run, read_log, rows_of
else:
    __getattr__, __dir__ = lazy_names(__name__, extra="analysis")

__all__ = ["Conformance", "Log", "Note", "Run", "check_log", "read_log", "rows_of"]
