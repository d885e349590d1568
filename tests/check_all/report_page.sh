#!/usr/bin/env bash
# A report in a real browser: no mistakes on its console, nothing wider than the screen.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/report_page.py" "$@"
