#!/usr/bin/env bash
# Installs what the checks need beyond Go and make: a C compiler, for the race
# detector.
set -eu
command -v cc >/dev/null && exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
retry="-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300"
$sudo apt-get $retry update -qq
$sudo apt-get $retry install -y -qq --no-install-recommends gcc libc6-dev
