#!/usr/bin/env bash
# An LSTM on sequences of different lengths: 6 epochs, or with --full 20.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx
make_by "$WORK/model.onnx" sequences/make_data.py "$WORK"
short epochs=6
train
