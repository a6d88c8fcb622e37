# make help lists the targets.

BIN      := bin
SERVICES := $(notdir $(patsubst %/main.go,%,$(wildcard services/*/main.go)))
GOFILES  := $(shell find cmd deploy docs exercises internal pkg services test -name '*.go' 2>/dev/null)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@latest

# Without version control stamps: asking git fails in a clone that another user owns.
BUILD_FLAGS := -buildvcs=false

# Tests of two packages at a time suit two cores; they share one pair of servers.
TEST_PARALLEL ?= 2
TEST_TIMEOUT  ?= 10m
TEST_FLAGS    ?=

# Making an interesting input small would otherwise take most of that time.
FUZZTIME      ?= 1m
FUZZ          := go test -run '^$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 100x

# One run of all scenarios takes about 20 minutes; a result that is to be kept needs three.
RUNS          ?= 1
PEERS         ?=
BENCH         ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: install build ## Start servers and services here; Ctrl-C stops them, the data stays
	@exec $(BIN)/bank up

.PHONY: down
down: build ## Stop a bank that runs in the background (bank up --detach)
	@$(BIN)/bank down

.PHONY: demo
demo: install build ## Start everything, take a guided tour that checks itself, stop
	@exec $(BIN)/bank demo

.PHONY: test
test: install-test ## Run all tests with the race detector, on private servers
	go run ./internal/testenv/hold go test -race -p $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: bench
bench: install ## Measure the bank on private servers: RUNS=3, PEERS=folder with run.sh, BENCH='scenario --flag ...'
	go run ./test/bench --runs $(RUNS) $(if $(PEERS),--peers $(PEERS)) $(BENCH)

.PHONY: fuzz
fuzz: check-go ## Try hostile bodies and headers, each for FUZZTIME (1m)
	$(FUZZ) -fuzz '^FuzzDecode$$' ./pkg/messaging
	$(FUZZ) -fuzz '^FuzzReadDeaths$$' ./pkg/messaging
	$(FUZZ) -fuzz '^FuzzHeaders$$' ./pkg/messaging
	$(FUZZ) -fuzz '^FuzzGuard$$' ./pkg/messaging
	$(FUZZ) -fuzz '^FuzzParked$$' ./pkg/quarantine

.PHONY: test-rules
test-rules: check-go ## Test the alert rules, also with promtool where it is installed
	go test ./deploy/prometheus
	@cd deploy/prometheus && if command -v promtool >/dev/null; then promtool check config prometheus.yml && promtool test rules rules_test.yml; \
	else echo "promtool is not installed: its engine has run the same tests above"; fi

.PHONY: test-compose
test-compose: ## Start the Docker composition and check it; needs a container engine
	test/compose/run.sh

.PHONY: test-rabbitmq4
test-rabbitmq4: install-race ## Run the tests on RabbitMQ 4 and PostgreSQL 17; needs a container engine or given servers
	test/rabbitmq4/run.sh

.PHONY: new-service
new-service: check-go ## Make a service: NAME=fees, and CONSUMES=key,…  RETRY=in-process|lap|tiered  MODULE=path  TO=folder
	@go run $(BUILD_FLAGS) ./cmd/bank new-service $(NAME) $(if $(CONSUMES),--consumes=$(CONSUMES)) $(if $(RETRY),--retry=$(RETRY)) \
		$(if $(MODULE),--module=$(MODULE)) $(if $(TO),--to=$(TO))

.PHONY: build
build: check-go ## Build bank and the services into bin/, the wrong variants into bin/variants/
	@mkdir -p $(BIN)
	CGO_ENABLED=0 go build -trimpath $(BUILD_FLAGS) -o $(BIN)/ ./cmd/... $(addprefix ./services/,$(SERVICES))
	CGO_ENABLED=0 go build -trimpath $(BUILD_FLAGS) -o $(BIN)/variants/ ./exercises/variants/...

.PHONY: lint
lint: check-go lint-go lint-sh ## Run all linters

.PHONY: lint-go
lint-go: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l $(GOFILES)); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...

.PHONY: lint-sh
lint-sh: ## shellcheck, where it is installed
	@if command -v shellcheck >/dev/null; then shellcheck deploy/*.sh deploy/*/*.sh test/*/*.sh test/bench/peers/*/*.sh .ci/run; \
	else echo "shellcheck is not installed: shell scripts are not checked"; fi

.PHONY: vuln
vuln: check-go ## Look for known vulnerabilities; needs vuln.go.dev
	go run $(GOVULNCHECK) ./...

.PHONY: fmt
fmt: check-go ## Format the Go code
	gofmt -w $(GOFILES)

.PHONY: install
install: check-go ## Install PostgreSQL and RabbitMQ when missing, or say what to install
	@deploy/install.sh servers

.PHONY: install-test
install-test: check-go
	@deploy/install.sh servers race browser

.PHONY: install-race
install-race: check-go
	@deploy/install.sh race

.PHONY: check-go
check-go:
	@deploy/check-go.sh

.PHONY: clean
clean: ## Stop a bank that runs here and remove its data and the built programs
	@if [ -x $(BIN)/bank ]; then $(BIN)/bank down; fi
	@if [ -L .bank/servers/postgres ]; then rm -rf "$$(readlink .bank/servers/postgres)"; fi
	rm -rf .bank $(BIN)
