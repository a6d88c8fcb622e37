package services_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"example.com/banking/services"
)

// Every service that can be started is in the list, once, at a port of its own.
func TestAllServicesAreListed(t *testing.T) {
	t.Parallel()
	all, err := services.All()
	if err != nil {
		t.Fatal(err)
	}
	ports := map[int]string{}
	var names []string
	for _, s := range all {
		t.Logf("%s on %d", s.Name, s.Port)
		if other := ports[s.Port]; other != "" {
			t.Errorf("%s and %s have the same port %d", other, s.Name, s.Port)
		}
		ports[s.Port] = s.Name
		names = append(names, s.Name)
	}
	programs, err := filepath.Glob("*/main.go")
	if err != nil || len(programs) < 3 {
		t.Fatalf("programs %v, %v", programs, err)
	}
	for _, program := range programs {
		name := filepath.Dir(program)
		if !slices.Contains(names, name) {
			t.Errorf("services/%s has no service.json: bank up does not start it", name)
		}
		if _, err := os.Stat(filepath.Join(name, "service.json")); err != nil {
			t.Error(err)
		}
	}
}

func TestOthersAreThoseThatWereAdded(t *testing.T) {
	t.Parallel()
	others, err := services.Others()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range others {
		if s.Name == "account" || s.Name == "transfer" || s.Name == "console" {
			t.Errorf("%s was not added", s.Name)
		}
	}
	if all, _ := services.All(); len(all) != len(others)+3 {
		t.Errorf("%d services, %d of them added", len(all), len(others))
	}
}
