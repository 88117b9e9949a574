"""Measuring schedules: what is explored, how it is timed, and the file that remembers it."""
