"""Texts of any characters for property tests."""

from hypothesis import strategies as st

ANY = st.characters(exclude_categories=["Cs"])
"""Every character that a file in UTF-8 can hold: all but lone surrogates.

It is what `hypothesis.strategies.text` takes by default, told by category: by the name of the
encoding, the first test of a fresh checkout encodes each of a million characters, for 1.6 s.
"""
