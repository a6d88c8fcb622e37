package control_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/banking/internal/control"
)

// oneProcess keeps a process by name only, and notes what it was told.
type oneProcess struct{ told []string }

func (k *oneProcess) Processes() []control.Process {
	return []control.Process{{Name: "account", Kind: "service", State: control.Running, PID: 7, Starts: 1}}
}

func (k *oneProcess) Act(_ context.Context, name string, verb control.Verb, environment map[string]string) (control.Process, error) {
	if name != "account" {
		return control.Process{}, fmt.Errorf("%s: %w", name, control.ErrUnknown)
	}
	if verb == control.Start {
		return control.Process{}, fmt.Errorf("account is running: %w", control.ErrState)
	}
	k.told = append(k.told, fmt.Sprint(name, " ", verb, " ", environment))
	return control.Process{Name: name, State: control.Running, Changed: environment}, nil
}

func serve(t *testing.T) (*oneProcess, string) {
	t.Helper()
	keeper := &oneProcess{}
	mux := http.NewServeMux()
	control.Register(mux, keeper)
	server := httptest.NewServer(control.Guard("secret", mux))
	t.Cleanup(server.Close)
	return keeper, server.URL
}

func TestOrdersReachTheKeeper(t *testing.T) {
	t.Parallel()
	keeper, url := serve(t)
	client := control.NewClient(url+"/", "secret")
	p, err := client.Process(t.Context(), "account")
	if err != nil || p.PID != 7 || !p.Usual() {
		t.Errorf("account is %+v, %v", p, err)
	}
	if p, err = client.Act(t.Context(), "account", control.Restart, map[string]string{"FAULTS": "on"}); err != nil || p.Usual() {
		t.Errorf("started anew it is %+v, %v", p, err)
	}
	if _, err := client.Act(t.Context(), "account", control.Kill, nil); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(keeper.told, "; "), "account restart map[FAULTS:on]; account kill map[]"; got != want {
		t.Errorf("the keeper was told %q, want %q", got, want)
	}
}

// What is refused says why, and reaches nobody.
func TestOrdersThatAreRefused(t *testing.T) {
	t.Parallel()
	keeper, url := serve(t)
	client := control.NewClient(url, "secret")
	for _, c := range []struct {
		name    string
		verb    control.Verb
		set     map[string]string
		because string
	}{
		{"nobody", control.Stop, nil, "no such process"},
		{"account", control.Start, nil, "not in this state"},
		{"account", "explode", nil, "there is no order explode"},
		{"account", control.Stop, map[string]string{"FAULTS": "on"}, "belong to start and restart"},
		{"account", control.Restart, map[string]string{"AMQP_URL": "amqp://elsewhere"}, "the bank decides it"},
		{"account", control.Restart, map[string]string{"LD PRELOAD": "x"}, "capital letters"},
	} {
		if _, err := client.Act(t.Context(), c.name, c.verb, c.set); err == nil || !strings.Contains(err.Error(), c.because) {
			t.Errorf("%s %s %v: %v, want %q", c.verb, c.name, c.set, err, c.because)
		}
	}
	if _, err := control.NewClient(url, "guessed").Act(t.Context(), "account", control.Kill, nil); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("with another token: %v", err)
	}
	if _, err := control.NewClient("", "secret").Processes(t.Context()); err == nil || !strings.Contains(err.Error(), "make up") {
		t.Errorf("without an address: %v", err)
	}
	if len(keeper.told) > 0 {
		t.Errorf("the keeper was told %q", keeper.told)
	}
}
