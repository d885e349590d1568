#!/usr/bin/env bash
# A table of 8 GiB that is sharded over four ranks: training, checkpoint, resuming on other numbers, export.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/sharded_tables.py" "$@"
