#!/usr/bin/env bash
# Click prediction with tables on the host and the MLP on an emulated accelerator: 4 epochs, or with --full 8.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
python_with torch onnx sklearn
make_by "$WORK/model.onnx" recommender/make_data.py "$WORK"
short epochs=4
train
echo "the probabilities that the clicks were drawn from: $(cat "$WORK/planted.json")"
