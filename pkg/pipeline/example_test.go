package pipeline_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/pipeline"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// jars is a database with two jars of coins.
func jars() (pool *pgxpool.Pool, end func()) {
	t, drop := testenv.Example()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "jars"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table jars (name text primary key, coins integer not null);
		insert into jars values ('kitchen', 5), ('hall', 0)`); err != nil {
		t.Fatal(err)
	}
	return pool, func() { pool.Close(); drop() }
}

var errTooFew = errors.New("there are too few coins")

// A transaction in which something is decided takes two round trips: one that begins, locks and reads, and after the decision, which is made in
// memory, one that writes and commits. What is read is locked, so nobody else decides on the same coins meanwhile.
func ExampleBegin() {
	pool, end := jars()
	defer end()
	move := func(ctx context.Context, from, to string, coins int) error {
		has := map[string]int{}
		tx, err := pipeline.Begin(ctx, pool, func(b *pgx.Batch) {
			b.Queue(`select name, coins from jars where name = any($1) order by name for update`, []string{from, to}).Query(func(rows pgx.Rows) error {
				var name string
				var n int
				_, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { has[name] = n; return nil })
				return err
			})
		})
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after a commit
		if has[from] < coins {
			return errTooFew
		}
		return tx.Commit(ctx, func(b *pgx.Batch) {
			b.Queue(`update jars set coins = coins - $2 where name = $1`, from, coins)
			b.Queue(`update jars set coins = coins + $2 where name = $1`, to, coins)
		})
	}
	fmt.Println(move(context.Background(), "kitchen", "hall", 3))
	fmt.Println(move(context.Background(), "kitchen", "hall", 3))
	// Output:
	// <nil>
	// there are too few coins
}

// Scan is for what reads a whole table on purpose.
func ExampleScan() {
	pool, end := jars()
	defer end()
	err := pipeline.Scan(context.Background(), pool, `select sum(coins) from jars`, func(rows pgx.Rows) error {
		sum, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		fmt.Println("coins:", sum)
		return err
	})
	fmt.Println(err)
	// Output:
	// coins: 5
	// <nil>
}
