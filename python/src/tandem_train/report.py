"""What the tools return: the program's text with the same facts as data."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from tandem_train._arrays import Array
from tandem_train._paths import Path


class Report:
    """`text` is for people, `data` the parsed JSON of docs/formats.md."""

    def __init__(self, text: str, json_text: str, warnings: list[str], html: str = "") -> None:
        self.text = text
        self.data: Any = json.loads(json_text) if json_text else None
        self.warnings = warnings
        self._html = html

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:  # what notebooks show; None: the text
        return self._html or None


class Plan(Report):
    """A compiled step under a policy, without its memory."""

    def __init__(self, text: str, json_text: str, warnings: list[str], fits: bool, html: str) -> None:
        super().__init__(text, json_text, warnings, html)
        self.fits = fits


class FoundPolicy(Report):
    """A placement that a search has found. `policy`: the text of its policy.toml."""

    def __init__(self, text: str, json_text: str, warnings: list[str], policy: str, html: str) -> None:
        super().__init__(text, json_text, warnings, html)
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
