"""The interactive session of `trunkline shell`: reads commands, runs them on one connection."""
