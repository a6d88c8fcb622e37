package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestEndpointsRoundTripAndEnvironmentWins(t *testing.T) {
	dir := t.TempDir()
	saved := endpoints{AccountURL: "http://127.0.0.1:8081", AMQPURL: "amqp://u:p=q@127.0.0.1:5672/banking", AdminToken: "t", dir: dir}
	if err := saved.save(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(endpointsFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "CONSOLE_URL") {
		t.Errorf("an address that nobody serves was written:\n%s", text)
	}
	for _, field := range saved.fields() {
		t.Setenv(field.key, "") // whatever the caller has
		if err := os.Unsetenv(field.key); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := loadEndpoints(dir); err != nil || !reflect.DeepEqual(*got, saved) {
		t.Errorf("loaded %+v, %v; want %+v", got, err, saved)
	}
	t.Setenv("ACCOUNT_URL", "http://elsewhere")
	got, err := loadEndpoints(dir)
	if err != nil || got.AccountURL != "http://elsewhere" || got.AdminToken != "t" {
		t.Errorf("loaded %+v, %v; want the environment's ACCOUNT_URL and the file's rest", got, err)
	}
}

func TestEndpointsWorkWithoutFile(t *testing.T) {
	t.Setenv("TRANSFER_URL", "http://elsewhere")
	t.Setenv("ADMIN_TOKEN", "")
	got, err := loadEndpoints(t.TempDir())
	if err != nil || got.TransferURL != "http://elsewhere" {
		t.Fatalf("loaded %+v, %v", got, err)
	}
	err = got.need("TRANSFER_URL", "ADMIN_TOKEN")
	if err == nil || !strings.Contains(err.Error(), "ADMIN_TOKEN") || strings.Contains(err.Error(), "TRANSFER_URL") {
		t.Errorf("need = %v, want a complaint about ADMIN_TOKEN alone", err)
	}
}

// A service that was added is known by the addresses under its own name, and by none when it was never started.
func TestAddedServicesAreAskedWhereTheyAreKnown(t *testing.T) {
	t.Parallel()
	to := endpoints{AdminToken: "t", Others: []serviceEndpoint{{Name: "fees", URL: "http://127.0.0.1:8083"}, {Name: "loans"}}}
	keys := map[string]string{}
	for _, field := range to.fields() {
		keys[field.key] = *field.value
	}
	if url, known := keys["LOANS_DATABASE_URL"]; keys["FEES_URL"] != "http://127.0.0.1:8083" || !known || url != "" {
		t.Errorf("addresses are %v", keys)
	}
	asked, err := keepers(&to)
	if err != nil || len(asked) != 3 || asked[2].name != "fees" || asked[2].base != "http://127.0.0.1:8083" {
		t.Errorf("quarantines are looked into at %+v, %v; want account, transfer and fees", asked, err)
	}
}
