package saga_test

import (
	"errors"
	"slices"
	"testing"

	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/saga"
)

// A parcel: two facts that exclude each other, one that may come at any time.
type fact uint8

const (
	sent fact = iota
	arrived
	lost
	insured
)

func (f fact) String() string { return [...]string{"SENT", "ARRIVED", "LOST", "INSURED"}[f] }

type status string

var parcel = saga.Process[fact, status]{
	Start:      saga.Of(sent),
	Facts:      saga.Of(sent, arrived, lost, insured),
	Rules:      []saga.Rule[fact, status]{{saga.Of(arrived), "HERE"}, {saga.Of(lost), "GONE"}, {saga.Of(sent), "UNDERWAY"}},
	Impossible: [][2]fact{{arrived, lost}},
	Reactions:  []saga.Reaction[status]{{Status: "UNDERWAY", Message: "Parcel.Sent"}, {Status: "HERE", Message: "Parcel.Arrived", Terminal: true}, {Status: "GONE", Message: "Parcel.Lost", Terminal: true}},
}

func TestASetKnowsNeitherOrderNorNumber(t *testing.T) {
	t.Parallel()
	if saga.Of(sent, lost) != saga.Of(lost, sent, lost) {
		t.Error("order or number shows")
	}
	set := saga.Of(lost, sent)
	if got := slices.Collect(set.All()); !slices.Equal(got, []fact{sent, lost}) || set.Len() != 2 || set.String() != "{SENT, LOST}" {
		t.Errorf("%v, %d, %s", got, set.Len(), set)
	}
	if set.Without(lost).Has(lost) || !set.Without(lost).Has(sent) {
		t.Error("Without takes the wrong fact")
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	turn, err := parcel.Learn(parcel.Start, insured)
	if err != nil || !turn.New || turn.Changed() {
		t.Errorf("a fact that matters to no rule: %+v, %v", turn, err)
	}
	turn, err = parcel.Learn(turn.Known, arrived)
	if err != nil || !turn.Changed() || turn.From != "UNDERWAY" || turn.To != "HERE" {
		t.Errorf("a fact that changes the status: %+v, %v", turn, err)
	}
	known := turn.Known
	if turn, err = parcel.Learn(known, arrived); err != nil || turn.New || turn.Changed() || turn.Known != known {
		t.Errorf("the same fact again: %+v, %v", turn, err)
	}
	var classed *retry.Error
	if _, err = parcel.Learn(known, lost); !errors.As(err, &classed) || classed.Class != retry.Invariant {
		t.Errorf("a fact that cannot be: %v", err)
	}
}

func TestPossible(t *testing.T) {
	t.Parallel()
	var sets []string
	for set := range parcel.Possible() {
		sets = append(sets, set.String())
	}
	want := []string{"{SENT}", "{SENT, ARRIVED}", "{SENT, LOST}", "{SENT, INSURED}", "{SENT, ARRIVED, INSURED}", "{SENT, LOST, INSURED}"}
	if !slices.Equal(sets, want) {
		t.Errorf("%v", sets)
	}
}

func TestACloneMayBeChanged(t *testing.T) {
	t.Parallel()
	broken := parcel.Clone()
	broken.Rules[0].Status, broken.Impossible[0] = "ELSEWHERE", [2]fact{sent, insured}
	if parcel.Status(saga.Of(arrived)) != "HERE" || parcel.Impossible[0] != [2]fact{arrived, lost} {
		t.Error("changing the clone changed the original")
	}
}

type text string

var door = saga.Table[text, text, text]{
	{State: "", Request: "Door.Install", Next: "SHUT", Event: "Door.Installed"},
	{State: "SHUT", Request: "Door.Open", Verdict: saga.Allowed, Next: "OPEN", Effect: "swing", Event: "Door.Opened"},
	{State: "SHUT", Request: "Door.Open", Verdict: saga.Refused, Next: "SHUT", Event: "Door.Refused"},
	{State: "OPEN", Request: "Door.Install", Next: "OPEN", Fault: retry.NotFound},
}

func TestFind(t *testing.T) {
	t.Parallel()
	if !door.Judged("SHUT", "Door.Open") || door.Judged("", "Door.Install") {
		t.Error("rules are asked where they should not be, or not where they should")
	}
	if row, ok := door.Find("SHUT", "Door.Open", saga.Refused); !ok || row.Event != "Door.Refused" {
		t.Errorf("refused: %+v", row)
	}
	if row, ok := door.Find("", "Door.Install", saga.Any); !ok || row.Next != "SHUT" {
		t.Errorf("unjudged: %+v", row)
	}
	if _, ok := door.Find("OPEN", "Door.Open", saga.Allowed); ok {
		t.Error("found a row that is not there")
	}
	broken := door.With(1, saga.Row[text, text, text]{State: "SHUT", Request: "Door.Open", Next: "GONE"})
	if broken[1].Next != "GONE" || door[1].Next != "OPEN" {
		t.Error("With changed the original, or not the copy")
	}
}
