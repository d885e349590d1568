"""Writes tests/data/schedules.json: the learning rates of torch.optim.lr_scheduler, step by step.

    python tests/scripts/schedule_expectations.py

`base`, `steps`, `steps_per_epoch`: of all cases. `cases`: name, `schedule` as TOML, `rates` of the steps 1, 2, .... `plateaus`: name, `schedule`,
`values` of the metric after each evaluation, `larger` is better, `rates` after it. PyTorch has no inverse square root: its rates are fairseq's
(fairseq/optim/lr_scheduler/inverse_square_root_schedule.py: base * sqrt(warmup / updates)).
"""

import json
import math
import pathlib

import torch
from torch.optim import lr_scheduler as torch_schedules

BASE, STEPS, STEPS_PER_EPOCH = 0.1, 40, 5


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=BASE)


def rates(make):
    """The rate of each step, before the scheduler is stepped."""
    of = optimizer()
    scheduler = make(of)
    result = []
    for _ in range(STEPS):
        result.append(of.param_groups[0]["lr"])
        of.step()
        scheduler.step()
    return result


def warm(steps, make):
    def scheduler(of):
        rise = torch_schedules.LinearLR(of, start_factor=1 / steps, total_iters=steps - 1)
        return torch_schedules.SequentialLR(of, [rise, make(of)], milestones=[steps])

    return scheduler


def chain(*parts):
    """(length, scheduler), ...; the last one has no length."""

    def scheduler(of):
        milestones, at = [], 0
        for length, _ in parts[:-1]:
            at += length
            milestones.append(at)
        return torch_schedules.SequentialLR(of, [make(of) for _, make in parts], milestones=milestones)

    return scheduler


def constant(of):
    return torch_schedules.ConstantLR(of, factor=1.0)


def cosine(steps, final=0.0):
    return lambda of: torch_schedules.CosineAnnealingLR(of, T_max=steps, eta_min=final)


def linear(steps, final=0.0):
    return lambda of: torch_schedules.LinearLR(of, start_factor=1.0, end_factor=final / BASE, total_iters=steps)


def steps(size, gamma):
    return lambda of: torch_schedules.StepLR(of, step_size=size, gamma=gamma)


def multistep(milestones, gamma):
    return lambda of: torch_schedules.MultiStepLR(of, milestones=milestones, gamma=gamma)


def exponential(gamma):
    return lambda of: torch_schedules.ExponentialLR(of, gamma=gamma)


def polynomial(steps, power):
    return lambda of: torch_schedules.PolynomialLR(of, total_iters=steps, power=power)


def restarts(period, multiplier, final):
    return lambda of: torch_schedules.CosineAnnealingWarmRestarts(of, T_0=period, T_mult=multiplier, eta_min=final)


def one_cycle(steps, **options):
    return lambda of: torch_schedules.OneCycleLR(of, max_lr=BASE, total_steps=steps, cycle_momentum=False, **options)


def one_cycle_rates(**options):
    """OneCycleLR refuses a step after its last one."""
    of = optimizer()
    scheduler = one_cycle(STEPS, **options)(of)
    result = [of.param_groups[0]["lr"]]
    for _ in range(STEPS - 1):
        of.step()
        scheduler.step()
        result.append(of.param_groups[0]["lr"])
    return result


def inverse_square_root(warmup):
    return [BASE * (n + 1) / warmup if n < warmup else BASE * math.sqrt(warmup / n) for n in range(STEPS)]


