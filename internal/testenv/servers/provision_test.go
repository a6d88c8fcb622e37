package servers_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"example.com/banking/internal/testenv/servers"
)

// The composition for Docker and 'bank up' must give the same rights, or a service works in one and not in the other.
func TestGrantsAreThoseOfTheComposition(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "rabbitmq", "definitions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var definitions struct {
		Permissions []struct {
			User  string `json:"user"`
			VHost string `json:"vhost"`
			servers.Grant
		} `json:"permissions"`
	}
	if err := json.Unmarshal(content, &definitions); err != nil {
		t.Fatal(err)
	}
	found := map[string]servers.Grant{}
	for _, p := range definitions.Permissions {
		if p.VHost == servers.Vhost {
			found[p.User] = p.Grant
		}
	}
	for _, service := range []string{"account", "transfer"} {
		if got, want := found[service], servers.ServiceGrant(service); got != want {
			t.Errorf("definitions.json grants %s %+v, want %+v", service, got, want)
		}
	}
}
