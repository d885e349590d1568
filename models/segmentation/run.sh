#!/usr/bin/env bash
# A small U-Net that finds discs and boxes: 5 epochs, or with --full 20.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx
make_by "$WORK/model.onnx" segmentation/make_data.py "$WORK"
short epochs=5
train
