#!/usr/bin/env bash
# Adapters for a small BERT from a folder of Hugging Face's: 8 epochs, or with --full 15. The adapters go to RUN/adapter, as PEFT reads them.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx transformers
make_by "$WORK/model.onnx" lora/make_model.py "$WORK"
short epochs=8
train
"$TANDEM" export "$RUN" --to "$RUN/adapter" --format peft
