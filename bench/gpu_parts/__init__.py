"""The parts of `bench/gpu.py`, a module each.

A part has `compile_part(folder)`, which writes its libraries (NAME.so), and `run_part(folder)`, which prints a line and
gives a row of the report for each of them; a row with `right` false fails the run.
"""
