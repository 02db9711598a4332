# weir: `make run` starts it, `make test` tests it. Both need Go and make only.
GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 10s
SCENARIO ?= all --measure=30s

# Without the path of the checkout in binaries, checkouts share the build cache.
export GOFLAGS := -trimpath $(GOFLAGS)

# Many tests wait most of the time, so more packages are tested at once than there
# are cores. `make test` begins with scripting, which takes longest.
PARALLEL ?= -p $$(($$(getconf _NPROCESSORS_ONLN) * 2))

# Counts the packages that go build -v names, and prints everything else. The
# last line is "exit CODE".
progress = awk '/^exit [0-9]+$$/ {code = $$2; next} /^[A-Za-z0-9._~\/-]+$$/ {if (++n % 100 == 0) {print "  " n " packages compiled"; fflush()} next} {print; fflush()} END {exit code}'

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-12s %s\n", $$1, $$2}'

build: ## build bin/weir
	@echo "Building bin/weir. The first build compiles some 1,800 packages, which takes several minutes; later builds take seconds."
	@($(GO) build -v -ldflags '-X main.version=$(VERSION)' -o bin/weir ./cmd/weir 2>&1; echo "exit $$?") | $(progress)

run: build ## run the quickstart: this host and weir itself, through a script, into a throwaway Prometheus
	bin/weir run --sandbox --scripts=scripts

quick: ## check what differs from the main branch: gofmt, build, vet, short tests (under a minute)
	@GO='$(GO)' .ci/quick.sh

test: ## run the tests
	@echo "Compiling the packages. The first time this takes several minutes."
	@($(GO) build -v ./... 2>&1; echo "exit $$?") | $(progress)
	@echo "Running the tests. This takes several minutes more; packages are listed as they finish, and later runs test only what has changed."
	$(GO) test $(PARALLEL) -vet=off -timeout 20m ./scripting/... ./...

race: ## run the tests that are not slow with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test $(PARALLEL) -race -short -vet=off -timeout 30m $$($(GO) list ./... | grep -v /docs/wordlist)

race-all: ## run all tests with the race detector, also the slow ones
	CGO_ENABLED=1 $(GO) test $(PARALLEL) -race -vet=off -timeout 60m ./...

lint: ## gofmt, vet and staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not gofmt'ed:"; echo "$$out"; exit 1; fi
	$(GO) vet ./... && $(GO) vet -tags integration ./cmd/... ./natives/... && $(GO) vet -tags nologql ./cmd/weir ./natives/loki/...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

generated: ## generated files are up to date
	$(GO) generate ./natives/... && $(GO) generate ./docs
	git diff --exit-code -- '*_gen.go' docs/reference

platforms: ## it builds everywhere without cgo, and without LogQL
	for os in linux windows darwin freebsd; do echo "build for $$os"; CGO_ENABLED=0 GOOS=$$os $(GO) build ./... || exit 1; done
	CGO_ENABLED=0 $(GO) build -tags nologql ./cmd/weir ./natives/...

tsc: ## check the types of scripts, and the scripts that ship, with TypeScript's compiler (needs npm)
	tsc=$$(scripting/api/testdata/tsc/fetch.sh bin/tsc) && WEIR_TSC=$$tsc $(GO) test -count=1 -run '^TestTSC$$' ./scripting/api

ui: ## check the web UI, and that ui/dist is what its sources bundle to (needs npm)
	$(GO) generate ./ui && npm --prefix ui run --silent check
	git diff --exit-code -- ui/dist && test -z "$$(git status --porcelain -- ui/dist)"

recipes: ## follow the recipes of CONTRIBUTING.md, with all of their commands
	WEIR_RECIPES=1 $(GO) test -run '^TestContributing$$' ./cmd/weir

check: lint generated platforms race tsc ui recipes ## everything that must hold before a change lands
	$(GO) run ./cmd/weir check scripts
	$(GO) run ./cmd/weir test scripts

mutants: ## change the code of the scripts that ship in small ways; the tests must notice each change
	$(GO) run ./cmd/weir test --mutate=10m --mutate-threshold=100 scripts

integration: build ## the faults and counterparts that need real servers, and the web UI in a browser
	npm --prefix ui ci --silent
	$(GO) build -C testdata/servers -o ../../bin/servers/ github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/node_exporter
	$(GO) build -C testdata/loki -o ../../bin/servers/ github.com/grafana/loki/v3/cmd/loki
	WEIR=$(CURDIR)/bin/weir SERVERS=$(CURDIR)/bin/servers $(GO) test -tags integration -count=1 -timeout 30m -p 1 -parallel 3 -v ./cmd/weir/integration/... ./cmd/weirbench ./natives/prometheus/exporter/unix ./natives/remote/...

pictures: build ## take the screenshots of the README and the docs again (needs Chromium)
	WEIR=$(CURDIR)/bin/weir PICTURES=$(CURDIR)/docs/images $(GO) test -tags integration -count=1 -run '^TestUIPictures$$' ./cmd/weir/integration

bench: ## run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-stages: ## measure what a sample costs at each stage, with the floor beside it
	$(GO) test -run '^$$' -bench '^Benchmark(Floor|Intake|Churn|Encode|Compress|Journal|Apply)$$' -benchtime 300ms ./natives/prometheus/scrape ./engine/rule ./natives/prometheus/remote_write | $(GO) run ./cmd/weirbench stages

peers: ## fetch the collectors that weir is measured against into bin/peers
	cmd/weirbench/peers.sh bin/peers

bench-peers: build ## measure weir and its peers at SCENARIO (all of them, 40 minutes), and print the tables
	CGO_ENABLED=0 $(GO) build -o bin/weirbench ./cmd/weirbench
	bin/weirbench run $(SCENARIO)

bench-logs: build ## measure weir and its peers with lines of logs, and print the table
	CGO_ENABLED=0 $(GO) build -o bin/weirbench ./cmd/weirbench
	bin/weirbench logs all

faults: build ## kill, stop, reload, fill and corrupt a weir under load for some minutes: lost = 0
	$(GO) run ./cmd/weirbench faults

fuzz: ## run every fuzz test for FUZZTIME
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$p || exit 1; done; done

.PHONY: help build run quick test race race-all lint generated platforms check tsc ui recipes mutants integration bench bench-stages peers bench-peers bench-logs faults fuzz
