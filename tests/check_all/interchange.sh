#!/usr/bin/env bash
# Checkpoints in PyTorch, exported files in ONNX's reference evaluator.
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
peer=$(python3 -c 'from common import peer_python; print(peer_python(None))') || exit 1
exec "$peer" interchange.py
