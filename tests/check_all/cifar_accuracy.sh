#!/usr/bin/env bash
# A small residual network on CIFAR-10 with augmentation, compared with PyTorch.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/cifar_accuracy.py" "$@"
