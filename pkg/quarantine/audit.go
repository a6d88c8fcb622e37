package quarantine

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
)

// The actions and outcomes of an audit row.
const (
	ActionReplay  = "REPLAY"
	ActionDiscard = "DISCARD"

	OutcomeStarted = "STARTED" // about to happen; for good, when the process died or the database went away before it could say more
	OutcomeDone    = "DONE"    // the message has left the quarantine
	OutcomeFailed  = "FAILED"  // nothing happened, it is where it was
	OutcomeUnknown = "UNKNOWN" // it may have been sent, by a replay; and may have left the quarantine
)

// run is one call that changes something.
type run struct {
	id       uuid.UUID
	action   string
	operator string
	because  string
	began    time.Time
}

// operatorOf is who the client says it acts for. The token is one for all, so this is a name and no proof.
func operatorOf(c echo.Context) string {
	if name := storable(c.Request().Header.Get("X-Operator"), 200); strings.TrimSpace(name) != "" {
		return name
	}
	return "unknown"
}

// storable makes a text of somebody else's one that PostgreSQL can hold, of so many bytes at most.
func storable(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") // without half a character at its end
	}
	return text
}

const startAuditSQL = `
insert into quarantine_audit (run, action, outcome, queue, key, message_id, type, operator, because, target, headers, properties, body, transfer_id)
select $1, $2, 'STARTED', queue, key, message_id, type, $3, $4, target, headers::json, properties::json, body, transfer_id
from unnest($5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bytea[], $13::uuid[])
     with ordinality as m (queue, key, message_id, type, target, headers, properties, body, transfer_id, n)
order by n
returning id`

// start writes down what is about to happen to the messages, and answers the rows' ids in their order. It is committed when it returns.
func (h *hold) start(ctx context.Context, r *run, work []*task) error {
	n := len(work)
	queues, keys, ids, types, targets := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	headers, properties, bodies, transfers := make([]*string, n), make([]*string, n), make([][]byte, n), make([]uuid.NullUUID, n)
	for i, t := range work {
		queues[i], keys[i], ids[i], types[i] = t.Queue, storable(t.Key, 1<<10), storable(t.MessageID, 1<<10), storable(t.Type, 1<<10)
		targets[i] = storable(t.Target, 1<<10)
		transfers[i].UUID, transfers[i].Valid = contract.ParseID(t.TransferID)
		if r.action == ActionDiscard {
			headers[i], properties[i], bodies[i] = &t.headers, &t.properties, append([]byte{}, t.delivery.Body...) // never null
		}
	}
	rows, err := h.conn.Query(ctx, startAuditSQL, r.id, r.action, r.operator, r.because, queues, keys, ids, types, targets, headers, properties, bodies, transfers)
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	audited, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	for i, id := range audited {
		work[i].audit = id
	}
	return nil
}

const endAuditSQL = `
update quarantine_audit set outcome = m.outcome, detail = m.detail, ended_at = now()
from unnest($1::bigint[], $2::text[], $3::text[]) as m (id, outcome, detail)
where quarantine_audit.id = m.id`

// end writes down what became of the messages.
func (h *hold) end(ctx context.Context, work []*task) error {
	ids, outcomes, details := make([]int64, len(work)), make([]string, len(work)), make([]string, len(work))
	for i, t := range work {
		ids[i], outcomes[i], details[i] = t.audit, t.outcome, storable(t.Detail, 1<<12)
	}
	if _, err := h.conn.Exec(ctx, endAuditSQL, ids, outcomes, details); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}

