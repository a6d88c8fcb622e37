package servers_test

import (
	"net"
	"os/exec"
	"testing"

	"example.com/banking/internal/testenv/servers"
)

// A port is its owner's also while nobody listens on it, until it is given back; and no child keeps it.
func TestAPortThatIsTakenIsNobodyElses(t *testing.T) {
	t.Parallel()
	var ours, theirs servers.Ports
	t.Cleanup(ours.Release)
	t.Cleanup(theirs.Release)
	port, err := ours.TakeAny()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat") // which lives until its input ends
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	})
	if theirs.Take(port) {
		t.Errorf("port %d is taken twice", port)
	}
	if ours.Take(port) {
		t.Errorf("port %d is taken twice by the same", port)
	}
	if !servers.PortFree(port) {
		t.Errorf("its owner cannot listen on port %d", port)
	}
	ours.Release()
	if !theirs.Take(port) {
		t.Errorf("port %d is not free after it was given back", port)
	}
}

// A port on which somebody listens is not taken, nor kept from those who come when it is free again.
func TestAPortSomebodyListensOnIsNotTaken(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	var ours servers.Ports
	t.Cleanup(ours.Release)
	if ours.Take(port) {
		t.Errorf("port %d is taken, on which somebody listens", port)
	}
	mark, err := net.ListenPacket("udp4", listener.Addr().String())
	if err != nil {
		t.Fatalf("what was not taken is kept from others: %v", err)
	}
	_ = mark.Close()
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
