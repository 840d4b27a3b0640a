"""Reading a model's reply, and refusing what it must not say."""
