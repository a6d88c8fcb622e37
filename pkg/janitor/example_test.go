package janitor_test

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/janitor"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A sweep walks over the table once. In a service it is Run that does so, again and again.
func ExampleJanitor_Sweep() {
	t, end := testenv.Example()
	defer end()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	_, err = pool.Exec(t.Context(), `create table visits (id integer primary key, at timestamptz not null);
		insert into visits select n, now() - n * interval '1 day' + interval '1 hour' from generate_series(1, 100) n`)
	if err != nil {
		fmt.Println(err)
		return
	}
	j := janitor.New(janitor.Config{
		Pool: pool, Table: "visits", Column: "at", Retention: 30 * 24 * time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	fmt.Println(j.Sweep(t.Context()))
	// Output:
	// 70 <nil>
}
