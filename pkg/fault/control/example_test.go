package control_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/fault/control"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A service with fault points makes a control, registers its routes behind the admin token and runs its component; its handler asks the points.
// What is armed over HTTP holds from the answer on, and lies in the database, where it outlives the process.
func ExampleControl() {
	t, end := testenv.Example()
	defer end()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), control.Schema); err != nil {
		fmt.Println(err)
		return
	}
	migrated := make(chan struct{})
	close(migrated)
	log := slog.New(slog.DiscardHandler)
	faults := control.New(control.Config{On: true, Pool: pool, Migrated: migrated, Logger: log})
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", AdminToken: "secret", Logger: log})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	faults.Register(server.Admin)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- faults.Component().Run(ctx) }()
	<-faults.Loaded() // consumers start after that

	request := httptest.NewRequest(http.MethodPost, "http://localhost/admin/faults",
		strings.NewReader(`{"point":"handler","action":"error","class":"TIMEOUT","messageId":"m-2","count":1}`))
	request.Header.Set("Authorization", "Bearer secret")
	answer := httptest.NewRecorder()
	server.Handler().ServeHTTP(answer, request)
	fmt.Println("armed:", answer.Code)

	for _, id := range []string{"m-1", "m-2", "m-2"} {
		if err := faults.Points().At(t.Context(), fault.Handler, id); err != nil {
			fmt.Println(id, "fails with", retry.ClassOf(err))
		} else {
			fmt.Println(id, "passes")
		}
	}
	stop()
	fmt.Println(<-stopped)
	// Output:
	// armed: 201
	// m-1 passes
	// m-2 fails with TIMEOUT
	// m-2 passes
	// <nil>
}
