"""Count what shows how a source tree is laid out and written.

    python -m tools.census                   print the counts and what is over a limit
    python -m tools.census --against REF     print a column for a commit beside this tree

* `layout` counts folders, modules, lines, and the public names of classes.
* `code` counts what a reader stumbles over: long functions, modules that import many others,
  private attributes of other objects, packages that import their own parent, literal statuses.
"""
