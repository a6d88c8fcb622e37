package main

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " S 7 1 1 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 9 0 5000 123456789 2048 18446744073709551615 1"
	p, ok := parseStat("42 (a) b (c))" + rest)
	if want := (process{pid: 42, parent: 7, name: "a) b (c)", ticks: 110, pages: 2048}); !ok || p != want {
		t.Errorf("%+v, %v, want %+v", p, ok, want)
	}
	for _, line := range []string{"", "42", "42 (x", "42 (x) S 1 2", "x (y)" + rest, "42 (x) S p" + rest[4:]} {
		if p, ok := parseStat(line); ok {
			t.Errorf("%q is read as %+v", line, p)
		}
	}
}

func TestPartOf(t *testing.T) {
	t.Parallel()
	// This program's children end up as the parts; what only has the same name does not.
	self, err := readProcesses("/proc")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]process{}
	for pid, p := range self {
		all[pid] = p
	}
	own := os.Getpid()
	all[1001] = process{pid: 1001, parent: own, name: "supervisor"}
	all[1002] = process{pid: 1002, parent: 1001, name: "postgres"}
	all[1003] = process{pid: 1003, parent: 1002, name: "postgres"}
	all[1004] = process{pid: 1004, parent: 1001, name: "rabbitmq-server"}
	all[1005] = process{pid: 1005, parent: 1004, name: "beam.smp"}
	all[1006] = process{pid: 1006, parent: 1005, name: "inet_gethost"}
	all[1007] = process{pid: 1007, parent: 1001, name: "account"}
	all[1008] = process{pid: 1008, parent: 1, name: "postgres"}
	for pid, want := range map[int]string{
		own: partClient, 1001: "", 1002: partPostgres, 1003: partPostgres, 1004: partBroker, 1005: partBroker, 1006: partBroker, 1007: "account", 1008: "",
	} {
		if got := partOf(all[pid], all); got != want {
			t.Errorf("process %d belongs to %q, want %q", pid, got, want)
		}
	}
}
