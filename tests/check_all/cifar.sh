#!/usr/bin/env bash
# ResNet-18 on CIFAR-10.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/cifar.py" "$@"
