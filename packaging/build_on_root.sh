#!/usr/bin/env bash
# Builds the Debian packages of a source archive on a bare root of another distribution.
#
#   packaging/build_on_root.sh ARCHIVE FOLDER ROOT
#
# ARCHIVE is the release's source archive, FOLDER where the packages go. ROOT is a root made by debootstrap, of which a
# copy is used, or the name of a distribution, for example `noble`. Needs root and a network; prints the seconds of each
# step. SOURCE_DATE_EPOCH is the time in the packages.
set -euo pipefail
archive=$(realpath "$1") folder=$(realpath "$2")
. "$(dirname "${BASH_SOURCE[0]}")/bare_root.sh"

make_root "$3"
step "apt-get update" apt update
step "install dpkg-dev" apt install -y --no-install-recommends dpkg-dev ca-certificates
mkdir -p "$bare/build/source" "$bare/build/packages"
tar -xzf "$archive" -C "$bare/build/source" --strip-components=1
# pip inside trusts what pip outside trusts.
[[ ! -f ${PIP_CERT:-} ]] || cp "$PIP_CERT" "$bare/build/certificates.pem"
build() {
  chroot "$bare" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 TZ=UTC \
    HOME=/build ${PIP_CERT:+PIP_CERT=/build/certificates.pem} TANDEM_CUDA=OFF \
    SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:?}" bash -euc "$1"
}
step "tools/setup.sh" build 'cd /build/source && tools/setup.sh --program'
functions='. /build/source/packaging/make_debian.sh'
step "build" build "$functions; make_build /build/source /build/source/build"
step "Debian packages" build "$functions; make_debian /build/source/build /build/packages"
cp "$bare"/build/packages/*.deb "$folder/"
