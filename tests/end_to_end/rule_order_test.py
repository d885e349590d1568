"""The rule that the documents name counts among several rules in one list: every list of rules with a selector, each by what a training makes of it.

    python3 tests/end_to_end/rule_order_test.py build/tandem

A row is two rules for the same parameters and the sentence that says which of them counts. Both orders are trained, and so is each rule alone: the
checkpoints have to be equal to the byte where the sentence says so, and the two rules alone have to differ. Lists that `tandem config keys` has and no
row are a failure.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "check_all"))
import option_table  # noqa: E402

LAST, UNION, REFUSED = "the last one", "all of them", "none"
KEYS, POLICY = "docs/train_toml.md", "docs/policy_toml.md"
IN_ONE_LIST = (KEYS, "of rules in one list the last one that covers a parameter counts")
OTHER_HEAD = 'from = "weights.safetensors", at = "{at}", unexpected = "ignore", missing = "keep"'

# list: which rule counts, where that is written, the two rules, other keys, the narrow and the wide selector
RULES = {
    "parameters.freeze": (LAST, (KEYS, "only the last rule that covers a parameter decides"), 'at = "{at}"', 'at = "{at}", until = "2 steps"', ()),
    "parameters.load": (LAST, IN_ONE_LIST, OTHER_HEAD, OTHER_HEAD.replace("weights", "others"), ()),
    "parameters.init": (LAST, IN_ONE_LIST, 'at = "{at}", kind = "constant", value = 0.1', 'at = "{at}", kind = "constant", value = 0.2', ()),
    "parameters.head": (REFUSED, (KEYS, "two rules for one layer are refused"), 'at = "{at}", classes = 5', 'at = "{at}", classes = 4', ()),
    "parameters.lora": (LAST, (KEYS, "the last rule that covers a weight counts"), 'at = "{at}", rank = 2', 'at = "{at}", rank = 3', ()),
    "parameters.shape": (LAST, IN_ONE_LIST, 'at = "{at}", rows = 40', 'at = "{at}", rows = 48', ()),
    "parameters.storage": (LAST, IN_ONE_LIST, 'at = "{at}", kind = "split_bfloat16"', 'at = "{at}", kind = "float32"', ()),
    "parameters.fixed_rows": (UNION, (KEYS, "rows of several rules add up"), 'at = "{at}", rows = [30, 19]', 'at = "{at}", rows = [19, 24, 15]', ()),
    "optimizer.groups": (LAST, (KEYS, "the last group that covers one takes it"), 'at = "{at}", lr = 0.2', 'at = "{at}", weight_decay = 0.1', ()),
    "model.batch_norm": (LAST, (KEYS, "of which the last one that covers an operator counts"), 'at = "{at}", mode = "inference"', 'at = "{at}", mode = "train"', ()),
}
# The selectors that both rules have, and a wider one, which may stand in front of the narrow one or behind it.
SELECTORS = {"parameters.shape": ("table", "tab*"), "parameters.storage": ("table", "tab*"), "parameters.fixed_rows": ("table", "tab*"),
             "parameters.lora": ("layers.1:weight", "layers.*:weight"), "model.batch_norm": ("norm.*", "**")}
TOGETHER = {"parameters.fixed_rows": 'at = "{at}", rows = [15, 19, 24, 30]'}
# Lists whose rules are none of parameters, and where they are tested.
ELSEWHERE = {"model.random": "check_random"}


class Project:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        option_table.write_project(folder)
        values = [0.01 * i for i in range(48)]
        header = json.dumps({"head.weight": {"dtype": "F32", "shape": [3, 16], "data_offsets": [0, 192]}}).encode()
        (folder / "others.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<48f", *values))
        self.known = {}

    def call(self, *words):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr

    def train(self, *words):
        """The values of all checkpoints."""
        if words not in self.known:
            run = self.folder / "run"
            shutil.rmtree(run, ignore_errors=True)
            code, text = self.call("train", "train.toml", "steps=3", "--run-dir", run, *words)
            assert code == 0, f"{' '.join(words)}: {text[-1500:]}"
            self.known[words] = {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*.safetensors"))}
        return self.known[words]


def check_list(project, key):
    which, (file, sentence), first, second, more = RULES[key]
    assert sentence in (ROOT / file).read_text(), f"{key}: {file} does not say: {sentence}"
    narrow, wide = SELECTORS.get(key, ("head:weight", "head"))

    def of(*rules):
        return project.train(f"{key}=[{', '.join('{ ' + rule.format(at=at) + ' }' for rule, at in rules)}]", *more)

    if which == REFUSED:
        code, text = project.call("train", "train.toml", "--dry-run", f"{key}=[{{ {first.format(at=narrow)} }}, {{ {second.format(at=narrow)} }}]")
        assert code == 2 and key in text, text
        return
    for one, other in ((first, second), (second, first)):
        for at_one, at_other in ((narrow, narrow), (narrow, wide)):
            both, alone = of((one, at_one), (other, at_other)), of((other, at_other))
            if which == LAST:
                assert both == alone, f"{key}: [{one}, {other}] is not {other} alone"
                assert alone != of((one, at_one)), f"{key}: both rules do the same"
            else:
                assert both == of((TOGETHER[key], wide)), f"{key}: [{one}, {other}] is not {TOGETHER[key]}"
                assert both != alone, f"{key}: the first rule changes nothing"


def check_load(project):
    assert "load comes after init" in (ROOT / KEYS).read_text()
    load = "parameters.load=[{ " + OTHER_HEAD.format(at="head:weight") + " }]"
    init = 'parameters.init=[{ at = "head:weight", kind = "zeros" }]'
    assert project.train(load, init) == project.train(load) != project.train(init), "load does not come after init"
    assert "the first pair that matches counts" in (ROOT / KEYS).read_text()

    def pairs(*of):
        return ", ".join(f'["{old}", "{new}"]' for old, new in of)

    def renamed(*of):
        return project.train(f'parameters.load=[{{ from = "weights.safetensors", at = "head:weight", rename = [{pairs(*of)}] }}]')

    right, wrong = ("head.*", "head.*"), ("head.weight", "elsewhere.weight")
    assert renamed(right, wrong) == renamed(right) == project.train(load), "rename: the second pair counts, too"
    code, text = project.call("train", "train.toml", "--dry-run", f'parameters.load=[{{ from = "weights.safetensors", at = "head:weight", rename = [{pairs(wrong, right)}] }}]')
    assert code != 0 and "head.weight" in text, f"rename: the second pair counts, too: {text}"


def check_random(project):
    """Which numbers an evaluation draws, of a network with a drawn gate that no module's form explains."""
    assert "rules { at, mode } as for batch_norm" in (ROOT / KEYS).read_text()
    shutil.copy(ROOT / "tests" / "data" / "notices" / "random" / "drawn_gate.torchscript.onnx", project.folder / "gate.onnx")
    rows = [",".join([f"x{k}" for k in range(12)] + [f"t{k}" for k in range(8)])]
    rows += [",".join([str(((i * 7 + k * 5) % 11) / 5 - 1) for k in range(12)] + [str(((i + k) % 3) / 2) for k in range(8)]) for i in range(8)]
    (project.folder / "gate.csv").write_text("\n".join(rows) + "\n")
    (project.folder / "gate.toml").write_text("""model = "gate.onnx"
batch_size = 4
steps = 1
threads = 1
loss.terms = [{ name = "loss", kind = "mse", predictions = "y", targets = "t" }]
optimizer = { kind = "sgd", lr = 0.01 }
[data]
kind = "csv"
train.files = ["gate.csv"]
eval.files = ["gate.csv"]
fields = { x = { from = ["x{0..11}"], as = ["reshape(3, 2, 2)"] }, t = { from = ["t{0..7}"], as = ["reshape(2, 2, 2)"] } }
""")

    def evaluated(*rules):
        run = project.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        rules = ", ".join(f'{{ at = "{at}", mode = "{mode}" }}' for at, mode in rules)
        code, text = project.call("train", "gate.toml", "--run-dir", run, f"model.random=[{rules}]")
        assert code == 0, text
        return json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["loss"]

    gate = "middle.Bernoulli"
    means, draws = evaluated((gate, "train")), evaluated((gate, "always"))
    assert means != draws
    for at in (gate, "**"):
        assert evaluated((gate, "train"), (at, "always")) == draws
        assert evaluated((gate, "always"), (at, "train")) == means


