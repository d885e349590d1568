#!/usr/bin/env bash
# A small GPT on tokens of a BPE tokenizer: 200 steps of a narrow one, or with --full 2,000. TANDEM_TEXT names another text.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx tokenizers
source models/text.sh
if ((FULL)); then
  export TANDEM_BPE=$WORK/full
  make_by "$TANDEM_BPE/model.onnx" bpe/make_model.py "$TEXT" "$TANDEM_BPE"
else
  export TANDEM_BPE=$WORK/narrow
  make_by "$TANDEM_BPE/model.onnx" bpe/make_model.py "$TEXT" "$TANDEM_BPE" --vocabulary 512 --length 64 --width 64 --layers 2
fi
short steps=200 data.length=64 data.stride=64 optimizer.lr=3e-3 optimizer.schedule.warmup="20 steps" eval.every="100 steps"
train
