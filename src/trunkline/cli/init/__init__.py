"""Project templates of `trunkline init`, and the code that fills them in."""
