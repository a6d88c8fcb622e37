package service

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// What the tests here change is the whole process's, so none of them is parallel, and each puts it back.
func keepRuntimeSettings(t *testing.T) {
	t.Helper()
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	limit := debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

func settings() (percent int, limit int64) {
	percent = debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent, debug.SetMemoryLimit(-1)
}

func TestMemoryIsTunedUnlessSomebodyElseDoes(t *testing.T) {
	for _, c := range []struct {
		name, gogc, limit string
		wantPercent       int
		wantLimit         int64
	}{
		{"nobody else", "", "", gcPercent, memoryFloor},
		{"a limit is set", "", "64MiB", gcPercent, 77 << 20},
		{"the growth is set", "100", "", 123, 77 << 20},
		{"both are set", "100", "64MiB", 123, 77 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			keepRuntimeSettings(t)
			t.Setenv("GOGC", c.gogc)
			t.Setenv("GOMEMLIMIT", c.limit)
			debug.SetGCPercent(123) // as the Go runtime has read it from the environment
			debug.SetMemoryLimit(77 << 20)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			tuneMemory(ctx)
			if percent, limit := settings(); percent != c.wantPercent || limit != c.wantLimit {
				t.Errorf("the heap may grow by %d %%, all to %d bytes; want %d %% and %d", percent, limit, c.wantPercent, c.wantLimit)
			}
		})
	}
}

func TestServiceThatNeedsMoreMemoryGetsIt(t *testing.T) {
	keepRuntimeSettings(t)
	k := memoryKeeper{limit: memoryFloor}
	for _, c := range []struct{ live, beside, want int64 }{
		{5 << 20, 10 << 20, memoryFloor}, {memoryFloor / 2, 1, memoryFloor + 1}, {100 << 20, 50 << 20, 250 << 20}, {1 << 20, 0, memoryFloor},
	} {
		debug.SetMemoryLimit(1 << 40)
		k.limit = 1 << 40
		k.adapt(c.live, c.beside)
		if _, limit := settings(); limit != c.want {
			t.Errorf("with %d bytes alive and %d beside the limit is %d, want %d", c.live, c.beside, limit, c.want)
		}
	}
	others := memoryKeeper{}
	debug.SetMemoryLimit(1 << 40)
	others.adapt(100<<20, 0)
	if _, limit := settings(); limit != 1<<40 {
		t.Errorf("somebody else's limit became %d", limit)
	}
}

// Thousands of connections have more in their stacks than all of the heap is, and the memory limit is for both: what is left for the
// heap must be twice of what lives there all the same, or the collector would run without a pause.
func TestStacksLeaveTheHeapItsRoom(t *testing.T) {
	keepRuntimeSettings(t)
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryFloor)
	var started sync.WaitGroup
	hang := make(chan struct{})
	for range 4000 {
		started.Add(1)
		go func() {
			var frame [8 << 10]byte
			wait(&frame, &started, hang)
		}()
	}
	started.Wait()
	defer close(hang)
	alive := make([][]byte, 1000)
	for i := range alive {
		alive[i] = make([]byte, 20<<10)
	}
	runtime.GC()
	ctx, stop := context.WithCancel(t.Context())
	ticks, done := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(done)
		(&memoryKeeper{limit: memoryFloor, restAfter: time.Hour}).run(ctx, ticks)
	}()
	ticks <- time.Time{}
	stop()
	<-done
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if live, _, _ := collected(); stats.NextGC < uint64(live)*17/10 || stats.StackInuse < 40<<20 { // the runtime keeps 3 % back
		t.Errorf("with %d bytes alive, and %d in stacks, the next collection is at %d", live, stats.StackInuse, stats.NextGC)
	}
	runtime.KeepAlive(alive)
}

//go:noinline
func wait(frame *[8 << 10]byte, started *sync.WaitGroup, hang <-chan struct{}) {
	frame[len(frame)-1] = 1
	started.Done()
	<-hang
}

// A burst leaves garbage that nothing collects when nothing happens any more.
func TestRestingServiceGivesMemoryBack(t *testing.T) {
	keepRuntimeSettings(t)
	debug.SetGCPercent(-1) // nothing but the keeper collects
	debug.SetMemoryLimit(1 << 40)
	for _, c := range []struct {
		name      string
		restAfter time.Duration
		want      bool
	}{{"rests", 0, true}, {"worked a moment ago", time.Hour, false}} {
		t.Run(c.name, func(t *testing.T) {
			runtime.GC()
			burst := make([]byte, 64<<20)
			for i := 0; i < len(burst); i += 4096 {
				burst[i] = 1
			}
			runtime.KeepAlive(burst)
			before := held()
			ctx, stop := context.WithCancel(t.Context())
			ticks, done := make(chan time.Time), make(chan struct{})
			go func() {
				defer close(done)
				(&memoryKeeper{restAfter: c.restAfter}).run(ctx, ticks)
			}()
			ticks <- time.Time{}
			stop()
			<-done
			if gave := before-held() >= 60<<20; gave != c.want {
				t.Errorf("of %d bytes %d are held still; given back: %v, want %v", before, held(), gave, c.want)
			}
		})
	}
}

// held is what the heap has from the operating system.
func held() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	sum := int64(0)
	for _, s := range samples {
		sum += int64(s.Value.Uint64())
	}
	return sum
}
