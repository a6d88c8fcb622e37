package policy

import "slices"

// Plot is something that can be shown about the policy.
type Plot struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Settings []Setting `json:"settings"`

	compute func(values) Report
}

var seed = Setting{Name: "seed", Label: "Seed", Default: "1", Least: 1, Most: 1_000_000}

var plots = []Plot{delays, jitters, storm, amplification, dampers, platforms}

// Plots are all plots, in the order in which they explain each other.
func Plots() []Plot { return slices.Clone(plots) }

// Find is the plot of that name.
func Find(name string) (Plot, bool) {
	i := slices.IndexFunc(plots, func(p Plot) bool { return p.Name == name })
	if i < 0 {
		return Plot{}, false
	}
	return plots[i], true
}

// Compute computes the plot. Settings that are not given have their defaults; wrong ones are an InvalidSettings.
func (p Plot) Compute(given map[string]string) (Report, error) {
	settings, err := read(p.Settings, given)
	if err != nil {
		return Report{}, err
	}
	report := p.compute(settings)
	report.Plot, report.Title, report.Settings = p.Name, p.Title, settings
	return report, nil
}
