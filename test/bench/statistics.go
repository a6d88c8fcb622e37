package main

import "slices"

// median is the middle value; of an even number of them, the mean of the two in the middle. There must be one at least.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

// overall is the rate of several equal amounts of work, each done at one of the rates: all of the work over all of the time.
func overall(rates ...float64) float64 {
	time := 0.0
	for _, rate := range rates {
		time += 1 / rate
	}
	return float64(len(rates)) / time
}

// rise compares the largest reading of the second half with the largest of the first: 1 or less where they do not rise. There must be two
// readings at least.
func rise(readings []float64) float64 {
	half := len(readings) / 2
	return slices.Max(readings[half:]) / slices.Max(readings[:half])
}
