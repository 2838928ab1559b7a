#!/usr/bin/env bash
# Installs the packages of the named sections of packages.txt, if any is missing: setup.sh program tests
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

missing=()
for section in "$@"; do
  packages="$(sed -n "s/^$section: //p" "$here/packages.txt")"
  [[ -n "$packages" ]] || { echo "isochron: [setup] no section \"$section\" in packages.txt" >&2; exit 2; }
  for package in $packages; do
    state="$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)"
    [[ "$state" == installed ]] || missing+=("$package")
  done
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ "$(id -u)" != 0 ]]; then
  echo "isochron: [setup] packages are missing; install them with" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 3
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "${missing[@]}"
