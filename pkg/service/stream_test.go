package service_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
)

func TestStreamIsOneDocument(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	url := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.GET("/items", func(c echo.Context) error {
			s := service.NewStream(c)
			if err := s.Item(map[string]int{"n": 1}); err != nil {
				return err
			}
			// Half of it would be in the answer by then, were it not taken back.
			if err := s.Item(map[string]any{"a": 1, "b": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); !errors.Is(err, service.ErrUnwritable) {
				t.Errorf("an item that is no JSON: %v", err)
			}
			<-goOn
			if err := s.Item("two \xff"); err != nil {
				return err
			}
			return s.End(struct {
				Next *string `json:"next"`
				Sum  int     `json:"sum"`
			}{Sum: 2})
		})
		h.Echo.GET("/none", func(c echo.Context) error { return service.NewStream(c).End(struct{}{}) })
		h.Echo.GET("/wrong", func(c echo.Context) error {
			if s := service.NewStream(c); s.Begun() {
				t.Error("nothing was sent, and the stream says that it has begun")
			}
			return service.Conflict("not now")
		})
	})
	response, err := client.Get(url + "/items")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body := bufio.NewReader(response.Body)
	first, err := body.ReadString('\n') // it is here while the handler waits
	if err != nil || first != `{"items":[{"n":1}`+"\n" {
		t.Errorf("the first item comes as %q, %v", first, err)
	}
	close(goOn)
	rest, err := io.ReadAll(body)
	if err != nil || string(rest) != ",\"two \uFFFD\"\n],\"next\":null,\"sum\":2}" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	if got := call(t, "GET", url+"/none", nil); got.body != `{"items":[]}` || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("an empty stream is %q", got.body)
	}
	wantProblem(t, call(t, "GET", url+"/wrong", nil), http.StatusConflict)
}

// A long call is ended by neither of the server's deadlines (eight seconds to read and to answer): only by its client or by the stop.
func TestUnhurriedCallMayTakeLong(t *testing.T) {
	t.Parallel()
	url := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.POST("/long", func(c echo.Context) error {
			ctx, cancel := service.Unhurried(c)
			defer cancel()
			s := service.NewStream(c)
			if err := s.Item("begun"); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return s.End(map[string]string{"ended": context.Cause(ctx).Error()})
			case <-time.After(8500 * time.Millisecond):
				return s.End(map[string]bool{"lasted": true})
			}
		})
	})
	if got := call(t, "POST", url+"/long", nil); got.body != "{\"items\":[\"begun\"\n],\"lasted\":true}" {
		t.Errorf("the long call answered %q", got.body)
	}
}

func TestUnhurriedCallEndsWithItsClientAndItsServer(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	server.Echo.GET("/long", func(c echo.Context) error {
		ctx, cancel := service.Unhurried(c)
		defer cancel()
		s := service.NewStream(c)
		if err := s.Item("begun"); err != nil {
			return err
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return s.End(struct{}{})
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := runAsync(ctx, patience, service.Component{Name: "http", Run: server.Run})
	begin := func(ctx context.Context) *http.Response {
		request, err := http.NewRequestWithContext(ctx, "GET", "http://"+server.Addr()+"/long", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	leaving, leave := context.WithCancel(t.Context())
	defer begin(leaving).Body.Close()
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, service.ErrStopping) {
		t.Errorf("a call whose client left ended with %v", err)
	}
	response := begin(t.Context())
	defer response.Body.Close()
	stop()
	if err := <-ended; !errors.Is(err, service.ErrStopping) {
		t.Errorf("a call of a server that stops ended with %v", err)
	}
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "{\"items\":[\"begun\"\n]}" {
		t.Errorf("its answer was %q, %v", body, err)
	}
	if err := result(t, done); err != nil {
		t.Error(err)
	}
}
