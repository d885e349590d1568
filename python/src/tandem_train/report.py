"""What the tools return: the program's text with the same facts as data."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from tandem_train._arrays import Array
from tandem_train._paths import Path


class Report:
    """`text` is for people, `data` the parsed JSON of docs/formats.md."""

    def __init__(self, text: str, json_text: str, warnings: list[str]) -> None:
        self.text = text
        self.data: Any = json.loads(json_text) if json_text else None
        self.warnings = warnings

    def __repr__(self) -> str:
        return self.text


class Plan(Report):
    """A compiled step under a policy, without its memory."""

    def __init__(self, text: str, json_text: str, warnings: list[str], fits: bool) -> None:
        super().__init__(text, json_text, warnings)
        self.fits = fits


class FoundPolicy(Report):
    """A placement that a search has found. `policy`: the text of its policy.toml."""

    def __init__(self, text: str, json_text: str, warnings: list[str], policy: str) -> None:
        super().__init__(text, json_text, warnings)
        self.policy = policy

    def save(self, path: Path) -> None:
        pathlib.Path(path).write_text(self.policy, encoding="utf-8")


class Predictions(Report):
    """Predictions for rows of data. `arrays`: by name of the output; empty where they went to a file."""

    def __init__(self, text: str, json_text: str, warnings: list[str], arrays: dict[str, Array]) -> None:
        super().__init__(text, json_text, warnings)
        self.arrays = arrays


class Exported(Report):
    """A file that was written."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, json.dumps({"file": file, "text": text}), [])
        self.file = file
