package fault

import (
	"slices"
	"strings"

	"example.com/banking/pkg/retry"
)

// AllPoints lists the points that there are, in the order in which a message passes them.
func AllPoints() []Point {
	return []Point{Handler, BeforeCommit, AfterCommit, BeforeAck, AfterAck, AfterPublish}
}

// AllActions lists the actions that there are.
func AllActions() []Action { return []Action{Error, Delay, Panic, Exit} }

// AllClasses lists the classes that an error can be ordered with.
func AllClasses() []retry.Class {
	return []retry.Class{retry.Validation, retry.Invariant, retry.NotFound, retry.Conflict, retry.Timeout, retry.RateLimited, retry.Unknown, retry.Cancelled}
}

// otherNames are what people call some of the points too.
var otherNames = map[Point]Point{
	"in-handler":                Handler,
	"after-publish-before-mark": AfterPublish,
}

// ParsePoint reads a point's name as people write it: in any letter case, with spaces or underscores for hyphens.
func ParsePoint(text string) (Point, bool) {
	point := Point(hyphened(text))
	if other, ok := otherNames[point]; ok {
		point = other
	}
	return point, slices.Contains(AllPoints(), point)
}

// ParseAction reads an action's name in the same way.
func ParseAction(text string) (Action, bool) {
	action := Action(hyphened(text))
	return action, slices.Contains(AllActions(), action)
}

// ParseClass reads the name of a class in the same way.
func ParseClass(text string) (retry.Class, bool) {
	class := retry.Class(strings.ToUpper(strings.ReplaceAll(hyphened(text), "-", "_")))
	return class, slices.Contains(AllClasses(), class)
}

func hyphened(text string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(strings.TrimSpace(text)))
}
