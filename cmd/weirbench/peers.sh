#!/bin/sh
# Fetches the collectors that weirbench compares weir with, as Debian builds
# them, into the folder given (bin/peers), without root and without installing
# anything.
set -eu

to=${1:?usage: peers.sh FOLDER}
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
	echo "cannot fetch peers: apt-get and dpkg are not here." >&2
	echo "Put the programs prometheus and vmagent into $to, or onto the PATH:" >&2
	echo "  https://prometheus.io/download/" >&2
	echo "  https://github.com/VictoriaMetrics/VictoriaMetrics/releases (vmutils)" >&2
	exit 1
fi
mkdir -p "$to"
to=$(cd "$to" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download prometheus victoria-metrics
for package in prometheus victoria-metrics; do
	dpkg -x "$package"_*.deb .
	dpkg-deb -f "$package"_*.deb Version >"$package.version"
done
cp victoria-metrics.version vmagent.version
for program in prometheus vmagent; do
	cp "usr/bin/$program" "$to/$program.new"
	mv "$to/$program.new" "$to/$program" # the old one may be running
	cp "$program.version" "$to/$program.version"
	echo "$to/$program $(cat "$program.version")"
done
