#!/usr/bin/env bash
# A variational autoencoder on small hand-written digits: 30 epochs, or with --full 100.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx
make_by "$WORK/model.onnx" vae/make_model.py "$WORK"
short epochs=30
train
