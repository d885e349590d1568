#!/usr/bin/env bash
# Full-size parity with PyTorch: 20 losses, both exporters, every optimizer.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/parity.py" "$@"
