"""Benchmarks: what the library claims to be fast at, measured against named rivals."""
