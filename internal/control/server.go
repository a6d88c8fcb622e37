package control

import (
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
)

// order is the body of a start or restart; it may be left out.
type order struct {
	Environment map[string]string `json:"environment"`
}

// refusal is the answer to what cannot be done (RFC 9457).
type refusal struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Register serves the keeper on a mux: GET /processes, POST /processes/{name}/{verb}.
func Register(mux *http.ServeMux, keeper Keeper) {
	mux.HandleFunc("GET /processes", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"items": keeper.Processes()})
	})
	mux.HandleFunc("POST /processes/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		verb := Verb(r.PathValue("verb"))
		if !slices.Contains(Verbs(), verb) {
			Refuse(w, http.StatusNotFound, "there is no order "+string(verb))
			return
		}
		var o order
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &o, json.RejectUnknownMembers(true))
		}
		if err != nil {
			Refuse(w, http.StatusBadRequest, "the body cannot be read: "+err.Error())
			return
		}
		if err := checkEnvironment(verb, o.Environment); err != nil {
			Refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		process, err := keeper.Act(r.Context(), r.PathValue("name"), verb, o.Environment)
		switch {
		case err == nil:
			answer(w, http.StatusOK, process)
		case errors.Is(err, ErrUnknown):
			Refuse(w, http.StatusNotFound, err.Error())
		case errors.Is(err, ErrState), errors.Is(err, ErrServer):
			Refuse(w, http.StatusConflict, err.Error())
		case errors.Is(err, ErrSetting):
			Refuse(w, http.StatusBadRequest, err.Error())
		default:
			Refuse(w, http.StatusBadGateway, err.Error())
		}
	})
}

// Guard lets nobody through without the token.
func Guard(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		if token == "" || subtle.ConstantTimeCompare([]byte(given), []byte("Bearer "+token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			Refuse(w, http.StatusUnauthorized, "the admin token is missing or wrong")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Refuse answers with a problem.
func Refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, refusal{Title: http.StatusText(status), Status: status, Detail: detail}) // a client that has gone
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, value) // a client that has gone
}
