"""Compiled programs of learners and agents: a tree as words, one form, one builder, one loop over rows."""
