#!/usr/bin/env bash
# Installs what is missing, then configures and builds.
#
#   tools/build.sh [PRESET] [targets…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-cpu}
shift || true
tools/setup.sh

# Once a folder has been built, files that are changed are compiled alone: an edit then costs one file, not its whole group.
folder=build-$preset
[[ $preset == cpu || $preset == ci ]] && folder=build
if [[ -f $folder/.ninja_log ]] && git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  {
    cat "$folder/edited_files.txt" 2>/dev/null || true
    git diff --name-only --relative --diff-filter=M HEAD -- '*.cpp'
    { git diff --name-only --relative --diff-filter=A HEAD -- '*.cpp'; git ls-files --others --exclude-standard -- '*.cpp'; } | sed 's/^/+/'
  } | sort -u >"$folder/edited_files.new"
  cmp -s "$folder/edited_files.new" "$folder/edited_files.txt" || cp "$folder/edited_files.new" "$folder/edited_files.txt"
fi

cmake --preset "$preset"
cmake --build --preset "$preset" ${1:+--target "$@"}
