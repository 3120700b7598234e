# The checks of Livetree. `make` lists the targets.
#
# Tools are pinned in tools/go.mod, a module of its own, so that none of them
# reaches the module graph of the server. The first run builds them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod

# Seconds of fuzzing in one check, shared by all fuzz targets.
FUZZ_SECONDS ?= 60
# What `make bench` runs: a pattern of benchmark names, and how often each.
BENCH ?= .
BENCH_COUNT ?= 6

# Print what is being checked before checking it.
say = @printf '\n--- %s\n' '$(1)'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: fmt vet staticcheck lint tidy fuzz vuln ## everything below that needs no judgement, except the tests
	$(call say,check passed)

.PHONY: test
test: ## all tests, with the race detector and in random order
	$(GO) test -race -shuffle=on -timeout 15m ./...

.PHONY: bench
bench: ## all benchmarks, BENCH=pattern BENCH_COUNT=n; compare two runs with `make benchstat`
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) -timeout 60m ./...

.PHONY: benchstat
benchstat: ## compare two saved runs: make benchstat OLD=old.txt NEW=new.txt
	@$(TOOL) benchstat '$(OLD)' '$(NEW)'

.PHONY: fmt
fmt: ## every Go file is formatted
	$(call say,gofmt)
	@unformatted=$$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.git/*' -exec gofmt -l {} +); \
	if [[ -n $$unformatted ]]; then \
		printf 'not formatted, run gofmt -w on:\n%s\n' "$$unformatted" >&2; exit 1; \
	fi

.PHONY: vet
vet: ## go vet
	$(call say,go vet)
	@$(GO) vet ./...

.PHONY: staticcheck
staticcheck: ## staticcheck
	$(call say,staticcheck)
	@$(TOOL) staticcheck ./...

.PHONY: lint
lint: ## golangci-lint with the linters of .golangci.yml
	$(call say,golangci-lint)
	@$(TOOL) golangci-lint run ./...

.PHONY: tidy
tidy: ## go.mod and go.sum are what go mod tidy would write
	$(call say,go mod tidy)
	@$(GO) mod tidy -diff

.PHONY: adminsdk
adminsdk: ## the Firebase Admin SDK for Go against a real server, in a module of its own
	$(call say,Firebase Admin SDK)
	@cd conformance/adminsdk && $(GO) vet ./... && $(GO) test -timeout 5m ./...

.PHONY: fuzz
fuzz: ## FUZZ_SECONDS seconds of fuzzing, shared by all fuzz targets
	$(call say,fuzzing)
	@GO='$(GO)' scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: vuln
vuln: ## known vulnerabilities, where the database can be reached
	$(call say,govulncheck)
	@scripts/vuln.sh $(TOOL) govulncheck ./...
