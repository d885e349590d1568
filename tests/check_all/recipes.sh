#!/usr/bin/env bash
# The recipes of models/: their one command, and their trainings killed and resumed.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/recipes.py" "$@"
