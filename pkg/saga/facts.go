package saga

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"

	"example.com/banking/pkg/retry"
)

// Fact is something a process has been told: a small number, at most 31, with a name.
type Fact interface {
	~uint8
	fmt.Stringer
}

// Facts is a set of facts. A set knows neither order nor number, which is why a process that is a function of one does not care
// in which order, or how often, messages arrive.
type Facts[F Fact] uint32

// Of is the set of the given facts.
func Of[F Fact](facts ...F) Facts[F] {
	var set Facts[F]
	for _, f := range facts {
		set = set.With(f)
	}
	return set
}

// Has says whether f is in the set.
func (s Facts[F]) Has(f F) bool { return s&(1<<f) != 0 }

// With is the set and f.
func (s Facts[F]) With(f F) Facts[F] { return s | 1<<f }

// Without is the set less f.
func (s Facts[F]) Without(f F) Facts[F] { return s &^ (1 << f) }

// Len is how many facts the set holds.
func (s Facts[F]) Len() int { return bits.OnesCount32(uint32(s)) }

// All yields the facts in the order of their numbers.
func (s Facts[F]) All() iter.Seq[F] {
	return func(yield func(F) bool) {
		for rest := uint32(s); rest != 0; rest &= rest - 1 {
			if !yield(F(bits.TrailingZeros32(rest))) {
				return
			}
		}
	}
}

func (s Facts[F]) String() string {
	var names []string
	for f := range s.All() {
		names = append(names, f.String())
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// Rule gives the status of every set that holds at least one of its facts.
type Rule[F Fact, S ~string] struct {
	AnyOf  Facts[F]
	Status S
}

// Reaction is what the process says when its status turns to Status.
type Reaction[S ~string] struct {
	Status   S
	Message  string // the type of the message; "" when the turn is silent
	Terminal bool   // the status is never left
}

// Process is a process whose status is a function of the facts it knows.
type Process[F Fact, S ~string] struct {
	Start      Facts[F]      // what is known from the beginning
	Facts      Facts[F]      // every fact there is
	Rules      []Rule[F, S]  // the first that fits, from the top
	Impossible [][2]F        // pairs that exclude each other
	Reactions  []Reaction[S] // in the order in which statuses are shown
}

// Clone is a copy that may be changed.
func (p Process[F, S]) Clone() Process[F, S] {
	p.Rules = slices.Clone(p.Rules)
	p.Impossible = slices.Clone(p.Impossible)
	p.Reactions = slices.Clone(p.Reactions)
	return p
}

// Status is the status of a set, "" when no rule fits.
func (p Process[F, S]) Status(set Facts[F]) S {
	for _, rule := range p.Rules {
		if set&rule.AnyOf != 0 {
			return rule.Status
		}
	}
	return ""
}

// Turn is what learning one fact did.
type Turn[F Fact, S ~string] struct {
	Known    Facts[F] // the set afterwards
	New      bool     // the fact was not known before
	From, To S
}

// Changed says whether the status changed, which is what a process reacts to.
func (t Turn[F, S]) Changed() bool { return t.From != t.To }

// Learn adds a fact to a set. A fact that cannot be together with those known is an error of class INVARIANT.
func (p Process[F, S]) Learn(known Facts[F], fact F) (Turn[F, S], error) {
	next := known.With(fact)
	if pair, broken := p.Broken(next); broken {
		return Turn[F, S]{}, retry.Errorf(retry.Invariant, "%s and %s exclude each other; known are %s, told is %s",
			pair[0], pair[1], known, fact)
	}
	return Turn[F, S]{Known: next, New: next != known, From: p.Status(known), To: p.Status(next)}, nil
}

// Broken finds a pair of facts in the set that exclude each other.
func (p Process[F, S]) Broken(set Facts[F]) (pair [2]F, broken bool) {
	for _, pair := range p.Impossible {
		if set.Has(pair[0]) && set.Has(pair[1]) {
			return pair, true
		}
	}
	return pair, false
}

// Reaction is what turning to a status entails; the zero Reaction for a status that the process does not have.
func (p Process[F, S]) Reaction(status S) Reaction[S] {
	for _, r := range p.Reactions {
		if r.Status == status {
			return r
		}
	}
	return Reaction[S]{}
}

// Possible yields every set that holds Start and no pair that excludes each other.
func (p Process[F, S]) Possible() iter.Seq[Facts[F]] {
	return func(yield func(Facts[F]) bool) {
		for set := Facts[F](0); set <= p.Facts; set++ {
			if set&^p.Facts != 0 || set&p.Start != p.Start {
				continue
			}
			if _, broken := p.Broken(set); broken {
				continue
			}
			if !yield(set) {
				return
			}
		}
	}
}
