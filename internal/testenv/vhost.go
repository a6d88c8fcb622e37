package testenv

import (
	"context"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/management"
)

// settling is how long the virtual host of a test outlives it. A connection that was cut at the end of the test may have a declaration
// under way, of which nobody hears any more. RabbitMQ 3.10 does not survive that a quorum queue with at-least-once dead-lettering is
// deleted in the instant in which it is created: the supervisor of all that dead-lettering gives up, and until the broker is started
// again no such queue can be declared in any virtual host.
const settling = 3 * time.Second

// leftVHosts are those whose tests have ended. Each is deleted at the end of a later test, or goes with the broker.
var leftVHosts struct {
	sync.Mutex
	vhosts []leftVHost
}

type leftVHost struct {
	management *management.Client
	name       string
	since      time.Time
}

// leaveVHost leaves a virtual host to be deleted, and deletes those that have been left for long enough.
func leaveVHost(t testing.TB, m *management.Client, name string) {
	now := time.Now()
	leftVHosts.Lock()
	all := append(leftVHosts.vhosts, leftVHost{m, name, now})
	due := 0
	for due < len(all) && now.Sub(all[due].since) >= settling {
		due++
	}
	leftVHosts.vhosts = all[due:]
	leftVHosts.Unlock()
	for _, v := range all[:due] {
		deleteVHost(t, v.management, v.name)
	}
}

func deleteVHost(t testing.TB, m *management.Client, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := m.Delete(ctx, "/api/vhosts/"+name); err != nil {
		t.Logf("virtual host %s is left behind: %v", name, err) // the test may have stopped its server
	}
}
