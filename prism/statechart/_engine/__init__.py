"""One event, one agent: choosing a transition and committing it.

A fire is in two modules: `firing` chooses the transition and runs its actions, and `writing` leaves
state, ticks and a record in the agent. In charts with composites `rows`
and `running` choose, also what a tick makes. `driving` has what else moves agents:
beginning, ticks and decisions. `machine` adapts the package transitions, and `adopted` an
application's own Machine.
"""
