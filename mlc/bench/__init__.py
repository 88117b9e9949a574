"""Benchmarks: engines in processes of their own, timed in turn, beside what the machine can do."""
