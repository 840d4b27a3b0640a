"""One rumour, written as a user of each library would: the same rules, on the same network."""
