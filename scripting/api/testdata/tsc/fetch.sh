#!/bin/sh
# Fetches TypeScript's compiler, pinned by package-lock.json beside this file,
# into the folder given (bin/tsc), and prints where the program is.
set -eu

from=$(cd "$(dirname "$0")" && pwd)
to=${1:?usage: fetch.sh FOLDER}
if ! command -v npm >/dev/null; then
	echo "cannot fetch tsc: npm is not here." >&2
	echo "Install it (apt-get install npm, or https://nodejs.org/), or say where another tsc 7 is: WEIR_TSC=/path/to/tsc go test -run TestTSC ./scripting/api" >&2
	exit 1
fi
mkdir -p "$to"
cd "$to"
if ! cmp -s "$from/package-lock.json" package-lock.json || ! ls node_modules/@typescript/*/lib/tsc* >/dev/null 2>&1; then
	cp "$from/package.json" "$from/package-lock.json" .
	if ! npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=5 >npm.log 2>&1; then
		cat npm.log >&2
		rm -f package-lock.json
		echo "cannot fetch tsc: npm failed; it needs the registry that it is set up for" >&2
		exit 1
	fi
fi
ls -d "$PWD"/node_modules/@typescript/*/lib/tsc | head -n 1
