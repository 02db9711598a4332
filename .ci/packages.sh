#!/usr/bin/env bash
# Installs what the checks need beyond Go and make: a C compiler for the race
# detector, npm to fetch TypeScript's compiler, and systemd's tools, which tests
# of loki.source.journal write journals with and compare what they read with. The
# cases of testdata/reload save files with git, rsync and vim. Chromium opens the web
# UI. The completions are tried in zsh and fish. unzip reads support bundles. The
# tests of remote.* run etcd, Redis and ZooKeeper.
set -eu
packages=()
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v npm >/dev/null || packages+=(npm)
command -v journalctl >/dev/null || packages+=(systemd)
[ -x /lib/systemd/systemd-journal-remote ] || packages+=(systemd-journal-remote)
command -v git >/dev/null || packages+=(git)
command -v rsync >/dev/null || packages+=(rsync)
command -v vim >/dev/null || packages+=(vim)
command -v chromium >/dev/null || packages+=(chromium)
command -v zsh >/dev/null || packages+=(zsh)
command -v fish >/dev/null || packages+=(fish)
command -v unzip >/dev/null || packages+=(unzip)
command -v etcd >/dev/null || packages+=(etcd-server)
command -v redis-server >/dev/null || packages+=(redis-server)
[ -x /usr/share/zookeeper/bin/zkServer.sh ] || packages+=(zookeeper)
[ ${#packages[@]} -gt 0 ] || exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
retry="-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300"
$sudo apt-get $retry update -qq
# Debian's servers would start as services. They are run by the tests instead.
$sudo env RUNLEVEL=1 apt-get $retry install -y -qq --no-install-recommends "${packages[@]}"
