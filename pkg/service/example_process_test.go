package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"example.com/banking/pkg/service"
	"go.opentelemetry.io/otel/trace"
)

// This is a whole main function. It is compiled and not run here, because it ends the process.
func ExampleMain() {
	service.Main("shop", service.Defaults{"HTTP_ADDR": "127.0.0.1:8090"}, func(ctx context.Context, cfg shop, log *slog.Logger) error {
		server, err := service.NewHTTP(service.HTTPConfig{Addr: cfg.HTTPAddr, AdminToken: cfg.AdminToken, Grace: cfg.ShutdownGrace, Logger: log})
		if err != nil {
			return err
		}
		return service.Run(ctx, cfg.ShutdownGrace, log, service.Component{Name: "http", Run: server.Run})
	})
}

// A trace goes on over HTTP and messages: what came in is continued, and what goes out names it. All of its log lines can be found by its id,
// even when no spans are exported.
func ExampleTraceParent() {
	_ = os.Setenv("OTEL_SDK_DISABLED", "true") // whatever else is set, nothing leaves this machine
	defer func() { _ = os.Unsetenv("OTEL_SDK_DISABLED") }()
	var out strings.Builder
	log := service.NewLogger(&out, "shop", slog.LevelInfo, "text")
	stop, err := service.StartTracing(context.Background(), "shop", log) // Main does this
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := service.WithTraceParent(context.Background(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx, end := service.StartSpan(ctx, "place order", trace.SpanKindInternal)
	log.InfoContext(ctx, "placed", "took", 1500*time.Millisecond)
	end(nil)

	_, line, _ := strings.Cut(out.String(), "level=")
	fmt.Print(line)
	fmt.Println(strings.HasPrefix(service.TraceParent(ctx), "00-"+service.TraceID(ctx)+"-"))
	fmt.Println("exported:", service.TracingEnabled(), stop(context.Background()))
	// Output:
	// INFO msg=placed service=shop took=1.5s trace_id=0af7651916cd43dd8448eb211c80319c
	// true
	// exported: false <nil>
}
