"""One event, one agent: choosing a transition and committing it."""
