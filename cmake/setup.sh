#!/usr/bin/env bash
# Installs the packages of the named sections of packages.txt, if any is missing: setup.sh program tests
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$here/../.venv"
distribution="$(. /etc/os-release && echo "$ID")"

packages_of() { sed -n "s#^$1: ##p" "$here/packages.txt"; }

missing=()
missing_python=()
missing_alone=()
for section in "$@"; do
  grep -q "^$section[:/]" "$here/packages.txt" || { echo "isochron: [setup] no section \"$section\" in packages.txt" >&2; exit 2; }
  for package in $(packages_of "$section") $(packages_of "$section/$distribution"); do
    state="$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)"
    [[ "$state" == installed ]] || missing+=("$package")
  done
  for package in $(packages_of "$section/python"); do
    grep -qsx "$package" "$venv/installed.txt" || missing_python+=("$package")
  done
  for package in $(packages_of "$section/alone"); do
    grep -qsx "$package" "$venv/installed.txt" || missing_alone+=("$package")
  done
done

if [[ ${#missing[@]} -gt 0 && "$(id -u)" != 0 ]]; then
  echo "isochron: [setup] packages are missing; install them with" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 3
fi
if [[ ${#missing[@]} -gt 0 ]]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

# install_python OPTION PACKAGE..
install_python() {
  [[ -x "$venv/bin/pip" ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check $1 "${@:2}"
  printf '%s\n' "${@:2}" >> "$venv/installed.txt"
}
[[ ${#missing_python[@]} -eq 0 ]] || install_python "" "${missing_python[@]}"
[[ ${#missing_alone[@]} -eq 0 ]] || install_python --no-deps "${missing_alone[@]}"
