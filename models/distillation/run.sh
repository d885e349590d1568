#!/usr/bin/env bash
# A small perceptron that learns the digits from a convolutional network: 40 epochs.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx
make_by "$WORK/student.onnx" distillation/make_data.py "$WORK"
train
