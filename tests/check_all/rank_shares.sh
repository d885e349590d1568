#!/usr/bin/env bash
# One seed on one process and on many: MNIST on eight ranks, Wide & Deep on four, read by one and by three.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/rank_shares.py" "$@"
