#!/usr/bin/env bash
# A small GPT on characters: 300 steps of a narrow one, or with --full 2,000 of one of 0.6 million parameters. TANDEM_TEXT names another text.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx
source models/text.sh
if ((FULL)); then
  export TANDEM_CHARACTERS=$WORK/full
  make_by "$TANDEM_CHARACTERS/model.onnx" characters/make_model.py "$TEXT" "$TANDEM_CHARACTERS"
else
  export TANDEM_CHARACTERS=$WORK/narrow
  make_by "$TANDEM_CHARACTERS/model.onnx" characters/make_model.py "$TEXT" "$TANDEM_CHARACTERS" --length 64 --width 64 --layers 2
fi
short steps=300 data.length=64 data.stride=64 optimizer.lr=3e-3 optimizer.schedule.warmup="30 steps" eval.every="100 steps"
train
