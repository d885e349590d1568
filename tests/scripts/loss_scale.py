"""Writes tests/data/loss_scale.json: scales, skipped steps and states of PyTorch's GradScaler with Adam for given gradients."""

import json
import pathlib

import torch

INFINITY, NAN = float("inf"), float("nan")
ELEMENTS, STEPS, GROWTH_INTERVAL, RATE = 7, 14, 3, 0.05
# Steps (from 0) whose gradient has something that float32 cannot hold, in one element; 1e34 is a number until it is scaled.
BROKEN = {0: 1e34, 4: INFINITY, 5: -INFINITY, 9: NAN}


def gradient(step):
    values = [((37 * i + 11 * step) % 101 - 50) / 64 for i in range(ELEMENTS)]
    if step in BROKEN:
        values[step % ELEMENTS] = BROKEN[step]
    return torch.tensor(values, dtype=torch.float32)


def run(max_norm):
    weight = torch.nn.Parameter(torch.linspace(-1, 1, ELEMENTS, dtype=torch.float32))
    optimizer = torch.optim.Adam([weight], lr=RATE)
    scaler = torch.amp.GradScaler("cpu", growth_interval=GROWTH_INTERVAL)
    steps = []
    for step in range(STEPS):
        g = gradient(step)
        scaler.scale((weight * g).sum()).backward()
        scaler.unscale_(optimizer)
        norm = torch.linalg.vector_norm(weight.grad).item()
        if max_norm:
            torch.nn.utils.clip_grad_norm_([weight], max_norm)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        state = optimizer.state.get(weight, {})
        zeros = torch.zeros(ELEMENTS)
        steps.append(
            {
                "gradient": [str(x) for x in g.tolist()],
                "norm": norm if step not in BROKEN else None,
                "scale": scaler.get_scale(),
                "good_steps": int(scaler._growth_tracker.item()),
                "taken": int(state["step"].item()) if state else 0,
                "weight": weight.detach().tolist(),
                "exp_avg": state.get("exp_avg", zeros).tolist(),
                "exp_avg_sq": state.get("exp_avg_sq", zeros).tolist(),
            }
        )
    return steps


def main():
    result = {
        "torch": torch.__version__,
        "growth_interval": GROWTH_INTERVAL,
        "rate": RATE,
        "start": torch.linspace(-1, 1, ELEMENTS, dtype=torch.float32).tolist(),
        "runs": [{"max_norm": max_norm, "steps": run(max_norm)} for max_norm in (0.0, 0.5)],
    }
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "loss_scale.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
