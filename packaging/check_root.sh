#!/usr/bin/env bash
# Installs the Debian packages on a bare root, trains, removes them, and shows that nothing is left.
#
#   packaging/check_root.sh FOLDER [ROOT]
#
# FOLDER has the packages; those for the root's distribution are taken. ROOT is a root made by debootstrap, of which a copy is used, or the name of a distribution
# (default: that of this machine). Needs root; prints the seconds of each step.
set -euo pipefail
folder=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/bare_root.sh"

# Files and packages; without what every use of apt and dpkg changes.
listing() {
  (cd "$bare" && find . -xdev -not -type d -not -path './proc/*' -not -path './run/*' -not -path './tmp/*' -not -path './var/lib/apt/*' \
    -not -path './var/cache/*' -not -path './var/log/*' -not -path './var/lib/dpkg/*' -not -path './etc/ld.so.cache' \
    -not -path './dev/*' -printf '%p %s\n' | sort)
  inside dpkg-query -W -f '${Package} ${db:Status-Status}\n'
}

make_root "${@:2:1}"
cp /etc/apt/sources.list.d/debian.sources "$bare/etc/apt/sources.list.d/" 2>/dev/null && : >"$bare/etc/apt/sources.list" || true
step "apt-get update" apt update
listing >"$work/before"

mkdir "$bare/tmp/packages"
mapfile -t packages < <(ls "$folder"/*"~$(distribution "$bare")"_*.deb "$folder"/*-1_*.deb 2>/dev/null)
((${#packages[@]})) || { echo "check_root: no packages for $(distribution "$bare") in $folder" >&2; exit 1; }
cp "${packages[@]}" "$bare/tmp/packages/"
named() { (cd "$bare" && printf '/%s ' $(printf 'tmp/packages/%s_*.deb ' "$@")); } # PACKAGE…: paths inside the root
step "install the program" apt install -y --no-install-recommends \
  $(named tandem libtandem)
cp "$here/first_training.sh" "$bare/tmp/"
step "train a first model, as nobody" as_nobody sh -e /tmp/first_training.sh
tail -n 3 "$work/log"
step "remove it" apt purge -y --autoremove tandem libtandem
listing >"$work/after"
if ! diff "$work/before" "$work/after"; then
  echo "check_root: the lines above are left or missing after the packages were removed" >&2
  exit 1
fi
echo "nothing is left of the packages"

# A second time with the headers and with MPI. Debian's own packages leave groups behind; only what is ours is compared.
ls "$bare"/tmp/packages/libtandem-dev_*.deb >/dev/null 2>&1 || exit 0
cp -r "$here/../tests/api/consumer" "$here/first_program.sh" "$bare/tmp/"
step "install it with headers, a compiler, CMake, MPI" apt install -y --no-install-recommends g++ cmake make pkg-config \
  openmpi-bin $(named tandem libtandem libtandem-dev)
step "build a program with the library, train with two processes" inside sh -e /tmp/first_program.sh
tail -n 1 "$work/log"
step "remove it" apt purge -y tandem libtandem libtandem-dev
if find "$bare" -xdev -path "$bare/tmp" -prune -o -iname '*tandem*' -not -path '*/cache/*' -print | grep .; then
  echo "check_root: the files above are left" >&2
  exit 1
fi
echo "nothing is left of the packages"
