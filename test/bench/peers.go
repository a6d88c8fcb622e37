package main

import "context"

var peers = scenario{name: "peers", about: "x", run: func(ctx context.Context, b *bench) (result, error) { return result{}, missing("x") }}
