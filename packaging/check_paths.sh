#!/usr/bin/env bash
# Checks that the files of a release name no path of the machine that built them:   packaging/check_paths.sh FOLDER
set -euo pipefail
folder=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$folder"/*.deb; do
  [[ -e $file ]] && dpkg-deb -R "$file" "$work/$(basename "$file" .deb)"
done
for file in "$folder"/*.whl; do
  [[ -e $file ]] && python3 -m zipfile -e "$file" "$work/$(basename "$file" .whl)"
done
status=0
# Folders of users and of builds; libdnnl.so.3 comes as it is from its package.
found=$(grep -rlaE "/(root|home/[a-z]|work|tmp)/[A-Za-z.]" "$work" --exclude libdnnl.so.3 --exclude-dir examples || true)
while IFS= read -r file; do
  [[ -n $file ]] || continue
  grep -aoE "/(root|home/[a-z]|work|tmp)/[A-Za-z0-9./_-]*" "$file" | sort -u | head -n 5 | sed "s|^|release: ${file#"$work/"}: |" >&2
  status=1
done <<<"$found"
while IFS= read -r -d '' file; do
  path=$(readelf -d "$file" 2>/dev/null | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p')
  [[ -z $path || $path == '$ORIGIN'* ]] || { echo "release: ${file#"$work/"} looks for libraries in $path" >&2; status=1; }
done < <(find "$work" -type f \( -name '*.so*' -o -path '*/bin/*' \) -print0)
((status)) || echo "no file of the release names a path of this machine"
exit $status
