"""Real hosts, such as Claude Code, with a server of Trunkline and a model that follows a script."""
