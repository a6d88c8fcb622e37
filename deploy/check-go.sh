#!/bin/sh
# Says in words what is wrong when Go is missing or too old for go.mod.
set -eu
need=$(sed -n 's/^go //p' "$(dirname "$0")/../go.mod")
if ! command -v go >/dev/null 2>&1; then
	echo "Go is not installed (or not in PATH). This needs Go $need or newer: https://go.dev/dl/ or, with Homebrew, the formula go." >&2
	exit 1
fi
# Inside the module: a go command that may fetch newer versions of itself has done so then.
have=$(go env GOVERSION 2>/dev/null || true)
have=${have#go}
oldest=$(printf '%s\n%s\n' "$need" "${have%% *}" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)
if [ -z "$have" ] || [ "$oldest" != "$need" ]; then
	have=$(cd / && go version 2>/dev/null || echo "an unknown version")
	echo "Go is too old: this needs Go $need or newer, here is $have. See https://go.dev/dl/." >&2
	exit 1
fi
