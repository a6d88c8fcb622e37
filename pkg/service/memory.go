package service

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent lets the heap grow to four times of what lives in it between collections, instead of to twice. Ours is small, about
	// 5 MB, so that is some 15 MB more, and a third of what collecting costs under load.
	gcPercent = 300
	// memoryFloor is up to where that holds: above it there is a collection whenever one is needed to stay below, so that what was in use at
	// an unlucky moment is not multiplied by four. Bytes of the Go runtime's memory; the program itself comes on top, some 20 MB.
	memoryFloor = 36 << 20
	// restAfter is how long nothing must have made a collection necessary for the service to count as resting.
	restAfter = 20 * time.Second
)

// tuneMemory takes memory for time under load, within bounds, and gives it back after it, until the context ends. GOMEMLIMIT wins over the
// bounds, and GOGC over all of it: whoever sets that gets Go's own behaviour.
func tuneMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(gcPercent)
	keeper := memoryKeeper{restAfter: restAfter}
	if os.Getenv("GOMEMLIMIT") == "" {
		keeper.limit = memoryFloor
		debug.SetMemoryLimit(memoryFloor)
	}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		keeper.run(ctx, tick.C)
	}()
}

// memoryKeeper looks after the process's memory at every tick.
type memoryKeeper struct {
	limit     int64 // that it has set; 0: the limit is somebody else's
	restAfter time.Duration
}

func (k *memoryKeeper) run(ctx context.Context, ticks <-chan time.Time) {
	_, _, cycles := collected()
	busy := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		before := cycles
		var live, beside int64
		live, beside, cycles = collected()
		k.adapt(live, beside)
		switch {
		case cycles != before:
			busy = time.Now()
		case time.Since(busy) >= k.restAfter:
			debug.FreeOSMemory() // what a burst has left would stay for two minutes otherwise, and longer where something still allocates
			_, _, cycles = collected()
			busy = time.Now()
		}
	}
}

// adapt leaves a service that needs more than the floor as much again as lives in its heap, beside what is no heap: each connection has
// stacks of its own, and the limit is for both. A limit close to what is needed would make the collector run all the time.
func (k *memoryKeeper) adapt(live, beside int64) {
	if limit := max(memoryFloor, 2*live+beside); k.limit != 0 && limit != k.limit {
		k.limit = limit
		debug.SetMemoryLimit(limit)
	}
}

// collected is what the last collection has found alive and what the runtime has beside its heap, both in bytes, and how many collections there
// have been.
func collected() (live, beside int64, cycles uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return value(0), value(2) - value(3) - value(4) - value(5) - value(6), samples[1].Value.Uint64()
}
