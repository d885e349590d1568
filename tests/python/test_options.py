"""Functions that make tables of train.toml: what they make, and what the library says to it."""

import tomllib

import dense
import numpy
import pytest

import tandem_train as tt
from tandem_train import optim, schedule
from tandem_train._policy import policy_text
from tandem_train._toml import settings_of, toml_value


def test_an_optimizer_is_the_table_of_its_keys():
    adamw = optim.AdamW(lr=1e-3, groups=[tt.group("**:bias", weight_decay=0)], clip_norm=1)
    assert adamw == {"kind": "adamw", "lr": 0.001, "groups": [{"at": "**:bias", "weight_decay": 0}], "clip_norm": 1}
    assert list(adamw) == ["kind", "lr", "groups", "clip_norm"]
    assert isinstance(adamw, optim.Optimizer) and repr(optim.SGD()) == "SGD(kind='sgd')"
    assert tomllib.loads("x = " + toml_value(adamw, "optimizer"))["x"]["groups"][0]["at"] == "**:bias"


def test_a_table_never_changes():
    with pytest.raises(TypeError):
        optim.SGD(lr=1)["lr"] = 2  # type: ignore[index]


def test_a_key_next_to_its_whole_table_is_refused():
    for settings in ({"optimizer.lr": 0.2, "optimizer": {"kind": "sgd"}}, {"data": {"kind": "npz"}, "data.eval.files": ["x"]}):
        with pytest.raises(tt.Error, match="next to its whole table"):
            settings_of(settings)
    assert len(settings_of({"optimizer.lr": 0.2, "optimizer.kind": "sgd", "optimizers": 1})) == 3


def test_numbers_are_steps_where_a_duration_is_due():
    assert schedule.cosine(warmup=100, final=1e-5) == {"kind": "cosine", "final": 1e-5, "warmup": "100 steps"}
    assert schedule.multistep([10, "1 epoch"])["milestones"] == ["10 steps", "1 epoch"]
    assert schedule.step(numpy.int64(5), gamma=0.5) == {"kind": "step", "step_size": "5 steps", "gamma": 0.5}


def test_one_term_or_a_list_of_terms_is_a_loss():
    term = tt.loss.softmax_cross_entropy("logits", labels="y", label_smoothing=0.1, weight=2)
    expected = {"kind": "softmax_cross_entropy", "logits": "logits", "labels": "y", "label_smoothing": 0.1, "weight": 2}
    assert term == expected
    for loss in (term, [term], {"terms": [term]}, {"terms": [expected]}):
        (setting,) = settings_of({"loss": loss})
        assert tomllib.loads(setting.replace("loss=", "loss = "))["loss"] == {"terms": [expected]}


def test_a_rule_and_a_metric():
    rule = tt.rule("**", on="gpu", why='it is "fast"')
    assert rule == {"at": "**", "on": "gpu", "why": 'it is "fast"'}
    assert tt.group("a", kind="sgd", lr=1) == {"kind": "sgd", "at": "a", "lr": 1}
    assert tomllib.loads(policy_text([rule, '{ at = "b", on = "cpu" }'])) == {
        "policy": 1,
        "rules": [rule, {"at": "b", "on": "cpu"}],
    }
    assert tt.metric.f1(average="macro", name="f") == {"kind": "f1", "average": "macro", "name": "f"}


def test_missing_and_unknown_arguments_are_refused():
    for call in (lambda: tt.loss.mse("y"), lambda: optim.SGD(0.1), lambda: schedule.step(), lambda: tt.rule()):
        with pytest.raises(TypeError):
            call()


def test_a_session_trains_by_them_as_by_plain_values(dense_model):
    plain = tt.Session(
        dense_model,
        dense.BATCH,
        **{"loss.terms": [{"kind": "mse", "predictions": "y", "targets": "t"}]},
        optimizer={
            "kind": "momentum", "lr": 0.1, "schedule": {"kind": "linear", "warmup": "2 steps"},
            "groups": [{"at": "b*", "lr": 0.05}],
        },
        steps=6,
    )  # fmt: skip
    typed = tt.Session(
        dense_model,
        dense.BATCH,
        loss=tt.loss.mse("y", targets="t"),
        optimizer=optim.Momentum(lr=0.1, schedule=schedule.linear(warmup=2), groups=[tt.group("b*", lr=0.05)]),
        steps=6,
    )
    for step in range(6):
        assert typed.step(dense.batch(step)) == plain.step(dense.batch(step))


def test_the_library_checks_them(dense_model):
    with pytest.raises(tt.Error) as error:
        tt.Session(dense_model, 8, loss=tt.loss.huber("y", "t", delta=-1), optimizer=optim.Ftrl(l1=-1, lr_powr=0))
    text = str(error.value)
    assert "delta" in text and "optimizer.l1" in text and "lr_powr" in text and "lr_power" in text


def test_a_session_takes_rules_as_its_policy(dense_model):
    settings = {"loss": tt.loss.mse("y", "t"), "optimizer": optim.SGD(lr=0.1)}
    placed = tt.Session(dense_model, 8, policy=[tt.rule("**", on="emulated:0"), tt.rule("**", state="cpu")], **settings)
    plain = tt.Session(dense_model, 8, **settings)
    for step in range(3):
        assert placed.step(dense.batch(step)) == pytest.approx(plain.step(dense.batch(step)), rel=1e-5)


def test_a_run_takes_rules_as_its_policy(digits):
    keys = {"steps": 3, "epochs": 1, "settings": {"optimizer.schedule": {"kind": "constant"}}}
    devices = ["gpu=emulated:0,memory=64MiB"]
    placed = tt.train(digits / "train.toml", policy=[tt.rule("**", on="gpu")], devices=devices, **keys)
    assert placed.loss == pytest.approx(tt.train(digits / "train.toml", **keys).loss, rel=1e-4)
    metrics = {"every": "1 epoch", "metrics": ["accuracy", tt.metric.f1(average="macro", name="f")]}
    trainer = tt.Trainer(digits / "train.toml", eval=metrics, steps=3, epochs=1)
    assert set(trainer.run().evaluation) >= {"accuracy", "f"}


def test_what_they_say_about_the_model_is_checked_at_once(dense_model):
    loss, sgd = tt.loss.mse("y", "t"), optim.SGD(lr=0.1)
    wrong = {
        "no value \"z\"": {"loss": tt.loss.mse("z", "t"), "optimizer": sgd},
        "\"nope\" matches no parameter": {"loss": loss, "optimizer": optim.SGD(lr=0.1, groups=[tt.group("nope", lr=1)])},
        "nothing to train": {"loss": loss, "optimizer": sgd, "parameters": {"freeze": [{"at": "**"}]}},
    }
    for text, keys in wrong.items():
        with pytest.raises(tt.Error, match=text.replace("*", ".")):
            tt.Session(dense_model, 8, **keys)
