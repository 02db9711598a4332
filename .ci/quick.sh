#!/usr/bin/env bash
# Checks what differs from the main branch, uncommitted files included: gofmt,
# go build, go vet, and go test -short of the changed packages. The packages
# that import them directly are tested as well if there are at most
# MAX_IMPORTERS; of cmd/weir, which imports everything, the rules between
# packages and the generated pages are checked. TestScript, the slow test of the
# command line, runs only if the command line or TestScript has changed. BASE is the commit to compare with; the default
# is the point where the branch left origin/main or main.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}

base=${BASE:-}
for ref in origin/main origin/master main master; do
  [ -z "$base" ] || break
  base=$(git merge-base HEAD "$ref" 2>/dev/null) || base= # no such branch, or a shallow clone
done
if [ -z "$base" ]; then
  echo "There is no main branch to compare with; only uncommitted changes are checked. To compare with another commit, set BASE."
  base=HEAD
fi

files=$({ git diff --name-only "$base" --; git ls-files --others --exclude-standard; } | sort -u)
if [ -z "$files" ]; then
  echo "Nothing has changed since $(git rev-parse --short "$base")."
  exit 0
fi

# package prints the package whose tests cover a file: the nearest folder with
# Go files.
package() {
  case $1 in
  testdata/script/* | Makefile) echo ./cmd/weir; return ;;
  testdata/* | .ci/* | .github/*) return ;;
  *.md) echo ./docs; echo ./docs/wordlist ;;
  esac
  local dir=$1
  while [[ $dir == */* ]]; do
    dir=${dir%/*}
    if compgen -G "$dir/*.go" >/dev/null; then echo "./$dir"; return; fi
  done
}
changed=$(while read -r file; do package "$file"; done <<<"$files" | sort -u)

code=$(grep '\.go$' <<<"$files" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done) || true
if [ -n "$code" ]; then
  unformatted=$(gofmt -l $code)
  if [ -n "$unformatted" ]; then
    echo "These files are not formatted; run gofmt -w:"
    echo "$unformatted"
    exit 1
  fi
fi
if [ -n "$code" ] || grep -q '^go\.' <<<"$files"; then
  $go build ./...
fi
if [ -z "$changed" ]; then
  echo "No package has changed since $(git rev-parse --short "$base")."
  exit 0
fi
$go vet $changed

# A package is on a line with what it and its tests import.
importers=
if [ -n "$code" ]; then
  paths=$($go list $(grep '\.go$' <<<"$files" | while read -r file; do package "$file"; done | sort -u))
  importers=$($go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
    awk -v paths="$paths" 'BEGIN {split(paths, p); for (i in p) is[p[i]] = 1}
      !is[$1] && $1 !~ /\/cmd\// {for (i = 2; i <= NF; i++) if (is[$i]) {print $1; next}}')
  n=$(wc -w <<<"$importers")
  if [ "$n" -gt "${MAX_IMPORTERS:-5}" ]; then
    echo "$n packages import the changed ones: too many for make quick. make test tests them."
    importers=
  fi
fi
echo "Testing" $changed $importers
status=0
if grep -E '^(cmd/weir/[^/]*|testdata/script/.*|Makefile)$' <<<"$files" | grep -vE '_test\.go$' | grep -q . ||
  grep -qx cmd/weir/script_test.go <<<"$files"; then
  $go test -short -vet=off $changed $importers || status=$?
else
  others=$(grep -vx ./cmd/weir <<<"$changed") || true
  [ -z "$others$importers" ] || $go test -short -vet=off $others $importers || status=$?
  $go test -short -vet=off -skip '^TestScript$' ./cmd/weir || status=$?
fi
exit $status
