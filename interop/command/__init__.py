"""Every verb of the command `trunkline`, with servers written elsewhere."""
