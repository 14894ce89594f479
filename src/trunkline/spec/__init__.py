"""The specifications as rows: consulted by the whole library, calling none of it."""
