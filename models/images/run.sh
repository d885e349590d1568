#!/usr/bin/env bash
# LeNet-5 on folders of PNG files: 4,000 pictures, or with --full all 70,000 of MNIST.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
shared data/mnist
python_with torch torchvision onnx
make_by "$TANDEM_MODELS/lenet5/torchscript.onnx" make_all.py --only lenet5 --to "$TANDEM_MODELS"
if ((FULL)); then
  export TANDEM_IMAGES=$WORK/all
  make_by "$TANDEM_IMAGES/made" images/make_data.py "$TANDEM_IMAGES"
else
  export TANDEM_IMAGES=$WORK/few
  make_by "$TANDEM_IMAGES/made" images/make_data.py "$TANDEM_IMAGES" --most 4000
fi
short epochs=10
train
"$TANDEM" predict "$RUN" --data "$TANDEM_IMAGES/test/7" --as class --class-names --id path --to "$RUN/sevens.tsv"
head -n 3 "$RUN/sevens.tsv"
