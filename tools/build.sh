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
build() { cmake --build --preset "$preset" ${1:+--target "$@"}; }
if [[ -t 1 ]]; then
  build "$@"
  exit
fi
# A compiler that was ended by a signal (GCC 12 now and then, while it loads a precompiled header) gets a second attempt. An error in
# the code does not.
output=$(mktemp)
trap 'rm -f "$output"' EXIT
build "$@" 2>&1 | tee "$output" && exit
grep -q 'internal compiler error: .* signal terminated program' "$output" || exit 1
echo "The compiler was ended by a signal, which is no error of this code. Building once more."
build "$@"
