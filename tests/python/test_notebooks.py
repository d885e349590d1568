"""What notebooks show: fragments of HTML in which no name becomes an element."""

import html.parser

import dense
from small_model import dense_network

import tandem_train as tt

VOID = {"img", "br", "input"}
KNOWN = set("div style p b span table thead tbody tr th td details summary code pre figure figcaption h3 i caption".split())
HOSTILE = "<img src=x onerror=alert(1)>&\"'"
SHORT = {"epochs": 1, "steps": 8, "optimizer.schedule": {"kind": "constant"}}


class Fragment(html.parser.HTMLParser):
    """Checks that every element is known and closed, and collects the texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag in KNOWN, tag
        assert all(name in ("class", "style", "scope") for name, _ in attributes)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] != "style":
            self.texts.append(data)


def texts_of(result):
    return Fragment(result._repr_html_()).texts


def test_plans_explanations_and_searches(digits):
    config, policy = digits / "train.toml", digits / "policy.toml"
    plan = texts_of(tt.plan(config, policy))
    assert "Fits." in plan and "emulated:0" in plan and "The largest copies" in plan
    tight = texts_of(tt.plan(config, policy, devices=["gpu=emulated:0,memory=100KiB"]))
    assert "Does not fit." in tight and any(text.startswith("{ at = ") for text in tight)
    assert "policy.toml" in " ".join(texts_of(tt.explain(config, "fc1:weight", policy)))
    found = tt.auto(config, devices=["gpu=emulated:0,memory=64MiB"], budgets={"gpu": "1MiB"}, most_plans=5)
    assert "found" in texts_of(found)
    assert tt.inspect(digits / "model.onnx")._repr_html_() is None  # notebooks show the text


def test_runs_and_evaluations(digits):
    metrics = ["accuracy", "confusion", {"kind": "f1", "average": "none"}]
    keys = {**SHORT, "eval": {"every": "8 steps", "metrics": metrics}}
    result = tt.train(digits / "train.toml", settings=keys, run_dir=digits / HOSTILE)
    texts = texts_of(result)
    assert any(HOSTILE in text for text in texts) and "held-out accuracy" in texts
    assert {"confusion", "f1_none"} <= set(texts)
    assert [texts_of(table) for table in result.tables]
    assert result == result and "html" not in repr(result)
    evaluation = texts_of(tt.evaluate(result.run_dir))
    assert any(HOSTILE in text for text in evaluation) and {"accuracy", "confusion", "360 samples"} <= set(evaluation)


def test_names_of_a_hostile_model(tmp_path):
    hostile = f"</td></style></div>{HOSTILE}"
    model = dense_network(tmp_path / "hostile.onnx", dense.weights(), hidden=hostile)
    rules = [tt.rule("**", on="gpu", why=HOSTILE), tt.rule("**", op="Relu", on="cpu")]
    plan = tt.plan(model, rules, bind={"batch": 4}, devices=["gpu=emulated:0,memory=64MiB"])
    assert HOSTILE in plan.text and any(HOSTILE in text for text in texts_of(plan))
    explained = tt.explain(model, "**", rules, bind={"batch": 4}, devices=["gpu=emulated:0,memory=64MiB"])
    assert "<policy>:1" in " ".join(texts_of(explained))
