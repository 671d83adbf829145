# Everything a newcomer needs: `make demo` and `make test`, on a machine that
# has git and Go. What is missing is installed or built first, and said.

SHELL := /bin/bash
GO ?= go
BIN := bin
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
BINARIES := $(BIN)/backend $(BIN)/agentctl $(BIN)/recoveryctl $(BIN)/fakeagent
SOURCES := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './$(BIN)/*') $(shell find store/migrations -name '*.sql') go.mod go.sum
DEMO_ARGS ?=
BENCH_ARGS ?=
# Tests of one package that run at a time. Those that do so mostly wait.
AT_ONCE := 3

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-long histories lint bench verify clean

help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install Postgres and build the Temporal tool where they are missing
	@tools/setup/postgres.sh
	@command -v temporal >/dev/null || $(MAKE) --no-print-directory $(BIN)/temporal

$(BIN)/temporal: tools/temporal/go.mod tools/temporal/go.sum
	@echo "building Temporal's command line once into $@ (some minutes of CPU) ..."
	@cd tools/temporal && $(GO) build -ldflags '-s -w' -o ../../$@ github.com/temporalio/cli/cmd/temporal
	@touch $@ && echo "built $@"

$(BIN)/staticcheck: tools/lint/go.mod tools/lint/go.sum
	@echo "building staticcheck once into $@ ..."
	@cd tools/lint && $(GO) build -o ../../$@ honnef.co/go/tools/cmd/staticcheck
	@touch $@

$(BIN)/%: $(SOURCES)
	@$(GO) build -ldflags "-X main.version=$(VERSION)" -o $@ ./cmd/$*

build: $(BINARIES) ## Build all commands into bin/

demo: setup build ## The main job end to end: kill the backend, lose nothing (DEMO_ARGS="--agents 50 --graceful …")
	@$(BIN)/recoveryctl demo $(DEMO_ARGS)

test: setup build ## Run all tests, with the race detector
	$(GO) test -race -parallel $(AT_ONCE) -timeout 15m ./...

test-long: setup build ## Whole matrices and long property runs
	RECOVERY_LONG=1 RAPID_CHECKS=10000 $(GO) test -race -parallel $(AT_ONCE) -timeout 120m ./...

histories: setup ## Record the workflow histories that are missing in workflows/histories/
	RECOVERY_RECORD=1 $(GO) test -count=1 -run '^TestBranches$$' ./workflows

lint: $(BIN)/staticcheck ## gofmt, vet, staticcheck, import rules, builds for the other platforms
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || (echo "run gofmt -w on the files above"; exit 1)
	$(GO) vet ./...
	$(GO) vet -tags crashpoints ./internal/crashpoint ./cmd/...
	$(BIN)/staticcheck ./...
	$(GO) test ./internal/architecture
	GOOS=darwin $(GO) build ./...
	GOOS=windows $(GO) build ./...

bench: setup build ## Measure recovery and the event plane beside plain programs (BENCH_ARGS="--only events …")
	@$(BIN)/recoveryctl bench $(BENCH_ARGS)

verify: lint test ## What CI runs

clean: ## Remove what was built
	rm -rf $(BIN)
