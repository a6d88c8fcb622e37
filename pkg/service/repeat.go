package service

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"
)

// Repeatable marks the error of a call that may be made again whatever has become of it: it has done nothing, or it would do nothing
// twice, because of an idempotency key. An error of a call that writes is otherwise taken for one of unknown outcome, unless
// the database never got the call or has refused it.
func Repeatable(err error) error {
	if err == nil {
		return nil
	}
	return repeatable{err}
}

type repeatable struct{ error }

func (r repeatable) Unwrap() error { return r.error }

// mayRepeat says whether who got this error may make the same call again without looking first what has become of it.
func mayRepeat(r *http.Request, err error) bool {
	var marked repeatable
	var connect *pgconn.ConnectError
	var answer *pgconn.PgError
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return true
	case errors.As(err, &marked), errors.As(err, &connect), pgconn.SafeToRetry(err):
		return true
	case errors.As(err, &answer):
		return answer.SeverityUnlocalized == "ERROR" // what ends the connection may come just behind the commit
	}
	return false
}