def check_policy(project):
    """The last rule wins, attribute by attribute: the device of the run, auto, rules, --place."""
    assert "The last rule that matches wins, attribute by attribute, in this order: the device of the run, `auto`, `rules`, `--place`." in (ROOT / POLICY).read_text()
    policy = project.folder / "policy.toml"

    def decided(auto, rules, *place):
        lines = lambda items: "".join("  { " + item + " },\n" for item in items)
        policy.write_text(f"policy = 1\ndevices = {{ gpu = {{ use = \"emulated:0\" }} }}\nauto = [\n{lines(auto)}]\nrules = [\n{lines(rules)}]\n")
        words = [word for rule in place for word in ("--place", "{ " + rule + " }")]
        code, text = project.call("policy", "explain", "policy.toml", "--config", "train.toml", "head:weight", "--json", *words)
        assert code == 0, text
        found = json.loads(text[text.index("{"):])
        found = found.get("explanations", [found])[0] if "attributes" not in found else found
        return {name: item["value"] for name, item in found["attributes"].items() if name in ("param", "state")}

    head, everything = 'at = "head:weight"', 'at = "**"'
    cpu, gpu = 'param = "cpu"', 'param = "gpu"'
    on_gpu = 'at = "**", on = "gpu"'
    assert decided([], [on_gpu]) == {"param": "gpu", "state": "gpu"}
    assert decided([on_gpu], [f"{head}, {cpu}"]) == {"param": "cpu", "state": "gpu"}, "rules come behind auto, one attribute alone"
    assert decided([f"{head}, {cpu}"], [on_gpu]) == {"param": "gpu", "state": "gpu"}, "a wide rule of rules behind a narrow one of auto"
    assert decided([], [on_gpu, f"{head}, {cpu}", f"{everything}, {gpu}"])["param"] == "gpu", "the last of rules"
    assert decided([], [on_gpu, f"{everything}, {gpu}", f"{head}, {cpu}"])["param"] == "cpu", "the last of rules"
    assert decided([], [on_gpu, f"{head}, {cpu}"], f"{everything}, {gpu}")["param"] == "gpu", "--place behind rules"
    assert decided([], [on_gpu], f"{head}, {cpu}", f"{head}, {gpu}")["param"] == "gpu", "the last --place"


def check_lists_are_here(project):
    code, text = project.call("config", "keys", "--json")
    keys = {row.get("key") or row.get("path") for row in json.loads(text)["keys"]}
    lists = {key.removesuffix("[].at") for key in keys if key.endswith("[].at")}
    assert lists == set(RULES) | set(ELSEWHERE), f"lists of rules without a row here, or rows without a list: {sorted(lists ^ (set(RULES) | set(ELSEWHERE)))}"


def main(program):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        project = Project(program, pathlib.Path(folder))
        tests = [(key, lambda key=key: check_list(project, key)) for key in RULES]
        tests += [(f.__name__, lambda f=f: f(project)) for f in (check_load, check_random, check_policy, check_lists_are_here)]
        for name, test in tests:
            try:
                test()
                print(f"passed: {name}")
            except AssertionError as failure:
                failures += 1
                print(f"FAILED: {name}: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve())))
