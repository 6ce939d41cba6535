# Everything a developer runs. `make` alone lists it.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# A workspace or flags of the developer's must not change what is checked. The
# race detector needs cgo.
export GOWORK := off
export CGO_ENABLED := 1

# Modules with Go packages. All modules: these, and those that only pin tools.
MODULES     := . safestore/prometheus test examples
ALL_MODULES := $(MODULES) test/controlplane tools

# Linters come from the tools module, in the versions pinned there.
TOOL     = go tool -modfile=$(CURDIR)/tools/go.mod
GO_FILES = git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 ls -d 2>/dev/null
SAY      = @printf '\n==> %s\n'

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Watch a store become ready, be revoked and recover, on a real API server.
	go -C examples run ./quickstart

.PHONY: test
test: check e2e ## Run everything that must pass: check, e2e and the demo.
	$(SAY) "demo"
	@$(MAKE) demo

.PHONY: check
check: format vet lint rules tidy unit ## Check format, vet, staticcheck, house rules, go.mod files; unit tests.

.PHONY: e2e
e2e: assets ## Run the end-to-end tests on a real API server and etcd.
	$(SAY) "end-to-end tests: compile"
	go -C test test -race -run='^$$' ./...
	$(SAY) "end-to-end tests: run"
	go -C test test -race -count=1 -p=1 -timeout=30m ./...
	$(SAY) "end-to-end tests: examples"
	go -C examples test -race -count=1 -timeout=20m ./...

.PHONY: soak
soak: assets ## Run the soak test for ten minutes: random faults, every read checked.
	go -C test test -race -count=1 -timeout=20m -v ./e2e -run=TestSoak -soak=10m

.PHONY: faults
faults: assets ## Run the fault matrix beside client-go and controller-runtime; ARGS="-h" says more.
	$(SAY) "fault matrix"
	go -C test run ./cmd/faults $(or $(ARGS),-markdown=FAULTS.md)

.PHONY: mutants
mutants: ## Break the machine on purpose, a line at a time, and print which test notices (20 minutes).
	go -C test run ./cmd/mutants

.PHONY: assets
assets: ## Build the pinned kube-apiserver and etcd, once, and print where they are.
	$(SAY) "control plane"
	go -C test run ./cmd/assets

.PHONY: bench
bench: ## Measure SafeStore and its peers in one run, and print ratios (5 minutes).
	go -C test run ./cmd/bench

.PHONY: fmt
fmt: ## Format all Go files.
	$(GO_FILES) | xargs $(TOOL) goimports -w -local github.com/kube-safestore

# The steps of check.

.PHONY: format
format:
	$(SAY) "format"
	@unformatted=$$($(GO_FILES) | xargs $(TOOL) goimports -l -local github.com/kube-safestore) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "run make fmt for:"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet:
	$(SAY) "vet"
	@set -e; for m in $(MODULES); do echo "$$m"; go -C $$m vet ./...; done

.PHONY: lint
lint:
	$(SAY) "staticcheck"
	@set -e; for m in $(MODULES); do echo "$$m"; (cd $$m && $(TOOL) staticcheck ./...); done

.PHONY: rules
rules:
	$(SAY) "house rules"
	go test -count=1 -timeout=2m ./internal/houserules

.PHONY: tidy
tidy:
	$(SAY) "go.mod files are tidy"
	@set -e; for m in $(ALL_MODULES); do echo "$$m"; go -C $$m mod tidy -diff; done

.PHONY: unit
unit:
	$(SAY) "unit tests"
	go test -race -timeout=10m ./...
	go -C safestore/prometheus test -race ./...
	go -C examples test -race -short ./...
