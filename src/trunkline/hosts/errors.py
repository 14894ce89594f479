"""What can be wrong with the configuration of a host."""

from __future__ import annotations

from ..errors import TrunklineError, visible

__all__ = ["HostConfigError", "TextEditError", "UnknownHost"]


class TextEditError(ValueError):
    """The text of a configuration file cannot be read or edited."""


class HostConfigError(TrunklineError):
    """A configuration file of a host cannot be read, or an entry in it cannot be used.

    The text names the file, the entry and the member. Values of `env` and of headers are never
    quoted.
    """

    def __init__(self, problem: str, *, file: str = "", entry: str = "", key: str = "") -> None:
        # Names of variables, headers and entries are in them, which a file chooses.
        self.problem = visible(problem)
        super().__init__(self.problem)
        self.file = file
        self.entry = entry
        self.key = visible(key)

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        if self.entry:
            place.append(f"entry {self.entry!r}")
        if self.key:
            place.append(self.key)
        return visible(": ".join([", ".join(place), self.problem] if place else [self.problem]))

    def __reduce__(self) -> tuple[object, ...]:
        # Pickling an exception would lose the keyword-only facts.
        return _restore, (type(self), self.problem, self.file, self.entry, self.key)


class UnknownHost(HostConfigError):
    """No host has this name."""


def _restore(
    kind: type[HostConfigError], problem: str, file: str, entry: str, key: str
) -> HostConfigError:
    return kind(problem, file=file, entry=entry, key=key)
