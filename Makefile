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
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: fmt vet staticcheck lint tidy fuzz ## everything below that needs no judgement, except the tests
	$(call say,govulncheck)
	@status=0; scripts/vuln.sh $(TOOL) govulncheck ./... || status=$$?; \
	case $$status in \
	0) printf '\n--- check passed\n' ;; \
	4) printf '\n--- check passed, but NOT CHECKED: known vulnerabilities\n' ;; \
	*) exit $$status ;; \
	esac

.PHONY: test
test: ## all tests, with the race detector and in random order
	$(GO) test -race -shuffle=on -timeout 15m ./...

.PHONY: bench
bench: ## all Go benchmarks, BENCH=pattern BENCH_COUNT=n; compare two runs with `make benchstat`; livetree-bench measures a whole server
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) -timeout 60m ./...

# n of `make growth`, which runs everything at n, 4n and 16n.
GROWTH ?= 5000

.PHONY: growth
growth: ## what could grow with history, at n, 4n and 16n: GROWTH=n; a small n is part of the tests
	$(call say,growth)
	$(GO) test -count=1 -timeout 30m -v -run '^TestGrowth' ./internal/store ./internal/engine ./internal/watch
	$(GO) test -count=1 -timeout 60m -v -run '^TestGrowth$$' ./internal/catalog -growth.n '$(GROWTH)'

# How often calm and attack take turns, and how nice the attackers are: 0 lets them
# take the processor from the server, as they run on the same machine.
PRESSURE_ROUNDS ?= 3
PRESSURE_NICE ?= 19

.PHONY: pressure
pressure: ## what ordinary clients notice of each attack, as a table: PRESSURE_ROUNDS=n PRESSURE_NICE=n; takes 10 minutes
	$(call say,pressure)
	$(GO) test -count=1 -timeout 60m -v -run '^TestPressure$$' ./trust -pressure.rounds $(PRESSURE_ROUNDS) -pressure.nice $(PRESSURE_NICE)

# How many rounds the drills of a cluster have: 1 is some minutes, 50 some hours.
DRILLS ?= 1
NIGHTLY_DRILLS ?= 50

.PHONY: cluster
cluster: ## drills of three real nodes: kills, restarts, histories, cuts, damage: DRILLS=n; takes 10 minutes
	$(call say,drills of a cluster)
	$(GO) test -count=1 -timeout 12h -v -run '^TestCluster' ./trust -drills $(DRILLS)

.PHONY: cluster-nightly
cluster-nightly: ## the same for some hours: NIGHTLY_DRILLS=n; figures go to FIGURES
	$(call say,drills of a cluster)
	$(GO) test -count=1 -timeout 24h -v -run '^TestCluster' ./trust -drills $(NIGHTLY_DRILLS) $(KEEP)

# How long the soak runs, with the binary of a release, and where it keeps data and measurements between runs; empty for nowhere.
SOAK ?= 4h
SOAK_DIR ?=

.PHONY: soak
soak: ## mixed load for SOAK=4h, one server steady and one killed all the time; ^C ends it in order, SOAK_DIR= to go on in parts; figures go to FIGURES
	$(call say,soak)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	CGO_ENABLED=0 $(GO) build -trimpath -o "$$dir/livetree" ./cmd/livetree; \
	$(GO) test -count=1 -timeout 48h -v -run '^TestSoak$$' ./trust -soak $(SOAK) -binary "$$dir/livetree" $(if $(SOAK_DIR),-soak.dir '$(abspath $(SOAK_DIR))') $(KEEP)

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
	@$(GO) vet -tags no_cluster ./internal/cluster/... ./cmd/...
	@$(GO) vet -tags level_next ./internal/cluster/...

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
	@cd conformance/adminsdk && $(GO) vet ./... && $(GO) test -count=1 -timeout 5m ./...

.PHONY: browser
browser: ## a browser and Node's eventsource against a real server, where Chromium and Node are installed
	$(call say,browser)
	@GO='$(GO)' conformance/browser/check.sh

.PHONY: console
console: ## the page of the console: types, lint, its modules under Node, and a browser against a real server: ONLY=text
	$(call say,console)
	@GO='$(GO)' ONLY='$(ONLY)' internal/console/webtest/check.sh

.PHONY: console-check
console-check: ## of these, what needs no browser
	$(call say,console without a browser)
	@internal/console/webtest/check.sh page

.PHONY: sdk
sdk: ## the JavaScript SDKs and the Admin SDK for Node against real servers, where Node and Chromium are installed: ONLY=text names what is run
	$(call say,JavaScript SDKs)
	@GO='$(GO)' ONLY='$(ONLY)' conformance/sdk/check.sh

.PHONY: adminsuite
adminsuite: ## the integration suite of that SDK, where the system allows namespaces
	$(call say,Firebase Admin SDK: its own suite)
	@cd conformance/adminsdk && LIVETREE_ADMIN_SUITE=1 $(GO) test -count=1 -timeout 10m -run '^TestSuite$$' -v ./...

.PHONY: firebasetools
firebasetools: ## firebase-tools against a real server; needs node and npm, takes minutes
	$(call say,firebase-tools)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(GO) build -o "$$dir/livetree" ./cmd/livetree; \
	cd conformance/firebasetools; \
	npm ci --no-audit --no-fund --ignore-scripts; \
	node run.mjs "$$dir/livetree"

.PHONY: acme
acme: ## certificates from Pebble, Let's Encrypt's authority for tests, for a real server, in a module of its own
	$(call say,ACME)
	@cd conformance/acme; \
	if ! $(GO) mod download; then echo '*** SKIPPED, ACME was NOT checked: the modules cannot be fetched' >&2; exit 0; fi; \
	$(GO) vet ./... && $(GO) test -count=1 -timeout 10m ./...