def cases():
    yield "constant", '{ kind = "constant" }', rates(constant)
    yield "warm", '{ kind = "constant", warmup = "4 steps" }', rates(warm(4, constant))
    yield "cosine", '{ kind = "cosine", final = 0.01 }', rates(cosine(STEPS, 0.01))
    yield "warm_cosine", '{ kind = "cosine", warmup = "1 epoch" }', rates(warm(5, cosine(STEPS - 5)))
    yield "linear", '{ kind = "linear", final = 0.02 }', rates(linear(STEPS, 0.02))
    yield "step", '{ kind = "step", step_size = "2 epochs", gamma = 0.5 }', rates(steps(10, 0.5))
    yield "multistep", '{ kind = "multistep", milestones = ["7 steps", "3 epochs", "30 steps"], gamma = 0.2 }', rates(
        multistep([7, 15, 30], 0.2)
    )
    yield "warm_multistep", '{ kind = "multistep", milestones = ["6 steps", "20 steps"], warmup = "3 steps" }', rates(
        warm(3, multistep([6, 20], 0.1))
    )
    yield "exponential", '{ kind = "exponential", period = "1 steps", gamma = 0.9 }', rates(exponential(0.9))
    yield "exponential_epochs", '{ kind = "exponential", period = "2 epochs", gamma = 0.25 }', rates(exponential(0.25 ** (1 / 10)))
    yield "polynomial", '{ kind = "polynomial", power = 2.0 }', rates(polynomial(STEPS, 2.0))
    yield "polynomial_line", '{ kind = "polynomial" }', rates(polynomial(STEPS, 1.0))
    yield "warm_polynomial", '{ kind = "polynomial", power = 0.5, warmup = "8 steps" }', rates(warm(8, polynomial(STEPS - 8, 0.5)))
    yield "restarts", '{ kind = "cosine_restarts", period = "6 steps", final = 0.005 }', rates(restarts(6, 1, 0.005))
    yield "longer_restarts", '{ kind = "cosine_restarts", period = "1 epoch", multiplier = 2 }', rates(restarts(5, 2, 0.0))
    yield "one_cycle", '{ kind = "one_cycle" }', one_cycle_rates()
    yield "one_cycle_line", '{ kind = "one_cycle", anneal = "linear", pct_start = 0.25, div_factor = 10.0, final_div_factor = 100.0 }', one_cycle_rates(
        anneal_strategy="linear", pct_start=0.25, div_factor=10.0, final_div_factor=100.0
    )
    yield "one_cycle_three", '{ kind = "one_cycle", three_phase = true, pct_start = 0.4 }', one_cycle_rates(three_phase=True, pct_start=0.4)
    yield "inverse_square_root", '{ kind = "inverse_square_root", warmup = "8 steps" }', inverse_square_root(8)
    yield "parts", '[ { kind = "linear", length = "1 epoch", final = 0.05 }, { kind = "exponential", period = "1 steps", gamma = 0.8, length = "10 steps" }, { kind = "cosine", final = 0.001 } ]', rates(
        chain((5, linear(5, 0.05)), (10, exponential(0.8)), (None, cosine(STEPS - 15, 0.001)))
    )
    yield "parts_of_epochs", '[ { kind = "polynomial", length = "3 epochs", power = 2.0 }, { kind = "step", step_size = "1 epoch", gamma = 0.5 } ]', rates(
        chain((15, polynomial(15, 2.0)), (None, steps(5, 0.5)))
    )


VALUES = [1.0, 0.8, 0.8, 0.79999, 0.81, 0.7, 0.75, 0.76, 0.77, 0.71, 0.72, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65, 0.66, 0.67, 0.68]


def plateau(values, larger, **options):
    of = optimizer()
    scheduler = torch_schedules.ReduceLROnPlateau(of, mode="max" if larger else "min", **options)
    result = []
    for value in values:
        scheduler.step(value)
        result.append(of.param_groups[0]["lr"])
    return result


def plateaus():
    head = 'kind = "plateau", patience = '
    falling = [1 - value for value in VALUES]
    yield "default", "{ kind = \"plateau\" }", VALUES * 2, False, {}
    yield "patient", "{ " + head + "2 }", VALUES, False, dict(patience=2)
    yield "cooled", "{ " + head + "1, cooldown = 2, factor = 0.5 }", VALUES, False, dict(patience=1, cooldown=2, factor=0.5)
    yield "floor", "{ " + head + "0, factor = 0.3, min_lr = 0.004 }", VALUES, False, dict(patience=0, factor=0.3, min_lr=0.004)
    yield "absolute", "{ " + head + '1, threshold = 0.05, threshold_mode = "abs" }', VALUES, False, dict(
        patience=1, threshold=0.05, threshold_mode="abs"
    )
    yield "larger", "{ " + head + '1, metric = "accuracy", threshold = 0.01 }', falling, True, dict(patience=1, threshold=0.01)
    yield "larger_absolute", "{ " + head + '1, metric = "accuracy", threshold = 0.02, threshold_mode = "abs" }', falling, True, dict(
        patience=1, threshold=0.02, threshold_mode="abs"
    )


def main():
    result = {"torch": torch.__version__, "base": BASE, "steps": STEPS, "steps_per_epoch": STEPS_PER_EPOCH}
    result["cases"] = [{"name": name, "schedule": text, "rates": of} for name, text, of in cases()]
    result["plateaus"] = [
        {"name": name, "schedule": text, "larger": larger, "values": values, "rates": plateau(values, larger, **options)}
        for name, text, values, larger, options in plateaus()
    ]
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "schedules.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
