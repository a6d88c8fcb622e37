package newservice_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

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

// run runs a command without network: whatever it needs is there, because this module needs it too.
func run(t *testing.T, dir string, environment []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"GOPROXY=off", "GOFLAGS=", "GOWORK=off"}, environment...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// asModule is the kind that is tested as a module of its own, the others are as services of this repository. What differs between the two is
// the same for all kinds, and each test program costs the linker seconds.
const asModule = "tiered"

// Services, laid over this checkout without touching it, pass their own tests on real servers, and are in the list of those that are
// started. (vet cannot work in a folder that is only laid over: it looks at the modules below.)
func TestServicesPassTheirTests(t *testing.T) {
	t.Parallel()
	root, dir := checkout(t), t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	var packages []string
	orders := slices.DeleteFunc(inService(root), func(o newservice.Order) bool { return o.Retry == asModule })
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
		packages = append(packages, "./services/"+o.Name)
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	overlaid := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlaid, list, 0o600); err != nil {
		t.Fatal(err)
	}
	lease, err := testenv.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release() }()

	flags := append(raced(t), "-overlay="+overlaid)
	binaries := filepath.Join(dir, "bin") + string(filepath.Separator)
	if err := os.Mkdir(binaries, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, root, nil, "go", slices.Concat([]string{"test", "-vet=off", "-c", "-o", binaries}, flags, packages)...)
	if t.Failed() {
		t.FailNow()
	}
	var group sync.WaitGroup
	for _, o := range orders {
		group.Go(func() { run(t, root, nil, binaries+o.Name+".test", "-test.timeout=5m") })
	}
	group.Wait()

	started := run(t, root, nil, "go", slices.Concat([]string{"test", "-vet=off", "-v"}, flags, []string{"./services"})...)
	for _, listed := range []string{"fees on 8183", "watch on 8184"} {
		if !strings.Contains(started, listed) {
			t.Errorf("%s is not among the services that are started:\n%s", listed, started)
		}
	}
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
