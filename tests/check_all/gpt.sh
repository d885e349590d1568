#!/usr/bin/env bash
# The small GPT on a text.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpt.py" "$@"
