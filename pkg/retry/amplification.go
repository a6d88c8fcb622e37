package retry

import "math"

// Amplification is how often the innermost layer is called at worst for one request, when each layer above it makes so many
// attempts: 3, 3 and 3 make 27. That is why retries belong in one layer; here it is the consumer. A layer makes at least
// one attempt; what is more than an int can hold is the largest int.
func Amplification(attempts ...int) int {
	product := 1
	for _, n := range attempts {
		if n > 1 && product > math.MaxInt/n {
			return math.MaxInt
		}
		product *= max(n, 1)
	}
	return product
}
