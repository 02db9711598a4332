#!/bin/sh
# Fetches the collectors that weirbench compares weir with, as Debian builds
# them, into the folder given (bin/peers), without root and without installing
# anything.
set -eu

to=${1:?usage: peers.sh FOLDER}
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
	echo "cannot fetch peers: apt-get and dpkg are not here." >&2
	echo "Put the programs prometheus, vmagent, rsyslogd and syslog-ng into $to, or onto the PATH:" >&2
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

# Collectors of logs come as programs with modules and libraries, which stay in a
# folder of their own; what is run is a script that says where they are.
lib="$to/debian/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")"
mkdir logs
cd logs
apt-get download rsyslog syslog-ng-core syslog-ng-mod-http \
	libestr0 libfastjson4 liblognorm5 libivykis0 libnet1 libjson-c5 libwrap0 libpcre3 libcurl4
rm -rf "$to/debian"
for package in *.deb; do
	dpkg -x "$package" "$to/debian"
done
paths="$lib:$to/debian/lib/${lib##*/}:$to/debian/usr/lib/syslog-ng"
modules=$(echo "$to"/debian/usr/lib/syslog-ng/[0-9]*)
cat >"$to/rsyslogd" <<-END
	#!/bin/sh
	LD_LIBRARY_PATH=$paths exec $to/debian/usr/sbin/rsyslogd "\$@" -M $lib/rsyslog
END
cat >"$to/syslog-ng" <<-END
	#!/bin/sh
	LD_LIBRARY_PATH=$paths exec $to/debian/usr/sbin/syslog-ng --module-path=$modules "\$@"
END
for program in rsyslogd syslog-ng; do
	chmod +x "$to/$program"
	echo "$to/$program $(dpkg-deb -f "$(ls ${program%d}*.deb | head -n 1)" Version)"
done
