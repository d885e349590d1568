#!/usr/bin/env bash
# A small detector on made pictures: 4 epochs, or with --full 30.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx
make_by "$WORK/model.onnx" detector/make_data.py "$WORK"
short epochs=4
train
