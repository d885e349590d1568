"""The console script `tandem`: the program that comes with the package."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "tandem"
    os.execv(program, [sys.argv[0], *sys.argv[1:]])
