"""Make a virtual environment with the library, editable, and a list of pinned packages.

    python3 tools/environment.py .venv requirements/dev.txt [WITHOUT_DEPENDENCIES]

Packages of a second list are installed without what they depend on.

Runs with any Python, so that an old one gets an error message.
"""

import os
import subprocess
import sys
import venv

OLDEST = (3, 11)


def main() -> None:
    """Make the environment named on the command line."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        wanted = ".".join(map(str, OLDEST))
        advice = f"Try: make PYTHON=python{wanted}"
        sys.exit(f"Trunkline needs Python {wanted} or newer; this is {found}. {advice}")
    folder, requirements, *without_dependencies = sys.argv[1:]
    print(f"Setting up {folder} (once) ...", flush=True)
    venv.EnvBuilder(with_pip=True, upgrade_deps=False).create(folder)
    python = os.path.join(folder, "Scripts" if os.name == "nt" else "bin", "python")
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "-r", requirements, "-e", "."], check=True)
    for each in without_dependencies:
        subprocess.run([*command, "--no-deps", "-r", each], check=True)


if __name__ == "__main__":
    main()
