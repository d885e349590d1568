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
# GCC 12 now and then writes a precompiled header that ends every compiler that reads it ("Segmentation fault"), and ccache gives
# the same header to every later build. The second attempt makes such headers anew, the third does without any. An error in the
# code gets no further attempt.
output=$(mktemp)
trap 'rm -f "$output"' EXIT
attempt() { build "$@" 2>&1 | tee "$output"; }
was_ended_by_signal() { grep -qE 'internal compiler error: (Segmentation fault|.* signal terminated program)' "$output"; }
attempt "$@" && exit
was_ended_by_signal || exit 1
headers=$(grep -oP -- "-include \\Q$PWD/$folder/\\E\\K\\S+/cmake_pch\\.hxx(?= )" "$output" | sort -u || true)
echo "The compiler was ended by a signal, which is no error of this code. Building again with new precompiled headers:" $headers
for header in $headers; do
  rm -f "$folder/$header.gch"
  CCACHE_RECACHE=1 build "$header.gch"
done
attempt "$@" && exit
was_ended_by_signal || exit 1
echo "The compiler was ended by a signal again. Building without precompiled headers."
cmake --preset "$preset" -DTANDEM_PRECOMPILE=OFF
build "$@"
