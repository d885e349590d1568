"""Policies as files, rules, texts and results of searches; errors name what was given."""

import dense
import pytest

import tandem_train as tt
from tandem_train import optim

SETTINGS = {"loss": tt.loss.mse("y", "t"), "optimizer": optim.SGD(lr=0.1)}
GPU = ["gpu=emulated:0,memory=64MiB"]
GOOD, WRONG = tt.rule("**", on="emulated:0"), tt.rule("nothing", on="cpu")
TEXT = """policy = 1
rules = [
  { at = "**", on = "emulated:0" },
  { at = "nothing", on = "cpu" },
]
"""


def place_of(function):
    """File and line of the one mistake, which the text names, too."""
    with pytest.raises(tt.Error) as error:
        function()
    (found,) = error.value.diagnostics
    assert f"{found.file}:{found.line}" in str(error.value) and "tandem-" not in str(error.value)
    return found.file, found.line


def test_all_kinds_of_policies_place_alike(dense_model, tmp_path):
    text = "policy = 1\nrules = [ { at = \"**\", on = \"emulated:0\" } ]\n"
    (tmp_path / "policy.toml").write_text(text)
    losses = {
        kind: tt.Session(dense_model, 8, policy=policy, **SETTINGS).step(dense.batch(0))
        for kind, policy in {
            "path": tmp_path / "policy.toml", "text": text, "rule": GOOD, "rules": [GOOD],
            "rule as text": ["{ at = \"**\", on = \"emulated:0\" }"],
        }.items()
    }  # fmt: skip
    assert len(set(losses.values())) == 1, losses
    plans = {tt.plan(dense_model, policy, bind={"batch": 8}).text for policy in (str(tmp_path / "policy.toml"), [GOOD])}
    assert len(plans) == 1


def test_errors_of_a_session_name_the_policy(dense_model, tmp_path):
    def session(policy):
        return lambda: tt.Session(dense_model, 8, policy=policy, **SETTINGS)

    assert place_of(session([GOOD, WRONG])) == ("<policy>", 2)
    assert place_of(session(WRONG)) == ("<policy>", 1)
    assert place_of(session([GOOD, "{ at = \"**\", on = \"cpuu\" }"])) == ("<policy>", 2)
    assert place_of(session(TEXT)) == ("<policy>", 4)
    (tmp_path / "mine.toml").write_text(TEXT)
    assert place_of(session(tmp_path / "mine.toml")) == (str(tmp_path / "mine.toml"), 4)


def explained(model, policy="", **options):
    return tt.explain(model, "r_node", policy, **options)


def searched(model, policy="", **options):
    return tt.auto(model, policy, devices=GPU, budgets={"gpu": "1MiB"}, **options)


@pytest.mark.parametrize("function", [tt.plan, explained, searched])
def test_errors_of_questions_name_the_policy(dense_model, function):
    assert place_of(lambda: function(dense_model, [GOOD, WRONG], bind={"batch": 8})) == ("<policy>", 2)
    assert place_of(lambda: function(dense_model, TEXT, bind={"batch": 8})) == ("<policy>", 4)
    assert place_of(lambda: function(dense_model, place=[WRONG], bind={"batch": 8})) == ("place", 1)


def test_errors_of_a_run_name_the_policy(digits):
    def run(policy, **options):
        return lambda: tt.Trainer(digits / "train.toml", policy=policy, **options)

    assert place_of(run([GOOD, WRONG])) == ("<policy>", 2)
    assert place_of(run([GOOD], place=[GOOD, WRONG])) == ("place", 2)
    assert place_of(run(TEXT)) == ("<policy>", 4)


def test_a_search_is_a_policy(digits):
    found = tt.auto(digits / "train.toml", devices=GPU, budgets={"gpu": "1MiB"}, most_plans=5)
    assert "tandem-" not in found.text and found.data["file"] == "<policy>" and "<policy>" in found.text
    assert tt.plan(digits / "train.toml", found, devices=GPU).fits
    keys = {"steps": 3, "epochs": 1, "settings": {"optimizer.schedule": {"kind": "constant"}}}
    placed = tt.train(digits / "train.toml", policy=found, devices=GPU, **keys)
    assert placed.loss == pytest.approx(tt.train(digits / "train.toml", **keys).loss, rel=1e-4)


def test_rules_are_kept_by_a_run_that_is_resumed(digits):
    keys = {"epochs": 1, "settings": {"optimizer.schedule": {"kind": "constant"}}}

    class Stop(tt.Callback):
        def on_step(self, progress):
            trainer.stop()

    trainer = tt.Trainer(
        digits / "train.toml", {"optimizer.schedule": {"kind": "constant"}}, epochs=1, policy=[tt.rule("**", on="gpu")],
        devices=GPU, callbacks=[Stop()],
    )  # fmt: skip
    result = trainer.run()
    assert result.interrupted
    resumed = tt.train(digits / "train.toml", resume=True, run_dir=result.run_dir)
    assert resumed.loss == tt.train(digits / "train.toml", policy=[tt.rule("**", on="gpu")], devices=GPU, **keys).loss


def test_errors_of_a_module_name_the_module(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    net = torch.nn.Linear(4, 3)

    def session(**options):
        return tt.from_torch(
            net, torch.zeros(2, 4), inputs=["x"], outputs=["y"], batch_size=4, optimizer=optim.SGD(lr=0.1), **options
        )

    with pytest.raises(tt.Error) as error:
        session(loss=tt.loss.mse("z", "t"))
    assert "tandem-" not in str(error.value)
    assert session(loss=tt.loss.mse("y", "t"), file=tmp_path / "kept.onnx").steps == 0
    assert tt.plan(tmp_path / "kept.onnx", [tt.rule("**", on="emulated:0")], bind={"batch": 4}).fits
