"""One stage of tools/gpu_run.sh: a process with a time limit, whose JSON lines are kept as they come.

Its lines are those of `gpu_check STAGE --json`: checks ({"check", "ok"…} or {"check", "skipped"}), numbers ({"value", "number",
"unit"}), notes ({"note", "content"}) and at the end the verdict ({"verdict": "passed" | "failed" | "skipped"…}).
"""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

PASSED, FAILED, STOPPED, SKIPPED = 0, 1, 4, 77  # exit codes of a stage
MOST_STARTS = 20  # for one stage that errors of the GPU stop


@dataclasses.dataclass
class Stage:
    """What to run, and how long it may take."""

    name: str  # the stage's, as in its lines
    command: list
    limit: float
    label: str = ""  # its own name in the report; default: the stage's
    restarts: bool = False  # whether it takes --after CHECK
    cwd: pathlib.Path = None
    env: dict = None
    read: object = None  # called with the Results once it has ended: adds what is in its files

    def __post_init__(self):
        self.label = self.label or self.name

    @property
    def log_name(self):
        return "".join(c if c.isalnum() or c in "_-." else "_" for c in self.label) + ".log"


class Results:
    """results.jsonl of one part in a folder, written line by line; with `resume` it goes on where it ended."""

    def __init__(self, folder, resume=False):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.lines = folder, []
        path = folder / "results.jsonl"
        if resume and path.exists():
            lines = [line for line in map(object_of, path.read_text(encoding="utf-8").splitlines()) if line is not None]
            # What a stage that was not finished has said comes again.
            done = {line["label"] for line in lines if is_done(line)}
            self.lines = [line for line in lines if line.get("label") in done]
        self.file = open(path, "w", encoding="utf-8")
        for line in self.lines:
            self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def add(self, line):
        self.lines.append(line)
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def verdict(self, label, verdict, why, **more):
        self.add({"stage": label, "label": label, "verdict": verdict, "checks": 0, "failed": 0, "why": why, **more})

    @property
    def verdicts(self):
        return [line for line in self.lines if "verdict" in line]

    def verdict_of(self, label):
        return next((line for line in reversed(self.lines) if "verdict" in line and line["label"] == label), None)

    def has(self, verdict):
        return any(line["verdict"] == verdict for line in self.verdicts)


def is_done(line):
    """Whether it is the verdict of a stage that need not be run again."""
    return "verdict" in line and line["verdict"] != "unfinished"


def object_of(text):
    """The JSON object of a line; None: it is something else."""
    try:
        line = json.loads(text)
    except json.JSONDecodeError:
        return None
    return line if isinstance(line, dict) else None


def stop(process):
    """Ends the process group: kindly, then at once."""
    for kind, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
        try:
            os.killpg(process.pid, kind)
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def run_process(stage, command, limit, log, take):
    """Runs it; `take` gets each JSON line. Returns the exit code, whether it was too late, and an error that kept it from starting."""
    log.write("$ " + " ".join(map(str, command)) + "\n")
    log.flush()
    try:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            errors="replace",
            start_new_session=True,
            cwd=stage.cwd,
            env={**os.environ, **(stage.env or {})},
        )
    except OSError as error:
        return None, False, f"{command[0]} does not start: {error}"
    late = threading.Event()

    def end():
        late.set()
        stop(process)

    timer = threading.Timer(limit, end)
    timer.start()
    with process:
        for text in process.stdout:
            log.write(text)
            line = object_of(text)
            if line is not None:
                take(line)
    timer.cancel()
    return process.returncode, late.is_set(), None


def judged(code, late, error, verdict, limit, log_name):
    """The verdict of one process: its own where that and the exit code agree."""
    if error:
        return {"verdict": "failed", "why": error}
    if late:
        return {"verdict": "failed", "why": f"not done within {limit:.0f} s", "late": True}
    if code not in (PASSED, FAILED, STOPPED, SKIPPED) or verdict is None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return {"verdict": "failed", "why": f"ended with {how}: see {log_name}"}
    if verdict["verdict"] == "passed" and code != PASSED:
        return {**verdict, "verdict": "failed", "why": f"exit code {code}"}
    return verdict


def together(verdicts):
    """One verdict of a stage that went on in another process where an error of the GPU had stopped it."""
    last = dict(verdicts[-1])
    if len(verdicts) == 1:
        return last
    for key in ("checks", "failed", "skipped"):
        last[key] = sum(v.get(key, 0) for v in verdicts)
    last["worst"] = [w for v in verdicts for w in v.get("worst", [])][:10]
    stops = [v["stopped_at"] for v in verdicts if v.get("stopped_at")]
    last["why"] = "; ".join(
        [f"errors of the card at {', '.join(stops)}"] + ([last["why"]] if last["verdict"] == "failed" and last.get("why") else [])
    )
    last["verdict"] = "failed"
    return last


def run_stage(results, stage, limit):
    """Runs it for at most `limit` seconds; less than the stage's own limit means that the part ends before. Returns its verdict."""
    start = time.monotonic()
    verdicts = []
    with open(results.folder / stage.log_name, "w", encoding="utf-8") as log:
        command = stage.command
        while True:
            own = []

            def take(line):
                line = {"stage": stage.name, **line, "label": stage.label}
                own.append(line) if "verdict" in line else results.add(line)

            left = limit - (time.monotonic() - start)
            code, late, error = run_process(stage, command, left, log, take)
            verdict = judged(code, late, error, own[-1] if own else None, limit, stage.log_name)
            verdicts.append(verdict)
            at = verdict.get("stopped_at")
            if not (stage.restarts and code == STOPPED and at) or len(verdicts) == MOST_STARTS:
                break
            command = [*stage.command, "--after", at]
    verdict = together(verdicts)
    if verdict.pop("late", False) and limit < stage.limit:
        verdict["verdict"] = "unfinished"
    elif stage.read is not None:
        stage.read(results)
    seconds = round(time.monotonic() - start, 1)
    verdict = {"stage": stage.name, **verdict, "label": stage.label, "seconds": seconds}
    results.add(verdict)
    why = f": {verdict['why']}" if verdict.get("why") else ""
    print(f"{stage.label:44} {verdict['verdict']:10} {seconds:7.1f} s{why}", flush=True)
    return verdict
