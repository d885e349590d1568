# Functions for checks on a root made by debootstrap, for scripts to read in (`. bare_root.sh`).
# $work is a folder for the script alone, $bare the root in it; both go when the script ends. Needs root.
work=$(mktemp -d)
bare=$work/root
remove_root() { mountpoint -q "$bare/proc" && umount "$bare/proc"; rm -rf "$work"; }
trap remove_root EXIT

step() { # WORDS COMMAND…: prints the seconds; what the command prints only if it fails.
  local words=$1 start=$SECONDS
  shift
  "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; echo "$(basename "$0"): $words: failed" >&2; exit 1; }
  printf '%6d s  %s\n' $((SECONDS - start)) "$words"
}
inside() { chroot "$bare" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/nonexistent "$@"; }
as_nobody() { chroot --userspec=nobody "$bare" /usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 HOME=/tmp/home "$@"; }
apt() { inside apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }

distribution() { (. "$1/etc/os-release" && echo "$ID${VERSION_ID//./}"); } # ROOT: for example ubuntu2404

# make_root [ROOT|SUITE]: a copy of a root, or a new one of a distribution; default: of that of this machine.
make_root() {
  local suite=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")} components=main
  [[ $(. /etc/os-release && echo "$ID") != ubuntu ]] || components=main,universe
  if [[ -d $suite ]]; then
    step "a copy of $suite" cp -a "$suite" "$bare"
  elif [[ $suite == noble && $(. /etc/os-release && echo "$ID") != ubuntu ]]; then # Debian 12's debootstrap does not know it
    step "debootstrap $suite" debootstrap --variant=minbase --components=main,universe \
      --keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg "$suite" "$bare" http://archive.ubuntu.com/ubuntu \
      /usr/share/debootstrap/scripts/gutsy
  else
    step "debootstrap $suite" debootstrap --variant=minbase --components="$components" "$suite" "$bare"
  fi
  mount -t proc proc "$bare/proc"
  [[ -s $bare/etc/resolv.conf ]] || cp /etc/resolv.conf "$bare/etc/"
  mkdir -p "$bare/tmp/home"
  chmod 1777 "$bare/tmp" "$bare/tmp/home"
}
