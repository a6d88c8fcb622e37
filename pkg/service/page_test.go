package service_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"pgregory.net/rapid"
)

func TestCursorComesBackAsItWent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := service.Cursor{
			Time: time.UnixMicro(rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(t, "time")).UTC(),
			ID:   uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
		}
		got, err := service.ParseCursor(want.String())
		if err != nil || !got.Time.Equal(want.Time) || got.ID != want.ID {
			t.Fatalf("got %v %v, want %v", got, err, want)
		}
	})
}

func TestParseCursorNeverAcceptsWhatItDidNotWrite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9_-]{34}`)).Draw(t, "text")
		if cursor, err := service.ParseCursor(text); err == nil && cursor.String() != text {
			t.Fatalf("%q was accepted and is %q", text, cursor)
		}
	})
}

func TestPageOfReadsLimitAndAfter(t *testing.T) {
	t.Parallel()
	cursor := service.Cursor{Time: time.Now(), ID: uuid.New()}
	base := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.GET("/list", func(c echo.Context) error {
			page, err := service.PageOf(c)
			if err != nil {
				return err
			}
			after := ""
			if page.After != nil {
				after = page.After.String()
			}
			return c.JSON(http.StatusOK, fmt.Sprintf("%d %s", page.Limit, after))
		})
	})
	for query, want := range map[string]string{
		"": "50 ", "?limit=1": "1 ", "?limit=200": "200 ", "?after=" + cursor.String(): "50 " + cursor.String(), "?limit=7&after=" + cursor.String(): "7 " + cursor.String(),
	} {
		if got := call(t, "GET", base+"/list"+query, nil); got.body != `"`+want+`"` {
			t.Errorf("%s: got %s, want %s", query, got.body, want)
		}
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=201": "limit", "limit=-1": "limit", "limit=x": "limit", "limit=": "limit", "limit=1.5": "limit", "limit=%2B5": "limit",
		"limit=1&limit=900": "limit", "limit=1&limit=1": "limit", "after=" + cursor.String() + "&after=" + cursor.String(): "after",
		"after=": "after", "after=x": "after", "after=" + url.QueryEscape(cursor.String()+"A"): "after", "after=%00": "after",
	} {
		problem := wantProblem(t, call(t, "GET", base+"/list?"+query, nil), 400)
		if len(problem.Errors) != 1 || problem.Errors[0].Field != field {
			t.Errorf("%s: field errors are %v", query, problem.Errors)
		}
	}
}

func TestAQueryThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	base := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.GET("/list", func(c echo.Context) error {
			page, err := service.PageOf(c)
			if err != nil {
				return err
			}
			return c.JSON(http.StatusOK, page.Limit)
		})
	})
	for _, query := range []string{"limit=%zz", "limit=1;after=x", "limit=5&x=%", "%zz=1", ";"} {
		wantProblem(t, call(t, "GET", base+"/list?"+query, nil), 400)
	}
	if got := call(t, "GET", base+"/list?other=%20&limit=7", nil); got.body != "7" { // what is unknown does not matter, as long as it can be read
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestListOfTellsWhetherThereIsMore(t *testing.T) {
	t.Parallel()
	at := func(n int) service.Cursor { return service.Cursor{Time: time.UnixMicro(int64(n))} }
	page := service.Page{Limit: 2}
	for _, test := range []struct {
		rows []int
		want string
	}{
		{nil, `{"items":[],"next":null}`},
		{[]int{1}, `{"items":[1],"next":null}`},
		{[]int{1, 2}, `{"items":[1,2],"next":null}`},
		{[]int{1, 2, 3}, `{"items":[1,2],"next":"` + at(2).String() + `"}`},
	} {
		got, err := json.Marshal(service.ListOf(page, test.rows, at))
		if err != nil || string(got) != test.want {
			t.Errorf("%v: got %s %v, want %s", test.rows, got, err, test.want)
		}
	}
}
