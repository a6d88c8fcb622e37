package newservice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/newservice"
	"example.com/banking/internal/testenv"
	"example.com/banking/internal/testenv/servers"
)

// checkout is the root of this one.
func checkout(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root := newservice.Checkout(here)
	if root == "" {
		t.Fatalf("%s lies in no checkout", here)
	}
	return root
}

// inService are orders for one service of each kind, consuming between them every sort of event that the template knows.
func inService(root string) []newservice.Order {
	return []newservice.Order{
		{Name: "fees", Checkout: root, Retry: "lap", Port: 8183, Keys: []string{"transfers.transfer.completed", "transfers.transfer.rejected"}},
		{Name: "watch", Checkout: root, Retry: "in-process", Port: 8184, Keys: []string{"accounts.account.debited", "accounts.account.debit-rejected", "loans.loan.granted"}},
		{Name: "audits", Checkout: root, Retry: "tiered", Port: 8185, Keys: []string{"transfers.transfer.requested", "transfers.transfer.refund-requested"}},
	}
}

// raced are the flags that make the go command share what is compiled already: with the race detector when this test has it.
func raced(t *testing.T) []string {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test does not know how it was built")
	}
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return []string{"-race"}
	}
	return nil
}

// run runs a command without network, whatever it needs is there, because this module needs it too, and returns what it says on its standard output.
func run(t *testing.T, dir string, environment []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"GOPROXY=off", "GOFLAGS=", "GOWORK=off"}, environment...)...)
	var out, remarks bytes.Buffer // the go command remarks what it downloads, on a machine that has never seen it
	cmd.Stdout, cmd.Stderr = &out, &remarks
	if err := cmd.Run(); err != nil {
		t.Errorf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), remarks.String())
	}
	return out.String()
}

// asModule is the kind that is tested as a module of its own, the others are as services of this repository. What differs between the two is
// the same for all kinds, and each test program costs the linker seconds.
const asModule = "tiered"

// laidOver writes the services and returns the flag that lays them over this checkout, without touching it.
func laidOver(t *testing.T, root string, orders ...newservice.Order) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, o := range orders {
		rendered, err := newservice.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		written, err := newservice.Write(filepath.Join(dir, o.Name), rendered)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range written {
			overlay.Replace[filepath.Join(root, path)] = filepath.Join(dir, o.Name, path)
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + filepath.Join(dir, "overlay.json")
}

// Services of this repository pass their own tests on real servers. (vet cannot work in a folder that is only laid over: it looks at the
// modules below.)
func TestServicesPassTheirTests(t *testing.T) {
	t.Parallel()
	root, binaries := checkout(t), t.TempDir()+string(filepath.Separator)
	orders := slices.DeleteFunc(inService(root), func(o newservice.Order) bool { return o.Retry == asModule })
	build := slices.Concat([]string{"test", "-vet=off", "-c", "-o", binaries, laidOver(t, root, orders...)}, raced(t))
	for _, o := range orders {
		build = append(build, "./services/"+o.Name)
	}
	serverAddresses(t)
	if run(t, root, nil, "go", build...); t.Failed() {
		t.FailNow()
	}
	var group sync.WaitGroup
	for _, o := range orders {
		group.Go(func() { run(t, root, nil, binaries+o.Name+".test", "-test.timeout=5m") })
	}
	group.Wait()
}

// 'bank up' starts a new service with the others and tells the console of it, and it hears of the transfer that they make, with the rights that it is given.
func TestServiceJoinsBankUp(t *testing.T) {
	t.Parallel()
	root, programs := checkout(t), t.TempDir()+string(filepath.Separator)
	run(t, root, nil, "go", "build", "-o", programs, laidOver(t, root, inService(root)[0]), "./cmd/bank", "./services/account", "./services/transfer", "./services/console", "./services/fees")
	dir, err := os.MkdirTemp("", "banking-newservice-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when root starts it
		t.Fatal(err)
	}
	bank := func(args ...string) string {
		return run(t, root, []string{"BANK_DIR=" + dir}, programs+"bank", args...)
	}
	t.Cleanup(func() {
		bank("down")
		_ = os.RemoveAll(dir)
	})
	bank("up", "--detach", "--any-port")
	if list := bank("service", "list"); !strings.Contains(list, "fees") {
		t.Errorf("bank up keeps no fees running:\n%s", list)
	}
	var accepted struct {
		ID string `json:"id"`
	}
	created := bank("--json", "transfer", "create", "--from=00000000-0000-4000-8000-000000000001", "--to=00000000-0000-4000-8000-000000000002", "--amount=5")
	if err := json.Unmarshal([]byte(created), &accepted); err != nil {
		t.Fatalf("%v in %s", err, created)
	}
	addresses, err := os.ReadFile(filepath.Join(dir, "endpoints.env"))
	if err != nil {
		t.Fatal(err)
	}
	fees, console := regexp.MustCompile(`(?m)^FEES_URL=(.+)$`).FindSubmatch(addresses), regexp.MustCompile(`(?m)^CONSOLE_URL=(.+)$`).FindSubmatch(addresses)
	if fees == nil || console == nil {
		t.Fatal("endpoints.env has no FEES_URL or no CONSOLE_URL")
	}
	told, err := http.Get(string(console[1]) + "/events?topics=metrics:fees") // 400 where the console does not know it
	if err != nil {
		t.Fatal(err)
	}
	_ = told.Body.Close()
	if told.StatusCode != http.StatusOK {
		t.Errorf("the console does not watch fees: %s", told.Status)
	}
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for heard := false; !heard; <-tick.C {
		response, err := http.Get(string(fees[1]) + "/records/" + accepted.ID)
		if err == nil {
			heard = response.StatusCode == http.StatusOK
			_ = response.Body.Close()
		}
		if !heard && time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "logs", "fees.log"))
			t.Fatalf("fees has not heard of transfer %s: %v\n%s", accepted.ID, err, log)
		}
	}
	bank("parked", "list") // asks it too, and fails when it is not let in
	bank("verify")
}

// A module of its own, in a folder of its own, builds and passes vet and its tests without a network.
func TestModulePassesItsTests(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	for _, o := range inService(root) {
		t.Run(o.Retry, func(t *testing.T) {
			dir := t.TempDir()
			o.Module, o.Dir = "example.org/"+o.Name, dir
			rendered, err := newservice.Render(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := newservice.Write(dir, rendered); err != nil {
				t.Fatal(err)
			}
			run(t, dir, nil, "go", slices.Concat([]string{"vet"}, raced(t), []string{"./..."})...)
			if o.Retry != asModule {
				return
			}
			at := serverAddresses(t)
			given := []string{"DATABASE_URL=" + at.PostgresURL, "AMQP_URL=" + at.AMQPURL, "RABBITMQ_MANAGEMENT_URL=" + at.ManagementURL}
			run(t, dir, given, "go", slices.Concat([]string{"test", "-vet=off", "-timeout=5m"}, raced(t), []string{"./..."})...)
		})
	}
}

// serverAddresses are those of the tests' shared servers, which stay until the test has ended.
func serverAddresses(t *testing.T) servers.Addresses {
	t.Helper()
	lease, err := testenv.Hold(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release() })
	return lease.Addresses
}
