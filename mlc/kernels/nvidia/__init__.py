"""NVIDIA kernel templates. A template obeys the `mlc.schedule` attribute of its kernel and decides nothing itself."""

ALIGNMENT = 16
"""Bytes that every tensor's address is a multiple of: what the widest load of a thread asks for."""
