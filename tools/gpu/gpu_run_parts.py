"""What each part of tools/gpu_run.sh runs, most information first: stages of the program gpu_check, PyTorch's steps, profiles."""

import glob
import pathlib
import re
import shutil
import sys

from gpu_run_stage import Stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = {"1": "check", "2": "times", "3": "sanitize", "4": "profile"}
WITH_WORKLOAD = ("2", "4")

# Seconds that each may take: less than a part has, so that each ends in a call with --resume that does nothing else.
CHECK = {"smoke": 90, "parity": 150, "gradients": 90, "graphs": 60, "env": 40, "nccl": 60}
BEFORE_SANITIZERS = {"parity16": 90, "parity_tf32": 60, "partitions": 60, "overlap": 60}
SANITIZED, TIMES, PROFILE, EXPORT = 75, 90, 200, 120
TORCH = {"eager": 90, "graphs": 90}
COMPILED = {"compile": 200}  # which takes longest, and comes last

# The operators whose kernels use shared memory, in groups of one process each: `--only` takes what contains one of these.
SHARED_MEMORY = {
    "rows": ["UniqueIndices", "GatherGrad", "EmbeddingBagGrad", "RowsUpdate", "RowsSumOfSquares", "RowsWithout", "PlanRows"]
    + ["MarkRows", "TouchedRows", "SplitIds"],
    "reductions": ["ReduceSum", "ReduceMean", "ReduceMax", "SumOfSquares", "Softmax", "SoftmaxGrad", "LogSoftmax", "LogSoftmaxGrad"]
    + ["LayerNormalization", "LayerNormalizationGrad", "BatchNormalizationTraining", "BatchNormalizationGrad"],
    "losses": ["LabelWeights", "SoftmaxCrossEntropy", "SoftmaxCrossEntropyGrad", "SoftmaxCrossEntropyWithGrad"]
    + ["NegativeLogLikelihood", "NegativeLogLikelihoodGrad"],
    "updates": ["SgdUpdate", "AdamUpdate", "LambUpdate", "GroupedUpdate", "ClipScale", "LossScale"],
    "networks": ["Attention", "AttentionGrad", "Conv", "ConvGradWeight"],
    "copies and products": ["Copy", "Fused", "MatMul", "Gemm", "GemmSgd"],
}
SUMMARIES = {
    "memcheck": re.compile(r"ERROR SUMMARY: (\d+) error"),
    "racecheck": re.compile(r"RACECHECK SUMMARY: (\d+) hazard"),
}


def find_tool(name):
    """One of NVIDIA's tools, which are often installed outside of PATH."""
    beside = [f"/usr/local/cuda/bin/{name}", *sorted(glob.glob(f"/opt/nvidia/nsight-compute/*/{name}"), reverse=True)]
    return shutil.which(name) or next((path for path in beside if shutil.which(path)), None)


def read_sanitizer(log, label, tool):
    """Adds a check from the sanitizer's own file: how much it found, and the first of it."""

    def read(results):
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        found = SUMMARIES[tool].search(text)
        if found is None:
            results.add({"stage": tool, "label": label, "check": label, "ok": False, "why": "it has written no summary"})
        elif int(found[1]) == 0:
            results.add({"stage": tool, "label": label, "check": label, "ok": True})
        else:
            lines = [line.lstrip("= ") for line in text.splitlines()]
            first = next((line for line in lines if re.match(r"Invalid|Error|Warning|Race|.*hazard|Program hit", line)), "")
            results.add({"stage": tool, "label": label, "check": label, "ok": False, "why": f"{found[0]}s; {first}"})

    return read


class Parts:
    """Makes the stages of a part. `run` has binary, models, folder, python, env, workload, tf32."""

    def __init__(self, run):
        self.run = run

    def stages(self, part):
        return getattr(self, PARTS[part])()

    def gpu_check(self, stage, limit, *more, label=""):
        command = [self.run.binary / "gpu_check", stage, "--json", "--out", self.run.folder, "--models", self.run.models, *more]
        return Stage(stage, command, limit, label, restarts=True, env=self.run.env)

    def check(self):
        return [self.gpu_check(stage, limit) for stage, limit in CHECK.items()]

    def sanitize(self):
        stages = []
        for stage, limit in BEFORE_SANITIZERS.items():
            if stage == "overlap":
                stages.append(self.export("wide_deep_host_tables"))
            stages.append(self.gpu_check(stage, limit))
        for tool in SUMMARIES:
            for group, operators in SHARED_MEMORY.items():
                stages.append(self.sanitized(tool, group, "|".join(name + "/" for name in operators)))
        return stages

    def sanitized(self, tool, group, only):
        label, program = f"{tool} {group}", find_tool("compute-sanitizer")
        smoke = self.gpu_check("smoke", SANITIZED, "--only", only)
        if program is None:
            return label, "compute-sanitizer is not in PATH"
        log = self.run.folder / (label.replace(" ", "_") + ".txt")
        command = [program, "--tool", tool, "--log-file", log, *smoke.command]
        return Stage(tool, command, SANITIZED, label, restarts=True, env=self.run.env, read=read_sanitizer(log, label, tool))

    def script(self, name, *more):
        return [self.run.python, ROOT / "bench" / "peers" / name, *more]

    def export(self, workload):
        return Stage("export", self.script("gpu_export.py", workload, "--to", self.run.models), EXPORT, f"export {workload}")

    def tf32(self):
        return ["--tf32"] if self.run.tf32 else []

    def ours(self, again=""):
        name = self.run.workload
        return self.gpu_check("times", TIMES, "--only", name, *self.tf32(), label=name + again)

    def times(self):
        """Ours, PyTorch's variants, and ours again: so that a GPU that has become warm, or slower, is noticed."""
        name = self.run.workload

        def torch(variants):
            return [
                Stage("torch", self.script("gpu_torch.py", name, "--variant", variant, *self.tf32()), limit, f"{name} torch {variant}")
                for variant, limit in variants.items()
            ]

        return [self.export(name), self.ours(), *torch(TORCH), self.ours(", again"), *torch(COMPILED)]

    def profile(self):
        name, program = self.run.workload, find_tool("ncu")
        label = f"profile {name}"
        if program is None:
            return [(label, "ncu is not in PATH")]
        script = [sys.executable, ROOT / "tools" / "gpu" / "gpu_run_profile.py", "--ncu", program, "--out", self.run.folder, "--"]
        return [self.export(name), Stage("profile", [*script, *self.ours().command, "--seconds", "0.1"], PROFILE, label, env=self.run.env)]