// Entry is one row of the audit.
type Entry struct {
	ID        int64      `json:"id"`
	Run       uuid.UUID  `json:"run"`
	Action    string     `json:"action"`
	Outcome   string     `json:"outcome"`
	Queue     string     `json:"queue"`
	Key       string     `json:"key"`
	MessageID string     `json:"messageId"`
	Type      string     `json:"type"`
	Operator  string     `json:"operator"`
	Because   string     `json:"because"`
	Target    string     `json:"target"`
	Detail    string     `json:"detail"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
}

const entryColumns = `id, run, action, outcome, queue, key, message_id, type, operator, because, target, detail, started_at, ended_at`

func (e *Entry) fields() []any {
	return []any{&e.ID, &e.Run, &e.Action, &e.Outcome, &e.Queue, &e.Key, &e.MessageID, &e.Type, &e.Operator, &e.Because, &e.Target,
		&e.Detail, &e.StartedAt, &e.EndedAt}
}

// listAuditSQL asks for no more than is wanted, so that a plan made once for all values still uses the index of what is looked up.
func listAuditSQL(after *int64, key string, run uuid.NullUUID, limit int) (sql string, args []any) {
	args = []any{limit}
	conditions := "true"
	where := func(condition string, value any) {
		args = append(args, value)
		conditions += fmt.Sprintf(" and %s $%d", condition, len(args))
	}
	if after != nil {
		where("id <", *after)
	}
	if key != "" {
		where("key =", key)
	}
	if run.Valid {
		where("run =", run)
	}
	return "select " + entryColumns + " from quarantine_audit where " + conditions + " order by id desc limit $1", args
}

// listAudit answers the newest first. Its pages are found by id, so what happens meanwhile shifts nothing.
func (q *Quarantine) listAudit(c echo.Context) error {
	var wrong service.FieldErrors
	param := func(name string) string {
		text, given, err := service.QueryParam(c, name)
		if err != nil {
			wrong.Add(name, "must be given once")
		} else if given && text == "" {
			wrong.Add(name, "must not be empty")
		}
		return text
	}
	limit, after, run := standardLimit, (*int64)(nil), uuid.NullUUID{}
	if text := param("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			wrong.Add("limit", "must be a whole number from 1 to 1000")
		}
		limit = n
	}
	if text := param("after"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			wrong.Add("after", "must be the next of an earlier answer")
		}
		after = &n
	}
	if text := param("run"); text != "" {
		if err := run.UnmarshalText([]byte(text)); err != nil {
			wrong.Add("run", "must be a UUID")
		}
	}
	key := storable(param("id"), 1<<10)
	if len(wrong) > 0 {
		return service.BadRequest("The query is not acceptable.", wrong...)
	}
	sql, args := listAuditSQL(after, key, run, limit+1)
	rows, err := q.Pool.Query(c.Request().Context(), sql, args...)
	if err != nil {
		return err
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
		return e, row.Scan(e.fields()...)
	})
	if err != nil {
		return err
	}
	list := service.List[Entry]{Items: entries}
	if len(entries) > limit {
		list.Items = entries[:limit]
		next := strconv.FormatInt(entries[limit-1].ID, 10)
		list.Next = &next
	}
	return c.JSON(http.StatusOK, list)
}

// wholeEntry is a row with the message that was discarded.
type wholeEntry struct {
	Entry
	Headers    jsontext.Value `json:"headers,omitzero"`
	Properties jsontext.Value `json:"properties,omitzero"`
	Body       *content       `json:"body,omitzero"`
}

const showAuditSQL = `select ` + entryColumns + `, headers, properties, body from quarantine_audit where id = $1`

func (q *Quarantine) showAudit(c echo.Context) error {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil {
		return service.NotFound("There is no such entry in the audit.")
	}
	var e wholeEntry
	var headers, properties, body []byte
	rows, err := q.Pool.Query(c.Request().Context(), showAuditSQL, id)
	if err != nil {
		return err
	}
	found := false
	if _, err = pgx.ForEachRow(rows, append(e.fields(), &headers, &properties, &body), func() error {
		found = true
		return nil
	}); err != nil {
		return err
	}
	if !found {
		return service.NotFound("There is no such entry in the audit.")
	}
	if e.Headers, e.Properties = headers, properties; body != nil {
		e.Body = contentOf(body)
	}
	return c.JSON(http.StatusOK, e)
}

// written is a message as its audit row keeps it.
func written(p *parked) (headers, properties string, err error) {
	h, err := json.Marshal(plainTable(p.delivery.Headers), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return "", "", fmt.Errorf("headers: %w", err)
	}
	props, err := json.Marshal(propertiesOf(p.delivery), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return "", "", fmt.Errorf("properties: %w", err)
	}
	return string(h), string(props), nil
}
