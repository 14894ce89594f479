"""Mutation testing: small faults are put into copies of the source, and tests have to fail.

    python -m tools.mutants --sample 100 --seed 1 --package server

* `operators` finds the faults that a source text can be given.
* `draw` picks a sample of them, and knows which ones are equivalent to the source.
* `slots` makes copies of the tree, each with an interpreter of its own, and runs tests there.
* `baseline` runs each suite once on the clean source and records which test executes which line.
* `probe` is the pytest plugin of those runs.
* `hunt` takes each mutant through the tests, the quickest first.
* `report` prints what was killed and what survived.
"""
