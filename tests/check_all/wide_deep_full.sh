#!/usr/bin/env bash
# Wide & Deep at its published size: losses, bytes on the link and placements.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/wide_deep_full.py" "$@"
