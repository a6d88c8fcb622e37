package service_test

import (
	"slices"
	"testing"

	"example.com/banking/internal/testenv"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestIDsComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	pool := openPool(t, testenv.New(t).Database(t, "ids"))
	ids := []uuid.UUID{uuid.New(), uuid.Nil, uuid.Max}
	some := []uuid.NullUUID{{UUID: uuid.New(), Valid: true}, {}}
	var one uuid.UUID
	var none uuid.NullUUID
	var gotIDs []uuid.UUID
	var gotSome []uuid.NullUUID
	err := pool.QueryRow(t.Context(), `select $1::uuid, $2::uuid, $3::uuid[], $4::uuid[]`, ids[0], uuid.NullUUID{}, ids, some).
		Scan(&one, &none, &gotIDs, &gotSome)
	if err != nil || one != ids[0] || none.Valid || !slices.Equal(gotIDs, ids) || !slices.Equal(gotSome, some) {
		t.Errorf("%s %v %v %v, %v", one, none, gotIDs, gotSome, err)
	}
}

// A batch of messages carries hundreds of ids. The driver's usual way makes a text of each and reads it again, which takes twenty
// allocations; it is to take the bytes.
func TestIDsTravelAsTheirBytes(t *testing.T) { // not parallel: it counts allocations
	types := typesOf(t, openPool(t, testenv.New(t).Database(t, "ids")))
	ids := newIDs()
	var buf []byte
	perRun := testing.AllocsPerRun(100, func() {
		var err error
		if buf, err = types.Encode(pgtype.UUIDArrayOID, pgtype.BinaryFormatCode, ids, buf[:0]); err != nil {
			t.Fatal(err)
		}
	})
	if perID := perRun / float64(len(ids)); perID > 4 {
		t.Errorf("%.1f allocations for an id", perID)
	}
}

func BenchmarkIDs(b *testing.B) {
	for name, types := range map[string]*pgtype.Map{
		"pool":   typesOf(b, openPool(b, testenv.New(b).Database(b, "ids"))),
		"driver": pgtype.NewMap(),
	} {
		b.Run(name, func(b *testing.B) {
			ids := newIDs()
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = types.Encode(pgtype.UUIDArrayOID, pgtype.BinaryFormatCode, ids, buf[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func newIDs() []uuid.UUID {
	ids := make([]uuid.UUID, 64)
	for i := range ids {
		ids[i] = uuid.New()
	}
	return ids
}

// typesOf is how the connections of a pool encode values.
func typesOf(t testing.TB, pool *pgxpool.Pool) *pgtype.Map {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	return conn.Conn().TypeMap()
}
