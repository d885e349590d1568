#!/usr/bin/env bash
# Installs what is missing, builds, trains a small network on real hand-written digits under a policy, exports it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh --program
cmake --preset cpu
cmake --build --preset cpu --target tandem_installed # program, library and MPI plugin, so that launch and install work

config=models/digits/train.toml
policy=models/digits/policy.toml
number=1
while run=$(printf 'runs/digits-%04d' "$number") && [[ -e $run ]]; do number=$((number + 1)); done
exported=$run/digits-trained.onnx

echo
echo "What a training step costs under $policy, before anything runs:"
echo
sed -n '/^rules/,/^]/p' "$policy"
echo
# without the list of copies, the notes and the hints
build/tandem policy plan "$policy" --config "$config" | grep -vE '^(    |hint|note)'

echo
echo "Training models/digits/model.onnx on 1,437 images of hand-written digits; 360 are held out."
start=$SECONDS
build/tandem train "$config" "policy=$policy" --run-dir "$run"
seconds=$((SECONDS - start))
build/tandem export "$run" --to "$exported"

accuracy=$(python3 - "$run/metrics.jsonl" <<'PYTHON'
import json, sys
with open(sys.argv[1]) as file:
    evaluations = [line for line in map(json.loads, file) if line.get("phase") == "eval"]
print(f"{100 * evaluations[-1]['accuracy']:.2f} %")
PYTHON
)

cat <<END

Held-out accuracy   $accuracy   (after $seconds s of training)
Policy              $policy   (what ran where: $run/placement.json)
Run directory       $run   (metrics.jsonl, checkpoints/, the resolved configuration)
Trained model       $exported   (the same ONNX graph with trained weights)

Next: build/tandem policy plan $policy --config $config    shows every copy
      build/tandem policy explain $policy conv2:weight --config $config
      build/tandem inspect YOUR_MODEL.onnx
END
