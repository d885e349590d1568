"""Trains a small network for six steps with every pair of options. A pair must train as each option does separately, or be refused before step 1.

    python3 tests/check_all/option_pairs.py [--base NAME]… [--only NAME]… [--without-ranks] [--quick] [--share PART] [--keep FOLDER] [--list]

For each pair that trains: the log has the columns of both options, all numbers are finite, a resume gives the same last checkpoint bit by bit, and the
exported file equals the run and can be read again. An option that changes no number (`same`) must not change one together with the other option either.
A pair that is refused is listed in `option_table.REFUSED` with words of the message; a dry run must refuse it, too. A key of train.toml fails the
check if no option sets it and `LEFT_OUT` does not list it.

--base is one of `option_table.BASES`. --only NAME runs the pairs of one option; given twice, it runs one pair. --quick neither resumes nor exports.
--share 0.1 runs a tenth of the pairs.
"""

import argparse
import collections
import itertools
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import option_table as table
from common import BINARY

# Columns about the machine, not of the training.
MACHINE = {"wall", "samples_per_second", "data.wait"}
Outcome = collections.namedtuple("Outcome", "error columns losses evaluations")


class Failure(Exception):
    """What is wrong with a pair."""


def call(*words, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TANDEM_PYTHON": "/bin/false"}
    done = subprocess.run([str(BINARY), *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=environment)
    return done.returncode, done.stdout + done.stderr


def message(text):
    """The error in a program's output, once for several ranks."""
    lines = text.splitlines()
    first = next((place for place, line in enumerate(lines) if line.startswith("tandem")), max(0, len(lines) - 3))
    return "\n".join(line for line in lines[first:] if line.strip() and not line.startswith(("---", "mpirun", "Primary job", "  Process", "  Exit")))[:1500]


def read_metrics(run):
    path = run / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [x for x in lines if "phase" not in x], [x for x in lines if x.get("phase") == "eval"]


def numbers_of(value, name=""):
    if isinstance(value, dict):
        return [x for key, item in value.items() for x in numbers_of(item, f"{name}.{key}")]
    if isinstance(value, list):
        return [x for item in value for x in numbers_of(item, name)]
    return [(name, value)] if isinstance(value, (int, float)) else []


def columns_of(training, evaluations):
    found = {key for line in training for key in line} - MACHINE
    return found | {f"eval {key}" for line in evaluations for key in line} - {f"eval {x}" for x in MACHINE}


def config_of(options):
    return "no_files.toml" if any(option.instead_of for option in options) else "train.toml"


def train_words(options):
    ranks = max(option.ranks for option in options)
    words = [word for option in options for word in option.words]
    replaced = {word for option in options for word in option.instead_of}
    if replaced:
        words += [word for word in table.FILES if word not in replaced]
    return (["launch", "-n", ranks, "--"] if ranks > 1 else []) + ["train", config_of(options)] + words


def checkpoints(run):
    return sorted((run / "checkpoints").glob("step-*"))


def tensors(checkpoint):
    """The files of values of a checkpoint."""
    return {str(path.relative_to(checkpoint)): path.read_bytes() for path in checkpoint.rglob("*.safetensors")}


def resume(options, folder, run):
    """Resumes from the last checkpoint but one, with only the run's directory as an argument, and compares the last checkpoint."""
    found = checkpoints(run)
    if len(found) < 2:
        raise Failure("no second checkpoint to resume from")
    before = tensors(found[-1])
    _, evaluations = read_metrics(run)
    shutil.rmtree(found[-1])
    (run / "summary.json").unlink(missing_ok=True)
    ranks = max(option.ranks for option in options)
    code, text = call(*(["launch", "-n", ranks, "--"] if ranks > 1 else []), "train", config_of(options), "--resume", "--run-dir", run, folder=folder)
    if code:
        raise Failure(f"--resume ends with {code}: {message(text)}")
    after = tensors(found[-1]) if found[-1].exists() else {}
    different = [name for name in before if after.get(name) != before[name]]
    if different or len(after) != len(before):
        raise Failure(f"--resume gives another {found[-1].name}: {', '.join(different) or 'files are missing'}")
    last = lambda lines: {key: value for key, value in lines[-1].items() if key not in MACHINE} if lines else {}
    if last(evaluations) != last(read_metrics(run)[1]):
        raise Failure(f"--resume evaluates to {last(read_metrics(run)[1])} in place of {last(evaluations)}")


def export(folder, run):
    code, text = call("export", run, "--to", run / "trained.onnx", "--verify", folder=folder)
    if code:
        raise Failure(f"export ends with {code}: {message(text) or text[-500:]}")
    code, text = call("inspect", run / "trained.onnx", folder=folder)
    if code or "ready to train" not in text:
        raise Failure(f"inspect of the exported file ends with {code}: {text[-500:]}")
    code, text = call("eval", run, folder=folder)
    if code:
        raise Failure(f"eval ends with {code}: {message(text)}")


def attempt(options, folder, whole=True):
    """Trains with these options; raises Failure if it does not end as it should."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    code, text = call(*train_words(options), "--run-dir", run, folder=folder)
    training, evaluations = read_metrics(run)
    if code:
        if training:
            raise Failure(f"ends with {code} after {len(training)} steps: {message(text)}")
        dry, _ = call(*train_words(options), "--dry-run", folder=folder)
        if code not in (2, 3, 4) or dry != code:
            raise Failure(f"ends with {code}, and --dry-run with {dry}: {message(text)}")
        return Outcome(message(text), set(), [], [])
    steps = [line["step"] for line in training]
    if not training or steps != sorted(set(steps)) or not evaluations:
        raise Failure(f"steps in metrics.jsonl: {steps}, {len(evaluations)} evaluations")
    missing = [line["step"] for line in training if not {"loss", "lr"} <= line.keys()]
    if missing:
        raise Failure(f"no loss or lr in the log of steps {missing}")
    for line in training + evaluations:
        bad = [name for name, value in numbers_of(line) if not math.isfinite(value)]
        if bad or None in line.values():
            raise Failure(f"step {line['step']}: not finite: {bad or line}")
    result = Outcome("", columns_of(training, evaluations), [x["loss"] for x in training], [x["loss"] for x in evaluations])
    if whole:
        resume(options, folder, run)
        export(folder, run)
    return result


def sweep_lr(options, folder):
    """`--lr-range` of one option: rates and losses, or a refusal that the table has."""
    shutil.rmtree(folder / "range", ignore_errors=True)
    code, text = call(*train_words(options), "--lr-range", "--lr-steps", 10, "--run-dir", folder / "range", "--json", folder=folder)
    expected = table.NO_LR_RANGE.get(options[-1].name)
    if (code != 0) != (expected is not None) or (code and not re.search(expected, text)):
        raise Failure(f"--lr-range ends with {code}: {message(text)}")


def near(some, others, tolerance):
    return all(abs(a - b) <= tolerance * max(1.0, abs(b)) for a, b in zip(some, others))


def check_pair(first, second, alone, base, folder, whole):
    """What is wrong with a pair, or nothing."""
    expected = table.refusal(first.name, second.name)
    result = attempt((*base.options, first, second), folder, whole)
    if result.error:
        if expected is None:
            raise Failure(f"is refused: {result.error}")
        if not re.search(expected, result.error):
            raise Failure(f"is refused without the words {expected!r}: {result.error}")
        return "refused"
    if expected is not None:
        raise Failure("trains, but stands among the refused")
    taken = tuple(first.takes | second.takes)
    counted = lambda columns: {column for column in columns if not column.startswith(taken)}
    wanted = counted(alone[first.name].columns | alone[second.name].columns)
    if counted(result.columns) != wanted:
        raise Failure(f"columns: {sorted(counted(result.columns) ^ wanted)} are only in the pair, or only in the runs of the single options")
    for kept, other in ((first, second), (second, first)):
        if not other.same or table.differs(kept.name, other.name):
            continue
        reference, tolerance = alone[kept.name], max(base.tolerance, first.tolerance, second.tolerance)
        for name in ("losses", "evaluations"):
            got, meant = getattr(result, name), getattr(reference, name)
            if name == "evaluations":
                got, meant = got[-1:], meant[-1:]
            if not near(got, meant, tolerance):
                raise Failure(f"{name} {[round(x, 5) for x in got]} are not those of {kept.name} alone: {[round(x, 5) for x in meant]}")
    return "trains"


def flat(value, name):
    """Names of the keys of a value, as `tandem config keys` writes them."""
    yield name
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{name}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from flat(item, f"{name}[]")


def set_keys(option):
    """The keys of train.toml, and the attributes of policies, that an option sets."""
    for word, following in zip(option.words, [*option.words[1:], ""]):
        if word == "--place":
            yield from flat(tomllib.loads(f"x = {following}")["x"], "rules[]")
        elif re.match(r"[a-z][\w.]*=", word):
            key, text = word.split("=", 1)
            try:
                value = tomllib.loads(f"x = {text}")["x"]
            except tomllib.TOMLDecodeError:
                value = text
            yield from flat(value, re.sub(r"\.\d+(?=\.|$)", "[]", key))


def meet(first, second):
    """Two options that set one key are no pair."""
    own = lambda option: {word.split("=", 1)[0] for word in option.words if re.match(r"[a-z][\w.]*=", word)}
    one, other = own(first), own(second)
    return any(a == b or a.startswith(b + ".") or b.startswith(a + ".") for a in one for b in other) or bool(first.excludes & second.excludes)


def needed(option, only):
    """Whether one of the pairs that were asked for has this option."""
    return len(only) < 2 or option.name in only


def keys_that_nothing_sets():
    covered = {key for base in table.BASES.values() for option in base.options for key in set_keys(option)}
    covered |= {key for option in table.OPTIONS for key in set_keys(option)}
    missing = []
    for extra, prefix in (((), ""), (("--policy",), "rules[]")):
        code, text = call("config", "keys", "--json", *extra, folder=".")
        for row in json.loads(text)["keys"]:
            key = row.get("key") or row.get("path")
            left = any(re.fullmatch(expression, key) for expression in table.LEFT_OUT.values())
            if key.startswith(prefix) and not left and not any(x.startswith(key) for x in covered):
                missing.append(key)
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", action="append", choices=table.BASES)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--without-ranks", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1, help="the seed that chooses the pairs of --share")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the runs that is not deleted")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    options = [x for x in table.OPTIONS if not (arguments.without_ranks and x.ranks > 1)]
    names = {x.name for x in options}
    unknown = [name for name in (*arguments.only, *{x for pair in table.REFUSED for x in pair}, *{x for pair in table.DIFFERS for x in pair})
               if name not in names | {x.name for x in table.OPTIONS}]
    if unknown:
        sys.exit(f"unknown option: {', '.join(unknown)}; --list shows all")
    if arguments.list:
        print("\n".join(f"{x.name:28} {' '.join(x.words)}" for x in options))
        return 0
    failures, draw = [], random.Random(arguments.seed)
    missing = keys_that_nothing_sets()
    if missing:
        failures.append(f"no option sets {', '.join(missing)}: tests/check_all/option_table.py")
        print(f"FAILED {failures[-1]}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        table.write_project(folder)
        for base in [table.BASES[name] for name in arguments.base or table.BASES]:
            counts, alone = collections.Counter(), {}
            for option in options:
                if arguments.only and not needed(option, arguments.only):
                    continue
                try:
                    alone[option.name] = attempt((*base.options, option), folder, not arguments.quick)
                    if alone[option.name].error:
                        raise Failure(f"is refused: {alone[option.name].error}")
                    if option.ranks == 1:
                        sweep_lr((*base.options, option), folder)
                except Failure as failure:
                    alone.pop(option.name, None)
                    if option.name not in base.not_alone:
                        failures.append(f"{base.name}: {option.name}: {failure}")
                        print(f"FAILED {failures[-1]}", flush=True)
            for first, second in itertools.combinations(options, 2):
                if draw.random() >= arguments.share or not set(arguments.only) <= {first.name, second.name} or meet(first, second) or not {first.name, second.name} <= alone.keys():
                    continue
                try:
                    counts[check_pair(first, second, alone, base, folder, not arguments.quick)] += 1
                except (Failure, subprocess.TimeoutExpired) as failure:
                    counts["FAILED"] += 1
                    failures.append(f"{base.name}: {first.name} + {second.name}: {failure}")
                    print(f"FAILED {failures[-1]}", flush=True)
            print(f"{base.name}: {len(alone)} options alone; pairs: " + ", ".join(f"{count} {name}" for name, count in counts.items()), flush=True)
    print(f"{len(failures)} failures" if failures else "passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
