"""What `make docs` adds to Sphinx: the reference, the search index, llms.txt."""
