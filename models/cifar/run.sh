#!/usr/bin/env bash
# A small residual network on 4,000 images of CIFAR-10, moved and mirrored: 5 epochs, or with --full 60.
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
shared data/cifar10/data_batch_1_first4000.bin
python_with torch onnx
make_by "$WORK/model.onnx" cifar/make_model.py "$WORK"
short epochs=5 optimizer.schedule.warmup="1 epoch"
train
