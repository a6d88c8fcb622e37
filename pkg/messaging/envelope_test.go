package messaging_test

import (
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	validBody = `{"messageId":"m-1","type":"Accounts.Account.Debited","occurredAt":"2026-11-30T10:15:00.123Z",` +
		`"correlationId":"t-1","causationId":"m-0","data":{"transferId":"t-1","amountMinor":9007199254740993}}`
	poisonBody = `{"messageId":"poison-1","type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`
)

func TestDecodeReadsEveryMember(t *testing.T) {
	t.Parallel()
	e, err := messaging.Decode([]byte(validBody))
	if err != nil {
		t.Fatal(err)
	}
	if e.MessageID != "m-1" || e.Type != "Accounts.Account.Debited" || e.CorrelationID != "t-1" || e.CausationID != "m-0" ||
		string(e.Data) != `{"transferId":"t-1","amountMinor":9007199254740993}` ||
		!e.OccurredAt.Equal(time.Date(2026, 11, 30, 10, 15, 0, 123e6, time.UTC)) {
		t.Errorf("got %+v", e)
	}
	encoded, err := e.Encode()
	if err != nil || string(encoded) != validBody {
		t.Errorf("Encode: %s, %v", encoded, err)
	}
}

func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want messaging.Envelope
	}{
		"the least":                {`{"messageId":"m","type":"T"}`, messaging.Envelope{}},
		"white space around":       {" \n{ \"type\" : \"T\" ,\t\"messageId\":\"m\" }\r\n ", messaging.Envelope{}},
		"unknown members":          {`{"messageId":"m","type":"T","x":[{"y":null}],"MessageID":"no","DATA":1}`, messaging.Envelope{}},
		"a time that is null":      {`{"messageId":"m","type":"T","occurredAt":null}`, messaging.Envelope{}},
		"a time that is an object": {`{"messageId":"m","type":"T","occurredAt":{"at":[]}}`, messaging.Envelope{}},
		"an unreadable time":       {`{"messageId":"m","type":"T","occurredAt":"yesterday"}`, messaging.Envelope{}},
		"a time that is no text":   {`{"messageId":"m","type":"T","occurredAt":17}`, messaging.Envelope{}},
		"a time before 2000":       {`{"messageId":"m","type":"T","occurredAt":"1970-01-01T00:00:00Z"}`, messaging.Envelope{}},
		"a time in the far future": {`{"messageId":"m","type":"T","occurredAt":"9999-01-01T00:00:00Z"}`, messaging.Envelope{}},
		"escapes":                  {`{"messageId":"m","type":"\u0054","correlationId":"\u00e9\"\ud83d\ude00"}`, messaging.Envelope{CorrelationID: "é\"😀"}},
		"data of any kind":         {`{"messageId":"m","type":"T","data":[1.0]}`, messaging.Envelope{Data: jsontext.Value(`[1.0]`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.MessageID, c.want.Type = "m", "T"
			e, err := messaging.Decode([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if e.MessageID != c.want.MessageID || e.Type != c.want.Type || e.CorrelationID != c.want.CorrelationID || e.CausationID != "" ||
				!e.OccurredAt.IsZero() || string(e.Data) != string(c.want.Data) {
				t.Errorf("got %+v, want %+v", e, c.want)
			}
		})
	}
}

func TestDecodeAcceptsAnyMessageID(t *testing.T) {
	t.Parallel()
	for id, written := range map[string]string{
		strings.Repeat("é", 200):          strings.Repeat("é", 200),
		strings.Repeat("😀", 200):          strings.Repeat("\\ud83d\\ude00", 200),
		" ":                               " ",
		"a\tb\r\nc\x01\x1b[31m\x7f\u0085": `a\tb\r\nc\u0001\u001b[31m\u007f\u0085`,
		"\u2028\u202e\ufeff\ufffd":        `\u2028\u202e\ufeff\ufffd`,
	} {
		e, err := messaging.Decode([]byte(`{"messageId":"` + written + `","type":"T"}`))
		if err != nil || e.MessageID != id {
			t.Errorf("%q: got %q, %v", id, e.MessageID, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, salvaged string }{
		"nothing":                      {"", ""},
		"white space":                  {"  ", ""},
		"garbage":                      {"not json", ""},
		"an array":                     {`[{"messageId":"m","type":"T"}]`, ""},
		"a number":                     {`42`, ""},
		"a text":                       {`"x"`, ""},
		"null":                         {`null`, ""},
		"cut off at the end":           {poisonBody[:len(poisonBody)-2], "poison-1"},
		"cut off in data":              {poisonBody[:len(poisonBody)-9], "poison-1"},
		"cut off in the messageId":     {`{"messageId":"poi`, ""},
		"invalid UTF-8":                {"{\"messageId\":\"m\",\"type\":\"T\",\"x\":\"\xff\"}", "m"},
		"invalid UTF-8 in data":        {"{\"messageId\":\"m\",\"type\":\"T\",\"data\":{\"x\":\"\xc3\"}}", "m"},
		"a lone surrogate":             {`{"messageId":"m","type":"T","correlationId":"\ud800"}`, "m"},
		"trailing data":                {`{"messageId":"m","type":"T"} {}`, "m"},
		"trailing garbage":             {`{"messageId":"m","type":"T"}x`, "m"},
		"a trailing comma":             {`{"messageId":"m","type":"T",}`, "m"},
		"a member twice":               {`{"messageId":"m","type":"T","type":"T"}`, "m"},
		"a member twice, escaped":      {`{"messageId":"m","type":"T","\u0074ype":"U"}`, "m"},
		"an unknown member twice":      {`{"messageId":"m","type":"T","x":1,"x":1}`, "m"},
		"a member twice in data":       {`{"messageId":"m","type":"T","data":{"a":1,"a":2}}`, "m"},
		"a member twice further below": {`{"messageId":"m","type":"T","data":[{"a":{"b":1,"b":1}}]}`, "m"},
		"no messageId":                 {`{"type":"T"}`, ""},
		"messageId in other case":      {`{"messageID":"m","type":"T"}`, ""},
		"an empty messageId":           {`{"messageId":"","type":"T"}`, ""},
		"messageId null":               {`{"messageId":null,"type":"T"}`, ""},
		"messageId a number":           {`{"messageId":7,"type":"T"}`, ""},
		"messageId with a NUL":         {`{"messageId":"m\u0000","type":"T"}`, "m\x00"},
		"correlationId null":           {`{"messageId":"m","type":"T","correlationId":null}`, "m"},
		"causationId null":             {`{"correlationId":"c","causationId":null,"messageId":"m","type":"T"}`, "m"},
		"correlationId an array":       {`{"messageId":"m","type":"T","correlationId":[]}`, "m"},
		"causationId a boolean":        {`{"messageId":"m","type":"T","causationId":false}`, "m"},
		"causationId with a NUL":       {`{"messageId":"m","type":"T","causationId":"\u0000"}`, "m"},
		"no type":                      {`{"messageId":"m"}`, "m"},
		"an empty type":                {`{"messageId":"m","type":""}`, "m"},
		"type in other case":           {`{"messageId":"m","Type":"T"}`, "m"},
		"type a boolean, first":        {`{"type":true,"messageId":"m"}`, "m"},
		"type a boolean":               {`{"messageId":"m","type":true}`, "m"},
		"type with a NUL":              {`{"messageId":"m","type":"T\u0000"}`, "m"},
		"correlationId a number":       {`{"messageId":"m","type":"T","correlationId":5}`, "m"},
		"causationId an object":        {`{"messageId":"m","type":"T","causationId":{}}`, "m"},
		"nested without end":           {`{"messageId":"m","type":"T","data":` + strings.Repeat("[", 1e6), "m"},
		"nested too deep":              {`{"messageId":"m","type":"T","data":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + "}", "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := messaging.Decode([]byte(c.body))
			if retry.ClassOf(err) != retry.Validation {
				t.Errorf("class %q of %v", retry.ClassOf(err), err)
			}
			if e.MessageID != c.salvaged {
				t.Errorf("salvaged messageId %q, want %q", e.MessageID, c.salvaged)
			}
		})
	}
	long := strings.Repeat("x", 201)
	if _, err := messaging.Decode([]byte(`{"messageId":"` + long + `","type":"T"}`)); retry.ClassOf(err) != retry.Validation {
		t.Errorf("201 characters: %v", err)
	}
}

func TestPayloadHash(t *testing.T) {
	t.Parallel()
	hash := func(body string) [32]byte {
		e, err := messaging.Decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		h, err := e.PayloadHash()
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Data) != "" && !strings.Contains(body, string(e.Data)) {
			t.Errorf("hashing changed the data to %s", e.Data)
		}
		return h
	}
	base := hash(`{"messageId":"m","type":"T","data":{"a":1,"b":{"c":"d","e":[1,2]}}}`)
	for name, c := range map[string]struct {
		same bool
		body string
	}{
		"spelling":             {true, `{"data": { "b": {"e":[1, 2],"c":"\u0064"}, "a" :1},"type":"T","messageId":"m"}`},
		"id, time and cause":   {true, `{"messageId":"n","type":"T","occurredAt":"2026-11-30T10:15:00Z","causationId":"c","correlationId":"x","data":{"a":1,"b":{"c":"d","e":[1,2]}}}`},
		"type":                 {false, `{"messageId":"m","type":"U","data":{"a":1,"b":{"c":"d","e":[1,2]}}}`},
		"order in an array":    {false, `{"messageId":"m","type":"T","data":{"a":1,"b":{"c":"d","e":[2,1]}}}`},
		"a value":              {false, `{"messageId":"m","type":"T","data":{"a":2,"b":{"c":"d","e":[1,2]}}}`},
		"a number as text":     {false, `{"messageId":"m","type":"T","data":{"a":"1","b":{"c":"d","e":[1,2]}}}`},
		"a number as fraction": {false, `{"messageId":"m","type":"T","data":{"a":1.0,"b":{"c":"d","e":[1,2]}}}`},
		"no data":              {false, `{"messageId":"m","type":"T"}`},
	} {
		if got := hash(c.body) == base; got != c.same {
			t.Errorf("%s: same payload %v, want %v", name, got, c.same)
		}
	}
	if hash(`{"messageId":"m","type":"T","data":{"a":9007199254740993}}`) == hash(`{"messageId":"m","type":"T","data":{"a":9007199254740992}}`) {
		t.Error("amounts beyond 2^53 are mixed up")
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		validBody, poisonBody, poisonBody[:len(poisonBody)-2], `[]`, `42`, `{"messageId":"m","type":"T","data":{"a":1,"a":2}}`,
		`{"messageId":"m\u0000","type":"T"}`, "{\"messageId\":\"\xff\"}", `{"messageId":"m","type":"T"}{}`, `{"occurredAt":"9999-99-99"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		e, err := messaging.Decode(body)
		if err != nil {
			if retry.ClassOf(err) != retry.Validation {
				t.Fatalf("class %q of %v", retry.ClassOf(err), err)
			}
			return
		}
		hash, err := e.PayloadHash()
		if err != nil {
			t.Fatalf("decoded, but not hashed: %v", err)
		}
		if string(body) != before {
			t.Fatal("the body was changed")
		}
		encoded, err := e.Encode()
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		again, err := messaging.Decode(encoded)
		if err != nil {
			t.Fatalf("encoded as %s: %v", encoded, err)
		}
		if h, _ := again.PayloadHash(); h != hash || again.MessageID != e.MessageID || again.Type != e.Type || again.CorrelationID != e.CorrelationID ||
			again.CausationID != e.CausationID || !again.OccurredAt.Equal(e.OccurredAt.Truncate(time.Millisecond)) || (again.Data == nil) != (e.Data == nil) {
			t.Fatalf("%s became %s", body, encoded)
		}
		if twice, err := again.Encode(); err != nil || string(twice) != string(encoded) {
			t.Fatalf("%s, once more: %s, %v", encoded, twice, err)
		}
	})
}
