package main

import (
	"math"
	"strings"
	"testing"
)

func TestParsePgbench(t *testing.T) {
	t.Parallel()
	const out = "transaction type: fifty.sql\nnumber of transactions actually processed: 1034\nlatency average = 7.7 ms\ntps = 129.250000 (without initial connection time)\n"
	rate, runs, err := parsePgbench([]byte(out))
	if err != nil || rate != 129.25 || runs != 1034 {
		t.Errorf("%v, %v, %v", rate, runs, err)
	}
	for _, wrong := range []string{"", "tps = 12.5\n", strings.ReplaceAll(out, "129.250000", "0.000000")} {
		if _, _, err := parsePgbench([]byte(wrong)); err == nil {
			t.Errorf("%q is taken for a report", wrong)
		}
	}
}

const peerReport = `
watermill run=1 pgbench_tps=11204 transfers_per_s=400 elapsed_s=50 p50_ms=22 p99_ms=262 rss_account_mb=19 rss_transfer_mb=24 cpu_ms_account=0.64 cpu_ms_transfer=0.73 cpu_ms_postgres=1.37 cpu_ms_broker=1.26 others_pct=-1 correct=yes
bank run=1 pgbench_tps=11204 transfers_per_s=2000 elapsed_s=10 p50_ms=9 p99_ms=20 rss_account_mb=30 rss_transfer_mb=31 cpu_ms_account=0.10 cpu_ms_transfer=0.20 cpu_ms_postgres=0.40 cpu_ms_broker=0.30 others_pct=14 correct=yes
bank median: pgbench_tps=1
`

func TestComparePeers(t *testing.T) {
	t.Parallel()
	lines, err := parsePeers(peerReport)
	if err != nil || len(lines) != 2 {
		t.Fatalf("%+v, %v", lines, err)
	}
	var found result
	if err := comparePeers(lines, &found); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"rate against watermill": 5, "CPU against watermill": 0.25, "bank: CPU per transfer": 1,
		"watermill: share of the machine that others used": -1, "bank: memory of account and transfer, most": 61,
	} {
		got := math.NaN()
		for _, f := range found.figures {
			if f.name == name {
				got = f.value
			}
		}
		if !(math.Abs(got-want) < 1e-9) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if err := comparePeers(lines[:1], &found); err == nil {
		t.Error("without a line about the bank there is a comparison")
	}
	if _, err := parsePeers(strings.ReplaceAll(peerReport, "correct=yes", "correct=no")); err == nil {
		t.Error("a run that is not correct is taken for one")
	}
}

func TestParseBusy(t *testing.T) {
	t.Parallel()
	if got := parseBusy("cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 9 9 9\n"); got != 1+2+4+8+16+32 {
		t.Errorf("%v ticks", got)
	}
}

func TestBadAmong(t *testing.T) {
	t.Parallel()
	if bad := badAmong(9000); bad != 2000 { // of 2,000 + 2 × 9,000
		t.Errorf("%d bad messages", bad)
	}
}
