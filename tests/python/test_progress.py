"""Progress bars: where they are shown, what they say, and that they never cost a step."""

import io
import sys

import pytest

import tandem_train as tt
from tandem_train import _progress

SHORT = {"epochs": 1, "eval.every": "20 steps", "log.every": "5 steps", "optimizer.schedule": {"kind": "constant"}}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def without_tqdm(monkeypatch):
    find = _progress.importlib.util.find_spec
    monkeypatch.setattr(_progress.importlib.util, "find_spec", lambda name: None if name == "tqdm" else find(name))


@pytest.fixture
def fake_tqdm(tmp_path, monkeypatch):
    """A package of this name that notes what is done with its bars."""
    (tmp_path / "packages" / "tqdm").mkdir(parents=True)
    (tmp_path / "packages" / "tqdm" / "__init__.py").write_text("")
    (tmp_path / "packages" / "tqdm" / "auto.py").write_text("""
bars = []
class tqdm:
    def __init__(self, **options):
        self.options, self.shown, self.closed, self.text = options, [], False, ""
        bars.append(self)
    def set_postfix_str(self, text, refresh):
        self.text = text
    def refresh(self):
        self.shown.append((self.n, self.text))
    def close(self):
        self.closed = True
""")
    for name in [name for name in sys.modules if name.partition(".")[0] == "tqdm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    yield lambda: __import__("tqdm.auto").auto.bars
    for name in [name for name in sys.modules if name.partition(".")[0] == "tqdm"]:
        sys.modules.pop(name)


def test_nothing_is_shown_or_imported_without_a_person(digits, fake_tqdm, capfd):
    tt.train(digits / "train.toml", settings={**SHORT, "steps": 10})
    assert "tqdm" not in sys.modules
    assert capfd.readouterr() == ("", "")


def test_a_line_of_text(digits, without_tqdm, monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    result = tt.train(digits / "train.toml", settings=SHORT)
    pictures = shown.getvalue().split("\r")[1:]
    assert pictures[0].startswith("step 1/45, epoch ") and pictures[-1].startswith("step 45/45, epoch 1/1, loss ")
    assert f"accuracy {result.evaluation['accuracy']:.4g}" in pictures[-1] and pictures[-1].endswith("\n")
    assert shown.getvalue().count("\n") == 1
    shown.truncate(0)
    tt.train(digits / "train.toml", settings=SHORT, progress=False)
    assert shown.getvalue() == ""


def test_tqdm_shows_steps(digits, fake_tqdm):
    tt.Trainer(digits / "train.toml", SHORT, progress=True).run()
    (bar,) = fake_tqdm()
    assert bar.options["total"] == 45 and bar.closed
    assert bar.shown[-1][0] == 45 and "loss" in bar.shown[-1][1] and "accuracy" in bar.shown[-1][1]


def test_at_most_ten_pictures_a_second(fake_tqdm, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    bar = _progress.ProgressBar()
    for step in range(1, 1001):  # a millisecond each
        now[0] = step * 1e-3
        bar.on_step(tt.Progress(step, 1000, 0.5, 1, False, {"loss": 1.0}, {}, 1.0, 1.0, 1.0, 0.0))
    bar.close()
    (made,) = fake_tqdm()
    steps = [step for step, _ in made.shown]
    assert steps[0] == 1 and steps[-1] == 1000 and 10 <= len(steps) <= 11
    assert all(after - before >= 100 for before, after in zip(steps[:-1], steps[1:-1]))


def test_a_failing_callback_closes_the_bar(digits, fake_tqdm):
    class Failing(tt.Callback):
        def on_step(self, progress):
            raise LookupError

    with pytest.raises(LookupError):
        tt.train(digits / "train.toml", settings=SHORT, progress=True, callbacks=[Failing()])
    assert fake_tqdm()[0].closed


def test_a_notebook_counts_as_a_person(monkeypatch):
    class Shell:
        @staticmethod
        def get_ipython():
            return object()

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not _progress.is_interactive()
    monkeypatch.setitem(sys.modules, "IPython", Shell)
    assert _progress.is_interactive()
    monkeypatch.setattr(Shell, "get_ipython", staticmethod(lambda: None))
    assert not _progress.is_interactive()
    monkeypatch.setattr(sys, "stderr", None)
    assert not _progress.is_interactive()
