"""Small servers with the same tools, one file for each library, and a driver that is nobody's.

| tool | does |
|---|---|
| `echo` | returns the text it is given; a coroutine |
| `plain` | the same as a plain function, which every library here puts on a thread |
| `structured` | returns the text and its length as a typed object |
| `progress` | reports three steps, then returns the text |
| `hold` | returns the text once `release` was called; a coroutine |
| `release` | lets every `hold` go |

Each file is a module with `make(*tools)`, and a program that serves those tools on stdio:
`python bench/servers/ours.py echo plain`.
"""
