package saga

import (
	"fmt"
	"slices"
	"strings"
)

// Move is one cell of what a process may do: told Fact in From, it goes to one of To. Refused says that there are sets of that
// status which the fact cannot join.
type Move[F Fact, S ~string] struct {
	From    S
	Fact    F
	To      []S
	Refused bool
}

// Moves works out, by going through all possible sets, what every fact does in every status. Sets that know the fact already
// are left out: nothing happens to them.
func (p Process[F, S]) Moves() []Move[F, S] {
	var moves []Move[F, S]
	for _, reaction := range p.Reactions {
		for fact := range (p.Facts &^ p.Start).All() {
			move := Move[F, S]{From: reaction.Status, Fact: fact}
			for set := range p.Possible() {
				if set.Has(fact) || p.Status(set) != move.From {
					continue
				}
				turn, err := p.Learn(set, fact)
				switch {
				case err != nil:
					move.Refused = true
				case !slices.Contains(move.To, turn.To):
					move.To = append(move.To, turn.To)
				}
			}
			moves = append(moves, move)
		}
	}
	return moves
}

// Markdown is the process in tables: what a set makes of the status, which facts exclude each other, and what every fact does in
// every status.
func (p Process[F, S]) Markdown() string {
	var b strings.Builder
	b.WriteString("| the set holds | status | on turning to it, says |\n| --- | --- | --- |\n")
	for _, rule := range p.Rules {
		reaction := p.Reaction(rule.Status)
		end := ""
		if reaction.Terminal {
			end = ", the end"
		}
		fmt.Fprintf(&b, "| %s | `%s`%s | `%s` |\n", names(rule.AnyOf, " or "), rule.Status, end, short(reaction.Message))
	}
	b.WriteString("\nNever together:\n\n")
	for _, pair := range p.Impossible {
		fmt.Fprintf(&b, "- %s and %s\n", code(pair[0].String()), code(pair[1].String()))
	}
	b.WriteString("\n| told |")
	for _, reaction := range p.Reactions {
		fmt.Fprintf(&b, " in `%s` |", reaction.Status)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(p.Reactions)) + "\n")
	moves := p.Moves()
	for fact := range (p.Facts &^ p.Start).All() {
		fmt.Fprintf(&b, "| %s |", code(fact.String()))
		for _, move := range moves {
			if move.Fact == fact {
				fmt.Fprintf(&b, " %s |", move.cell())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (m Move[F, S]) cell() string {
	var outcomes []string
	for _, to := range m.To {
		if to == m.From {
			outcomes = append(outcomes, "stays")
		} else {
			outcomes = append(outcomes, "→ "+code(string(to)))
		}
	}
	if m.Refused {
		outcomes = append(outcomes, "refused")
	}
	if len(outcomes) == 0 {
		return "known"
	}
	return strings.Join(outcomes, " or ")
}

// Mermaid draws the changes of status.
func (p Process[F, S]) Mermaid() string {
	var edges []edge
	for _, move := range p.Moves() {
		for _, to := range move.To {
			if to != move.From {
				edges = append(edges, edge{string(move.From), string(to), move.Fact.String()})
			}
		}
	}
	var ends []string
	for _, reaction := range p.Reactions {
		if reaction.Terminal {
			ends = append(ends, string(reaction.Status))
		}
	}
	return diagram(string(p.Status(p.Start)), edges, ends)
}

// Markdown is the table as a table. Effects are described by the caller, because only he knows what they mean.
func (t Table[S, R, E]) Markdown(describe func(E) string) string {
	var b strings.Builder
	b.WriteString("| state | request | rules say | → state | effect | answer |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, row := range t {
		verdict, effect, answer := "", "", code(short(row.Event))
		switch row.Verdict {
		case Allowed:
			verdict = "yes"
		case Refused:
			verdict = "no"
		}
		if row.Effect != "" {
			effect = describe(row.Effect)
		}
		if row.Fault != "" {
			answer = "none, fails with " + code(string(row.Fault))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			state(row.State), code(short(string(row.Request))), verdict, state(row.Next), effect, answer)
	}
	return b.String()
}

// Mermaid draws the rows that change the state.
func (t Table[S, R, E]) Mermaid() string {
	var edges []edge
	var leaves, reached []string
	for _, row := range t {
		if row.Next == row.State {
			continue
		}
		label := short(string(row.Request))
		if row.Verdict == Refused {
			label += ", refused"
		}
		edges = append(edges, edge{string(row.State), string(row.Next), label})
		leaves = append(leaves, string(row.State))
		if !slices.Contains(reached, string(row.Next)) {
			reached = append(reached, string(row.Next))
		}
	}
	ends := slices.DeleteFunc(reached, func(s string) bool { return slices.Contains(leaves, s) })
	return diagram("", edges, ends)
}

type edge struct{ from, to, label string }

// diagram draws one arrow for all edges between the same two states. The state "" is the start.
func diagram(start string, edges []edge, ends []string) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	if start != "" {
		fmt.Fprintf(&b, "    [*] --> %s\n", start)
	}
	for i, e := range edges {
		same := func(other edge) bool { return other.from == e.from && other.to == e.to }
		if slices.IndexFunc(edges, same) < i {
			continue
		}
		var labels []string
		for _, other := range edges[i:] {
			if same(other) {
				labels = append(labels, other.label)
			}
		}
		from := e.from
		if from == "" {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, e.to, strings.Join(labels, " or "))
	}
	for _, end := range ends {
		fmt.Fprintf(&b, "    %s --> [*]\n", end)
	}
	return b.String()
}

func names[F Fact](set Facts[F], separator string) string {
	var quoted []string
	for fact := range set.All() {
		quoted = append(quoted, code(fact.String()))
	}
	return strings.Join(quoted, separator)
}

func code(text string) string { return "`" + text + "`" }

func state[S ~string](s S) string {
	if s == "" {
		return "none"
	}
	return code(string(s))
}

// short is the last part of a message type: what people call it.
func short(messageType string) string { return messageType[strings.LastIndexByte(messageType, '.')+1:] }
