#!/usr/bin/env bash
# Installs what the checks need beyond Go and make: a C compiler, for the race
# detector, and npm, which fetches TypeScript's compiler by package name. For
# loki.source.journal, which make integration tests where the headers are, add
# libsystemd-dev and systemd-journal-remote by hand.
set -eu
packages=()
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v npm >/dev/null || packages+=(npm)
[ ${#packages[@]} -gt 0 ] || exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
retry="-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300"
$sudo apt-get $retry update -qq
$sudo apt-get $retry install -y -qq --no-install-recommends "${packages[@]}"
