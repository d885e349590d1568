#!/usr/bin/env bash
# Accuracies on real MNIST.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/mnist.py" "$@"