.PHONY: s3
s3: ## archives in a bucket of a real S3 server, Versity's gateway, in a module of its own
	$(call say,S3)
	@cd conformance/s3; \
	if ! $(GO) mod download; then echo '*** SKIPPED, S3 was NOT checked: the modules cannot be fetched' >&2; exit 0; fi; \
	$(GO) vet ./... && $(GO) test -count=1 -timeout 30m ./...

.PHONY: manifests
manifests: ## the files for Kubernetes and Compose against the types and schemas of those, in a module of its own
	$(call say,manifests)
	@cd conformance/manifests; \
	if ! $(GO) mod download; then echo '*** SKIPPED, manifests were NOT checked: the modules cannot be fetched' >&2; exit 0; fi; \
	$(GO) vet ./... && $(GO) test -count=1 -timeout 5m ./...

.PHONY: proxies
proxies: ## nginx and Caddy in front of a real server, where they are installed; INSTALL=yes installs them
	$(call say,proxies)
	@GO='$(GO)' scripts/proxies.sh

.PHONY: fuzz
fuzz: ## FUZZ_SECONDS seconds of fuzzing, shared by all fuzz targets
	$(call say,fuzzing)
	@GO='$(GO)' scripts/fuzz.sh $(FUZZ_SECONDS)

# Where the figures of nightly and torture are added up, and how many seconds each
# target is fuzzed.
FIGURES ?= figures.txt
NIGHTLY_FUZZ_SECONDS ?= 60
TORTURE_FUZZ_SECONDS ?= 300
KEEP = -figures '$(abspath $(FIGURES))'

# Which parts of them are run, those that begin with this, and a file with the parts that have passed, by which a run that was
# stopped goes on. LIST=yes prints the parts.
PART ?=
DONE ?=
LONG = FIGURES='$(abspath $(FIGURES))' GO='$(GO)' PART='$(PART)' LIST='$(LIST)' DONE='$(if $(DONE),$(abspath $(DONE)))'

.PHONY: nightly
nightly: ## some hours: all tests under the race detector, kills, power cuts, faults, histories, twins, attacks, streams, fuzzing; figures go to FIGURES; DONE=file to go on in parts
	$(call say,nightly)
	@$(LONG) FUZZ_EACH=$(NIGHTLY_FUZZ_SECONDS) scripts/long.sh nightly

.PHONY: torture
torture: ## many hours, before a release: the same by larger counts, against a server with the race detector too; DONE=file to go on in parts
	$(call say,torture)
	@$(LONG) FUZZ_EACH=$(TORTURE_FUZZ_SECONDS) scripts/long.sh torture

.PHONY: figures
figures: ## add up the figures of all runs in FIGURES; of those called most_, the most
	@awk '{ for (i = 3; i <= NF; i++) { split($$i, f, "="); name = $$2 " " f[1]; \
		if (name ~ / most_/) sum[name] = f[2] > sum[name] ? f[2] : sum[name]; else sum[name] += f[2] } } \
		END { for (name in sum) print name, sum[name] }' '$(FIGURES)' | sort

.PHONY: docs
docs: ## run all commands of the manual, the slow ones as well, and write it as a web site to dist/manual
	$(call say,the manual)
	$(GO) test -count=1 -timeout 10m -v -run '^TestCommandsOfThePages$$' ./internal/manual -slow
	$(GO) run ./cmd/livetree docs --html dist/manual

.PHONY: pictures
pictures: ## make the pictures of the manual in docs/images, where Chromium and Node are installed
	$(call say,pictures)
	@GO='$(GO)' scripts/pictures.sh

.PHONY: modules
modules: ## write docs/modules.txt, the modules in the command with their licences, to be reviewed
	$(call say,modules)
	@$(GO) test -count=1 -run '^TestModules$$' ./trust -rewrite-modules
	@git diff --stat -- docs/modules.txt

.PHONY: vuln
vuln: ## known vulnerabilities; fails where the database cannot be reached
	$(call say,govulncheck)
	@scripts/vuln.sh $(TOOL) govulncheck ./...

.PHONY: release
release: ## binaries for all platforms, packages, images, checksums and SBOM in dist/, each built twice and compared: make release VERSION=v0.1.0
	$(call say,release $(VERSION))
	@GO='$(GO)' scripts/release.sh '$(VERSION)'

.PHONY: release-twice
release-twice: ## the same, where the second build compiles everything again; PLATFORMS=linux/amd64 for one of them
	@FRESH=yes $(MAKE) --no-print-directory release VERSION='$(VERSION)'

# The binaries, packages and images in dist/ that are tried: those of VERSION, and OLD for what is upgraded, by default itself.
OLD ?= $(VERSION)
DEB = dist/livetree_$(subst -,~,$(patsubst v%,%,$(1)))_amd64.deb

.PHONY: try-release
try-release: ## run what make release VERSION=v0.1.0 has made, as root: QEMU, podman, a Debian without systemd and with it; INSTALL=yes installs what is missing
	$(call say,binaries for other processors)
	@INSTALL='$(INSTALL)' scripts/try-foreign.sh $(wildcard dist/livetree-$(VERSION)-linux-*)
	$(call say,image)
	@INSTALL='$(INSTALL)' scripts/try-image.sh dist/livetree-$(VERSION)-image-amd64.tar
	$(call say,package)
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	for script in try-deb try-systemd; do INSTALL='$(INSTALL)' "scripts/$$script.sh" $(call DEB,$(OLD)) $(call DEB,$(VERSION)) "$$work/root"; done
