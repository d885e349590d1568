#!/usr/bin/env bash
# Installs the packages of /packages inside an image, without MPI, and leaves no lists, caches or packages behind.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -qy install --no-install-recommends /packages/tandem_*.deb /packages/libtandem_*.deb
apt-get clean
rm -rf /var/lib/apt/lists/* /packages/*.deb
mkdir -p /work
